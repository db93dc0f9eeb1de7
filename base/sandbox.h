/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The last thing a worker, a maker, an indexer or a carrier does before it looks at a stranger's bytes. sandbox.c is the real one;
 * sandbox_none.c stands in for it under sanitizers, whose run-time needs what a sandbox forbids.
 */

#include "base/base.h"

struct sandbox_limits {
	uint64_t memory; /* bytes of private memory (heap) */
	int event_fd;    /* the one descriptor that may be written */
	bool reads;      /* and read_fd may be read, at any place; all others are closed */
	int read_fd;
	bool is_pipe; /* read_fd: is read in its turn, and at no place */
};

/* Closes descriptors, drops capabilities, sets limits, loads the filter. There is no way back.
 * 0 or negative errno: the caller must then exit. */
int sandbox_enter(const struct sandbox_limits *limits);
/* Drops capabilities: the first step of sandbox_enter(), and of sandbox_enter_talking() by its caller, for an RDMA device
 * obeys only who has the credentials with which he opened it. 0 or negative errno. */
int sandbox_drop_capabilities(void);
/* The same for a process that talks to others for as long as it lives, by the sockets that it has and those that come over
 * them: it has dropped its capabilities, keeps its descriptors, may send and receive, close, and wait; it opens, connects and starts nothing. For all
 * threads, which must have begun. memory: as above; verbs_fd: an opened RDMA device, whose calls it may make; -1: none. */
int sandbox_enter_talking(uint64_t memory, int verbs_fd);
/* Does sandbox_enter() of this build filter system calls and limit memory? */
bool sandbox_is_strict(void);
