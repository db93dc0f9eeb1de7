#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Data that lie behind a web server, mounted by rclone (FUSE), as object stores are: pictures and tar shards, each sample once.
# What comes to the store is there for the next job, though no folder there has a time that tells. A server that hangs is
# waited for, one that is gone is an error that names the file, and the job goes on from its state when it is back. Of a system's accessd,
# too: who mounted it reads it, who may not is told.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
PATH=$PATH:${ACCESS_NGINX:-/nowhere}
[ -r /dev/fuse ] && [ -w /dev/fuse ] || skip "there is no /dev/fuse for us"
requires rclone nginx fusermount3 python3
chmod 0755 "$work" # for other users, below

samples=240
mkdir "$work/site" "$work/site/shards"
"$pictures" "$work/site/photos" $samples 2 100
python3 - "$work/site" <<'END'
import pathlib, sys, tarfile
site = pathlib.Path(sys.argv[1])
files = sorted(site.glob("photos/*/*"))
for shard in range(3):
    with tarfile.open(site / f"shards/{shard}.tar", "w") as tar:
        for number in range(shard, len(files), 3):
            tar.add(files[number], f"{number:05}.jpg")
END
cp -R "$work/site/photos" "$work/site/later"
cp -R "$work/site/photos" "$work/site/last"
# Errors come at once, and what is new is seen soon.
mounted() { # mounted FOLDER OPTION...
	mkdir "$1"
	rclone --config /dev/null --timeout 10m --low-level-retries 1 mount :http: --http-url "http://127.0.0.1:$port" --read-only \
		--cache-dir "$work/rclone" --dir-cache-time 1s --attr-timeout 1s "$@" 2>>"$work/rclone.log" &
	mount=$!
	cleanup_fn "kill -TERM $mount; fusermount3 -uz $1"
	until_true $patience listed "$1" || fail "nothing is mounted"
	! is_gone $mount || skip "nothing can be mounted here: $(tail -n 1 "$work/rclone.log")"
}
listed() {
	is_gone $mount || [ -e "$1/photos/class_0001/000001.jpg" ] || [ -e "$1/photos/class_0000/000001.jpg" ]
}
job() { # job RESULT FOLDER OPTION...
	result=$1 folder=$2
	shift 2
	timeout $longest "$bench" --socket "$socket" --dataset "$folder" --pipeline imagenet-train-u8 --batch 16 --verify --quiet \
		--json "$work/$result.json" "$@" 2>>"$work/bench.log"
}
half_is_found() {
	"$ctl" --socket "$socket" status | grep -q "listing: 32 samples so far"
}
serve_files "$work/site"
mounted "$work/mount"
start_accessd workers=2 chunk=16 slots=4

# Pictures and shards.
for what in photos shards; do
	job $what "$work/mount/$what" --jobs 2 || fail "the jobs of $what: $("$expect" "$work/$what.json" "jobs.*.error")"
	exactly_once "$work/$what.json"
done
"$expect" "$work/shards.json" jobs.0.samples == $samples || fail "other samples than were put into the shards"

# One more.
cp "$work/site/photos/class_0000/000000.jpg" "$work/site/photos/class_0001/more.jpg"
until_true $patience test -e "$work/mount/photos/class_0001/more.jpg" || fail "the mount shows nothing new"
job more "$work/mount/photos" || fail "the job of one more: $("$expect" "$work/more.json" jobs.0.error)"
exactly_once "$work/more.json"
"$expect" "$work/more.json" jobs.0.samples == $((samples + 1)) || fail "what came to the store is not seen"

# The server hangs: a job waits whose folder was not listed yet, and nobody else does.
kill -STOP $server
job hung "$work/mount/later" &
run=$!
"$pictures" "$work/local" 32 2 64
cp -R "$work/local" "$work/half"
ln -s "$work/mount/later/photos" "$work/half/later"
job half "$work/half" &
half=$!
until_true $patience half_is_found || fail "it is not said how much was found: $("$ctl" --socket "$socket" status)"
job beside "$work/local" || fail "a job of other data: $("$expect" "$work/beside.json" jobs.0.error)"
! is_gone $run || fail "a job ended whose data cannot be read: $("$expect" "$work/hung.json" jobs.0.error)"
kill -CONT $server
wait $half || fail "a job does not go on half of whose folders had been listed: $("$expect" "$work/half.json" jobs.0.error)"
wait $run || fail "a job does not go on: $("$expect" "$work/hung.json" jobs.0.error)"
exactly_once "$work/hung.json"

# It is gone in the middle of an epoch: the job is told of the file, and goes on from its state when it is back.
if [ -e "$top_builddir/python/package/oneaccess/_core.abi3.so" ] && "${PYTHON:-python3}" -c 'import numpy' 2>/dev/null; then
	cat >"$work/job.py" <<'END'
import json, os, signal, sys
import oneaccess as oa
folder, socket, server, state = sys.argv[1:]
known = json.load(open(state)) if os.path.exists(state) else {"ids": [], "state": None}
loader = oa.Loader(folder, oa.imagenet_train(32), 16, socket=socket, epochs=1, state=known["state"], as_="numpy")
try:
    for batch in loader:
        known = {"ids": known["ids"] + batch.ids.tolist(), "state": loader.state_dict()}
        if server != "0":
            os.kill(int(server), signal.SIGKILL)
            server = "0"
except oa.errors.SampleError as why:
    print(why)
json.dump(known, open(state, "w"))
print("has", len(known["ids"]), len(set(known["ids"])))
END
	gone() { # gone SERVER: the job, which ends that server behind its first batch; 0: none
		PYTHONPATH="$top_builddir/python/package" "${PYTHON:-python3}" "$work/job.py" "$work/mount/last" "$socket" "$1" "$work/job.state" >"$work/said.txt" ||
			fail "the job: $(cat "$work/said.txt")"
	}
	gone $server
	grep -q "class_000./.*.jpg.*Input/output error" "$work/said.txt" || fail "no file is named: $(cat "$work/said.txt")"
	! grep -q "^has $samples " "$work/said.txt" || fail "the job ended before its server did"
	serve_files "$work/site"
	gone 0
	grep -q "^has $samples $samples\$" "$work/said.txt" || fail "the job does not get what was left: $(cat "$work/said.txt")"
else
	echo "not tested: a server that goes away in an epoch: the Python package is not built here"
fi
stop_accessd

# A system's accessd reads with the rights of the job's user: a mount of somebody else's is closed to him, one for all is not.
[ "$(id -u)" = 0 ] || {
	echo "not tested: mounts of other users: only root can be several users"
	exit 0
}
mounted "$work/open" --allow-other --default-permissions --uid 65201 --gid 65201 --umask 077
mkdir "$work/bin"
"$bench" --help >/dev/null
for program in "$accessd" "$top_builddir"/libexec/access-* "$top_builddir"/libaccess/.libs/libaccess.so*; do
	cp -L "$program" "$work/bin/"
done
for program in tools/.libs/lt-access-bench tools/.libs/access-bench tools/access-bench; do
	[ ! -x "$top_builddir/$program" ] || break
done
cp "$top_builddir/$program" "$work/bin/access-bench"
chmod -R a+rX "$work/bin"
setpriv --reuid=65201 --regid=65201 --clear-groups "$work/bin/access-bench" --help >/dev/null 2>&1 ||
	setpriv --reuid=65201 --regid=65201 --clear-groups test -x "$work/bin/accessd" || skip "other users cannot go where TMPDIR is"
dir=$work/system
socket=$dir/socket
env -u ACCESS_LIBEXEC "$work/bin/accessd" --dir "$dir" --set user=65200 --set public_user=65204 --set workers=1 --set cache_size=0 \
	--set cache_dir="$work/system-cache" \
	2>>"$work/accessd.log" &
daemon=$!
cleanup_fn "kill -KILL $daemon"
until_true $patience answers || fail "the system's accessd does not answer"
job_of() { # job_of UID RESULT FOLDER
	setpriv --reuid="$1" --regid="$1" --clear-groups env LD_LIBRARY_PATH="$work/bin" "$work/bin/access-bench" --socket "$socket" \
		--dataset "$3" --pipeline imagenet-train-u8 --batch 16 --verify --quiet --json - >"$work/$2.json" 2>>"$work/bench.log"
}
job_of 65201 open "$work/open/photos" || fail "the job of who mounted it: $("$expect" "$work/open.json" jobs.0.error)"
exactly_once "$work/open.json"
refused() { # refused UID FOLDER WHY
	! job_of "$1" closed "$2" || fail "somebody reads what he may not"
	"$expect" "$work/closed.json" jobs.0.error >"$work/error.txt"
	grep -q "Permission denied; $3" "$work/error.txt" || fail "it is not said why: $(cat "$work/error.txt")"
}
refused 65202 "$work/open/photos" "the user of the job must be able to search.*here that is uid 65202"
refused 65201 "$work/mount/photos" "it is in a mount (FUSE).*allow_other"
