/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs of all orders on one carousel, each living several lives: a life begins from the bytes of
 * the last one's token, with another number of ranks and another batch size, and is cut off after
 * any number of steps. What ranks did past the cut is lost, as in a job that dies. Over its lives
 *
 *   each job gets each sample of each epoch once (with drop_last, all but what was dropped);
 *   with a fixed plan, the plan's sample at each place, whatever shares the slots;
 *   with random ops, never a sample of the same nonce in two epochs;
 *   all ranks do the same number of steps, and write the same token after the same step.
 *
 * Blocks are single samples here. ranks_test.c does the same to the arithmetic of ranks alone, for larger
 * numbers; chaos.c does worse to the carousel, with larger blocks, too, and one rank a job.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "plan/ranks/ranks.h"
#include "plan/token.h"
#include "tests/histories.h"
#include "tests/suite.h"
#include "tests/invariants/invariants.h"

#define WORLDS HISTORIES_OF(24000)
#define WORLDS_A_TEST 1000
#define LIVES_A_TEST 5600 /* 134,400 in all */
#define MAX_N 72
#define MAX_JOBS 3
#define MAX_RANKS 8
#define MAX_EPOCHS 3
#define MAX_NONCES 8192
#define MAX_TURNS 20000
#define MORE_SLOTS 48 /* up to so many more than there must be */
#define SLOTS (2 * MAX_JOBS * MAX_RANKS + MORE_SLOTS)
#define TOKEN_ROOM 2048

struct grant {
	uint32_t slot, first;
	uint64_t instance, epoch;
};

struct rank {
	bool joined, ended, has_token;
	uint32_t number, n_queue;
	struct grant queue[SLOTS];
	struct ranks share;
	uint64_t epoch, step;      /* step: of this epoch, from share.base on */
	uint64_t done;             /* steps in this life */
	uint64_t known;            /* places of the epoch that it was given */
	int64_t ids[MAX_N];        /* at these places */
	uint64_t nonces[MAX_N];    /* that they came with */
	uint8_t token[TOKEN_ROOM]; /* after as many steps as the life has */
	size_t size;
};

struct job {
	enum plan_order order;
	struct plan plan;
	bool drop_last, lives, finished;
	uint64_t seed, epochs, cut; /* cut: steps of this life */
	uint32_t n_ranks;
	struct rank rank[MAX_RANKS];
	uint8_t token[TOKEN_ROOM]; /* of the life before */
	size_t size;
	uint8_t count[MAX_EPOCHS][MAX_N];
	uint64_t nonce_of[MAX_EPOCHS][MAX_N], dropped[MAX_EPOCHS];
	uint64_t nonces[MAX_NONCES]; /* seen, newest last */
	uint32_t n_nonces;
};

struct world {
	struct carousel *carousel;
	struct carousel_config config;
	struct philox_seq random;
	uint64_t now_ns;
	uint32_t n_jobs, making[4], n_making;
	struct job job[MAX_JOBS];
};

/* The first broken promise. ck_assert() for each sample would take minutes. */
static const char *broken;
static uint64_t n_lives;
static struct world world;

static bool claim(bool holds, const char *otherwise)
{
	if (!holds && !broken)
		broken = otherwise;
	return holds;
}

static uint64_t below(uint64_t bound)
{
	return philox_below(&world.random, bound);
}

/* ---- tokens ---- */

/* The blocks of which nothing came, the samples that are left of others. */
static void fill_need(const struct job *job, struct token *token)
{
	const struct permutation *permutation = carousel_permutation(world.carousel);
	const uint8_t *count = job->count[token->epoch];

	for (uint64_t block = 0; block < permutation->blocks; block++) {
		uint64_t first = permutation_block_first(permutation, block);
		uint32_t size = permutation_block_size(permutation, block), left = 0;

		for (uint32_t i = 0; i < size; i++)
			left += !count[permutation_sample(permutation, first + i)];
		if (left == size)
			bits_set(token->need, block);
		for (uint32_t i = 0; i < size && left < size; i++)
			if (!count[permutation_sample(permutation, first + i)])
				token->tail[token->n_tail++] =
				    (int64_t)permutation_sample(permutation, first + i);
	}
}

static void write_token(const struct job *job, struct rank *rank)
{
	uint64_t need[MAX_N / 64 + 2] = {0};
	int64_t tail[MAX_N];
	struct token token = {
	    .n = world.config.n,
	    .block = permutation_block_of(world.config.n),
	    .order = job->order,
	    .seed = plan_is_fixed(job->order) ? job->seed : world.config.seed,
	    .epoch = rank->epoch,
	    .epochs = job->epochs,
	    .delivered = ranks_place(&rank->share, rank->step),
	};

	memcpy(token.dataset, world.config.version, sizeof(token.dataset));
	if (!plan_is_fixed(job->order)) {
		token.need = need;
		token.tail = tail;
		fill_need(job, &token);
		token.n_nonces = BASE_MIN(job->n_nonces, (uint32_t)TOKEN_MAX_NONCES);
		memcpy(token.nonces, job->nonces + job->n_nonces - token.n_nonces,
		       token.n_nonces * sizeof(token.nonces[0]));
	}
	rank->size = token_write(&token, rank->token, sizeof(rank->token));
	rank->has_token = true;
	claim(rank->size > 0, "a token is larger than its room");
	claim(!plan_is_fixed(job->order) || rank->size <= 256, "a plan's token is too large");
}

/* What the token says as join and as the rank's beginning. */
static void read_token(const struct job *job, struct token *token, struct carousel_join *join)
{
	struct diag diag;

	if (!claim(token_parse(job->token, job->size, token, &diag) == 0, "a token is not read") ||
	    !claim(token_fits(token, world.config.n, permutation_block_of(world.config.n),
			      world.config.version, &diag) == 0,
		   "a token does not fit"))
		return;
	claim(token->order == job->order, "a token has another order");
	join->epoch = token->epoch;
	if (plan_is_fixed(token->order)) {
		claim(token->seed == job->seed, "a token has another seed");
		join->place = token->delivered;
		return;
	}
	join->need = token->need;
	join->tail = token->tail;
	join->n_tail = token->n_tail;
	join->nonces = token->nonces;
	join->n_nonces = token->n_nonces;
}

/* ---- what a rank is given ---- */

static void leave(struct rank *rank)
{
	if (rank->joined)
		carousel_leave(world.carousel, rank->number, world.now_ns);
	rank->joined = false;
	rank->n_queue = 0;
}

/* The rank has come to the end of an epoch's steps; what follows was dropped, once for the job. */
static void note_dropped(struct job *job, const struct rank *rank)
{
	const struct ranks *share = &rank->share;

	if (job->drop_last && rank == &job->rank[0])
		job->dropped[rank->epoch] +=
		    (share->n - share->base) % (share->batch * share->ranks);
}

static void next_epoch(struct job *job, struct rank *rank)
{
	if (rank->done < job->cut)
		note_dropped(job, rank);
	rank->epoch++;
	rank->step = rank->share.base = rank->known = 0;
	rank->ended = rank->epoch == job->epochs;
}

static void deliver(struct job *job, struct rank *rank, uint64_t place)
{
	int64_t id = rank->ids[place], planned;

	if (rank->done >= job->cut ||
	    !claim(id >= 0 && (uint64_t)id < world.config.n, "a sample that does not exist"))
		return;
	claim(!job->count[rank->epoch][id]++, "a sample twice in an epoch");
	job->nonce_of[rank->epoch][id] = rank->nonces[place];
	if (plan_is_fixed(job->order)) {
		plan_samples(&job->plan, rank->epoch, place, 1, &planned);
		claim(id == planned, "a sample out of the plan's order");
	} else if ((!job->n_nonces || job->nonces[job->n_nonces - 1] != rank->nonces[place]) &&
		   claim(job->n_nonces < MAX_NONCES, "too many nonces")) {
		job->nonces[job->n_nonces++] = rank->nonces[place];
	}
}

/* What the rank does from now on is lost. */
static void cut_here(struct job *job, struct rank *rank)
{
	if (rank->step == ranks_steps(&rank->share))
		note_dropped(job, rank);
	write_token(job, rank);
}

/* Does the steps whose places are known. */
static void do_steps(struct job *job, struct rank *rank)
{
	uint32_t number = (uint32_t)(rank - job->rank), count;
	uint64_t first;

	while (!rank->ended && !broken) {
		if (rank->step == ranks_steps(&rank->share)) {
			if (rank->known < world.config.n)
				return;
			next_epoch(job, rank);
			continue;
		}
		count = ranks_part(&rank->share, number, rank->step, &first);
		if (first + count > rank->known)
			return;
		for (uint32_t i = 0; i < count; i++)
			deliver(job, rank, first + i);
		rank->step++;
		if (++rank->done == job->cut)
			cut_here(job, rank);
	}
}

static void take(struct job *job, struct rank *rank)
{
	struct grant grant = rank->queue[0];
	const struct carousel_chunk *chunk = carousel_chunk_of(world.carousel, grant.slot);

	if (!claim(chunk && chunk->instance == grant.instance, "a slot in use changed") ||
	    !claim(grant.epoch == rank->epoch, "a chunk of another epoch") ||
	    !claim(rank->known + chunk->count - grant.first <= world.config.n, "too many samples"))
		return;
	claim(!plan_is_fixed(job->order) || chunk->place + grant.first == rank->known,
	      "a plan's chunk in the wrong place");
	carousel_taken(world.carousel, rank->number, grant.slot, world.now_ns);
	for (uint32_t i = grant.first; i < chunk->count; i++) {
		rank->nonces[rank->known] = chunk->nonce;
		rank->ids[rank->known++] = chunk->ids[i];
	}
	memmove(rank->queue, rank->queue + 1, --rank->n_queue * sizeof(grant));
	carousel_done(world.carousel, rank->number, grant.slot, world.now_ns);
	do_steps(job, rank);
	if (rank->ended)
		leave(rank);
}

/* ---- lives ---- */

static void begin_rank(struct job *job, struct rank *rank, uint32_t batch)
{
	struct carousel_join join = {
	    .batch = batch,
	    .ranks = job->n_ranks,
	    .epochs = job->epochs,
	    .order = plan_is_fixed(job->order) ? job->order : 0,
	    .seed = job->seed,
	};
	struct token token = {0};

	memset(rank, 0, sizeof(*rank));
	if (job->size)
		read_token(job, &token, &join);
	rank->epoch = token.epoch;
	rank->known = token.delivered;
	rank->share = (struct ranks){.n = world.config.n,
				     .base = token.delivered,
				     .batch = batch,
				     .ranks = job->n_ranks,
				     .drop_last = job->drop_last};
	claim(carousel_join(world.carousel, &join, world.now_ns, &rank->number) == 0,
	      "a job was not let in");
	rank->joined = true;
	if (rank->known == world.config.n && job->size)
		next_epoch(job, rank); /* it was at the end of an epoch */
	if (job->cut == 0 && !rank->ended)
		cut_here(job, rank);
	do_steps(job, rank);
	if (rank->ended)
		leave(rank);
	token_fini(&token);
}

static void begin_life(struct job *job)
{
	static const uint32_t worlds[] = {1, 2, 3, 4, 8, 1, 2};
	uint32_t batch = 1 + (uint32_t)below(below(2) ? 5 : 40);
	uint64_t whole;

	job->n_ranks = plan_is_fixed(job->order) ? worlds[below(BASE_ARRAY_LEN(worlds))] : 1;
	whole = 1 + world.config.n / (batch * job->n_ranks);
	job->cut = below(5) ? below(whole + 1) : job->epochs * (whole + 1) + 1;
	job->lives = true;
	n_lives++;
	for (uint32_t i = 0; i < job->n_ranks; i++)
		begin_rank(job, &job->rank[i], batch);
}

/* Over when all ranks are at its cut, or at the end of all epochs. */
static void try_end_life(struct job *job)
{
	const struct rank *heir = &job->rank[below(job->n_ranks)];
	uint32_t ended = 0, cut = 0;

	for (uint32_t i = 0; i < job->n_ranks; i++) {
		ended += job->rank[i].ended;
		cut += job->rank[i].has_token;
	}
	if (ended < job->n_ranks && cut < job->n_ranks)
		return;
	for (uint32_t i = 0; i < job->n_ranks; i++) {
		struct rank *rank = &job->rank[i];

		leave(rank);
		claim(ended < job->n_ranks || rank->done == heir->done,
		      "ranks have different numbers of batches");
		claim(!rank->has_token || (rank->size == heir->size &&
					   !memcmp(rank->token, heir->token, heir->size)),
		      "ranks have different tokens after the same step");
	}
	job->lives = false;
	job->finished = !heir->has_token;
	if (job->finished)
		return;
	job->size = heir->size;
	memcpy(job->token, heir->token, heir->size);
}

/* ---- the carousel's decisions ---- */

static struct rank *rank_of(uint32_t number)
{
	for (uint32_t i = 0; i < world.n_jobs; i++)
		for (uint32_t k = 0; k < world.job[i].n_ranks; k++)
			if (world.job[i].rank[k].joined && world.job[i].rank[k].number == number)
				return &world.job[i].rank[k];
	claim(false, "an action for a job that is not there");
	return NULL;
}

static void grant(const struct carousel_action *action)
{
	struct rank *rank = rank_of(action->job);

	if (rank && claim(rank->n_queue < SLOTS, "more grants than slots"))
		rank->queue[rank->n_queue++] = (struct grant){.slot = action->slot,
							      .first = action->first,
							      .instance = action->instance,
							      .epoch = action->epoch};
}

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
	memmove(rank->queue + at, rank->queue + at + 1,
		(--rank->n_queue - at) * sizeof(rank->queue[0]));
	carousel_reclaimed(world.carousel, action->job, action->slot, world.now_ns);
}

static uint64_t settle(void)
{
	struct carousel_action action;

	do {
		carousel_step(world.carousel, world.now_ns, &action);
		if (action.kind == CAROUSEL_GRANT)
			grant(&action);
		else if (action.kind == CAROUSEL_REVOKE)
			revoke(&action);
		else if (action.kind == CAROUSEL_PRODUCE)
			world.making[world.n_making++] = action.slot;
	} while (action.kind != CAROUSEL_NONE && !broken);
	return action.wake_ns;
}

/* ---- a world ---- */

static void set_up_job(struct job *job)
{
	static const enum plan_order orders[] = {PLAN_CAROUSEL, PLAN_SEEDED, PLAN_SEQUENTIAL};

	job->order = orders[below(BASE_ARRAY_LEN(orders))];
	if (job->order == PLAN_CAROUSEL && world.config.usable_again)
		job->order = PLAN_ANY;
	job->seed = below(2);
	job->epochs = 1 + below(MAX_EPOCHS);
	job->drop_last = plan_is_fixed(job->order) && below(4) == 0;
	if (plan_is_fixed(job->order))
		plan_init(&job->plan, job->order, world.config.n, job->seed, world.config.version,
			  world.config.usable_again);
}

/* As admission: two for each that may come, and four at least. */
static uint32_t least_slots(void)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < world.n_jobs; i++)
		most += plan_is_fixed(world.job[i].order) ? MAX_RANKS : 1;
	return BASE_MAX(4u, 2 * most);
}

static bool set_up(uint64_t seed)
{
	struct carousel_config *config = &world.config;

	memset(&world, 0, sizeof(world));
	philox_seq_init(&world.random, 79, seed, 0);
	config->n = 1 + below(below(3) ? 20 : MAX_N);
	config->chunk = 1 + (uint32_t)below(16);
	config->max_slots = SLOTS;
	config->producing = 1 + (uint32_t)below(4);
	config->seed = philox_u64(&world.random);
	config->first_nonce = philox_u64(&world.random);
	config->usable_again = below(3) == 0;
	if (config->seed % 3) { /* chapters of a few samples, few of them begun */
		config->chapter = 1 + config->seed / 3 % 17;
		config->max_begun = 1 + (uint32_t)(config->seed / 64 % 4);
	}
	config->version[0] = (uint8_t)below(256);
	world.now_ns = 1;
	world.n_jobs = 1 + (uint32_t)below(MAX_JOBS);
	for (uint32_t i = 0; i < world.n_jobs; i++)
		set_up_job(&world.job[i]);
	config->slots = least_slots() + (uint32_t)below(below(2) ? 4 : MORE_SLOTS);
	return claim(carousel_new(config, &world.carousel) == 0, "no carousel");
}

/* Each rank takes what it was granted, or dawdles. */
static void act(struct job *job)
{
	if (!job->lives) {
		if (below(2))
			begin_life(job);
		return;
	}
	for (uint32_t i = 0; i < job->n_ranks && !broken; i++)
		while (job->rank[i].n_queue && below(3) && !broken)
			take(job, &job->rank[i]);
	try_end_life(job);
}

static void check_epoch(const struct job *job, uint64_t epoch)
{
	uint64_t missing = 0;

	for (uint64_t id = 0; id < world.config.n; id++) {
		missing += !job->count[epoch][id];
		for (uint64_t e = 0; e < epoch && job->order == PLAN_CAROUSEL; e++)
			claim(job->nonce_of[e][id] != job->nonce_of[epoch][id],
			      "the same augmentation twice");
	}
	claim(missing == job->dropped[epoch], "samples of an epoch are missing");
}

static void run_world(uint64_t seed)
{
	uint32_t finished = 0;

	if (!set_up(seed))
		return;
	for (unsigned turn = 0; finished < world.n_jobs && !broken; turn++) {
		uint64_t wake_ns = settle();

		claim(turn < MAX_TURNS, "the run does not end");
		world.now_ns = BASE_MAX(world.now_ns + 1000000, below(4) ? 0 : wake_ns);
		if (world.n_making && below(4))
			carousel_produced(world.carousel, world.making[--world.n_making]);
		finished = 0;
		for (uint32_t i = 0; i < world.n_jobs; i++) {
			if (!world.job[i].finished)
				act(&world.job[i]);
			finished += world.job[i].finished;
		}
	}
	claim(carousel_check(world.carousel) == NULL, "the carousel's books do not balance");
	for (uint32_t i = 0; i < world.n_jobs; i++)
		for (uint64_t epoch = 0; epoch < world.job[i].epochs; epoch++)
			check_epoch(&world.job[i], epoch);
	carousel_free(world.carousel);
}

START_TEST(lives_add_up_to_epochs)
{
	uint64_t seed = (uint64_t)_i * WORLDS_A_TEST;

	for (uint64_t i = 0; i < WORLDS_A_TEST && !broken; i++)
		run_world(seed++);
	ck_assert_msg(!broken, "world %llu: %s", (unsigned long long)seed - 1, broken);
	ck_assert_uint_ge(n_lives, LIVES_A_TEST);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, lives_add_up_to_epochs, 0, WORLDS / WORLDS_A_TEST);
}

int main(void)
{
	return suite_run("resume", add);
}
