#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Each kind of data set that a reader takes apart itself: the samples of a folder have the same bytes in shards, records, a
# converted file and a manifest; and each comes once, in a seeded order, to jobs that are killed and stopped at random and go on
# from their tokens, while the reader and a worker are killed under them.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

make_kinds "$work"

start_accessd workers=2 chunk=32 linger_s=1
total() { # total RESULT NAME: of all jobs
	"$expect" "$work/$1.json" "jobs.*.$2" | awk '{ n += $1 } END { print n + 0 }'
}
replaced() { # replaced PATH COUNTER: the process there is killed, and another one comes
	while_training "the jobs do not train before $1 is killed" all_train 3 || return 1
	before=$(status "node.$2")
	while_training "no process at $1" killed "$1" || return 1
	while_training "$1 was not replaced" status_is "node.$2" ">" "$before"
}
killed() {
	pid=$(status "$1" | tail -n 1)
	[ "${pid:-0}" -gt 1 ] && kill -KILL "$pid"
}
kill_ours() {
	replaced node.reader_pid reader_restarts && replaced "workers.*.pid" worker_restarts
}
disturbed() { # disturbed KIND DATASET PIPELINE
	epochs=10
	while :; do
		# of one accessd readers that are killed as soon as they are there would soon be too many
		stop_accessd
		start_accessd workers=2 chunk=32 linger_s=1
		training "$1" $epochs kill_ours --dataset "$2" --pipeline "$3" --jobs 3 --batch 16,9,16 --order seeded --plan-seed 5,5,6 \
			--step-ms 5,10,15 --kill 60 --stop 20 --seed 3
		"$expect" "$work/$1.json" "jobs.*.error" == null || fail "$1: a job failed"
		[ "$(total "$1" kills)" = 0 ] || break
		epochs=$((train_epochs * 2))
		[ $epochs -lt 1000 ] || fail "$1: nobody is killed: the scenario tests nothing"
	done
}
bytes_of() { # bytes_of DATASET: the digest of its samples, as a job gets them
	timeout $longest "$bench" --socket "$socket" --dataset "$1" --pipeline imagenet-eval-u8 --batch 16 --verify --quiet \
		--json "$work/bytes.json" 2>>"$work/bench.log" || fail "$1: access-bench says so"
	exactly_once "$work/bytes.json"
	"$expect" "$work/bytes.json" jobs.0.samples == 150 || fail "$1: not all samples"
	digest=$("$expect" "$work/bytes.json" jobs.0.digest)
}
bytes_of "$work/data"
of_folder=$digest
for kind in tar tfrecord mds litdata recordio bagz arrayrecord beton zip one.oads rows.csv; do
	bytes_of "$work/$kind"
	[ "$digest" = "$of_folder" ] || fail "$kind has other samples than the folder"
	disturbed "$kind" "$work/$kind" imagenet-train-u8
done
disturbed windows "$work/tokens.bin?seq_len=32,dtype=uint16" '[{"op":"record","fields":[[4,33]]}]'
disturbed packed "$work/tokens.bin?seq_len=64,pack=1" '[{"op":"record","fields":[[4,4,64]]}]'
disturbed records "$work/tokens.bin?record=100" '[{"op":"record","fields":[[1,100]]}]'
disturbed array "$work/array.npy" '[{"op":"record","fields":[[3,8]]}]'
stop_accessd
