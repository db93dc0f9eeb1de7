# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# A machine of its own for scenarios: a real systemd in namespaces, over overlays of this machine, where nothing of this machine's
# own units is. After functions.sh,
#	. "${top_srcdir:-.}/tests/scenarios/machine.sh"
#	make_machine "$@"         is run in it, before systemd is: a function of the scenario's own, which make_root begins
#	machine_start ARGUMENT... the scenario is run again, in namespaces, with these for make_machine
# and then there are: inside COMMAND..., wrap, property and what else is below. $work is at the same path in there.
self=$(realpath "$0")

cannot() {
	echo "skipped: this machine does not $*"
	exit 77
}
# make_root PLACE FOLDER...: $root, with these folders of this machine; $units is where units lie, and has targets alone.
make_root() {
	root=$1/root units=$1/root/usr/lib/systemd/system
	mount -t tmpfs -o mode=0755 machine "$1" || cannot "mount a tmpfs in a namespace"
	mkdir "$root"
	mount -t tmpfs -o mode=0755 machine "$root"
	mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/run" "$root/tmp" "$root/root" "$1/upper" "$1/aside"
	for link in /bin /sbin /lib /lib64; do
		[ ! -L $link ] || cp -d $link "$root/"
	done
	for top in etc usr var; do
		mkdir "$root/$top" "$1/upper/$top" "$1/aside/$top"
		mount -t overlay machine "$root/$top" -o \
			"lowerdir=/$top,upperdir=$1/upper/$top,workdir=$1/aside/$top,userxattr" || cannot "mount overlays"
	done
	mount -t proc proc "$root/proc"
	mount --bind "$root/proc/sys" "$root/proc/sys"
	mount -o remount,bind,ro "$root/proc/sys"
	mount -t sysfs -o ro sysfs "$root/sys" || cannot "mount sysfs in a namespace"
	mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" || cannot "mount cgroups in a namespace"
	mount -t tmpfs -o mode=0755 machine "$root/run"
	mount -t tmpfs -o mode=1777 machine "$root/tmp"
	mount -t tmpfs -o mode=0755 machine "$root/dev"
	for device in null zero full random urandom tty; do
		touch "$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device"
	done
	mkdir "$root/dev/shm" "$root/dev/pts"
	mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"
	mount -t tmpfs -o mode=0755 machine "$units"
	for target in try basic sysinit shutdown sockets multi-user umount; do
		printf '[Unit]\nDefaultDependencies=no\n' >"$units/$target.target"
	done
	shift
	for shared in "$@"; do
		mkdir -p "$root$shared"
		mount --bind "$shared" "$root$shared"
	done
}
# Where machine_start has called: the machine is made, and systemd is its first process.
if [ "${1:-}" = make-machine ]; then
	trap - EXIT
	rm -rf "$work"
	mount --make-rprivate /
	work=$3
	place=$2
	shift 3
	make_machine "$place" "$@"
	cd "$root"
	pivot_root . .
	umount -l .
	exec /usr/bin/env -i container=scenario PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		/lib/systemd/systemd --system --unit=try.target --log-target=kmsg --log-level=warning
fi

machine_start() {
	[ "$(id -u)" = 0 ] || skip "only root makes a machine of namespaces"
	requires unshare nsenter systemctl systemd-sysusers systemd-tmpfiles setpriv
	[ -x /lib/systemd/systemd ] || skip "systemd is not here"
	isolate="unshare --mount --pid --fork --kill-child --cgroup --ipc --uts --net"
	$isolate true 2>/dev/null || skip "this machine makes no namespaces"

	# A cgroup of its own, so that the namespace's root is below ours.
	mkdir "$work/cgroup" "$work/machine"
	chmod 1777 "$work"
	mount -t cgroup2 cgroup2 "$work/cgroup" 2>/dev/null || skip "this machine mounts no cgroups"
	cleanup_fn "umount '$work/cgroup'"
	cgroup=$work/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/access-scenario-$$
	mkdir "$cgroup" || skip "this machine makes no cgroups"
	cleanup_fn "find '$cgroup' -depth -type d -exec rmdir '{}' +"
	# shellcheck disable=SC2016,SC2086 # for that shell to expand; words are wanted
	sh -c 'echo $$ >"$0" && exec "$@"' "$cgroup/cgroup.procs" $isolate sh "$self" make-machine "$work/machine" "$work" "$@" \
		>"$work/machine.log" 2>&1 &
	machine=$!
	cleanup_fn "kill -KILL $machine"
	until_true $patience has_started_or_ended || fail "systemd does not start: $(cat "$work/machine.log")"
	if is_gone "$machine"; then
		grep '^skipped: ' "$work/machine.log" && exit 77
		fail "no systemd: $(cat "$work/machine.log")"
	fi
}
has_started_or_ended() {
	has_started || is_gone "$machine"
}
has_started() {
	init=$(children_of "$machine")
	[ -n "$init" ] && [ "$(cat "/proc/$init/comm")" = systemd ] && inside systemctl list-units >/dev/null 2>&1
}
inside() {
	nsenter -t "$init" -m -p -i -u -n -C -r -w "$@"
}
wrap() { # wrap NAME COMMAND...: a program $work/NAME that runs it in the machine
	name=$1
	shift
	printf '#!/bin/sh\nexec nsenter -t %s -m -p -i -u -n -C -r -w %s "$@"\n' "$init" "$*" >"$work/$name"
	chmod 0755 "$work/$name"
}
property() { # property NAME: of the service
	inside systemctl show -P "$1" accessd.service
}
property_is() {
	[ "$(property "$1")" = "$2" ]
}
set_config() {
	printf '%s\n' "$@" | inside sh -c 'cat >/etc/accessd.conf'
}
trains() { # trains JOBS: they are served
	status_is jobs == "$1" "jobs.*.active" == true "jobs.*.delivered" ">" 0
}
