/* SPDX-License-Identifier: Apache-2.0 */

/* What is known of chunks in production says by itself which is the next one, and what is under way. */

#include "daemon/serve/fill_state.h"
#include "tests/suite.h"

static struct fill fills[LAYOUT_MAX_ROWS];

/* Begun in another order than that of their places. */
static void begin(void)
{
	fills[0] = (struct fill){
	    .used = true, .row = 4, .slot = 7, .started_ns = 30, .variants = 1, .fed = 10};
	fills[1] = (struct fill){.row = 5, .slot = 8, .started_ns = 5, .fed = 64}; /* over */
	fills[2] = (struct fill){.used = true,
				 .row = 6,
				 .slot = 9,
				 .started_ns = 10,
				 .variants = 3,
				 .fed = 20,
				 .finished = 5,
				 .again = 3,
				 .watermark = 4};
}

START_TEST(the_oldest_is_next)
{
	const struct fill *next;

	begin();
	ck_assert_uint_eq(fill_active(fills), 2);
	next = fill_next(fills, NULL);
	ck_assert_ptr_eq(next, &fills[2]);
	next = fill_next(fills, next);
	ck_assert_ptr_eq(next, &fills[0]);
	ck_assert_ptr_null(fill_next(fills, next));
}
END_TEST

START_TEST(what_is_over_is_not_found)
{
	begin();
	ck_assert_ptr_eq(fill_of_slot(fills, 9), &fills[2]);
	ck_assert_ptr_null(fill_of_slot(fills, 8));
	ck_assert_uint_eq(fill_variants(fills, 6), 3);
	ck_assert_uint_eq(fill_variants(fills, 5), 0);
}
END_TEST

/* What is to be queued once more is not under way, nor is what was never queued. */
START_TEST(what_ended_is_not_under_way)
{
	begin();
	ck_assert_uint_eq(fill_under_way(fills), 10 + 20 - 5 - 3);
	fills[2].finished = 20;
	ck_assert_uint_eq(fill_under_way(fills), 10); /* and not less than none */
}
END_TEST

START_TEST(a_batch_is_of_use_when_it_is_whole)
{
	begin();
	ck_assert(fill_is_of_use(fills, 9, 4));
	ck_assert(!fill_is_of_use(fills, 9, 5));
	fills[2].after_hole = 1; /* what is before a hole is a batch of its own */
	ck_assert(fill_is_of_use(fills, 9, 5));
	ck_assert(fill_is_of_use(fills, 8, 1000)); /* all of it is there */
}
END_TEST

START_TEST(those_that_were_watched_end)
{
	begin();
	ck_assert(!fill_is_watched(fills));
	fill_watch(fills);
	fills[1].used = true; /* begun since */
	fills[0].used = false;
	ck_assert(fill_is_watched(fills));
	fills[2].used = false;
	ck_assert(!fill_is_watched(fills));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_oldest_is_next);
	tcase_add_test(tcase, what_is_over_is_not_found);
	tcase_add_test(tcase, what_ended_is_not_under_way);
	tcase_add_test(tcase, a_batch_is_of_use_when_it_is_whole);
	tcase_add_test(tcase, those_that_were_watched_end);
}

int main(void)
{
	return suite_run("fill_state", add);
}
