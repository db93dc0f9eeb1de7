#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The example in C, doc/examples/train_loop.c, as it is: two epochs by one process, and by four that go on from each other's
# token, have each batch once. A folder that is not there, and a token that is none, are refused in words.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
loop=$top_builddir/doc/examples/train_loop

"$pictures" "$work/data" 80 3 64
start_accessd
export ACCESS_SOCKET="$socket"
train() { # train OUT TOKEN [STEPS]
	timeout $longest "$loop" "$work/data" "$2" ${3:+"$3"} >>"$1" || fail "the example ended with status $?"
}
# Batches of 32, 32 and 16 in each epoch, whatever the daemon puts first, and 3 x 224 x 224 floats a picture.
whole() { # whole OUT
	awk '{
		sub(/:$/, "", $4)
		if ($1 != "epoch" || $NF != "bytes" || $(NF - 1) != $5 * 3 * 224 * 224 * 4 || seen[$2, $4]++)
			exit 1
		samples[$2] += $5
	}
	END { exit !(NR == 6 && length(samples) == 2 && samples[0] == 80 && samples[1] == 80) }' "$1" ||
		fail "not two epochs of 80: $(cat "$1")"
}

train "$work/whole" "$work/token"
whole "$work/whole"
train "$work/nothing" "$work/token"
[ ! -s "$work/nothing" ] || fail "more than two epochs: $(cat "$work/nothing")"
rm "$work/token"

for steps in 1 2 2 ''; do
	train "$work/parts" "$work/token" $steps
done
whole "$work/parts"
[ ! -e "$work/token.new" ] || fail "a half token was left behind"

refused() { # refused TEXT ARGUMENT...
	text=$1
	shift
	if timeout $longest "$loop" "$@" >"$work/said" 2>&1; then
		fail "it does not fail: $*"
	fi
	grep -q "$text" "$work/said" || fail "$* is refused so: $(cat "$work/said")"
}
refused '^train_loop: .*no-such-folder' "$work/no-such-folder"
echo nonsense >"$work/nonsense"
refused '^train_loop: .*token' "$work/data" "$work/nonsense"
refused '^train_loop: usage' # nothing is given
stop_accessd
