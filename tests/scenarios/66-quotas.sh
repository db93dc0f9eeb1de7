#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# The accessd of a machine, and what its administrator changes under jobs: a user whose quotas become less than what the user has keeps
# it, and gets no more, with the quota's name; more again, and the next job is served. Root, who has no cache, is told whose to name.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
[ "$(id -u)" = 0 ] || skip "needs root, to be several users"
requires setpriv
chmod 0755 "$work"
setpriv --reuid=65201 --regid=65201 --clear-groups test -x "$work" || skip "other users cannot go where TMPDIR is"

# The build may lie where other users cannot go.
mkdir "$work/bin" "$work/cache-of-it"
"$bench" --help >/dev/null
for program in "$accessd" "$top_builddir"/libexec/access-* "$top_builddir"/libaccess/.libs/libaccess.so*; do
	cp -L "$program" "$work/bin/"
done
for program in tools/.libs/lt-access-bench tools/.libs/access-bench tools/access-bench; do
	[ ! -x "$top_builddir/$program" ] || break
done
cp "$top_builddir/$program" "$work/bin/access-bench"
chmod -R a+rX "$work/bin"
chown 65200:65200 "$work/cache-of-it"
cat >"$work/bench-of-anna" <<END
#!/bin/sh
exec setpriv --reuid=65201 --regid=65201 --clear-groups env LD_LIBRARY_PATH="$work/bin" "$work/bin/access-bench" "\$@"
END
chmod +x "$work/bench-of-anna"
bench=$work/bench-of-anna
export ACCESS_LIBEXEC="$work/bin"

"$pictures" "$work/data" 400 2 100
chmod -R a+rX "$work/data"
umask 022
configure() { # configure LINE...: in force when this is over
	printf '%s\n' "$@" >"$work/accessd.conf"
	[ -n "${daemon:-}" ] || return 0
	said=$(grep -c ' reloaded ' "$work/accessd.log" || true)
	kill -HUP "$daemon"
	until_true $patience is_reloaded || fail "it is not read again: $(cat "$work/accessd.log")"
}
is_reloaded() {
	[ "$(grep -c ' reloaded ' "$work/accessd.log")" -gt "$said" ]
}
configure ""
"$work/bin/accessd" --config "$work/accessd.conf" --dir "$dir" --set user=65200 --set public_user=65204 --set workers=2 \
	--set cache_dir="$work/cache-of-it" --set cache_force=1 --set chunk=16 --set variants=1 --set memory_pressure=off 2>>"$work/accessd.log" &
daemon=$!
cleanup_fn "kill -KILL $daemon"
until_true $patience answers || fail "accessd does not answer"

another() { # another NAME PIPELINE: the status of one more job, which has its result in a pipe, as it may write to no folder
	timeout $longest "$bench" --socket "$socket" --dataset "$work/data" --pipeline "$2" --batch 16 --epochs 1 --quiet --json - \
		>"$work/$1.json" 2>>"$work/bench.log"
}
is_refused() { # is_refused NAME PIPELINE WORDS
	another "$1" "$2" && fail "$1: a job was served"
	"$expect" "$work/$1.json" jobs.0.error >"$work/error.txt"
	grep -q "$3" "$work/error.txt" || fail "$1: it was told: $(cat "$work/error.txt")"
}
two_train() {
	status_is jobs == 2 "jobs.*.active" == true "jobs.*.delivered" ">" 0
}

"$bench" --socket "$socket" --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --jobs 2 --step-ms 10 --epochs 60000 --quiet \
	2>>"$work/bench.log" &
run=$!
cleanup_fn "kill -TERM $run"
while_training "the jobs do not start" two_train || fail "the jobs ended"
configure "tenant_jobs = 2"
is_refused jobs imagenet-train-u8 "you have 2 jobs here.*of 2 that you may have (tenant_jobs).*raise tenant_jobs or tenant.65201.jobs"
configure "tenant.65201.memory = 1M"
is_refused memory imagenet-eval "Of your share .* are used.*can raise tenant_memory or tenant.65201.memory"
configure "tenant.65201.streams = 1"
is_refused streams '[{"op":"decode"},{"op":"resize","size":[16,16]}]' "streams"
two_train || fail "the jobs that have more do not go on: $(cat "$work/status.json")"
configure ""
another more imagenet-eval || fail "what is allowed again is not served: $("$expect" "$work/more.json" jobs.0.error)"

for command in ls "forget $work/data" "drop 12345678" verify; do
	# shellcheck disable=SC2086 # words
	"$ctl" --socket "$socket" cache $command >"$work/said" 2>&1 && fail "cache $command of root's did something: $(cat "$work/said")"
	grep -q -e "--user UID or --user everybody" "$work/said" || fail "cache $command says: $(cat "$work/said")"
	[ "$command" = "drop 12345678" ] || "$ctl" --socket "$socket" cache $command --user 65201 >"$work/said" 2>&1 || fail "cache $command --user 65201: $(cat "$work/said")"
done
two_train || fail "the jobs do not go on: $(cat "$work/status.json")"
