# SPDX-License-Identifier: Apache-2.0
#
# Completion of access-ctl's command line for fish: commands, options and their words, numbers of jobs, files.
# tests/tools/completion.sh compares it with access-ctl --help.

function __access_ctl_jobs
    access-ctl --timeout-s 1 jobs 2>/dev/null | awk '$1 == "" { exit } $1 ~ /^[0-9]+$/ { print $1 }'
end

function __access_ctl_datasets
    access-ctl --timeout-s 1 datasets 2>/dev/null | awk '$1 ~ /^name:/ { print $1 }'
end

function __access_ctl_has_only
    set -l words (commandline -opc)
    test (count $words) -eq 2; and test "$words[2]" = "$argv[1]"
end

complete -c access-ctl -n __fish_use_subcommand -f
complete -c access-ctl -n __fish_use_subcommand -a status -d 'the state of the node, who waits for what, streams'
complete -c access-ctl -n __fish_use_subcommand -a ping -d 'does accessd answer?'
complete -c access-ctl -n __fish_use_subcommand -a jobs -d 'the jobs, their rates, and what each waits for'
complete -c access-ctl -n __fish_use_subcommand -a streams -d 'the streams and their slots'
complete -c access-ctl -n __fish_use_subcommand -a tenants -d 'the users who are served'
complete -c access-ctl -n __fish_use_subcommand -a datasets -d 'the data sets that have a name, and who may use them'
complete -c access-ctl -n __fish_use_subcommand -a workers -d 'the worker processes'
complete -c access-ctl -n __fish_use_subcommand -a peers -d 'the other nodes, and what comes from them'
complete -c access-ctl -n __fish_use_subcommand -a explain -d 'what limits a job, what would help, and what is kept of its samples'
complete -c access-ctl -n __fish_use_subcommand -a bad -d 'the bad samples of a job'
complete -c access-ctl -n __fish_use_subcommand -a cache -d 'what is kept'
complete -c access-ctl -n __fish_use_subcommand -a plan -d 'recorded plans'
complete -c access-ctl -n __fish_use_subcommand -a convert -d 'a folder of pictures into one file'

complete -c access-ctl -n '__access_ctl_has_only explain' -f -a '(__access_ctl_jobs) (__access_ctl_datasets)'
complete -c access-ctl -n '__access_ctl_has_only bad' -f -a '(__access_ctl_jobs)'
complete -c access-ctl -n '__access_ctl_has_only cache' -f -a 'ls pin unpin drop forget verify warm lend'
complete -c access-ctl -n '__access_ctl_has_only plan' -f -a 'show export'

complete -c access-ctl -l socket -r -F -d 'the socket of accessd'
complete -c access-ctl -l timeout-s -x -d 'seconds to wait for accessd in all'
complete -c access-ctl -l json -d 'print the answer as JSON'
complete -c access-ctl -l user -x -a everybody -d 'act for this user'
complete -c access-ctl -l format -x -a 'csv json plan' -d 'of plan export'
complete -c access-ctl -l output -r -F -d 'where plan export writes to'
complete -c access-ctl -l form -x -a 'auto packed indexed file decoded deepest' -d 'of convert, cache warm and cache lend'
complete -c access-ctl -l pipeline -x -a 'imagenet-train imagenet-train-u8 imagenet-eval imagenet-eval-u8' -d 'of cache warm and cache lend'
complete -c access-ctl -l jobs -x -d 'of convert, pictures at a time'
complete -c access-ctl -l shard-size -x -d 'of convert to TARGET.tar, bytes of a shard'
complete -c access-ctl -l force -d 'of convert, replace the target'
complete -c access-ctl -l check -d 'of convert, verify the target'
complete -c access-ctl -l help -d 'list commands and options'
complete -c access-ctl -l version -d 'print the version'
