#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 38: the file system of the cache folder becomes read-only, as one does that has found an error, before the
# start and in mid-run: jobs go on, and it is shown.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
. "${top_srcdir:-.}/tests/scenarios/disk.sh"
requires unshare mount mkfs.ext4 findmnt
[ "$(id -u)" = 0 ] || skip "only root can make a disk that breaks"
own_namespace "no mount namespace here" -m

error="Read-only file system"
make_disk() {
	rm -f "$work/disk"
	truncate -s 32M "$work/disk"
	mkfs.ext4 -q "$work/disk"
	mount -o loop,errors=remount-ro "$work/disk" "$work/cache" 2>/dev/null || skip "cannot mount an ext4 here"
	disk_fails=/sys/fs/ext4/$(basename "$(findmnt -no SOURCE "$work/cache")")/trigger_fs_error
	[ -w "$disk_fails" ] || skip "this ext4 has no trigger_fs_error"
}
break_disk() {
	echo "as the scenario wants" >"$disk_fails"
	! touch "$work/cache/one" 2>/dev/null || fail "the disk takes more: the scenario tests nothing"
}
disk_breaks_before_the_start
[ "$(grep -c 'cache-folder.*Read-only file system' "$work/accessd.log")" = 2 ] || fail "the log of the start says nothing of it"
disk_breaks_in_mid_run
status_is "caches.0.mode" == read-only "caches.0.write_errors" ">" 0 || fail "no write failed: $(cat "$work/status.json")"
stop_accessd
