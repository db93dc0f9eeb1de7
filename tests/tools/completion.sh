#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Completions of access-ctl, access-bench, access-report and access-top for bash, zsh and fish have every command, every option and
# every word of an option that is a fixed choice, and no other. Those of zsh and fish are read, and tried where there is that shell.
set -eu
top=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${top_builddir:-.}
bad=0
complain() {
	echo "$*"
	bad=1
}
same() { # same WHAT FOUND EXPECTED
	[ -n "$3" ] || complain "$1: $name --help lists nothing"
	[ "$(sort -u <<<"$2")" = "$(sort -u <<<"$3")" ] || complain "$1 completes:" "$2" "$name has:" "$3"
}
completed() { # completed WORD...: the last one is completed
	COMP_WORDS=("$name" "$@")
	COMP_CWORD=$#
	COMPREPLY=()
	"_${name//-/_}"
	printf '%s\n' "${COMPREPLY[@]}"
}
of_fish() { # of_fish PATTERN: what of a line of it is completed, a word a line
	sed -n "s/^complete -c $name $1.*/\\1/p" "$fish_file" | tr ' ' '\n'
}
has_fish() { # has_fish LINE: fish itself completes it
	HOME=/nonexistent fish --no-config -c "source '$fish_file'; complete -C '$1'" | cut -f 1
}
choices() { # choices OPTION: what it takes, of its own message
	{ "$program" "$1" nonsense 2>&1 || true; } | sed -n 's/.*: expected //p' | tr '|' '\n'
}
command -v zsh >/dev/null || echo "not tested: whether zsh reads the completions; there is no zsh here"
command -v fish >/dev/null || echo "not tested: whether fish completes so; there is no fish here"

# check_options PROGRAM [OPTION...]: has its options, and of each OPTION the words.
check_options() {
	local option options
	program=$1 name=${1##*/}
	zsh_file=$top/tools/completion/zsh/_$name fish_file=$top/tools/completion/fish/$name.fish
	shift
	# shellcheck source=tools/completion/bash/access-ctl
	. "$top/tools/completion/bash/$name"
	help=$("$program" --help)
	options=$(sed -n 's/^  \(--[a-z-]*\).*/\1/p' <<<"$help")
	same "bash: --" "$(completed --)" "$options"
	same "zsh: --" "$(sed -n "s/^\t*'[^[]*\(--[a-z-]*\)[}']*\[.*/\1/p" "$zsh_file")" "$options"
	same "fish: --" "$(of_fish "-l \([a-z-]*\) " | sed 's/^/--/')" "$options"
	for option; do
		same "bash: $option" "$(completed "$option" "")" "$(choices "$option")"
		same "zsh: $option" "$(sed -n "s/^\t*'$option\[.*(\(.*\))' .*/\1/p" "$zsh_file" | tr ' ' '\n')" "$(choices "$option")"
		same "fish: $option" "$(of_fish "-l ${option#--} -x -a '\([^']*\)'")" "$(choices "$option")"
	done
	! command -v zsh >/dev/null || zsh -n "$zsh_file" || complain "zsh does not read $zsh_file"
	! command -v fish >/dev/null || same "fish itself: --" "$(has_fish "$name --" | sed 's/=$//')" "$options"
}

check_options "$build/tools/access-bench" --order --bad
check_options "$top/tools/access-report"
if [ -x "$build/tools/access-top" ]; then
	check_options "$build/tools/access-top" --view
else
	echo "not tested: access-top, which configure left out"
fi
check_options "$build/tools/access-ctl" --form --format

# ---- commands of access-ctl ----

listed=$(sed -n '/^Commands:/,/^$/s/^  \([a-z].*\)/\1/p' <<<"$help")
commands=$(cut -d ' ' -f 1 <<<"$listed" | sort -u)
second() { # second COMMAND: what follows it
	sed -n "s/^$1 \([a-z|]*\) .*/\1/p" <<<"$listed" | tr '|' '\n'
}

same "bash: nothing" "$(completed "")" "$commands"
same "bash: --json" "$(completed --json "")" "$commands"
same "bash: --socket X" "$(completed --socket X "")" "$commands"
same "bash: status --" "$(completed status --)" "$(completed --)"
[ "$(completed st)" = "$(printf 'status\nstreams')" ] || [ "$(completed st)" = "$(printf 'streams\nstatus')" ] ||
	complain "bash: st completes $(completed st)"
same "zsh" "$(sed -n "s/^\t\t'\([a-z]*\):.*/\1/p" "$zsh_file")" "$commands"
same "fish" "$(of_fish "-n __fish_use_subcommand -a \([a-z]*\) ")" "$commands"
! command -v fish >/dev/null || same "fish itself" "$(has_fish 'access-ctl ')" "$commands"
for command in cache plan; do
	same "bash: $command" "$(completed $command "")" "$(second $command)"
	same "zsh: $command" "$(sed -n "s/^\t\t$command-3) compadd \(.*\) ;;/\1/p" "$zsh_file" | tr ' ' '\n')" "$(second $command)"
	same "fish: $command" "$(of_fish "-n '__access_ctl_has_only $command' -f -a '\(.*\)'")" "$(second $command)"
	! command -v fish >/dev/null || same "fish itself: $command" "$(has_fish "access-ctl $command ")" "$(second $command)"
done
exit $bad
