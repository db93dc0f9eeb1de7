# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
#
# Case 38, shared by the scenarios of a cache folder's disk, each a script with a disk of its own in a mount namespace
# of its own:
#	make_disk		mounts it at $work/cache, or skips
#	break_disk [BYTES]	no more than so many can be written to it from now on; $error says so in words
#	mend_disk		they can, where it can be mended
# own_namespace comes first.

# own_namespace WHAT OPTION...: goes on in one
own_namespace() {
	what=$1
	shift
	[ -z "${SCENARIO_INSIDE:-}" ] || return 0
	unshare "$@" true 2>/dev/null || skip "$what"
	code=0
	SCENARIO_INSIDE=1 TMPDIR="$work" unshare "$@" sh "$0" || code=$?
	exit $code
}
run_job() { # run_job NAME DATA
	timeout $longest "$bench" --socket "$socket" --epochs 2 --json "$work/$1.json" --quiet --verify --dataset "$work/$2" \
		--pipeline imagenet-train-u8 --batch 16 2>>"$work/bench.log" || fail "$1: $("$expect" "$work/$1.json" "jobs.*.error")"
	exactly_once "$work/$1.json"
}
is_shown() { # that nothing is written any more, with the disk's own words, or LMDB's of a disk that took a part
	! status_is "caches.0.mode" == on && "$expect" "$work/status.json" "caches.0.why" | grep -q "$error\|did not take all of it"
}
nobody_died() { # but for readers, where they may: up to $reader_deaths
	status_is pid == "$daemon" node.reader_restarts "<=" "${reader_deaths:-0}" node.worker_restarts == 0 node.parent_restarts == 0 \
		"caches.0.damaged" == 0 "caches.0.set_aside" == 0 || fail "somebody died of it: $(cat "$work/status.json")"
}
begin_accessd() {
	start_accessd workers=2 chunk=16 linger_s=0 cache_size=144M cache_force=1 cache_point=decoded
}
begin_disk() {
	make_disk
	cleanup_fn umount -l "$work/cache"
}

disk_breaks_before_the_start() {
	"$pictures" "$work/data" 400 2 100
	begin_disk
	begin_accessd # which has its folders when it can no more write to them
	stop_accessd
	break_disk 0
	begin_accessd
	run_job start data
	until_true $patience is_shown || fail "it is not shown at the start: $(cat "$work/status.json")"
	nobody_died
	stop_accessd
	umount "$work/cache"
}

# While a job trains over what is kept; another job's samples would be kept, too.
break_beside() {
	if [ ! -e "$work/is-broken" ]; then
		while_training "nothing is kept" status_is "caches.0.mode" == on "caches.0.values" ">" 0 || return 1
		break_disk 0
		touch "$work/is-broken"
	fi
	run_job other other
	while_training "it is not shown" is_shown || return 1
	while_training "the job does not go on" all_train 1
}
disk_breaks_in_mid_run() {
	"$pictures" "$work/other" 100 2 100
	begin_disk
	begin_accessd
	training result 100 break_beside --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16
	"$expect" "$work/result.json" "jobs.*.reconnects" == 0 || fail "the job noticed"
	nobody_died
}

# Half of what a job would have kept fits, which is several times what is written at once; then the rest, too.
keeps_again() { # the store tries by itself when there is something to write
	run_job again much
	status_is "caches.0.mode" == on "caches.0.why" == "" "caches.0.values" ">" "$kept"
}
is_filled() { # the last that is written at once may not fit, and a smaller part of it fit afterwards
	run_job full much
	is_shown
}
disk_is_full_in_mid_run() {
	"$pictures" "$work/much" 500 2 256
	begin_disk
	begin_accessd
	break_disk 50331648
	until_true $patience is_filled || fail "it is not shown: $(cat "$work/status.json")"
	nobody_died
	kept=$(status "caches.0.values")
	[ "$kept" -gt 0 ] && [ "$kept" -lt 500 ] || fail "$kept values are kept: that was not in mid-run"
	status_is "caches.0.write_errors" ">" 0 || fail "no write failed: $(cat "$work/status.json")"
	run_job kept much
	status_is "caches.0.hits" ">" 0 || fail "what is kept is not used: $(cat "$work/status.json")"
	mend_disk
	until_true $patience keeps_again || fail "it is not used again: $(cat "$work/status.json")"
	nobody_died
	stop_accessd
}
