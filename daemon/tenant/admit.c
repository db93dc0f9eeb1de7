/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission. Memory is refused before it is touched: what a stream is given here it can reserve in
 * full, slot after slot, so that no process ever meets SIGBUS or the OOM killer for a batch. At
 * least max(4, 2 * ranks) slots: when all other ranks stop with two pins each, a live one still has
 * two.
 */
#include "daemon/tenant/admit.h"

#define MOST_SLOTS 512
#define LEAST_ARENA (UINT64_C(16) << 20)
#define MOST_ARENA (UINT64_C(256) << 20)
#define ARENA_PART 8 /* of what is free, for large files */

uint32_t admit_least_slots(unsigned ranks)
{
	return BASE_MAX(4u, 2 * ranks);
}

uint32_t admit_spare_rows(uint32_t producing)
{
	return producing > 1 && producing < LAYOUT_MAX_ROWS;
}

uint32_t admit_wanted_slots(unsigned ranks, uint32_t configured)
{
	return configured ? configured : BASE_MIN(2 * ranks + 2, (unsigned)MOST_SLOTS);
}

uint32_t admit_slots_for_next(const struct admit_crowd *crowd)
{
	const uint32_t for_next = admit_wanted_slots(crowd->jobs + 1, crowd->configured);
	const uint32_t for_all = admit_wanted_slots(crowd->conns, crowd->configured);

	return BASE_MIN(BASE_MAX(for_next, BASE_MIN(for_all, 2 * crowd->slots)), crowd->max_slots);
}

/* Twice what the chunks in production read, and any one file, within bounds; and of large files, as videos are, one for
 * each worker and the next, if that is a small part of what is free. */
static uint64_t arena_by_rule(const struct admit_ask *ask, uint32_t chunk)
{
	uint64_t bytes = 2 * ask->producing * (uint64_t)chunk * ask->mean_bytes;
	const uint64_t at_once = 2 * ask->workers * ask->mean_bytes;

	bytes = BASE_MIN(BASE_MAX(bytes, LEAST_ARENA), MOST_ARENA);
	bytes = BASE_MAX(bytes, BASE_MIN(2 * ask->largest_bytes, MOST_ARENA));
	return BASE_MAX(bytes, BASE_MIN(at_once, ask->available / ARENA_PART));
}

/* Tries one size of chunk. true: it fits. */
static bool fits(const struct admit_ask *ask, uint32_t chunk, struct slot_geometry *geometry,
		 struct admit_plan *plan, int *error)
{
	uint32_t least = ask->slots ? ask->slots : admit_least_slots(1);
	uint64_t queue_bytes = ask->rows * (uint64_t)chunk * sizeof(struct layout_task) + 8192;
	uint64_t room;

	geometry->chunk = chunk;
	geometry->max_slots = least;
	*error = slot_table_plan(geometry);
	if (*error)
		return false;
	plan->arena_bytes = ask->arena ? ask->arena : arena_by_rule(ask, chunk);
	plan->slots = least;
	plan->fixed_bytes = queue_bytes + plan->arena_bytes + geometry->table_bytes;
	if (ask->available <= plan->fixed_bytes)
		return false;
	room = (ask->available - plan->fixed_bytes) / geometry->slot_stride;
	if (room < least)
		return false;
	if (!ask->slots) { /* the memory can grow up to what the budget allows */
		geometry->max_slots = (uint32_t)BASE_MIN(room, (uint64_t)MOST_SLOTS);
		*error = slot_table_plan(geometry);
		plan->fixed_bytes = queue_bytes + plan->arena_bytes + geometry->table_bytes;
	}
	return !*error && plan->fixed_bytes + least * geometry->slot_stride <= ask->available;
}

static int refuse(const struct admit_ask *ask, const struct slot_geometry *geometry,
		  const struct admit_plan *plan, struct diag *diag)
{
	return diag_fail(diag, ADMIT_E_MEMORY,
			 "the stream needs %s (%u slots of %u samples, %s each, and %s for tables "
			 "and reading), but %s of the budget of %s (%s) is free: raise `memory`, "
			 "use a smaller batch, uint8 output, or close another stream",
			 BASE_BYTES(plan->fixed_bytes + plan->slots * geometry->slot_stride),
			 plan->slots, geometry->chunk, BASE_BYTES(geometry->slot_stride),
			 BASE_BYTES(plan->fixed_bytes), BASE_BYTES(ask->available),
			 BASE_BYTES(ask->budget), ask->source);
}

int admit_stream(const struct admit_ask *ask, struct slot_geometry *geometry,
		 struct admit_plan *ret, struct diag *diag)
{
	const uint64_t all = (geometry->n_samples + ask->batch - 1) / ask->batch;
	uint32_t batches = ask->batch < 256 ? (uint32_t)BASE_MIN(256 / ask->batch, all) : 1;
	int error = 0;

	if (ask->chunk && ask->chunk < geometry->block)
		return diag_fail(
		    diag, ADMIT_E_BAD,
		    "a chunk of %u samples is smaller than a block of this dataset (%u)",
		    ask->chunk, geometry->block);
	for (; batches >= 1 && !error; batches--) {
		uint32_t chunk = ask->chunk ? ask->chunk : ask->batch * batches;

		if (fits(ask, BASE_MAX(chunk, geometry->block), geometry, ret, &error))
			return 0;
		if (ask->chunk)
			break;
	}
	if (!error)
		return refuse(ask, geometry, ret, diag);
	return diag_fail(diag, ADMIT_E_BAD, "a slot of %u samples is too large to address",
			 geometry->chunk);
}
