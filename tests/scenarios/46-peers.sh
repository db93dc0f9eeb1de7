#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Several nodes on one machine: who has no peers has no socket of a network; nodes with one key meet, and what one of them
# made the others have; nodes that die, lose their carrier or have another key change no batch.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_cluster

"$pictures" "$work/data" 600 4 100

# ---- without peers ----

# inet_sockets PID: of it and all below it, sockets of a network
inet_sockets() {
	for of in "$1" $(offspring_of "$1"); do
		for fd in "/proc/$of/fd"/*; do
			inode=$(readlink "$fd" | sed -n 's/^socket:\[\([0-9]*\)\]$/\1/p')
			[ -z "$inode" ] ||
				awk -v inode="$inode" '$10 == inode { print FILENAME }' "/proc/$of"/net/tcp "/proc/$of"/net/tcp6 \
					"/proc/$of"/net/udp "/proc/$of"/net/udp6
		done
	done
}
start_accessd workers=1
"$bench" --socket "$socket" --dataset "$work/data" --pipeline imagenet-train-u8 --quiet --json "$work/alone.json"
[ -z "$(inet_sockets "$daemon")" ] || fail "a node without peers has a socket of a network"
"$ctl" --socket "$socket" peers | grep -q "has no peers" || fail "access-ctl peers of a node without"
stop_accessd

# ---- with them ----

free_ports 3
read -r port_a port_b port_c <"$work/ports"
(umask 077 && head -c 48 /dev/urandom | base64 >"$work/other.key")
# As doc/cluster.md says it, with a folder of this scenario's for /etc, its user for accessd's, and addresses for names.
page=${top_srcdir:-.}/doc/cluster.md
sed -n '/^    (umask 077/,/^    install -o/p' "$page" |
	sed "s|/etc/|$work/etc/|; s|-g accessd|-g $(id -g)|; s|-o accessd|-o $(id -u)|" >"$work/key.sh"
[ "$(grep -c . "$work/key.sh")" = 3 ] || fail "the page's commands for a key: $(cat "$work/key.sh")"
(cd "$work" && sh -eu key.sh) || fail "a command of the page for a key"
peers=$(sed -n 's/^    peers = \([^ ]*\).*/\1/p' "$page" | sed "s/node1/127.0.0.1:$port_a/; s/node2/127.0.0.1:$port_b/")
[ "$peers" = "static:127.0.0.1:$port_a,127.0.0.1:$port_b" ] || fail "the page's peers: $peers"
# node NAME PORT [NAME=VALUE]...: starts it; its socket is in $socket, its pid in $daemon
node() {
	dir=$work/$1
	socket=$dir/socket
	name=$1 port=$2
	shift 2
	start_accessd workers=1 idle_exit_s=0 cache_dir="$work/cache-$name" cache_size=64M cache_force=1 cache_point=packed \
		node_name="$name" peers="$peers,127.0.0.1:$port_c" \
		peer_listen="127.0.0.1:$port" peer_key="$work/etc/accessd/cluster.key" "$@"
}
at() { # at NAME COMMAND...: with $socket of that node
	socket=$work/$1/socket
	shift
	"$@"
}
connected() { # connected N: this node's user is connected to so many others
	status_is cluster.channels == "$1"
}
job() { # job NAME: once through the data on that node
	at "$1" "$bench" --socket "$work/$1/socket" --dataset "$work/data" --pipeline imagenet-train-u8 --verify --quiet \
		--json "$work/$1.json" || fail "the job of node $1"
	exactly_once "$work/$1.json"
}

! node_refused=$("$accessd" --private --dir "$work/none" --set peers=static:127.0.0.1 --set peer_key="$work/none.key" 2>&1) ||
	fail "accessd starts without the cluster's key"
echo "$node_refused" | grep -q "none.key cannot be opened.*head -c 48" || fail "no word of the key: $node_refused"
# ... nor with a password that others can read, or that nobody asks for.
echo ada:secret >"$work/login" && chmod 0644 "$work/login" || fail "cannot write a login"
for try in "etcd:http://127.0.0.1:1 may be used by others" "static:127.0.0.1 is of no use"; do
	! login_refused=$("$accessd" --private --dir "$work/none" --set peers="${try%% *}" --set peer_key="$work/cluster.key" \
		--set peer_etcd_login="$work/login" 2>&1) || fail "accessd starts with a login for $try"
	echo "$login_refused" | grep -q "peer_etcd_login.*login ${try#* }.*umask 077" || fail "no word of the login: $login_refused"
done

node a "$port_a" && a=$daemon
node b "$port_b" && b=$daemon
for name in a b; do
	until_true $patience at "$name" connected 1 || fail "$name does not meet the other one"
done
job a
kept() { # all of it is kept, on one node or the other
	total=0
	for name in a b; do
		kept=$(at "$name" status caches.0.values)
		total=$((total + ${kept:-0}))
	done
	[ $total -ge 600 ]
}
until_true $patience kept || fail "what was made is kept nowhere: $total of 600"
[ "$(at b status caches.0.values)" -gt 0 ] || fail "node b keeps nothing of what it owns"
job b
socket=$work/b/socket
shows_what_came() { # a carrier says so once a second
	"$ctl" --socket "$socket" peers >"$work/peers.txt" && grep -Eq "^a +connected +tcp +[1-9][0-9]* +[1-9]" "$work/peers.txt"
}
until_true $patience shows_what_came || fail "access-ctl peers: $(cat "$work/peers.txt")"
if [ -x "$top_builddir/tools/access-top" ]; then
	top=$top_builddir/tools/access-top
	COLUMNS=160 "$top" -b -n 1 --view peers -s "$socket" >"$work/top.txt" || fail "access-top -b --view peers"
	grep -Eq "^a +connected +tcp " "$work/top.txt" || fail "access-top: $(cat "$work/top.txt")"
	"$top" --json -n 1 -s "$socket" >"$work/top.json"
	grep -q '"peer":"a","state":"connected","transport":"tcp",' "$work/top.json" || fail "access-top --json: $(cat "$work/top.json")"
fi
status_is streams.0.cache.misses "<=" 200 || fail "b read $(status streams.0.cache.misses) of 600 files that were prepared on a"
status_is streams.0.cache.peer_hits ">=" 1 || fail "nothing came from a"

# Another key: a node that is refused, in words, and hurts nobody.
node c "$port_c" peer_key="$work/other.key" peers="$peers,$(printf '%064d' 0).x"
socket=$work/c/socket
refused() {
	status_is cluster.members.0.state == refused || status_is cluster.members.1.state == refused
}
until_true $patience refused || fail "a node with another key: $("$ctl" --socket "$socket" peers)"
job c
at a connected 1 || fail "a has lost b"
says() { # says WORDS: access-ctl peers does
	"$ctl" --socket "$socket" peers >"$work/trouble.txt" && tr '\n' ' ' <"$work/trouble.txt" | tr -s ' ' | grep -q "$1"
}
# c's list has a name that there is not, too (no label is so long, so nobody is asked for it); and a port that another one has.
socket=$work/c/socket
until_true $patience says "tried again: 0*.x has no address" || fail "access-ctl peers: $(cat "$work/trouble.txt")"
node d "$port_a" peer_key="$work/other.key"
until_true $patience says "tried again: peer_listen .* cannot listen there: Address already in use" || fail "access-ctl peers: $(cat "$work/trouble.txt")"
if [ -x "$top_builddir/tools/access-top" ]; then
	COLUMNS=300 "$top" -b -n 1 --view node -s "$socket" >"$work/top.txt" || fail "access-top -b --view node"
	grep -q "tried again: peer_listen .* cannot listen there" "$work/top.txt" || fail "access-top: $(cat "$work/top.txt")"
fi
kill -TERM $daemon
until_true $patience is_gone $daemon

# Whatever of theirs dies, jobs get what they asked for.
pid_of() { # pid_of DAEMON NAME: of a process below it
	family_of "$1" | sed -n "s/^\([0-9]*\) [0-9]* $2.*/\1/p" | head -n 1
}
disturb() {
	for name in access-carrier access-gate access-reader access-carrier; do
		pid=$(pid_of "$b" "$name")
		[ -z "$pid" ] || kill -KILL "$pid"
		while_training "b does not find a again" connected 1 || return 1
	done
	kill -KILL "$a"
	while_training "b does not notice that a is gone" connected 0 || return 1
}
socket=$work/b/socket
training result 20 disturb --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16 --step-ms 2
