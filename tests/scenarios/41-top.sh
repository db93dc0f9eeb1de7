#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# access-top as a person has it, in a terminal of tmux: jobs, keys, sizes, no colours, an accessd that ends and comes
# back; printed, and as JSON.
. "${top_srcdir:-.}/tests/scenarios/functions.sh"
top=$top_builddir/tools/access-top
[ -x "$top" ] || skip "access-top was left out by configure"
requires tmux
export LC_ALL=C.UTF-8

terminals=0
terminal() { # terminal COMMAND...: of tmux, a server of its own
	tmux -S "$work/tmux.$terminals" -f /dev/null "$@"
}
start_top() { # start_top VARIABLE=VALUE... OPTION...: in a new terminal of 80 columns and 24 lines
	terminals=$((terminals + 1))
	cleanup_fn "tmux -S $work/tmux.$terminals kill-server"
	terminal new-session -d -x 80 -y 24 "env $* 2>$work/top.err; echo ended with \$?; sleep 10000"
	terminal set-option -g status off
	terminal resize-window -x 80 -y 24
}
press() {
	terminal send-keys "$@"
}
seen() { # seen PATTERN...: the screen has a line with each
	terminal capture-pane -p >"$work/screen.txt" || return 1
	for pattern in "$@"; do
		grep -Eq -- "$pattern" "$work/screen.txt" || return 1
	done
}
shows() { # shows PATTERN...: soon
	until_true $patience seen "$@" || fail "no \"$*\" on the screen: $(cat "$work/screen.txt")"
}

"$pictures" "$work/data" 800 4 200
start_accessd workers=2 chunk=64 linger_s=1
start_top "$top" -d 0.2 -s "$socket"
shows "^access-top  accessd [0-9].* pid $daemon up" "no job is here" "^F1Help .*F10Quit"

look() {
	while_training "the jobs do not start" all_train 2 || return 1
	# Its rate, its history, whom it shares with, its name.
	while_training "access-top does not show the jobs" \
		seen "^ +[0-9]+ +[0-9.]+ .* 1 +[0-9]+ bench-0$" "^ +[0-9]+ +[0-9.]+ .* 1 +[0-9]+ bench-1$" || return 1
	press '\' bench-1 Enter
	while_training "the filter does not take a row away" seen "filter:bench-1" "bench-1$" || return 1
	! grep -q "bench-0$" "$work/screen.txt" || fail "filtered: $(cat "$work/screen.txt")"
	press Escape
	while_training "Esc does not take the filter away" seen "bench-0$" "bench-1$" || return 1
	press F6 End Enter
	while_training "not sorted by name" seen "by:NAME" || return 1
	press I
	while_training "not the other way round" seen "upwards:NAME" || return 1
	press Home Enter
	while_training "no job alone" seen "^Job [0-9]+  bench-1 " "^Data set .*data$" "^Shares +with 1 .bench-0" \
		"Where its time goes" "# itself [0-9]+%" || return 1
	press Escape 2
	while_training "no streams" seen "^STREAM JOBS" " $work/data|data$" || return 1
	press Tab Tab
	while_training "no workers" seen "^WORKER +PID" || return 1
	press 7
	while_training "no view of other nodes" seen "^PEER +STATE" "no other node is known" || return 1
	press 1
	terminal resize-window -x 40 -y 10
	while_training "no small screen" seen "^ JOB  RATE/s WAIT% WAITS FOR NAME" "bench-0$" || return 1
	terminal resize-window -x 160 -y 50
	while_training "no large screen" seen "READ%  DEC% SLOT% SELF%" "bench-0$" || return 1
	terminal resize-window -x 80 -y 24
	while_training "no screen of the old size" seen "^ JOB  RATE/s HISTORY  WAIT%" || return 1
	press F1
	while_training "no help" seen "^  h \? F1 +this help" || return 1
	press x

	COLUMNS=200 "$top" -b -n 2 -d 0.1 -s "$socket" >"$work/batch.txt" || fail "access-top -b"
	[ "$(grep -c "^access-top" "$work/batch.txt")" = 2 ] || fail "not two times: $(cat "$work/batch.txt")"
	"$top" --json -n 2 -d 0.1 -s "$socket" >"$work/lines.json" || fail "access-top --json"
	[ "$(wc -l <"$work/lines.json")" = 2 ] || fail "not two lines of JSON"
	tail -n 1 "$work/lines.json" >"$work/line.json"
	status_is jobs == 2 || return 1
	grep -q " bench-1$" "$work/batch.txt" || fail "printed without jobs: $(cat "$work/batch.txt")"
	"$expect" "$work/line.json" pid == "$daemon" jobs == 2 "jobs.*.shares_with" == 1 streams == 1 ranks == 2 \
		workers == 2 "jobs.*.rate" ">" 0 "jobs.*.saved" ">" 0 node.made ">" 0 || fail "JSON: $(cat "$work/line.json")"
}
training result 16 look --dataset "$work/data" --pipeline imagenet-train-u8 --jobs 2 --batch 16 --step-ms 20
shows "no job is here"

# accessd dies, and another one comes.
kill -KILL "$daemon"
wait "$daemon" 2>/dev/null || true
shows "no accessd at" "Waiting for it"
start_accessd workers=2
shows "^access-top  accessd [0-9].* pid $daemon up" "no job is here"
press q
shows "^ended with 0$"

# Neither colours nor UTF-8: no code of a colour is sent, and nothing but ASCII.
start_top TERM=vt100 "$top" -d 0.2 -s "$socket"
shows "^access-top" "^F1Help"
terminal capture-pane -p -e >"$work/vt100.txt"
! grep -Eq "$(printf '\033')\[[0-9;]*[34][0-7]" "$work/vt100.txt" || fail "colours on a vt100: $(cat -v "$work/vt100.txt")"
start_top NO_COLOR=1 LC_ALL=C "$top" -d 0.2 -s "$socket" --view node
shows "^access-top" "WHAT +VALUE HISTORY" "^made "
terminal capture-pane -p -e >"$work/ascii.txt"
! grep -Eq "$(printf '\033')\[[0-9;]*[34][0-7]" "$work/ascii.txt" || fail "colours with NO_COLOR: $(cat -v "$work/ascii.txt")"
! LC_ALL=C grep -q "[^ -~$(printf '\t\033')]" "$work/ascii.txt" || fail "not ASCII: $(cat -v "$work/ascii.txt")"
press F10
shows "^ended with 0$"
start_top TERM=nonesuch "$top" -s "$socket"
shows "^ended with 1$"
grep -q 'terminal "nonesuch" is not known' "$work/top.err" || fail "an unknown terminal: $(cat "$work/top.err")"
stop_accessd
