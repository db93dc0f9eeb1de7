#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-stats(7) has the metrics that access-exporter --list has, and access-exporter(8) the options of its --help; the
# dashboard and the rules name no metric that there is not; a wrong command line ends with status 2 and a message.
set -eu
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
exporter=${top_builddir:-.}/exporter/access-exporter
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0
complain() {
	echo "$*"
	bad=1
}
same() { # same WHAT FILE FILE
	difference=$(diff "$2" "$3") || complain "$1:" "$difference"
}

"$exporter" --list | awk -F '\t' '
	{ gsub(/\\/, "\\e", $5); gsub(/ /, ", ", $4); print ".It Li " $1 " Pq " $2 ($4 == "" ? "" : ", by " $4); print $5 "." }' >"$work/list"
sed -n '/^\.Bl -tag -width Ds$/,/^\.El$/p' "$top/man/access-stats.7" | sed '1d;$d' >"$work/page"
[ -s "$work/list" ] || complain "access-exporter --list lists nothing"
same "access-exporter --list, and access-stats(7)" "$work/list" "$work/page"

"$exporter" --help | sed -n 's/^  --\([a-z-]*\).*/\1/p' | sort -u >"$work/list"
sed -n 's/^\.It Fl Fl \([a-z-]*\).*/\1/p' "$top/man/access-exporter.8" | sort -u >"$work/page"
same "access-exporter --help, and access-exporter(8)" "$work/list" "$work/page"

"$exporter" --list | cut -f 1 | sort -u >"$work/list"
for document in doc/grafana/oneaccess.json doc/prometheus/oneaccess.rules.yml; do
	grep -o 'oneaccess_[a-z_]*' "$top/$document" | sort -u >"$work/used"
	[ -s "$work/used" ] || complain "$document uses no metric"
	unknown=$(comm -23 "$work/used" "$work/list")
	[ -z "$unknown" ] || complain "$document: there is no" "$unknown"
done

for wrong in --nothing surplus --listen=here --listen=127.0.0.1 --listen=127.0.0.1:70000 --listen=localhost:1 --listen=::1:9 \
	--listen=:1; do
	status=0
	message=$("$exporter" "$wrong" 2>&1 >/dev/null) || status=$?
	case $wrong in --listen*) expected=1 ;; *) expected=2 ;; esac
	[ $status = $expected ] || complain "access-exporter $wrong: status $status"
	case $message in
	"access-exporter: "*) ;;
	*) complain "access-exporter $wrong says: $message" ;;
	esac
done
exit $bad
