#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 35: one CPU alone: one worker, and no deadlock, also with more of them than CPUs. Case 21: the kernel gives
# accessd less memory than its budget says: what does not fit is refused with a text, and what runs goes on; with
# the limit lifted the same request is served.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires taskset prlimit

"$pictures" "$work/data" 400 2 100
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
train() { # train NAME OPTION...
	name=$1
	shift
	timeout $longest "$bench" --dataset "$work/data" --socket "$socket" --batch 16 --verify --json "$work/$name.json" \
		--quiet "$@" 2>>"$work/bench.log" || fail "$name: $("$expect" "$work/$name.json" "jobs.*.error")"
	exactly_once "$work/$name.json"
}
for workers in 0 4; do
	taskset -c "$cpu" "$accessd" --private --dir "$dir" --set cache_dir="$work/cache" --set workers=$workers \
		--set chunk=16 2>>"$work/accessd.log" &
	daemon=$!
	cleanup_fn "kill -KILL $daemon"
	until_true $patience answers || fail "accessd does not answer on one CPU"
	status_is node.workers == $((workers ? workers : 1)) || fail "$(status node.workers) workers for one CPU"
	train "cpu$workers" --jobs 3 --batch 16,8,12 --pipeline imagenet-train-u8 --epochs 1
	stop_accessd
done

if ldd "$accessd" | grep -q -e libasan -e libtsan; then
	exit 0 # sanitizers need more address space than any limit leaves
fi
# What is large is mapped anew each time, and so meets the limit, whatever was freed before.
GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072
export GLIBC_TUNABLES
start_accessd workers=1 chunk=16 linger_s=0 memory=4G
squeeze() {
	while_training "the job does not start" all_train 1 || return 1
	used=$(sed -n 's/^VmSize:[[:blank:]]*\([0-9]*\) kB/\1/p' "/proc/$daemon/status")
	prlimit --pid "$daemon" --as="$((used * 1024)):" || fail "prlimit"
	code=0
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-eval --socket "$socket" --batch 64 \
		--json "$work/refused.json" --quiet 2>>"$work/bench.log" || code=$?
	status_is pid == "$daemon" || fail "another accessd answers"
	prlimit --pid "$daemon" --as=unlimited: || fail "prlimit"
	all_train 1 || return 1 # a domain that begins under the limit is another story
	[ $code = 1 ] || fail "it was not refused (status $code)"
	"$expect" "$work/refused.json" jobs.0.error >"$work/error.txt"
	grep -qi memory "$work/error.txt" || fail "memory is not named: $(cat "$work/error.txt")"
}
training first 40 squeeze --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16
"$expect" "$work/first.json" jobs.0.reconnects == 0 || fail "the job that ran noticed"
train again --pipeline imagenet-eval --batch 64
stop_accessd
