/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs of several ranks under the carousel, beside jobs of one. Each job lives several lives; a life
 * begins with the token of the last one, with another number of ranks and another batch size. In a
 * life ranks come late, die and come back at their own or an earlier step, stop for good, and now
 * and then the whole carousel is killed and ranks at different steps go on with the log they
 * have. Whatever happens
 *
 *   a rank is given, at each place, the sample and the nonce that the log has there;
 *   it never waits for more of the log than its carousel deals, and everybody who can go on does;
 *   the log of an epoch, over all lives, is each sample once;
 *   ranks that end have done equally many steps;
 *   jobs of one rank that share the slots get each sample of each epoch once.
 *
 * Some jobs have a part of the samples: a random split, or a class. In some worlds jobs have different
 * pipelines (variants), a job another one in each of its lives, and the log is the same.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "plan/population.h"
#include "plan/ranks/ranks.h"
#include "tests/histories.h"
#include "tests/patience.h"
#include "tests/suite.h"
#include "tests/invariants/invariants.h"

#define TESTS HISTORIES_OF(20)
#define VARIED_TESTS 7 /* of 2 to 8 variants, with sanitizers, too */
#define LIVES_A_TEST 1050
#define BIG_LIVES 60
#define MAX_JOBS 3
#define MAX_RANKS 8
#define MAX_EPOCHS 3
#define MAX_N 96
#define BIG_N 600000 /* blocks of two samples */
#define BIG_NEED 90
#define MAX_SLOTS 96
#define PATIENCE 4000 /* turns without anything delivered */

struct grant {
	uint32_t slot, first;
	uint64_t instance, epoch;
};

struct rank {
	bool joined, stopped, ended, is_yielding;
	uint32_t number, n_queue, n_held;
	struct grant queue[MAX_SLOTS], held[2], yielding;
	uint64_t epoch, next; /* place of the next chunk that it takes, of that chunk's epoch */
	uint64_t next_epoch;
	struct ranks share; /* of its epoch */
	uint64_t done;      /* steps of its epoch since share.base */
	uint64_t all;       /* steps of this life */
};

struct job {
	bool is_plain; /* one rank, no group: of it rank[0] is used */
	bool lives, finished;
	uint32_t variant;
	uint32_t number, n_ranks, batch;
	bool drops_last;             /* an epoch's last step, if it is none of whole batches */
	uint64_t epochs, first_left; /* first_left: samples of its first epoch in this life */
	uint64_t *bits, n;           /* its population (NULL: all), and their number */
	bool is_random;
	struct entry_rest base; /* what this life began with */
	struct entry *log;      /* since then, over carousels */
	uint32_t n_log, room_log;
	struct rank rank[MAX_RANKS];
	uint8_t *count[MAX_EPOCHS];
	uint64_t left[MAX_EPOCHS]; /* samples of the epoch that no life had yet */
};

static struct carousel *carousel;
static struct carousel_config config;
static struct philox_seq rng, variant_rng;
static uint32_t n_variants = 1;
static struct job jobs[MAX_JOBS];
static uint32_t n_jobs, making[4], n_making, ghosts[64], n_ghosts;
static uint64_t now_ns, n_lives, delivered;
static const char *broken;

static bool claim(bool holds, const char *otherwise)
{
	if (!holds && !broken)
		broken = otherwise;
	return holds;
}

static uint64_t below(uint64_t bound)
{
	return philox_below(&rng, bound);
}

static uint32_t draw_variant(void)
{
	return n_variants > 1 ? (uint32_t)philox_below(&variant_rng, n_variants) : 0;
}

static const struct permutation *the_permutation(void)
{
	return carousel_permutation(carousel);
}

static struct entry_set set_of(const struct job *job)
{
	return (struct entry_set){.permutation = the_permutation(), .bits = job->bits};
}

/* ---- the log as the test has it ---- */

static void keep_entry(struct job *job)
{
	const struct entry_set set = set_of(job);
	struct entry *entry;

	if (job->n_log == job->room_log) {
		job->room_log = 2 * job->room_log + 16;
		job->log = realloc(job->log, job->room_log * sizeof(*job->log));
	}
	entry = &job->log[job->n_log++];
	carousel_newest(carousel, job->number, entry);
	claim(entry_is_good(&set, entry), "an entry contradicts itself");
	if (entry->n_blocks)
		entry->blocks = memcpy(malloc(entry->n_blocks * sizeof(uint32_t)), entry->blocks,
				       entry->n_blocks * sizeof(uint32_t));
	else
		entry->ids = memcpy(malloc(entry->count * sizeof(int64_t)), entry->ids,
				    entry->count * sizeof(int64_t));
}

static void drop_log(struct job *job)
{
	for (uint32_t i = 0; i < job->n_log; i++) {
		if (job->log[i].n_blocks)
			free((void *)job->log[i].blocks);
		else
			free((void *)job->log[i].ids);
	}
	job->n_log = 0;
}

static const struct entry *entry_at(const struct job *job, uint64_t epoch, uint64_t place)
{
	for (uint32_t i = 0; i < job->n_log; i++)
		if (job->log[i].epoch == epoch && job->log[i].place <= place &&
		    place - job->log[i].place < job->log[i].count)
			return &job->log[i];
	return NULL;
}

static bool log_reaches(const struct job *job, uint64_t epoch, uint64_t place)
{
	const struct entry *last = job->n_log ? &job->log[job->n_log - 1] : NULL;

	return last && (last->epoch > epoch ||
			(last->epoch == epoch && last->place + last->count >= place));
}

static uint64_t samples_of(const struct job *job, uint64_t epoch)
{
	return epoch == job->base.epoch ? job->first_left : job->n;
}

/* What is left at a place, by the log: what a token says. */
static void rest_at(const struct job *job, uint64_t epoch, uint64_t place, struct entry_rest *ret)
{
	const struct entry_set set = set_of(job);

	*ret = job->base;
	entry_rest_init(&set, job->base.need, job->base.tail, job->base.n_tail, ret);
	for (uint32_t i = 0; i < job->n_log; i++) {
		const struct entry *entry = &job->log[i];

		if (entry->epoch < epoch || (entry->epoch == epoch && entry->place < place)) {
			uint64_t end = entry->place + entry->count;

			if (entry->epoch == epoch)
				end = BASE_MIN(end, place);
			claim(!entry_rest_pass(&set, ret, entry, end), "the log has a gap");
		}
	}
	if (ret->epoch < epoch && !entry_rest_count(ret))
		entry_rest_next_epoch(&set, ret);
	claim(ret->epoch == epoch && ret->place == place, "the log does not lead to a place");
}

/* ---- ranks ---- */

static void leave(struct rank *rank)
{
	if (rank->joined)
		carousel_leave(carousel, rank->number, now_ns);
	rank->joined = rank->is_yielding = false;
	rank->n_queue = rank->n_held = 0;
}

static void share_from(const struct job *job, struct rank *rank, uint64_t epoch, uint64_t place)
{
	rank->epoch = rank->next_epoch = epoch;
	rank->next = place;
	rank->done = 0;
	rank->share = (struct ranks){
	    .n = samples_of(job, epoch),
	    .base = place,
	    .batch = job->batch,
	    .ranks = job->n_ranks,
	    .drop_last = job->drops_last,
	};
	while (rank->epoch < job->epochs && rank->share.base == rank->share.n) {
		rank->epoch++;
		rank->next_epoch++;
		rank->next = rank->share.base = 0;
		rank->share.n = job->n;
	}
	rank->ended = rank->epoch >= job->epochs;
}

static void join_rank(struct job *job, struct rank *rank, uint64_t epoch, uint64_t place)
{
	struct carousel_join join = {
	    .batch = job->batch,
	    .ranks = job->n_ranks,
	    .population = job->bits,
	    .is_random = job->is_random,
	    .is_narrow = job->bits != NULL,
	};

	share_from(job, rank, epoch, place);
	if (rank->ended)
		return;
	join.group = job->number + 1;
	join.epoch = rank->epoch;
	join.place = rank->share.base;
	claim(carousel_join(carousel, &join, now_ns, &rank->number) == 0,
	      "a rank was not let in at its place");
	rank->joined = true;
}

static uint64_t place_of(const struct rank *rank)
{
	return ranks_place(&rank->share, rank->done);
}

/* Steps whose samples it has, while the log says what all ranks have then. */
static void do_steps(struct job *job, struct rank *rank)
{
	uint64_t first, end;

	while (!rank->ended) {
		if (rank->done == ranks_steps(&rank->share)) {
			if (rank->next_epoch == rank->epoch && rank->next < rank->share.n)
				return;
			share_from(job, rank, rank->epoch + 1, 0);
			if (rank->ended)
				leave(rank);
			return;
		}
		end = ranks_part(&rank->share, (uint32_t)(rank - job->rank), rank->done, &first);
		end += first;
		if (rank->next < end ||
		    !log_reaches(job, rank->epoch, ranks_place(&rank->share, rank->done + 1)))
			return;
		rank->done++;
		rank->all++;
		delivered++;
	}
}

/* Looks at what it takes: it must be what the log has there. */
static void look(struct job *job, struct rank *rank, const struct grant *grant)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, grant->slot);
	const struct entry *entry = entry_at(job, rank->epoch, rank->next);
	const struct entry_set set = set_of(job);
	int64_t ids[MAX_N];

	if (!claim(chunk && chunk->instance == grant->instance, "a slot in use changed") ||
	    !claim(chunk->variants >> job->variant & 1, "a chunk without the job's variant") ||
	    !claim(grant->epoch == rank->epoch, "a chunk of another epoch") ||
	    !claim(entry != NULL, "a chunk was granted before it was logged") ||
	    !claim(entry->nonce == chunk->nonce && entry->seed == chunk->seed &&
		       entry->count == chunk->count && grant->first == rank->next - entry->place,
		   "a chunk is not the log's at this place"))
		return;
	entry_samples(&set, entry, ids);
	claim(!memcmp(ids, chunk->ids, chunk->count * sizeof(*ids)), "a chunk has other samples");
	rank->next += chunk->count - grant->first;
}

/* One chunk at a time: what lies in it is delivered as far as may be, then it goes back. */
static void advance(struct job *job, struct rank *rank)
{
	uint64_t epoch = rank->epoch;

	if (!rank->joined || rank->stopped || rank->is_yielding)
		return;
	if (!rank->n_held && rank->n_queue) {
		rank->held[rank->n_held++] = rank->queue[0];
		memmove(rank->queue, rank->queue + 1, --rank->n_queue * sizeof(*rank->queue));
		carousel_taken(carousel, rank->number, rank->held[0].slot, now_ns);
		look(job, rank, &rank->held[0]);
		return;
	}
	do_steps(job, rank);
	if (!rank->joined || !rank->n_held)
		return;
	if (rank->epoch == epoch && rank->done < ranks_steps(&rank->share)) {
		uint64_t first, count = ranks_part(&rank->share, (uint32_t)(rank - job->rank),
						   rank->done, &first);

		/* A batch that may not be handed out yet is held. */
		if (first + count <= rank->next)
			return;
	}
	carousel_done(carousel, rank->number, rank->held[0].slot, now_ns);
	rank->n_held = 0;
}

static void finish(struct job *job, struct rank *rank)
{
	carousel_waiting(carousel, rank->number, rank->joined && !rank->stopped && !rank->n_queue);
	advance(job, rank);
}

/* Dies, maybe while its process still holds what it took. Comes back by itself: see turn(). */
static void die(struct rank *rank)
{
	if (!rank->joined)
		return;
	if (rank->n_held && n_ghosts < BASE_ARRAY_LEN(ghosts) && below(2)) {
		ghosts[n_ghosts++] = rank->held[0].slot;
		carousel_leave_pinned(carousel, rank->number, now_ns);
		rank->joined = rank->is_yielding = false;
		rank->n_queue = rank->n_held = 0;
	}
	leave(rank);
}

/* At its own step, or at an earlier one of the same epoch, as from a token that is older. */
static void come_back(struct job *job, struct rank *rank)
{
	uint64_t place = place_of(rank), back = below(3);

	if (!rank->ended && below(2) && rank->done) {
		back = BASE_MIN(back, rank->done);
		place = ranks_place(&rank->share, rank->done - back);
		rank->all -= back;
	}
	join_rank(job, rank, rank->epoch, place);
}

/* ---- a life ---- */

static void found(struct job *job, const struct entry_rest *rest)
{
	struct carousel_join join = {
	    .variant = job->variant,
	    .batch = job->batch,
	    .ranks = job->n_ranks,
	    .epoch = rest->epoch,
	    .epochs = job->epochs,
	    .place = rest->place,
	    .need = rest->need,
	    .tail = rest->tail,
	    .n_tail = rest->n_tail,
	    .population = job->bits,
	    .is_random = job->is_random,
	    .is_narrow = job->bits != NULL,
	};

	claim(carousel_found(carousel, &join, carousel_log_bytes(carousel), now_ns, &job->number) ==
		  0,
	      "a group was not founded");
}

static void begin_life(struct job *job)
{
	static const uint32_t worlds[] = {1, 2, 3, 4, 8};

	job->n_ranks = worlds[below(BASE_ARRAY_LEN(worlds))];
	job->batch = 1 + (uint32_t)below(below(2) ? 5 : 40);
	job->base.place = 0;
	job->first_left = entry_rest_count(&job->base);
	job->lives = true;
	job->variant = draw_variant();
	n_lives++;
	found(job, &job->base);
	memset(job->rank, 0, sizeof(job->rank));
	for (uint32_t i = 0; i < job->n_ranks; i++)
		share_from(job, &job->rank[i], job->base.epoch, 0);
}

/* The places below the cut have been delivered; what came after is lost. */
static void count_life(struct job *job, const struct entry_rest *end)
{
	const struct entry_set set = set_of(job);
	int64_t ids[MAX_N];

	for (uint32_t i = 0; i < job->n_log; i++) {
		const struct entry *entry = &job->log[i];

		entry_samples(&set, entry, ids);
		for (uint32_t k = 0; k < entry->count; k++) {
			if (entry->epoch > end->epoch ||
			    (entry->epoch == end->epoch && entry->place + k >= end->place))
				return;
			claim(!job->count[entry->epoch][ids[k]]++, "a sample twice in an epoch");
			claim(!job->bits ||
				  bits_test(job->bits, permutation_position(the_permutation(),
									    (uint64_t)ids[k])),
			      "a sample that is not the job's");
			job->left[entry->epoch]--;
		}
	}
}

static void end_life(struct job *job, const struct rank *heir)
{
	const struct entry_set set = set_of(job);
	struct entry_rest rest;
	uint64_t place = heir->ended ? 0 : place_of(heir);
	uint64_t epoch = heir->ended ? job->epochs : heir->epoch;

	if (heir->ended) {
		const struct entry *last = &job->log[job->n_log - 1];

		epoch = job->epochs - 1;
		place = samples_of(job, epoch);
		claim(job->n_log && last->epoch == epoch && last->place + last->count == place,
		      "a job ended before its log");
	}
	rest_at(job, epoch, place, &rest);
	for (uint32_t i = 0; i < job->n_ranks; i++)
		leave(&job->rank[i]);
	carousel_leave(carousel, job->number, now_ns);
	count_life(job, &rest);
	drop_log(job);
	entry_rest_fini(&job->base);
	job->base = rest;
	job->lives = false;
	job->finished = heir->ended;
	if (!job->finished && !entry_rest_count(&rest)) {
		entry_rest_next_epoch(&set, &job->base);
		job->finished = job->base.epoch == job->epochs;
	}
	for (uint64_t i = 0; i < job->epochs && job->finished; i++)
		claim(!job->left[i], "a sample was never delivered");
}

static void try_end_life(struct job *job)
{
	const struct rank *ended = NULL;

	for (uint32_t i = 0; i < job->n_ranks; i++) {
		if (job->rank[i].stopped)
			continue;
		if (!job->rank[i].ended)
			return;
		claim(!ended || ended->all == job->rank[i].all,
		      "ranks have different numbers of batches");
		ended = &job->rank[i];
	}
	if (ended)
		end_life(job, ended);
}

/* ---- a job of one rank ---- */

static void join_plain(struct job *job)
{
	struct rank *rank = &job->rank[0];
	uint64_t *need = calloc(bits_words(the_permutation()->blocks) + 1, sizeof(*need));
	struct carousel_join join = {
	    .variant = job->variant,
	    .batch = job->batch,
	    .ranks = 1,
	    .epoch = rank->epoch,
	    .epochs = job->epochs,
	    .need = need,
	};

	for (uint64_t block = 0; block < the_permutation()->blocks; block++) {
		uint64_t first = permutation_sample(
		    the_permutation(), permutation_block_first(the_permutation(), block));
		bool is_asked = config.n <= MAX_N || bits_test(job->base.need, block);

		if (is_asked && !job->count[rank->epoch][first])
			bits_set(need, block);
	}
	claim(carousel_join(carousel, &join, now_ns, &rank->number) == 0, "a job was not let in");
	rank->joined = true;
	free(need);
}

static void take_plain(struct job *job)
{
	struct rank *rank = &job->rank[0];
	struct grant grant = rank->queue[0];
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, grant.slot);

	if (!claim(chunk && chunk->instance == grant.instance, "a slot in use changed") ||
	    !claim(chunk->variants >> job->variant & 1, "a chunk without the job's variant"))
		return;
	memmove(rank->queue, rank->queue + 1, --rank->n_queue * sizeof(*rank->queue));
	carousel_taken(carousel, rank->number, grant.slot, now_ns);
	for (uint32_t i = 0; i < chunk->count; i++)
		claim(!job->count[grant.epoch][chunk->ids[i]]++, "a job alone got a sample twice");
	job->left[grant.epoch] -= chunk->count;
	delivered++;
	carousel_done(carousel, rank->number, grant.slot, now_ns);
	while (rank->epoch < job->epochs && !job->left[rank->epoch])
		rank->epoch++;
	job->finished = rank->epoch == job->epochs;
	if (job->finished)
		leave(rank);
}

static void turn_plain(struct job *job)
{
	struct rank *rank = &job->rank[0];

	job->n_ranks = job->batch = 1;
	if (!rank->joined)
		join_plain(job);
	carousel_waiting(carousel, rank->number, !rank->n_queue);
	if (rank->is_yielding)
		carousel_reclaimed(carousel, rank->number, rank->yielding.slot, now_ns);
	else if (rank->n_queue)
		take_plain(job);
	rank->is_yielding = false;
}

/* ---- the carousel's decisions ---- */

static struct rank *rank_of(uint32_t number)
{
	for (uint32_t i = 0; i < n_jobs; i++)
		for (uint32_t k = 0; k < jobs[i].n_ranks; k++)
			if (jobs[i].rank[k].joined && jobs[i].rank[k].number == number)
				return &jobs[i].rank[k];
	claim(false, "an action for a rank that is not there");
	return NULL;
}

static void grant(const struct carousel_action *action)
{
	struct rank *rank = rank_of(action->job);

	if (rank && claim(rank->n_queue < MAX_SLOTS, "more grants than slots"))
		rank->queue[rank->n_queue++] = (struct grant){.slot = action->slot,
							      .first = action->first,
							      .instance = action->instance,
							      .epoch = action->epoch};
}

/* Some ranks are quicker: they keep what they took, or yield it later. */
static void revoke(const struct carousel_action *action)
{
	struct rank *rank = rank_of(action->job);
	uint32_t at = 0;

	if (!rank)
		return;
	while (at < rank->n_queue && rank->queue[at].slot != action->slot)
		at++;
	if (!claim(at < rank->n_queue, "a grant revoked that was not made"))
		return;
	if (!at && rank->n_queue == 1 && !rank->n_held && !below(3)) {
		rank->yielding = rank->queue[0];
		rank->is_yielding = true;
		rank->n_queue = 0;
		return;
	}
	memmove(rank->queue + at, rank->queue + at + 1,
		(--rank->n_queue - at) * sizeof(rank->queue[0]));
	carousel_reclaimed(carousel, action->job, action->slot, now_ns);
}

static struct job *job_of(uint32_t number)
{
	for (uint32_t i = 0; i < n_jobs; i++)
		if (jobs[i].lives && jobs[i].number == number)
			return &jobs[i];
	return NULL;
}

static void settle(void)
{
	struct carousel_action action;
	const char *why;

	do {
		carousel_step(carousel, now_ns, &action);
		if (action.kind == CAROUSEL_GRANT)
			grant(&action);
		else if (action.kind == CAROUSEL_REVOKE)
			revoke(&action);
		else if (action.kind == CAROUSEL_PRODUCE)
			making[n_making++] = action.slot;
		else if (action.kind == CAROUSEL_LOG && claim(job_of(action.job), "no group"))
			keep_entry(job_of(action.job));
	} while (action.kind != CAROUSEL_NONE && !broken);
	why = config.n > MAX_N || below(8) ? NULL : carousel_check(carousel);
	claim(!why, why);
}

/* ---- a world ---- */

static void new_carousel(void)
{
	carousel_free(carousel);
	carousel = NULL;
	config.seed++;
	config.first_nonce += 1000000;
	n_making = n_ghosts = 0;
	claim(carousel_new(&config, &carousel) == 0, "no carousel");
}

/* accessd is killed: the first rank to come founds the group anew, at its own place, with the log
 * that all of them have. */
static void crash_group(struct job *job)
{
	const struct rank *first = &job->rank[below(job->n_ranks)];
	const struct entry_set set = set_of(job);
	struct carousel_log *log;
	struct entry_rest rest;

	if (first->ended)
		rest_at(job, job->base.epoch, 0, &rest);
	else
		rest_at(job, first->epoch, place_of(first), &rest);
	for (uint32_t i = 0; i < job->n_log; i++)
		claim(!entry_rest_pass(&set, &rest, &job->log[i],
				       job->log[i].place + job->log[i].count),
		      "a log cannot be gone on with");
	if (!entry_rest_count(&rest) && rest.epoch + 1 == job->epochs) {
		rest.epoch++; /* all is dealt */
		rest.place = 0;
	}
	log = carousel_log_new(carousel, carousel_log_bytes(carousel));
	for (uint32_t i = 0; i < job->n_log; i++)
		claim(entry_is_good(&set, &job->log[i]) &&
			  !carousel_recall(carousel, log, &job->log[i]),
		      "no memory of a log");
	found(job, &rest);
	carousel_adopt(carousel, job->number, log);
	entry_rest_fini(&rest);
}

static void crash(void)
{
	new_carousel();
	for (uint32_t i = 0; i < n_jobs; i++)
		for (uint32_t k = 0; k < jobs[i].n_ranks; k++) {
			jobs[i].rank[k].joined = jobs[i].rank[k].is_yielding = false;
			jobs[i].rank[k].n_queue = jobs[i].rank[k].n_held = 0;
		}
	for (uint32_t i = 0; i < n_jobs; i++)
		if (jobs[i].lives)
			crash_group(&jobs[i]);
}

/* Some whole blocks, or some samples; never none. */
static void draw_population(struct job *job, uint64_t most)
{
	const struct permutation *permutation = the_permutation();

	job->is_random = below(2);
	job->bits = calloc(bits_words(config.n) + 1, sizeof(*job->bits));
	for (uint64_t position = 0; position < most; position++) {
		bool is_first = position % permutation->block == 0;

		if (job->is_random && !is_first && bits_test(job->bits, position - 1))
			bits_set(job->bits, position);
		else if ((!job->is_random || is_first) && below(2))
			bits_set(job->bits, position);
	}
	if (!bits_count(job->bits, config.n))
		for (uint64_t position = 0; position < permutation_block_size(permutation, 0);
		     position++)
			bits_set(job->bits, position);
	job->n = bits_count(job->bits, config.n);
}

/* Perhaps the same as of the job before. */
static void set_up_population(struct job *job, uint64_t most)
{
	const struct job *before = job == jobs ? NULL : job - 1;

	job->n = config.n;
	if (job->is_plain || below(2))
		return;
	if (!before || !before->bits || below(2)) {
		draw_population(job, most);
		return;
	}
	job->is_random = before->is_random;
	job->n = before->n;
	job->bits = memcpy(calloc(bits_words(config.n) + 1, sizeof(*job->bits)), before->bits,
			   (bits_words(config.n) + 1) * sizeof(*job->bits));
}

static void set_up_job(struct job *job)
{
	bool big = config.n > MAX_N;
	struct entry_set set;

	job->epochs = big ? 1 : 1 + below(MAX_EPOCHS);
	job->is_plain = job != jobs && !below(2);
	job->variant = draw_variant();
	set_up_population(job, big ? (uint64_t)200 * BIG_NEED : config.n);
	set = set_of(job);
	entry_rest_init(&set, NULL, NULL, 0, &job->base);
	for (uint64_t i = 0; i < job->epochs; i++) {
		job->count[i] = calloc(config.n, 1);
		job->left[i] = job->n;
	}
	if (!big)
		return;
	memset(job->base.need, 0, bits_words(the_permutation()->blocks) * sizeof(uint64_t));
	for (int i = 0; i < BIG_NEED; i++) {
		uint64_t block = below(100 * BIG_NEED);

		if (!job->bits || population_of_block(the_permutation(), job->bits, block))
			bits_set(job->base.need, block);
	}
	job->base.samples = population_samples(the_permutation(), job->bits, job->base.need);
	job->left[0] = entry_rest_count(&job->base);
}

static void set_up(uint64_t n)
{
	uint32_t least = 2 * (uint32_t)permutation_block_of(n);

	memset(jobs, 0, sizeof(jobs));
	n_jobs = 1 + (uint32_t)below(MAX_JOBS);
	config = (struct carousel_config){
	    .n = n,
	    .version = {(uint8_t)below(256)},
	    .chunk = least + (uint32_t)below(below(2) ? 10 : 60),
	    .slots = 2 * n_jobs * MAX_RANKS + (uint32_t)below(30),
	    .producing = 1 + (uint32_t)below(4),
	    .seed = philox_u64(&rng),
	    .usable_again = !below(3),
	};
	if (n_variants > 1)
		config.usable_again =
		    (uint32_t)philox_below(&variant_rng, UINT64_C(1) << n_variants);
	if (!below(4)) /* fewer than admission gives: nobody may wait for ever */
		config.slots = 2 * MAX_RANKS;
	config.max_slots = config.slots;
	new_carousel();
	for (uint32_t i = 0; i < n_jobs && !broken; i++)
		set_up_job(&jobs[i]);
}

static void tear_down(void)
{
	for (uint32_t i = 0; i < n_jobs; i++) {
		drop_log(&jobs[i]);
		free(jobs[i].log);
		free(jobs[i].bits);
		entry_rest_fini(&jobs[i].base);
		for (uint64_t k = 0; k < jobs[i].epochs; k++)
			free(jobs[i].count[k]);
	}
	carousel_free(carousel);
	carousel = NULL;
}

static void trouble(struct job *job, struct rank *rank)
{
	unsigned running = 0;

	for (uint32_t i = 0; i < job->n_ranks; i++)
		running += !job->rank[i].stopped;
	if (!below(40) && running > 1 && !rank->ended)
		rank->stopped = true; /* for good; what it took stays taken */
	else if (!below(25))
		die(rank);
	else if (!below(20) && !rank->stopped)
		end_life(job, rank);
	else if (!below(300))
		crash();
}

static void turn(struct job *job)
{
	struct rank *rank = &job->rank[below(BASE_MAX(job->n_ranks, 1u))];

	now_ns += below(2000000);
	if (job->is_plain) {
		turn_plain(job);
	} else if (!job->lives) {
		begin_life(job);
	} else if (rank->is_yielding) {
		rank->is_yielding = false;
		carousel_reclaimed(carousel, rank->number, rank->yielding.slot, now_ns);
	} else if (!rank->joined && !rank->ended && !rank->stopped) {
		come_back(job, rank);
	} else if (!below(10)) {
		trouble(job, rank);
	} else {
		finish(job, rank);
		try_end_life(job);
	}
	while (n_making && below(2))
		carousel_produced(carousel, making[--n_making]);
	if (n_ghosts && !below(4))
		carousel_unpin(carousel, ghosts[--n_ghosts]);
	if (!below(50))
		now_ns += UINT64_C(20000000000); /* stopped ranks live no longer */
	settle();
}

static void run_world(uint64_t n)
{
	uint64_t before = 0, idle = 0;
	uint32_t finished = 0;

	set_up(n);
	while (finished < n_jobs && !broken) {
		finished = 0;
		for (uint32_t i = 0; i < n_jobs; i++) {
			if (!jobs[i].finished)
				turn(&jobs[i]);
			finished += jobs[i].finished;
		}
		idle = delivered + n_lives == before ? idle + 1 : 0;
		before = delivered + n_lives;
		claim(idle < PATIENCE, "nobody goes on");
	}
	tear_down();
}

START_TEST(a_log_is_each_sample_once)
{
	uint64_t world = n_lives = 0;

	philox_seq_init(&rng, 4711, (uint64_t)_i, 0);
	while (n_lives < LIVES_A_TEST && !broken) {
		world++;
		run_world(1 + below(MAX_N));
	}
	ck_assert_msg(!broken, "world %llu: %s", (unsigned long long)world, broken);
}
END_TEST

START_TEST(a_log_is_each_sample_once_in_any_variant)
{
	uint64_t world = n_lives = 0;

	philox_seq_init(&rng, 4714, (uint64_t)_i, 0);
	philox_seq_init(&variant_rng, 4715, (uint64_t)_i, 0);
	n_variants = 2 + (uint32_t)_i % (CAROUSEL_MAX_VARIANTS - 1);
	while (n_lives < LIVES_A_TEST && !broken) {
		world++;
		run_world(1 + below(MAX_N));
	}
	ck_assert_msg(!broken, "world %llu: %s", (unsigned long long)world, broken);
}
END_TEST

/* The promise of the carousel holds for groups: who starts together reads what is made once, whatever the
 * pipelines. */
START_TEST(a_group_shares_with_a_job)
{
	const struct carousel_join alone = {
	    .variant = (uint32_t)_i, .batch = 16, .ranks = 1, .epochs = 2};
	const struct carousel_join together = {.batch = 16, .ranks = 4, .epochs = 2};
	struct carousel_join rank = {.batch = 16, .ranks = 4};
	uint32_t number[6], owed[6][MAX_SLOTS], n_owed[6] = {0}, group;
	struct carousel_totals totals;
	struct carousel_action action;

	config = (struct carousel_config){.n = 5000,
					  .chunk = 64,
					  .slots = 12,
					  .max_slots = 12,
					  .producing = 2,
					  .seed = 9,
					  .first_nonce = 1};
	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	ck_assert_int_eq(
	    carousel_found(carousel, &together, carousel_log_bytes(carousel), 1, &group), 0);
	rank.group = group + 1;
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(carousel_join(carousel, i < 4 ? &rank : &alone, 1, &number[i]), 0);
	for (now_ns = 1000; now_ns < 4000000; now_ns += 1000) {
		do {
			carousel_step(carousel, now_ns, &action);
			for (int i = 0; i < 5; i++)
				if (action.kind == CAROUSEL_GRANT && action.job == number[i])
					owed[i][n_owed[i]++] = action.slot;
			if (action.kind == CAROUSEL_PRODUCE)
				carousel_produced(carousel, action.slot);
			ck_assert_int_ne(action.kind, CAROUSEL_REVOKE);
		} while (action.kind != CAROUSEL_NONE);
		for (int i = 0; i < 5; i++) {
			if (!n_owed[i])
				continue;
			carousel_taken(carousel, number[i], owed[i][0], now_ns);
			carousel_done(carousel, number[i], owed[i][0], now_ns);
			memmove(owed[i], owed[i] + 1, --n_owed[i] * sizeof(owed[i][0]));
		}
	}
	carousel_totals(carousel, &totals);
	ck_assert_uint_ge(totals.reference, 2 * config.n);
	ck_assert_uint_le(totals.productions, totals.reference * 21 / 20);
	ck_assert_uint_le(totals.outputs, totals.productions * (uint64_t)(1 + _i));
	carousel_free(carousel);
	carousel = NULL;
}
END_TEST

/* ---- in step, as data-parallel ranks are ---- */

/* A rank does as libaccess does: it takes a chunk when it has come to the end of the last one. */
struct pacer {
	struct rank rank;
	bool holds;
	uint32_t slot;
	uint64_t cursor, held_end;
};

static void pass_to(struct pacer *pacer, uint64_t place)
{
	pacer->cursor = BASE_MIN(place, pacer->held_end);
	if (pacer->cursor < pacer->held_end)
		return;
	pacer->holds = false;
	carousel_done(carousel, pacer->rank.number, pacer->slot, now_ns);
}

static bool take_next(struct job *job, struct pacer *pacer)
{
	struct rank *rank = &pacer->rank;

	if (!rank->n_queue)
		return false;
	rank->next = pacer->cursor;
	pacer->slot = rank->queue[0].slot;
	carousel_taken(carousel, rank->number, pacer->slot, now_ns);
	look(job, rank, &rank->queue[0]);
	pacer->held_end = rank->next;
	pacer->holds = true;
	memmove(rank->queue, rank->queue + 1, --rank->n_queue * sizeof(*rank->queue));
	return true;
}

/* One thing that the rank does on its way to a batch. false: it must wait. *ret: it has it. */
static bool pace(struct job *job, uint32_t number, struct pacer *pacer, bool *ret)
{
	struct rank *rank = &pacer->rank;
	uint64_t first = rank->share.n, end = first;

	if (rank->done < ranks_steps(&rank->share)) {
		end = ranks_part(&rank->share, number, rank->done, &first);
		end += first;
	} else if (pacer->cursor == rank->share.n) {
		share_from(job, rank, rank->epoch + 1, 0);
		pacer->cursor = 0;
		*ret = rank->ended;
		return true;
	}
	if (pacer->cursor < end && !pacer->holds)
		return take_next(job, pacer);
	if (pacer->cursor < first) {
		pass_to(pacer, first);
		return true;
	}
	if (!log_reaches(job, rank->epoch, ranks_place(&rank->share, rank->done + 1)))
		return false;
	if (pacer->cursor < end)
		pass_to(pacer, end);
	*ret = pacer->cursor == end;
	rank->done += *ret;
	return true;
}

static struct pacer *pacers;

static struct rank *pacer_of(uint32_t number)
{
	for (uint32_t i = 0; i < jobs[0].n_ranks; i++)
		if (pacers[i].rank.joined && pacers[i].rank.number == number)
			return &pacers[i].rank;
	return NULL;
}

static void settle_in_step(void)
{
	struct carousel_action action;

	do {
		struct rank *rank;

		carousel_step(carousel, now_ns, &action);
		rank = pacer_of(action.job);
		if (action.kind == CAROUSEL_GRANT && claim(rank, "a grant for nobody")) {
			rank->queue[rank->n_queue++] = (struct grant){
			    action.slot, action.first, action.instance, action.epoch};
		} else if (action.kind == CAROUSEL_REVOKE &&
			   claim(rank, "a revocation for nobody")) {
			rank->n_queue--;
			claim(rank->queue[rank->n_queue].slot == action.slot, "not the newest");
			carousel_reclaimed(carousel, action.job, action.slot, now_ns);
		} else if (action.kind == CAROUSEL_PRODUCE) {
			carousel_produced(carousel, action.slot);
		} else if (action.kind == CAROUSEL_LOG) {
			keep_entry(&jobs[0]);
		}
	} while (action.kind != CAROUSEL_NONE && !broken);
}

/* Waits as long as it takes, which is not long: the others do nothing meanwhile. */
static void step_in_step(struct job *job, uint32_t number)
{
	struct pacer *pacer = &pacers[number];
	bool has_it = false;

	for (int waits = 0; !has_it && !pacer->rank.ended && !broken;) {
		if (pace(job, number, pacer, &has_it))
			continue;
		carousel_waiting(carousel, pacer->rank.number, true);
		settle_in_step();
		carousel_waiting(carousel, pacer->rank.number, false);
		now_ns += 1000;
		claim(++waits < 100, "a rank waits for ever");
	}
}

static void run_in_step(void)
{
	struct job *job = &jobs[0];
	struct pacer all[MAX_RANKS] = {{.holds = false}};
	struct entry_rest rest = {.epoch = 0};
	struct entry_set set;
	uint32_t ended = 0;

	pacers = all;
	memset(job, 0, sizeof(*job));
	job->n_ranks = 2 + (uint32_t)below(MAX_RANKS - 1);
	job->batch = 1 + (uint32_t)below(24);
	job->epochs = 2;
	set_up_population(job, config.n);
	job->drops_last = below(2) && job->n >= (uint64_t)job->n_ranks * job->batch;
	set = set_of(job);
	job->first_left = job->n;
	job->lives = true;
	entry_rest_init(&set, NULL, NULL, 0, &rest);
	found(job, &rest);
	entry_rest_fini(&rest);
	for (uint32_t i = 0; i < job->n_ranks && !broken; i++)
		join_rank(job, &all[i].rank, 0, 0);
	while (ended < job->n_ranks && !broken) {
		ended = 0;
		for (uint32_t i = 0; i < job->n_ranks; i++) {
			step_in_step(job, i);
			ended += all[i].rank.ended;
		}
	}
	for (uint32_t i = 0; i < job->n_ranks; i++)
		leave(&all[i].rank);
	carousel_leave(carousel, job->number, now_ns);
	drop_log(job);
	free(job->log);
	free(job->bits);
	job->log = NULL;
}

/* As few slots as admission gives, with the chunks of the jobs before in them. */
START_TEST(ranks_in_step_never_wait_for_ever)
{
	philox_seq_init(&rng, 4713, 0, 0);
	for (int world = 0; world < HISTORIES_OF(400) && !broken; world++) {
		config = (struct carousel_config){
		    .n = 1 + below(MAX_N),
		    .chunk = 1 + (uint32_t)below(24),
		    .slots = 2 * MAX_RANKS + (uint32_t)below(4),
		    .producing = 1 + (uint32_t)below(2),
		    .seed = (uint64_t)world,
		    .usable_again = below(2),
		};
		config.max_slots = config.slots;
		new_carousel();
		for (int life = 0; life < 3 && !broken; life++)
			run_in_step();
		claim(!carousel_check(carousel), carousel_check(carousel));
		ck_assert_msg(!broken, "world %d: %s", world, broken);
	}
	carousel_free(carousel);
	carousel = NULL;
}
END_TEST

START_TEST(blocks_of_several_samples)
{
	uint64_t world = n_lives = 0;

	philox_seq_init(&rng, 4712, 0, 0);
	while (n_lives < BIG_LIVES && !broken) {
		world++;
		run_world(BIG_N);
	}
	ck_assert_msg(!broken, "world %llu: %s", (unsigned long long)world, broken);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, a_log_is_each_sample_once, 0, TESTS);
	tcase_add_loop_test(t, a_log_is_each_sample_once_in_any_variant, 0, VARIED_TESTS);
	tcase_add_loop_test(t, a_group_shares_with_a_job, 0, 2);
	tcase_add_test(t, ranks_in_step_never_wait_for_ever);
	tcase_add_test(t, blocks_of_several_samples);
}

int main(void)
{
	return suite_run("group", add);
}
