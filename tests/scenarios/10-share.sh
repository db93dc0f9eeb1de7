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
