#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 1, 3, 20: jobs are killed and stopped all the time, with their pins; they go on from their
# tokens, which are behind what accessd had prepared for them. Nobody misses or repeats a sample, no
# live job ever waits on what a dead or stopped one holds, and afterwards accessd holds nothing for
# anybody. (One kill and one stop, looked at closely: client_test.c.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 900 3 64
start_accessd workers=2 linger_s=1
fds=$(find "/proc/$daemon/fd" | wc -l)
hits() { # hits NAME: kills and stops of all jobs
	"$expect" "$work/result.json" "jobs.*.$1" | awk '{ n += $1 } END { print n + 0 }'
}
epochs=3
while :; do
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --verify \
		--jobs 4 --batch 16,9,16,32 --epochs $epochs --step-ms 10,15,20,30 --kill 40 --stop 20 --seed 3 \
		--json "$work/result.json" >"$work/bench.log" 2>&1 || fail "access-bench says so"
	exactly_once "$work/result.json"
	[ "$(hits kills)" -lt 2 ] || [ "$(hits stops)" -lt 2 ] || break
	epochs=$((epochs * 2))
	[ $epochs -lt 100 ] || fail "$(hits kills) kills, $(hits stops) stops: the scenario tests nothing"
done
"$expect" "$work/result.json" "jobs.*.error" == null || fail "a job failed"
lives=$(hits lives)
[ "$lives" -gt 4 ] || fail "no killed job began a new life"
until_true $patience status_is jobs == 0 node.waits_on_dead == 0 || fail "accessd still knows jobs"
until_true $patience nothing_is_pinned || fail "slots are still pinned"
until_true $patience status_is streams == 0 || fail "the stream stays"
few_fds() {
	[ "$(find "/proc/$daemon/fd" | wc -l)" -le $((fds + 2)) ]
}
until_true $patience few_fds || fail "$fds descriptors before, more after: $(ls -l "/proc/$daemon/fd")"
stop_accessd
