/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The processes: starts workers, notices that they ended, replaces them, retires generations.
 * Owned and called by the parent's one thread.
 */

#include "base/identity.h"
#include "shmring/layout.h"
#include "worker/backoff.h"
#include "worker/worker.h"

enum {
	POOL_E_NONE = 1,  /* nothing to start or reap now */
	POOL_E_SPENT = 2, /* all owner numbers were used: this parent must end */
};

#define POOL_LAST_OWNER ((UINT32_C(1) << 24) - 1)

struct pool_settings {
	unsigned n_workers; /* 1 .. LAYOUT_MAX_WORKERS */
	uint64_t memory;    /* heap of a worker, bytes */
	int nice;           /* added to the parent's */
	int oom_fd;         /* /proc/self/oom_score_adj of the parent, for writing; -1: cannot */
	int oom_parent;     /* its usual value */
	const struct identity *as; /* whom parent and workers become, NULL: nobody else; borrowed */
};

struct pool_worker {
	pid_t pid; /* 0: the entry is free */
	uint32_t owner;
	uint64_t generation, started_ns;
	bool is_surplus; /* there were to be fewer since it was started */
};

struct pool_event { /* what PARENT_STARTED and PARENT_EXITED say */
	uint32_t owner;
	unsigned index;
	pid_t pid;
	int status;
	uint64_t cpu_ns;
};

struct pool {
	struct pool_settings settings;
	struct layout_doorbell *doorbell; /* borrowed */
	const struct rings *rings;        /* borrowed; NULL: none */
	const struct resident *resident;  /* borrowed */
	const struct workset *workset;    /* borrowed */
	struct generation_word *current;  /* owned mapping, one page */
	uint64_t generation;
	uint32_t last_owner;
	struct backoff backoff;
	struct pool_worker worker[LAYOUT_MAX_WORKERS];
};

/* write-back ring: NULL for none. 0 or negative errno. */
int pool_init(struct pool *pool, const struct pool_settings *settings,
	      struct layout_doorbell *doorbell, const struct rings *rings,
	      const struct resident *resident, const struct workset *workset);
/* Kills every worker and waits for none. */
void pool_fini(struct pool *pool);
/* Starts one worker that is missing. 0 and *ret; POOL_E_NONE; POOL_E_SPENT; negative errno: the
 * fork failed (counted as a death: the next try waits). */
int pool_start(struct pool *pool, uint64_t now_ns, struct pool_event *ret);
/* Reaps one worker that ended. 0 and *ret, or POOL_E_NONE. */
int pool_reap(struct pool *pool, uint64_t now_ns, struct pool_event *ret);
/* From now on workers that were started before are out of date. */
void pool_retire(struct pool *pool);
/* From now on there are so many workers, 1 .. LAYOUT_MAX_WORKERS: those that are too many finish their
 * task and exit. */
void pool_resize(struct pool *pool, unsigned n_workers);
/* SIGKILL to the worker of that number; false if there is none. */
bool pool_kill(struct pool *pool, uint64_t owner);
/* The oldest generation that a living worker has; the current one if none lives. */
uint64_t pool_oldest(const struct pool *pool);
/* ns until pool_start() has something to do: UINT64_MAX if not before something else happens. */
uint64_t pool_wait_ns(const struct pool *pool, uint64_t now_ns);
