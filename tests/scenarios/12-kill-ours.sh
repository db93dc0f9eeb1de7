#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 18, and kill -9 of each of our processes in mid-epoch, under load: a worker, the worker parent,
# the reader, accessd itself (started again by nobody's chunk but the scenario's, without any
# cleaning). Four jobs at different places go on by themselves, exactly once; nothing is left behind.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1500 3 200
find /dev/shm -mindepth 1 2>/dev/null | sort >"$work/shm.before" || true
start_accessd workers=2 chunk=64

sends() { # sends SIGNAL PATH: to the process there, which may be exchanged just now; its $pid
	pid=$(status "$2" | tail -n 1)
	[ "${pid:-0}" -gt 1 ] && kill -"$1" "$pid"
}
# kill_one PATH COUNTER SIGNAL: kills the process whose pid is at PATH, waits until it was replaced
kill_one() {
	while_training "the jobs do not train before $1 is killed" all_train 4 || return 1
	before=$(status "node.$2")
	while_training "no process at $1" sends "$3" "$1" || return 1
	while_training "$1 was not replaced" status_is "node.$2" ">" "$before" || return 1
	until_true $patience is_gone "$pid" || fail "process $pid of $1 is still there"
}
kill_accessd() {
	while_training "the jobs do not train before accessd is killed" all_train 4 || return 1
	while_training "a worker was not replaced" status_is node.workers_alive == 2 || return 1
	offspring=$(offspring_of "$daemon")
	[ "$(echo "$offspring" | wc -l)" -ge 4 ] || fail "accessd has no reader, parent and workers"
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null || true
	# shellcheck disable=SC2086
	until_true $patience are_gone $offspring || fail "a process outlives accessd: $offspring"
	[ -S "$socket" ] || fail "kill -9 left no socket: the scenario tests nothing"
	start_accessd workers=2 chunk=64
	! is_gone "$run"
}
kill_all() {
	kill_one "workers.*.pid" worker_restarts KILL || return 1
	kill_one node.parent_pid parent_restarts KILL || return 1
	kill_one node.reader_pid reader_restarts KILL || return 1
	kill_one "workers.*.pid" worker_restarts SEGV || return 1
	kill_accessd || return 1
	while_training "the jobs do not train after accessd was killed" all_train 4
}
training result 25 kill_all --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 4 \
	--batch 16,10,16,23 --step-ms 0,2,0,4 --start-s 0,0,0.3,0.5
"$expect" "$work/result.json" "jobs.*.error" == null "jobs.*.lives" == 1 "jobs.*.reconnects" ">=" 1
until_true $patience status_is jobs == 0 || fail "accessd still knows jobs"
stop_accessd
find /dev/shm -mindepth 1 2>/dev/null | sort >"$work/shm.after" || true
comm -13 "$work/shm.before" "$work/shm.after" | grep -i access && fail "something was left in /dev/shm"
exit 0
