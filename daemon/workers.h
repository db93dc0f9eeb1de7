/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_WORKERS_H
#define DAEMON_WORKERS_H

/*
 * accessd's side of the worker parent (worker/parent.h) and its workers: starts the parent, hands
 * it streams, finds hung workers, passes deaths on. A dead parent loses all streams (their memory
 * cannot be mapped writable again): jobs open again with their tokens, as after a restart of
 * accessd.
 */

#include "base/base.h"
#include "daemon/child.h"
#include "daemon/loop.h"
#include "shmring/layout.h"

struct node;
struct stream;

struct workers_one {    /* by index in the bell */
	pid_t pid;      /* 0: not running */
	uint32_t owner; /* its number in task words */
	bool hung;      /* we asked for its end */
};

struct workers {
	struct node *node;
	struct child child;
	struct loop_watch *watch, *restart;
	struct workers_one worker[LAYOUT_MAX_WORKERS];
	unsigned size, alive;
	uint64_t looked_ns,
	    awake_ns;    /* looked for hung workers last; all were running from then on */
	uint64_t cpu_ns; /* of workers that ended */
	struct child_luck luck;
};

int workers_start(struct workers *workers, struct node *node, unsigned size, struct diag *diag);
void workers_stop(struct workers *workers);
void workers_died(struct workers *workers, int status);
uint64_t workers_cpu_ns(const struct workers *workers);
/* Gives a stream's slots (unsealed), lane and arena to the parent: stream_workers_added()
 * follows. */
void workers_add(struct workers *workers, struct stream *stream);
void workers_go(struct workers *workers, uint32_t lane);
void workers_remove(struct workers *workers, uint32_t lane);
/* Every tick: a worker that is on one sample for too long is killed. */
void workers_find_hung(struct workers *workers, uint64_t now_ns);

#endif
