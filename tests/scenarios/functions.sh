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
# until_true SECONDS COMMAND...: tries ten times a second
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

# start_accessd [NAME=VALUE]...: $socket answers, $daemon is its pid; messages go to $work/accessd.log
dir=$work/node
socket=$dir/socket
start_accessd() {
	[ -d "$dir" ] || mkdir -m 0700 "$dir"
	arguments=
	for setting in "$@"; do
		arguments="$arguments --set $setting"
	done
	# shellcheck disable=SC2086 # settings have no blanks
	"$accessd" --private --dir "$dir" --set cache_dir="$work/cache" $arguments 2>>"$work/accessd.log" &
	daemon=$!
	cleanup_fn "kill -KILL $daemon"
	until_true 15 "$ctl" --socket "$socket" ping >/dev/null 2>&1 || fail "accessd does not answer"
}
stop_accessd() {
	kill -TERM "$daemon"
	until_true 15 is_gone "$daemon" || fail "accessd does not end on SIGTERM"
	wait "$daemon" || true
}
# status PATH: a value of the status, empty when there is none
status() {
	"$ctl" --socket "$socket" --json status 2>/dev/null | "$expect" - "$1" 2>/dev/null || true
}
status_is() { # status_is PATH OP VALUE
	"$ctl" --socket "$socket" --json status 2>/dev/null >"$work/status.json" &&
		"$expect" "$work/status.json" "$@" 2>/dev/null
}
exactly_once() { # exactly_once RESULT.json
	"$expect" "$1" exactly_once == true jobs.*.missing == 0 jobs.*.duplicates == 0 \
		jobs.*.strange == 0 jobs.*.bad_values == 0 || fail "not exactly once"
}
children_of() { # pids whose parent is PID
	for stat in /proc/[0-9]*/stat; do
		sed -n "s/^\([0-9]*\) (.*) [A-Z] $1 .*/\1/p" "$stat" 2>/dev/null || true
	done
}
