/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of access-exporter, declared once; access-exporter(8) has the same, which a test compares.
 * OPTION(name, kind, member, least, most, choices, arg, help)
 */
/* clang-format off */
OPTION("listen", OPTION_TEXT, serve.listen, 0, 0, NULL, "ADDRESS:PORT|PATH", "where to answer: a number and a port, or the path of a Unix socket (127.0.0.1:9834)")
OPTION("socket", OPTION_TEXT, serve.socket, 0, 0, NULL, "PATH", "accessd's socket (else $ACCESS_SOCKET, the system's, this user's private one)")
OPTION("list", OPTION_FLAG, list, 0, 0, NULL, NULL, "print every metric: name, kind, unit, labels, meaning")
OPTION("help", OPTION_FLAG, help, 0, 0, NULL, NULL, "this text")
OPTION("version", OPTION_FLAG, version, 0, 0, NULL, NULL, "the version")
/* clang-format on */
