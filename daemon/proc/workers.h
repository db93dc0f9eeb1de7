/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * accessd's side of the worker parent (worker/parent.h) and its workers: starts the parent, hands
 * it streams, tells of deaths by calls. Knows nobody. A dead parent loses all streams (their memory
 * cannot be mapped writable again): jobs open again with their tokens, as after a restart of
 * accessd.
 */

#include "daemon/proc/hang.h"
#include "daemon/proc/keeper.h"
#include "shmring/layout.h"

struct domain;
struct slot_geometry;
struct fill_death;
struct pipeline;

struct workers_calls { /* of whose workers they are */
	void (*restarted)(
	    struct domain *domain);          /* there is a parent in the place of one that died */
	void (*died)(struct domain *domain); /* the parent, and all of them */
	void (*hopeless)(struct domain *domain, const char *text); /* none can be had */
	void (*added)(struct domain *domain, uint32_t queue, uint64_t variant);
	void (*refused)(struct domain *domain, uint32_t queue, uint64_t variant, const char *text);
	void (*removed)(struct domain *domain, uint32_t queue, uint64_t variant);
	void (*let_go)(struct domain *domain); /* of a queue */
	void (*worker_died)(struct domain *domain, const struct fill_death *death);
};

enum workers_doom { WORKERS_LIVES, WORKERS_HUNG, WORKERS_STOPPED }; /* why we asked for its end */

struct workers_one {                 /* by index in the doorbell */
	pid_t pid;                   /* 0: not running */
	uint32_t owner;              /* its number in task words */
	uint64_t started_ns, cpu_ns; /* cpu_ns: that it had used at the last look (hung_find()) */
	enum workers_doom doom;
	struct hang hang;
};

struct workers {
	const struct workers_calls *calls;
	struct domain *domain;
	struct child_wants wants;
	struct keeper keeper;
	struct workers_one worker[LAYOUT_MAX_WORKERS];
	unsigned size, alive;
	unsigned leaving;     /* queues that it was told to let go of, and has not yet */
	unsigned stillborn;   /* that ended before they could work, in a row */
	uint64_t looked_ns;   /* looked for hung workers last */
	uint32_t stranger;    /* has a task and is no worker that we know of */
	uint64_t stranger_ns; /* since when */
	uint64_t cpu_ns;      /* of workers that ended */
	unsigned asked;       /* workers_compete(): the one that was looked at last */
};

/* As many as the machine wants; wants is copied. 0 or negative errno with diag. */
int workers_start(struct workers *workers, const struct child_wants *wants,
		  const struct workers_calls *calls, struct domain *domain, struct diag *diag);
/* waits: until it is gone. */
void workers_stop(struct workers *workers, bool waits);
uint64_t workers_cpu_ns(const struct workers *workers);
/* Does the next one in turn run, or wait for a processor, on the terms that it was started with? Its user may have
 * stopped it, slowed it down or bound it to few CPUs. */
bool workers_compete(struct workers *workers);
struct workers_variant {
	uint32_t queue, number;
	const struct pipeline *pipeline;
	const struct slot_geometry *geometry;
	int slots_fd, queue_fd, arena_fd; /* borrowed */
};
/* Gives a variant's slots (unsealed), its stream's queue and arena to the parent: added() follows. */
void workers_add(struct workers *workers, const struct workers_variant *variant);
void workers_go(struct workers *workers, uint32_t queue);
void workers_remove(struct workers *workers, uint32_t queue);
/* removed() follows. */
void workers_remove_variant(struct workers *workers, uint32_t queue, uint32_t variant);
/* So many from now on: those that are too many finish what they do. */
void workers_resize(struct workers *workers, unsigned size);
/* It hangs, or was stopped (then its sample is not to blame): its death follows. */
void workers_kill(struct workers *workers, unsigned index, bool is_stopped);
