/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of access-top, declared once; access-top(1) has the same, which a test compares.
 * OPTION(letter, name, kind, member, least, most, choices, arg, help); letter 0: none
 */
/* clang-format off */
OPTION('b', "batch", OPTION_FLAG, batch, 0, 0, NULL, NULL, "print, in the place of drawing on the terminal")
OPTION('n', "iterations", OPTION_COUNT, iterations, 1, 1e9, NULL, "N", "end after so many times")
OPTION('d', "delay", OPTION_REAL, delay_s, .1, 3600, NULL, "SECONDS", "between two times (1)")
OPTION(0, "json", OPTION_FLAG, json, 0, 0, NULL, NULL, "print all views, a line of JSON each time")
OPTION('s', "socket", OPTION_TEXT, socket, 0, 0, NULL, "PATH", "accessd's socket (else $ACCESS_SOCKET, the system's, this user's private one)")
OPTION('u', "user", OPTION_TEXT, user, 0, 0, NULL, "USER", "only what is this user's, a name or a number")
OPTION(0, "view", OPTION_CHOICE, view, 0, 0, "jobs|streams|ranks|workers|caches|tenants|peers|node", "VIEW", "begin with it: jobs, streams, ranks, workers, caches, tenants, peers, node")
OPTION(0, "sort", OPTION_TEXT, sort, 0, 0, NULL, "COLUMN", "sort by this column of the view, as --help names it")
OPTION(0, "filter", OPTION_TEXT, filter, 0, 0, NULL, "TEXT", "only rows that have the text")
OPTION('h', "help", OPTION_FLAG, help, 0, 0, NULL, NULL, "this text")
OPTION(0, "version", OPTION_FLAG, version, 0, 0, NULL, NULL, "the version")
/* clang-format on */
