/* SPDX-License-Identifier: Apache-2.0 */

/* How fast a job is said to be: by what it gave back, by its own word before that, and never faster than it can be by now. */

#include "daemon/serve/pace.h"

#include "tests/suite.h"

#define S UINT64_C(1000000000)
#define CHUNK 64

START_TEST(before_the_first_chunk_is_back_its_word_counts)
{
	struct pace pace = {.rate = 0};

	pace_begin(&pace, S);
	ck_assert_double_eq(pace_rate(&pace, CHUNK, 10, S), 0);
	ck_assert_double_eq(pace_rate(&pace, CHUNK, 10, 3 * S), 5);
	ck_assert_double_eq(pace_rate(&pace, CHUNK, 1000, 3 * S), CHUNK / 2.0); /* it has no more */
}
END_TEST

START_TEST(what_is_given_back_is_its_rate_and_that_falls)
{
	struct pace pace = {.rate = 0};

	pace_begin(&pace, S);
	pace_moved(&pace, CHUNK, S + S / 2); /* a rate is of a second at least */
	pace_moved(&pace, CHUNK, 3 * S);
	ck_assert_double_eq(pace_rate(&pace, CHUNK, 0, 3 * S), CHUNK);
	ck_assert_double_eq(pace_rate(&pace, CHUNK, 0, 3 * S + S / 2), CHUNK);
	ck_assert_double_eq(pace_rate(&pace, CHUNK, 0, 7 * S), CHUNK / 4.0);
}
END_TEST

START_TEST(who_takes_gives_back_or_delivers_moves)
{
	struct pace pace = {.rate = 0};

	pace_begin(&pace, S);
	ck_assert_uint_eq(pace_idle_ns(&pace, 3 * S), 2 * S);
	pace_said(&pace, 0, 3 * S);
	ck_assert_uint_eq(pace_idle_ns(&pace, 3 * S), 2 * S);
	pace_said(&pace, 7, 3 * S);
	ck_assert_uint_eq(pace_idle_ns(&pace, 4 * S), S);
	pace_moved(&pace, 0, 4 * S);
	ck_assert_uint_eq(pace_idle_ns(&pace, 4 * S), 0);
	ck_assert_uint_eq(pace_idle_ns(&pace, 3 * S), 0); /* looked at earlier than it moved */
	ck_assert_double_eq(pace_rate(&pace, CHUNK, 0, 4 * S), 0); /* and to take is no rate */
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, before_the_first_chunk_is_back_its_word_counts);
	tcase_add_test(tcase, what_is_given_back_is_its_rate_and_that_falls);
	tcase_add_test(tcase, who_takes_gives_back_or_delivers_moves);
}

int main(void)
{
	return suite_run("pace", add);
}
