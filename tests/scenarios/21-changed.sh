#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 44: a file is rewritten in place, under the same size, or replaced, touched, cut or deleted, while jobs train and
# while nobody does: whoever reads it is told that the dataset changed, and which file; opening it again
# gives the new version, also from a stored index. A job that passes over bad samples passes over such a
# file, as long as it reads the old version, and all else is served.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 2 64
start_accessd workers=2 chunk=16 linger_s=1
run_bench() { # run_bench NAME OPTION...
	result=$work/$1.json
	shift
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --batch 16 \
		--verify --json "$result" --quiet "$@" 2>>"$work/bench.log"
}
run_bench first || fail "the first job"
exactly_once "$work/first.json"

change() { # change HOW FILE
	case $1 in
	rewritten) cp "$2" "$work/other" && cat "$work/other" >"$2" ;;
	replaced) cp "$work/data/class_0000/000001.jpg" "$work/other" && mv "$work/other" "$2" ;;
	touched) touch -d 2001-02-03 "$2" ;;
	cut) cp "$2" "$work/whole" && truncate -s 100 "$2" ;;
	deleted) rm "$2" ;;
	grown) printf more >>"$2" ;;
	esac
}
number=300
for how in rewritten replaced touched cut deleted; do
	number=$((number + 1))
	run_bench during --epochs 2000 &
	run=$!
	before=$(status node.samples_read)
	until_true $patience status_is node.samples_read ">" $((${before:-0} + 50)) || fail "the job does not read"
	change $how "$work/data/class_0001/000$number.jpg"
	wait $run && fail "a file was $how and nobody was told"
	"$expect" "$work/during.json" jobs.0.error >"$work/error.txt"
	grep -q "class_0001" "$work/error.txt" || fail "$how: no file is named: $(cat "$work/error.txt")"
	until_true $patience status_is streams == 0 || fail "the stream stays"
	[ $how != cut ] || cp "$work/whole" "$work/data/class_0001/000$number.jpg"
	run_bench again || fail "$how: opening again does not give the new version: $("$expect" "$work/again.json" jobs.0.error)"
	exactly_once "$work/again.json"
done

# Nobody trains, and accessd is another one: the stored index is old.
until_true $patience status_is streams == 0 || fail "the stream stays"
stop_accessd
change rewritten "$work/data/class_0000/000010.jpg"
start_accessd workers=2 chunk=16 linger_s=1
run_bench old || true # the folders did not change: it is seen when the file is read
run_bench new || fail "opening again does not give the new version: $("$expect" "$work/new.json" jobs.0.error)"
exactly_once "$work/new.json"

# The policy for bad samples decides; the folders say nothing of the change.
n=$(find "$work/data" -name "*.jpg" | wc -l)
for how in grown rewritten; do
	until_true $patience status_is streams == 0 || fail "the stream stays"
	change $how "$work/data/class_0000/000020.jpg"
	run_bench skip --bad skip --epochs 2 || fail "skip, $how: $("$expect" "$work/skip.json" jobs.0.error)"
	"$expect" "$work/skip.json" jobs.0.skipped == 2 jobs.0.samples == $((2 * (n - 1))) ||
		fail "skip, $how: more or less than the file is missing"
	until_true $patience status_is streams == 0 || fail "the stream stays"
	run_bench new --bad skip || fail "skip, $how: opening again does not give the new version"
	"$expect" "$work/new.json" jobs.0.skipped == 0 jobs.0.samples == "$n" || fail "$how: the old list is still used"
done
change cut "$work/data/class_0000/000020.jpg"
run_bench substitute --bad substitute || fail "substitute: $("$expect" "$work/substitute.json" jobs.0.error)"
"$expect" "$work/substitute.json" jobs.0.substituted == 1 jobs.0.samples == "$n" || fail "nothing stands in for the file"
cp "$work/whole" "$work/data/class_0000/000020.jpg"
until_true $patience status_is streams == 0 || fail "the stream stays"
run_bench whole || fail "the new version: $("$expect" "$work/whole.json" jobs.0.error)"
until_true $patience status_is streams == 0 || fail "the stream stays"
change rewritten "$work/data/class_0000/000020.jpg"
change rewritten "$work/data/class_0000/000040.jpg"
run_bench over --bad skip --bad-budget 1 && fail "two are more than the budget, and the job goes on"
"$expect" "$work/over.json" jobs.0.error >"$work/error.txt"
grep -q "budget of 1 .*the last: .*class_0000/0000[24]0.jpg" "$work/error.txt" || fail "no file is named: $(cat "$work/error.txt")"
stop_accessd
