#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Every option of a tool is in its man page, the page names no other, and a wrong command line ends
# with status 2 and a message.
set -eu
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
bad=0
complain() {
	echo "$*"
	bad=1
}

for tool in access-bench access-ctl; do
	listed=$("$build/tools/$tool" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p' | sort -u)
	told=$(sed -n 's/^\.It Fl Fl \([a-z-]*\).*/\1/p' "$top/man/$tool.1" | sort -u)
	[ -n "$listed" ] || complain "$tool --help lists nothing"
	[ "$listed" = "$told" ] || complain "$tool --help lists:" "$listed" "its page has:" "$told"
	"$build/tools/$tool" --help | awk -v tool="$tool" '
		length > (tool == "access-ctl" ? 80 : 100) { print tool " --help: a long line: " $0; bad = 1 } END { exit bad }' || bad=1

	for wrong in --nothing --json= -x; do
		[ "$wrong" = --json= ] && [ $tool = access-bench ] && continue
		status=0
		message=$("$build/tools/$tool" "$wrong" 2>&1 >/dev/null) || status=$?
		[ $status = 2 ] || complain "$tool $wrong: status $status"
		case $message in
		"$tool: "*) ;;
		*) complain "$tool $wrong says: $message" ;;
		esac
	done
	"$build/tools/$tool" --version | grep -q "^$tool [0-9]" || complain "$tool --version"
done

status=0
message=$("$build/tools/access-bench" 2>&1) || status=$?
[ $status = 2 ] || complain "access-bench without --dataset: status $status"
case $message in
*"--dataset DIR is missing"*) ;;
*) complain "access-bench without --dataset says: $message" ;;
esac

# A seed of a plan goes with a plan, and is a whole number.
for wrong in "--plan-seed 7" "--plan-seed 7 --order any" "--plan-seed 1.5 --order seeded" "--order none"; do
	status=0
	# shellcheck disable=SC2086 # words
	message=$("$build/tools/access-bench" --dataset nowhere $wrong 2>&1) || status=$?
	[ $status = 2 ] || complain "access-bench $wrong: status $status"
	case $message in
	*"--plan-seed"* | *"--order"*) ;;
	*) complain "access-bench $wrong says: $message" ;;
	esac
done

# What configures an accessd of its own wants one.
for wrong in "--cache-dir d" "--cache-size 0" "--cache-point none"; do
	status=0
	# shellcheck disable=SC2086 # words
	message=$("$build/tools/access-bench" --dataset nowhere $wrong 2>&1) || status=$?
	[ $status = 2 ] || complain "access-bench $wrong: status $status"
	case $message in
	*"add --private"*) ;;
	*) complain "access-bench $wrong says: $message" ;;
	esac
done

# A split is two numbers in order, and maybe a seed.
for wrong in .5 .5:.2 0:2 0:.5@ 0:.5@x a:b :; do
	status=0
	message=$("$build/tools/access-bench" --dataset nowhere --split "$wrong" 2>&1) || status=$?
	[ $status = 2 ] || complain "access-bench --split $wrong: status $status"
	case $message in
	*"--split $wrong"*) ;;
	*) complain "access-bench --split $wrong says: $message" ;;
	esac
done

# A command with an operand wants it, others want none.
for wrong in explain "explain a b" bad "bad a b" "jobs a" nothing; do
	status=0
	# shellcheck disable=SC2086 # words
	message=$("$build/tools/access-ctl" --socket /nonexistent/socket $wrong 2>&1) || status=$?
	[ $status = 2 ] || complain "access-ctl $wrong: status $status"
	case $message in
	"access-ctl: "*"${wrong%% *}"*) ;;
	*) complain "access-ctl $wrong says: $message" ;;
	esac
done

# The words for what a job waits for are explained alike in --help and in the page.
listed=$("$build/tools/access-ctl" --help |
	sed -n '/^What a job waits for/,/^$/s/^  \([a-z][a-z ]*[a-z?]\)  .*/\1/p' | sort)
told=$(sed -n '/^\.Ss What a job waits for/,/^\.S[hs] /s/^\.It Li "*\([^"]*\)"*$/\1/p' "$top/man/access-ctl.1" | sort)
for word in $(sed -n 's/^WAIT("[a-z]*", "\([a-z]*\)".*/\1/p' "$top/tools/ctl_waits_tbl.h"); do
	echo "$listed" | grep -qx "$word" || complain "access-ctl --help does not explain $word"
done
[ -n "$listed" ] && [ "$listed" = "$told" ] || complain "access-ctl --help explains:" "$listed" "its page:" "$told"

# Nobody is there: said with where it was looked, and no daemon is started for it.
status=0
message=$("$build/tools/access-ctl" --socket /nonexistent/socket ping 2>&1) || status=$?
[ $status = 1 ] || complain "access-ctl without accessd: status $status"
case $message in
*"no accessd at /nonexistent/socket"*) ;;
*) complain "access-ctl without accessd says: $message" ;;
esac
exit $bad
