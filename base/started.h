/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The first acts of a program that accessd starts with a control socket at descriptor 3 (access-reader, access-carrier,
 * access-gate), in this order, while it has one thread. What goes wrong is said with the program's name, and ends it.
 */

#define STARTED_CONTROL_FD 3

/* Its options: --as UID:GID[:groups], whom it becomes (nothing of anybody's was touched before), --help, and, unless name is
 * NULL, another one whose value is taken. Exits with 2 for a bad one, 1 if it must not become that user. */
void started_options(const char *program, int argc, char **argv, const char *usage,
		     const char *name, void (*take)(const char *value));

/* Not dumpable, so that the user's other processes cannot write to its memory, and with that to what it shares; no new
 * privileges, no file for others, no descriptor beyond the socket, no end by a signal of the terminal. The log has its name. */
void started_confine(const char *program);

/* It lives as long as accessd: the kernel kills it with its parent, the socket ends with the parent, and a parent that was
 * gone before either could notice is found by comparing the socket's maker with getppid(). */
void started_follow(const char *program);
