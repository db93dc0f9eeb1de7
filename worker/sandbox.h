/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_SANDBOX_H
#define WORKER_SANDBOX_H

/*
 * The last thing a worker does before it looks at a stranger's bytes. sandbox.c is the real one;
 * sandbox_none.c stands in for it under sanitizers, whose run-time needs what a sandbox forbids.
 */

#include "base/base.h"

struct sandbox_limits {
	uint64_t memory; /* bytes of private memory (heap) */
	int event_fd;    /* the one descriptor that may be written; all others are closed */
};

/* Closes descriptors, drops capabilities, sets limits, loads the filter. There is no way back.
 * 0 or negative errno: the caller must then exit. */
int sandbox_enter(const struct sandbox_limits *limits);
/* Does sandbox_enter() of this build filter system calls and limit memory? */
bool sandbox_is_strict(void);

#endif
