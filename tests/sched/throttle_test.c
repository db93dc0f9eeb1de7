/* SPDX-License-Identifier: Apache-2.0 */

/* The limit of so much a second, by a clock of our own: the mean is the rate, whatever the size of pieces and the steps of time. */

#include "sched/throttle.h"

#include <math.h>

#include "base/base.h"
#include "tests/suite.h"

#define S UINT64_C(1000000000)

static const struct {
	double rate, size;
	uint64_t step_ns;
} ways[] = {
    {1e6, 1e4, S / 100}, {1e6, 1e4, S / 2},      {1e6, 3e6, S / 100}, /* a piece of three seconds */
    {1e6, 1, S / 1000},  {2e8, 110000, S / 100}, {64e3, 7e5, S / 3},
};

/* Taken when it is there: never more than the bound, and all of the rate where it holds what a step brings. */
START_TEST(the_mean_is_the_rate)
{
	const double rate = ways[_i].rate, size = ways[_i].size;
	const double step = rate * (double)ways[_i].step_ns / 1e9;
	struct throttle bucket = {.level = 0};
	uint64_t now_ns = 5 * S;
	const uint64_t end_ns = now_ns + 100 * S;
	double taken = 0;

	for (; now_ns < end_ns; now_ns += ways[_i].step_ns) {
		throttle_look(&bucket, rate, now_ns);
		for (uint32_t n = throttle_room(&bucket, size, 0); n > 0; n--) {
			throttle_take(&bucket, size, INFINITY);
			taken += size;
		}
		ck_assert_double_le(taken,
				    rate * ((double)(now_ns - 5 * S) / 1e9 + 0.1) + size + 1e-3);
	}
	if (step <= rate * 0.1)
		ck_assert_double_ge(taken, rate * 100 - step - size);
}
END_TEST

START_TEST(what_is_under_way_counts)
{
	struct throttle bucket = {.level = 0};

	throttle_look(&bucket, 1e6, S);
	ck_assert_uint_eq(throttle_room(&bucket, 1e4, 0), 10);
	ck_assert_uint_eq(throttle_room(&bucket, 1e4, 4), 6);
	ck_assert_uint_eq(throttle_room(&bucket, 1e4, 10), 0);
	ck_assert_uint_eq(throttle_room(&bucket, 1e7, 0), 1); /* larger than the bucket */
	ck_assert_uint_eq(throttle_room(&bucket, 1e7, 1), 0);
	ck_assert_uint_eq(throttle_wait_ns(&bucket), 0);
}
END_TEST

START_TEST(debts_are_waited_for)
{
	struct throttle bucket = {.level = 0};
	uint64_t wait_ns;

	throttle_look(&bucket, 1e6, S);
	throttle_take(&bucket, 2.1e6, INFINITY);
	ck_assert_uint_eq(throttle_room(&bucket, 1, 0), 0);
	wait_ns = throttle_wait_ns(&bucket);
	ck_assert(wait_ns >= 2 * S && wait_ns < 2 * S + S / 1000);
	throttle_look(&bucket, 1e6, S + wait_ns - S / 1000);
	ck_assert_uint_eq(throttle_room(&bucket, 1, 0), 0);
	throttle_look(&bucket, 1e6, S + wait_ns + S / 1000);
	ck_assert_uint_gt(throttle_room(&bucket, 1, 0), 0);
}
END_TEST

/* What others wanted too is owed up to a bound only; what was owed before stays. */
START_TEST(debts_of_others_are_bounded)
{
	struct throttle bucket = {.level = 0};

	throttle_look(&bucket, 1e6, S);
	for (unsigned i = 0; i < 100; i++)
		throttle_take(&bucket, 1e6, 1e5);
	ck_assert_uint_le(throttle_wait_ns(&bucket), S / 10 + 1);
	throttle_take(&bucket, 1e6, INFINITY);
	throttle_take(&bucket, 1e6, 1e5);
	ck_assert_uint_gt(throttle_wait_ns(&bucket), S);
	ck_assert_uint_lt(throttle_wait_ns(&bucket), 2 * S);
}
END_TEST

/* Of what is read for both each pays a half, and it goes on while one may: larger pieces than either has in a
 * second come no faster than the sum of both. */
START_TEST(two_limits_make_a_sum)
{
	const double size = 3e6;
	struct throttle one = {.level = 0}, other = {.level = 0};
	double taken = 0;

	for (uint64_t now_ns = S; now_ns < 101 * S; now_ns += S / 100) {
		throttle_look(&one, 1e6, now_ns);
		throttle_look(&other, 1e6, now_ns);
		if (!throttle_room(&one, size / 2, 0) && !throttle_room(&other, size / 2, 0))
			continue;
		throttle_take(&one, size / 2, 1e7);
		throttle_take(&other, size / 2, 1e7);
		taken += size;
	}
	ck_assert_double_le(taken, 2e8 + size + 2e5);
	ck_assert_double_ge(taken, 2e8 - 2 * size);
}
END_TEST

/* A debt is of so many bytes when the rate is raised, and of so long a time when it is lowered. */
START_TEST(debts_outlive_no_rate)
{
	struct throttle bucket = {.level = 0};

	throttle_look(&bucket, 1e6, S);
	throttle_take(&bucket, 2.1e6, INFINITY);
	throttle_look(&bucket, 1e3, S);
	ck_assert_uint_le(throttle_wait_ns(&bucket), 2 * S + S / 1000);
	throttle_look(&bucket, 1e6, S);
	ck_assert_uint_le(throttle_wait_ns(&bucket), S / 100);
}
END_TEST

/* A clock that stands still or goes back, and another rate. */
START_TEST(it_may_change)
{
	struct throttle bucket = {.level = 0};

	throttle_look(&bucket, 1e6, 10 * S);
	throttle_take(&bucket, 1e5, INFINITY);
	throttle_look(&bucket, 1e6, 10 * S);
	throttle_look(&bucket, 1e6, 9 * S);
	ck_assert_uint_eq(throttle_room(&bucket, 1, 0), 0);
	throttle_look(&bucket, 1e9, 11 * S); /* a second at the old one */
	ck_assert_double_eq_tol(bucket.level, 1e6, 1);
	throttle_look(&bucket, 1e3, 20 * S);
	ck_assert_double_le(bucket.level, 1e2);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, the_mean_is_the_rate, 0, BASE_ARRAY_LEN(ways));
	tcase_add_test(tcase, what_is_under_way_counts);
	tcase_add_test(tcase, debts_are_waited_for);
	tcase_add_test(tcase, debts_of_others_are_bounded);
	tcase_add_test(tcase, two_limits_make_a_sum);
	tcase_add_test(tcase, debts_outlive_no_rate);
	tcase_add_test(tcase, it_may_change);
}

int main(void)
{
	return suite_run("bucket", add);
}
