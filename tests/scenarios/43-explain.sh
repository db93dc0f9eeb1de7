#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-ctl explain names what limits a job: itself, while its steps are long; reading, while the reader is stopped;
# decoding, while one worker decodes as fast as it can. And it says of each change what it would bring.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 400 4 200
explained() { # explained OPERAND TEST...: what explain says in JSON is so
	operand=$1
	shift
	"$ctl" --socket "$socket" --json explain "$operand" >"$work/explain.json" 2>/dev/null &&
		"$expect" "$work/explain.json" "$@" 2>/dev/null
}
says() { # says PATTERN...: explain in words has a line with each
	"$ctl" --socket "$socket" explain "$work/data" >"$work/plain.txt" || return 1
	for pattern in "$@"; do
		grep -Eq -- "$pattern" "$work/plain.txt" || return 1
	done
}
slow() {
	while_training "a slow job is not its own limit" explained bench-0 0.limit == job 0.rate ">" 0 || return 1
	while_training "of its dataset explain says something else" explained "$work/data" 0.limit == job 0.name == bench-0 \
		0.dataset == "$work/data" 0.parts.job.busy == 1 0.what_if.0.change == workers || return 1
	reader=$(status node.reader_pid)
	[ "${reader:-0}" -gt 1 ] || return 1
	kill -STOP "$reader"
	while_training "a stopped reader is not the limit" explained bench-0 0.limit == read 0.parts.read.busy == 1 || {
		kill -CONT "$reader"
		return 1
	}
	kill -CONT "$reader"
}
quick() {
	while_training "the only worker is not the limit" explained bench-0 0.limit == decode 0.parts.decode.busy == 1 \
		0.rate ">" 0 0.what_if.0.change == workers || return 1
	while_training "explain does not say so in words" says "^Limit: decoding, the workers' CPU time" "^  \* decode +100 %" \
		"^  2 x slots memory .* \+0 %" || return 1
}
start_accessd workers=1 chunk=16 linger_s=0
training result 4 slow --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 1 --batch 16 --step-ms 100
training result 8 quick --dataset "$work/data" --pipeline imagenet-train --jobs 1 --batch 16
! "$ctl" --socket "$socket" explain "$work/data" 2>"$work/plain.txt" || fail "no job is there, and the status is 0"
grep -q "there is no job .* among 0" "$work/plain.txt" || fail "access-ctl says: $(cat "$work/plain.txt")"
stop_accessd
