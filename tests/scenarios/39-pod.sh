#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 36: accessd and a job as doc/kubernetes has them. The job is in user, process, mount, network and IPC
# namespaces of its own, no root, without capabilities, under a seccomp profile as container runtimes have, on a
# read-only root with 64 MB of /dev/shm, and has one folder of the node. It gets all samples exactly once, puts
# nothing into /dev/shm, and what is wrong is named: no folder, no accessd, data that accessd does not see. accessd is
# under the same profile, in a mount namespace of its own. A job that opens a URL is told what is missing, and has it by the second mount
# of job.yaml.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires unshare mount pivot_root
unshare -rmpinu --fork --kill-child unshare -U --map-user=1000 --map-group=1000 true 2>/dev/null ||
	skip "no user, mount, process, network and IPC namespaces here"
profiled=$(cd "$top_builddir" && pwd -P)/tests/scenarios/profiled
"$profiled" true || skip "no seccomp filter here"

tree=$(cd "$top_builddir" && pwd -P)
"$pictures" "$work/data" 400 2 100
mkdir "$work/root" "$work/out"

# pod COMMAND...: in the container; $folder is mounted at /run/accessd, or nothing if it is empty; $buckets at buckets in it, to be written to.
export folder='' buckets='' tree work profiled
cat >"$work/pod" <<'END'
#!/bin/sh
exec unshare -rmpinu --fork --kill-child sh -euc '
	root=$work/root
	mount -t tmpfs -o mode=0755 image "$root"
	for top in /usr /etc "$tree"; do
		mkdir -p "$root$top"
		mount --rbind "$top" "$root$top"
		mount -o remount,bind,ro "$root$top"
	done
	for link in /bin /sbin /lib /lib64; do
		[ ! -L $link ] || cp -d $link "$root/"
	done
	mkdir -p "$root/run/accessd" "$root/proc" "$root/dev/shm" "$root/old"
	if [ -n "$folder" ]; then
		mount --bind "$folder" "$root/run/accessd"
		mount -o remount,bind,ro "$root/run/accessd"
	fi
	if [ -n "$buckets" ]; then
		mount --bind "$buckets" "$root/run/accessd/buckets"
	fi
	for device in null zero full urandom; do
		: >"$root/dev/$device"
		mount --bind /dev/$device "$root/dev/$device"
	done
	mount -t tmpfs -o size=64m,mode=1777 shm "$root/dev/shm"
	mount -t proc proc "$root/proc"
	cd "$root"
	pivot_root . old
	umount -l old
	rmdir old
	mount -o remount,ro /
	exec unshare -U --map-user=1000 --map-group=1000 env -i PATH=/usr/sbin:/usr/bin HOME=/nonexistent \
		ACCESS_SOCKET=/run/accessd/socket ACCESS_LIBEXEC="$tree/libexec" "$profiled" "$@"' sh "$@"
END
chmod +x "$work/pod"
pod() {
	timeout $longest "$work/pod" "$@"
}

# ---- the container is what it says: else the rest tests nothing --------------------------------------
cat >"$work/looks" <<'END'
refused() {
	if "$@" 2>/dev/null; then echo "$* was not refused"; fi
}
[ "$(id -u)" = 1000 ] || echo "the user is $(id -u)"
grep -qx 'CapEff:[[:blank:]]*0*' /proc/self/status || echo "it has capabilities"
grep -qx 'Seccomp:[[:blank:]]*2' /proc/self/status || echo "it has no filter"
grep -qx 'NoNewPrivs:[[:blank:]]*1' /proc/self/status || echo "it could get privileges"
refused touch /file
refused touch /run/accessd/file
refused unshare -U true
refused unshare -m true
refused nsenter -t 1 -U true
[ "$(stat -f -c '%b %S' /dev/shm | awk '{ print $1 * $2 / 1048576 }')" = 64 ] || echo "/dev/shm has another size"
[ "$(grep -c : /proc/net/dev)" = 1 ] || echo "it has a network"
[ ! -e "$1" ] || echo "the data are there"
END
looks=$(pod sh -c "$(cat "$work/looks")" sh "$work/data") || fail "no container"
[ -z "$looks" ] || fail "the container: $looks"

# ---- accessd: its own mounts, the profile of containers, and nothing of the machine to write to but two folders ---------
mkdir -m 0700 "$dir"
cat >"$work/accessd" <<'END'
#!/bin/sh
exec unshare -rm sh -euc '
	mount --bind "$work/node" "$work/node"
	mount --bind "$work/cache" "$work/cache"
	mount -o remount,bind,ro /
	! touch "$work/out/file" 2>/dev/null
	exec "$profiled" "$real" "$@"' sh "$@"
END
chmod +x "$work/accessd"
export real="$accessd"
accessd=$work/accessd
start_accessd workers=2 chunk=16

# ---- the job --------------------------------------------------------------------------------------------
job() { # job DATASET: its result in $work/job.json, what it says in $work/job.log
	# shellcheck disable=SC2016 # expanded in the container
	pod sh -c '
		code=0
		"$0" --dataset "$1" --pipeline imagenet-train-u8 --batch 16 --jobs 2 --epochs 3 --quiet --verify \
			--json /dev/shm/result.json >&2 || code=$?
		cat /dev/shm/result.json 2>/dev/null || true
		rm -f /dev/shm/result.json
		find /dev/shm -type f >&2
		exit $code' "$tree/tools/access-bench" "$1" >"$work/job.json" 2>"$work/job.log"
}
folder=$dir
job "$work/data" || fail "the job: $(cat "$work/job.log")"
exactly_once "$work/job.json"
"$expect" "$work/job.json" "jobs.*.error" == null "jobs.*.epochs" == 3 "jobs.*.reconnects" == 0 || fail "the job was not served"
! grep -q /dev/shm "$work/job.log" || fail "something was left in /dev/shm: $(cat "$work/job.log")"
pod "$tree/tools/access-ctl" status >"$work/out/status" || fail "access-ctl in the container: $(cat "$work/out/status")"

# ---- what is wrong is named ---------------------------------------------------------------------------------
refused() { # refused DATASET WORDS...
	job "$1" && fail "a job trained on $1"
	shift
	for words; do
		grep -q -e "$words" "$work/job.log" "$work/job.json" || fail "no word of \"$words\": $(cat "$work"/job.*)"
	done
}
refused /only/in/the/job "cannot open dataset.*/only/in/the/job.*mounted"
if [ -x "$tree/libexec/access-bucket" ]; then
	mkdir -m 1777 "$dir/buckets" # as a system accessd makes it
	refused s3://bucket/data "cannot make the folder /run/accessd/buckets/1000.*Read-only file system" "buckets.* in it can be written to.*job.yaml"
	buckets=$dir/buckets
	refused "s3://bucket/data?endpoint=http://127.0.0.1:9,anonymous=1" "s3://bucket: 127.0.0.1" # it is written to, and there is no network
	[ -d "$dir/buckets/1000" ] || fail "the job has no folder for its URL: $(ls -la "$dir/buckets")"
	buckets=
fi
folder=
refused "$work/data" "/run/accessd/socket"
folder=$dir
stop_accessd
refused "$work/data" "/run/accessd/socket"
