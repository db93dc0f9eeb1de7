/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs with a fixed plan. Their need is the rest of the epoch's order, so its number says it all:
 * the next place is n - need_samples. What a slot holds for them is named by (order, seed, lap,
 * place): whoever has the same plan and comes to that place while it is resident is granted it.
 *
 * A job that follows another one on the same plan is granted nothing out of order; the slots that
 * it will come to are kept for it like slots that were granted, as far as all slots reach.
 */

#include "sched/carousel_state.h"

static uint64_t place_of(const struct carousel *carousel, const struct carousel_member *member)
{
	return carousel_listed_places(carousel, member) - member->need_samples;
}

/* Is the chunk one of the epoch that the job is in? */
static bool is_of_epoch(const struct carousel *carousel, const struct carousel_member *member,
			const struct carousel_chunk *chunk)
{
	if (member->plan.order == PLAN_LIST)
		return carousel_listed_has(carousel, member, chunk);
	if (member->plan.ignores_epoch && chunk->order == PLAN_SEQUENTIAL)
		return true; /* also one that random ops of another variant have a seed for */
	return chunk->order && chunk->order == member->plan.order &&
	       chunk->seed == member->plan.seed &&
	       chunk->lap == plan_lap(&member->plan, member->epoch);
}

bool carousel_fixed_has(const struct carousel *carousel, const struct carousel_member *member,
			const struct carousel_chunk *chunk)
{
	uint64_t place = place_of(carousel, member);

	return chunk->place <= place && place < chunk->place + chunk->count &&
	       is_of_epoch(carousel, member, chunk);
}

bool carousel_fixed_awaits(const struct carousel *carousel, const struct carousel_member *member,
			   const struct carousel_chunk *chunk)
{
	uint64_t place = place_of(carousel, member);
	uint64_t reach = (uint64_t)carousel->n_slots * carousel->config.chunk;

	return member->plan.order && place < chunk->place + chunk->count &&
	       chunk->place < place + reach && is_of_epoch(carousel, member, chunk);
}

uint32_t carousel_fixed_first(const struct carousel *carousel, const struct carousel_member *member,
			      const struct carousel_chunk *chunk)
{
	return (uint32_t)(place_of(carousel, member) - chunk->place);
}

void carousel_fixed_deal(const struct carousel *carousel, const struct carousel_member *member,
			 struct carousel_slot *slot)
{
	struct carousel_chunk *chunk = &slot->chunk;
	uint64_t place = place_of(carousel, member);

	chunk->order = member->plan.order;
	chunk->place = place - place % carousel->config.chunk;
	chunk->count = (uint32_t)BASE_MIN(carousel_listed_places(carousel, member) - chunk->place,
					  (uint64_t)carousel->config.chunk);
	chunk->ids = slot->ids;
	if (chunk->order == PLAN_LIST) {
		carousel_listed_deal(member, slot);
		return;
	}
	chunk->seed = member->plan.seed;
	chunk->lap = plan_lap(&member->plan, member->epoch);
	plan_samples(&member->plan, member->epoch, chunk->place, chunk->count, slot->ids);
}
