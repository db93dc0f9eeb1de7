# SPDX-License-Identifier: Apache-2.0
#
# Completion of access-top's command line for fish. tests/tools/completion.sh compares it with access-top --help.

complete -c access-top -f
complete -c access-top -l batch -s b -d 'print, in the place of drawing'
complete -c access-top -l iterations -s n -x -d 'end after so many times'
complete -c access-top -l delay -s d -x -d 'between two times, in seconds'
complete -c access-top -l json -d 'print lines of JSON'
complete -c access-top -l socket -s s -r -F -d 'the socket of accessd'
complete -c access-top -l user -s u -x -a '(__fish_complete_users)' -d 'only this user'
complete -c access-top -l view -x -a 'jobs streams ranks workers caches tenants peers node' -d 'begin with it'
complete -c access-top -l sort -x -d 'sort by this column'
complete -c access-top -l filter -x -d 'only rows that have it'
complete -c access-top -l help -s h -d 'list options, keys and columns'
complete -c access-top -l version -d 'print the version'
