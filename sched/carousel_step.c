/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The policy: one decision a call, in this order.
 *
 *   1. An eviction under way goes on. A slot that somebody was granted is withdrawn from each
 *      (REVOKE), one a step. When nobody holds it: EMPTY. When a rank was quicker: it stays.
 *   2. Chunks are granted to jobs that need all of them and have not seen them, oldest chunk first,
 *      also while they are being filled: to those that they were made for, and to any to which
 *      little is coming (carousel_lead.c). What has to be looked at is marked when something changes
 *      (check), so a quiet carousel costs nothing.
 *   3. If some job is hungry and fewer than `producing` chunks are unfinished, but for one that was
 *      overtaken, a chunk is dealt for the hungriest into a free slot. If there is none, a slot is
 *      evicted: the one without pins that the fewest living jobs were granted; one that any were,
 *      only if somebody starves.
 *   4. Where the ranks of a job must know more of its plan, a chunk is dealt without a slot.
 *
 * A job that does not live (it leaves a grant untaken for long) makes no demand, is not asked what
 * it needs when a chunk is dealt, and its untaken grants do not keep a slot. It is granted what it
 * needs of what is there, so it goes on at once when it wakes; waiting for it costs nothing.
 *
 * Grants are made as soon as production starts, not when a job asks: it would take them in this order.
 *
 * The clock enters through liveness and the pace of jobs alone, and content through nothing, so a
 * relabelling of the samples changes no decision.
 */

#include "sched/carousel_log.h"
#include "sched/carousel_state.h"

#define CAROUSEL_PATIENCE_NS UINT64_C(10000000000)
#define CAROUSEL_PATIENCE 10 /* usual intervals */
#define CAROUSEL_LATE_NS UINT64_C(1000000000)

/* how a job is */

/* Since when the job could have taken its oldest untaken grant; false: it has none, or it is of a
 * chunk that is still being filled. */
static bool oldest_since(const struct carousel *carousel, const struct carousel_member *member,
			 uint64_t *ret_since_ns)
{
	for (uint32_t i = 0; i < member->n_grants; i++) {
		const struct carousel_grant *grant = &member->grants[i];
		const struct carousel_slot *s = &carousel->slots[grant->slot];

		if (grant->state != CAROUSEL_GRANTED)
			continue;
		if (!s->chunk.ready || !s->stamped)
			return false;
		*ret_since_ns = BASE_MAX(BASE_MAX(grant->since_ns, s->ready_ns), member->act_ns);
		return true;
	}
	return false;
}

bool carousel_step_lives(const struct carousel *carousel, uint32_t job, uint64_t now_ns,
			 uint64_t *ret_until_ns)
{
	const struct carousel_member *member = &carousel->jobs[job];
	uint64_t since_ns, until_ns;

	if (member->is_group)
		return carousel_rank_any_lives(carousel, job, now_ns);
	if (!oldest_since(carousel, member, &since_ns))
		return true;
	until_ns =
	    since_ns + BASE_MAX(CAROUSEL_PATIENCE * member->interval_ns, CAROUSEL_PATIENCE_NS);
	if (ret_until_ns)
		*ret_until_ns = until_ns;
	return now_ns < until_ns;
}

uint64_t carousel_step_ahead(const struct carousel *carousel, const struct carousel_member *member)
{
	uint64_t chunk = carousel->config.chunk;
	uint64_t step = 2 * (uint64_t)member->ranks * member->batch;

	return chunk * BASE_MAX((step + chunk - 1) / chunk, (uint64_t)2);
}

static bool wants(const struct carousel *carousel, const struct carousel_member *member)
{
	return member->used && !member->revoked && (member->need_samples || member->n_tail) &&
	       carousel_lead_wants(carousel, member);
}

bool carousel_step_hungry(const struct carousel *carousel, uint32_t job, uint64_t now_ns)
{
	const struct carousel_member *member = &carousel->jobs[job];

	if (member->is_group)
		return wants(carousel, member) &&
		       carousel_rank_neediest(carousel, job, now_ns) != CAROUSEL_NOBODY;
	if (member->log && !carousel_rank_is_ahead(member))
		return false; /* its group may be */
	return wants(carousel, member) && carousel_step_lives(carousel, job, now_ns, NULL);
}

/* A group is as its neediest rank is. */
static const struct carousel_member *speaker(const struct carousel *carousel, uint32_t job,
					     uint64_t now_ns)
{
	const struct carousel_member *member = &carousel->jobs[job];
	uint32_t rank;

	if (!member->is_group)
		return member;
	rank = carousel_rank_neediest(carousel, job, now_ns);
	return rank == CAROUSEL_NOBODY ? member : &carousel->jobs[rank];
}

static bool has_ready(const struct carousel *carousel, const struct carousel_member *member)
{
	for (uint32_t i = 0; i < member->n_grants; i++)
		if (member->grants[i].state == CAROUSEL_GRANTED &&
		    carousel->slots[member->grants[i].slot].chunk.ready)
			return true;
	return false;
}

/* Jobs may stand while others read: a program keeps loaders that it does not read. What such a job was granted
 * is given up for one that starves; if it starved for that in its turn, they would take each other's slots
 * for ever. So it makes do with slots that are free until it takes a chunk or waits for one. */
static bool has_given_way(const struct carousel_member *member)
{
	return member->gave_way && !member->waiting;
}

bool carousel_step_starving(const struct carousel *carousel, uint32_t job, uint64_t now_ns)
{
	const struct carousel_member *member;

	if (!carousel_step_hungry(carousel, job, now_ns))
		return false;
	member = speaker(carousel, job, now_ns);
	if (has_given_way(member))
		return false;
	return !member->coming || (member->waiting && !has_ready(carousel, member));
}

/* grants */

static bool can_take(const struct carousel *carousel, uint32_t job, uint32_t slot)
{
	const struct carousel_member *member = &carousel->jobs[job];
	const struct carousel_slot *s = &carousel->slots[slot];

	if (carousel_is_rank(member))
		return member->used && !member->revoked && carousel_rank_has(member, slot) &&
		       carousel_evict_granted_at(carousel, job, slot) < 0;
	if (!member->used || member->revoked || member->n_tail || s->chunk.is_private ||
	    !carousel_variant_has(&s->chunk, member))
		return false;
	if (!carousel_variant_is_fresh(carousel, job, slot))
		return false;
	if (member->is_group && !carousel_log_wants(carousel, job, slot))
		return false;
	if (!carousel_lead_may_take(carousel, job, slot))
		return false;
	return member->need_samples && carousel_evict_granted_at(carousel, job, slot) < 0 &&
	       carousel_chapter_allows(carousel, member, &s->chunk) &&
	       carousel_need_has(carousel, member, &s->chunk);
}

/* What can_take() may have to look at. A client says how much that is: its list, or the need of its token, may be as
 * another's but for the last sample of a chunk, and he may have as many jobs as there can be. */
static uint32_t looks_of(const struct carousel_member *member, const struct carousel_chunk *chunk)
{
	if (member->plan.order == PLAN_LIST)
		return 1 + chunk->count;
	return 1 + (carousel_is_placed(member) ? 0 : chunk->n_blocks);
}

/* Takes the lowest job out of the slot's marks. */
static bool next_check(struct carousel_slot *s, uint32_t *ret_job)
{
	for (uint32_t i = 0; i < BASE_ARRAY_LEN(s->check.word); i++) {
		if (!s->check.word[i])
			continue;
		*ret_job = i * 64 + (unsigned)__builtin_ctzll(s->check.word[i]);
		s->check.word[i] &= s->check.word[i] - 1;
		return true;
	}
	return false;
}

static bool is_marked(const struct carousel_slot *s)
{
	uint64_t any = 0;

	for (uint32_t i = 0; i < BASE_ARRAY_LEN(s->check.word); i++)
		any |= s->check.word[i];
	return s->chunk.instance && any;
}

static uint32_t oldest_marked(const struct carousel *carousel)
{
	uint32_t oldest = CAROUSEL_NO_SLOT;

	for (uint32_t i = 0; i < carousel->n_slots; i++)
		if (is_marked(&carousel->slots[i]) &&
		    (oldest == CAROUSEL_NO_SLOT ||
		     carousel->slots[i].chunk.instance < carousel->slots[oldest].chunk.instance))
			oldest = i;
	return oldest;
}

#define MOST_LOOKS (UINT32_C(1) << 18) /* of a step: then it is said that it is not through */

static bool step_grant(struct carousel *carousel, uint64_t now_ns, struct carousel_action *ret)
{
	uint32_t slot, job, looks = 0;

	if (carousel->pending) {
		carousel->pending = false;
		*ret = carousel->pending_grant;
		return true;
	}
	while ((slot = oldest_marked(carousel)) != CAROUSEL_NO_SLOT) {
		while (next_check(&carousel->slots[slot], &job)) {
			looks += looks_of(&carousel->jobs[job], &carousel->slots[slot].chunk);
			if (!can_take(carousel, job, slot)) {
				if (looks < MOST_LOOKS)
					continue;
				*ret = (struct carousel_action){CAROUSEL_NONE, .wake_ns = now_ns};
				return true;
			}
			if (carousel->jobs[job].is_group)
				carousel_log_append(carousel, job, slot, ret);
			else
				carousel_need_grant(carousel, job, slot, now_ns, ret);
			return ret->kind != CAROUSEL_NONE;
		}
	}
	return false;
}

/* productions */

/* By this hungry ones go first. What is given up for ranks that starve must come to one of them: who
 * waits, then who has nothing, then the others. */
static uint64_t urgency(const struct carousel *carousel, const struct carousel_member *member)
{
	if (!carousel_is_rank(member))
		return member->coming;
	if (member->waiting && !has_ready(carousel, member))
		return 0;
	return member->coming ? member->coming + carousel->config.chunk : 1;
}

/* It waits and has had nothing for so long. The fastest goes first among equals, but one that takes chunks while they are filled
 * has nothing coming ever, and there may be as many of these as chunks in production: then the slow ones would get none. */
static uint64_t late_ns(const struct carousel_member *member, uint64_t now_ns)
{
	uint64_t ns = now_ns - BASE_MIN(member->act_ns, now_ns);

	return member->waiting && !member->coming && ns > CAROUSEL_LATE_NS ? ns : 0;
}

static bool is_before(const struct carousel *carousel, const struct carousel_member *a,
		      bool a_hungry, const struct carousel_member *b, bool b_hungry,
		      uint64_t now_ns)
{
	uint64_t a_urgency = urgency(carousel, a), b_urgency = urgency(carousel, b);
	uint64_t a_late_ns = late_ns(a, now_ns), b_late_ns = late_ns(b, now_ns);

	if (a_hungry != b_hungry)
		return a_hungry;
	if (has_given_way(a) != has_given_way(b))
		return has_given_way(b);
	if (a_urgency != b_urgency)
		return a_urgency < b_urgency;
	if (a_late_ns != b_late_ns)
		return a_late_ns > b_late_ns;
	return a->pace_ns < b->pace_ns;
}

/* Living jobs: hungry ones first, by what is coming to them, then who is late, then by speed. */
static uint32_t sort_jobs(const struct carousel *carousel, uint64_t now_ns, uint32_t *order,
			  uint32_t *ret_hungry)
{
	const struct carousel_member *as[CAROUSEL_MAX_JOBS];
	bool hungry[CAROUSEL_MAX_JOBS];
	uint32_t n = 0;

	*ret_hungry = 0;
	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		uint32_t at = n;

		if (!carousel->jobs[job].used || !carousel_step_lives(carousel, job, now_ns, NULL))
			continue;
		hungry[job] = carousel_step_hungry(carousel, job, now_ns);
		*ret_hungry += hungry[job];
		as[job] = speaker(carousel, job, now_ns);
		for (; at && is_before(carousel, as[job], hungry[job], as[order[at - 1]],
				       hungry[order[at - 1]], now_ns);
		     at--)
			order[at] = order[at - 1];
		order[at] = job;
		n++;
	}
	return n;
}

static uint32_t free_slot(const struct carousel *carousel)
{
	for (uint32_t i = 0; i < carousel->n_slots; i++)
		if (!carousel->slots[i].chunk.instance)
			return i;
	return CAROUSEL_NO_SLOT;
}

static void mark_living(const struct carousel *carousel, struct carousel_slot *s)
{
	for (uint32_t job = 0; job < carousel->jobs_end; job++)
		if (carousel->jobs[job].used)
			bits_set(s->check.word, job);
}

/* Takes jobs that nothing is dealt to out of the order: with fixed plans, and ranks. */
static uint32_t leave_out_placed(const struct carousel *carousel, uint32_t *order, uint32_t n,
				 uint32_t *n_hungry)
{
	uint32_t kept = 0, hungry = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (carousel_is_placed(&carousel->jobs[order[i]]))
			continue;
		hungry += i < *n_hungry;
		order[kept++] = order[i];
	}
	*n_hungry = hungry;
	return kept;
}

/* Fills the slot's chunk, for the hungriest job first of all. */
static void fill_chunk(struct carousel *carousel, uint32_t *order, uint32_t n, uint32_t n_hungry,
		       uint32_t slot, uint64_t now_ns)
{
	struct carousel_slot *s = &carousel->slots[slot];
	const uint32_t job = order[0];
	const struct carousel_member *hungriest = &carousel->jobs[job];

	if (carousel_is_rank(hungriest)) {
		carousel_plan_produce(carousel, job, slot, now_ns);
		return;
	}
	if (hungriest->n_tail) {
		carousel_deal_tail(carousel, job, s);
	} else if (hungriest->plan.order) {
		carousel_fixed_deal(carousel, hungriest, s);
	} else {
		n = leave_out_placed(carousel, order, n, &n_hungry);
		carousel_deal_chunk(carousel, order, n, n_hungry, s);
	}
	s->chunk.variants = carousel_variant_of_chunk(carousel, job, slot, now_ns);
}

/* A tail was dealt: it is the job's, with its production. */
static void grant_tail(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns)
{
	if (carousel->jobs[job].is_group)
		carousel_log_append(carousel, job, slot, &carousel->pending_grant);
	else
		carousel_need_grant(carousel, job, slot, now_ns, &carousel->pending_grant);
	carousel->pending = carousel->pending_grant.kind != CAROUSEL_NONE;
	carousel_need_look(carousel, job); /* what is there may follow the tail */
}

static void produce(struct carousel *carousel, uint32_t *order, uint32_t n, uint32_t n_hungry,
		    uint32_t slot, uint64_t now_ns, struct carousel_action *ret)
{
	struct carousel_slot *s = &carousel->slots[slot];
	bool has_tail = carousel->jobs[order[0]].n_tail;

	s->chunk = (struct carousel_chunk){
	    .instance = ++carousel->instances,
	    .nonce = carousel->config.first_nonce + carousel->instances - 1,
	    .seed = carousel->config.seed,
	};
	s->stamped = true;
	carousel->n_free--;
	fill_chunk(carousel, order, n, n_hungry, slot, now_ns);
	if (has_tail)
		grant_tail(carousel, order[0], slot, now_ns);
	else
		mark_living(carousel, s);
	carousel->productions += s->chunk.count;
	carousel->outputs +=
	    (uint64_t)s->chunk.count * (unsigned)__builtin_popcount(s->chunk.variants);
	carousel->unfinished++;
	*ret = (struct carousel_action){
	    .kind = CAROUSEL_PRODUCE,
	    .slot = slot,
	    .instance = s->chunk.instance,
	};
}

/* Does the slot serve no living job: is it kept by pins or grants of jobs that do not live
 * alone? */
static bool is_held_by_dead(const struct carousel *carousel, uint32_t slot, uint64_t now_ns)
{
	const struct carousel_slot *s = &carousel->slots[slot];
	bool held = s->ghosts != 0;

	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		if (carousel_evict_granted_at(carousel, job, slot) < 0)
			continue;
		if (carousel_step_lives(carousel, job, now_ns, NULL))
			return false;
		held = true;
	}
	return held;
}

/* Counts, once each time it begins, that a living job with nothing in its chunks and nothing coming, which did
 * not give way, gets no slot while one serves the dead alone. Admission keeps this from happening. */
static void watch_dead(struct carousel *carousel, const struct carousel_member *hungriest,
		       bool no_slot, uint64_t now_ns)
{
	bool blocked = false;

	if (no_slot && !has_given_way(hungriest) && !hungriest->coming && !hungriest->pins &&
	    !carousel->unfinished)
		for (uint32_t i = 0; i < carousel->n_slots && !blocked; i++)
			blocked = is_held_by_dead(carousel, i, now_ns);
	carousel->waits_on_dead += blocked && !carousel->blocked;
	carousel->blocked = blocked;
}

static bool step_produce(struct carousel *carousel, uint64_t now_ns, struct carousel_action *ret)
{
	uint32_t order[CAROUSEL_MAX_JOBS];
	uint32_t n, n_hungry, slot;
	bool starves = false, waits = false;

	if (!carousel_may_begin(carousel))
		return false;
	n = sort_jobs(carousel, now_ns, order, &n_hungry);
	if (!n_hungry)
		return false;
	slot = free_slot(carousel);
	if (slot != CAROUSEL_NO_SLOT) {
		const struct carousel_member *hungriest = &carousel->jobs[order[0]];

		/* Makes the hungriest job's chunk. */
		if (hungriest->plan.order == PLAN_LIST &&
		    !carousel_listed_is_good(carousel, hungriest))
			*ret = (struct carousel_action){.kind = CAROUSEL_FAIL, .job = order[0]};
		else
			produce(carousel, order, n, n_hungry, slot, now_ns, ret);
		return true;
	}
	for (uint32_t i = 0; i < n_hungry && !waits; i++) {
		if (!carousel_step_starving(carousel, order[i], now_ns))
			continue;
		starves = true;
		waits = speaker(carousel, order[i], now_ns)->waiting;
	}
	carousel->evicting = carousel_evict_choose(carousel, starves, waits, now_ns);
	watch_dead(carousel, speaker(carousel, order[0], now_ns),
		   carousel->evicting == CAROUSEL_NO_SLOT, now_ns);
	return carousel_evict_step(carousel, ret);
}

/* What ranks must know of their plan, whatever can be produced now. */
static bool step_plan(struct carousel *carousel, uint64_t now_ns, struct carousel_action *ret)
{
	uint32_t order[CAROUSEL_MAX_JOBS];
	uint32_t n, n_hungry;

	if (!carousel->n_groups)
		return false;
	n = sort_jobs(carousel, now_ns, order, &n_hungry);
	n = leave_out_placed(carousel, order, n, &n_hungry);
	return carousel_plan_ahead(carousel, order, n, n_hungry, now_ns, ret);
}

/* the step */

/* When a job that lives now will not any more, if it stays as it is. */
static uint64_t next_wake(const struct carousel *carousel, uint64_t now_ns)
{
	uint64_t wake_ns = 0;

	for (uint32_t job = 0; job < carousel->jobs_end; job++) {
		uint64_t until_ns = 0;

		if (!carousel->jobs[job].used ||
		    !carousel_step_lives(carousel, job, now_ns, &until_ns) || !until_ns)
			continue;
		if (!wake_ns || until_ns < wake_ns)
			wake_ns = until_ns;
	}
	return wake_ns;
}

void carousel_step(struct carousel *carousel, uint64_t now_ns, struct carousel_action *ret)
{
	for (uint32_t i = 0; i < carousel->n_slots && carousel->unstamped; i++) {
		struct carousel_slot *s = &carousel->slots[i];

		if (!s->chunk.instance || !s->chunk.ready || s->stamped)
			continue;
		s->stamped = true;
		s->ready_ns = now_ns;
		carousel->unstamped--;
	}
	carousel_lead_find(carousel, now_ns);
	if (carousel_evict_step(carousel, ret) || step_grant(carousel, now_ns, ret) ||
	    step_produce(carousel, now_ns, ret) || step_plan(carousel, now_ns, ret))
		return;
	*ret = (struct carousel_action){
	    .kind = CAROUSEL_NONE,
	    .wake_ns = next_wake(carousel, now_ns),
	};
}
