/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In which variants a chunk is made. Jobs with different pipelines, the variants, share the carousel:
 * whom a chunk is made for and what goes into it does not ask for their variants (carousel_choose.c,
 * carousel_deal.c), so a sample is read and decoded as often as if all had one pipeline. A variant of a
 * chunk costs what comes after the decoding; who needs a chunk in a variant that it lacks has it decoded
 * once more.
 *
 * So a chunk is made in the variants of the living jobs that need the whole of it and will be granted it at
 * once, or soon: where jobs follow one that leads (carousel_lead.c), of those to which few chunks are
 * coming. One that lets it pass for now seldom comes back for it. A job that does not live has no say; when
 * it wakes it has the grants that it left. A chunk of a fixed plan is made for those who will come to it
 * soon, unless another slot has it for them; one of a tail for its job alone; and one that ranks made
 * before for the ranks of others, too, who wait for it (carousel_plan.c).
 *
 * The variants of a chunk are decided once, when its production begins, as its memory is written in one
 * go. Who comes later with another variant finds nothing in what is resident, and shares from the next
 * chunk on: chunks without his variant are for him as if they were not there, when they are granted, given
 * up, or made a second time.
 *
 * doc/decisions/110-variants.md has the simulation, and what was rejected.
 */

#include "sched/carousel_log.h"
#include "sched/carousel_state.h"

#define FEW_AHEAD 2.0 /* chunks: who has fewer will want another one soon */

/* Chunks in which the job allows one instance. */
static uint32_t allows(const struct carousel_member *member)
{
	if (carousel_is_placed(member) || member->is_group || member->is_exact)
		return 1;
	return member->reuse;
}

uint32_t carousel_allows(const struct carousel *carousel)
{
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < carousel->jobs_end; i++)
		if (carousel->jobs[i].used)
			least = BASE_MIN(least, allows(&carousel->jobs[i]));
	return least == UINT32_MAX ? 1 : least;
}

bool carousel_number(struct carousel *carousel, uint32_t slot, uint32_t number)
{
	struct carousel_slot *s = &carousel->slots[slot];

	if (slot >= carousel->n_slots || !s->chunk.instance || s->chunk.is_private ||
	    s->chunk.order || s->again || s->logged || number == 0 || number > UINT8_MAX)
		return false;
	s->chunk.number = (uint8_t)number;
	return true;
}

bool carousel_variant_is_fresh(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	const struct carousel_member *member = &carousel->jobs[job];
	const struct carousel_slot *s = &carousel->slots[slot];

	if (carousel_variant_again(carousel, member))
		return true;
	if (s->chunk.number)
		return s->uses[job] == 0 && s->chunk.number <= allows(member);
	return s->uses[job] < member->reuse;
}

bool carousel_variant_any_random(const struct carousel *carousel)
{
	for (uint32_t i = 0; i < CAROUSEL_MAX_VARIANTS; i++)
		if (carousel->members[i] && !(carousel->config.usable_again >> i & 1))
			return true;
	return false;
}

int carousel_set_variant(struct carousel *carousel, uint32_t variant, bool usable_again)
{
	uint32_t bit;

	if (variant >= CAROUSEL_MAX_VARIANTS || carousel->members[variant])
		return CAROUSEL_E_BAD;
	bit = UINT32_C(1) << variant;
	carousel->config.usable_again &= ~bit;
	if (usable_again)
		carousel->config.usable_again |= bit;
	for (uint32_t i = 0; i < carousel->n_slots; i++)
		carousel->slots[i].chunk.variants &= ~bit;
	return 0;
}

/* Has another slot the chunk of the job's plan, in its variant? */
static bool has_elsewhere(const struct carousel *carousel, const struct carousel_member *member,
			  uint32_t slot)
{
	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		const struct carousel_chunk *chunk = &carousel->slots[i].chunk;

		if (i != slot && chunk->instance && carousel_variant_has(chunk, member) &&
		    chunk->place == carousel->slots[slot].chunk.place &&
		    carousel_fixed_awaits(carousel, member, chunk))
			return true;
	}
	return false;
}

/* Is the job, which is dealt to, near enough to its next chunk that this may be it? */
static bool wants_one(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	const struct carousel_member *member = &carousel->jobs[job];

	if (member->is_group)
		return carousel_log_wants(carousel, job, slot);
	return carousel_lead_may_take(carousel, job, slot) ||
	       carousel_lead_level(carousel, member) < FEW_AHEAD;
}

/* Will the job take the chunk, as far as is known? A rank will if its group does. */
static bool is_for(const struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns)
{
	const struct carousel_member *member = &carousel->jobs[job];
	const struct carousel_slot *s = &carousel->slots[slot];

	if (!member->used || carousel_is_rank(member) ||
	    !carousel_step_lives(carousel, job, now_ns, NULL))
		return false;
	if (member->plan.order)
		return carousel_fixed_awaits(carousel, member, &s->chunk) &&
		       !has_elsewhere(carousel, member, slot);
	if (!carousel_variant_is_fresh(carousel, job, slot))
		return false;
	return member->need_samples && wants_one(carousel, job, slot) &&
	       carousel_chapter_allows(carousel, member, &s->chunk) &&
	       carousel_need_has(carousel, member, &s->chunk);
}

uint32_t carousel_variant_of_chunk(const struct carousel *carousel, uint32_t job, uint32_t slot,
				   uint64_t now_ns)
{
	uint32_t variants = UINT32_C(1) << carousel->jobs[job].variant;

	if (carousel->slots[slot].chunk.is_private)
		return variants;
	for (uint32_t i = 0; i < carousel->jobs_end; i++)
		if (!(variants >> carousel->jobs[i].variant & 1) &&
		    is_for(carousel, i, slot, now_ns))
			variants |= UINT32_C(1) << carousel->jobs[i].variant;
	return variants;
}
