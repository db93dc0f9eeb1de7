#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 38: the disk of the cache folder is full, at the start and in mid-run: jobs go on, it is shown, and used
# again when there is room.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
. "${top_srcdir:-.}/tests/scenarios/disk.sh"
requires unshare mount
own_namespace "no user and mount namespaces here" -rm

error="No space left on device"
make_disk() {
	mount -t tmpfs -o size=160m tmpfs "$work/cache" || skip "cannot mount a tmpfs here"
}
break_disk() {
	head -c $((167772160 - $1)) /dev/zero >"$work/cache/others" 2>/dev/null || true
}
mend_disk() {
	rm "$work/cache/others"
}
disk_breaks_before_the_start
disk_is_full_in_mid_run
