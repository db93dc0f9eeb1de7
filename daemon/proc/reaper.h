/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The reaper: one thread beside the loop, which reaps children that execute a program (child.h) and does nothing else.
 *
 * Whoever reaps a process clears away its entries in /proc, and spins as long as somebody else is at these: its own
 * last thread, or anybody who looks at it (ps). Where that one has a low priority, and jobs want all cores, it took a
 * second of the loop's CPU time. So the loop only looks whether a child has ended, and this thread has the lowest
 * priority there is. It takes no lock and no memory, for accessd forks beside it: a child has of a lock what
 * it was at the fork. A thread for each child would hold locks while it begins and ends.
 */

#include <pthread.h>
#include <sys/queue.h>
#include "base/base.h"

struct loop;
struct reaper_wait;

struct reaper { /* zeroed: none; what it is given stays a zombie until we end */
	struct loop *loop;
	pthread_t thread;
	int pids; /* pid_t values, written by the loop */
	LIST_HEAD(reaper_waits, reaper_wait) waits;
};

/* 0 or negative errno. */
int reaper_begin(struct reaper *reaper, struct loop *loop);
/* Reaps it as soon as it has ended; 0 is fine. It must be in a process group of its own. */
void reaper_take(struct reaper *reaper, pid_t pid);
/* Waits for none that has not ended; the loop is still there. */
void reaper_end(struct reaper *reaper);
