#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Ctrl-C on access-bench: it shows what came out so far, says that it is not the whole, and leaves
# nothing behind.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 7 64
some_samples() {
	grep -q 'jobs run.*; [1-9][0-9]* samples' "$work/bench.log"
}
timeout --foreground $longest "$bench" --quickstart --dataset "$work/data" --epochs 60000 --step-ms 2 --start-s 0,0,0,3600 \
	--json "$work/result.json" >"$work/table.log" 2>"$work/bench.log" &
run=$!
cleanup_fn "kill -TERM $run"
until_true $patience some_samples || fail "no progress"
all=$(offspring_of "$run")
kill -INT "$(children_of "$run")"
code=0
wait $run || code=$?
[ $code = 130 ] || fail "status $code instead of 130"
"$expect" "$work/result.json" interrupted == true exactly_once == true jobs.*.missing == 0 \
	jobs.*.duplicates == 0 jobs.3.samples == 0 node.known == true node.samples_preprocessed ">" 0 ||
	fail "the result is not what came out so far"
[ "$("$expect" "$work/result.json" "jobs.*.samples" | awk '{ n += $1 } END { print n + 0 }')" -gt 0 ] ||
	fail "nothing came out, in the result"
grep -q 'work removed' "$work/table.log" || fail "no table"
grep -q '^Interrupted: ' "$work/table.log" || fail "the table does not say that it is not the whole"
# shellcheck disable=SC2086 # a list of numbers
until_true $patience are_gone $all || fail "a process was left behind: $all"
[ -z "$(ls -d "$work"/access-bench-* 2>/dev/null)" ] || fail "a folder was left behind"
