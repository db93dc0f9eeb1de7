/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Chapters: how many a job begins, what they cost those who share, and that the largest datasets
 * can be walked through. That each sample comes exactly once, over any lives, is for
 * carousel_test.c and resume_test.c, most worlds of which have chapters of a few blocks.
 */

#include <check.h>
#include <stdlib.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"
#include "bench/sim_world.h"
#include "sched/carousel.h"
#include "plan/token.h"
#include "tests/suite.h"
#include "tests/invariants/invariants.h"

#define JOBS 5
#define SLOTS 40
#define BILLION UINT64_C(1000000000)

struct world {
	struct carousel *carousel;
	struct philox_seq random;
	uint64_t now_ns;
	uint32_t number[JOBS];
	uint32_t queue[JOBS][SLOTS], n_queue[JOBS];
	bool reopened[JOBS]; /* it gave a chunk back: its chapter may be one too many */
	uint32_t making[2], n_making;
	uint64_t granted;
	uint32_t max_begun, most_begun;
};

static void on_grant(struct world *world, const struct carousel_action *action)
{
	struct carousel_job_view view;

	carousel_job(world->carousel, action->job, world->now_ns, &view);
	for (unsigned i = 0; i < JOBS; i++) {
		if (world->number[i] != action->job)
			continue;
		world->queue[i][world->n_queue[i]++] = action->slot;
		if (view.begun <= world->max_begun)
			world->reopened[i] = false;
		if (!world->reopened[i])
			world->most_begun = BASE_MAX(world->most_begun, view.begun);
	}
	world->granted++;
}

static void on_revoke(struct world *world, const struct carousel_action *action)
{
	for (unsigned i = 0; i < JOBS; i++) {
		uint32_t kept = 0;

		if (world->number[i] != action->job)
			continue;
		for (uint32_t k = 0; k < world->n_queue[i]; k++)
			if (world->queue[i][k] != action->slot)
				world->queue[i][kept++] = world->queue[i][k];
		world->n_queue[i] = kept;
		world->reopened[i] = true;
	}
	carousel_reclaimed(world->carousel, action->job, action->slot, world->now_ns);
}

static void settle(struct world *world)
{
	struct carousel_action action;

	do {
		carousel_step(world->carousel, world->now_ns, &action);
		if (action.kind == CAROUSEL_GRANT)
			on_grant(world, &action);
		else if (action.kind == CAROUSEL_REVOKE)
			on_revoke(world, &action);
		else if (action.kind == CAROUSEL_PRODUCE)
			world->making[world->n_making++] = action.slot;
	} while (action.kind != CAROUSEL_NONE);
}

static void take(struct world *world, unsigned i)
{
	uint32_t slot;

	if (!world->n_queue[i])
		return;
	slot = world->queue[i][0];
	for (uint32_t k = 1; k < world->n_queue[i]; k++)
		world->queue[i][k - 1] = world->queue[i][k];
	world->n_queue[i]--;
	carousel_taken(world->carousel, world->number[i], slot, world->now_ns);
	carousel_done(world->carousel, world->number[i], slot, world->now_ns);
}

static void begin(struct world *world, const struct carousel_config *config, uint64_t seed)
{
	struct carousel_join join = {.batch = config->chunk, .ranks = 1};

	*world = (struct world){.now_ns = 1,
				.max_begun = config->max_begun ? config->max_begun : UINT32_MAX};
	philox_seq_init(&world->random, 31, seed, 0);
	ck_assert_int_eq(carousel_new(config, &world->carousel), 0);
	for (unsigned i = 0; i < JOBS; i++)
		ck_assert_int_eq(carousel_join(world->carousel, &join, 1, &world->number[i]), 0);
}

/* Each job at its own speed. */
static void run(struct world *world, unsigned turns, const char *(*check)(const struct carousel *))
{
	for (unsigned turn = 0; turn < turns; turn++) {
		world->now_ns += 1000000;
		settle(world);
		while (world->n_making)
			carousel_produced(world->carousel, world->making[--world->n_making]);
		for (unsigned i = 0; i < JOBS; i++)
			if (philox_below(&world->random, JOBS) >= i)
				take(world, i);
		if (check)
			ck_assert_pstr_eq(check(world->carousel), NULL);
	}
}

START_TEST(few_chapters_are_begun)
{
	struct carousel_config config = {
	    .n = 3000,
	    .chunk = 7,
	    .slots = SLOTS,
	    .max_slots = SLOTS,
	    .producing = 2,
	    .seed = (uint64_t)_i,
	    .first_nonce = 1,
	    .chapter = 50 + 13 * (uint64_t)_i,
	    .max_begun = 1 + (uint32_t)_i % 4,
	};
	struct world world;

	begin(&world, &config, (uint64_t)_i);
	run(&world, 3000, carousel_check);
	ck_assert_uint_gt(world.granted, 5000); /* several epochs of each job */
	ck_assert_uint_eq(world.most_begun, config.max_begun);
	carousel_free(world.carousel);
}
END_TEST

/* What a job with a view's need would have to write down. */
static size_t size_of_token(uint32_t begun)
{
	struct token token = {.n = BILLION, .block = 32, .order = 1};
	uint64_t blocks = (BILLION + 31) / 32;
	size_t size;

	token.need = calloc(bits_words(blocks) + 1, sizeof(uint64_t));
	for (uint64_t i = 0; i < begun; i++)
		bits_set(token.need, i << 15);
	size = token_size(&token);
	free(token.need);
	return size;
}

START_TEST(a_billion_samples)
{
	struct carousel_config config = {
	    .n = BILLION,
	    .chunk = 256,
	    .slots = 12,
	    .max_slots = SLOTS,
	    .producing = 2,
	    .seed = 5,
	    .first_nonce = 1,
	};
	struct world world;

	begin(&world, &config, 1);
	run(&world, 400, NULL);
	ck_assert_pstr_eq(carousel_check(world.carousel), NULL);
	ck_assert_uint_gt(world.granted, 500);
	ck_assert_uint_le(world.most_begun, 16);
	ck_assert_uint_le(size_of_token(world.most_begun), 65536 + 1200);
	carousel_free(world.carousel);
}
END_TEST

/* DESIGN.md section 12: two jobs, or jobs of one speed, cost at most 5 % over the reference. */
START_TEST(two_jobs_and_equal_jobs_share)
{
	static const struct sim_world_scenario scenarios[] = {
	    {.jobs = 2, .slots = 4, .speed = {1, 1}, .start = {0, .37}, .epochs = {4, 4}},
	    {.jobs = 2, .slots = 4, .speed = {1, .5}, .start = {0, .37}, .epochs = {4, 2}},
	    {.jobs = 4,
	     .slots = 8,
	     .speed = {1, 1, 1, 1},
	     .start = {0, .2, .43, .78},
	     .epochs = {4, 4, 4, 4}},
	};
	struct sim_world_run run = {
	    .n = 12800,
	    .chunk = 8,
	    .producing = 2,
	    .rate = 4,
	    .seed = 1,
	    .chapter = 200,
	    .max_begun = 16,
	};
	struct sim_world_result result;

	ck_assert_int_eq(sim_world(&scenarios[_i], &run, &result), 0);
	ck_assert_double_le(result.over, .05);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, few_chapters_are_begun, 0, 8);
	tcase_add_test(t, a_billion_samples);
	tcase_add_loop_test(t, two_jobs_and_equal_jobs_share, 0, 3);
}

int main(void)
{
	return suite_run("chapter", add);
}
