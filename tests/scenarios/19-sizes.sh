#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 43, 46: datasets of 0, 1, fewer than a batch, one more than a batch and a number that nothing divides; a flat
# folder; and what is no dataset: no picture, an empty class folder, nothing there, a file,
# a link that leads to itself, a folder that may not be read.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
obey_modes

start_accessd workers=2
for n in 1 5 16 17 101; do
	"$pictures" "$work/data$n" $n 1 32
	timeout $longest "$bench" --dataset "$work/data$n" --pipeline imagenet-eval-u8 --socket "$socket" --verify \
		--jobs 2 --batch 16,7 --epochs 3 --json "$work/result.json" --quiet 2>"$work/bench.log" ||
		fail "$n pictures"
	exactly_once "$work/result.json"
	"$expect" "$work/result.json" "jobs.*.samples" == $((3 * n)) "jobs.*.dataset_samples" == $n
done

mkdir "$work/flat"
cp "$work"/data101/class_0000/*.jpg "$work/flat"
timeout $longest "$bench" --dataset "$work/flat" --pipeline imagenet-eval-u8 --socket "$socket" --batch 10 \
	--json "$work/result.json" --quiet 2>"$work/bench.log" || fail "a flat folder"
exactly_once "$work/result.json"

mkdir "$work/none"
echo text >"$work/none/readme.txt"
mkdir -p "$work/data5/empty" "$work/loop/class"
cp "$work/flat/000001.jpg" "$work/loop/class"
ln -s .. "$work/loop/class/up"
cp -r "$work/data17" "$work/locked"
chmod 0 "$work/locked/class_0000"
cleanup_fn "chmod 0700 $work/locked/class_0000"
for dataset in "$work/none" "$work/data5" "$work/not-there" "$work/flat/000001.jpg" "$work/loop" "$work/locked"; do
	timeout $longest "$bench" --dataset "$dataset" --socket "$socket" --json "$work/result.json" --quiet \
		2>"$work/bench.log" && fail "$dataset was opened"
	"$expect" "$work/result.json" jobs.0.error >"$work/error.txt"
	grep -q "$(basename "$dataset")" "$work/error.txt" || fail "$dataset: $(cat "$work/error.txt")"
done
stop_accessd
