/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For whom chunks are made, when who is fast and who is slow is known: the lead and one that
 * follows at half its speed, or a tenth. Paces are taught by a first chunk each.
 */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "tests/invariants/invariants.h"
#include "tests/suite.h"

#define CHOOSE_N 128 /* samples; a block each, so all of them are probes */
#define CHOOSE_CHUNK 8
#define CHOOSE_WORDS (CHOOSE_N / 64)
#define CHOOSE_JOBS 4

static struct carousel *carousel;
static uint64_t now_ns;
static uint64_t follower_need[CHOOSE_WORDS]; /* of job 1 */

static void set_up(uint32_t slots)
{
	struct carousel_config config = {
	    .n = CHOOSE_N,
	    .chunk = CHOOSE_CHUNK,
	    .slots = slots,
	    .max_slots = slots,
	    .producing = 1,
	    .seed = (uint64_t)slots,
	    .first_nonce = 1,
	};

	now_ns = 1;
	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
}

static void tear_down(void)
{
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	carousel_free(carousel);
}

static uint32_t join(const uint64_t *need, uint64_t epochs)
{
	struct carousel_join how = {.batch = 8, .ranks = 1, .epochs = epochs, .need = need};
	uint32_t job;

	ck_assert_int_eq(carousel_join(carousel, &how, now_ns, &job), 0);
	return job;
}

static void read_chunk(uint32_t job, uint32_t slot, uint64_t takes_ns)
{
	carousel_taken(carousel, job, slot, now_ns);
	now_ns += takes_ns;
	carousel_done(carousel, job, slot, now_ns);
}

static void follow_grant(const struct carousel_action *action)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, action->slot);

	for (uint32_t i = 0; i < chunk->n_blocks && action->job == 1; i++)
		bits_clear(follower_need, chunk->blocks[i]);
}

/* Follows decisions until there is none to make; *ret_dealt: the last slot that was filled. */
static unsigned settle(uint32_t *ret_dealt)
{
	struct carousel_action action;
	unsigned chunks = 0;

	for (;;) {
		carousel_step(carousel, now_ns, &action);
		ck_assert_ptr_eq(carousel_check(carousel), NULL);
		if (action.kind == CAROUSEL_NONE)
			return chunks;
		if (action.kind == CAROUSEL_GRANT)
			follow_grant(&action);
		if (action.kind == CAROUSEL_REVOKE)
			carousel_reclaimed(carousel, action.job, action.slot, now_ns);
		if (action.kind != CAROUSEL_PRODUCE)
			continue;
		carousel_produced(carousel, action.slot);
		chunks++;
		if (ret_dealt)
			*ret_dealt = action.slot;
	}
}

static struct carousel_job_view view(uint32_t job)
{
	struct carousel_job_view ret;

	carousel_job(carousel, job, now_ns, &ret);
	return ret;
}

/* The slot of the oldest chunk that the job was granted and did not take, told from the order of
 * instances; CAROUSEL_NO_SLOT: none. A job that has not been granted a chunk cannot take it. */
static uint32_t take_oldest(uint32_t job)
{
	uint32_t oldest = CAROUSEL_NO_SLOT;
	struct carousel_totals totals;

	carousel_totals(carousel, &totals);
	for (uint64_t instance = 1; instance <= totals.chunks; instance++)
		for (uint32_t slot = 0; slot < totals.slots; slot++) {
			const struct carousel_chunk *chunk = carousel_chunk_of(carousel, slot);
			uint64_t taken = view(job).taken;

			if (!chunk || chunk->instance != instance || oldest != CAROUSEL_NO_SLOT)
				continue;
			carousel_taken(carousel, job, slot, now_ns);
			if (view(job).taken > taken)
				oldest = slot;
		}
	return oldest;
}

/* The lead reads alone until no slot is free: with one that is, nobody lets a chunk pass. */
static void crowd(uint32_t lead)
{
	settle(NULL);
	while (carousel_free_slots(carousel)) {
		read_chunk(lead, take_oldest(lead), 10 * CHOOSE_CHUNK);
		settle(NULL);
	}
}

/* Two jobs that read one chunk each: 10 ns a sample, and `slowness` times that. */
static void teach(uint32_t lead, uint32_t follower, uint64_t slowness)
{
	uint32_t slot;

	settle(NULL);
	slot = take_oldest(follower);
	ck_assert_uint_ne(slot, CAROUSEL_NO_SLOT);
	read_chunk(follower, slot, 10 * CHOOSE_CHUNK * slowness);
	slot = take_oldest(lead);
	ck_assert_uint_ne(slot, CAROUSEL_NO_SLOT);
	read_chunk(lead, slot, 10 * CHOOSE_CHUNK);
	settle(NULL);
}

START_TEST(a_follower_is_hungry_only_when_nothing_is_coming)
{
	uint32_t lead, follower, slot;
	uint64_t coming;

	set_up(16);
	lead = join(NULL, 9);
	crowd(lead);
	follower = join(NULL, 9);
	teach(lead, follower, 10);
	ck_assert_uint_ge(view(lead).coming, 2 * CHOOSE_CHUNK);
	coming = view(follower).coming;
	ck_assert_uint_ge(coming, CHOOSE_CHUNK);
	for (unsigned i = 0; i < 4; i++) { /* the lead goes on: chunks pass the follower */
		slot = take_oldest(lead);
		read_chunk(lead, slot, 10 * CHOOSE_CHUNK);
		settle(NULL);
		ck_assert(!view(follower).hungry);
	}
	ck_assert_uint_le(view(follower).coming, coming + CHOOSE_CHUNK);
	tear_down();
}
END_TEST

START_TEST(a_chunk_that_passed_is_granted_before_another_one_is_made)
{
	uint32_t lead, follower, slot;
	struct carousel_totals before, after;

	set_up(16);
	lead = join(NULL, 9);
	crowd(lead);
	follower = join(NULL, 9);
	teach(lead, follower, 10);
	for (unsigned i = 0; i < 4; i++) {
		read_chunk(lead, take_oldest(lead), 10 * CHOOSE_CHUNK);
		settle(NULL);
	}
	carousel_totals(carousel, &before);
	while ((slot = take_oldest(follower)) != CAROUSEL_NO_SLOT) {
		read_chunk(follower, slot, 100 * CHOOSE_CHUNK);
		if (view(follower).taken >= 5 * (uint64_t)CHOOSE_CHUNK)
			break;
		settle(NULL);
	}
	carousel_totals(carousel, &after);
	ck_assert_uint_eq(after.chunks, before.chunks);
	ck_assert_uint_ge(view(follower).taken, 5 * CHOOSE_CHUNK);
	tear_down();
}
END_TEST

/* A job that comes late is made nothing that it can find. */
START_TEST(what_lies_in_slots_is_granted_while_some_are_free)
{
	uint32_t lead, follower;
	struct carousel_totals before, after;

	set_up(2 * CHOOSE_N / CHOOSE_CHUNK + 2);
	lead = join(NULL, 2);
	settle(NULL);
	for (unsigned i = 0; i < 2 * CHOOSE_N / CHOOSE_CHUNK; i++) {
		read_chunk(lead, take_oldest(lead), 10 * CHOOSE_CHUNK);
		settle(NULL);
	}
	carousel_totals(carousel, &before);
	ck_assert_uint_eq(before.productions, 2 * CHOOSE_N);
	follower = join(NULL, 2);
	settle(NULL);
	ck_assert_uint_eq(view(follower).coming, 2 * CHOOSE_N);
	carousel_totals(carousel, &after);
	ck_assert_uint_eq(after.productions, before.productions);
	tear_down();
}
END_TEST

/* Its epoch ends before the lead's: what is made of its need must be granted to it, or wait. */
START_TEST(no_chunk_passes_a_critical_job)
{
	uint32_t lead, follower, dealt = 0;
	unsigned checked = 0;

	set_up(16);
	lead = join(NULL, 9);
	memset(follower_need, 0, sizeof(follower_need));
	follower_need[0] = UINT64_C(0xffffffff);
	follower = join(follower_need, 1);
	ck_assert_uint_eq(follower, 1);
	teach(lead, follower, 2);
	ck_assert_uint_gt(view(follower).need, 0);
	for (unsigned i = 0; i < 6; i++) {
		const struct carousel_chunk *chunk;

		read_chunk(lead, take_oldest(lead), 10 * CHOOSE_CHUNK);
		if (!settle(&dealt))
			continue;
		chunk = carousel_chunk_of(carousel, dealt);
		for (uint32_t k = 0; k < chunk->n_blocks; k++)
			ck_assert(!bits_test(follower_need, chunk->blocks[k]));
		checked++;
	}
	ck_assert_uint_gt(checked, 3);
	tear_down();
}
END_TEST

/* What a hungry follower is given is of what the lead needs, as long as there is any. */
START_TEST(a_follower_is_fed_with_what_the_lead_needs)
{
	uint64_t half[CHOOSE_WORDS] = {UINT64_MAX, 0},
		 more[CHOOSE_WORDS] = {UINT64_C(0xffffff) << 40, UINT64_MAX};
	uint32_t lead, follower;
	const struct carousel_chunk *chunk;

	set_up(16);
	lead = join(half, 9);
	follower = join(more, 9);
	settle(NULL);
	for (uint32_t slot = 0; slot < 3; slot++) {
		unsigned both = 0;

		chunk = carousel_chunk_of(carousel, slot);
		if (!chunk)
			continue;
		for (uint32_t k = 0; k < chunk->n_blocks; k++)
			both +=
			    bits_test(half, chunk->blocks[k]) && bits_test(more, chunk->blocks[k]);
		ck_assert_uint_eq(both, chunk->n_blocks);
	}
	ck_assert_uint_ge(view(lead).coming, 2 * CHOOSE_CHUNK);
	ck_assert_uint_ge(view(follower).coming, 2 * CHOOSE_CHUNK);
	tear_down();
}
END_TEST

static void fill_need(uint64_t *need, uint64_t seed)
{
	struct philox_seq random;

	philox_seq_init(&random, seed, 0, 0);
	for (size_t i = 0; i < CHOOSE_WORDS; i++)
		need[i] = philox_u64(&random);
}

/* Sets of jobs that need a block have some 16 blocks each: enough for whole chunks. */
START_TEST(chunks_are_pure)
{
	uint64_t need[CHOOSE_JOBS - 1][CHOOSE_WORDS];
	const struct carousel_chunk *chunk;
	uint32_t slot;

	set_up(8);
	for (uint32_t i = 0; i < CHOOSE_JOBS - 1; i++) {
		fill_need(need[i], (uint64_t)_i * CHOOSE_JOBS + i);
		join(need[i], 9);
	}
	do { /* nobody's need has changed before the first grant */
		struct carousel_action action;

		carousel_step(carousel, now_ns, &action);
		slot = action.slot;
		ck_assert_int_eq(action.kind, CAROUSEL_PRODUCE);
		chunk = carousel_chunk_of(carousel, slot);
	} while (!chunk);
	for (uint32_t i = 0; i < CHOOSE_JOBS - 1; i++) {
		uint32_t needed = 0;

		for (uint32_t k = 0; k < chunk->n_blocks; k++)
			needed += bits_test(need[i], chunk->blocks[k]);
		ck_assert(needed == 0 || needed == chunk->n_blocks);
	}
	tear_down();
}
END_TEST

static void add(TCase *choose)
{
	tcase_add_test(choose, a_follower_is_hungry_only_when_nothing_is_coming);
	tcase_add_test(choose, a_chunk_that_passed_is_granted_before_another_one_is_made);
	tcase_add_test(choose, what_lies_in_slots_is_granted_while_some_are_free);
	tcase_add_test(choose, no_chunk_passes_a_critical_job);
	tcase_add_test(choose, a_follower_is_fed_with_what_the_lead_needs);
	tcase_add_loop_test(choose, chunks_are_pure, 0, 50);
}

int main(void)
{
	return suite_run("choose", add);
}
