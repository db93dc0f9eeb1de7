#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-ctl cache lend: a node without jobs prepares what it owns of a data set, and a job on another node gets that. It outlives
# accessd, and ends when it is told to.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_cluster

samples=400
"$pictures" "$work/data" $samples 4 100
two_nodes
is_lent() { # is_lent STATE: what node a does for others
	socket=$work/a/socket
	status_is streams == 1 && [ "$(status streams.0.cache.peers.ahead)" = "$1" ]
}

node a "$port_a" chunk=16 slots=4
code=0
"$ctl" --socket "$socket" cache lend "$work/data" --form file >"$work/plain.txt" 2>&1 || code=$?
[ $code = 2 ] || fail "--form file: status $code"
"$ctl" --socket "$socket" cache lend "$work/data" --pipeline imagenet-train-u8 --form packed >"$work/lend.txt" 2>&1 &
lending=$!
cleanup_fn "kill -KILL $lending"
until_true $patience is_lent alone || fail "a node alone: $(cat "$work/lend.txt")"
until_true $patience grep -q "^packed: 0 samples made for other nodes, .*; nothing is made, as no other node is connected\$" "$work/lend.txt" ||
	fail "it says: $(cat "$work/lend.txt")"

# accessd is killed: who lends waits for the next one.
stop_accessd
until_true $patience grep -q "; waiting for it\$" "$work/lend.txt" || fail "accessd was stopped: $(cat "$work/lend.txt")"
node a "$port_a" chunk=16 slots=4
until_true $patience is_lent alone || fail "after accessd was stopped: $(cat "$work/lend.txt")"

node b "$port_b" chunk=16 slots=4 cache_point=packed linger_s=3600
until_true $patience is_lent "done" || fail "it is not through: $(status streams.0.cache.peers.ahead)"
made=$(status streams.0.cache.peers.made_ahead)
# of 400 a node of two owns 200, give or take, of which its job may have had up to 64 when nobody was there
[ "$made" -ge 100 ] && [ "$made" -le 260 ] || fail "$made of $samples forms were made"

"$bench" --socket "$work/b/socket" --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --verify --quiet \
	--json "$work/b.json" || fail "the job of node b"
exactly_once "$work/b.json"
socket=$work/b/socket
status_is streams.0.cache.peer_hits ">=" 1 || fail "of $made forms that a made b got none"

# What makes its samples is killed: it is opened again.
socket=$work/a/socket
stream=$(status streams.0.id)
kill -KILL "$(status node.parent_pid)"
is_anew() {
	status_is streams == 1 && [ "$(status streams.0.id)" != "$stream" ] && [ "$(status streams.0.cache.peers.ahead)" = "done" ]
}
until_true $patience is_anew || fail "its worker was killed: $(cat "$work/lend.txt")"

kill -TERM $lending
wait $lending || fail "told to end, it ends with status $?"
tail -n 1 "$work/lend.txt" | grep -q "^packed: [0-9]* samples were made for other nodes; what is kept stays\$" ||
	fail "it ends with: $(cat "$work/lend.txt")"
socket=$work/a/socket
until_true $patience status_is jobs == 0 || fail "its job stays"
