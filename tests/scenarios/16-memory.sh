#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 33, 42: the next stream exceeds the budget: it is refused with the numbers, the first stream
# does not notice, and the same request is admitted when that one has gone. A slot larger than all of
# the budget, and a file larger than the arena, are refused with both sizes.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 3 64
ask() { # ask NAME OPTION...: $code is the status of a job that begins
	name=$1
	shift
	code=0
	timeout $longest "$bench" --dataset "$work/data" --socket "$socket" --json "$work/$name.json" --quiet \
		"$@" 2>>"$work/refused.log" || code=$?
}
was_refused() { # the one that was asked for last: its error is in NAME.txt
	[ $code = 1 ] || fail "$name was not refused (status $code)"
	"$expect" "$work/$name.json" "jobs.0.error" >"$work/$name.txt"
}
# has_sizes FILE N: at least N different numbers of bytes are named
has_sizes() {
	[ "$(grep -Eo '[0-9.]+ (([KMG]iB)|bytes)' "$1" | sort -u | wc -l)" -ge "$2" ] ||
		fail "the refusal lacks the numbers: $(cat "$1")"
}

# How much the stream takes; the budget has room for one and a half of them.
start_accessd workers=1 linger_s=0 chunk=16 slots=8
idle=$(status node.memory_used)
measure() {
	while_training "the job does not start" all_train 1 || return 1
	used=$(status node.memory_used)
	[ "${used:-0}" -gt "$idle" ] && ! is_gone "$run" # its job may be over before its process is
}
training measured 8 measure --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16
stop_accessd
[ "$used" -gt "$idle" ] || fail "a stream takes no memory: $used, $idle without it"
start_accessd workers=1 linger_s=0 chunk=16 slots=8 memory=$((used + used / 2))

exceed() {
	while_training "the job does not start" all_train 1 || return 1
	ask second --pipeline imagenet-eval-u8 --batch 16
	status_is jobs == 1 streams == 1 || return 1 # else there may have been room
	was_refused
	has_sizes "$work/second.txt" 2
	ask huge --pipeline imagenet-train --batch 4096 --chunk 4096
	was_refused
	has_sizes "$work/huge.txt" 2
	! is_gone "$run"
}
training first 40 exceed --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16
"$expect" "$work/first.json" jobs.0.reconnects == 0 jobs.0.error == null || fail "the first job noticed"
until_true $patience status_is streams == 0 || fail "the stream without jobs stays"
until_true $patience status_is node.memory_used == "$idle" || fail "memory is still accounted for: $(status node.memory_used)"
timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-eval-u8 --socket "$socket" --batch 16 --verify \
	--json "$work/second.json" --quiet 2>"$work/second.log" || fail "not admitted although there is room"
exactly_once "$work/second.json"
stop_accessd

# A file that the arena cannot hold.
start_accessd workers=1 arena=65536
head -c 100000 /dev/zero >"$work/data/class_0001/big.jpg"
ask big --pipeline imagenet-train-u8 --batch 16
was_refused
grep -q class_0001/big.jpg "$work/big.txt" || fail "the file is not named: $(cat "$work/big.txt")"
has_sizes "$work/big.txt" 1
grep -q 65536 "$work/big.txt" || fail "the arena's size is not named: $(cat "$work/big.txt")"
stop_accessd
