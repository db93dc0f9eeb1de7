#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What an admin sees of what is kept: access-ctl explain of a job that trains, and access-ctl cache, which
# lists, pins, drops and checks it while it is in use.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 4 100
ask() { # ask WORD...: what access-ctl says is in $work/plain.txt
	"$ctl" --socket "$socket" "$@" >"$work/plain.txt" 2>&1
}
says() { # says PATTERN...: plain.txt has a line with each
	for pattern in "$@"; do
		grep -Eq -- "$pattern" "$work/plain.txt" || fail "no \"$pattern\" in: $(cat "$work/plain.txt")"
	done
}
refused() { # refused PATTERN WORD...
	pattern=$1
	shift
	! ask "$@" || fail "access-ctl $* is well"
	says "^access-ctl: .*$pattern"
}

start_accessd workers=2 chunk=16
refused "there is no job 1 among 0" explain 1
refused "nothing is kept: cache_size is 0" cache ls
stop_accessd

start_accessd workers=2 chunk=16 linger_s=0 cache_size=64M cache_force=1 cache_point=packed
all_is_kept() {
	status_is jobs == 1 "streams.0.cache.points.2.kept_samples" == 400 "streams.0.cache.hits" ">" 0
}
explain() {
	while_training "what is forced is not kept" all_is_kept || return 1
	ask explain bench-0 || return 1 # it ended just now
	says "^job [0-9]+, bench-0, process [0-9]+; stream [0-9]+ of" "$work/data\$" "^Kept is packed: packed coefficients" \
		"accessd was told to" "^ +file " "^ +\* packed .* 100 %" "^Of [0-9]+ samples that were looked for [1-9]"

	ask cache ls || fail "access-ctl cache ls"
	says " of 64 MiB, " "^[0-9a-f]{12} +packed +$work/data +400 +100.0 % "
	group=$(sed -n 's/^\([0-9a-f]*\) *packed .*/\1/p' "$work/plain.txt")
	ask cache pin "$group" || fail "access-ctl cache pin: $(cat "$work/plain.txt")"
	ask cache ls || fail "access-ctl cache ls"
	says "^$group .* pinned"
	refused "is pinned" cache drop "$group"
	refused "group $group stays: it is pinned" cache forget "$work/data"
	refused "no group 0123456789abcd among" cache drop 0123456789abcd
	ask cache verify || fail "access-ctl cache verify: $(cat "$work/plain.txt")"
	says "^[0-9]+ values of [0-9]+ groups are sound .*; 0 damaged ones were dropped"
	ask cache unpin "$group" || fail "access-ctl cache unpin"
	ask cache drop "$group" || fail "access-ctl cache drop: $(cat "$work/plain.txt")"
	ask cache ls || fail "access-ctl cache ls"
	! is_gone "$run" || return 1
	says "^$group .* 0.0 % .* in use" # empty, as long as a stream has it
	while_training "what was dropped is still there" status_is "streams.0.cache.points.2.kept_samples" == 0
}
training result 40 explain --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 1 --batch 16 --step-ms 5

ask --pipeline imagenet-train-u8 cache warm "$work/data" || fail "access-ctl cache warm: $(cat "$work/plain.txt")"
cd "$work"
ln -s data link
ask cache forget link/ || fail "access-ctl cache forget: $(cat "$work/plain.txt")"
says "^[1-9] groups of $work/data were thrown away, with 400 values"
nothing_is_kept() {
	ask cache ls && ! grep -q "$work/data" "$work/plain.txt"
}
until_true $patience nothing_is_kept || fail "groups are there that were thrown away: $(cat "$work/plain.txt")"
ask cache forget data || fail "access-ctl cache forget: $(cat "$work/plain.txt")"
says "^nothing is kept of $work/data"
stop_accessd
