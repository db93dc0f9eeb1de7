/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What oa_fd() returns: an epoll of the socket at hand and of a timer. With the stream's lock. */

#include "base/base.h"

struct pollable {
	bool is_armed; /* since the last oa_next() */
	int epoll_fd, timer_fd,
	    watch_fd; /* -1: never asked for; watch_fd is the socket: borrowed */
};

void pollable_init(struct pollable *pollable);
void pollable_fini(struct pollable *pollable);
/* The socket (-1: none) is polled from now on. 0 or negative errno. */
int pollable_watch(struct pollable *pollable, int sock);
/* Before the socket is closed. A forked child may have a copy of it, so that the kernel would go on
 * to report it. */
void pollable_forget(struct pollable *pollable);
/* Readable at at_ns of CLOCK_MONOTONIC, by itself; 0: never. */
void pollable_set_timer(const struct pollable *pollable, uint64_t at_ns);
