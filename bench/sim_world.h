/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Jobs and a producer, simulated, round the very carousel that the daemon runs: what happens is
 * told to the carousel as events, what it decides is done.
 *
 * A job reads one chunk at a time, in the order of its grants, and asks for the next when it is
 * through. Production is one queue at `rate` times the fastest job's speed, however many chunks are
 * decided ahead of it (`producing`).
 */

#include "sched/carousel.h"

#define SIM_WORLD_JOBS 8
#define SIM_WORLD_SLOTS 64

struct sim_world_scenario {
	const char *name;
	unsigned jobs, slots;
	double speed[SIM_WORLD_JOBS];    /* chunks in the fastest job's time for one */
	double start[SIM_WORLD_JOBS];    /* epochs of the fastest */
	unsigned epochs[SIM_WORLD_JOBS]; /* how many it wants */
	uint32_t variant[SIM_WORLD_JOBS];
	uint32_t usable_again;       /* variants without random ops */
	double limit_100, limit_400; /* percent over the reference: see sim.c */
};

struct sim_world_run {
	uint64_t n;
	uint32_t chunk, producing;
	uint64_t chapter; /* blocks a chapter; 0: what is right for n */
	uint32_t max_begun;
	double rate;
	uint64_t seed;
	/* Told of each chunk as a job takes it; may be NULL. */
	void (*taken_fn)(void *arg, unsigned job, uint64_t epoch,
			 const struct carousel_chunk *chunk);
	void *arg;
};

struct sim_world_result {
	double over, work,
	    stall;       /* shares: over the reference, of separate loaders' work, worst wait */
	uint64_t chunks; /* dealt */
	/* Samples made in all variants: over the sum of what the jobs of each would have cost by
	 * themselves, by the same reference. streams: that sum over the reference, as one stream a
	 * variant would have decoded. */
	double outputs, streams;
};

/* Runs to the end. 0, or -EDEADLK: some job is never given what it needs. */
int sim_world(const struct sim_world_scenario *scenario, const struct sim_world_run *run,
	      struct sim_world_result *ret);
