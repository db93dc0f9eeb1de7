#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What nodes read of a source, counted by the source: a file system (FUSE) that writes down each opening. Two nodes, two jobs each,
# caches empty: what they say that they read is what was opened, and what a node keeps it does not open again. So is what has no packed
# form, which is kept as its file; and whatever comes from where, it is what a node alone makes of the files.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_cluster
[ -x "$top_builddir/tests/cluster/counted" ] || skip "this build has no libfuse (Debian: libfuse3-dev)"
[ -r /dev/fuse ] && [ -w /dev/fuse ] || skip "there is no /dev/fuse for us"
requires fusermount3

samples=300
"$pictures" "$work/data" $((samples - 8)) 4 100
for i in 1 2 3 4 5 6 7 8; do
	"$pictures" progressive "$work/data/class_0001/progressive-$i.jpg"
done
mkdir "$work/mount"
"$top_builddir/tests/cluster/counted" "$work/data" "$work/mount" "$work/opened" 2>"$work/counted.log" &
counted=$!
cleanup_fn "kill -KILL $counted; fusermount3 -uz $work/mount"
is_there() {
	is_gone $counted || [ "$(find "$work/mount" -type f | wc -l)" = $samples ]
}
until_true $patience is_there
! is_gone $counted || skip "nothing can be mounted here: $(cat "$work/counted.log")"

two_nodes
connected() {
	status_is cluster.channels == 1
}
jobs() { # jobs SEED: two on each node at once
	job_a='' job_b=''
	for name in a b; do
		"$bench" --socket "$work/$name/socket" --dataset "$work/mount" --pipeline imagenet-eval-u8 --order seeded --plan-seed "$1" \
			--jobs 2 --verify --quiet --json "$work/$name.json" 2>>"$work/bench.log" &
		eval "job_$name=$!"
	done
	wait "$job_a" || fail "the jobs of node a"
	wait "$job_b" || fail "the jobs of node b"
	for name in a b; do
		exactly_once "$work/$name.json"
		[ "$("$expect" "$work/$name.json" "jobs.*.digest" | sort -u)" = "$alone" ] || fail "node $name gave other bytes than the files say"
	done
}
of_node() { # of_node NAME PATH: of its status
	socket=$work/$1/socket
	status "$2"
}
opened() {
	grep -c '^open ' "$work/opened" || true
}
node a "$port_a" linger_s=600 cache_point=packed
node b "$port_b" linger_s=600 cache_point=packed
for name in a b; do
	socket=$work/$name/socket
	until_true $patience connected || fail "node $name does not meet the other one"
done
"$bench" --private --dataset "$work/data" --pipeline imagenet-eval-u8 --verify --quiet --json "$work/alone.json" 2>>"$work/bench.log"
alone=$("$expect" "$work/alone.json" jobs.0.digest)
jobs 1
said=$(($(of_node a node.samples_read) + $(of_node b node.samples_read)))
[ "$(opened)" = "$said" ] || fail "$(opened) files were opened, and the nodes say $said"
[ "$(grep '^open ' "$work/opened" | sort -u | wc -l)" = $samples ] || fail "not each file was opened"
echo "$said openings of $samples files by two nodes"

kept() { # all of it is, on one node or the other
	total=$(($(of_node a caches.0.values) + $(of_node b caches.0.values)))
	[ $total -ge $samples ]
}
until_true $patience kept || fail "what was made is kept nowhere: $total of $samples"
before=$(opened)
jobs 2
# However slow nodes answer each other: a node opens what it does not keep itself, and few of what it does, to compare.
[ "$(opened)" -le $((before + 2 * samples - total / 2)) ] || fail "$(($(opened) - before)) files were opened though all is kept"
