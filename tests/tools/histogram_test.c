/* SPDX-License-Identifier: Apache-2.0 */

/* Buckets have no gaps, and a quantile is as near as the header promises. */

#include "tools/histogram.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

START_TEST(buckets_are_in_order_and_near)
{
	unsigned last = 0;

	for (uint64_t ns = 0; ns < UINT64_C(1) << 43; ns += 1 + ns / 97) {
		unsigned bucket = histogram_bucket(ns);
		double middle = (double)histogram_middle(bucket);

		ck_assert_uint_lt(bucket, HISTOGRAM_BUCKETS);
		ck_assert_uint_ge(bucket, last);
		ck_assert_uint_le(bucket - last, 1 + last / 8);
		if (ns < UINT64_C(1) << HISTOGRAM_TOP)
			ck_assert_msg(middle >= (double)ns * 0.984 - 0.5 &&
					  middle <= (double)ns * 1.016 + 0.5,
				      "%llu ns is shown as %f", (unsigned long long)ns, middle);
		last = bucket;
	}
	ck_assert_uint_eq(last, HISTOGRAM_BUCKETS - 1);
}
END_TEST

START_TEST(neighbours_touch)
{
	for (uint64_t ns = 1; ns < 100000; ns++)
		ck_assert_uint_le(histogram_bucket(ns) - histogram_bucket(ns - 1), 1);
	for (unsigned shift = 6; shift < HISTOGRAM_TOP; shift++) {
		uint64_t ns = UINT64_C(1) << shift;

		ck_assert_uint_eq(histogram_bucket(ns), histogram_bucket(ns - 1) + 1);
	}
}
END_TEST

START_TEST(quantiles_are_right)
{
	static struct histogram histogram;
	uint64_t value;

	memset(&histogram, 0, sizeof(histogram));
	ck_assert_uint_eq(histogram_quantile(&histogram, 0.5), 0);
	for (uint64_t i = 1; i <= 10000; i++)
		histogram_add(&histogram, i * 100);
	ck_assert_uint_eq(histogram.count, 10000);
	value = histogram_quantile(&histogram, 0.5);
	ck_assert(value > 490000 && value < 510000);
	value = histogram_quantile(&histogram, 0.99);
	ck_assert(value > 970000 && value < 1010000);
	ck_assert_uint_le(histogram_quantile(&histogram, 0), 102);
	ck_assert_uint_ge(histogram_quantile(&histogram, 1), 984000);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, buckets_are_in_order_and_near);
	tcase_add_test(tcase, neighbours_touch);
	tcase_add_test(tcase, quantiles_are_right);
}

int main(void)
{
	return suite_run("histogram", add);
}
