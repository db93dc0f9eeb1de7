#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 23, 25 with a real systemd: it runs in namespaces of its own, over overlays of this machine, with accessd's units as
# they are installed. It starts when accessd is ready, starts it again when its loop stands still, reads its
# configuration again, restarts it under jobs of another user, and holds its socket meanwhile.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

# ---- the machine: accessd's units, over the build --------------------------------------------------------------------------

program_of() { # program_of PATH: what libtool's script runs, when it has made it
	"$1" --help >/dev/null
	for program in "${1%/*}/.libs/lt-${1##*/}" "${1%/*}/.libs/${1##*/}" "$1"; do
		[ ! -x "$program" ] || break
	done
	echo "$program"
}
make_units() { # make_units BUILD CONFIGURATION SYSUSERS TMPFILES
	cp "$1/units/accessd.service" "$1/units/access-exporter.service" "${3%/units/*}/units/accessd.socket" "$units/"
	mkdir "$units/accessd.service.d"
	# As configured for /usr; and soon.
	cat >"$units/accessd.service.d/try.conf" <<-END
		[Service]
		ExecStart=
		ExecStart=$1/daemon/accessd --dir /run/accessd --set cache_dir=/var/cache/accessd
		ExecReload=
		ExecReload=/bin/kill -HUP \$MAINPID
		ExecReload=$(sed -n 's|^ExecReload=.*/accessd|'"$1"'/daemon/accessd|p' "$1/units/accessd.service")
		WatchdogSec=2
		MemoryMax=infinity
	END
	# There is no loopback in this machine.
	mkdir "$units/access-exporter.service.d"
	cat >"$units/access-exporter.service.d/try.conf" <<-END
		[Service]
		ExecStart=
		ExecStart=$exporter --socket /run/accessd/socket --listen /run/access-exporter/web
		Environment=LD_LIBRARY_PATH=$1/libaccess/.libs
		MemoryMax=infinity
	END
	mkdir -p "$root/etc/systemd/system" "$root${2%/*}"
	[ "$2" = /etc/accessd.conf ] || ln -sf /etc/accessd.conf "$root$2"
	chroot "$root" systemd-sysusers - <"$3"
	chroot "$root" systemd-tmpfiles --create - <"$4"
}
make_machine() { # make_machine PLACE BUILD CONFIGURATION SYSUSERS TMPFILES
	exporter=$(program_of "$2/exporter/access-exporter")
	make_root "$1" "$2" "$work"
	shift
	make_units "$@"
}
. "${top_srcdir:-.}/tests/scenarios/machine.sh"

requires python3
build=$(realpath "$top_builddir")
source=$(realpath "${top_srcdir:-.}")
sysconf=$(sed -n 's/^sysconfdir = //p' "$build/Makefile" | sed "s|\${prefix}|$(sed -n 's/^prefix = //p' "$build/Makefile")|")
machine_start "$build" "$sysconf/accessd.conf" "$source/units/sysusers/accessd.conf" "$source/units/tmpfiles/accessd.conf"

# ---- in it --------------------------------------------------------------------------------------------------------------

wrap ctl "$build/tools/access-ctl"
as_user="setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/tmp LD_LIBRARY_PATH=$build/libaccess/.libs"
wrap bench "$as_user $(program_of "$build/tools/access-bench")"
ctl=$work/ctl bench=$work/bench socket=/run/accessd/socket
told() { # told TEXT: in the status
	case $(property StatusText) in *"$1"*) ;; *) return 1 ;; esac
}

"$pictures" "$work/data" 600 3 200
chmod -R a+rX "$work/data"

# Its start is over when it serves, not when it runs.
set_config 'workers = 1' 'chunk = 64' 'cache_size = 0'
inside systemctl start accessd || fail "$(inside systemctl status accessd 2>&1)"
answers || fail "systemd calls it started, and it does not answer"
told "Serves: jobs 0" || fail "the status says: $(property StatusText)"

# One that is stopped is started again, and two jobs go on.
stand_still() {
	while_training "the jobs do not start" trains 2 || return 1
	before=$(property MainPID) restarts=$(property NRestarts)
	inside kill -STOP "$before"
	until_true $patience property_is NRestarts $((restarts + 1)) || fail "systemd lets it stand still"
	while_training "the jobs do not go on" trains 2
}
training stopped 15 stand_still --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16
"$expect" "$work/stopped.json" "jobs.*.reconnects" ">=" 1 "jobs.*.error" == null
told "Serves: jobs 0" || until_true $patience told "Serves: jobs 0" || fail "the status says: $(property StatusText)"

# Readers that somebody has stopped are replaced, and accessd stays.
stop_readers() {
	while_training "the jobs do not start" trains 2 || return 1
	before=$(property MainPID) restarts=$(status node.reader_restarts)
	# shellcheck disable=SC2046 # numbers
	inside kill -STOP $(status "tenants.*.reader_pid")
	while_training "stopped readers are not replaced" status_is node.reader_restarts ">" "$restarts" || return 1
	while_training "the jobs do not go on" trains 2
}
training readers 15 stop_readers --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16
property_is MainPID "$before" || fail "accessd was started again for a stopped reader"

# A reload changes what it can, and says what it cannot and what is wrong.
before=$(property MainPID)
set_config 'workers = 2' 'chunk = 64' 'cache_size = 0' 'linger_s = 0'
inside systemctl reload accessd
until_true $patience told "needs a restart: workers" || fail "the status says: $(property StatusText)"
set_config 'linger_s = soon'
! inside systemctl reload accessd 2>"$work/reload" || fail "a reload of what is wrong succeeds"
until_true $patience told 'linger_s: "soon" is not a whole number' || fail "the status says: $(property StatusText)"
property_is MainPID "$before" && property_is ActiveState active || fail "the reload was its end"

# Its metrics, by a service that is nobody else, and sees all.
scrape() {
	inside python3 -c 'import socket
sock = socket.socket(socket.AF_UNIX)
sock.connect("/run/access-exporter/web")
sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
print(sock.makefile().read())' >"$work/metrics" 2>/dev/null
}
inside systemctl start access-exporter || fail "$(inside systemctl status access-exporter 2>&1)"
until_true $patience scrape || fail "$(inside systemctl status access-exporter 2>&1)"
grep -qx 'oneaccess_up 1' "$work/metrics" && grep -qx 'oneaccess_sees_all 1' "$work/metrics" &&
	grep -q '^oneaccess_tenant_saved_cpu_seconds{uid="' "$work/metrics" || fail "it says: $(cat "$work/metrics")"
[ "$(inside systemctl show -P NRestarts access-exporter)" = 0 ] || fail "access-exporter was started again"
inside systemctl stop access-exporter

# Under its socket, restarts are nothing to jobs, and a job may be there before it.
set_config 'workers = 2' 'chunk = 64' 'cache_size = 0'
inside systemctl stop accessd
property_is Result success || fail "it ended with $(property Result)"
! answers || fail "somebody answers in its place"
inside systemctl start accessd.socket || fail "$(inside systemctl status accessd.socket 2>&1)"
answers || fail "the socket does not start accessd"
restart() {
	while_training "the jobs do not start" trains 3 || return 1
	inside systemctl restart accessd || fail "$(inside systemctl status accessd 2>&1)"
	inside test -S $socket || fail "the socket went with accessd"
	while_training "the jobs do not go on" trains 3
}
training restarted 15 restart --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 3 --batch 16
"$expect" "$work/restarted.json" "jobs.*.reconnects" ">=" 1 "jobs.*.error" == null
inside systemctl stop accessd.socket accessd
property_is Result success || fail "it ended with $(property Result)"

# Other nodes, by the commands of doc/cluster.md and what the package oneaccess-cluster adds to the unit. Nobody else is there.
if [ -x "$top_builddir/cluster/access-gate" ]; then
	page=$source/doc/cluster.md
	sed -n '/^    (umask 077/,/^    systemctl/p' "$page" >"$work/page"
	set_config "$(sed -n 's/^    \(peers = [^ ]*\) .*/\1/p' "$work/page")"
	sed -e '/^    peers = /d' "$work/page" >"$work/page.sh"
	[ "$(grep -c . "$work/page.sh")" = 4 ] || fail "the page's commands: $(cat "$work/page.sh")"
	inside sh -c 'echo "192.0.2.1 node1\n192.0.2.2 node2" >>/etc/hosts'
	inside sh -c 'cat >/usr/lib/systemd/system/accessd.service.d/cluster.conf' <"$source/units/cluster.conf"
	inside sh -c "ln -s '$build/tools/access-ctl' /usr/bin/ && systemctl daemon-reload && cd /root && sh -eu '$work/page.sh'" ||
		fail "a command of the page: $(inside systemctl status accessd 2>&1)"
	knows_others() {
		"$ctl" --socket $socket peers >"$work/peers" && grep -q 'listens on .*:7411, encrypted' "$work/peers" &&
			grep -q '^192\.0\.2\.1:7411 ' "$work/peers" && grep -q '^192\.0\.2\.2:7411 ' "$work/peers"
	}
	until_true $patience knows_others || fail "access-ctl peers: $(cat "$work/peers")"
	inside systemctl stop accessd
	property_is Result success || fail "it ended with $(property Result)"
fi
