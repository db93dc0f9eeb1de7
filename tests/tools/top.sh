#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# access-top without an accessd: its options, keys and columns are those of its page; what is wrong is said in words; it
# draws on no pipe, on no unknown terminal.
set -eu
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
program=$build/tools/access-top
bad=0
complain() {
	echo "$*"
	bad=1
}
[ -x "$program" ] || { echo "skipped: access-top was left out by configure" && exit 77; }
same() { # same WHAT LIST LIST
	[ -n "$2" ] && [ "$(sort <<<"$2")" = "$(sort <<<"$3")" ] || complain "$1: --help has" "$2" "; the page has" "$3"
}
export LC_ALL=C
help=$("$program" --help)
page=$top/man/access-top.1
part() { # part FROM TO: lines of the page between two of its lines
	sed -n "/^$1\$/,/^$2/p" "$page"
}

same options "$(sed -n 's/^  --\([a-z-]*\).*/\1/p' <<<"$help")" "$(sed -n 's/^\.It Fl Fl \([a-z-]*\).*/\1/p' "$page")"
same letters "$(sed -n 's/^  --\([a-z]*\), -\(.\).*/\1 \2/p' <<<"$help")" \
	"$(sed -n 's/^\.It Fl Fl \([a-z]*\) , Fl \(.\).*/\1 \2/p' "$page")"
same keys "$(sed -n '/^Keys:/,/^$/s/^  \(.\{15\}\) .*/\1/p' <<<"$help" | sed 's/ *$//')" \
	"$(part '\.Ss Keys' '\.El' | sed -n 's/^\.It Ic "\(.*\)"/\1/p' | sed 's/\\e/\\/')"
for view in Jobs Streams Ranks Workers Caches Tenants Peers Node; do
	same "columns of $view" "$(sed -n "/^$view: /,/^\$/s/^  \([A-Z].\{10\}\).*/\1/p" <<<"$help" | sed 's/ *$//')" \
		"$(part "\\.Ss $view" '\.El' | sed -n 's/^\.It Li "\(.*\)"/\1/p')"
done
awk 'length > 80 { print "--help: a long line: " $0; bad = 1 } END { exit bad }' <<<"$help" || bad=1
same nodes "$(sed -n 's/^NODE([A-Z]*, "\([a-z_]*\)".*/\1/p' "$top/tools/top/top_tbl.h")" \
	"$(part 'The rows of the node are, by their words:' '\.El' | sed -n 's/^\.It Li "\(.*\)"/\1/p')"
"$program" --version | grep -q '^access-top [0-9]' || complain "access-top --version"

says() { # says STATUS PATTERN ARGUMENT...: ends so, and says so
	local expected=$1 pattern=$2 status=0 message
	shift 2
	message=$("$program" "$@" 2>&1 </dev/null) || status=$?
	[ $status = "$expected" ] || complain "access-top $*: status $status"
	grep -q -- "$pattern" <<<"$message" || complain "access-top $* says: $message"
}
for wrong in --nothing -x -bx "-d 0" "-d x" -n0 "-n" "--view none" "--sort none" "--view node --sort ahead" word; do
	# shellcheck disable=SC2086 # words
	says 2 '^access-top: ' $wrong
done
says 2 'expected a number from 0.1 to 3600' -d .01
says 1 'no accessd at /nonexistent/socket: there is no such socket' -b -s /nonexistent/socket
says 1 'no accessd at /nonexistent/socket' --json -n1 -d.1 -s/nonexistent/socket
says 1 'this is no terminal: -b prints' -s /nonexistent/socket
exit $bad
