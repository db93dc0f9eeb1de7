#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Without any daemon, jobs that start at the same moment elect one private accessd among them; it dies
# with kill -9, they elect another and go on; when idle it ends by itself and leaves nothing.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

[ ! -S /run/accessd/socket ] || skip "this machine has an accessd for all"
"$pictures" "$work/data" 800 3 64
dir=$work/run/oneaccess
socket=$dir/socket
timeout 90 "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --verify --jobs 3 --batch 16 \
	--epochs 3 --step-ms 40 --json "$work/result.json" --quiet 2>"$work/bench.log" &
run=$!
cleanup_fn "kill -TERM $run"
kill_private() {
	pid=$("$ctl" --socket "$socket" --json status 2>/dev/null | "$expect" - pid 2>/dev/null) && kill -KILL "$pid"
}
cleanup_fn kill_private
until_true 20 status_is jobs == 3 jobs.2.delivered ">" 0 || fail "the jobs do not start one accessd"
first=$(status pid)
kill -KILL "$first"
until_true 20 status_is jobs == 3 pid != "$first" || fail "no other one was elected"
is_gone $run && fail "the jobs ended too soon: the scenario tests nothing"
wait $run || fail "access-bench says so"
exactly_once "$work/result.json"
"$expect" "$work/result.json" "jobs.*.reconnects" ">=" 1
