/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs with a fixed plan. Their need is the rest of the epoch's order, so its number says it all:
 * the next place is n - need_samples. What a slot holds for them is named by (order, seed, nonce,
 * place): whoever has the same plan and comes to that place while it is resident is granted it.
 *
 * Where the plan is a node's slice, places are local ones (slice.h), and the slice is a part of a
 * slot's name: need, chunks and grants of such a job are counted as others' are, and what is at a
 * place is asked for where a chunk is filled, and nowhere else.
 *
 * A job that follows another one on the same plan is granted nothing out of order; the slots that
 * it will come to are kept for it like slots that were granted, as far as all slots reach.
 */

#include "sched/carousel_state.h"
#include "plan/ranks/spread.h"

void carousel_fixed_slice(const struct carousel *carousel, const struct carousel_member *member,
			  struct slice *ret)
{
	struct ranks ranks = member->slice.ranks;

	ranks.n = carousel_listed_places(carousel, member);
	if (member->epoch != member->slice_epoch)
		ranks.base = 0;
	ranks.base = BASE_MIN(ranks.base, ranks.n); /* 0: its list did not come yet */
	if (!slice_is_whole(&member->slice))
		slice_init(ret, &ranks, member->slice.first, member->slice.count);
	else
		*ret = (struct slice){.ranks.n = ranks.n};
	ret->is_spread = member->slice.is_spread && !slice_is_whole(ret);
}

uint64_t carousel_fixed_places(const struct carousel *carousel,
			       const struct carousel_member *member)
{
	struct slice slice;

	if (slice_is_whole(&member->slice))
		return carousel_listed_places(carousel, member);
	carousel_fixed_slice(carousel, member, &slice);
	return slice_places(&slice);
}

uint64_t carousel_fixed_left(const struct carousel *carousel, const struct carousel_member *member,
			     uint64_t place)
{
	struct slice slice;

	carousel_fixed_slice(carousel, member, &slice);
	return slice_places(&slice) - slice_local(&slice, place);
}

static uint64_t place_of(const struct carousel *carousel, const struct carousel_member *member)
{
	return carousel_fixed_places(carousel, member) - member->need_samples;
}

/* Does the chunk's name say the job's places? */
static bool is_of_slice(const struct carousel *carousel, const struct carousel_member *member,
			const struct carousel_chunk *chunk)
{
	struct slice slice;

	carousel_fixed_slice(carousel, member, &slice);
	return slice_is_same(&slice, &chunk->slice);
}

#define LOOKED_AT 64 /* samples of a chunk of a list: enough to say whether it is worth keeping */

/* Is the chunk one of the epoch that the job is in? Of a list so many samples are compared. */
static bool is_of_epoch(const struct carousel *carousel, const struct carousel_member *member,
			const struct carousel_chunk *chunk, uint32_t most)
{
	if (member->plan.order == PLAN_LIST)
		return carousel_listed_has(carousel, member, chunk, most);
	if (!is_of_slice(carousel, member, chunk))
		return false;
	if (member->plan.ignores_epoch && chunk->order == PLAN_SEQUENTIAL)
		return true; /* also one that random ops of another variant have a seed for */
	return chunk->order && chunk->order == member->plan.order &&
	       chunk->seed == member->plan.seed &&
	       chunk->nonce == plan_nonce(&member->plan, member->epoch);
}

bool carousel_fixed_has(const struct carousel *carousel, const struct carousel_member *member,
			const struct carousel_chunk *chunk)
{
	uint64_t place = place_of(carousel, member);

	return chunk->place <= place && place < chunk->place + chunk->count &&
	       is_of_epoch(carousel, member, chunk, chunk->count);
}

bool carousel_fixed_awaits(const struct carousel *carousel, const struct carousel_member *member,
			   const struct carousel_chunk *chunk)
{
	uint64_t place = place_of(carousel, member);
	uint64_t reach = (uint64_t)carousel->n_slots * carousel->config.chunk;

	return member->plan.order && place < chunk->place + chunk->count &&
	       chunk->place < place + reach && is_of_epoch(carousel, member, chunk, LOOKED_AT);
}

uint32_t carousel_fixed_first(const struct carousel *carousel, const struct carousel_member *member,
			      const struct carousel_chunk *chunk)
{
	return (uint32_t)(place_of(carousel, member) - chunk->place);
}

uint32_t carousel_fixed_run(const struct carousel_chunk *chunk, uint32_t i, uint64_t *ret_place)
{
	uint64_t run = slice_run(&chunk->slice, chunk->place + i, ret_place);

	return (uint32_t)BASE_MIN(run, (uint64_t)(chunk->count - i));
}

void carousel_fixed_deal(const struct carousel *carousel, const struct carousel_member *member,
			 struct carousel_slot *slot)
{
	struct carousel_chunk *chunk = &slot->chunk;
	uint64_t place = place_of(carousel, member);

	carousel_fixed_slice(carousel, member, &chunk->slice);
	chunk->order = member->plan.order;
	chunk->place = place - place % carousel->config.chunk;
	chunk->count = (uint32_t)BASE_MIN(carousel_fixed_places(carousel, member) - chunk->place,
					  (uint64_t)carousel->config.chunk);
	chunk->ids = slot->ids;
	if (chunk->order == PLAN_LIST) {
		carousel_listed_deal(member, slot);
		return;
	}
	chunk->seed = member->plan.seed;
	chunk->nonce = plan_nonce(&member->plan, member->epoch);
	if (chunk->slice.is_spread) {
		spread_samples(&chunk->slice, &member->plan, member->epoch, chunk->place,
			       chunk->count, slot->ids);
		return;
	}
	for (uint32_t i = 0, run; i < chunk->count; i += run) {
		run = carousel_fixed_run(chunk, i, &place);
		plan_samples(&member->plan, member->epoch, place, run, slot->ids + i);
	}
}
