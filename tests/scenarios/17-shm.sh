#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# /dev/shm is full, and is wiped in mid-epoch: no effect, because nothing of ours is ever there. In a
# mount namespace of its own, so that nobody else's memory is touched.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires unshare mount

unshare -rm true 2>/dev/null || skip "no user and mount namespaces here"
"$pictures" "$work/data" 400 3 64
cat >"$work/inside.sh" <<'END'
set -eu
mount -t tmpfs -o size=64k tmpfs /dev/shm || exit 77
head -c 65536 /dev/zero >/dev/shm/full 2>/dev/null || true
if echo more >/dev/shm/more 2>/dev/null && [ -s /dev/shm/more ]; then exit 99; fi
timeout 60 "$@" &
run=$!
sleep 0.7
find /dev/shm -mindepth 1 ! -name full ! -name more | grep . && exit 98
rm -rf /dev/shm/*
wait $run
END
code=0
unshare -rm sh "$work/inside.sh" "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --private \
	--workers 2 --verify --jobs 2 --batch 16 --epochs 2 --step-ms 20 --json "$work/result.json" --quiet \
	2>"$work/bench.log" || code=$?
[ $code != 77 ] || skip "cannot mount a tmpfs here"
[ $code != 99 ] || fail "/dev/shm is not full: the scenario tests nothing"
[ $code != 98 ] || fail "something of ours lies in /dev/shm"
[ $code = 0 ] || fail "status $code"
exactly_once "$work/result.json"
