#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 17, 19: under three jobs accessd is replaced by one of the next minor version, by this one again, and by one of the minor
# version before, by SIGTERM and by SIGKILL: each job gets each sample once. They are this code under other minor versions.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1000 3 200
this=$accessd
start_accessd workers=2
becomes() { # becomes PROGRAM
	accessd=$1
	start_accessd workers=2
	[ "$(readlink "/proc/$daemon/exe")" = "$(realpath "$1")" ] || fail "another accessd than $1 runs"
	while_training "the jobs do not go on under $1" all_train 3
}
upgrade() {
	while_training "the jobs do not start" all_train 3 || return 1
	stop_accessd
	becomes "$top_builddir/tests/scenarios/accessd_newer" || return 1
	kill -KILL "$daemon"
	wait "$daemon" || true
	becomes "$this" || return 1
	stop_accessd
	becomes "$top_builddir/tests/scenarios/accessd_older" || return 1
	stop_accessd
	becomes "$this"
}
training result 15 upgrade --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 3 --batch 12,16,20
"$expect" "$work/result.json" "jobs.*.reconnects" ">=" 3 "jobs.*.error" == null
stop_accessd
