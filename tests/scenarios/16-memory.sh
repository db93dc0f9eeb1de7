#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The budget is exceeded by the next stream: it is refused with the numbers, the first stream does not
# notice, and once that has gone the same job is admitted.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 3 64
# A slot of 16 x 3 x 224 x 224 bytes is 2.3 MiB, of floats 9.2 MiB.
start_accessd workers=1 memory=40M linger_s=1 hand=16
timeout 60 "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --verify \
	--batch 16 --epochs 2 --step-ms 60 --json "$work/first.json" --quiet 2>"$work/first.log" &
run=$!
cleanup_fn "kill -TERM $run"
until_true 20 status_is jobs.0.delivered ">" 0 || fail "the first job does not start"
code=0
timeout 30 "$bench" --dataset "$work/data" --pipeline imagenet-train --socket "$socket" --batch 16 \
	--json "$work/refused.json" --quiet 2>"$work/refused.log" || code=$?
[ $code = 1 ] || fail "the second stream was not refused (status $code)"
"$expect" "$work/refused.json" "jobs.0.error" >"$work/refused.txt"
grep -Eq '[0-9.]+ [KMG]iB.*[0-9.]+ [KMG]iB' "$work/refused.txt" ||
	fail "the refusal has no numbers: $(cat "$work/refused.txt")"
is_gone $run && fail "the first job ended too soon: the scenario tests nothing"
"$ctl" --socket "$socket" streams | grep -q imagenet || [ "$(status streams)" = 1 ] || fail "the first stream is gone"
wait $run || fail "the first job suffered"
exactly_once "$work/first.json"
until_true 20 status_is streams == 0 || fail "the stream without jobs stays"
status_is node.memory_used "<=" 4000000 || fail "memory is still accounted for: $(status node.memory_used)"
stop_accessd
start_accessd workers=1 memory=80M hand=16
timeout 30 "$bench" --dataset "$work/data" --pipeline imagenet-train --socket "$socket" --batch 16 --verify \
	--json "$work/second.json" --quiet 2>"$work/second.log" || fail "not admitted although there is room"
exactly_once "$work/second.json"
stop_accessd
