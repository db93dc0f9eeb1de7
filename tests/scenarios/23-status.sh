#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-ctl, of an accessd that lives: every key of the JSON with its type, the same in plain text,
# and who waits for what, while workers and while the reader are stopped.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

"$pictures" "$work/data" 800 4 200
start_accessd workers=2 chunk=64 sample_timeout_ms=3600000 linger_s=1
plain() { # plain COMMAND: its text is in $work/plain.txt
	"$ctl" --socket "$socket" "$1" >"$work/plain.txt" || fail "access-ctl $1"
}
says() { # says PATTERN...: plain.txt has a line with each
	for pattern in "$@"; do
		grep -Eq -- "$pattern" "$work/plain.txt" || fail "no \"$pattern\" in: $(cat "$work/plain.txt")"
	done
}
# are KIND PREFIX KEY...: the status has PREFIX.KEY, of the kind
are() {
	kind=$1 prefix=$2
	shift 2
	for key in "$@"; do
		"$expect" "$work/status.json" "$prefix$key" is "$kind" || fail "$prefix$key is no $kind"
	done
}

plain ping
says "^accessd [0-9].*pid $daemon, answers"
plain status
says "^accessd .*pid $daemon" "^work .*0 pictures decoded" "^memory " "^CPU " "^workers " "^trouble " \
	"^no streams" "^no jobs" "no job is here"
plain tenants
says "^This accessd serves one user alone" "^$(id -un | cut -c 1-9)"

stop_workers() {
	workers=$(status "workers.*.pid")
	# shellcheck disable=SC2086
	[ "$(echo $workers | wc -w)" = 2 ] && kill -STOP $workers
}
shows_stopped() {
	plain jobs
	grep -Eq -- " $name .* stopped\? for [0-9]+ s" "$work/plain.txt"
}
# Once it has waited for a second, whatever it waited for before; nothing goes on meanwhile.
shows_wait() { # shows_wait WORD: of both jobs
	plain status
	grep -Eq -- " bench-0 .* $1" "$work/plain.txt" && grep -Eq -- " bench-1 .* $1" "$work/plain.txt"
}
waits_for() { # waits_for STAGE: both jobs
	status_is jobs == 2 "jobs.*.waiting" == true "jobs.*.stage" == "$1"
}
look() {
	while_training "the jobs do not start" all_train 2 || return 1
	status_is jobs == 2 "jobs.*.rate" ">" 0 || ! status_is jobs == 2 ||
		fail "jobs that are served have no rate"
	while_training "the status lacks workers" status_is workers == 2 || return 1
	"$ctl" --socket "$socket" --json status >"$work/status.json" || fail "no status"
	status_is jobs == 2 || return 1
	are string "" version
	are count "" pid uid
	are number "" uptime_s
	are bool "" draining
	are count node. samples_read bytes_read samples_preprocessed chunks reference waits_on_dead bad_samples \
		nonsense rss_bytes memory_budget memory_used workers workers_alive worker_restarts \
		reader_restarts parent_restarts reader_pid parent_pid clients watchers watch_renewals opens refused
	are count node. samples_delivered samples_saved bytes_saved
	are number node. cpu_seconds_saved worker_cpu_seconds reader_cpu_seconds loop_cpu_seconds watch_cpu_seconds
	are string node. memory_source
	are count node.loop. longest_turn_us longest_turn_cpu_us long_turns long_turns_cpu
	are string node.loop. longest_turn_what longest_turn_cpu_what
	are count "streams.*." id samples chunk block slots slots_max slot_bytes memory resident pinned producing \
		jobs productions held reference samples_read chunks_per_epoch bad_samples
	are string "streams.*." state dataset pipeline policy waiting_on
	are number "streams.*." median_us
	are count "jobs.*." id pid uid stream rank ranks batch epochs epoch taken need untaken pins delivered
	are string "jobs.*." name stage
	are number "jobs.*." rate wait_seconds late_seconds idle_seconds waiting_seconds cpu_seconds_used cpu_seconds_saved
	are count "jobs.*." bytes_used bytes_saved
	are number "jobs.*.waits." window_seconds scan read decode slot workers schedule drain
	are number "jobs.*.waited." scan read decode slot workers schedule drain
	are bool "jobs.*." lives hungry active waiting
	are count "workers.*." index pid stream "done"
	are bool "workers.*." busy public
	are number "workers.*." busy_seconds
	"$expect" "$work/status.json" pid == "$daemon" draining == false streams.0.dataset == "$work/data" \
		streams.0.samples == 800 streams.0.chunk == 64 streams.0.chunks_per_epoch == 13 \
		streams.0.jobs == 2 streams.0.state == running streams.0.policy == error jobs.0.batch == 16 \
		node.bad_samples == 0 node.worker_restarts == 0 node.workers == 2 "jobs.*.pins" "<=" 2 \
		node.samples_read ">" 0 node.bytes_read ">" 0 || fail "the status is wrong"

	while_training "there are no two workers to stop" stop_workers || return 1
	while_training "nobody waits though the workers are stopped" waits_for decode || {
		# shellcheck disable=SC2086
		kill -CONT $workers # the next try may find the stream of this one, and its workers
		return 1
	}
	while_training "status does not say that jobs wait for decoding" shows_wait decoding || return 1
	says "2 jobs get" "^decoding +more workers"
	plain jobs
	says " bench-0 .* decoding" " bench-1 .* decoding" "^job +pid +stream"
	plain streams
	says " decoding$" "^  $work/data|: $work/data"
	plain workers
	says "^ *[01] +[0-9]+ +[^ ]+ +(decodes|idle)"
	# shellcheck disable=SC2086
	kill -CONT $workers

	reader=$(status node.reader_pid)
	[ "${reader:-0}" -gt 1 ] || return 1
	kill -STOP "$reader"
	while_training "nobody waits though the reader is stopped" waits_for read || {
		kill -CONT "$reader"
		return 1
	}
	while_training "status does not say that jobs wait for reading" shows_wait reading || {
		kill -CONT "$reader"
		return 1
	}
	says "^workers +2 of 2 alive" "redundancy [0-9.]+"
	kill -CONT "$reader"

	while_training "the jobs do not go on" all_train 2 || return 1
	until_true $patience status_is jobs == 2 "jobs.*.rate" ">" 20 || return 1
	"$ctl" --socket "$socket" --json status >"$work/status.json" || fail "no status"
	stopped=$("$expect" "$work/status.json" jobs.0.pid) || return 1
	name=$("$expect" "$work/status.json" jobs.0.name) rate=$("$expect" "$work/status.json" jobs.0.rate)
	kill -STOP "$stopped" || return 1
	# How long that takes depends on its pace: ten usual intervals, 10 s at least. One that had left
	# already when it was stopped is asked no more.
	shows=yes
	until_true $patience shows_stopped || shows=no
	"$ctl" --socket "$socket" --json status >"$work/status.json" || fail "no status"
	which=$(index_of "$stopped")
	[ -n "$which" ] || { kill -CONT "$stopped"; return 1; }
	[ $shows = yes ] || fail "a stopped job does not show: $(cat "$work/plain.txt")"
	"$expect" "$work/status.json" "jobs.$which.idle_seconds" ">=" 9 "jobs.$which.lives" == false \
		"jobs.$which.rate" "<" "$rate" || fail "a stopped job has $(status "jobs.$which.rate")/s of $rate/s"
	kill -CONT "$stopped"
}
training result 8 look --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16 --step-ms 20
until_true $patience status_is jobs == 0 streams == 0 || fail "accessd still knows jobs"
plain jobs
says "^no jobs"
plain streams
says "^no streams"
# The connection that asks is a client itself; nobody else is.
until_true $patience status_is node.clients == 1 || fail "clients stay"
stop_accessd
"$ctl" --socket "$socket" --json status >"$work/plain.txt" 2>"$work/ctl.err" && fail "nobody answers, and the status is 0"
[ ! -s "$work/plain.txt" ] || fail "something on standard output: $(cat "$work/plain.txt")"
grep -q "no accessd at" "$work/ctl.err" || fail "access-ctl says: $(cat "$work/ctl.err")"
