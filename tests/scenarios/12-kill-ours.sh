#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# kill -9 of each of our processes in mid-epoch, under load: a worker, the worker parent, the reader,
# accessd itself (started again by nobody's hand but the scenario's, without any cleaning). Every job
# goes on by itself, exactly once, and nothing is left behind.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1500 3 64
start_accessd workers=2
timeout 120 "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --verify \
	--jobs 3 --batch 16,10,16 --epochs 3 --step-ms 30,25,40 --json "$work/result.json" --quiet \
	2>"$work/bench.log" &
run=$!
cleanup_fn "kill -TERM $run"
started() {
	status_is jobs.2.delivered ">" 0
}
until_true 20 started || fail "the jobs do not start"

# kill_one PATH COUNTER [SIGNAL]: kills the process whose pid is at PATH, waits until it was replaced
kill_one() {
	signal=${3:-KILL}
	pid=$(status "$1" | tail -n 1)
	[ "${pid:-0}" -gt 1 ] || fail "no process at $1"
	before=$(status "node.$2")
	kill -"$signal" "$pid" || fail "process $pid of $1 is gone already"
	until_true 15 status_is "node.$2" ">" "$before" || fail "$1 was not replaced"
	until_true 15 is_gone "$pid" || fail "process $pid of $1 is still there"
	is_gone $run && fail "the jobs ended too soon: the scenario tests nothing"
	sleep 0.5
}
kill_one "workers.*.pid" worker_restarts
kill_one node.parent_pid parent_restarts
kill_one node.reader_pid reader_restarts
kill_one "workers.*.pid" worker_restarts SEGV

children=$(children_of "$daemon")
parent=$(status node.parent_pid)
children="$children $(children_of "$parent")"
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
for pid in $children; do
	until_true 10 is_gone "$pid" || fail "process $pid outlives accessd"
done
start_accessd workers=2
is_gone $run && fail "the jobs ended too soon: the scenario tests nothing"
wait $run || fail "access-bench says so"
exactly_once "$work/result.json"
"$expect" "$work/result.json" "jobs.*.error" == null "jobs.*.lives" == 1 "jobs.*.reconnects" ">=" 1
until_true 10 status_is jobs == 0 || fail "accessd still knows jobs"
stop_accessd
[ ! -e "$socket" ] || fail "the socket was left behind"
