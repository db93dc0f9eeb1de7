/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What goes into a chunk, against the rule of DESIGN.md section 3 written down the simple way: a set
 * of blocks, one job's split after the other, every count complete. carousel_deal.c counts no
 * further than it must and lists candidates that lie thin; neither may change what is chosen. The
 * pipeline is one without random ops: there the rule stands as it was written.
 */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "tests/suite.h"

#define RULE_N 20000 /* samples; a block each */
#define RULE_CHUNK 64
#define RULE_SLOTS 24
#define RULE_JOBS 6
#define RULE_WORDS ((RULE_N + 63) / 64)

static struct carousel *carousel;
static uint64_t needs[RULE_JOBS][RULE_WORDS];
static uint64_t candidates[RULE_WORDS];

/* Kinds of needs: how likely a block of the front and of the rear part is needed, in 2^-k. */
static const struct {
	unsigned front, rear; /* 64: not at all */
} kinds[] = {{0, 0}, {1, 1}, {3, 3}, {5, 5}, {8, 8}, {11, 11}, {64, 0}, {0, 64}, {64, 1}, {64, 9}};

static void fill_need(uint64_t *need, uint64_t seed)
{
	struct philox_seq random;
	uint64_t kind;

	philox_seq_init(&random, seed, 0, 0);
	kind = philox_below(&random, BASE_ARRAY_LEN(kinds));
	for (uint64_t i = 0; i < RULE_N; i++) {
		unsigned power = i < RULE_N / 2 ? kinds[kind].front : kinds[kind].rear;

		if (power < 64 && philox_below(&random, UINT64_C(1) << power) == 0)
			bits_set(need, i);
	}
	bits_set(need, philox_below(&random, RULE_N)); /* never nothing */
}

static void join_all(uint64_t seed)
{
	memset(needs, 0, sizeof(needs));
	for (uint32_t i = 0; i < RULE_JOBS; i++) {
		struct carousel_join how = {.batch = 8, .ranks = 1, .epochs = 1};
		uint32_t job;

		fill_need(needs[i], seed * RULE_JOBS + i);
		how.need = needs[i];
		ck_assert_int_eq(carousel_join(carousel, &how, 1, &job), 0);
		ck_assert_uint_eq(job, i);
	}
}

static void split(const uint64_t *need, bool is_hungry)
{
	uint64_t wanted[RULE_WORDS], rest[RULE_WORDS], n_wanted, n_rest;
	bool prefer_wanted = is_hungry;

	for (size_t i = 0; i < RULE_WORDS; i++) {
		wanted[i] = candidates[i] & need[i];
		rest[i] = candidates[i] & ~need[i];
	}
	n_wanted = bits_count(wanted, RULE_N);
	n_rest = bits_count(rest, RULE_N);
	if ((is_hungry ? n_wanted : n_rest) < RULE_CHUNK / 2)
		prefer_wanted = is_hungry ? n_wanted >= n_rest : n_wanted > n_rest;
	memcpy(candidates, prefer_wanted ? wanted : rest, sizeof(candidates));
}

/* The jobs in the order of the splits: hungry ones first, then by what is coming to them. */
static uint32_t sort_jobs(uint32_t *order, uint32_t *ret_hungry)
{
	struct carousel_job_view view[RULE_JOBS];

	*ret_hungry = 0;
	for (uint32_t job = 0; job < RULE_JOBS; job++) {
		uint32_t at = job;

		carousel_job(carousel, job, 1, &view[job]);
		*ret_hungry += view[job].hungry;
		for (; at; at--) {
			const struct carousel_job_view *before = &view[order[at - 1]];

			if (before->hungry != view[job].hungry ? before->hungry
							       : before->coming <= view[job].coming)
				break;
			order[at] = order[at - 1];
		}
		order[at] = job;
	}
	return RULE_JOBS;
}

static void find_candidates(void)
{
	uint32_t order[RULE_JOBS], n_hungry, n = sort_jobs(order, &n_hungry);

	memcpy(candidates, needs[order[0]], sizeof(candidates));
	for (uint32_t i = 1; i < n; i++)
		split(needs[order[i]], i < n_hungry);
}

static void check_chunk(const struct carousel_chunk *chunk)
{
	uint64_t left = bits_count(candidates, RULE_N);

	ck_assert_uint_eq(chunk->n_blocks, BASE_MIN(left, (uint64_t)RULE_CHUNK));
	for (uint32_t i = 0; i < chunk->n_blocks; i++) {
		ck_assert(bits_test(candidates, chunk->blocks[i]));
		ck_assert(i == 0 || chunk->blocks[i - 1] < chunk->blocks[i]);
	}
}

/* What a granted chunk takes out of a need. */
static void follow_grant(const struct carousel_action *action)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, action->slot);

	for (uint32_t i = 0; i < chunk->n_blocks; i++)
		bits_clear(needs[action->job], chunk->blocks[i]);
}

START_TEST(chunks_follow_the_rule)
{
	struct carousel_config config = {
	    .n = RULE_N,
	    .chunk = RULE_CHUNK,
	    .slots = RULE_SLOTS,
	    .max_slots = RULE_SLOTS,
	    .producing = 1,
	    .seed = (uint64_t)_i,
	    .first_nonce = 1,
	    .usable_again = 1, /* else who is hungry does not decide: carousel_choose.c */
	};
	struct carousel_action action;
	unsigned chunks = 0;

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	join_all((uint64_t)_i);
	for (;;) {
		find_candidates();
		carousel_step(carousel, 1, &action);
		if (action.kind == CAROUSEL_NONE || action.kind == CAROUSEL_EMPTY ||
		    action.kind == CAROUSEL_REVOKE)
			break; /* enough for everybody, or no slot any more */
		if (action.kind == CAROUSEL_PRODUCE) {
			check_chunk(carousel_chunk_of(carousel, action.slot));
			carousel_produced(carousel, action.slot);
			chunks++;
		} else {
			follow_grant(&action);
		}
	}
	ck_assert_uint_gt(chunks, 0);
	carousel_free(carousel);
}
END_TEST

static void add(TCase *rule)
{
	tcase_add_loop_test(rule, chunks_follow_the_rule, 0, 300);
}

int main(void)
{
	return suite_run("rule", add);
}
