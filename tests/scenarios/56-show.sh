#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# What ./quickstart --cluster 3 shows, of its last step: three nodes in network namespaces, where this user may make them, and on the
# loopback, with a word, where not. Files are read about once for all of them, a node is killed, and no job lacks a picture.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
needs_cluster

"$pictures" "$work/data" 200 4 100
show() { # show PATTERN: its first line has that
	timeout $longest python3 "${top_srcdir:-.}/tools/show-cluster" "$(realpath "$top_builddir")" "$work/data" 3 >"$work/shown" 2>&1 ||
		fail "show-cluster: $(cat "$work/shown")"
	head -n 1 "$work/shown" | grep -q "$1" || fail "no word of $1: $(cat "$work/shown")"
	[ "$(grep -c '^node-[123] .* yes$' "$work/shown")" = 5 ] || fail "a job lacks pictures: $(cat "$work/shown")"
	grep -q '^node-3 is killed' "$work/shown" || fail "nobody is killed: $(cat "$work/shown")"
	files=$(sed -n 's/.* 600 files; together they did \([0-9]*\): .*/\1/p' "$work/shown")
	[ "${files:-600}" -le 400 ] || fail "$files files were read for 3 x 200 samples"
}
mkdir "$work/bin"
printf '#!/bin/sh\nexit 1\n' >"$work/bin/ip"
chmod +x "$work/bin/ip"
(PATH=$work/bin:$PATH show "^No network namespaces can be made here .*loopback") || exit

try="ip link add cell type bridge && ip link add one type veth peer name two && nsenter --net=/proc/self/ns/net true"
unshare --net sh -c "$try" 2>/dev/null || unshare --user --map-root-user --net sh -c "$try" 2>/dev/null || {
	echo "not tested: nodes in network namespaces, which cannot be made here"
	exit 0
}
show "^3 nodes have met, each in a network namespace of its own"
