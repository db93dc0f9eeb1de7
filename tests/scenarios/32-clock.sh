#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 28: the wall clock jumps by an hour, to and fro, each time that anybody looks at it (clock.la is
# preloaded): no time-out fires, nobody waits for an hour, jobs train as ever, an accessd that comes back is
# found again.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

clock=$top_builddir/tests/scenarios/.libs/clock.so
[ -e "$clock" ] || skip "built without shared libraries"
if ldd "$accessd" | grep -q -e libasan -e libtsan; then
	skip "a sanitizer must be the first library"
fi
"$pictures" "$work/data" 400 2 100
export LD_PRELOAD="$clock"
jumps() { # each process begins at another point, by its number
	now=$(date +%s)
	[ $((first > now ? first - now : now - first)) -gt 3000 ]
}
first=$(date +%s)
until_true $patience jumps || fail "the clock does not jump: the scenario tests nothing"

start_accessd workers=2 chunk=16 linger_s=1
jump() {
	while_training "the jobs do not start" all_train 2 || return 1
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null || true
	start_accessd workers=2 chunk=16 linger_s=1
	! is_gone "$run" || return 1
	while_training "the jobs do not go on" all_train 2
}
training result 10 jump --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16,12 --step-ms 1,2
"$expect" "$work/result.json" "jobs.*.reconnects" == 1 "jobs.*.error" == null || fail "a time-out fired"
status_is node.worker_restarts == 0 node.reader_restarts == 0 node.parent_restarts == 0 node.bad_samples == 0 ||
	fail "somebody was taken for hung"
until_true $patience status_is streams == 0 || fail "the stream lingers for ever"
stop_accessd
