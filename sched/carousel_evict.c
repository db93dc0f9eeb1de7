/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How a slot becomes free: which one is given up, and what has to be withdrawn for it.
 *
 * The victim is the slot without pins that the fewest living jobs were granted and did not take, of
 * these the one that the fewest jobs need; one that any of them were, or will come to by a fixed plan
 * or as a rank, only if somebody starves. Its grants are withdrawn one a step (REVOKE), in an order
 * that keeps each job's epochs whole (carousel_need.c); when nobody holds it, it is EMPTY.
 * An eviction that cannot be carried through is not begun, and when a rank was quicker, the slot
 * stays.
 */

#include "base/bits.h"
#include "sched/carousel_log.h"
#include "sched/carousel_state.h"

int carousel_evict_granted_at(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	if (!bits_test(carousel->slots[slot].seen.word, job))
		return -1; /* the set of all that were ever granted it */
	return carousel_need_find(&carousel->jobs[job], slot);
}

static bool is_idle(const struct carousel_slot *s)
{
	return s->chunk.instance && s->chunk.ready && !s->pins && !s->ghosts;
}

/* Will the job come to the slot, which it was not granted, soon? */
static bool awaits(const struct carousel *carousel, const struct carousel_member *member,
		   uint32_t slot)
{
	const struct carousel_slot *s = &carousel->slots[slot];

	return (s->granted || s->chunk.order || s->logged) && is_idle(s) &&
	       carousel_variant_has(&s->chunk, member) &&
	       (carousel_fixed_awaits(carousel, member, &s->chunk) ||
		carousel_rank_awaits(carousel, member, slot));
}

/* Jobs of a scope within the chunk's count as one, and only where no other job wants it: whom it suits depends on what
 * is in it, and that must not choose among the chunks of the others (carousel_population.c). */
static void add_want(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	const struct carousel_chunk *chunk = &carousel->slots[slot].chunk;
	struct carousel_want *want = &carousel->wants[slot];

	if (want->last == job + 1)
		return;
	want->last = job + 1;
	if (!chunk->order && carousel->jobs[job].scope != chunk->scope)
		want->within = true;
	else
		want->jobs++;
}

/* Of each idle slot, living jobs that were granted it and did not take it yet, or come to it soon. By job: there are many
 * grants where there are many slots, and to look for each slot's among them takes a hundred times as long. */
static void count_wants(const struct carousel *carousel, uint64_t now_ns)
{
	memset(carousel->wants, 0, carousel->n_slots * sizeof(*carousel->wants));
	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		const struct carousel_member *member = &carousel->jobs[job];

		if (!member->used || !carousel_step_lives(carousel, job, now_ns, NULL))
			continue;
		for (uint32_t i = 0; i < member->n_grants; i++)
			if (member->grants[i].state == CAROUSEL_GRANTED)
				add_want(carousel, job, member->grants[i].slot);
		for (uint32_t i = 0; i < carousel->n_slots && carousel_is_placed(member); i++)
			if (awaits(carousel, member, i))
				add_want(carousel, job, i);
	}
}

static uint32_t wanted_by(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_want *want = &carousel->wants[slot];

	return want->jobs ? want->jobs : want->within;
}

/* The next grant to withdraw so that the job's grant of the slot ends: maybe one of another slot,
 * which has to come back before (carousel_need.c). -1: none can be, a rank was quicker. */
static int next_of_job(const struct carousel_member *member, int index)
{
	index = carousel_need_newest(member, index);
	return member->grants[index].state == CAROUSEL_GRANTED ? index : -1;
}

/* The next grant to withdraw so that the slot becomes free. False: none is left, or can be. */
static bool next_revoke(const struct carousel *carousel, uint32_t slot, uint32_t *ret_job,
			int *ret_index)
{
	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		int index = carousel_evict_granted_at(carousel, job, slot);

		if (index < 0)
			continue;
		*ret_job = job;
		*ret_index = next_of_job(&carousel->jobs[job], index);
		return *ret_index >= 0;
	}
	return false;
}

/* Can all grants of the slot be withdrawn, as far as is known? */
static bool can_withdraw(const struct carousel *carousel, uint32_t slot)
{
	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		int index = carousel_evict_granted_at(carousel, job, slot);

		if (index >= 0 && next_of_job(&carousel->jobs[job], index) < 0)
			return false;
	}
	return true;
}

static bool can_evict(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_slot *s = &carousel->slots[slot];

	return is_idle(s) && (!s->granted || can_withdraw(carousel, slot));
}

/* Jobs that the chunk passed and that need it yet, and could use it, by its first block: a chunk is made so that a job
 * needs all of it or nothing. A chunk may come back to them while it is there. */
static uint32_t passed(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_slot *s = &carousel->slots[slot];
	uint32_t count = 0;

	if (!s->chunk.n_blocks || !carousel_variant_any_random(carousel))
		return 0;
	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		const struct carousel_member *member = &carousel->jobs[job];

		count += member->used && !carousel_is_placed(member) &&
			 carousel_variant_has(&s->chunk, member) &&
			 member->scope == s->chunk.scope &&
			 carousel_variant_is_fresh(carousel, job, slot) &&
			 bits_test(member->need, s->chunk.blocks[0]);
	}
	return count;
}

/* Is a, wanted by as many, rather given up than b? */
static bool is_worth_less(const struct carousel *carousel, uint32_t a, uint32_t b)
{
	const struct carousel_slot *s = &carousel->slots[a], *v = &carousel->slots[b];
	uint32_t passed_a, passed_b;

	if (!s->granted != !v->granted)
		return !s->granted;
	passed_a = passed(carousel, a);
	passed_b = passed(carousel, b);
	if (passed_a != passed_b)
		return passed_a < passed_b;
	return s->chunk.instance < v->chunk.instance;
}

/* Among equals one that nobody at all was granted, then one that fewer need, then the oldest. What takes long is asked
 * of those alone that are better than all before. */
uint32_t carousel_evict_choose(const struct carousel *carousel, bool somebody_starves,
			       bool rank_waits, uint64_t now_ns)
{
	uint32_t victim = CAROUSEL_NO_SLOT, fewest = UINT32_MAX;

	count_wants(carousel, now_ns);
	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		const struct carousel_slot *s = &carousel->slots[i];
		uint32_t wanted = wanted_by(carousel, i);

		if (!is_idle(s) || (wanted && !somebody_starves) || wanted > fewest ||
		    (wanted == fewest && !is_worth_less(carousel, i, victim)))
			continue;
		if (s->granted && (carousel_rank_protects(carousel, i, rank_waits, now_ns) ||
				   !can_withdraw(carousel, i)))
			continue;
		fewest = wanted;
		victim = i;
	}
	return victim;
}

static void revoke(struct carousel *carousel, uint32_t job, int index, struct carousel_action *ret)
{
	struct carousel_member *member = &carousel->jobs[job];
	struct carousel_grant *grant = &member->grants[index];
	struct carousel_slot *s = &carousel->slots[grant->slot];

	grant->state = CAROUSEL_REVOKED;
	member->coming -= grant->samples;
	member->revoked++;
	member->gave_way = true;
	member->pins++;
	s->granted--;
	s->pins++;
	*ret = (struct carousel_action){
	    .kind = CAROUSEL_REVOKE,
	    .job = job,
	    .slot = grant->slot,
	    .instance = s->chunk.instance,
	    .epoch = grant->epoch,
	    .last = grant->last,
	};
}

static void empty_slot(struct carousel *carousel, uint32_t slot, struct carousel_action *ret)
{
	struct carousel_slot *s = &carousel->slots[slot];

	*ret = (struct carousel_action){
	    .kind = CAROUSEL_EMPTY,
	    .slot = slot,
	    .instance = s->chunk.instance,
	};
	if (!s->stamped)
		carousel->unstamped--;
	carousel_population_unref(carousel, s->chunk.scope);
	memset(s->uses, 0, CAROUSEL_MAX_JOBS);
	carousel_log_forget(carousel, slot);
	s->chunk = (struct carousel_chunk){0};
	carousel->n_free++;
	s->again = false;
	s->seen = s->check = s->meant = (struct carousel_set){0};
	s->owner = CAROUSEL_NOBODY;
}

bool carousel_evict_step(struct carousel *carousel, struct carousel_action *ret)
{
	uint32_t slot = carousel->evicting;
	uint32_t job;
	int index;

	if (slot == CAROUSEL_NO_SLOT)
		return false;
	if (can_evict(carousel, slot)) {
		if (!carousel->slots[slot].granted) {
			carousel->evicting = CAROUSEL_NO_SLOT;
			empty_slot(carousel, slot, ret);
			return true;
		}
		if (next_revoke(carousel, slot, &job, &index)) {
			revoke(carousel, job, index, ret);
			return true;
		}
	}
	carousel->evicting =
	    CAROUSEL_NO_SLOT; /* a rank was quicker: who gave way is granted it again */
	return false;
}
