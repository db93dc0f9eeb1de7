#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every order with jobs that are killed and go on from their tokens: exactly once. Evaluation that fits
# in the slots is decoded once, whenever jobs begin. An order that does not go with the pipeline is
# refused in words. (What the orders are, sample by sample: order_test.c.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 7 64
killed() { # killed ORDER PIPELINE OPTION...: with more epochs until one was killed
	epochs=2
	order=$1 pipeline=$2
	shift 2
	while :; do
		timeout $longest "$bench" --dataset "$work/data" --pipeline "$pipeline" --private --workers 2 --verify --jobs 3 \
			--batch 16,9,32 --epochs $epochs --step-ms 5,10,15 --kill 60 --order "$order" "$@" \
			--json "$work/result.json" >"$work/bench.log" 2>&1 || fail "$order: access-bench says so"
		exactly_once "$work/result.json"
		"$expect" "$work/result.json" "jobs.*.order" == "$order" || fail "$order: the JSON names another one"
		[ "$("$expect" "$work/result.json" "jobs.*.kills" | awk '{ n += $1 } END { print n + 0 }')" = 0 ] || break
		epochs=$((epochs * 2))
		[ $epochs -lt 100 ] || fail "$order: nobody is killed: the scenario tests nothing"
	done
}
killed usual imagenet-train-u8
killed any imagenet-eval-u8
killed carousel imagenet-eval-u8
killed sequential imagenet-train-u8 --plan-seed 3
killed seeded imagenet-train-u8 --plan-seed 5,5,6
"$expect" "$work/result.json" jobs.0.seed == 5 jobs.2.seed == 6 || fail "the JSON names other seeds"

timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-eval-u8 --order any --private --workers 2 --jobs 6 \
	--batch 16 --chunk 16 --slots 40 --memory 1G --step-ms 10 --start-s 0,0.05,0.1,0.1,0.2,0.3 --set linger_s=60 \
	--json "$work/result.json" >"$work/bench.log" 2>&1 || fail "access-bench says so"
exactly_once "$work/result.json"
"$expect" "$work/result.json" node.slots ">=" 40 node.samples_preprocessed "<=" 440 || fail "evaluation is not shared"

code=0
timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --order any --private \
	>"$work/refused.txt" 2>"$work/bench.log" || code=$?
[ $code = 1 ] || fail "order any with random ops: status $code"
grep -q 'order "any".*use "carousel"' "$work/refused.txt" || fail "it is not said why"
grep -q '^no job was delivered anything' "$work/refused.txt" || fail "work is shown though there was none"
