#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 25: SIGTERM with clients: accessd hands out nothing new, ends within its time with status 0,
# leaves nothing; a new one, with another configuration, takes the jobs on. (What clients are told:
# hostile_test.c.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1000 3 200
start_accessd workers=2

drain() {
	while_training "the jobs do not start" all_train 3 || return 1
	stop_accessd
	start_accessd workers=1 slots=9 producing=1 readers=2
	while_training "the jobs do not go on" all_train 3
}
training result 12 drain --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 3 --batch 16,12,16 \
	--step-ms 1,0,2
"$expect" "$work/result.json" "jobs.*.reconnects" ">=" 1 "jobs.*.error" == null
stop_accessd
