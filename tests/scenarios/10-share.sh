#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 48: jobs of different speeds and batch sizes (fast and ten times slower, late, leaving early)
# share one stream: each gets everything exactly once, and the work is shared. (Step by step, and one
# that comes back: neighbours_test.c.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1200 7 64
timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --private --workers 2 --chunk 32 --verify \
	--jobs 5 --batch 16,16,24,7,16 --job-epochs 4,1,2,2,1 --step-ms 2,20,5,1,2 --start-s 0,0,0.8,1.5,0.4 \
	--seed 7 --json "$work/result.json" >"$work/bench.log" 2>&1 || fail "access-bench says so"
exactly_once "$work/result.json"
"$expect" "$work/result.json" jobs 5 2>/dev/null && fail "expect takes nonsense"
"$expect" "$work/result.json" jobs == 5 jobs.*.error == null \
	jobs.0.samples == 4800 jobs.1.samples == 1200 jobs.2.samples == 2400 jobs.3.samples == 2400 \
	node.known == true node.floor == 4800 node.separate == 12000 \
	node.waits_on_dead == 0 node.worker_restarts == 0 node.bad_samples == 0
# One job alone would have cost 4,800; separate loaders 12,000. How much of it can be shared depends on
# who met whom, which is what the reference counts.
"$expect" "$work/result.json" node.samples_preprocessed ">=" 4800 node.samples_preprocessed "<" 12000 \
	node.redundancy "<=" 1.3 || fail "the work was not shared"
read=$("$expect" "$work/result.json" node.samples_read)
"$expect" "$work/result.json" node.samples_preprocessed == "$read" || fail "files are not read once for all"
[ -z "$(ls -d "$work"/access-bench-* 2>/dev/null)" ] || fail "a folder was left behind"

# A small set has slots for two epochs, which come as they are filled: however slow a job is and whenever it begins, it finds what another one had.
# (Two epochs of 13 chunks. Where they are there at once, nothing hangs on who comes when.)
"$pictures" "$work/small" 200 3 64
timeout $longest "$bench" --dataset "$work/small" --pipeline imagenet-train-u8 --private --workers 2 --chunk 16 --slots 28 --verify --quiet \
	--jobs 3 --batch 16 --epochs 2 --step-ms 1,30,10 --start-s 0,0.2,0.6 --json "$work/small.json" >"$work/bench.log" 2>&1 ||
	fail "access-bench says so"
exactly_once "$work/small.json"
"$expect" "$work/small.json" node.samples_preprocessed == 400 || fail "samples were made more often than once for all"

start_accessd workers=1 chunk=16
has_grown() { # has_grown N: or the job has ended before
	status_is streams.0.slots == "$1" || is_gone "$run"
}
grown() {
	until_true $patience has_grown "$1" || return 1
	! is_gone "$run"
}
all_grown() { grown 26; }
training grows 40 all_grown --dataset "$work/small" --pipeline imagenet-train-u8 --batch 16 --step-ms 1
stop_accessd
# One epoch where an instance may serve again.
start_accessd workers=1 chunk=16
one_grown() { grown 13; }
training evaluates 40 one_grown --dataset "$work/small" --pipeline imagenet-eval-u8 --batch 16 --step-ms 1
stop_accessd
# The second job is made nothing.
start_accessd workers=1 chunk=16 slots=14 linger_s=600
for job in first second; do
	timeout $longest "$bench" --dataset "$work/small" --pipeline imagenet-eval-u8 --socket "$socket" --batch 16 --epochs 2 --verify \
		--json "$work/$job.json" --quiet 2>"$work/$job.log" || fail "access-bench says so"
	exactly_once "$work/$job.json"
	status_is node.samples_preprocessed == 200 || fail "what lay in the slots was made again for the $job job"
done
stop_accessd
# Without memory to spare there is none of it.
start_accessd workers=1 chunk=16 memory=96M
small=0
not_grown() {
	until_true $patience status_is node.chunks ">" 40 || return 1
	small=$(status streams.0.slots)
	! is_gone "$run"
}
training stays 40 not_grown --dataset "$work/small" --pipeline imagenet-train-u8 --batch 16 --step-ms 1
[ "$small" = 4 ] || fail "$small slots where two epochs are more than an eighth of what is free"
stop_accessd
