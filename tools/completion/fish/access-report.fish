# SPDX-License-Identifier: Apache-2.0
#
# Completion of access-report's command line for fish. tests/tools/completion.sh compares it with access-report --help.

complete -c access-report -f
complete -c access-report -l socket -r -F -d 'the socket of accessd'
complete -c access-report -l names -d 'leave names of jobs, data sets and files as they are'
complete -c access-report -l help -d 'list options'
complete -c access-report -l version -d 'print the version'
