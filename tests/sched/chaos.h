/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A carousel among random events: jobs, some with a fixed plan, some of a part of the samples, join, leave, are killed and come back from a token, stop,
 * read at any speed, take a grant as it is being revoked and keep it or yield it. The clients of
 * this world write down each sample they deliver, and the first broken promise ends the run.
 */

#include <stdbool.h>
#include <stdint.h>

struct chaos_limits {
	uint64_t max_n; /* samples: 0 .. max_n, or exactly n */
	uint64_t n;
	uint32_t max_need; /* blocks that a job of a large dataset needs, one epoch; 0: all */
	unsigned events;
	unsigned variants; /* pipelines that jobs have; 0: one */
	bool keeps;        /* behind random ops; most jobs want instances several times then */
};

/* NULL, or what was broken (static text). *ret_brought: samples that came from what was kept; may be NULL. */
const char *chaos_run(uint64_t seed, const struct chaos_limits *limits, uint64_t *ret_brought);
