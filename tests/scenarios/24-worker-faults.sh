#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 27: a decoder that dies, leaves, computes for ever, sleeps for ever or eats memory on one sample:
# that sample gets its policy, the worker is replaced, the jobs get everything else. One that dies of
# every sample ends in an error with a name, not in a fork storm. One that hides its loop is found, and
# one that says what only the reader may say is not believed. One that takes its time over a picture as large as its head
# says does not hang, however small and quick the others are. (tests/worker/faulty_worker.c; what else a
# worker writes into shared words: queue_fuzz, slot_table_fuzz.)
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 240 3 64
mkdir "$work/libexec"
real=${ACCESS_LIBEXEC:-$top_builddir/libexec}
ln -s "$real/access-reader" "$work/libexec/access-reader"
faulty=$(cd "$top_builddir" && pwd)/tests/worker/faulty_worker
export ACCESS_LIBEXEC="$work/libexec"
with_fault() {
	printf '#!/bin/sh\nFAULT=%s exec "%s" "$@"\n' "$1" "$faulty" >"$work/libexec/access-worker"
	chmod +x "$work/libexec/access-worker"
	start_accessd workers=2 chunk=16 sample_timeout_ms=500 worker_memory=64M
}
run_bench() { # run_bench NAME OPTION...
	result=$work/$1.json
	shift
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --batch 16 \
		--verify --json "$result" --quiet "$@" 2>>"$work/bench.log"
}
for fault in segv exit loop stop hog hide; do
	with_fault $fault:77
	run_bench substitute --jobs 2 --epochs 2 --bad substitute || fail "$fault: policy substitute"
	exactly_once "$work/substitute.json"
	"$expect" "$work/substitute.json" "jobs.*.substituted" ">=" 2 "jobs.*.samples" == 480 \
		"jobs.*.reconnects" == 0 "jobs.*.error" == null || fail "$fault: the jobs noticed more than one sample"
	status_is node.worker_restarts ">=" 1 node.parent_restarts == 0 || fail "$fault: no worker was replaced"
	until_true $patience status_is node.workers_alive == 2 || fail "$fault: the worker was not replaced"
	run_bench error --bad error && fail "$fault: policy error lets the sample pass"
	"$expect" "$work/error.json" jobs.0.error >"$work/error.txt"
	grep -q 'class_0000/000077.jpg' "$work/error.txt" || fail "$fault: the file is not named: $(cat "$work/error.txt")"
	case $fault in loop | stop | hide) grep -q sample_timeout_ms "$work/error.txt" || fail "$fault: not how to mend it" ;; esac
	stop_accessd
done

with_fault lie:77
run_bench lie --jobs 2 --epochs 2 --bad substitute || fail "a worker ends the stream by a lie"
exactly_once "$work/lie.json"
"$expect" "$work/lie.json" "jobs.*.substituted" ">=" 2 "jobs.*.samples" == 480 "jobs.*.error" == null ||
	fail "a lie costs more than its sample"
status_is node.nonsense ">=" 1 node.bad_samples == 1 node.worker_restarts == 0 || fail "the lie was not counted"
stop_accessd

with_fault shut
run_bench shut && fail "no worker can work, and the job goes on"
"$expect" "$work/shut.json" jobs.0.error >"$work/error.txt"
grep -q "no workers: .* sandbox" "$work/error.txt" || fail "the error does not say why: $(cat "$work/error.txt")"
stop_accessd

with_fault segv
run_bench all --bad skip --bad-budget 5 && fail "every sample kills its worker, and the job goes on"
"$expect" "$work/all.json" jobs.0.error >"$work/error.txt"
grep -q "budget of 5" "$work/error.txt" || fail "the error does not say why: $(cat "$work/error.txt")"
grep -Eq "signal|died|crash" "$work/error.txt" || fail "the error does not say what: $(cat "$work/error.txt")"
# Six bad samples, two deaths each, and what was begun meanwhile.
status_is node.worker_restarts ">=" 12 node.worker_restarts "<=" 60 node.parent_restarts == 0 ||
	fail "$(status node.worker_restarts) workers died"
stop_accessd

export ACCESS_LIBEXEC="$real"
# 36 million pixels behind 1200 pictures of 4096: the median is down, and the least time is not enough for them.
slow='[{"op":"decode"},{"op":"gaussian_blur","kernel_size":31,"sigma":5},{"op":"resize","size":[32,32]}]'
"$pictures" "$work/mixed" 1200 1 64
"$pictures" "$work/large" 1 1 6000
mv "$work"/large/class_0000/*.jpg "$work/mixed/class_0000/zz.jpg"
start_accessd workers=1 chunk=16 sample_timeout_ms=50
timeout 300 "$bench" --dataset "$work/mixed" --pipeline "$slow" --order sequential --socket "$socket" --batch 16 \
	--verify --json "$work/large.json" --quiet 2>>"$work/bench.log" ||
	fail "a large picture among small ones: $("$expect" "$work/large.json" jobs.0.error)"
status_is node.worker_restarts == 0 node.bad_samples == 0 || fail "the large picture cost a worker"
stop_accessd
