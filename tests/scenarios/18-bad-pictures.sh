#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 39, 40: files that are no pictures, under each policy: error names the file, whichever it is;
# skip leaves them out for every job, substitute keeps the ids; all of them bad ends in a budget error,
# not in an endless loop; the workers survive. CMYK is a picture.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

mkdir -p "$work/bad"
"$pictures" "$work/data" 300 3 64
"$pictures" cmyk "$work/data/class_0001/000151.jpg"
good=$work/data/class_0001/000150.jpg
: >"$work/bad/empty.jpg"
head -c 300 "$good" >"$work/bad/truncated.jpg"
head -c 2000 /dev/urandom >"$work/bad/wrong-magic.jpg"
{ head -c 2 "$good"; head -c 400 /dev/zero; } >"$work/bad/nothing-follows.jpg"
printf 'GIF89a\001\000\001\000\200\000\000\377\377\377\000\000\000;' >"$work/bad/animated.jpg"
# 1 x 1, 16 bits a channel
printf '\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\000\001\000\000\000\001\020\002\000\000\000\344\203\064r' \
	>"$work/bad/deep.jpg"
"$pictures" bomb "$work/bad/bomb.jpg" # 65,500 x 65,500
: >"$work/bad/$(printf 'a\nb\377.jpg')" # a name that is no text

data=$work/data
run_bench() { # run_bench NAME OPTION...
	result=$work/$1.json
	shift
	timeout $longest "$bench" --dataset "$data" --pipeline imagenet-train-u8 --socket "$socket" --batch 16 \
		--verify --json "$result" --quiet "$@" 2>>"$work/bench.log"
}
start_accessd workers=2

# Each alone: the job ends with an error that names it.
bad=0
for file in "$work"/bad/*; do
	bad=$((bad + 1))
	data=$work/one$bad
	mkdir -p "$data/class"
	cp "$file" "$data/class"
	cp "$good" "$data/class/good.jpg"
	run_bench error --bad error && fail "policy error lets $file pass"
	"$expect" "$work/error.json" jobs.0.error >"$work/error.txt"
	case $file in
	*.jpg) plain=$(basename "$file" | tr -cd 'a-z.-') ;;
	esac
	[ "$plain" != ab.jpg ] || plain='a.*b.*jpg'
	grep -q "class/$plain" "$work/error.txt" || fail "the error does not name $plain: $(cat "$work/error.txt")"
	grep -q OA_E_SAMPLE "$work/error.txt" || fail "it is no bad sample: $(cat "$work/error.txt")"
done
[ $bad = 8 ] || fail "$bad files in the corpus"

# All among good ones.
data=$work/data
cp "$work"/bad/* "$data/class_0002"
n=$((300 + bad))
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
status_is node.worker_restarts == 0 || fail "a worker died of a bad picture"

mkdir -p "$work/worse/class"
for i in $(seq 200); do
	echo bad >"$work/worse/class/$i.jpg"
done
data=$work/worse
for policy in skip substitute; do
	run_bench all-bad --jobs 2 --bad $policy --timeout-s 60 && fail "all pictures are bad, and $policy goes on"
	"$expect" "$work/all-bad.json" "jobs.*.error" >"$work/error.txt"
	[ "$(grep -ci budget "$work/error.txt")" = 2 ] || fail "all bad, $policy: $(cat "$work/error.txt")"
done
stop_accessd
