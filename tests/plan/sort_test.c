/* SPDX-License-Identifier: Apache-2.0 */

/* Sorting by digits, against qsort(). */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/philox.h"
#include "plan/sort.h"
#include "tests/suite.h"

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void check(uint64_t *values, size_t n)
{
	uint64_t *expected = malloc((n + 1) * sizeof(*expected));
	uint64_t *spare = malloc((n + 1) * sizeof(*spare));

	ck_assert(expected && spare);
	memcpy(expected, values, n * sizeof(*expected));
	qsort(expected, n, sizeof(*expected), compare);
	sort_values(values, spare, n);
	for (size_t i = 0; i < n; i++)
		ck_assert_uint_eq(values[i], expected[i]);
	free(expected);
	free(spare);
}

/* Of values below 2^bits. */
START_TEST(values_are_sorted)
{
	static uint64_t values[5000];
	struct philox_seq random;

	philox_seq_init(&random, (uint64_t)_i, 0, 0);
	for (size_t n = 0; n <= BASE_ARRAY_LEN(values); n = 3 * n + 1) {
		for (size_t i = 0; i < n; i++)
			values[i] = _i ? philox_below(&random, UINT64_MAX) >> (64 - _i) : 0;
		check(values, n);
		check(values, n); /* sorted ones */
		for (size_t i = 0; i < n; i++)
			values[i] = ~values[i];
		check(values, n);
	}
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, values_are_sorted, 0, 65);
}

int main(void)
{
	return suite_run("sort", add);
}
