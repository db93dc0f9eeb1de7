#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Videos: two jobs have each clip once for one decoding; jobs that are killed and stopped go on from their tokens, while the reader
# and a worker are killed under them; a job that evaluates is served of what is there; damaged files are left out by name; without
# the module that decodes them, who asks is told what to install.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires ffmpeg
[ -e "$top_builddir/libexec/access-video.so" ] || skip "this build decodes no videos"

clip='"op":"video","frames":4,"step":3'
crop='{"op":"random_resized_crop","size":48},{"op":"hflip"}'
train="[{$clip},$crop]"
test="[{$clip,\"clip\":\"center\"},{\"op\":\"resize\",\"size\":[48,64]}]"

# Four files of each of two kinds, and each of them fifteen times.
for class in one two; do
	mkdir -p "$work/data/$class"
	for number in 1 2 3 4; do
		for kind in mp4 avi; do
			file=$work/$class-$number.$kind
			ffmpeg -v error -nostdin -f lavfi -i "testsrc2=size=96x64:rate=25:duration=$number,hue=h=$((40 * number))" -g 10 \
				-threads 1 "$file" || skip "this ffmpeg writes no $kind"
			for copy in $(seq 15); do
				ln "$file" "$work/data/$class/$number-$copy.$kind"
			done
		done
	done
done
n=240

run_bench() { # run_bench NAME OPTION...
	result=$work/$1.json
	shift
	timeout $longest "$bench" --dataset "$work/data" --socket "$socket" --batch 8 --verify --json "$result" --quiet "$@" 2>>"$work/bench.log"
}

# One decoding for both, whose two epochs all have room at once.
start_accessd workers=2 chunk=8 slots=64
run_bench both --pipeline "$train" --jobs 2 --epochs 2 --step-ms 1,10 || fail "two jobs: $("$expect" "$result" "jobs.*.error")"
exactly_once "$result"
"$expect" "$result" "jobs.*.samples" == $((2 * n)) node.samples_preprocessed == $((2 * n)) node.samples_read == $((2 * n)) \
	node.worker_restarts == 0 || fail "the work was not shared"
stop_accessd

# Whatever dies.
start_accessd workers=2 chunk=8 linger_s=1
killed() {
	pid=$(status "$1" | tail -n 1)
	[ "${pid:-0}" -gt 1 ] && kill -KILL "$pid"
}
replaced() { # replaced PATH COUNTER: the process there is killed, and another one comes
	while_training "the jobs do not train before $1 is killed" all_train 2 || return 1
	before=$(status "node.$2")
	while_training "no process at $1" killed "$1" || return 1
	while_training "$1 was not replaced" status_is "node.$2" ">" "$before"
}
kill_ours() {
	replaced node.reader_pid reader_restarts && replaced "workers.*.pid" worker_restarts
}
training killed 5 kill_ours --dataset "$work/data" --pipeline "$train" --jobs 2 --batch 8,5 --order seeded --plan-seed 5,6 \
	--step-ms 5,10 --kill 60 --stop 20 --seed 3
"$expect" "$work/killed.json" "jobs.*.error" == null || fail "a job failed"
stop_accessd

# Evaluation: the second job is made nothing, with a cache on.
start_accessd workers=2 chunk=8 slots=40 linger_s=600 cache_size=64M cache_force=1
for job in first second; do
	run_bench $job --pipeline "$test" --order any --epochs 2 || fail "the $job job: $("$expect" "$result" "jobs.*.error")"
	exactly_once "$result"
	status_is node.samples_preprocessed == $n || fail "what lay in the slots was made again for the $job job"
done
"$expect" "$work/first.json" jobs.0.digest >"$work/digest"
"$expect" "$work/second.json" jobs.0.digest | cmp -s - "$work/digest" || fail "the second job has other pixels"
stop_accessd

# Damage is left out, and named.
head -c 2000 "$work/one-4.mp4" >"$work/data/one/cut.mp4"
echo "no video" >"$work/data/two/text.mp4"
start_accessd workers=2
run_bench skip --pipeline "$train" --jobs 2 --epochs 2 --bad skip --bad-budget 5 || fail "policy skip: $("$expect" "$result" "jobs.*.error")"
exactly_once "$result"
"$expect" "$result" "jobs.*.skipped" == 4 "jobs.*.samples" == $((2 * n)) "jobs.*.error" == null
run_bench error --pipeline "$train" --bad error && fail "policy error lets damaged files pass"
"$expect" "$result" jobs.0.error | grep -Eq 'OA_E_SAMPLE.*(one/cut|two/text).mp4' || fail "the error names no file: $("$expect" "$result" jobs.0.error)"
status_is node.worker_restarts == 0 || fail "a worker died of a damaged video"
stop_accessd

# Without the module, from a folder of programs that has none.
mkdir "$work/bin" "$work/libexec"
cp "$accessd" "$work/bin/accessd"
for program in "$top_builddir"/libexec/access-*; do
	case $program in
	*.so) ;;
	*) ln -s "$(readlink -f "$program")" "$work/libexec/" ;;
	esac
done
accessd=$work/bin/accessd
ACCESS_LIBEXEC=$work/libexec
export ACCESS_LIBEXEC
start_accessd workers=1
run_bench missing --pipeline "$train" && fail "videos are decoded by nothing"
"$expect" "$result" jobs.0.error >"$work/error.txt"
grep -q 'access-video.so' "$work/error.txt" && grep -q 'install' "$work/error.txt" || fail "what is missing is not said: $(cat "$work/error.txt")"
stop_accessd
