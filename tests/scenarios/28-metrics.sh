#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-exporter beside an accessd with two jobs that share a stream: what it answers to Prometheus, to browsers and to
# enemies; a real Prometheus scrapes it, and each query of the dashboard and the alerts is put to that
# (tests/exporter/scrape.py). accessd that is stopped is down, and jobs that ended have no series.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

exporter=$top_builddir/exporter/access-exporter
requires python3
PATH=$PATH:${ACCESS_PROMETHEUS:-/nowhere}

"$pictures" "$work/data" 400 3 128
# Where this build has a cluster: with another node, that has no jobs.
cluster=
if [ -x "$top_builddir/cluster/access-gate" ]; then
	free_ports 2
	ports=$(cat "$work/ports")
	(umask 077 && head -c 48 /dev/urandom | base64 >"$work/cluster.key")
	cluster="peers=static:127.0.0.1:${ports% *},127.0.0.1:${ports#* } peer_key=$work/cluster.key"
	# shellcheck disable=SC2086 # settings have no blanks
	(dir=$work/other socket=$work/other/socket && trap - EXIT && start_accessd workers=1 idle_exit_s=0 node_name=other \
		peer_listen="127.0.0.1:${ports#* }" $cluster && echo "$daemon" >"$work/other.pid")
	cleanup_fn "kill -KILL $(cat "$work/other.pid")"
	cluster="$cluster node_name=this peer_listen=127.0.0.1:${ports% *}"
fi
# shellcheck disable=SC2086
start_accessd workers=1 chunk=64 cache_size=64M linger_s=0 $cluster
"$exporter" --socket "$socket" --listen 127.0.0.1:0 2>"$work/exporter.log" &
served=$!
cleanup_fn "kill -KILL $served"
has_port() {
	port=$(sed -n 's/.* ready .* port=\([0-9]*\)$/\1/p' "$work/exporter.log")
	[ -n "$port" ] || { is_gone $served && fail "access-exporter: $(cat "$work/exporter.log")"; }
}
until_true $patience has_port
"$bench" --socket "$socket" --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16 --step-ms 20,20 \
	--epochs 60000 --quiet 2>>"$work/bench.log" &
run=$!
cleanup_fn "kill -KILL $run"
while_training "the jobs do not start" all_train 2 || fail "the jobs ended"

asked=
if command -v prometheus >/dev/null && command -v promtool >/dev/null; then
	asked=--prometheus
	python3 "$top_srcdir/tests/exporter/alerts.py" "$top_srcdir/doc/prometheus/oneaccess.rules.yml" "$work" ||
		fail "alerts"
else
	[ "${CI:-}" != true ] || fail "prometheus is not here"
	echo "not tested: queries of the dashboard and of alerts: Debian's prometheus is not here"
fi
# shellcheck disable=SC2086 # words
python3 "$top_srcdir/tests/exporter/scrape.py" "$port" "$work" "$top_srcdir/doc" $asked ${cluster:+--peers} &
scrape=$!
cleanup_fn "kill -TERM $scrape"
stop_when_told() {
	if [ -e "$work/down" ]; then
		kill -STOP "$daemon"
	else
		kill -CONT "$daemon"
	fi
	is_gone $scrape
}
until_true $longest stop_when_told || fail "scrape.py does not end"
code=0
wait $scrape || code=$?
[ $code = 0 ] || fail "scrape.py: status $code; $(tail -n 5 "$work/exporter.log")"

# Who ended has no series; and a Unix socket, which the next one replaces.
kill -TERM "$run"
until_true $patience status_is jobs == 0 || fail "the jobs are still there"
kill -TERM $served
code=0
wait $served || code=$?
[ $code = 0 ] || fail "access-exporter ended with $code"
"$exporter" --socket "$socket" --listen "$work/web" 2>"$work/exporter.log" &
killed=$!
until_true $patience test -S "$work/web" || fail "no socket: $(cat "$work/exporter.log")"
kill -KILL $killed
wait $killed || true
"$exporter" --socket "$socket" --listen "$work/web" 2>"$work/exporter.log" &
served=$!
cleanup_fn "kill -KILL $served"
scrape_path() {
	python3 -c 'import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
print(sock.makefile().read())' "$work/web" >"$work/metrics" 2>/dev/null
}
until_true $patience scrape_path || fail "nobody answers at the Unix socket: $(cat "$work/exporter.log")"
grep -q '^oneaccess_up 1' "$work/metrics" || fail "it says: $(cat "$work/metrics")"
! grep -q '^oneaccess_job_active' "$work/metrics" || fail "a job that ended has a series"
kill -TERM $served
wait $served
[ ! -e "$work/web" ] || fail "its socket was left behind"
stop_accessd
