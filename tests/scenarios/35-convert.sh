#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-ctl convert: the same file whatever --jobs is; nothing is left of a conversion that fails, is
# interrupted, killed or meets a full disk; a target is not overwritten by chance; makers that die or hang cost
# one sample its form; --check finds each kind of damage; a wrapped data set and a converted one are refused.
# (What a job gets of one: convert_test.c.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 300 3 64
cp "${top_srcdir:-.}"/tests/pipeline/data/*.jpg "$work/data/class_0001"
mkdir "$work/out"
out=$work/out
convert() { # convert OPTION...: $code is its status, $work/said what it says
	code=0
	timeout $longest "$ctl" convert "$@" >"$work/said" 2>&1 || code=$?
}
says() {
	grep -q -- "$1" "$work/said" || fail "it does not say \"$1\": $(cat "$work/said")"
}
is_empty() { # nothing in $out, hidden or not
	[ -z "$(ls -A "$out")" ] || fail "$1 left $(ls -A "$out")"
}

# Whatever --jobs is; again over itself with --force alone.
convert --jobs 1 "$work/data" "$out/one.oads"
[ $code = 0 ] || fail "convert: $(cat "$work/said")"
says "packed"
says "as they are"
convert --jobs 7 "$work/data" "$out/seven.oads"
cmp "$out/one.oads" "$out/seven.oads" || fail "the file depends on --jobs"
convert "$work/data" "$out/one.oads"
[ $code = 1 ] || fail "a target that is there: status $code"
says "--force"
convert --force --form indexed "$work/data" "$out/one.oads"
[ $code = 0 ] || fail "--force: $(cat "$work/said")"
cmp -s "$out/one.oads" "$out/seven.oads" && fail "--force replaces nothing"
[ "$(find "$out" -type f | wc -l)" = 2 ] || fail "left behind: $(ls -A "$out")"

# --check, and what it finds.
convert --check "$out/seven.oads"
[ $code = 0 ] || fail "--check of a good one: $(cat "$work/said")"
says "all is as it was written"
size=$(stat -c %s "$out/seven.oads")
for at in 20 5000 $((size - 3)) $((size - 3000)); do
	cp "$out/seven.oads" "$out/bad.oads"
	printf '\252\125' | dd of="$out/bad.oads" bs=1 seek=$at conv=notrunc 2>/dev/null
	convert --check "$out/bad.oads"
	[ $code = 1 ] || fail "--check does not find damage at byte $at of $size"
done
printf 'x' | dd of="$out/bad.oads" bs=1 seek=5000 conv=notrunc 2>/dev/null
head -c 30000 "$out/seven.oads" >"$out/bad.oads"
convert --check "$out/bad.oads"
[ $code = 1 ] || fail "--check of one that is cut"
convert --check "$work/data/class_0000/000001.jpg"
[ $code = 1 ] || fail "--check of a picture"
says "no converted data set"
rm -f "$out"/*

# What cannot be converted.
convert "$work/nowhere" "$out/x.oads"
[ $code = 1 ] || fail "a folder that is not there: status $code"
says "nowhere\": No such file"
convert "$work/data/class_0000/000001.jpg" "$out/x.oads"
[ $code = 1 ] || fail "a file: status $code"
says "Not a directory; give the folder that holds the pictures"
mkdir -m 0700 "$work/wrapped"
head -c 64 /dev/zero >"$work/wrapped/oneaccess-wrapped"
convert "$work/wrapped" "$out/x.oads"
[ $code = 1 ] || fail "a wrapped data set: status $code"
says "wrapped data set"
mkdir "$work/none"
convert "$work/none" "$out/x.oads"
[ $code = 1 ] || fail "an empty folder: status $code"
says "no picture found"
convert "$work/data" "$work/nowhere/x.oads"
[ $code = 1 ] || fail "a target in a folder that is not there: status $code"
convert "$work/data" "$out"
[ $code = 1 ] || fail "a target that is a folder: status $code"
convert "$work/data"
[ $code = 2 ] || fail "no target: status $code"
convert --form nothing "$work/data" "$out/x.oads"
[ $code = 2 ] || fail "no form: status $code"
is_empty "what was refused"

# A limit of the file's size stands for a disk that is full: the write fails in the middle.
code=0
(ulimit -f 100 && exec "$ctl" convert --form file "$work/data" "$out/x.oads") >"$work/said" 2>&1 || code=$?
[ $code = 1 ] || fail "a full disk: status $code"
says "cannot write"
is_empty "a full disk"

# Makers that die or hang: the sample stays as it is, all others have their form.
program=$top_builddir/tests/convert/faulty_convert
export FAULT FAULT_AT="$work/data/class_0000/000007.jpg"
FAULT=none timeout $longest "$program" "$work/data" "$out/good.oads" >"$work/said" 2>&1 || fail "access-convert: $(cat "$work/said")"
kept=$(sed -n 's/.*as they are *\([0-9]*\) samples.*/\1/p' "$work/said")
for FAULT in crash hang; do
	timeout $longest "$program" "$work/data" "$out/$FAULT.oads" >"$work/said" 2>&1 ||
		fail "a maker that does $FAULT: $(cat "$work/said")"
	says "000007.jpg.*died or took too long"
	says "as they are  *$((kept + 1)) samples"
	timeout $longest "$ctl" convert --check "$out/$FAULT.oads" >/dev/null || fail "$FAULT: it is damaged"
done
cmp "$out/crash.oads" "$out/hang.oads" || fail "what was kept differs"
rm -f "$out"/*

# A maker hangs until it is ended; meanwhile the whole is interrupted.
converts() { # a maker of it is there
	is_gone "$run" || family_of "$run" | grep -q " convert-maker$"
}
FAULT_AT="$work/data/class_0002/000200.jpg"
for how in TERM HUP KILL; do
	"$program" "$work/data" "$out/x.oads" >"$work/said" 2>&1 &
	run=$!
	cleanup_fn "kill -KILL $run"
	until_true $patience converts || fail "no maker comes"
	processes=$(offspring_of "$run")
	kill -$how $run 2>/dev/null || true
	code=0
	wait $run || code=$?
	# shellcheck disable=SC2086 # a list of numbers
	until_true $patience are_gone $processes || fail "$how: a process outlives it"
	if [ $code = 0 ]; then # it was quicker
		rm "$out/x.oads"
	else
		[ $code -gt 128 ] || fail "$how: status $code: $(cat "$work/said")"
	fi
	is_empty "SIG$how"
done

# A file changes while it is converted: as the folder was listed, or not at all.
FAULT_AT="$work/data/class_0000/000002.jpg"
"$program" --jobs 1 "$work/data" "$out/x.oads" >"$work/said" 2>&1 &
run=$!
cleanup_fn "kill -KILL $run"
until_true $patience converts || fail "no maker comes"
touch -d 2001-02-03 "$work/data/class_0002/000290.jpg"
code=0
wait $run || code=$?
if [ $code = 0 ]; then
	echo "it was quicker than the change"
else
	[ $code = 1 ] || fail "a change: status $code"
	says "000290.jpg.*since it was listed"
	is_empty "a change"
fi
