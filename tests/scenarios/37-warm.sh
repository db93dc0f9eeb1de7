#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-ctl cache warm: what it makes is there for the job that comes, it makes nothing twice, it ends when it is
# told to without harm, and it says why where it cannot.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 200 4 100
warm() { # warm STATUS WORD...: what it says is in $work/plain.txt
	wanted=$1 code=0
	shift
	timeout $longest "$ctl" --socket "$socket" cache warm "$work/data" --pipeline imagenet-train-u8 "$@" \
		>"$work/plain.txt" 2>&1 || code=$?
	[ $code = "$wanted" ] || fail "cache warm $*: status $code: $(cat "$work/plain.txt")"
}
says() { # says PATTERN...: plain.txt has a line with each
	for pattern in "$@"; do
		grep -Eq -- "$pattern" "$work/plain.txt" || fail "no \"$pattern\" in: $(cat "$work/plain.txt")"
	done
}
is_idle() {
	status_is streams == 0
}
# A job finds all of it, uses it, and makes nothing. What it reads before its reader has said what is kept are files.
job_has_all() {
	"$bench" --socket "$socket" --epochs 6 --json "$work/job.json" --quiet --verify --dataset "$work/data" \
		--pipeline imagenet-train-u8 --jobs 1 --batch 16 2>>"$work/bench.log" || fail "access-bench"
	exactly_once "$work/job.json"
	status_is "streams.0.cache.points.2.found" == 200 "streams.0.cache.points.2.kept_samples" == 200 \
		"streams.0.cache.points.2.made" == 0 "streams.0.cache.hits" ">" 0 "streams.0.cache.asked" == "" ||
		fail "a job after it: $(cat "$work/status.json")"
}

start_accessd workers=2 chunk=16
warm 1
says "^access-ctl: nothing is kept: cache_size is 0"
stop_accessd

start_accessd workers=2 chunk=16 linger_s=600 cache_size=64M cache_force=1
warm 2 --form file
warm 1 --form decoded --pipeline '[{"op":"decode"'
says "^access-ctl: pipeline"
warm 0 --form packed
says "^packed: 200 of 200 samples are kept, .*; 0 were before\$"
until_true $patience is_idle || fail "its stream stays"
warm 0 --form packed
says "^packed: 200 of 200 samples are kept, .*; 200 were before\$"
stop_accessd

# Another one finds it; a form that is told to accessd is the one that is made.
start_accessd workers=2 chunk=16 linger_s=600 cache_size=64M cache_force=1 cache_point=packed
warm 0
says "^packed: 200 of 200 samples are kept, .*; 200 were before\$"
job_has_all
warm 1 --form indexed
says "^access-ctl: this accessd keeps packed alone"
stop_accessd

start_accessd workers=2 chunk=16 cache_size=1M cache_force=1
warm 1 --form decoded
says "^access-ctl: [0-9]+ samples are not kept: there is no room for them"
stop_accessd

# Ended in the middle: it is stopped when it is seen, unless it was at its end before.
is_warming() {
	status_is jobs == 1 || is_gone "$warming"
}
tries=20
while :; do
	start_accessd workers=2 chunk=16 cache_dir="$work/cache-$tries" cache_size=64M cache_force=1
	"$ctl" --socket "$socket" cache warm "$work/data" --form packed >"$work/plain.txt" 2>&1 &
	warming=$!
	cleanup_fn "kill -KILL $warming"
	until_true $patience is_warming || fail "nothing is made"
	kill -STOP "$warming" 2>/dev/null || true
	code=0
	if status_is jobs == 1; then
		kill -TERM "$warming"
	fi
	kill -CONT "$warming" 2>/dev/null || true
	wait "$warming" || code=$?
	[ $code = 0 ] || break
	stop_accessd
	tries=$((tries - 1))
	[ $tries -gt 0 ] || fail "it is always too quick"
done
[ $code = 143 ] || fail "interrupted, it ends with status $code: $(cat "$work/plain.txt")"
says "^interrupted; packed: [0-9]+ samples are kept and stay"
until_true $patience status_is jobs == 0 || fail "its job stays"
warm 0 --form packed
says "^packed: 200 of 200 samples are kept"
stop_accessd
