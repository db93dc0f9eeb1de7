#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# All that goes over RDMA: in a small VM whose kernel has soft-RoCE devices, made by rdma-vm where it is at hand (RDMA_VM=PATH
# says where), for the kernel of this machine has seldom one. The carrier's tests, whole nodes (verbs_nodes.py), what is said
# where RDMA cannot be had, and that the devices have nothing of ours left at the end.
#
#	tests/cluster/verbs.sh             starts the VM; OA_TEST_CYCLES=N: so many connections one after the other (30)
#	tests/cluster/verbs.sh --cycles N  connections alone, and a death in each tenth: 1000 take a minute
#	tests/cluster/verbs.sh --within    in it
#
# An emulated machine is some twenty times slower than this one: lines that begin with "verbs:" and "cycles:" tell how far it is.
#
# In the build's folder, after make tests/cluster/carrier_test tests/scenarios/pictures. make check does not know it.
set -u
top_srcdir=$(cd "$(dirname "$0")/../.." && pwd -P)
top_builddir=$PWD
export top_srcdir top_builddir ACCESS_LIBEXEC=$top_builddir/libexec
skip() {
	echo "verbs: skipped: $1"
	exit 77
}
fail() {
	echo "verbs: $1" >&2
	[ -z "${before-}" ] || { # in the VM: what devices and kernel have to say
		rdma statistic
		dmesg | tail -n 20
	} >&2
	exit 1
}
say() {
	echo "verbs: $1 ($SECONDS s)"
}
test=$top_builddir/tests/cluster/carrier_test

# refuses TEXT [NAME=VALUE]...: by RDMA or not at all, it is refused with that reason; and otherwise goes by TCP, and says it, too
refuses() {
	text=$1
	shift
	for transport in rdma auto; do
		env OA_TEST_TRANSPORT=$transport OA_TEST_REFUSED="$text" "$@" "$test" || fail "no word of \"$text\" ($transport)"
	done
	say "refused: $text"
}

# nothing_left WHAT: the devices have what they had
nothing_left() {
	[ "$(rdma resource)" = "$before" ] || fail "$1 left something: $(rdma resource), and before: $before"
	say "$1: good"
}

within() {
	before=$(rdma resource)
	# With devices at both ends all of them, and peers that are none by TCP.
	OA_TEST_TRANSPORT=auto "$test" || fail "the carrier's tests over RDMA"
	nothing_left "carriers, some of which died"
	[ -z "${CK_RUN_CASE-}" ] || return 0
	folder=$(mktemp -d)
	/usr/bin/python3 "$top_srcdir/tests/cluster/verbs_nodes.py" "$top_builddir" "$folder" ||
		fail "whole nodes over RDMA: $(tail -n 30 "$folder"/*.log)"
	nothing_left "whole nodes"
	rdma link delete rxe1
	ip link set net1 up # the other end of net0's wire, which was taken down
	until grep -q ACTIVE /sys/class/infiniband/rxe0/ports/1/state; do sleep 0.1; done
	(ulimit -l 64 && refuses "LimitMEMLOCK") || exit 1
	chmod 600 /dev/infiniband/uverbs0
	refuses "cannot be opened (Permission denied)" OA_TEST_AS=1000:1000
	chmod 666 /dev/infiniband/uverbs0
	ip link set net0 down
	refuses "is down"
	ip link set net0 up
	rdma link delete rxe0
	refuses "no RDMA device"
}

case ${1-} in
--within)
	within
	exit
	;;
--cycles)
	export OA_TEST_CYCLES=${2:?so many connections} CK_RUN_CASE=often RDMA_VM_TIMEOUT=$((600 + $2))
	;;
esac
[ -x "$test" ] || skip "this build has no cluster"
[ -f "$top_builddir/cluster/access_carrier-verbs_ib.o" ] || [ -f "$top_builddir/cluster/verbs_ib.o" ] ||
	skip "this build has no libibverbs"
for vm in "${RDMA_VM:-}" "$top_srcdir/tools/rdma-vm" "$top_srcdir/../shared/tools/rdma-vm"; do
	[ -n "$vm" ] && [ -x "$vm" ] && break
	vm=
done
[ -n "$vm" ] || skip "no rdma-vm, which makes a machine with an RDMA device"
[ "$(id -u)" = 0 ] || skip "rdma-vm installs what it needs, as root"
RDMA_VM_LINKS=2 RDMA_VM_BOOT_TIMEOUT=${RDMA_VM_BOOT_TIMEOUT:-600} RDMA_VM_TIMEOUT=${RDMA_VM_TIMEOUT:-1800} \
	"$vm" /bin/bash "$top_srcdir/tests/cluster/verbs.sh" --within
status=$?
[ $status -ne 125 ] || skip "the VM cannot be started"
exit $status
