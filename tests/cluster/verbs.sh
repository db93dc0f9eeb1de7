#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The carrier's tests over RDMA: in a small VM whose kernel has a soft-RoCE device, made by rdma-vm where it is at hand
# (RDMA_VM=PATH says where), for the kernel of this machine has seldom one. Then what is said where RDMA cannot be had, and
# that the device has nothing of ours left at the end.
#
#	tests/cluster/verbs.sh           starts the VM; OA_TEST_CYCLES=N: so many connections one after the other (30)
#	tests/cluster/verbs.sh --within  in it
set -u
: "${top_srcdir:=.}" "${top_builddir:=.}"
skip() {
	echo "verbs: skipped: $1"
	exit 77
}
fail() {
	echo "verbs: $1" >&2
	exit 1
}
test=$top_builddir/tests/cluster/carrier_test

# refuses TEXT [NAME=VALUE]...: by RDMA or not at all, it is refused with that reason; and otherwise goes by TCP, and says it, too
refuses() {
	text=$1
	shift
	for transport in rdma auto; do
		env OA_TEST_TRANSPORT=$transport OA_TEST_REFUSED="$text" "$@" "$test" || fail "no word of \"$text\" ($transport)"
	done
}

within() {
	before=$(rdma resource)
	# With devices at both ends all of them, and peers that are none by TCP.
	OA_TEST_TRANSPORT=auto "$test" || fail "the carrier's tests over RDMA"
	[ "$(rdma resource)" = "$before" ] || fail "what died left something: $(rdma resource), and before: $before"
	(ulimit -l 64 && refuses "LimitMEMLOCK") || exit 1
	chmod 600 /dev/infiniband/uverbs0
	refuses "cannot be opened (Permission denied)" OA_TEST_AS=1000:1000
	chmod 666 /dev/infiniband/uverbs0
	ip link set net0 down
	refuses "is down"
	ip link set net0 up
	rdma link delete rxe0
	refuses "no RDMA device"
	echo "verbs: all of it; $before"
}

if [ "${1-}" = --within ]; then
	within
	exit
fi
[ -x "$test" ] || skip "this build has no cluster"
[ -f "$top_builddir/cluster/access_carrier-verbs_ib.o" ] || [ -f "$top_builddir/cluster/verbs_ib.o" ] ||
	skip "this build has no libibverbs"
for vm in "${RDMA_VM:-}" "$top_srcdir/tools/rdma-vm" "$top_srcdir/../shared/tools/rdma-vm"; do
	[ -n "$vm" ] && [ -x "$vm" ] && break
	vm=
done
[ -n "$vm" ] || skip "no rdma-vm, which makes a machine with an RDMA device"
[ "$(id -u)" = 0 ] || skip "rdma-vm installs what it needs, as root"
RDMA_VM_TIMEOUT=${RDMA_VM_TIMEOUT:-300} top_srcdir=$top_srcdir top_builddir=$top_builddir "$vm" /bin/bash "$0" --within
status=$?
[ $status -ne 125 ] || skip "the VM cannot be started"
exit $status
