/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Need, grants and epochs of one job.
 *
 * The need is the set of blocks of the job's epoch that were not granted; a grant moves a chunk's
 * blocks out of it, a return moves them back. When nothing is left (need and tail), the job's
 * epoch number moves on and the need is full again, so the first chunk of an epoch is granted while
 * the last one of the epoch before is still being read.
 *
 * Grants of a job end in the order in which they were made, for a rank takes them in that order.
 * So, seen from the newest grant backwards, there is a run of untaken ones, and a return is always
 * out of that run. It may undo the end of an epoch: then the client has been told "last" for a
 * chunk that is no longer the last, and maybe was granted chunks of the next epoch. These must come
 * back first, newest first, the chunk marked last included; carousel_need_newest() names the next
 * one to revoke. With them back, the next epoch's need is full, and the return takes the epoch
 * number back.
 *
 * With a fixed plan, and for a rank, all returns come newest first.
 *
 * A return that breaks this order cannot come from a rank that keeps to the protocol, only from a
 * daemon that believed a hostile one. The samples are then written off (lost): it costs that job
 * alone, and the books still balance.
 */

#include "base/bits.h"
#include "sched/carousel_state.h"
#include "plan/population.h"

void carousel_need_known(const struct carousel *carousel, struct carousel_member *member,
			 uint64_t samples)
{
	member->need_blocks = bits_count(member->need, carousel->permutation.blocks);
	member->need_samples = samples;
	carousel_chapter_recount(carousel, member);
}

void carousel_need_recount(const struct carousel *carousel, struct carousel_member *member)
{
	const struct permutation *permutation = &carousel->permutation;
	const uint64_t *bits = carousel_population_bits(carousel, member->population);

	if (carousel_is_placed(member))
		return; /* there is nothing but the number */
	carousel_need_known(carousel, member, population_samples(permutation, bits, member->need));
}

static uint64_t hash_of_word(uint64_t word, uint64_t at)
{
	return bits_mix(word + (at + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

/* Puts the block in or takes it out, and what is known of its word with it. */
static void set_block(struct carousel_member *member, uint32_t block, bool needed)
{
	uint32_t at = block / 64, span = at / CAROUSEL_SPAN;
	unsigned bit = 1u << at % CAROUSEL_SPAN;
	uint64_t before = member->need[at], word;

	if (needed)
		bits_set(member->need, block);
	else
		bits_clear(member->need, block);
	word = member->need[at];
	member->need_hash += hash_of_word(word, at) - hash_of_word(before, at);
	member->words_some[span] = (uint16_t)((member->words_some[span] & ~bit) | (word ? bit : 0));
	member->words_full[span] =
	    (uint16_t)((member->words_full[span] & ~bit) | (word == UINT64_MAX ? bit : 0));
}

void carousel_need_sum(const struct carousel *carousel, struct carousel_member *member)
{
	member->need_hash = 0;
	for (size_t i = 0; i < carousel->words / CAROUSEL_SPAN; i++) {
		const uint64_t *span = member->need + i * CAROUSEL_SPAN;
		unsigned some = 0, whole = 0;

		for (unsigned k = 0; k < CAROUSEL_SPAN; k++) {
			some |= (unsigned)(span[k] != 0) << k;
			whole |= (unsigned)(span[k] == UINT64_MAX) << k;
			member->need_hash += hash_of_word(span[k], i * CAROUSEL_SPAN + k);
		}
		member->words_some[i] = (uint16_t)some;
		member->words_full[i] = (uint16_t)whole;
	}
}

void carousel_need_reset(struct carousel *carousel, struct carousel_member *member)
{
	const struct carousel_population *population = carousel->population[member->population];

	member->need_samples = carousel_fixed_places(carousel, member);
	if (carousel_is_placed(member))
		return;
	member->need_blocks = population ? population->blocks : carousel->permutation.blocks;
	if (population)
		memcpy(member->need, population->need, carousel->words * sizeof(*member->need));
	else
		bits_fill(member->need, carousel->permutation.blocks);
	carousel_need_sum(carousel, member);
	carousel_chapter_fill(carousel, member);
}

static void clear_need(struct carousel *carousel, struct carousel_member *member)
{
	member->need_samples = 0;
	if (carousel_is_placed(member))
		return;
	for (size_t i = 0; i < carousel->words; i++)
		member->need[i] = 0;
	carousel_need_sum(carousel, member);
	member->need_blocks = 0;
	carousel_chapter_clear(carousel, member);
}

void carousel_need_take(struct carousel *carousel, uint32_t job, const struct carousel_chunk *chunk,
			uint32_t samples)
{
	struct carousel_member *member = &carousel->jobs[job];
	uint32_t taken = 0;

	for (uint32_t i = 0; i < chunk->n_blocks; i++) {
		taken += bits_test(member->need, chunk->blocks[i]);
		set_block(member, chunk->blocks[i], false);
	}
	member->need_blocks -= taken;
	if (carousel_chapter_took(carousel, member, chunk, taken))
		carousel_need_look(carousel, job); /* it may begin another */
	if (!chunk->is_private)                    /* else they were in the tail */
		member->need_samples -= samples;
}

/* The job, which has a place, goes on behind the chunk. Returns its first sample in it. */
static uint32_t pass(const struct carousel *carousel, struct carousel_member *member,
		     const struct carousel_chunk *chunk)
{
	uint32_t first = member->skip;

	if (member->plan.order)
		first = carousel_fixed_first(carousel, member, chunk);
	else
		member->cursor++;
	member->skip = 0;
	member->need_samples -= chunk->count - first;
	return first;
}

bool carousel_need_has(const struct carousel *carousel, const struct carousel_member *member,
		       const struct carousel_chunk *chunk)
{
	if (member->plan.order)
		return carousel_fixed_has(carousel, member, chunk);
	if (chunk->order)
		return false;
	if (chunk->scope != member->scope)
		return !member->is_narrow &&
		       carousel_population_is_within(carousel, member->scope, chunk->scope) &&
		       carousel_population_covers(carousel, member, chunk);
	if (member->need_blocks < chunk->n_blocks)
		return false;
	for (uint32_t i = 0; i < chunk->n_blocks; i++)
		if (!bits_test(member->need, chunk->blocks[i]))
			return false;
	return true;
}

void carousel_need_look(struct carousel *carousel, uint32_t job)
{
	for (uint32_t i = 0; i < carousel->n_slots; i++)
		if (carousel->slots[i].chunk.instance)
			bits_set(carousel->slots[i].check.word, job);
}

static bool is_over(const struct carousel_member *member)
{
	return member->epochs && member->epoch >= member->epochs;
}

/* Is nothing left of the epoch, and another one known to follow? */
static bool is_met(const struct carousel *carousel, const struct carousel_member *member)
{
	return carousel->permutation.n && !member->need_samples && !member->n_tail &&
	       !is_over(member) && !carousel_listed_awaits(member);
}

static void next_epoch(struct carousel *carousel, uint32_t job)
{
	struct carousel_member *member = &carousel->jobs[job];

	if (!member->n_grants) /* no chunk is left whose take would say so */
		member->closed = BASE_MAX(member->closed, member->epoch + 1);
	member->epoch++;
	if (is_over(member))
		return;
	carousel_need_reset(carousel, member);
	member->given += member->need_samples;
	carousel_need_look(carousel, job);
}

/* A slice may have nothing of an epoch that is shorter than a step. Then it has nothing of the next one either, unless
 * that is another list. */
void carousel_need_advance(struct carousel *carousel, uint32_t job)
{
	struct carousel_member *member = &carousel->jobs[job];

	while (is_met(carousel, member)) {
		next_epoch(carousel, job);
		if (member->plan.order != PLAN_LIST)
			return;
	}
}

int carousel_need_find(const struct carousel_member *member, uint32_t slot)
{
	for (uint32_t i = 0; i < member->n_grants; i++)
		if (member->grants[i].slot == slot)
			return (int)i;
	return -1;
}

void carousel_need_grant(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns,
			 struct carousel_action *ret)
{
	struct carousel_member *member = &carousel->jobs[job];
	struct carousel_slot *s = &carousel->slots[slot];
	struct carousel_grant *grant = &member->grants[member->n_grants++];
	uint32_t first = 0, samples;

	if (carousel_is_placed(member))
		first = pass(carousel, member, &s->chunk);
	samples = carousel_population_of_chunk(carousel, member, &s->chunk) - first;
	if (!carousel_is_placed(member))
		carousel_need_take(carousel, job, &s->chunk, samples);
	*grant = (struct carousel_grant){
	    .state = CAROUSEL_GRANTED,
	    .last = !member->need_samples && !member->n_tail,
	    .slot = slot,
	    .samples = samples,
	    .first = first,
	    .epoch = member->epoch,
	    .since_ns = now_ns,
	};
	member->coming += grant->samples;
	s->granted++;
	bits_set(s->seen.word, job);
	s->uses[job] += s->uses[job] < UINT8_MAX;
	*ret = (struct carousel_action){
	    .kind = CAROUSEL_GRANT,
	    .job = job,
	    .slot = slot,
	    .instance = s->chunk.instance,
	    .epoch = grant->epoch,
	    .first = first,
	    .end = carousel_population_end_in_chunk(carousel, member, &s->chunk),
	    .last = grant->last,
	};
	carousel_need_advance(carousel, job);
	if (carousel_is_placed(member))
		carousel_need_look(carousel, job); /* its next chunk may be there */
}

void carousel_need_drop(struct carousel *carousel, uint32_t job, int index)
{
	struct carousel_member *member = &carousel->jobs[job];
	struct carousel_grant *grant = &member->grants[index];
	struct carousel_slot *s = &carousel->slots[grant->slot];

	if (grant->state == CAROUSEL_GRANTED) {
		member->coming -= grant->samples;
		s->granted--;
	} else {
		member->pins--;
		s->pins--;
	}
	if (grant->state == CAROUSEL_REVOKED && --member->revoked == 0)
		carousel_need_look(carousel, job);
	if (carousel_variant_again(carousel, member) || member->reuse > 1)
		bits_set(s->check.word, job);
	for (uint32_t i = (uint32_t)index; i + 1 < member->n_grants; i++)
		member->grants[i] = member->grants[i + 1];
	member->n_grants--;
}

/* A tail's samples come back. Its chunk serves nobody any more, so that it cannot come twice. */
static void return_tail(struct carousel_member *member, struct carousel_slot *s)
{
	for (uint32_t i = 0; i < s->chunk.count; i++)
		member->tail[member->n_tail++] = s->chunk.ids[i];
	s->owner = CAROUSEL_NOBODY;
}

static void return_place(struct carousel_member *member, const struct carousel_grant *grant)
{
	member->need_samples += grant->samples;
	if (member->plan.order)
		return;
	member->cursor--;
	member->skip = grant->first;
}

static void return_blocks(const struct carousel *carousel, struct carousel_member *member,
			  const struct carousel_chunk *chunk, uint32_t samples)
{
	uint32_t returned = 0;

	for (uint32_t i = 0; i < chunk->n_blocks; i++) {
		if (!carousel_population_has(carousel, member, chunk->blocks[i]))
			continue;
		set_block(member, chunk->blocks[i], true);
		returned++;
	}
	member->need_blocks += returned;
	carousel_chapter_returned(carousel, member, chunk, returned);
	member->need_samples += samples;
}

/* May the samples go back into the need of the grant's epoch? See above. */
static bool can_return(const struct carousel *carousel, const struct carousel_member *member,
		       int index)
{
	const struct carousel_grant *grant = &member->grants[index];
	bool untouched =
	    member->need_samples == carousel_fixed_places(carousel, member) || is_over(member);

	if (carousel_is_placed(member) && carousel_need_newest(member, index) != index)
		return false;
	if (grant->epoch == member->epoch)
		return true;
	return grant->epoch + 1 == member->epoch && untouched && grant->epoch >= member->closed &&
	       carousel_need_newest(member, index) == index;
}

void carousel_need_return(struct carousel *carousel, uint32_t job, int index)
{
	struct carousel_member *member = &carousel->jobs[job];
	struct carousel_grant grant = member->grants[index];
	struct carousel_slot *s = &carousel->slots[grant.slot];

	if (!can_return(carousel, member, index)) {
		member->lost += grant.samples;
		carousel_need_drop(carousel, job, index);
		return;
	}
	carousel_need_drop(carousel, job, index);
	if (grant.epoch != member->epoch) {
		member->given -= member->need_samples;
		member->epoch = grant.epoch;
		clear_need(carousel, member);
	}
	s->uses[job] -= s->uses[job] < UINT8_MAX;
	if (!s->uses[job])
		bits_clear(s->seen.word, job);
	if (carousel_is_placed(member))
		return_place(member, &grant);
	else if (s->chunk.is_private)
		return_tail(member, s);
	else
		return_blocks(carousel, member, &s->chunk, grant.samples);
	carousel_need_look(carousel, job);
}

int carousel_need_newest(const struct carousel_member *member, int index)
{
	uint64_t epoch = member->grants[index].epoch;
	int newest = (int)member->n_grants - 1;

	if (carousel_is_placed(member))
		return newest; /* its order is fixed */
	if (member->epoch == epoch || newest <= index)
		return index;
	/* The epoch was ended: whatever follows its last chunk, and that chunk, come back first. */
	for (int i = index; i <= newest; i++)
		if (member->grants[i].epoch > epoch || member->grants[i].last)
			return newest;
	return index;
}
