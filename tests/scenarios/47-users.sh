#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Two nodes, each with the accessd of a machine, and their users: what one user may read alone never comes to another one,
# though nodes have one key and he has the same names, sizes and times; nor to who only has his number. Data open to
# everybody are shared between users of two nodes below cluster_paths, and nowhere else.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
[ -x "$top_builddir/cluster/access-gate" ] || skip "this build has no cluster"
[ "$(id -u)" = 0 ] || skip "needs root, to be several users"
requires python3 unshare setpriv
unshare --mount true 2>/dev/null || skip "no mount namespaces here"
chmod 0755 "$work"
setpriv --reuid=65201 --regid=65201 --clear-groups test -x "$work" || skip "other users cannot go where TMPDIR is"

# The build may lie where other users cannot go.
mkdir "$work/bin"
"$bench" --help >/dev/null
for program in "$accessd" "$top_builddir"/libexec/access-* "$top_builddir"/libaccess/.libs/libaccess.so*; do
	cp -L "$program" "$work/bin/"
done
for program in tools/.libs/lt-access-bench tools/.libs/access-bench tools/access-bench; do
	[ ! -x "$top_builddir/$program" ] || break
done
cp "$top_builddir/$program" "$work/bin/access-bench"
chmod -R a+rX "$work/bin"

free_ports 2
read -r port_a port_b <"$work/ports"
(umask 077 && head -c 48 /dev/urandom | base64 >"$work/cluster.key")
chown 65200 "$work/cluster.key"
# carl is another man on each of the two, by one number
for name in carl eve; do
	printf 'root:x:0:0::/:/bin/sh\nanna:x:65201:65201::/:/bin/sh\nbert:x:65202:65202::/:/bin/sh\n%s:x:65203:65203::/:/bin/sh\n' \
		$name >"$work/passwd-$name"
done
# node NAME PORT CARL: starts it, where uid 65203 is called CARL; its socket is in $socket, its pid in $daemon
node() {
	socket=$work/$1/socket
	mkdir "$work/cache-$1"
	chown 65200:65200 "$work/cache-$1"
	# shellcheck disable=SC2016 # the shell in the namespace is to expand it
	unshare --mount sh -c 'mount --bind "$1" /etc/passwd && shift && exec "$@"' sh "$work/passwd-$3" \
		"$work/bin/accessd" --dir "$work/$1" --set user=65200 --set public_user=65204 --set workers=1 \
		--set tenant_idle_s=3600 --set linger_s=3600 --set cache_dir="$work/cache-$1" --set cache_size=64M \
		--set cache_force=1 --set cache_point=packed --set node_name="$1" --set peer_listen="127.0.0.1:$2" \
		--set peers="static:127.0.0.1:$port_a,127.0.0.1:$port_b" --set peer_key="$work/cluster.key" \
		--set cluster_paths="/nowhere:$work/shared/" 2>>"$work/accessd.log" &
	daemon=$!
	cleanup_fn "kill -KILL $daemon"
	until_true $patience answers || fail "accessd of node $1 does not answer"
}
at() { # at NAME COMMAND...: with $socket of that node
	socket=$work/$1/socket
	shift
	"$@"
}
job() { # job NODE UID FOLDER RESULT
	setpriv --reuid="$2" --regid="$2" --clear-groups env LD_LIBRARY_PATH="$work/bin" "$work/bin/access-bench" \
		--socket "$work/$1/socket" --dataset "$3" --pipeline imagenet-train-u8 --verify --quiet --json - >"$work/$4.json" ||
		fail "the job of $2 on node $1: $(cat "$work/$4.json")"
	exactly_once "$work/$4.json"
}
# channels: of whom there are any at this node, as "65201 public"
channels() {
	"$ctl" --socket "$socket" --json status | python3 -c '
import json, sys
channels = json.load(sys.stdin)["cluster"]["channels"]
print(*sorted({"public" if one["public"] else str(one["uid"]) for one in channels}))'
}
are_channels() { # are_channels WORDS
	[ "$(channels)" = "$1" ]
}
# got NODE FOLDER: of the stream of these data: is it public, files read, samples from the other node
got() {
	"$ctl" --socket "$work/$1/socket" --json status | python3 -c '
import json, sys
[one] = [one for one in json.load(sys.stdin)["streams"] if one["dataset"] == sys.argv[1]]
print("public" if one["public"] else "own", one["cache"]["misses"], one["cache"]["peer_hits"])' "$work/$2"
}
came() { # came NODE FOLDER KIND: of 200, but for those that it tries something with or does not wait for
	read -r kind files peers <<-END
		$(got "$1" "$2")
	END
	[ "$kind" = "$3" ] && [ "$files" -le 60 ] && [ "$peers" -ge 1 ]
}
# shares FOLDER KIND UID UID: what one made of it on node a comes to the other on node b. Who does not answer in time is not waited for,
# so on a machine with much else to do it is tried again, with data of the same kind.
shares() {
	for try in 1 2 3 4 5; do
		cp -a "$work/$1" "$work/$1-$try"
		find "$work/$1-$try" -type f -exec touch -d "2001-01-0$try" {} + # by names, sizes and times it is another one
		keeps 0
		enough=$((total + 200))
		job a "$3" "$work/$1-$try" "made-$try"
		until_true $patience keeps $enough || fail "of what was made $total of $enough are kept"
		job b "$4" "$work/$1-$try" "came-$try"
		! came b "$1-$try" "$2" || return 0
	done
	fail "node b has $1-$try as $kind: of 200 it read $files, and had $peers from the other node"
}
none_came() { # none_came NODE FOLDER KIND FILES
	[ "$(got "$1" "$2")" = "$3 $4 0" ] || fail "node $1 had $2 from the other node: $(got "$1" "$2")"
}
keeps() { # keeps N: this is kept by all domains of both nodes together
	total=0
	for name in a b; do
		for values in $(at "$name" status "caches.*.values"); do
			total=$((total + values))
		done
	done
	[ $total -ge "$1" ]
}

! refused=$("$accessd" --private --dir "$work/none" --set peers=static:127.0.0.1 --set cluster_paths=/data:shared 2>&1) ||
	fail "accessd takes a folder without a place"
echo "$refused" | grep -q 'cluster_paths: "shared" is no folder' || fail "no word of cluster_paths: $refused"

mkdir "$work/shared" "$work/aside"
"$pictures" "$work/shared/data" 200 4 80
"$pictures" "$work/shared/few" 8 2 40
"$pictures" "$work/aside/data" 100 4 80
for name in anna bert carl; do
	mkdir "$work/$name"
	cp -a "$work/shared/data" "$work/$name/data"
done
chmod -R a+rX "$work/shared" "$work/aside"
chown -R 65201:65201 "$work/anna" && chown -R 65202:65202 "$work/bert" && chown -R 65203:65203 "$work/carl"
chmod 0700 "$work/anna" "$work/bert" "$work/carl"

node a "$port_a" carl
node b "$port_b" eve

# ---- open to everybody: anna on one node, bert on the other one ----

job a 65201 "$work/shared/few" first
job b 65202 "$work/shared/few" second
for name in a b; do
	until_true $patience at "$name" are_channels public || fail "node $name is connected for: $(at "$name" channels)"
done
shares shared/data public 65201 65202
"$ctl" --socket "$work/b/socket" peers | tr '\n' ' ' >"$work/peers.txt"
grep -q "what is open to everybody is shared below .*/shared" "$work/peers.txt" || fail "peers: $(cat "$work/peers.txt")"

# Elsewhere they are each node's own, and it is said why.
job a 65201 "$work/aside/data" anna-aside
job b 65202 "$work/aside/data" bert-aside
none_came b aside/data public 100
at b status "streams.*.cache.peers.why_not" | grep -q "below none of cluster_paths" || fail "no word why they stay here"

# ---- nobody else's: anna's own come to anna alone ----

keeps 0
enough=$((total + 200))
job a 65203 "$work/carl/data" carl
until_true $patience keeps $enough || fail "of what was made $total of $enough are kept"
job b 65203 "$work/carl/data" eve
job b 65202 "$work/bert/data" bert
job b 65201 "$work/shared/few" third
until_true $patience at b are_channels "65201 public" || fail "node b is connected for: $(at b channels)"
none_came b bert/data own 200
none_came b carl/data own 200
shares anna/data own 65201 65201
are_channels "65201 public" || fail "node b is connected for: $(at b channels)"
