#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# SIGTERM with clients: accessd hands out nothing new, ends within its time with status 0, leaves
# nothing; a new one, with another configuration, takes the jobs on.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1000 3 64
start_accessd workers=2
timeout 90 "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --verify \
	--jobs 3 --batch 16,12,16 --epochs 2 --step-ms 40,30,50 --json "$work/result.json" --quiet \
	2>"$work/bench.log" &
run=$!
cleanup_fn "kill -TERM $run"
until_true 20 status_is jobs.2.delivered ">" 0 || fail "the jobs do not start"
children=$(children_of "$daemon")
kill -TERM "$daemon"
until_true 20 is_gone "$daemon" || fail "accessd does not end"
code=0
wait "$daemon" || code=$?
[ $code = 0 ] || fail "accessd ended with status $code"
for pid in $children; do
	until_true 5 is_gone "$pid" || fail "process $pid outlives accessd"
done
is_gone $run && fail "the jobs ended too soon: the scenario tests nothing"
start_accessd workers=1 slots=9 producing=1 readers=2
wait $run || fail "access-bench says so"
exactly_once "$work/result.json"
"$expect" "$work/result.json" "jobs.*.reconnects" ">=" 1
stop_accessd
