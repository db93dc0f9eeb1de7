#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Files that are no pictures, under each policy: error names the file, skip leaves them out for every
# job, substitute keeps the ids; all of them bad ends in a budget error; the workers survive.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 300 3 64
good=$work/data/class_0001/000150.jpg
: >"$work/data/class_0000/000003.jpg"                                        # 0 bytes
head -c 300 "$good" >"$work/data/class_0000/000010.jpg"                      # truncated
head -c 2000 /dev/urandom >"$work/data/class_0001/000120.jpg"                # wrong magic
{ head -c 2 "$good"; head -c 400 /dev/zero; } >"$work/data/class_0001/000130.jpg" # then nothing
printf 'GIF89a\001\000\001\000\200\000\000\377\377\377\000\000\000;' >"$work/data/class_0002/000210.jpg"
"$pictures" bomb "$work/data/class_0002/000220.jpg"                            # 65,500 x 65,500
name=$(printf 'a\nb\377.jpg')
cp "$work/data/class_0000/000003.jpg" "$work/data/class_0000/$name"          # a name that is no text
bad=7
n=301

data=$work/data
run_bench() { # run_bench NAME OPTION...
	result=$work/$1.json
	shift
	timeout 60 "$bench" --dataset "$data" --pipeline imagenet-train-u8 --private --workers 2 \
		--batch 16 --verify --json "$result" --quiet "$@" 2>>"$work/bench.log"
}

run_bench error --jobs 1 --bad error && fail "policy error lets bad pictures pass"
"$expect" "$work/error.json" jobs.0.error >"$work/error.txt"
grep -q 'class_000[0-2]/' "$work/error.txt" || fail "the error names no file: $(cat "$work/error.txt")"

run_bench skip --jobs 2 --epochs 2 --bad skip --bad-budget 20 || fail "policy skip"
exactly_once "$work/skip.json"
"$expect" "$work/skip.json" "jobs.*.skipped" == $((2 * bad)) "jobs.*.samples" == $((2 * (n - bad))) \
	"jobs.*.error" == null

run_bench substitute --jobs 2 --epochs 2 --bad substitute --bad-budget 20 || fail "policy substitute"
exactly_once "$work/substitute.json"
"$expect" "$work/substitute.json" "jobs.*.substituted" == $((2 * bad)) "jobs.*.samples" == $((2 * n)) \
	"jobs.*.skipped" == 0

run_bench budget --jobs 1 --bad skip --bad-budget 3 && fail "the budget of 3 bad pictures does not hold"
"$expect" "$work/budget.json" jobs.0.error >"$work/error.txt"
grep -qi budget "$work/error.txt" || fail "the error does not name the budget: $(cat "$work/error.txt")"

mkdir -p "$work/worse/class"
for i in $(seq 200); do
	echo bad >"$work/worse/class/$i.jpg"
done
data=$work/worse
for policy in skip substitute; do
	run_bench all-bad --jobs 2 --bad $policy --timeout-s 30 && fail "all pictures are bad, and $policy goes on"
	"$expect" "$work/all-bad.json" "jobs.*.error" >"$work/error.txt"
	grep -qi budget "$work/error.txt" || fail "all bad, $policy: $(cat "$work/error.txt")"
done
