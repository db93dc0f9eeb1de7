#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Jobs are killed and stopped all the time, with their pins; they go on from their tokens, which are
# behind what accessd had prepared for them. Nobody misses or repeats a sample, and afterwards
# accessd holds nothing for anybody.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 900 3 64
start_accessd workers=2 linger_s=1
fds=$(find "/proc/$daemon/fd" | wc -l)
timeout 90 "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --verify \
	--jobs 4 --batch 16,9,16,32 --epochs 3 --step-ms 10,15,20,30 --kill 40 --stop 12 --seed 3 \
	--json "$work/result.json" >"$work/bench.log" 2>&1 || fail "access-bench says so"
exactly_once "$work/result.json"
killed=$("$expect" "$work/result.json" "jobs.*.kills" | awk '{ n += $1 } END { print n }')
[ "$killed" -ge 2 ] || fail "only $killed kills: the scenario tests nothing"
until_true 10 status_is jobs == 0 node.waits_on_dead == 0 || fail "accessd still knows jobs"
until_true 10 status_is "streams.*.pinned" == 0 || fail "slots are still pinned"
until_true 20 status_is streams == 0 || fail "the stream stays"
now=$(find "/proc/$daemon/fd" | wc -l)
[ "$now" -le $((fds + 6)) ] || fail "$fds descriptors before, $now after"
stop_accessd
