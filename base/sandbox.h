/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_SANDBOX_H
#define BASE_SANDBOX_H

/*
 * The last thing a worker, a maker or an indexer does before it looks at a stranger's bytes. sandbox.c is the real one;
 * sandbox_none.c stands in for it under sanitizers, whose run-time needs what a sandbox forbids.
 */

#include "base/base.h"

struct sandbox_limits {
	uint64_t memory; /* bytes of private memory (heap) */
	int event_fd;    /* the one descriptor that may be written */
	bool reads;      /* and read_fd may be read at any place; all others are closed */
	int read_fd;
};

/* Closes descriptors, drops capabilities, sets limits, loads the filter. There is no way back.
 * 0 or negative errno: the caller must then exit. */
int sandbox_enter(const struct sandbox_limits *limits);
/* Does sandbox_enter() of this build filter system calls and limit memory? */
bool sandbox_is_strict(void);

#endif
