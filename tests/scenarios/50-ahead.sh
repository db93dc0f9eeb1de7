#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A node with a job that trains slowly has time: what it owns it prepares ahead of need, and a job on another node gets that.
# With nobody connected it prepares nothing ahead. Half of the samples have no packed form: their files are kept in its place.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_cluster

samples=400
"$pictures" "$work/data" $((samples / 2)) 4 100
"$pictures" progressive "$work/data/class_0001/progressive-0.jpg"
for i in $(seq $((samples / 2 - 1))); do
	cp "$work/data/class_0001/progressive-0.jpg" "$work/data/class_0001/progressive-$i.jpg"
done
two_nodes
ahead() { # ahead NAME MEMBER: what that node says of its stream
	socket=$work/$1/socket
	status "streams.0.cache.peers.$2"
}
is_ahead() { # is_ahead NAME STATE
	[ "$(ahead "$1" ahead)" = "$2" ]
}

# The slots have a sixth of the data set.
node a "$port_a" cache_point=packed chunk=16 slots=4
# A job that takes a batch an hour: it never gets to the end.
"$bench" --socket "$socket" --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --step-ms 3600000 --quiet \
	--json "$work/slow.json" 2>>"$work/bench.log" &
slow=$!
cleanup_fn "kill -KILL $slow"
until_true $patience is_ahead a alone || fail "a node alone: $(ahead a ahead)"
[ "$(ahead a made_ahead)" = 0 ] || fail "a node alone made $(ahead a made_ahead) forms ahead"

node b "$port_b" cache_point=packed chunk=16 slots=4
until_true $patience is_ahead a "done" || fail "a node with time is not through with it: $(ahead a ahead)"
made=$(ahead a made_ahead)
socket=$work/a/socket
# of 400 a node of two owns 200, give or take, of which its job may have had up to 64 when nobody was there; half of these have the form
[ "$made" -ge 130 ] && [ "$made" -le 260 ] || fail "$made of $samples forms were made ahead"
[ "$(status streams.0.samples_read)" -le $((made + 64)) ] || fail "$(status streams.0.samples_read) files were read"
"$ctl" --socket "$work/a/socket" explain "$(status jobs.0.id)" >"$work/explain.txt"
tr '\n' ' ' <"$work/explain.txt" | grep -q "for jobs all is made that this node owns; $made such samples were made for other nodes" ||
	fail "access-ctl explain: $(cat "$work/explain.txt")"

"$bench" --socket "$work/b/socket" --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --verify --quiet \
	--json "$work/b.json" || fail "the job of node b"
exactly_once "$work/b.json"
socket=$work/b/socket
# How many is by load: who has nothing to do makes himself what he has waited for half a second.
status_is streams.0.cache.peer_hits ">=" 1 || fail "of $made forms that a made ahead b got none"
socket=$work/a/socket
status_is jobs == 1 || fail "the slow job is gone"
