/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Descriptors for accessd that it did not ask for, and files whose close() is never answered. */

#include <stddef.h>
#include <sys/types.h>

#define FOREIGN_MOST 253 /* descriptors of a message, by the kernel */

/* One datagram, with fd so many times. */
void foreign_send(int sock, const void *data, size_t size, int fd, unsigned n_fds);
/* A file system in which each name is a file of all users, seen by this process and those it starts from now
 * on. The process that serves it, which dies with ours: its end
 * answers all; -1: there is none to be had here, which was said. */
pid_t foreign_files_start(const char *folder);
