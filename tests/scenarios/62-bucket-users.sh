#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Data sets in a bucket, and a machine's accessd, which sees neither the network nor a job's mounts. A user's jobs share one
# access-bucket; another user has one of his own, and cannot reach theirs. A job in a container, where its user has another
# number and the folder of the socket another place, opens the URL with the network that it has. A folder of the user's name that is
# another's is passed over. Who may not write to that of the folders is told so.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
[ -x "$top_builddir/libexec/access-bucket" ] || skip "this build has no access-bucket"
[ "$(id -u)" = 0 ] || skip "needs root, to be several users"
requires python3 unshare setpriv mount
chmod 0755 "$work"
setpriv --reuid=65201 --regid=65201 --clear-groups test -x "$work" || skip "other users cannot go where TMPDIR is"
setpriv --reuid=65201 --regid=65201 --clear-groups unshare -rmp --fork --kill-child --mount-proc true 2>/dev/null ||
	skip "no user, mount and process namespaces here"

# The build may lie where other users cannot go.
mkdir "$work/bin" "$work/store"
"$bench" --help >/dev/null
for program in "$accessd" "$top_builddir"/libexec/access-* "$top_builddir"/libaccess/.libs/libaccess.so*; do
	cp -L "$program" "$work/bin/"
done
for program in tools/.libs/lt-access-bench tools/.libs/access-bench tools/access-bench; do
	[ ! -x "$top_builddir/$program" ] || break
done
cp "$top_builddir/$program" "$work/bin/access-bench"
chmod -R a+rX "$work/bin"
"$pictures" "$work/store/train" 100 2 100
chown 65200:65200 "$work/cache"
export AWS_ACCESS_KEY_ID=AKIDEXAMPLE AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY AWS_REGION=us-east-1
serve_bucket "$work/store" --key "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"
export AWS_ENDPOINT_URL="http://127.0.0.1:$port" AWS_EC2_METADATA_DISABLED=true HOME="$work/store"

dir=$work/node socket=$work/node/socket
"$work/bin/accessd" --dir "$dir" --set user=65200 --set public_user=65204 --set workers=1 --set tenant_idle_s=3600 \
	--set linger_s=3600 --set cache_dir="$work/cache" --set cache_size=0 2>>"$work/accessd.log" &
daemon=$!
cleanup_fn "kill -KILL $daemon"
until_true $patience answers || fail "accessd does not answer: $(cat "$work/accessd.log")"
[ "$(stat -c '%a %u' "$dir/buckets")" = "1777 65200" ] || fail "the folders' folder is $(stat -c '%a %u' "$dir/buckets")"

as() { # as UID COMMAND...: with the programs of $work/bin
	who=$1
	shift
	setpriv --reuid="$who" --regid="$who" --clear-groups env LD_LIBRARY_PATH="$work/bin" ACCESS_LIBEXEC="$work/bin" "$@"
}
trains() { # trains RESULT UID SOCKET [BEFORE...]
	result=$work/$1.json who=$2 at=$3
	shift 3
	as "$who" "$@" "$work/bin/access-bench" --socket "$at" --dataset s3://train --pipeline imagenet-train-u8 --batch 16 --verify \
		--quiet --json - >"$result" 2>"$work/job.log" || fail "the job of $who: $(cat "$work/job.log" "$result")"
	exactly_once "$result"
}
keeps() { # keeps NUMBER FOLDER: of access-bucket's folders, all of them closed to others
	[ "$(find "$2" -mindepth 1 -maxdepth 1 -type d -perm 0700 | wc -l)" = "$1" ] || fail "not $1 in $2: $(ls -lR "$2")"
}

# Two users: each one has his own.
trains anna 65201 "$socket"
trains again 65201 "$socket"
keeps 1 "$dir/buckets/65201"
trains bert 65202 "$socket"
keeps 1 "$dir/buckets/65202"
[ "$(stat -c '%a %u' "$dir/buckets/65201")" = "700 65201" ] || fail "the folder is $(stat -c '%a %u' "$dir/buckets/65201")"
as 65202 sh -c 'ls "$1" || rm -r "$1" || mv "$1" "$1.mine"' sh "$dir/buckets/65201" 2>/dev/null && fail "bert can reach anna's folder"

# A folder that was there first.
mkdir "$dir/buckets/65203"
chown 65202 "$dir/buckets/65203"
trains carl 65203 "$socket"
keeps 1 "$dir/buckets/65203.1"

# A container: anna is root in it, and what she sees of the node is the folder of the socket, elsewhere.
mkdir "$work/inside"
# shellcheck disable=SC2016 # expanded in the container
contained='mount --bind "$0" "$1" && mount -t tmpfs none "$0" && shift && exec "$@"'
trains contained 65201 "$work/inside/socket" unshare -rmp --fork --kill-child --mount-proc sh -c "$contained" "$dir" "$work/inside"
keeps 1 "$dir/buckets/0"
[ "$(stat -c %u "$dir/buckets/0")" = 65201 ] || fail "the container's folder is of $(stat -c %u "$dir/buckets/0")"

# One whose mount is read-only is told what to mount; with the folders it does.
# shellcheck disable=SC2016 # expanded in the container
closed='mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
as 65203 unshare -rmp --fork --kill-child --mount-proc sh -c "$closed" "$dir" "$work/inside" "$work/bin/access-bench" \
	--socket "$work/inside/socket" --dataset s3://train --pipeline imagenet-train-u8 >"$work/closed.log" 2>&1 &&
	fail "a read-only mount was written to"
grep -q 'mount the folder of accessd.s socket so that "buckets" in it can be written to' "$work/closed.log" || fail "no hint: $(cat "$work/closed.log")"
# shellcheck disable=SC2016 # expanded in the container
open='mount --bind "$0" "$1" && mount -o remount,bind,ro "$1" && mount --bind "$0/buckets" "$1/buckets" && shift && exec "$@"'
trains opened 65203 "$work/inside/socket" unshare -rmp --fork --kill-child --mount-proc sh -c "$open" "$dir" "$work/inside"

# A secret is nowhere where it might be read.
grep -rqF "$AWS_SECRET_ACCESS_KEY" "$dir/buckets" "$work/accessd.log" && fail "the secret key lies there: $(grep -rlF "$AWS_SECRET_ACCESS_KEY" "$dir" "$work/accessd.log")"
kill -TERM "$daemon"
until_true $patience is_gone "$daemon" || fail "accessd does not end"
until_true $patience no_process access-bucket || fail "access-bucket is left behind: $(processes access-bucket)"
