#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 44: a file is rewritten in place, under the same size, or replaced, touched, cut or deleted, while jobs train and
# while nobody does: whoever reads it is told that the dataset changed, and which file; opening it again
# gives the new version, also from a stored index. A job that passes over bad samples passes over such a
# file, as long as it reads the old version, and all else is served. What stands in slots from before a job came is not
# served to it before its files were looked at, once each.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 2 64
start_accessd workers=2 chunk=16 linger_s=1
bench_of() { # bench_of FOLDER PIPELINE NAME OPTION...
	folder=$1 pipeline=$2 result=$work/$3.json
	shift 3
	timeout $longest "$bench" --dataset "$work/$folder" --pipeline "$pipeline" --socket "$socket" --batch 16 \
		--verify --json "$result" --quiet "$@" 2>>"$work/bench.log"
}
run_bench() { # run_bench NAME OPTION...
	bench_of data imagenet-train-u8 "$@"
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

# All samples stand in slots: of a stream that lingers, and of a job that runs. Who comes is served from these, and nothing
# is read or made anew, as long as their files are what they were.
"$pictures" "$work/few" 32 2 64
start_accessd workers=2 chunk=16 slots=4 linger_s=600
few() { # few NAME OPTION...
	bench_of few imagenet-eval-u8 "$@"
}
few_lingers() {
	until_true $patience status_is streams == 1 "streams.0.jobs" == 0 || fail "the stream does not linger"
}
told_of() { # told_of NAME FILE
	"$expect" "$work/$1.json" jobs.0.error >"$work/error.txt"
	grep -q "dataset changed.*$2" "$work/error.txt" || fail "$1: $2 is not named: $(cat "$work/error.txt")"
}
few first || fail "the first job with few pictures"
few_lingers
few second || fail "the second job with few pictures: $("$expect" "$work/second.json" jobs.0.error)"
exactly_once "$work/second.json"
status_is node.chunks == 2 node.samples_read == 32 node.samples_revisited == 32 ||
	fail "what is resident is not served, or not looked at once: $(status node.chunks) chunks," \
		"$(status node.samples_revisited) looks"
few two --jobs 2 || fail "two jobs with few pictures: $("$expect" "$work/two.json" jobs.0.error)"
status_is node.chunks == 2 node.samples_revisited ">=" 64 node.samples_revisited "<=" 96 ||
	fail "two jobs: $(status node.chunks) chunks, $(status node.samples_revisited) looks"
few_lingers
change rewritten "$work/few/class_0001/000020.jpg"
few lingers && fail "the old pixels of a file that was rewritten are served"
told_of lingers class_0001/000020
few new || fail "opening again does not give the new version: $("$expect" "$work/new.json" jobs.0.error)"
exactly_once "$work/new.json"
stop_accessd

start_accessd workers=2 chunk=16 slots=4 linger_s=600
few runs --epochs 2000 --step-ms 20 &
run=$!
until_true $patience status_is node.samples_read ">=" 32 || fail "the job does not read"
few beside || fail "beside a job: $("$expect" "$work/beside.json" jobs.0.error)"
change rewritten "$work/few/class_0001/000021.jpg"
few told && fail "beside a job the old pixels of a file that was rewritten are served"
told_of told class_0001/000021
wait $run && fail "a job goes on with a stream whose dataset changed"
few skips --bad skip || fail "the new version: $("$expect" "$work/skips.json" jobs.0.error)"
few_lingers
change rewritten "$work/few/class_0001/000022.jpg"
few skipped --bad skip || fail "skip: $("$expect" "$work/skipped.json" jobs.0.error)"
"$expect" "$work/skipped.json" jobs.0.skipped == 1 jobs.0.samples == 31 || fail "skip: the old pixels are served"
stop_accessd
