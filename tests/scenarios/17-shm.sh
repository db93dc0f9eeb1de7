#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 31: /dev/shm is full, and is wiped in mid-epoch: no effect, because nothing of ours is ever
# there. In a mount namespace of its own, so that nobody else's memory is touched.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires unshare mount

if [ -z "${SCENARIO_INSIDE:-}" ]; then
	unshare -rm true 2>/dev/null || skip "no user and mount namespaces here"
	code=0
	SCENARIO_INSIDE=1 TMPDIR="$work" unshare -rm sh "$0" || code=$?
	exit $code
fi
mount -t tmpfs -o size=64k tmpfs /dev/shm 2>/dev/null || skip "cannot mount a tmpfs here"
head -c 65536 /dev/zero >/dev/shm/full 2>/dev/null || true
if echo more >/dev/shm/more 2>/dev/null && [ -s /dev/shm/more ]; then
	fail "/dev/shm is not full: the scenario tests nothing"
fi

"$pictures" "$work/data" 1000 3 200
start_accessd workers=2
wipe() {
	while_training "the jobs do not start" all_train 2 || return 1
	! find /dev/shm -mindepth 1 ! -name full ! -name more | grep . || fail "something of ours is in /dev/shm"
	rm -rf /dev/shm/*
	read_before=$(status node.samples_read)
	while_training "nothing is read after /dev/shm was wiped" \
		status_is node.samples_read ">" $((read_before + 500))
}
training result 5 wipe --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16
"$expect" "$work/result.json" "jobs.*.reconnects" == 0 || fail "the jobs noticed"
[ -z "$(ls /dev/shm)" ] || fail "something of ours is in /dev/shm"
stop_accessd
