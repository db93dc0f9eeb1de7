#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Completions of access-ctl for bash, zsh and fish have every command, every option and every word of an option that
# the program has, and no other. Those of zsh and fish are read, and tried where there is that shell.
set -eu
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
ctl=$build/tools/access-ctl
zsh_file=$top/tools/completion/zsh/_access-ctl
fish_file=$top/tools/completion/fish/access-ctl.fish
bad=0
complain() {
	echo "$*"
	bad=1
}
same() { # same WHAT FOUND EXPECTED
	[ -n "$3" ] || complain "$1: --help lists nothing"
	[ "$(sort -u <<<"$2")" = "$(sort -u <<<"$3")" ] || complain "$1 completes:" "$2" "access-ctl has:" "$3"
}
# shellcheck source=tools/completion/bash/access-ctl
. "$top/tools/completion/bash/access-ctl"
completed() { # completed WORD...: the last one is completed
	COMP_WORDS=(access-ctl "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	_access_ctl
	printf '%s\n' "${COMPREPLY[@]}"
}

help=$("$ctl" --help)
listed=$(sed -n '/^Commands:/,/^$/s/^  \([a-z].*\)/\1/p' <<<"$help")
commands=$(cut -d ' ' -f 1 <<<"$listed" | sort -u)
options=$(sed -n 's/^  \(--[a-z-]*\).*/\1/p' <<<"$help")
second() { # second COMMAND: what follows it
	sed -n "s/^$1 \([a-z|]*\) .*/\1/p" <<<"$listed" | tr '|' '\n'
}
choices() { # choices OPTION: what it takes, of its own message
	{ "$ctl" "$1" nonsense 2>&1 || true; } | sed -n 's/.*: expected //p' | tr '|' '\n'
}

same "bash: nothing" "$(completed "")" "$commands"
same "bash: --json" "$(completed --json "")" "$commands"
same "bash: --socket X" "$(completed --socket X "")" "$commands"
same "bash: cache" "$(completed cache "")" "$(second cache)"
same "bash: plan" "$(completed plan "")" "$(second plan)"
same "bash: --" "$(completed --)" "$options"
same "bash: status --" "$(completed status --)" "$options"
same "bash: --form" "$(completed --form "")" "$(choices --form)"
same "bash: --format" "$(completed --format "")" "$(choices --format)"
[ "$(completed st)" = "$(printf 'status\nstreams')" ] || [ "$(completed st)" = "$(printf 'streams\nstatus')" ] ||
	complain "bash: st completes $(completed st)"

same "zsh" "$(sed -n "s/^\t\t'\([a-z]*\):.*/\1/p" "$zsh_file")" "$commands"
same "zsh: --" "$(sed -n "s/^\t\t'\(--[a-z-]*\)\[.*/\1/p" "$zsh_file")" "$options"
same "zsh: cache" "$(sed -n 's/^\t\tcache-3) compadd \(.*\) ;;/\1/p' "$zsh_file" | tr ' ' '\n')" "$(second cache)"
same "zsh: plan" "$(sed -n 's/^\t\tplan-3) compadd \(.*\) ;;/\1/p' "$zsh_file" | tr ' ' '\n')" "$(second plan)"
for option in --form --format; do
	same "zsh: $option" "$(sed -n "s/^\t\t'$option\[.*(\(.*\))' .*/\1/p" "$zsh_file" | tr ' ' '\n')" "$(choices $option)"
done
if command -v zsh >/dev/null; then
	zsh -n "$zsh_file" || complain "zsh does not read $zsh_file"
else
	echo "not tested: whether zsh reads the completion; there is no zsh here"
fi

of_fish() { # of_fish PATTERN: what of a line of it is completed, a word a line
	sed -n "s/^complete -c access-ctl $1.*/\\1/p" "$fish_file" | tr ' ' '\n'
}
same "fish" "$(of_fish "-n __fish_use_subcommand -a \([a-z]*\) ")" "$commands"
same "fish: --" "$(of_fish "-l \([a-z-]*\) " | sed 's/^/--/')" "$options"
same "fish: cache" "$(of_fish "-n '__access_ctl_has_only cache' -f -a '\(.*\)'")" "$(second cache)"
same "fish: plan" "$(of_fish "-n '__access_ctl_has_only plan' -f -a '\(.*\)'")" "$(second plan)"
for option in form format; do
	same "fish: --$option" "$(of_fish "-l $option -x -a '\([^']*\)'")" "$(choices --$option)"
done
if command -v fish >/dev/null; then
	tried=$(HOME=/nonexistent fish --no-config -c "source '$fish_file'; complete -C 'access-ctl '" | cut -f 1)
	same "fish itself" "$tried" "$commands"
	tried=$(HOME=/nonexistent fish --no-config -c "source '$fish_file'; complete -C 'access-ctl cache '" | cut -f 1)
	same "fish itself: cache" "$tried" "$(second cache)"
else
	echo "not tested: whether fish completes so; there is no fish here"
fi
exit $bad
