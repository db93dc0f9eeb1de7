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

#include <string.h>

#include "base/bits.h"
#include "sched/carousel_log.h"
#include "sched/carousel_state.h"

int carousel_evict_granted_at(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	if (!carousel_set_has(&carousel->slots[slot].seen, job))
		return -1; /* the set of all that were ever granted it */
	return carousel_need_find(&carousel->jobs[job], slot);
}

/* Will the job take the slot, as far as is known? */
static bool is_wanted_by(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	const struct carousel_member *member = &carousel->jobs[job];
	int index = carousel_evict_granted_at(carousel, job, slot);

	if (index >= 0)
		return member->grants[index].state == CAROUSEL_GRANTED;
	return member->used && carousel_variant_has(&carousel->slots[slot].chunk, member) &&
	       (carousel_fixed_awaits(carousel, member, &carousel->slots[slot].chunk) ||
		carousel_rank_awaits(carousel, member, slot));
}

/* Living jobs that were granted the slot and did not take it yet, or come to it soon. Jobs of a scope
 * within the chunk's count as one, and only where no other job wants it: whom it suits depends on what
 * is in it, and that must not choose among the chunks of the others (carousel_population.c). */
static uint32_t wanted_by(const struct carousel *carousel, uint32_t slot, uint64_t now_ns)
{
	const struct carousel_slot *s = &carousel->slots[slot];
	uint32_t wanted = 0;
	bool within = false;

	if (!s->granted && !s->chunk.order && !s->logged)
		return 0;
	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS; job++) {
		if (!is_wanted_by(carousel, job, slot) ||
		    !carousel_step_lives(carousel, job, now_ns, NULL))
			continue;
		if (!s->chunk.order && carousel->jobs[job].scope != s->chunk.scope)
			within = true;
		else
			wanted++;
	}
	return wanted ? wanted : within;
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
	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS; job++) {
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
	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS; job++) {
		int index = carousel_evict_granted_at(carousel, job, slot);

		if (index >= 0 && next_of_job(&carousel->jobs[job], index) < 0)
			return false;
	}
	return true;
}

static bool can_evict(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_slot *s = &carousel->slots[slot];

	if (!s->chunk.instance || !s->chunk.ready || s->pins || s->ghosts)
		return false;
	return !s->granted || can_withdraw(carousel, slot);
}

/* Jobs that the chunk passed and that need it yet, and could use it, by its first block: a chunk is made so that a job
 * needs all of it or nothing. A chunk may come back to them while it is there. */
static uint32_t passed(const struct carousel *carousel, uint32_t slot)
{
	const struct carousel_slot *s = &carousel->slots[slot];
	uint32_t count = 0;

	if (!s->chunk.n_blocks || !carousel_variant_any_random(carousel))
		return 0;
	for (uint32_t job = 0; job < CAROUSEL_MAX_JOBS; job++) {
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

/* Among equals one that nobody at all was granted, then one that fewer need, then the oldest. */
uint32_t carousel_evict_choose(const struct carousel *carousel, bool somebody_starves,
			       bool rank_waits, uint64_t now_ns)
{
	uint32_t victim = CAROUSEL_NO_SLOT, fewest = UINT32_MAX;

	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		uint32_t wanted;

		if (!can_evict(carousel, i))
			continue;
		wanted = wanted_by(carousel, i, now_ns);
		if ((wanted && !somebody_starves) || wanted > fewest ||
		    (carousel->slots[i].granted &&
		     carousel_rank_protects(carousel, i, rank_waits, now_ns)))
			continue;
		if (wanted < fewest || is_worth_less(carousel, i, victim)) {
			fewest = wanted;
			victim = i;
		}
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
