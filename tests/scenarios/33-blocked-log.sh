#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Case 29: whoever reads accessd's messages has stopped and the pipe is full; somebody who asks for the status
# all the time is stopped, too: accessd starts, serves and ends as ever.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"

mkfifo "$work/pipe"
exec 9<>"$work/pipe" # opened here: it is open when dd comes
sleep 3600 <&9 & # holds both ends open, and reads nothing
cleanup_fn "kill -KILL $!"
exec 9>&-
dd if=/dev/zero of="$work/pipe" bs=512 count=4096 oflag=nonblock conv=notrunc 2>"$work/dd.txt" || true
full=$(sed -n 's/^\([0-9]*\)+.* records out/\1/p' "$work/dd.txt")
[ "$full" -gt 0 ] && [ "$full" -lt 4096 ] || fail "the pipe is not full: the scenario tests nothing: $(cat "$work/dd.txt")"

"$pictures" "$work/data" 400 2 64
mkdir -m 0700 "$dir"
"$accessd" --private --dir "$dir" --set cache_dir="$work/cache" --set workers=2 --set chunk=16 \
	--set log_level=debug 2>"$work/pipe" &
daemon=$!
cleanup_fn "kill -KILL $daemon"
until_true $patience answers || fail "accessd waits for who reads its messages"
watch() {
	while "$ctl" --socket "$socket" --json status; do :; done
}
watch >"$work/pipe" 2>&1 &
watcher=$!
cleanup_fn "kill -KILL $watcher"
kill -STOP $watcher
look() {
	while_training "the jobs do not train" all_train 3 || return 1
	kill -CONT $watcher
	kill -STOP $watcher
	while_training "the jobs do not train on" status_is "jobs.*.delivered" ">" 400
}
training result 4 look --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 3 --batch 16
"$expect" "$work/result.json" "jobs.*.reconnects" == 0 || fail "the jobs noticed"
kill -KILL $watcher
stop_accessd
