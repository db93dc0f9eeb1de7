/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs come and go. What a join says is foreign (it is from a token): nothing of it counts before
 * all of it was found good. A leave gives back what the job was granted, and its number.
 *
 * Each ends a segment of the reference (carousel.c).
 */

#include "base/bits.h"
#include "sched/carousel_log.h"
#include "sched/carousel_state.h"
#include "plan/ranks/spread.h"
#include "plan/sort.h"
#include "plan/token.h"

void carousel_join_free(struct carousel *carousel, struct carousel_member *member)
{
	if (member->log)
		carousel_log_leave(carousel, (uint32_t)(member - carousel->jobs));
	carousel_population_unref(carousel, member->population);
	free(member->need);
	carousel_chapter_leave(member);
	free(member->words_some);
	free(member->words_full);
	free(member->tail);
	free(member->grants);
	*member = (struct carousel_member){0};
	while (carousel->jobs_end && !carousel->jobs[carousel->jobs_end - 1].used)
		carousel->jobs_end--;
}

/* join */

/* The tail is sorted on the way: its order means nothing. */
static int check_tail(const struct carousel *carousel, const struct carousel_member *member)
{
	const struct permutation *permutation = &carousel->permutation;
	const uint64_t *bits = carousel_population_bits(carousel, member->population);
	const uint32_t n = member->n_tail;
	_cleanup_free_ uint64_t *positions = malloc(((size_t)n + 1) * sizeof(*positions));

	if (!positions)
		return -ENOMEM;
	sort_values((uint64_t *)member->tail, positions, n);
	if (n && (uint64_t)member->tail[n - 1] >= permutation->n)
		return CAROUSEL_E_BAD;
	permutation_positions(permutation, member->tail, n, positions);
	for (uint32_t i = 0; i < n; i++)
		if ((i && member->tail[i] == member->tail[i - 1]) ||
		    (bits && !bits_test(bits, positions[i])) ||
		    bits_test(member->need, positions[i] / permutation->block))
			return CAROUSEL_E_BAD;
	return 0;
}

static int copy_need(struct carousel *carousel, const struct carousel_join *join,
		     struct carousel_member *member)
{
	const uint64_t *need = join->need;
	size_t words = bits_words(carousel->permutation.blocks);
	unsigned rest = carousel->permutation.blocks % 64;

	if (!need) {
		carousel_need_reset(carousel, member);
		return 0;
	}
	if (rest && need[words - 1] >> rest)
		return CAROUSEL_E_BAD;
	memcpy(member->need, need, words * sizeof(*need));
	carousel_need_sum(carousel, member);
	if (join->is_counted)
		carousel_need_known(carousel, member, join->need_samples);
	else
		carousel_need_recount(carousel, member);
	return carousel_population_has_need(carousel, member) ? 0 : CAROUSEL_E_BAD;
}

static int set_population(struct carousel *carousel, const struct carousel_join *join,
			  struct carousel_member *member)
{
	int r = carousel_population_join(carousel, join, &member->population);

	if (r)
		return r;
	member->scope = join->is_random ? 0 : member->population;
	member->is_narrow = join->is_narrow;
	return 0;
}

/* Is its slice one, and of a fixed plan? */
static bool is_slice(const struct carousel_join *join)
{
	const struct slice *slice = &join->slice;

	return slice_is_whole(slice) ||
	       (join->order &&
		(!slice->is_spread || (join->order != PLAN_LIST && spread_is_even(slice))) &&
		slice->ranks.batch && slice->count < slice->ranks.ranks &&
		slice->first <= slice->ranks.ranks - slice->count);
}

/* Where in its epoch a job with a fixed plan is. */
static void set_place(const struct carousel *carousel, const struct carousel_join *join,
		      struct carousel_member *member)
{
	member->slice = join->slice;
	member->slice.ranks.base = join->place;
	member->slice_epoch = join->epoch;
	if (join->order == PLAN_LIST)
		member->start = join->place;
	else
		member->need_samples = carousel_fixed_left(carousel, member, join->place);
}

static int fill_member(struct carousel *carousel, const struct carousel_join *join,
		       struct carousel_member *member)
{
	int r;

	if (!join->ranks || !join->batch || (join->epochs && join->epoch > join->epochs) ||
	    join->variant >= CAROUSEL_MAX_VARIANTS)
		return CAROUSEL_E_BAD;
	if (!is_slice(join))
		return CAROUSEL_E_BAD;
	if (join->order &&
	    (!plan_is_fixed(join->order) || join->need || join->n_tail || join->population ||
	     (join->place > carousel->permutation.n && join->order != PLAN_LIST)))
		return CAROUSEL_E_BAD;
	r = set_population(carousel, join, member);
	if (r)
		return r;
	member->need = calloc(carousel->words + CAROUSEL_SPAN, sizeof(*member->need));
	member->words_some = calloc(carousel->words / CAROUSEL_SPAN, sizeof(*member->words_some));
	member->words_full = calloc(carousel->words / CAROUSEL_SPAN, sizeof(*member->words_full));
	member->tail = calloc((size_t)join->n_tail + 1, sizeof(*member->tail));
	member->grants = calloc(carousel->config.max_slots, sizeof(*member->grants));
	if (!member->need || !member->words_some || !member->words_full || !member->tail ||
	    !member->grants || carousel_chapter_enter(carousel, member))
		return -ENOMEM;
	if (join->group)
		return carousel_log_enter(carousel, join, (uint32_t)(member - carousel->jobs));
	member->variant = join->variant;
	member->batch = join->batch;
	member->ranks = join->ranks;
	member->reuse = BASE_MAX(join->reuse, 1u);
	member->is_exact = join->is_exact;
	member->epoch = member->closed = join->epoch;
	member->epochs = join->epochs;
	if (join->epochs && join->epoch == join->epochs)
		return 0; /* a token of a job that is through: nothing to grant */
	if (join->order)
		plan_init(&member->plan, join->order, carousel->permutation.n, join->seed,
			  carousel->config.version, carousel_variant_again(carousel, member));
	if (copy_need(carousel, join, member))
		return CAROUSEL_E_BAD;
	if (join->order)
		set_place(carousel, join, member);
	member->n_tail = member->tail_room = join->n_tail;
	if (join->n_tail)
		memcpy(member->tail, join->tail, join->n_tail * sizeof(*join->tail));
	member->given = member->need_samples + member->n_tail;
	return check_tail(carousel, member);
}

/*
 * A token names the newest TOKEN_MAX_NONCES nonces that its job saw. When all of them are of this
 * carousel, there may be forgotten ones, and a slot may hold one still. Such a one was put into
 * production no later than the newest that is named: else all that are named, seen after it, would
 * have been in slots beside it. With so many slots that this can be, or with nonces that were drawn
 * before production, every chunk counts as seen.
 *
 * Returns how many of the oldest instances may be such.
 */
static uint64_t forgotten(const struct carousel *carousel, const struct carousel_join *join)
{
	uint64_t newest = 0;
	uint32_t ours = 0;

	for (uint32_t k = 0; k < join->n_nonces; k++) {
		uint64_t age = join->nonces[k] - carousel->config.first_nonce;

		if (age < carousel->instances) {
			newest = BASE_MAX(newest, age + 1);
			ours++;
		}
	}
	if (ours < TOKEN_MAX_NONCES)
		return 0;
	if (carousel->planned || carousel->n_slots > TOKEN_MAX_NONCES)
		return carousel->instances;
	return newest;
}

static void see_nonces(struct carousel *carousel, const struct carousel_join *join, uint32_t job)
{
	uint64_t n_forgotten = forgotten(carousel, join);

	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		struct carousel_slot *s = &carousel->slots[i];
		bool is_seen = s->chunk.instance <= n_forgotten || s->again;

		for (uint32_t k = 0; k < join->n_nonces; k++)
			is_seen |= s->chunk.nonce == join->nonces[k];
		if (!s->chunk.instance || !is_seen)
			continue;
		bits_set(s->seen.word, job);
		s->uses[job] = UINT8_MAX; /* how often is not known */
	}
}

int carousel_join(struct carousel *carousel, const struct carousel_join *join, uint64_t now_ns,
		  uint32_t *ret_job)
{
	struct carousel_member *member;
	uint32_t job = 0;
	int r;

	while (job < CAROUSEL_MAX_JOBS && carousel->jobs[job].used)
		job++;
	if (job == CAROUSEL_MAX_JOBS)
		return CAROUSEL_E_FULL;
	member = &carousel->jobs[job];
	r = fill_member(carousel, join, member);
	if (r) {
		carousel_join_free(carousel, member);
		return r;
	}
	carousel_end_segment(carousel);
	member->used = true;
	carousel->jobs_end = BASE_MAX(carousel->jobs_end, job + 1);
	carousel->members[member->variant]++;
	member->act_ns = now_ns;
	see_nonces(carousel, join, job);
	carousel_need_look(carousel, job);
	carousel_need_advance(carousel, job);
	*ret_job = job;
	return 0;
}

/* leave */

static void leave(struct carousel *carousel, uint32_t job, bool pinned)
{
	struct carousel_member *member;

	if (job >= CAROUSEL_MAX_JOBS || !carousel->jobs[job].used)
		return;
	member = &carousel->jobs[job];
	carousel_end_segment(carousel);
	while (member->n_grants) {
		const struct carousel_grant *grant = &member->grants[member->n_grants - 1];

		if (pinned && grant->state != CAROUSEL_GRANTED)
			carousel->slots[grant->slot].ghosts++;
		carousel_need_drop(carousel, job, (int)member->n_grants - 1);
	}
	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		struct carousel_slot *s = &carousel->slots[i];

		bits_clear(s->seen.word, job);
		bits_clear(s->check.word, job);
		bits_clear(s->meant.word, job);
		s->uses[job] = 0;
		if (s->owner == job)
			s->owner = CAROUSEL_NOBODY;
	}
	if (carousel->pending && carousel->pending_grant.job == job)
		carousel->pending = false;
	carousel->members[member->variant]--;
	carousel_join_free(carousel, member);
}

void carousel_leave(struct carousel *carousel, uint32_t job, uint64_t now_ns)
{
	(void)now_ns;
	leave(carousel, job, false);
}

void carousel_leave_pinned(struct carousel *carousel, uint32_t job, uint64_t now_ns)
{
	(void)now_ns;
	leave(carousel, job, true);
}

void carousel_unpin(struct carousel *carousel, uint32_t slot)
{
	if (slot < carousel->n_slots && carousel->slots[slot].ghosts)
		carousel->slots[slot].ghosts--;
}
