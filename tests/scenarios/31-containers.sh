#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Cases 15, 26: two jobs in containers of their own, with the same process id there: one is killed with all it
# holds, the other keeps its pins and goes on. The folder of the socket is mounted into a container: an accessd that
# is restarted is found again. The socket's file is mounted: the message says what to mount.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
requires unshare mount
unshare -rmpi --fork --kill-child true 2>/dev/null || skip "no user, mount, process and IPC namespaces here"

"$pictures" "$work/data" 400 2 100
mkdir "$work/inside"
# access-bench in namespaces of its own; it sees the folder $outside at $inside.
export outside='' inside="$work/inside" really="$bench"
cat >"$work/contained" <<'END'
#!/bin/sh
exec unshare -rmpi --fork --kill-child --mount-proc sh -c '
	[ -z "$outside" ] || mount --bind "$outside" "$inside" || exit 70
	"$really" "$@"' sh "$@"
END
chmod +x "$work/contained"
bench=$work/contained
inner() { # inner PID: its number in its container
	sed -n 's/^NSpid:.*[[:blank:]]//p' "/proc/$1/status"
}

start_accessd workers=2 chunk=16
holds_when_stopped() { # whatever happens, it cannot be at its end then
	kill -STOP "$stays" || return 1
	if status_is jobs == 2; then
		at_stays=$(index_of "$stays")
		"$expect" "$work/status.json" "jobs.$at_stays.pins" ">" 0 && return
	fi
	kill -CONT "$stays"
	return 1
}
meet() {
	while_training "the job does not train" all_train 1 || return 1
	stays=$(status jobs.0.pid)
	timeout $longest "$bench" --socket "$socket" --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 \
		--epochs 60000 --quiet 2>"$work/victim.log" &
	victim=$!
	cleanup_fn "kill -TERM $victim"
	while_training "the neighbour does not train" all_train 2 || return 1
	while_training "the job never holds anything" holds_when_stopped
}
kill_neighbour() {
	victim=
	meet || {
		if [ -n "$victim" ]; then # it would be in the way of the next try
			kill -TERM "$victim" 2>/dev/null || true
			until_true $patience is_gone "$victim" || fail "the neighbour does not end"
		fi
		return 1
	}
	goes=$(status "jobs.$((1 - at_stays)).pid")
	[ "$(inner "$goes")" = "$(inner "$stays")" ] ||
		fail "they are $(inner "$goes") and $(inner "$stays"): the scenario tests nothing"
	pins=$(status "streams.0.pinned")
	kill -KILL "$goes"
	until_true $patience status_is jobs == 1 || fail "the killed job stays"
	status_is jobs.0.pid == "$stays" jobs.0.pins ">" 0 || fail "the other one's pins are gone ($pins before)"
	kill -CONT "$stays"
}
training other 20 kill_neighbour --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16 --step-ms 5
"$expect" "$work/other.json" jobs.0.reconnects == 0 || fail "the other job lost its stream"
until_true $patience status_is jobs == 0 || fail "a job stays"
until_true $patience nothing_is_pinned || fail "something stays pinned"

# The folder. Jobs find the socket inside; access-ctl of the scenario itself, outside.
outside=$dir
bench=$work/through-mount
cat >"$bench" <<'END'
#!/bin/sh
shift 2 # --socket and what it was
exec "$(dirname "$0")/contained" --socket "$inside/socket" "$@"
END
chmod +x "$bench"
replace() {
	while_training "no job through a mounted folder: $(cat "$work/bench.log")" all_train 1 || return 1
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null || true
	start_accessd workers=1 chunk=16
	! is_gone "$run" || return 1
	while_training "the job in the container does not find accessd again" all_train 1
}
training folder 20 replace --dataset "$work/data" --pipeline imagenet-train-u8 --batch 16
"$expect" "$work/folder.json" jobs.0.reconnects ">=" 1 || fail "the job did not notice: the scenario tests nothing"

# The file.
: >"$work/file"
cat >"$work/again" <<'END'
mount --bind "$1" "$2" || exit 70
: >"$2.mounted"
until [ -e "$2.go" ]; do sleep 0.1; done
"$really" --socket "$2" --dataset "$3" --batch 16
END
unshare -rm sh "$work/again" "$socket" "$work/file" "$work/data" >"$work/file.out" 2>&1 &
run=$!
cleanup_fn "kill -KILL $run"
until_true $patience test -e "$work/file.mounted" || fail "the file is not mounted: $(cat "$work/file.out")"
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
start_accessd workers=1
: >"$work/file.go"
wait $run && fail "a dead socket answers"
grep -q "mount the folder of the socket" "$work/file.out" || fail "no hint: $(cat "$work/file.out")"
stop_accessd
