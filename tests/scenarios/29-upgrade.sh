#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 17, 19: two builds, of this minor version and of the one before, under each other's jobs. accessd is replaced by the
# older one, by this one again, and so once more, by SIGTERM and by SIGKILL, while jobs of both libraries train, in carousel and in
# a fixed order, out of one store: each job gets each sample once, with the values that it has. What only the newer knows is
# refused in words. The older build is this one without what came last (tests/Makemodule.am) or, with ACCESS_OLDER=ROOT, a
# real one, its packages' files (scripts/build-older; ./check upgrade).
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

this=$accessd programs=${ACCESS_LIBEXEC:-$top_builddir/libexec}
older=$top_builddir/tests/scenarios/accessd_older older_programs=$programs older_bench=$bench
if [ -n "${ACCESS_OLDER:-}" ]; then
	at_ease= # which it may not know yet
	older=$ACCESS_OLDER/usr/sbin/accessd older_programs=$ACCESS_OLDER/usr/libexec older_bench=$work/older-bench
	printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$(dirname "$ACCESS_OLDER"/usr/lib/*/libaccess.so.0)" \
		"$ACCESS_OLDER/usr/bin/access-bench" >"$older_bench"
	chmod 0755 "$older_bench"
fi

becomes() { # becomes PROGRAM PROGRAMS
	accessd=$1
	export ACCESS_LIBEXEC="$2"
	start_accessd workers=2 cache_size=64M cache_point=packed
	[ ! -r "/proc/$daemon/exe" ] || # which is root's to read
		[ "$(readlink "/proc/$daemon/exe")" = "$(realpath "$1")" ] || fail "another accessd than $1 runs"
}
all_go_on() { # in the one, and in the other; status 1 when jobs of either library ended before
	while_training "the jobs do not go on under $accessd" all_train_or_end && ! is_gone "$beside"
}
all_train_or_end() {
	is_gone "$beside" || all_train 5
}
train_beside() { # train_beside OPTION...: jobs of the older library, for as long as training's
	timeout $longest "$older_bench" --socket "$socket" --epochs "$train_epochs" --json "$work/older.json" --quiet --verify \
		--dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16 "$@" 2>>"$work/bench.log" &
	beside=$!
	cleanup_fn "kill -TERM $beside"
}
rolls() {
	train_beside --order seeded --plan-seed 7
	all_go_on || return 1
	for end in TERM KILL; do
		[ $end = KILL ] || stop_accessd
		[ $end = TERM ] || { kill -KILL "$daemon" && wait "$daemon" || true; }
		becomes "$older" "$older_programs"
		all_go_on || return 1
		[ $end = KILL ] || stop_accessd
		[ $end = TERM ] || { kill -KILL "$daemon" && wait "$daemon" || true; }
		becomes "$this" "$programs"
		all_go_on || return 1
	done
}
upgrade() {
	good=0
	rolls || good=1
	wait "$beside" || { [ $good = 1 ] && "$expect" "$work/older.json" "jobs.*.error" == null; } ||
		fail "access-bench of the older build says so: $("$expect" "$work/older.json" "jobs.*.error" 2>&1)"
	return $good
}

"$pictures" "$work/data" 1000 3 200
becomes "$this" "$programs"
training result 20 upgrade --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 3 --batch 12,16,20
"$expect" "$work/result.json" "jobs.*.reconnects" ">=" 4 "jobs.*.error" == null
exactly_once "$work/older.json"
"$expect" "$work/older.json" "jobs.*.reconnects" ">=" 4 "jobs.*.error" == null
stop_accessd

# What one of them has kept of shards, their index and their samples, the other one takes or makes anew.
mkdir "$work/shards"
"$pictures" "$work/few" 60 3 100
"$ctl" convert "$work/few" "$work/shards/few.tar" >/dev/null || fail "no shards"
for turn in older this older; do
	[ $turn = this ] || becomes "$older" "$older_programs"
	[ $turn = older ] || becomes "$this" "$programs"
	for program in "$older_bench" "$bench"; do
		timeout $longest "$program" --socket "$socket" --dataset "$work/shards" --pipeline imagenet-train-u8 --batch 16 --verify --quiet \
			--json "$work/shards.json" || fail "shards under $accessd"
		exactly_once "$work/shards.json"
	done
	stop_accessd
done

# What came last is not asked of who does not know it.
becomes "$older" "$older_programs"
told=$("$bench" --socket "$socket" --dataset name:pets 2>&1) && fail "the older accessd knows names"
case $told in
*'older than data sets with names: upgrade accessd'*) ;;
*) fail "that is not what is wrong: $told" ;;
esac
if [ -x "$top_builddir/tools/access-top" ]; then
	"$top_builddir/tools/access-top" --socket "$socket" -b --json -n 2 -d 0.1 >"$work/top.json" || fail "access-top"
	grep -q '"pid": *'"$daemon" "$work/top.json" || fail "access-top does not see it: $(head -c 400 "$work/top.json")"
fi
stop_accessd
