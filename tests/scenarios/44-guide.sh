#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every command of doc/guide, in order, against the accessd that its first job starts: guide_commands takes them out of the pages.
# None may fail, and what jobs print says that each got its pictures.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
python=${PYTHON:-python3}
guide=${top_srcdir:-.}/doc/guide
[ -e "$top_builddir/python/package/oneaccess/_core.abi3.so" ] || skip "the Python package is not built here"
[ -x "$top_builddir/tools/access-top" ] || skip "access-top is not built here"
requires "$python" unshare
"$python" -c 'import numpy' 2>/dev/null || skip "NumPy is not here"
unshare -rmpi --fork --kill-child --mount-proc true 2>/dev/null || skip "no user, mount, process and IPC namespaces here"

# The programs as an installed system has them, in PATH.
mkdir "$work/bin" "$work/home" "$work/desk"
command_is() { # command_is NAME PROGRAM
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$2" >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}
for program in access-ctl access-bench access-top; do
	command_is "$program" "$top_builddir/tools/$program"
done
command_is accessd "$accessd"
command_is python3 "$(command -v "$python")"
export PATH="$work/bin:$PATH" HOME="$work/home" PYTHONPATH="$top_builddir/python/package" PYTHONDONTWRITEBYTECODE=1
# As long as a slow machine may take from one command to the next; and kept wherever the folder is.
export ACCESSD_IDLE_EXIT_S=3600 ACCESSD_CACHE_FORCE=1
"$pictures" "$work/photos" 120 3 100
export PHOTOS="$work/photos"

# A store on a real web server.
PATH=$PATH:${ACCESS_NGINX:-/nowhere}
pages=$(echo "$guide"/[0-9]*.md)
if [ -r /dev/fuse ] && [ -w /dev/fuse ] && command -v rclone >/dev/null && nginx -v >/dev/null 2>&1 && command -v fusermount3 >/dev/null; then
	mkdir "$work/site" "$work/site/shards"
	cp -R "$PHOTOS" "$work/site/photos"
	"$ctl" convert --shard-size 1M "$PHOTOS" "$work/site/shards/photos.tar" >/dev/null || fail "shards for the store"
	serve_files "$work/site"
	export STORE=:http: RCLONE_HTTP_URL="http://127.0.0.1:$port" RCLONE_CACHE_DIR="$work/rclone"
	cleanup_fn "fusermount3 -uz $HOME/store"
else
	echo "not tested: doc/guide/14-object-stores.md: no rclone, nginx or /dev/fuse is here for us"
	pages="${pages% *14-object-stores.md*} ${pages##*14-object-stores.md }"
fi
# A bucket of a real S3.
if [ -x "$top_builddir/libexec/access-bucket" ] && "${ACCESS_RCLONE:+$ACCESS_RCLONE/}rclone" serve s3 --help >/dev/null 2>&1; then
	mkdir "$work/s3" "$work/s3/bucket"
	cp -R "$PHOTOS" "$work/s3/bucket/photos"
	export AWS_ACCESS_KEY_ID=guide-key-id AWS_SECRET_ACCESS_KEY=guide-secret-key BUCKET=s3://bucket/photos
	serve_s3 "$work/s3"
	export AWS_ENDPOINT_URL="http://127.0.0.1:$port"
else
	echo "not tested: doc/guide/16-buckets.md: there is no rclone that serves S3, or no access-bucket"
	pages="${pages% *16-buckets.md*}"
fi
# shellcheck disable=SC2086 # names of pages
awk -f "$top_srcdir/tests/scenarios/guide_commands" $pages >"$work/guide.sh" || fail "the guide's blocks"
[ "$(grep -c '^== \|^echo .== ' "$work/guide.sh")" -ge 20 ] || fail "the guide has hardly a command: $(cat "$work/guide.sh")"
# Whatever of the family is left, the daemon included.
all_end() {
	daemon=$("$ctl" --json status 2>/dev/null | "$expect" - pid 2>/dev/null) || return 0
	# shellcheck disable=SC2046 # a list of numbers
	kill -KILL $(offspring_of "$daemon") "$daemon"
}
cleanup_fn all_end
cd "$work/desk"
timeout $longest bash -eu -o pipefail "$work/guide.sh" >"$work/said.txt" 2>&1 &
run=$! # and its group, with all that the guide starts beside itself
cleanup_fn "kill -KILL -- -$run"
wait "$run" || {
	cat "$work/said.txt"
	fail "a command of the guide fails, in the block that was named last"
}

said() { # said COUNT PATTERN: so often in all
	[ "$(grep -Eo -- "$2" "$work/said.txt" | wc -l)" = "$1" ] || {
		cat "$work/said.txt"
		fail "not $1 times: $2"
	}
}
said 5 'epoch 1 was 4 batches of \(24, 3, 64, 64\)' # some run at once, so several may be in a line
said 4 'rank [01] of 2 got 60'
said 1 '^photos.oads has 120 samples$'
said 1 '^shards has 120 samples$'
said 1 '^table.npy has 1000 samples$'
said 1 '^each once: True$'
said 1 '^name:photos gave 120 pictures$'
[ "${STORE:-}" = "" ] || said 2 "^the store's (photos|shards) gave 120 pictures\$"
[ "${BUCKET:-}" = "" ] || said 1 '^the bucket gave 120 pictures$'
said 1 '^[1-9] groups of .*/people were thrown away, with 120 values '
said 1 '^0$' # pictures that came twice
[ "$(wc -w <"$work/desk/job.ids")" = 120 ] || fail "a resumed job got other pictures than 120"
grep -q '^Limit: ' "$work/said.txt" || fail "explain names no limit"
all_end
