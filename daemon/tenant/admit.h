/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Admission by memory: arithmetic on sizes, refusals with the numbers. Knows no stream and no file.
 */

#include "shmring/slot_table.h"

enum { ADMIT_E_MEMORY = 1, ADMIT_E_BAD = 2 };

struct admit_ask {
	uint64_t available;                 /* bytes of the budget that nobody uses */
	uint64_t budget;                    /* for the message */
	const char *source;                 /* of the budget, for the message */
	uint32_t batch;                     /* B of the job that opens the stream */
	uint32_t chunk;                     /* C asked for, 0: by rule */
	uint32_t slots;                     /* configured, 0: by rule */
	uint32_t producing;                 /* chunks at once */
	uint32_t rows;                      /* of the queue */
	uint64_t arena;                     /* configured, 0: by rule */
	uint64_t mean_bytes, largest_bytes; /* of the files */
	uint32_t workers;                   /* that may decode at once */
};

struct admit_plan {
	uint32_t slots;                    /* to begin with */
	uint64_t arena_bytes, fixed_bytes; /* fixed: slot table, queue, arena */
};

/* Slots that a stream of so many ranks must have, and would like to have. */
uint32_t admit_least_slots(unsigned ranks);
uint32_t admit_wanted_slots(unsigned ranks, uint32_t configured);

struct admit_crowd {               /* who is at a stream when a job opens there */
	unsigned jobs, conns;      /* jobs that are open; connections, those that open, too */
	uint32_t slots, max_slots; /* that it has, and may have */
	uint32_t configured;       /* 0: by rule */
};

/* How many slots it is to have for the next job. Those that open together are thought of together, so that it takes fewer children;
 * but no more than twice what there is at once, for who is next waits for all of it. */
uint32_t admit_slots_for_next(const struct admit_crowd *crowd);
/* Rows of a stream's queue beside those of chunks in production: one that waits for a slow sample keeps its own. */
uint32_t admit_spare_rows(uint32_t producing);
/* Chooses chunk, slots, arena and the memory's size: fields, n_samples, block, seed and names are
 * set in geometry. Without a chunk asked for, floor(256 / B) batches, or those of all samples, are lowered, not below 1, until it fits.
 * 0; ADMIT_E_MEMORY, ADMIT_E_BAD with diag. */
int admit_stream(const struct admit_ask *ask, struct slot_geometry *geometry,
		 struct admit_plan *ret, struct diag *diag);
