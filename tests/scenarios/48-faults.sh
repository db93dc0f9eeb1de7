#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Nodes as network namespaces, and all that may go wrong between and in them, while jobs train: faults.py says what.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
[ -x "$top_builddir/cluster/access-gate" ] || skip "this build has no cluster"
[ "$(id -u)" = 0 ] || skip "needs root, for namespaces"
requires python3 unshare nsenter ip
unshare --mount --net true 2>/dev/null || skip "no mount and network namespaces here"
unshare --mount --net ip link add one type veth peer name two 2>/dev/null || skip "no pairs of network devices here"
unshare --mount --net ip link add bridge type bridge 2>/dev/null || skip "no bridges of a network here"
code=0
unshare --mount --net --propagation private --fork --kill-child timeout $longest python3 \
	"$top_srcdir/tests/scenarios/faults.py" "$(realpath "$top_builddir")" "$work" "${N:-15}" "${SEED:-1}" || code=$?
[ $code = 0 ] || fail "faults.py: status $code"
