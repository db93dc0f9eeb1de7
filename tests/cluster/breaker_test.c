/* SPDX-License-Identifier: Apache-2.0 */

/* The breaker: when it opens, when it tries, when it closes. */

#include <stdlib.h>

#include "cluster/breaker.h"
#include "tests/suite.h"

#define S UINT64_C(1000000000)
#define MS (S / 1000)
#define NOW (1000 * S)

static struct breaker breaker;

static void bad(unsigned n)
{
	while (n--)
		breaker_bad(&breaker, false, NOW, 0);
}

static void good(unsigned n)
{
	while (n--)
		breaker_good(&breaker, false);
}

START_TEST(test_row)
{
	breaker = (struct breaker){.opened = 0};
	ck_assert_int_eq(breaker_may(&breaker, NOW), BREAKER_GO_ASK);
	bad(2);
	good(1);
	bad(2);
	ck_assert_int_eq(breaker_may(&breaker, NOW), BREAKER_GO_ASK);
	bad(1);
	ck_assert_int_eq(breaker_may(&breaker, NOW), BREAKER_GO_NOT);
}
END_TEST

/* Five of twenty, and not five of twenty-one. */
START_TEST(test_of_twenty)
{
	for (unsigned between = 3; between <= 5; between++) {
		breaker = (struct breaker){.opened = 0};
		for (unsigned i = 0; i < 4; i++) {
			bad(1);
			good(between);
		}
		ck_assert_int_eq(breaker_may(&breaker, NOW), BREAKER_GO_ASK);
		bad(1);
		/* The first and the last of five are 4 * (between + 1) apart. */
		ck_assert_int_eq(breaker_may(&breaker, NOW), 4 * (between + 1) + 1 <= BREAKER_OF
								 ? BREAKER_GO_NOT
								 : BREAKER_GO_ASK);
	}
}
END_TEST

/* The first and the last time at which it may try after it was opened `opened` times, over all chances. */
static void check_wait(unsigned opened, uint64_t least, uint64_t most)
{
	static const uint32_t chances[] = {0, 1, UINT32_MAX / 2, UINT32_MAX};
	uint64_t lowest = UINT64_MAX, highest = 0;

	for (unsigned i = 0; i < sizeof(chances) / sizeof(chances[0]); i++) {
		breaker = (struct breaker){.state = BREAKER_TRIES, .opened = opened};
		breaker_bad(&breaker, true, NOW, chances[i]);
		ck_assert_int_eq(breaker.state, BREAKER_OPEN);
		if (breaker.try_ns < lowest)
			lowest = breaker.try_ns;
		if (breaker.try_ns > highest)
			highest = breaker.try_ns;
		ck_assert_int_eq(breaker_may(&breaker, breaker.try_ns - 1), BREAKER_GO_NOT);
		ck_assert_int_eq(breaker_may(&breaker, breaker.try_ns), BREAKER_GO_TRY);
	}
	ck_assert_uint_ge(lowest, NOW + least);
	ck_assert_uint_le(lowest, NOW + least + MS);
	ck_assert_uint_le(highest, NOW + most);
	ck_assert_uint_ge(highest, NOW + most - MS);
}

START_TEST(test_waits)
{
	check_wait(0, S, S + S / 2);
	check_wait(1, S, 2 * S);
	check_wait(2, 2 * S, 4 * S);
	check_wait(4, 8 * S, 16 * S);
	check_wait(5, 15 * S, 30 * S);
	check_wait(1000, 15 * S, 30 * S);
}
END_TEST

/* One tries at a time, and only what becomes of it matters. */
START_TEST(test_tries)
{
	uint64_t at;

	breaker = (struct breaker){.opened = 0};
	bad(3);
	at = breaker.try_ns;
	good(20);
	ck_assert_int_eq(breaker_may(&breaker, NOW), BREAKER_GO_NOT);
	ck_assert_int_eq(breaker_may(&breaker, at), BREAKER_GO_TRY);
	ck_assert_int_eq(breaker_may(&breaker, at), BREAKER_GO_NOT);
	good(5);
	bad(5);
	ck_assert_int_eq(breaker_may(&breaker, at + 60 * S), BREAKER_GO_NOT);
	breaker_bad(&breaker, true, at, 0);
	ck_assert_uint_eq(breaker.try_ns, at + 2 * S);
	at = breaker.try_ns;
	ck_assert_int_eq(breaker_may(&breaker, at), BREAKER_GO_TRY);
	breaker_good(&breaker, true);
	ck_assert_int_eq(breaker_may(&breaker, at), BREAKER_GO_ASK);
	/* It begins anew: what was before is forgotten. */
	bad(2);
	ck_assert_int_eq(breaker_may(&breaker, at), BREAKER_GO_ASK);
	bad(1);
	ck_assert_uint_eq(breaker.try_ns, NOW + S);
}
END_TEST

static void add(TCase *all)
{
	tcase_add_test(all, test_row);
	tcase_add_test(all, test_of_twenty);
	tcase_add_test(all, test_waits);
	tcase_add_test(all, test_tries);
}

int main(void)
{
	return suite_run("breaker", add);
}
