/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The carousel's life, its events and its views. Events only write down what happened; all
 * decisions are made in carousel_step(), from what is written down and the time given.
 *
 * Events are believed as far as they make sense: a take, an end or a return of something that was
 * not granted changes nothing. So a daemon that passes on nonsense of a hostile client harms that
 * client's job at most.
 *
 * The reference is DESIGN.md section 3's: over the segments between joins and leaves (and ends)
 * of jobs, the sum of the most samples that any one job consumed in the segment.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sched/carousel_state.h"
#include "sched/token.h"

#define CAROUSEL_MAX_PRODUCING 4
#define CAROUSEL_LEAST_LIST 4096

static bool is_good(const struct carousel_config *config, uint32_t grain)
{
	return config->hand >= grain && config->slots <= config->max_slots && config->max_slots &&
	       config->max_slots < CAROUSEL_NO_SLOT && config->producing >= 1 &&
	       config->producing <= CAROUSEL_MAX_PRODUCING && config->n <= INT64_MAX &&
	       (config->n + grain - 1) / grain <= UINT32_MAX;
}

static size_t words_of(uint64_t grains)
{
	return (size_t)base_align_up(BASE_MAX(bits_words(grains), (size_t)1), CAROUSEL_BLOCK);
}

int carousel_new(const struct carousel_config *config, struct carousel **ret)
{
	struct carousel *carousel;

	if (!is_good(config, deal_grain_of(config->n)))
		return CAROUSEL_E_BAD;
	carousel = calloc(1, sizeof(*carousel));
	if (!carousel)
		return -ENOMEM;
	carousel->config = *config;
	carousel->evicting = CAROUSEL_NO_SLOT;
	deal_init(&carousel->deal, config->n, config->version);
	carousel->words = words_of(carousel->deal.grains);
	carousel_chapter_init(carousel);
	carousel->room_window =
	    words_of(BASE_MIN(carousel->deal.grains, carousel->chapter + 64 * CAROUSEL_BLOCK));
	carousel->max_grains = config->hand / carousel->deal.grain;
	carousel->candidates = calloc(carousel->room_window, sizeof(uint64_t));
	carousel->drawn = calloc(carousel->room_window, sizeof(uint64_t));
	carousel->words_left =
	    calloc(carousel->room_window / CAROUSEL_BLOCK, sizeof(*carousel->words_left));
	carousel->sums = calloc(carousel->room_window / CAROUSEL_BLOCK + 1, sizeof(uint32_t));
	carousel->room_list = CAROUSEL_LEAST_LIST + 2 * carousel->max_grains;
	carousel->list = calloc(carousel->room_list, sizeof(uint32_t));
	carousel->probes = calloc(1, sizeof(*carousel->probes));
	carousel->slots = calloc(config->max_slots, sizeof(*carousel->slots));
	if (!carousel->candidates || !carousel->drawn || !carousel->words_left || !carousel->sums ||
	    !carousel->list || !carousel->probes || !carousel->slots ||
	    carousel_add_slots(carousel, config->slots)) {
		carousel_free(carousel);
		return -ENOMEM;
	}
	*ret = carousel;
	return 0;
}

static void free_member(struct carousel *carousel, struct carousel_member *member)
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
}

void carousel_free(struct carousel *carousel)
{
	if (!carousel)
		return;
	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++)
		if (!carousel->jobs[i].is_group)
			free_member(carousel, &carousel->jobs[i]);
	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++)
		free_member(carousel, &carousel->jobs[i]);
	for (uint32_t i = 0; carousel->slots && i < carousel->config.max_slots; i++) {
		if (carousel->slots[i].hand.scope)
			carousel_population_unref(carousel, carousel->slots[i].hand.scope);
		free(carousel->slots[i].ids);
		free(carousel->slots[i].grains);
		free(carousel->slots[i].uses);
		free(carousel->slots[i].keys);
	}
	free(carousel->slots);
	free(carousel->spare.ids);
	free(carousel->spare.grains);
	free(carousel->candidates);
	free(carousel->drawn);
	free(carousel->words_left);
	free(carousel->sums);
	free(carousel->list);
	free(carousel->probes);
	free(carousel);
}

const struct deal *carousel_deal(const struct carousel *carousel)
{
	return &carousel->deal;
}

int carousel_add_slots(struct carousel *carousel, uint32_t slots)
{
	if (slots > carousel->config.max_slots - carousel->n_slots)
		return CAROUSEL_E_FULL;
	for (uint32_t i = 0; i < slots; i++) {
		struct carousel_slot *s = &carousel->slots[carousel->n_slots];

		if (!s->ids)
			s->ids = malloc(carousel->config.hand * sizeof(*s->ids));
		if (!s->grains)
			s->grains = malloc(carousel->config.hand * sizeof(*s->grains));
		if (!s->uses)
			s->uses = calloc(CAROUSEL_MAX_JOBS, sizeof(*s->uses));
		if (!s->keys)
			s->keys = malloc(carousel->config.hand * sizeof(*s->keys));
		if (!s->ids || !s->grains || !s->uses || !s->keys)
			return -ENOMEM;
		s->owner = CAROUSEL_NOBODY;
		carousel->n_slots++;
	}
	return 0;
}

/* Ends a segment of the reference. */
static uint64_t most_of_segment(const struct carousel *carousel)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++)
		if (carousel->jobs[i].used)
			most = BASE_MAX(most, carousel->jobs[i].consumed - carousel->jobs[i].mark);
	return most;
}

static void end_segment(struct carousel *carousel)
{
	carousel->reference += most_of_segment(carousel);
	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++)
		carousel->jobs[i].mark = carousel->jobs[i].consumed;
}

/* join */

static int compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The tail is sorted on the way: its order means nothing. */
static bool is_tail_good(const struct carousel *carousel, const struct carousel_member *member)
{
	const struct deal *deal = &carousel->deal;

	qsort(member->tail, member->n_tail, sizeof(*member->tail), compare_ids);
	for (uint32_t i = 0; i < member->n_tail; i++) {
		int64_t id = member->tail[i];

		if (id < 0 || (uint64_t)id >= deal->n || (i && id == member->tail[i - 1]) ||
		    !carousel_population_has_id(carousel, member, (uint64_t)id) ||
		    bits_test(member->need, deal_position(deal, (uint64_t)id) / deal->grain))
			return false;
	}
	return true;
}

static int copy_need(struct carousel *carousel, const uint64_t *need,
		     struct carousel_member *member)
{
	size_t words = bits_words(carousel->deal.grains);
	unsigned rest = carousel->deal.grains % 64;

	if (!need) {
		carousel_need_reset(carousel, member);
		return 0;
	}
	if (rest && need[words - 1] >> rest)
		return CAROUSEL_E_BAD;
	memcpy(member->need, need, words * sizeof(*need));
	carousel_need_sum(carousel, member);
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

static int fill_member(struct carousel *carousel, const struct carousel_join *join,
		       struct carousel_member *member)
{
	int r;

	if (!join->ranks || !join->batch || (join->epochs && join->epoch > join->epochs))
		return CAROUSEL_E_BAD;
	if (join->order &&
	    (!plan_is_fixed(join->order) || join->need || join->n_tail || join->population ||
	     (join->place > carousel->deal.n && join->order != PLAN_LIST)))
		return CAROUSEL_E_BAD;
	r = set_population(carousel, join, member);
	if (r)
		return r;
	member->need = calloc(carousel->words + CAROUSEL_BLOCK, sizeof(*member->need));
	member->words_some = calloc(carousel->words / CAROUSEL_BLOCK, sizeof(*member->words_some));
	member->words_full = calloc(carousel->words / CAROUSEL_BLOCK, sizeof(*member->words_full));
	member->tail = calloc((size_t)join->n_tail + 1, sizeof(*member->tail));
	member->grants = calloc(carousel->config.max_slots, sizeof(*member->grants));
	if (!member->need || !member->words_some || !member->words_full || !member->tail ||
	    !member->grants || carousel_chapter_enter(carousel, member))
		return -ENOMEM;
	if (join->group)
		return carousel_log_enter(carousel, join, (uint32_t)(member - carousel->jobs));
	member->batch = join->batch;
	member->ranks = join->ranks;
	member->reuse = BASE_MAX(join->reuse, 1u);
	member->epoch = member->closed = join->epoch;
	member->epochs = join->epochs;
	if (join->epochs && join->epoch == join->epochs)
		return 0; /* a token of a job that is through: nothing to grant */
	if (join->order)
		plan_init(&member->plan, join->order, carousel->deal.n, join->seed,
			  carousel->config.version, carousel->config.usable_again);
	if (copy_need(carousel, join->need, member))
		return CAROUSEL_E_BAD;
	if (join->order == PLAN_LIST)
		member->start = join->place;
	else
		member->need_samples -= join->order ? join->place : 0;
	member->n_tail = member->tail_room = join->n_tail;
	if (join->n_tail)
		memcpy(member->tail, join->tail, join->n_tail * sizeof(*join->tail));
	member->given = member->need_samples + member->n_tail;
	return is_tail_good(carousel, member) ? 0 : CAROUSEL_E_BAD;
}

/*
 * A token names the newest TOKEN_MAX_LAPS laps that its job saw. When all of them are of this
 * carousel, there may be forgotten ones, and a slot may hold one still. Such a one was put into
 * production no later than the newest that is named: else all that are named, seen after it, would
 * have been in slots beside it. With so many slots that this can be, or with laps that were drawn
 * before production, every hand counts as seen.
 *
 * Returns how many of the oldest instances may be such.
 */
static uint64_t forgotten(const struct carousel *carousel, const struct carousel_join *join)
{
	uint64_t newest = 0;
	uint32_t ours = 0;

	for (uint32_t k = 0; k < join->n_laps; k++) {
		uint64_t age = join->laps[k] - carousel->config.first_lap;

		if (age < carousel->instances) {
			newest = BASE_MAX(newest, age + 1);
			ours++;
		}
	}
	if (ours < TOKEN_MAX_LAPS)
		return 0;
	if (carousel->planned || carousel->n_slots > TOKEN_MAX_LAPS)
		return carousel->instances;
	return newest;
}

static void see_laps(struct carousel *carousel, const struct carousel_join *join, uint32_t job)
{
	uint64_t n_forgotten = forgotten(carousel, join);

	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		struct carousel_slot *s = &carousel->slots[i];
		bool is_seen = s->hand.instance <= n_forgotten || s->again;

		for (uint32_t k = 0; k < join->n_laps; k++)
			is_seen |= s->hand.lap == join->laps[k];
		if (!s->hand.instance || !is_seen)
			continue;
		carousel_set_add(&s->seen, job);
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
		free_member(carousel, member);
		return r;
	}
	end_segment(carousel);
	member->used = true;
	member->act_ns = now_ns;
	see_laps(carousel, join, job);
	carousel_need_look(carousel, job);
	carousel_need_advance(carousel, job);
	*ret_job = job;
	return 0;
}

/* leave */

static void forget_job(struct carousel *carousel, uint32_t job)
{
	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		struct carousel_slot *s = &carousel->slots[i];

		carousel_set_remove(&s->seen, job);
		carousel_set_remove(&s->check, job);
		carousel_set_remove(&s->meant, job);
		s->uses[job] = 0;
		if (s->owner == job)
			s->owner = CAROUSEL_NOBODY;
	}
	if (carousel->pending && carousel->pending_grant.job == job)
		carousel->pending = false;
}

static void leave(struct carousel *carousel, uint32_t job, bool pinned)
{
	struct carousel_member *member;

	if (job >= CAROUSEL_MAX_JOBS || !carousel->jobs[job].used)
		return;
	member = &carousel->jobs[job];
	end_segment(carousel);
	while (member->n_grants) {
		const struct carousel_grant *grant = &member->grants[member->n_grants - 1];

		if (pinned && grant->state != CAROUSEL_GRANTED)
			carousel->slots[grant->slot].ghosts++;
		carousel_need_drop(carousel, job, (int)member->n_grants - 1);
	}
	forget_job(carousel, job);
	free_member(carousel, member);
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

/* what happens to hands and grants */

void carousel_produced(struct carousel *carousel, uint32_t slot)
{
	struct carousel_slot *s;

	if (slot >= carousel->n_slots)
		return;
	s = &carousel->slots[slot];
	if (!s->hand.instance || s->hand.ready)
		return;
	s->hand.ready = true;
	s->stamped = false;
	carousel->unfinished--;
	carousel->unstamped++;
}

static struct carousel_member *find_grant(struct carousel *carousel, uint32_t job, uint32_t slot,
					  int *ret_index)
{
	struct carousel_member *member;

	if (job >= CAROUSEL_MAX_JOBS || !carousel->jobs[job].used)
		return NULL;
	member = &carousel->jobs[job];
	*ret_index = carousel_need_find(member, slot);
	return *ret_index >= 0 ? member : NULL;
}

/* The time a job usually needs from take to take: at most four times as long as it used to be, so
 * that one pause does not make the next one look usual. */
static void learn_interval(struct carousel_member *member, uint64_t now_ns)
{
	uint64_t interval = now_ns - member->take_ns;

	if (member->take_ns && now_ns > member->take_ns) {
		if (member->interval_ns)
			interval = (7 * member->interval_ns +
				    BASE_MIN(interval, 4 * member->interval_ns)) /
				   8;
		member->interval_ns = BASE_MAX(interval, (uint64_t)1);
	}
	member->take_ns = member->act_ns = now_ns;
}

static void learn_pace(struct carousel_member *member, uint32_t samples, uint64_t since_ns,
		       uint64_t now_ns)
{
	double pace;

	if (now_ns <= since_ns || !samples)
		return;
	pace = (double)(now_ns - since_ns) / samples;
	member->pace_ns = member->pace_ns > 0 ? (7 * member->pace_ns + pace) / 8 : pace;
}

static void take(struct carousel *carousel, struct carousel_member *member, int index,
		 uint64_t now_ns)
{
	struct carousel_grant *grant = &member->grants[index];
	struct carousel_slot *s = &carousel->slots[grant->slot];

	if (grant->counted)
		return;
	grant->counted = true;
	grant->since_ns = now_ns;
	member->taken += grant->samples;
	learn_interval(member, now_ns);
	if (grant->state == CAROUSEL_REVOKED)
		return; /* decided when it is done or comes back */
	grant->state = CAROUSEL_TAKEN;
	member->coming -= grant->samples;
	member->pins++;
	s->granted--;
	s->pins++;
	if (grant->last)
		member->closed = grant->epoch + 1;
}

/* The job, or its group, may want more of what is there. */
static void look_for_more(struct carousel *carousel, uint32_t job)
{
	const struct carousel_member *member = &carousel->jobs[job];

	if (carousel_is_rank(member))
		carousel_need_look(carousel, carousel_log_group(member->log));
	else if (carousel_lead_wants(carousel, member))
		carousel_need_look(carousel, job);
}

void carousel_taken(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns)
{
	int index;
	struct carousel_member *member = find_grant(carousel, job, slot, &index);

	if (!member)
		return;
	take(carousel, member, index, now_ns);
	look_for_more(carousel, job);
}

static bool is_through(const struct carousel_member *member)
{
	return member->epochs && member->epoch >= member->epochs && !member->n_grants;
}

void carousel_done(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns)
{
	int index;
	struct carousel_member *member = find_grant(carousel, job, slot, &index);
	struct carousel_grant *grant;

	if (!member)
		return;
	take(carousel, member, index, now_ns);
	grant = &member->grants[index];
	learn_pace(member, grant->samples, BASE_MAX(grant->since_ns, member->done_ns), now_ns);
	member->act_ns = member->done_ns = now_ns;
	member->consumed += grant->samples;
	if (grant->last)
		member->closed = BASE_MAX(member->closed, grant->epoch + 1);
	carousel_need_drop(carousel, job, index);
	look_for_more(carousel, job);
	if (is_through(member))
		end_segment(carousel);
}

void carousel_reclaimed(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns)
{
	int index;

	(void)now_ns;
	if (find_grant(carousel, job, slot, &index))
		carousel_need_return(carousel, job, index);
}

void carousel_waiting(struct carousel *carousel, uint32_t job, bool waiting)
{
	if (job >= CAROUSEL_MAX_JOBS || !carousel->jobs[job].used)
		return;
	if (waiting && !carousel->jobs[job].waiting)
		carousel_need_look(carousel, job);
	carousel->jobs[job].waiting = waiting;
}

/* views */

const struct carousel_hand *carousel_hand_of(const struct carousel *carousel, uint32_t slot)
{
	if (slot >= carousel->n_slots || !carousel->slots[slot].hand.instance)
		return NULL;
	return &carousel->slots[slot].hand;
}

void carousel_job(const struct carousel *carousel, uint32_t job, uint64_t now_ns,
		  struct carousel_job_view *ret)
{
	const struct carousel_member *member;

	*ret = (struct carousel_job_view){0};
	if (job >= CAROUSEL_MAX_JOBS || !carousel->jobs[job].used)
		return;
	member = &carousel->jobs[job];
	*ret = (struct carousel_job_view){
	    .used = true,
	    .lives = carousel_step_lives(carousel, job, now_ns, NULL),
	    .hungry = carousel_step_hungry(carousel, job, now_ns),
	    .starving = carousel_step_starving(carousel, job, now_ns),
	    .epoch = member->epoch,
	    .population = carousel_population_count(carousel, member),
	    .need = member->need_samples + member->n_tail,
	    .coming = member->coming,
	    .taken = member->taken,
	    .consumed = member->consumed,
	    .grants = member->n_grants - member->pins,
	    .pins = member->pins,
	    .begun = carousel->chapters > 1 ? member->begun : 0,
	};
}

void carousel_totals(const struct carousel *carousel, struct carousel_totals *ret)
{
	*ret = (struct carousel_totals){
	    .productions = carousel->productions,
	    .hands = carousel->instances,
	    .reference = carousel->reference + most_of_segment(carousel),
	    .waits_on_dead = carousel->waits_on_dead,
	    .slots = carousel->n_slots,
	};
	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		const struct carousel_slot *s = &carousel->slots[i];

		ret->resident += s->hand.instance != 0;
		ret->pinned += s->pins || s->ghosts;
	}
	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++)
		ret->jobs += carousel->jobs[i].used;
}
