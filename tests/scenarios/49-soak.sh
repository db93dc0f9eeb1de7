#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# A small round of bench/soak: jobs, opens, deaths of all kinds, and a new accessd. No sample is missed, and accessd's descriptors
# and mappings, and what of its heap is in use, are as before.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires python3
chmod 0755 "$work" # its users' jobs come here

python3 "${top_srcdir:-.}/bench/soak" "$top_builddir" --seconds 1 --jobs 4 --opens 40 >"$work/soak.txt" 2>"$work/soak.log" ||
	fail "$(cat "$work/soak.txt" "$work/soak.log")"
grep -q ' 0 of [1-9][0-9]* samples' "$work/soak.txt" || fail "nothing was counted: $(cat "$work/soak.txt")"
grep -q ' [1-9][0-9]* of them refused; [1-9][0-9]* of our' "$work/soak.txt" || fail "nothing was opened, or killed: $(cat "$work/soak.txt")"
grep -q 'its heap in use' "$work/soak.txt" || echo "not tested: what of accessd's heap is in use: a sanitizer has its own, or there are no shared libraries"
