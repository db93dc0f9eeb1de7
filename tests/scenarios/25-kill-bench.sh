#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# kill -9 of access-bench's processes, under load: of one of its jobs, which fails and is named while
# the others get everything; of access-bench itself, which takes its jobs and its accessd with it, and
# leaves no socket that blocks the next one. When asked to end it removes its folder, too.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 1000 3 200
start_accessd workers=2 linger_s=1
kill_job() {
	while_training "the jobs do not start" all_train 3 || return 1
	"$ctl" --socket "$socket" --json status >"$work/status.json"
	"$expect" "$work/status.json" "jobs.*.name" >"$work/names"
	"$expect" "$work/status.json" "jobs.*.pid" >"$work/pids"
	victim=$(paste "$work/names" "$work/pids" | sed -n 's/^bench-1[^0-9]//p')
	[ -n "$victim" ] && kill -KILL "$victim"
}
epochs=10
while :; do
	timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --socket "$socket" --verify \
		--jobs 3 --batch 16 --epochs $epochs --json "$work/result.json" --quiet 2>"$work/bench.log" &
	run=$!
	cleanup_fn "kill -TERM $run"
	if kill_job; then break; fi
	wait $run || fail "access-bench says so"
	epochs=$((epochs * 4))
done
code=0
wait $run || code=$?
[ $code = 1 ] || fail "a job was killed, and access-bench ends with status $code"
"$expect" "$work/result.json" exactly_once == false jobs.0.exactly_once == true jobs.2.exactly_once == true \
	jobs.1.exactly_once == false jobs.1.error == "died of signal 9" jobs.0.missing == 0 jobs.2.missing == 0
until_true $patience status_is jobs == 0 streams == 0 || fail "accessd still knows the job"
stop_accessd

# end_bench SIGNAL: of access-bench with an accessd of its own, in mid-epoch
end_bench() {
	"$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --private --workers 2 --jobs 3 \
		--batch 16 --epochs 60000 --quiet 2>>"$work/bench.log" &
	run=$!
	cleanup_fn "kill -KILL $run"
	socket=
	found() {
		socket=$(find "$work" -path '*/access-bench-*/socket')
		[ -n "$socket" ]
	}
	until_true $patience found || fail "access-bench starts no accessd"
	until_true $patience all_train 3 || fail "the jobs do not start"
	until_true $patience status_is node.workers_alive == 2 || fail "the workers do not start"
	offspring=$(offspring_of $run)
	[ "$(echo "$offspring" | wc -l)" -ge 8 ] || fail "3 jobs, accessd, its reader, parent and workers: $offspring"
	kill -"$1" $run
	code=0
	wait $run || code=$?
	# shellcheck disable=SC2086
	until_true $patience are_gone $offspring || fail "a process outlives access-bench: $offspring"
	[ ! -e "$socket" ] || fail "the socket was left behind"
}
end_bench KILL
[ $code = 137 ] || fail "status $code"
rm -rf "$work"/access-bench-*
end_bench TERM
[ $code = 143 ] || fail "status $code"
[ -z "$(find "$work" -name 'access-bench-*')" ] || fail "the folder was left behind"
timeout $longest "$bench" --dataset "$work/data" --pipeline imagenet-train-u8 --private --workers 2 --verify \
	--batch 16 --json "$work/result.json" --quiet 2>>"$work/bench.log" || fail "the next one does not work"
exactly_once "$work/result.json"
