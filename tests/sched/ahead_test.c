/* SPDX-License-Identifier: Apache-2.0 */

/* When forms are made ahead of need: never while anything speaks against it, once each, and less where others want the processors. */

#include <check.h>
#include <stdlib.h>

#include "sched/ahead.h"
#include "tests/suite.h"

#define SECOND UINT64_C(1000000000)

static const struct ahead_look good = {.has_peers = true,
				       .is_worth = true,
				       .is_whole = true,
				       .has_room = true,
				       .of = 2,
				       .samples = 100,
				       .now_ns = SECOND};

START_TEST(whatever_speaks_against_it_is_said)
{
	struct ahead ahead = {.of = 2};
	struct ahead_look look = good;

	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_MAKES);
	look.is_busy = true;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_BUSY);
	look.has_room = false;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_FULL);
	look.is_whole = false;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_IN_PART);
	look.is_worth = false;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_NOT_WORTH);
	look.has_peers = false;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_ALONE);
	ck_assert_int_eq(ahead.state, AHEAD_ALONE);
	ck_assert_str_eq(ahead_name(AHEAD_ALONE), "alone");
	ck_assert_str_eq(ahead_name(AHEAD_MAKES), "makes");
}
END_TEST

/* Another form, or other nodes: begun anew. */
START_TEST(all_is_gone_through_once)
{
	struct ahead ahead = {.of = 2};
	struct ahead_look look = good;

	ahead_look(&ahead, &look);
	ahead.next = look.samples;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_DONE);
	look.is_busy = true;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_DONE);
	look = good;
	look.of++;
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_MAKES);
	ck_assert_uint_eq(ahead.next, 0);
}
END_TEST

START_TEST(who_runs_late_rests_ever_longer)
{
	struct ahead ahead = {.of = 2};
	struct ahead_look look = good;
	uint64_t before = 0;

	for (unsigned i = 0; i < 20; i++) {
		ahead_ended(&ahead, 50000, 3000, look.now_ns);
		ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_RESTS);
		ck_assert_uint_ge(ahead.rest_ns, before);
		before = ahead.rest_ns;
		look.now_ns = ahead.until_ns;
		ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_MAKES);
	}
	ck_assert_uint_le(ahead.rest_ns, 10 * SECOND);
	ck_assert_uint_ge(ahead.rest_ns, SECOND);
	ahead_ended(&ahead, 3500, 3000, look.now_ns);
	ck_assert_uint_eq(ahead.rest_ns, 0);
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_MAKES);
	ahead_ended(&ahead, 1500, 0, look.now_ns); /* nothing was made: who was woken late */
	ck_assert_int_eq(ahead_look(&ahead, &look), AHEAD_MAKES);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, whatever_speaks_against_it_is_said);
	tcase_add_test(tcase, all_is_gone_through_once);
	tcase_add_test(tcase, who_runs_late_rests_ever_longer);
}

int main(void)
{
	return suite_run("ahead", add);
}
