#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 23, 27: accessd is stopped for some seconds in mid-epoch: jobs wait and go on. Then a worker in
# the middle of a sample, and the reader, are stopped: they are replaced or waited for; nobody loses a
# sample, and no sample is called bad for it. (What a job is told meanwhile: client_test.c.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1000 3 200
start_accessd workers=1 chunk=64 sample_timeout_ms=500

# Stops the worker when it has a sample. (One that is idle: tests/daemon/node_test.c.)
stop_busy_worker() {
	worker=$(status workers.0.pid)
	[ "${worker:-0}" -gt 1 ] && kill -STOP "$worker" || return 1
	[ "$(status workers.0.busy)" = true ] && return
	kill -CONT "$worker"
	return 1
}
stop_all() {
	while_training "the jobs do not start" all_train 2 || return 1
	kill -STOP "$daemon"
	sleep 3
	ended=no
	! is_gone "$run" || ended=yes # a little may have been ready for them
	kill -CONT "$daemon"
	until_true $patience answers || fail "accessd does not answer again"
	[ $ended = no ] || return 1

	while_training "the worker is never busy" stop_busy_worker || return 1
	stopped=$worker
	while_training "a stopped worker was not replaced" status_is node.worker_restarts ">=" 1 || return 1
	until_true $patience is_gone "$stopped" || fail "the stopped worker is still there"
	status_is node.bad_samples == 0 || fail "a sample was called bad because its worker was stopped"

	while_training "the jobs do not go on after a worker was stopped" all_train 2 || return 1
	reader=$(status node.reader_pid)
	[ "${reader:-0}" -gt 1 ] || return 1
	kill -STOP "$reader"
	sleep 1
	ended=no
	! is_gone "$run" || ended=yes
	kill -CONT "$reader"
	[ $ended = no ]
}
training result 15 stop_all --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16 \
	--bad substitute
"$expect" "$work/result.json" "jobs.*.error" == null
stop_accessd
