/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which workers hang. Judged by what a worker does, not by the clock on the wall alone: one that
 * lacks CPU on a loaded machine works, and waits for nothing but its turn.
 */

#include "base/base.h"

enum hang_verdict {
	HANG_NO,
	HANG_LOOPS,   /* its CPU time on one sample is over the limit */
	HANG_BLOCKED, /* it sleeps on a sample, and does not come back */
	HANG_STOPPED, /* somebody stopped it: no sample is to blame */
};

struct hang_work { /* what a worker is at */
	bool has_task;
	bool is_wanted; /* no task, but there are some that nobody has taken */
	uint32_t queue, row, task;
	uint64_t instance; /* which use of the row */
	uint8_t attempt;
};

struct hang { /* of one worker, over the looks at it; zeroed: not looked at yet */
	struct hang_work work;
	uint64_t since_ns;     /* it was at `work` at each look from then on */
	uint64_t moved_ns;     /* look at which its CPU time had last grown */
	uint64_t since_cpu_ns; /* its CPU time at since_ns */
	uint64_t cpu_ns;       /* its CPU time at the last look; 0: cannot be read */
};

/* Is it at the same thing? */
bool hang_is_same(const struct hang_work *a, const struct hang_work *b);
/* A look: what it is at, and the CPU time it has used in its life (0: cannot be read). */
void hang_note(struct hang *hang, const struct hang_work *work, uint64_t now_ns, uint64_t cpu_ns);
/* Everything stood still for a while: no time has passed for it. */
void hang_forgive(struct hang *hang, uint64_t now_ns);
/* CPU time on what it is at, as far as it was looked at; 0: cannot be read. */
uint64_t hang_spent_ns(const struct hang *hang);
/* The same of a life's that is known by now; the longest that it may take where none could be read. */
uint64_t hang_used_ns(const struct hang *hang, uint64_t life_ns, uint64_t limit_ns);
/* Is it worth while to judge? */
bool hang_is_late(const struct hang *hang, uint64_t now_ns, uint64_t limit_ns);
/* state: as in /proc/PID/stat, 0: cannot be read. */
enum hang_verdict hang_judge(const struct hang *hang, uint64_t now_ns, uint64_t limit_ns,
			     char state);

/* CPU time that so large a picture may take, whatever its neighbours take. pixels: as its worker says,
 * unbelieved; bytes: of its file. */
uint64_t hang_allowance_ns(uint64_t pixels, uint64_t bytes);
