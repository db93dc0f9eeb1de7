/* SPDX-License-Identifier: Apache-2.0 */

/* Fixed plans: each sample once an epoch, the same wherever it is asked, frozen. */

#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "tests/suite.h"

static const uint8_t zeros[32], ones[32] = {1, 1, 1, 1};

static int64_t sample_at(const struct plan *plan, uint64_t epoch, uint64_t place)
{
	int64_t id;

	plan_samples(plan, epoch, place, 1, &id);
	return id;
}

START_TEST(each_sample_has_one_place)
{
	static const uint64_t sizes[] = {1, 2, 3, 64, 100, 4097, 20000};
	uint64_t n = sizes[_i];
	int64_t *ids = malloc(n * sizeof(*ids));
	uint8_t *seen = malloc(n);

	for (int order = PLAN_SEEDED; order <= PLAN_SEQUENTIAL; order++)
		for (uint64_t epoch = 0; epoch < 3; epoch++) {
			struct plan plan;

			plan_init(&plan, order, n, 42, zeros, false);
			plan_samples(&plan, epoch, 0, (uint32_t)n, ids);
			memset(seen, 0, n);
			for (uint64_t i = 0; i < n; i++) {
				ck_assert_int_ge(ids[i], 0);
				ck_assert_int_lt(ids[i], (int64_t)n);
				ck_assert_uint_eq(seen[ids[i]], 0);
				seen[ids[i]] = 1;
				ck_assert_int_eq(sample_at(&plan, epoch, i), ids[i]);
				if (order == PLAN_SEQUENTIAL)
					ck_assert_int_eq(ids[i], (int64_t)i);
			}
		}
	free(ids);
	free(seen);
}
END_TEST

/* Places at which the two plans have the same sample. */
static unsigned agreements(const struct plan *a, uint64_t epoch_a, const struct plan *b,
			   uint64_t epoch_b)
{
	unsigned same = 0;

	for (uint64_t place = 0; place < 1000; place++)
		same += sample_at(a, epoch_a, place) == sample_at(b, epoch_b, place);
	return same;
}

/* Two independent permutations agree at one place on average; at 12 with a chance of 1e-9. */
START_TEST(epochs_seeds_and_versions_have_orders_of_their_own)
{
	struct plan plan, other;

	plan_init(&plan, PLAN_SEEDED, 1000, 42, zeros, false);
	ck_assert_uint_eq(agreements(&plan, 0, &plan, 0), 1000);
	ck_assert_uint_lt(agreements(&plan, 0, &plan, 1), 12);
	plan_init(&other, PLAN_SEEDED, 1000, 43, zeros, false);
	ck_assert_uint_lt(agreements(&plan, 0, &other, 0), 12);
	plan_init(&other, PLAN_SEEDED, 1000, 42, ones, false);
	ck_assert_uint_lt(agreements(&plan, 0, &other, 0), 12);
}
END_TEST

START_TEST(nonces_differ_where_pixels_may)
{
	struct plan plan, other;

	plan_init(&plan, PLAN_SEEDED, 10, 42, zeros, true);
	plan_init(&other, PLAN_SEEDED, 10, 43, zeros, true);
	ck_assert_uint_ne(plan_nonce(&plan, 0), plan_nonce(&plan, 1));
	ck_assert_uint_ne(plan_nonce(&plan, 0), plan_nonce(&other, 0));
	plan_init(&plan, PLAN_SEQUENTIAL, 10, 42, zeros, false);
	ck_assert_uint_ne(plan_nonce(&plan, 0), plan_nonce(&plan, 1));
	/* the same pixels in the same order: one instance for all */
	plan_init(&plan, PLAN_SEQUENTIAL, 10, 42, zeros, true);
	plan_init(&other, PLAN_SEQUENTIAL, 10, 43, zeros, true);
	ck_assert_uint_eq(plan_nonce(&plan, 0), plan_nonce(&other, 5));
	ck_assert_uint_eq(plan.seed, other.seed);
}
END_TEST

/* Frozen: a token names a place. */
START_TEST(plans_are_frozen)
{
	static const struct {
		uint64_t n, seed, epoch;
		int64_t sample[3]; /* at places 0, 1, n - 1 */
		uint64_t nonce;
	} known[] = {
	    {10, 0, 0, {7, 3, 2}, 0x356060936bf79dde},
	    {1281167, 42, 7, {692003, 1059767, 442971}, 0xe1f381f650cfb288},
	    {1000000000, UINT64_MAX, 1, {727825782, 126725860, 97180459}, 0xae98fd91b4f34878},
	};
	struct plan plan;

	plan_init(&plan, PLAN_SEEDED, known[_i].n, known[_i].seed, zeros, false);
	ck_assert_int_eq(sample_at(&plan, known[_i].epoch, 0), known[_i].sample[0]);
	ck_assert_int_eq(sample_at(&plan, known[_i].epoch, 1), known[_i].sample[1]);
	ck_assert_int_eq(sample_at(&plan, known[_i].epoch, known[_i].n - 1), known[_i].sample[2]);
	ck_assert_uint_eq(plan_nonce(&plan, known[_i].epoch), known[_i].nonce);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, each_sample_has_one_place, 0, 7);
	tcase_add_test(t, epochs_seeds_and_versions_have_orders_of_their_own);
	tcase_add_test(t, nonces_differ_where_pixels_may);
	tcase_add_loop_test(t, plans_are_frozen, 0, 3);
}

int main(void)
{
	return suite_run("plan", add);
}
