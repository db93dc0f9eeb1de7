#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 22: a second accessd in the same place refuses, names the first, and touches nothing of it; after kill -9
# of the first the next one starts, though the socket still lies there.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

start_accessd workers=1
first=$daemon
inode=$(stat -c %i "$socket")
code=0
timeout $longest "$accessd" --private --dir "$dir" >"$work/second.out" 2>"$work/second.err" || code=$?
[ $code != 0 ] || fail "the second accessd started, too"
[ $code != 124 ] || fail "the second accessd neither started nor refused"
grep -q "$first" "$work/second.err" || fail "it does not name process $first: $(cat "$work/second.err")"
[ ! -s "$work/second.out" ] || fail "it wrote to standard output"
[ "$(stat -c %i "$socket")" = "$inode" ] || fail "the live socket was replaced"
status_is pid == "$first" || fail "the first one does not answer any more"

kill -KILL "$first"
wait "$first" 2>/dev/null || true
[ -S "$socket" ] || fail "kill -9 left no socket: the scenario tests nothing"
"$ctl" --socket "$socket" ping 2>"$work/ping.err" && fail "a dead accessd answers"
grep -q "nobody listens" "$work/ping.err" || fail "access-ctl says: $(cat "$work/ping.err")"
start_accessd workers=1
status_is pid == "$daemon" || fail "somebody else answers"
stop_accessd
[ ! -e "$socket" ] || fail "the socket was left behind"
