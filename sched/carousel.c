/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The carousel's life, the events of its chunks and grants, and its views; how jobs come and go is in
 * carousel_join.c. Events only write down what happened; all decisions are made in carousel_step(),
 * from what is written down and the time given.
 *
 * Events are believed as far as they make sense: a take, an end or a return of something that was
 * not granted changes nothing. So a daemon that passes on nonsense of a hostile client harms that
 * client's job at most.
 *
 * The reference is DESIGN.md section 3's: over the segments between joins and leaves (and ends)
 * of jobs, the sum of the most samples that any one job consumed in the segment.
 */

#include "base/bits.h"
#include "sched/carousel_log.h"
#include "sched/carousel_state.h"

#define CAROUSEL_MAX_PRODUCING 4
#define CAROUSEL_LEAST_LIST 4096

static bool is_good(const struct carousel_config *config, uint32_t block)
{
	return config->chunk >= block && config->slots <= config->max_slots && config->max_slots &&
	       config->max_slots < CAROUSEL_NO_SLOT && config->producing >= 1 &&
	       config->producing <= CAROUSEL_MAX_PRODUCING &&
	       config->overtaken <= CAROUSEL_MAX_PRODUCING - config->producing &&
	       config->n <= INT64_MAX && (config->n + block - 1) / block <= UINT32_MAX;
}

static size_t words_of(uint64_t blocks)
{
	return (size_t)base_align_up(BASE_MAX(bits_words(blocks), (size_t)1), CAROUSEL_SPAN);
}

int carousel_new(const struct carousel_config *config, struct carousel **ret)
{
	struct carousel *carousel;

	if (!is_good(config, permutation_block_of(config->n)))
		return CAROUSEL_E_BAD;
	carousel = calloc(1, sizeof(*carousel));
	if (!carousel)
		return -ENOMEM;
	carousel->config = *config;
	carousel->evicting = CAROUSEL_NO_SLOT;
	permutation_init(&carousel->permutation, config->n, config->version);
	carousel->words = words_of(carousel->permutation.blocks);
	carousel_chapter_init(carousel);
	carousel->room_window = words_of(
	    BASE_MIN(carousel->permutation.blocks, carousel->chapter + 64 * CAROUSEL_SPAN));
	carousel->max_blocks = config->chunk / carousel->permutation.block;
	carousel->candidates = calloc(carousel->room_window, sizeof(uint64_t));
	carousel->drawn = calloc(carousel->room_window, sizeof(uint64_t));
	carousel->words_left =
	    calloc(carousel->room_window / CAROUSEL_SPAN, sizeof(*carousel->words_left));
	carousel->sums = calloc(carousel->room_window / CAROUSEL_SPAN + 1, sizeof(uint32_t));
	carousel->room_list = CAROUSEL_LEAST_LIST + 2 * carousel->max_blocks;
	carousel->list = calloc(carousel->room_list, sizeof(uint32_t));
	carousel->probes = calloc(1, sizeof(*carousel->probes));
	carousel->wants = calloc(config->max_slots, sizeof(*carousel->wants));
	carousel->slots = calloc(config->max_slots, sizeof(*carousel->slots));
	if (!carousel->candidates || !carousel->drawn || !carousel->words_left || !carousel->sums ||
	    !carousel->list || !carousel->probes || !carousel->wants || !carousel->slots ||
	    carousel_add_slots(carousel, config->slots)) {
		carousel_free(carousel);
		return -ENOMEM;
	}
	*ret = carousel;
	return 0;
}

void carousel_free(struct carousel *carousel)
{
	if (!carousel)
		return;
	for (uint32_t i = 0; i < carousel->jobs_end; i++)
		if (!carousel->jobs[i].is_group)
			carousel_join_free(carousel, &carousel->jobs[i]);
	for (uint32_t i = 0; i < carousel->jobs_end; i++)
		carousel_join_free(carousel, &carousel->jobs[i]);
	for (uint32_t i = 0; carousel->slots && i < carousel->config.max_slots; i++) {
		if (carousel->slots[i].chunk.scope)
			carousel_population_unref(carousel, carousel->slots[i].chunk.scope);
		free(carousel->slots[i].ids);
		free(carousel->slots[i].blocks);
		free(carousel->slots[i].uses);
		free(carousel->slots[i].keys);
	}
	free(carousel->slots);
	free(carousel->spare.ids);
	free(carousel->spare.blocks);
	free(carousel->candidates);
	free(carousel->drawn);
	free(carousel->words_left);
	free(carousel->sums);
	free(carousel->list);
	free(carousel->probes);
	free(carousel->wants);
	free(carousel);
}

const struct permutation *carousel_permutation(const struct carousel *carousel)
{
	return &carousel->permutation;
}

int carousel_add_slots(struct carousel *carousel, uint32_t slots)
{
	if (slots > carousel->config.max_slots - carousel->n_slots)
		return CAROUSEL_E_FULL;
	for (uint32_t i = 0; i < slots; i++) {
		struct carousel_slot *s = &carousel->slots[carousel->n_slots];

		if (!s->ids)
			s->ids = malloc(carousel->config.chunk * sizeof(*s->ids));
		if (!s->blocks)
			s->blocks = malloc(carousel->config.chunk * sizeof(*s->blocks));
		if (!s->uses)
			s->uses = calloc(CAROUSEL_MAX_JOBS, sizeof(*s->uses));
		if (!s->keys)
			s->keys = malloc(carousel->config.chunk * sizeof(*s->keys));
		if (!s->ids || !s->blocks || !s->uses || !s->keys)
			return -ENOMEM;
		s->owner = CAROUSEL_NOBODY;
		carousel->n_slots++;
		carousel->n_free++;
	}
	for (uint32_t job = 0; job < carousel->jobs_end; job++)
		if (carousel->jobs[job].used)
			carousel_need_look(carousel, job); /* there is room to grant it more */
	return 0;
}

uint32_t carousel_jobs_end(const struct carousel *carousel)
{
	return carousel->jobs_end;
}

uint32_t carousel_free_slots(const struct carousel *carousel)
{
	return carousel->n_free;
}

static uint64_t most_of_segment(const struct carousel *carousel)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < carousel->jobs_end; i++)
		if (carousel->jobs[i].used)
			most = BASE_MAX(most, carousel->jobs[i].consumed - carousel->jobs[i].mark);
	return most;
}

void carousel_end_segment(struct carousel *carousel)
{
	carousel->reference += most_of_segment(carousel);
	for (uint32_t i = 0; i < carousel->jobs_end; i++)
		carousel->jobs[i].mark = carousel->jobs[i].consumed;
}

/* what happens to chunks and grants */

/* Marks what is unfinished though it was begun before the instance, which is finished. */
static void overtake(struct carousel *carousel, uint64_t instance)
{
	for (uint32_t i = 0; i < carousel->n_slots && carousel->unfinished; i++) {
		struct carousel_slot *s = &carousel->slots[i];

		if (!s->chunk.instance || s->chunk.ready || s->overtaken ||
		    s->chunk.instance > instance)
			continue;
		s->overtaken = true;
		carousel->overtaken++;
	}
}

bool carousel_is_overtaken(const struct carousel *carousel)
{
	return carousel->overtaken > 0;
}

bool carousel_is_late(const struct carousel *carousel, uint32_t slot)
{
	return slot < carousel->n_slots && carousel->slots[slot].overtaken;
}

bool carousel_may_begin(const struct carousel *carousel)
{
	const struct carousel_config *config = &carousel->config;

	return carousel->unfinished <
	       config->producing + BASE_MIN(carousel->overtaken, config->overtaken);
}

void carousel_produced(struct carousel *carousel, uint32_t slot)
{
	struct carousel_slot *s;

	if (slot >= carousel->n_slots)
		return;
	s = &carousel->slots[slot];
	if (!s->chunk.instance || s->chunk.ready)
		return;
	s->chunk.ready = true;
	s->stamped = false;
	carousel->unfinished--;
	carousel->overtaken -= s->overtaken;
	s->overtaken = false;
	carousel->unstamped++;
	overtake(carousel, s->chunk.instance);
}

void carousel_forget(struct carousel *carousel, uint32_t slot)
{
	if (slot >= carousel->n_slots || !carousel->slots[slot].chunk.instance)
		return;
	carousel->slots[slot].chunk.is_forgotten = true;
	carousel_log_forget(carousel, slot);
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

/* The job has the slot for good, also if that is known only after it was revoked. */
static void take(struct carousel *carousel, uint32_t job, int index, uint64_t now_ns)
{
	struct carousel_member *member = &carousel->jobs[job];
	struct carousel_grant *grant = &member->grants[index];
	struct carousel_slot *s = &carousel->slots[grant->slot];

	if (grant->state == CAROUSEL_TAKEN)
		return;
	grant->since_ns = now_ns;
	member->taken += grant->samples;
	learn_interval(member, now_ns);
	if (grant->state == CAROUSEL_REVOKED) {
		if (--member->revoked == 0)
			carousel_need_look(carousel, job);
	} else {
		member->coming -= grant->samples;
		member->pins++;
		s->granted--;
		s->pins++;
	}
	grant->state = CAROUSEL_TAKEN;
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

	if (!find_grant(carousel, job, slot, &index))
		return;
	take(carousel, job, index, now_ns);
	carousel->jobs[job].gave_way = false;
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
	take(carousel, job, index, now_ns);
	grant = &member->grants[index];
	learn_pace(member, grant->samples, BASE_MAX(grant->since_ns, member->done_ns), now_ns);
	member->act_ns = member->done_ns = now_ns;
	member->consumed += grant->samples;
	if (grant->last)
		member->closed = BASE_MAX(member->closed, grant->epoch + 1);
	carousel_need_drop(carousel, job, index);
	look_for_more(carousel, job);
	if (is_through(member))
		carousel_end_segment(carousel);
}

void carousel_reclaimed(struct carousel *carousel, uint32_t job, uint32_t slot, uint64_t now_ns)
{
	int index;

	(void)now_ns;
	if (find_grant(carousel, job, slot, &index) &&
	    carousel->jobs[job].grants[index].state != CAROUSEL_TAKEN)
		carousel_need_return(carousel, job, index);
}

void carousel_waiting(struct carousel *carousel, uint32_t job, bool waiting)
{
	if (job >= CAROUSEL_MAX_JOBS || !carousel->jobs[job].used)
		return;
	if (waiting && !carousel->jobs[job].waiting)
		carousel_need_look(carousel, job);
	carousel->jobs[job].waiting = waiting;
	carousel->jobs[job].gave_way = false;
}

/* views */

const struct carousel_chunk *carousel_chunk_of(const struct carousel *carousel, uint32_t slot)
{
	if (slot >= carousel->n_slots || !carousel->slots[slot].chunk.instance)
		return NULL;
	return &carousel->slots[slot].chunk;
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
	    .outputs = carousel->outputs,
	    .chunks = carousel->instances,
	    .reference = carousel->reference + most_of_segment(carousel),
	    .waits_on_dead = carousel->waits_on_dead,
	    .slots = carousel->n_slots,
	};
	for (uint32_t i = 0; i < carousel->n_slots; i++) {
		const struct carousel_slot *s = &carousel->slots[i];

		ret->resident += s->chunk.instance != 0;
		ret->pinned += s->pins || s->ghosts;
	}
	for (uint32_t i = 0; i < carousel->jobs_end; i++)
		ret->jobs += carousel->jobs[i].used;
}
