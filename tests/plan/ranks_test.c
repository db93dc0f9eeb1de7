/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A plan shared out among ranks: whatever n, B, R, drop_last and the place to begin at are, the
 * parts of all ranks are each place once, all ranks have the same number of them, and a resume at
 * any step with other numbers goes on where the first part ended.
 */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/philox.h"
#include "plan/plan.h"
#include "plan/ranks/ranks.h"
#include "tests/histories.h"
#include "tests/suite.h"

#define CASES_A_TEST 10000
#define TESTS HISTORIES_OF(12)
#define MAX_N 600

/* The first broken promise of a case. ck_assert() for each sample would take minutes. */
static const char *broken;

static void claim(bool holds, const char *otherwise)
{
	if (!holds && !broken)
		broken = otherwise;
}

static const uint32_t worlds[] = {1, 2, 3, 4, 8};

static void draw(struct philox_seq *random, struct ranks *ranks, uint64_t n, uint64_t base)
{
	*ranks = (struct ranks){
	    .n = n,
	    .base = base,
	    .batch = 1 + (uint32_t)philox_below(random, philox_below(random, 2) ? 8 : 80),
	    .ranks = worlds[philox_below(random, BASE_ARRAY_LEN(worlds))],
	};
}

/* The first `steps` steps of all ranks: each place between here and there once. */
static void deliver(const struct ranks *ranks, uint64_t steps, const int64_t *ids, uint8_t *seen)
{
	for (uint32_t rank = 0; rank < ranks->ranks; rank++)
		for (uint64_t step = 0; step < steps; step++) {
			uint64_t first;
			uint32_t count = ranks_part(ranks, rank, step, &first);

			claim(count <= ranks->batch, "a batch is too large");
			claim(first + count <= ranks->n, "a batch reaches past the end");
			for (uint32_t i = 0; i < count && !broken; i++)
				seen[ids[first + i]]++;
		}
}

/* Short batches are the last ones, and differ by one sample at most. */
static void check_shape(const struct ranks *ranks)
{
	uint64_t steps = ranks_steps(ranks), first;
	uint32_t least = UINT32_MAX, most = 0;

	for (uint32_t rank = 0; rank < ranks->ranks && steps; rank++) {
		uint32_t count = ranks_part(ranks, rank, steps - 1, &first);

		least = BASE_MIN(least, count);
		most = BASE_MAX(most, count);
		if (steps > 1)
			claim(ranks_part(ranks, rank, steps - 2, &first) == ranks->batch,
			      "a batch before the last one is short");
	}
	claim(!steps || most - least <= 1, "the rest is not split evenly");
	claim(!steps || most > 0, "a step has no sample");
}

/* An epoch that is cut off and resumed with another R and B up to five times. */
static void run_case(struct philox_seq *random)
{
	uint64_t n = philox_below(random, MAX_N), place = 0;
	uint8_t seen[MAX_N] = {0};
	int64_t ids[MAX_N];
	struct plan plan;

	plan_init(&plan, philox_below(random, 4) ? PLAN_SEEDED : PLAN_SEQUENTIAL, n,
		  philox_u64(random), (const uint8_t[32]){(uint8_t)n}, false);
	plan_samples(&plan, philox_below(random, 3), 0, (uint32_t)n, ids);
	for (int part = 0; place < n && !broken; part++) {
		struct ranks ranks;
		uint64_t steps;

		draw(random, &ranks, n, place);
		check_shape(&ranks);
		steps = ranks_steps(&ranks);
		if (part < 5)
			steps = philox_below(random, steps + 1);
		deliver(&ranks, steps, ids, seen);
		place = ranks_place(&ranks, steps);
	}
	for (uint64_t i = 0; i < n; i++)
		claim(seen[i] == 1, "a sample was not delivered exactly once");
}

START_TEST(each_sample_once_over_any_resumes)
{
	struct philox_seq random;
	int i;

	philox_seq_init(&random, 77, (uint64_t)_i, 0);
	for (i = 0; i < CASES_A_TEST && !broken; i++)
		run_case(&random);
	ck_assert_msg(!broken, "case %d: %s", i, broken);
}
END_TEST

/* drop_last: floor(N / (B R)) full steps, then the end. */
START_TEST(the_last_is_dropped)
{
	struct philox_seq random;
	int i;

	philox_seq_init(&random, 78, 0, 0);
	for (i = 0; i < CASES_A_TEST && !broken; i++) {
		uint64_t n = philox_below(&random, MAX_N), first;
		struct ranks ranks;

		draw(&random, &ranks, n, 0);
		ranks.drop_last = true;
		claim(ranks_steps(&ranks) == n / (ranks.batch * ranks.ranks), "a step too many");
		for (uint64_t step = 0; step < ranks_steps(&ranks); step++) {
			claim(ranks_part(&ranks, ranks.ranks - 1, step, &first) == ranks.batch &&
				  first + ranks.batch <= n,
			      "a step is not full");
		}
		claim(ranks_place(&ranks, ranks_steps(&ranks)) == n, "the end is not the end");
	}
	ck_assert_msg(!broken, "case %d: %s", i, broken);
}
END_TEST

/* 10 samples, B = 2, R = 3: a full step, then 2, 1, 1. */
START_TEST(the_rest_is_split_evenly)
{
	static const uint64_t firsts[] = {6, 8, 9};
	static const uint32_t counts[] = {2, 1, 1};
	struct ranks ranks = {.n = 10, .batch = 2, .ranks = 3};
	uint64_t first;

	ck_assert_uint_eq(ranks_steps(&ranks), 2);
	for (uint32_t rank = 0; rank < 3; rank++) {
		ck_assert_uint_eq(ranks_part(&ranks, rank, 0, &first), 2);
		ck_assert_uint_eq(first, 2 * rank);
		ck_assert_uint_eq(ranks_part(&ranks, rank, 1, &first), counts[rank]);
		ck_assert_uint_eq(first, firsts[rank]);
	}
	ranks.n = 7; /* fewer than ranks are left: empty ones keep the step */
	ck_assert_uint_eq(ranks_part(&ranks, 0, 1, &first), 1);
	ck_assert_uint_eq(ranks_part(&ranks, 2, 1, &first), 0);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, each_sample_once_over_any_resumes, 0, TESTS);
	tcase_add_test(t, the_last_is_dropped);
	tcase_add_test(t, the_rest_is_split_evenly);
}

int main(void)
{
	return suite_run("ranks", add);
}
