#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# accessd is stopped for some seconds in mid-epoch: jobs wait and go on. Then a worker, the parent and
# the reader are stopped: whoever hangs is replaced or waited for; nobody loses a sample.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1000 3 64
start_accessd workers=2 sample_timeout_ms=500
timeout 120 "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --verify \
	--jobs 2 --batch 16 --epochs 3 --step-ms 40,50 --json "$work/result.json" --quiet --bad substitute \
	2>"$work/bench.log" &
run=$!
cleanup_fn "kill -TERM $run"
until_true 20 status_is jobs.1.delivered ">" 0 || fail "the jobs do not start"
kill -STOP "$daemon"
sleep 3
is_gone $run && fail "the jobs ended without accessd"
kill -CONT "$daemon"
until_true 10 "$ctl" --socket "$socket" ping >/dev/null || fail "accessd does not answer again"

before=$(status node.worker_restarts)
worker=$(status "workers.*.pid" | head -n 1)
kill -STOP "$worker"
until_true 20 status_is node.worker_restarts ">" "$before" || fail "a hung worker was not replaced"
until_true 10 is_gone "$worker" || fail "the hung worker is still there"
is_gone $run && fail "the jobs ended too soon: the scenario tests nothing"

reader=$(status node.reader_pid)
kill -STOP "$reader"
sleep 1
kill -CONT "$reader"
wait $run || fail "access-bench says so"
exactly_once "$work/result.json"
"$expect" "$work/result.json" "jobs.*.error" == null
stop_accessd
