/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Jobs of several pipelines round one carousel: single promises, and in the simulated world what
 * their sharing costs. Random histories of them are in carousel_test.c and group_test.c.
 */

#include <check.h>

#include "base/base.h"
#include "bench/sim_world.h"
#include "sched/carousel.h"
#include "tests/suite.h"
#include "tests/invariants/invariants.h"

#define SECOND UINT64_C(1000000000)

static struct carousel *carousel;
static struct carousel_action action;

static void new_carousel(uint64_t n, uint32_t chunk, uint32_t usable_again)
{
	struct carousel_config config = {
	    .n = n,
	    .chunk = chunk,
	    .slots = 6,
	    .max_slots = 6,
	    .producing = 1,
	    .seed = 5,
	    .first_nonce = 100,
	    .usable_again = usable_again,
	};

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
}

static void free_carousel(void)
{
	carousel_free(carousel);
	carousel = NULL;
}

static uint32_t join_as(const struct carousel_join *join)
{
	uint32_t job;

	ck_assert_int_eq(carousel_join(carousel, join, 1, &job), 0);
	return job;
}

static uint32_t join(uint32_t variant)
{
	return join_as(
	    &(struct carousel_join){.variant = variant, .batch = 8, .ranks = 1, .epochs = 3});
}

static uint32_t join_plan(uint32_t variant, enum plan_order order, uint64_t seed)
{
	return join_as(&(struct carousel_join){
	    .variant = variant, .batch = 4, .ranks = 1, .epochs = 2, .order = order, .seed = seed});
}

static void step_at(uint64_t now_ns, enum carousel_kind kind)
{
	carousel_step(carousel, now_ns, &action);
	ck_assert_int_eq(action.kind, kind);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
}

static void step(enum carousel_kind kind)
{
	step_at(1, kind);
}

/* The next chunk, in these variants; returns its slot. */
static uint32_t produce_at(uint64_t now_ns, uint32_t variants)
{
	step_at(now_ns, CAROUSEL_PRODUCE);
	ck_assert_uint_eq(carousel_chunk_of(carousel, action.slot)->variants, variants);
	carousel_produced(carousel, action.slot);
	return action.slot;
}

static uint32_t produce(uint32_t variants)
{
	return produce_at(1, variants);
}

static void granted(uint32_t job, uint32_t slot)
{
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, job);
	ck_assert_uint_eq(action.slot, slot);
}

static void read_chunk(uint32_t job, uint32_t slot)
{
	carousel_taken(carousel, job, slot, 1);
	carousel_done(carousel, job, slot, 1);
}

START_TEST(what_is_no_variant_is_refused)
{
	struct carousel_join how = {.variant = CAROUSEL_MAX_VARIANTS, .batch = 8, .ranks = 1};
	uint32_t job;

	new_carousel(64, 8, 0);
	ck_assert_int_eq(carousel_join(carousel, &how, 1, &job), CAROUSEL_E_BAD);
	ck_assert_int_eq(carousel_found(carousel, &how, 1 << 20, 1, &job), CAROUSEL_E_BAD);
	ck_assert_int_eq(carousel_set_variant(carousel, CAROUSEL_MAX_VARIANTS, true),
			 CAROUSEL_E_BAD);
	free_carousel();
}
END_TEST

START_TEST(one_production_serves_all_variants)
{
	struct carousel_totals totals;
	uint32_t a, b, slot;

	new_carousel(64, 8, 0);
	a = join(0);
	b = join(7);
	slot = produce(0x81);
	granted(a, slot);
	granted(b, slot);
	carousel_totals(carousel, &totals);
	ck_assert_uint_eq(totals.productions, 8);
	ck_assert_uint_eq(totals.outputs, 16);
	free_carousel();
}
END_TEST

START_TEST(a_chunk_without_its_variant_is_not_there_for_a_job)
{
	uint32_t a, b, first, second;

	new_carousel(64, 8, 0);
	a = join(0);
	first = produce(1);
	granted(a, first);
	b = join(1);
	second = produce(3); /* of what both need */
	ck_assert_uint_ne(first, second);
	granted(a, second);
	granted(b, second);
	for (uint32_t i = 0; i < carousel_chunk_of(carousel, first)->n_blocks; i++)
		for (uint32_t k = 0; k < carousel_chunk_of(carousel, second)->n_blocks; k++)
			ck_assert_uint_ne(carousel_chunk_of(carousel, first)->blocks[i],
					  carousel_chunk_of(carousel, second)->blocks[k]);
	free_carousel();
}
END_TEST

START_TEST(a_chunk_serves_again_where_nothing_is_random)
{
	unsigned served[2] = {0};
	uint32_t slot, again, once;

	new_carousel(8, 8, 2);
	once = join(0);
	again = join(1);
	slot = produce(3);
	for (unsigned i = 0; i < 200; i++) {
		carousel_step(carousel, 1, &action);
		ck_assert_ptr_eq(carousel_check(carousel), NULL);
		if (action.kind == CAROUSEL_PRODUCE)
			carousel_produced(carousel, action.slot);
		if (action.kind != CAROUSEL_GRANT)
			continue;
		served[action.job == again] += action.instance == 1;
		read_chunk(action.job, action.slot);
	}
	ck_assert_uint_ne(once, again);
	ck_assert_uint_eq(carousel_chunk_of(carousel, slot)->instance, 1);
	ck_assert_uint_eq(served[0], 1);
	ck_assert_uint_gt(served[1], 1);
	free_carousel();
}
END_TEST

START_TEST(a_number_may_become_another_pipeline)
{
	uint32_t job, other, slot;

	new_carousel(64, 8, 0);
	job = join(1);
	slot = produce(2);
	granted(job, slot);
	ck_assert_int_eq(carousel_set_variant(carousel, 1, false), CAROUSEL_E_BAD);
	carousel_leave(carousel, job, 1);
	ck_assert_int_eq(carousel_set_variant(carousel, 1, false), 0);
	ck_assert_uint_eq(carousel_chunk_of(carousel, slot)->variants, 0);
	other = join(1);
	ck_assert_uint_ne(slot, produce(2)); /* what is there is not what it makes */
	granted(other, action.slot);
	free_carousel();
}
END_TEST

START_TEST(a_tail_is_made_for_its_job_alone)
{
	static const uint64_t need = 0xffff0000;
	static const int64_t tail[] = {3};
	struct carousel_join how = {
	    .variant = 2, .batch = 8, .ranks = 1, .epochs = 1, .tail = tail, .n_tail = 1};
	uint64_t without[1] = {0};
	uint32_t job;

	new_carousel(32, 8, 0);
	without[0] = need;
	for (uint32_t i = 0; i < 32;
	     i++) /* whatever the tail's sample is a block of, it is not in need */
		if (permutation_sample(carousel_permutation(carousel), i) == 3)
			without[0] &= ~(UINT64_C(1) << i);
	how.need = without;
	join(0);
	job = join_as(&how);
	do {
		carousel_step(carousel, 1, &action);
		ck_assert_ptr_eq(carousel_check(carousel), NULL);
		if (action.kind == CAROUSEL_PRODUCE)
			carousel_produced(carousel, action.slot);
	} while (action.kind != CAROUSEL_PRODUCE ||
		 !carousel_chunk_of(carousel, action.slot)->is_private);
	ck_assert_uint_eq(carousel_chunk_of(carousel, action.slot)->variants, 4);
	granted(job, action.slot);
	free_carousel();
}
END_TEST

START_TEST(who_does_not_live_is_made_nothing_for)
{
	uint32_t a, b, slot;

	new_carousel(64, 8, 0);
	a = join(0);
	b = join(1);
	for (int i = 0; i < 2; i++) {
		slot = produce(3);
		granted(a, slot);
		granted(b, slot);
		read_chunk(a, slot);
	}
	produce_at(60 * SECOND, 1);
	free_carousel();
}
END_TEST

START_TEST(a_fixed_plans_chunk_is_made_again_for_another_variant)
{
	const struct carousel_chunk *chunk;
	uint32_t a, b, first, second, third;

	new_carousel(32, 4, 0);
	a = join_plan(0, PLAN_SEEDED, 9);
	first = produce(1);
	granted(a, first);
	b = join_plan(1, PLAN_SEEDED, 9);
	second = produce(2);
	ck_assert_uint_ne(first, second);
	chunk = carousel_chunk_of(carousel, second);
	ck_assert_uint_eq(chunk->place, 0);
	ck_assert_uint_eq(chunk->nonce, carousel_chunk_of(carousel, first)->nonce);
	granted(b, second);
	third = produce(3); /* from here on they go together */
	ck_assert_uint_eq(carousel_chunk_of(carousel, third)->place, 4);
	granted(a, third);
	granted(b, third);
	free_carousel();
}
END_TEST

START_TEST(who_follows_on_a_plan_has_his_variant_made)
{
	struct carousel_join later = {
	    .variant = 1, .batch = 4, .ranks = 1, .epochs = 1, .order = PLAN_SEEDED, .seed = 9};
	uint32_t ahead, behind, first, second;

	new_carousel(32, 4, 0);
	later.place = 4;
	ahead = join_as(&later);
	later.variant = 0;
	later.place = 0;
	behind = join_as(&later);
	second = produce(3); /* places 4 .. 7: for the one ahead, and the other comes to it, too */
	granted(ahead, second);
	first = produce(1); /* places 0 .. 3 are nobody else's any more */
	granted(behind, first);
	granted(behind, second);
	free_carousel();
}
END_TEST

/* Without random ops nobody asks for seeds: what others have with theirs is as good. */
START_TEST(a_sequence_is_the_same_with_any_seed_where_nothing_is_random)
{
	uint32_t a, b, slot;

	new_carousel(32, 4, 2);
	a = join_plan(0, PLAN_SEQUENTIAL, 77);
	b = join_plan(1, PLAN_SEQUENTIAL, 1);
	slot = produce(3);
	granted(a, slot);
	granted(b, slot);
	free_carousel();
}
END_TEST

/* ---- what it costs ---- */

struct mixture {
	struct sim_world_scenario scenario;
	double decoded, made; /* percent over the references, at most */
};

static const struct mixture mixtures[] = {
    {{.jobs = 2, .slots = 4, .speed = {1, 1}, .epochs = {4, 4}}, 1, 1},
    {{.jobs = 2, .slots = 4, .speed = {1, 1}, .start = {0, .45}, .epochs = {4, 4}}, 1, 1},
    {{.jobs = 2, .slots = 4, .speed = {1, .5}, .epochs = {8, 4}}, 1, 5},
    {{.jobs = 8,
      .slots = 16,
      .speed = {1, 1, 1, 1, 1, 1, 1, 1},
      .epochs = {4, 4, 4, 4, 4, 4, 4, 4}},
     1,
     1},
    {{.jobs = 8,
      .slots = 16,
      .speed = {1, .95, .83, .77, .6, .45, .3, .2},
      .start = {0, .05, .1, .22, .4, .41, .6, .8},
      .epochs = {10, 9, 8, 7, 6, 4, 3, 2}},
     5,
     5},
};

/* The product's limits for one pipeline hold for any number of them: about as many decodings as for
 * one, and not much that nobody takes. */
START_TEST(several_pipelines_decode_as_often_as_one)
{
	const struct mixture *mixture = &mixtures[_i];

	for (uint32_t variants = 2; variants <= mixture->scenario.jobs; variants *= 2) {
		struct sim_world_scenario scenario = mixture->scenario;
		struct sim_world_result result;
		double decoded = 0, made = 0;

		for (unsigned i = 0; i < scenario.jobs; i++)
			scenario.variant[i] = i % variants;
		for (uint64_t seed = 1; seed <= 3; seed++) {
			const struct sim_world_run run = {
			    .n = 800, .chunk = 8, .producing = 2, .rate = 4, .seed = seed};

			scenario.usable_again = seed == 3 ? 2 : 0;
			ck_assert_int_eq(sim_world(&scenario, &run, &result), 0);
			ck_assert_double_le(result.stall, .01);
			decoded += 100 * result.over / 3;
			made += 100 * result.outputs / 3;
		}
		ck_assert_msg(decoded <= mixture->decoded && made <= mixture->made,
			      "%u variants: decoded %.1f %%, made %.1f %% over", variants, decoded,
			      made);
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, what_is_no_variant_is_refused);
	tcase_add_test(t, one_production_serves_all_variants);
	tcase_add_test(t, a_chunk_without_its_variant_is_not_there_for_a_job);
	tcase_add_test(t, a_chunk_serves_again_where_nothing_is_random);
	tcase_add_test(t, a_number_may_become_another_pipeline);
	tcase_add_test(t, a_tail_is_made_for_its_job_alone);
	tcase_add_test(t, who_does_not_live_is_made_nothing_for);
	tcase_add_test(t, a_fixed_plans_chunk_is_made_again_for_another_variant);
	tcase_add_test(t, who_follows_on_a_plan_has_his_variant_made);
	tcase_add_test(t, a_sequence_is_the_same_with_any_seed_where_nothing_is_random);
	tcase_add_loop_test(t, several_pipelines_decode_as_often_as_one, 0,
			    BASE_ARRAY_LEN(mixtures));
}

int main(void)
{
	return suite_run("variant", add);
}
