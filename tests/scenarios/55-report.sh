#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-report, while a job trains, without its names and with them, and where there is no accessd.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
export ACCESS_CTL="$ctl" ACCESS_TOKEN=hush # the latter is not ours
report=${top_srcdir:-.}/tools/access-report

"$pictures" "$work/hush hush" 200 3 100
start_accessd workers=1 cache_size=64M cache_force=1 dataset.hush-set.path="$work" dataset.hush-set.owner="$(id -u)"
parts() { # parts FILE OPTION...: each part that does not depend on this machine is there
	told=$1
	shift
	"$report" --socket "$socket" "$@" >"$told" || fail "access-report $*"
	for part in 'this machine' versions configuration service status 'status, JSON' 'jobs: what limits them' 'what is kept' 'other nodes' log \
		processes "accessd's limits" kernel processors memory disks; do
		grep -qx "==== $part" "$told" || fail "no part \"$part\""
	done
	grep -q "\"pid\": *$daemon" "$told" || fail "no status"
	grep -q '^Max open files' "$told" && grep -q '^MemTotal:' "$told" || fail "no limits"
}
reports() {
	while_training "the job does not train" all_train 1 || return 1
	name=$(status jobs.0.name)
	parts "$work/hidden"
	parts "$work/shown" --names
	[ -n "$name" ] && ! is_gone "$run"
}
training result 20 reports --dataset "$work/hush hush" --pipeline imagenet-train-u8 --batch 16
stop_accessd
grep -F -e hush -e "$name" "$work/hidden" && fail "it has names"
path=$(grep -o '"dataset": *"PATH-[0-9]*"' "$work/hidden" | grep -o 'PATH-[0-9]*' | head -n 1)
[ "$(grep -c "$path\b" "$work/hidden")" -ge 2 ] || fail "words and JSON do not name the data set alike"
grep -q '"name": *"JOB-[0-9]*"' "$work/hidden" && grep -q '"name": *"packed"' "$work/hidden" || fail "there is no job, or forms have its name"
grep -q '"datasets":.*"name": *"SET-[0-9]*"' "$work/hidden" || fail "there is no named data set"
grep -q "hush hush" "$work/shown" && grep -q hush-set "$work/shown" && ! grep -q ACCESS_TOKEN "$work/shown" && grep -qF "$name" "$work/shown" || fail "--names has no names, or what is not ours"

"$report" --socket "$socket" >"$work/report" || fail "access-report without accessd"
grep -q 'no accessd at' "$work/report" || fail "it does not say that there is no accessd"
code=0
told=$("$report" --nothing 2>&1 >/dev/null) || code=$?
[ $code = 2 ] && [ "$told" = 'access-report: there is no "--nothing"; --help lists what there is' ] || fail "a wrong option: status $code, $told"
"$report" --version | grep -q '^access-report [0-9]' || fail "--version"
"$report" --help | grep -oE '^  --[a-z]+' | tr -d ' ' >"$work/listed"
sed -n 's/^\.It Fl Fl \([a-z]*\).*/--\1/p' "${top_srcdir:-.}/man/access-report.1" | diff "$work/listed" - || fail "--help and the page have other options"
