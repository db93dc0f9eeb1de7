#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 38: a quota of the cache folder is exceeded, at the start and in mid-run, as 38-disk-full.sh. Of btrfs, whose
# quotas are folders', and root's, too.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
. "${top_srcdir:-.}/tests/scenarios/disk.sh"
requires unshare mount mkfs.btrfs btrfs
[ "$(id -u)" = 0 ] || skip "only root can make a disk with quotas"
own_namespace "no mount namespace here" -m

error="Disk quota exceeded"
make_disk() {
	rm -f "$work/disk"
	truncate -s 128M "$work/disk"
	mkfs.btrfs -q -m single "$work/disk" >/dev/null || skip "mkfs.btrfs cannot make a disk of 128 MiB"
	mkdir -p "$work/disk-all"
	mount -o loop "$work/disk" "$work/disk-all" 2>/dev/null || skip "cannot mount a btrfs here"
	btrfs quota enable "$work/disk-all" 2>/dev/null || skip "no quotas of btrfs here"
	btrfs subvolume create "$work/disk-all/cache" >/dev/null
	mount --bind "$work/disk-all/cache" "$work/cache"
	umount "$work/disk-all"
}
break_disk() {
	btrfs qgroup limit 16K "$work/cache" # less than what is there
}
mend_disk() {
	btrfs quota disable "$work/cache" # a limit cannot be changed when it is exceeded
}
# Also of the pages that LMDB maps a quota wants new ones there, or its process gets a signal.
reader_deaths=2
disk_breaks_before_the_start
disk_breaks_in_mid_run
mend_disk
stop_accessd
begin_accessd
is_kept() {
	run_job kept other
	status_is "caches.0.mode" == on "caches.0.values" ">" 100
}
until_true $patience is_kept || fail "it is not used again: $(cat "$work/status.json")"
stop_accessd
