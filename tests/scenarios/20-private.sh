#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 18, without any daemon: jobs that start at the same moment elect one private accessd among them;
# it dies with kill -9, they elect another and go on; when idle it ends by itself and leaves nothing.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

[ ! -S /run/accessd/socket ] || skip "this machine has an accessd for all"
"$pictures" "$work/data" 800 3 200
dir=$work/run/oneaccess
socket=$dir/socket
private_pid() {
	"$ctl" --socket "$socket" --json status 2>/dev/null | "$expect" - pid 2>/dev/null
}
kill_private() {
	pid=$(private_pid) && kill -KILL "$pid"
}
cleanup_fn kill_private

# The jobs find their accessd by themselves; otherwise as train_once() of functions.sh.
epochs=8
while :; do
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --verify --jobs 3 --batch 16 \
		--step-ms 10 --epochs $epochs --json "$work/result.json" --quiet 2>"$work/bench.log" &
	run=$!
	cleanup_fn "kill -TERM $run"
	elect_again() {
		while_training "the jobs do not start one accessd" all_train 3 || return 1
		first=$(status pid)
		[ -n "$first" ] || return 1
		offspring=$(offspring_of "$first")
		kill -KILL "$first" || fail "no process $first"
		while_training "no other one was elected" elected || return 1
		# shellcheck disable=SC2086
		until_true $patience are_gone "$first" $offspring || fail "a process outlives its accessd"
	}
	elected() {
		all_train 3 && status_is pid != "$first"
	}
	ended=no
	elect_again || ended=yes
	wait_for_bench "$work/result.json" $ended
	exactly_once "$work/result.json"
	[ $ended = yes ] || break
	epochs=$((epochs * 4))
done
"$expect" "$work/result.json" "jobs.*.reconnects" ">=" 1

# It would stay for idle_exit_s; asked to end, it leaves nothing.
last=$(private_pid)
offspring=$(offspring_of "$last")
kill -TERM "$last"
# shellcheck disable=SC2086
until_true $patience are_gone "$last" $offspring || fail "a process stays"
[ ! -e "$socket" ] || fail "the socket was left behind"

# One that nobody uses ends by itself.
mkdir -m 0700 "$work/idle"
"$accessd" --private --dir "$work/idle" --set idle_exit_s=1 --set workers=1 2>>"$work/accessd.log" &
daemon=$!
cleanup_fn "kill -KILL $daemon"
until_true $patience is_gone "$daemon" || fail "an idle private accessd stays"
code=0
wait "$daemon" || code=$?
[ $code = 0 ] || fail "the idle exit has status $code"
[ ! -e "$work/idle/socket" ] || fail "the idle one left its socket"

# Nor does one stay whose folder was removed, and what has come in its place keeps its socket.
mkdir -m 0700 "$work/gone"
"$accessd" --private --dir "$work/gone" --set idle_exit_s=5 --set workers=1 2>>"$work/accessd.log" &
daemon=$!
cleanup_fn "kill -KILL $daemon"
until_true $patience test -S "$work/gone/socket" || fail "no accessd in a folder that will be removed"
rm -rf "$work/gone"
mkdir -m 0700 "$work/gone"
"$accessd" --private --dir "$work/gone" --set workers=1 --set idle_exit_s=3600 2>>"$work/accessd.log" &
next=$!
cleanup_fn "kill -KILL $next"
until_true $patience is_gone "$daemon" || fail "a private accessd stays whose folder was removed"
until_true $patience test -S "$work/gone/socket" || fail "its folder has no accessd any more"
"$ctl" --socket "$work/gone/socket" ping >/dev/null || fail "the accessd that came in its place does not answer"
