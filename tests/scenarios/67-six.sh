#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Nodes by IPv6, in a network namespace: what `peers = static:` may say, with brackets, zones of links and beside IPv4, and what one is
# told who listens by IPv4 alone. What one node made the other one has.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_cluster
requires unshare ip
if [ -z "${SCENARIO_INSIDE:-}" ]; then
	unshare -rn ip link set lo up 2>/dev/null || skip "no user and network namespaces here"
	code=0
	SCENARIO_INSIDE=1 TMPDIR="$work" unshare -rn sh "$0" || code=$?
	exit $code
fi
ip link set lo up
ip -6 address show dev lo | grep -q "::1" || skip "no IPv6 here"

"$pictures" "$work/data" 200 2 100
(umask 077 && head -c 48 /dev/urandom | base64 >"$work/cluster.key")
node() { # node NAME LISTEN PEERS
	dir=$work/$1
	socket=$dir/socket
	start_accessd workers=1 idle_exit_s=0 cache_dir="$work/cache-$1" cache_size=64M cache_force=1 cache_point=packed node_name="$1" \
		peers="$3" peer_listen="$2" peer_key="$work/cluster.key"
}
at() { # at NAME COMMAND...: with $socket of that node
	socket=$work/$1/socket
	shift
	"$@"
}
two_nodes() { # two_nodes LISTEN PEERS [LISTEN PEERS]: of a and b, the same if not said
	node a "$1" "$2" && a=$daemon
	node b "${3:-$1}" "${4:-$2}" && b=$daemon
}
end_nodes() {
	for daemon in $a $b; do
		kill -TERM "$daemon"
		until_true $patience is_gone "$daemon" || fail "accessd does not end on SIGTERM"
	done
	rm -rf "$work/a" "$work/b" "$work/cache-a" "$work/cache-b"
}
meet() {
	for name in a b; do
		until_true $patience at $name status_is cluster.channels == 1 ||
			fail "$name does not meet the other one: $("$ctl" --socket "$work/$name/socket" peers)"
	done
}
says() { # says WORDS: access-ctl peers does
	"$ctl" --socket "$socket" peers >"$work/peers.txt" && tr '\n' ' ' <"$work/peers.txt" | tr -s ' ' | grep -Fq "$1"
}

two_nodes "[::1]:7411" "static:[::1],[::1]:7412" "[::1]:7412" "static:[::1]:7411,[::1]"
meet
"$bench" --socket "$work/a/socket" --dataset "$work/data" --pipeline imagenet-train-u8 --verify --quiet --json "$work/a.json" ||
	fail "the job of node a"
exactly_once "$work/a.json"
gave() {
	at b status_is cluster.channels.0.puts_received ">" 0
}
until_true $patience gave || fail "nothing of what a made is kept on b"
at b says "b listens on [::1]:7412" || fail "access-ctl peers: $(cat "$work/peers.txt")"
end_nodes

# By both, each of which the other one says.
two_nodes "[::]:7411" "static:[::1]:7412" "[::]:7412" "static:127.0.0.1:7411"
meet
end_nodes

# The link's own addresses.
ip link add six_a type veth peer name six_b
for link in six_a six_b; do
	ip link set $link addrgenmode none up
done
ip -6 address add fe80::a/64 dev six_a nodad
ip -6 address add fe80::b/64 dev six_b nodad
two_nodes "[::]:7411" "static:[fe80::b%six_a]:7412" "[::]:7412" "static:[fe80::a%six_b]:7411"
meet
end_nodes

two_nodes "0.0.0.0:7411" "static:[::1]:7412" "0.0.0.0:7412" "static:[::1]:7411"
socket=$work/a/socket
until_true $patience says "::1 has IPv6 addresses alone, and peer_listen of this node is an IPv4 one: peer_listen = [::]:7411 takes both" ||
	fail "access-ctl peers: $(cat "$work/peers.txt")"
end_nodes
