/* SPDX-License-Identifier: Apache-2.0 */

/* What a job has waited for lately: windows, the current wait, and clocks that jump. */

#include "daemon/serve/waits.h"
#include "tests/suite.h"

#include <stdlib.h>

#define S UINT64_C(1000000000)
#define BEGIN (1000 * S)

static struct waits waits;
static struct waits_view view;

static void note_late(double at_s, enum layout_stage stage, bool is_late)
{
	waits_note(&waits, stage, is_late, BEGIN + (uint64_t)(at_s * (double)S));
}

static void note(double at_s, enum layout_stage stage)
{
	note_late(at_s, stage, false);
}

static void look(double at_s)
{
	waits_look(&waits, BEGIN + (uint64_t)(at_s * (double)S), &view);
}

static void setup(void)
{
	waits_init(&waits, BEGIN);
}

START_TEST(by_stage)
{
	look(0);
	ck_assert_uint_eq(view.window_ns, 0);
	note(1, LAYOUT_STAGE_READ);
	note(3, LAYOUT_STAGE_DECODE);
	note(4, LAYOUT_STAGE_NONE);
	look(6);
	ck_assert_uint_eq(view.window_ns, 6 * S);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_READ], 2 * S);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_DECODE], 1 * S);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_SLOT], 0);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_NONE], 0); /* no wait is none */
	ck_assert_uint_eq(view.waiting_ns, 0);
}
END_TEST

START_TEST(the_current_wait)
{
	note(1, LAYOUT_STAGE_READ);
	note(3, LAYOUT_STAGE_DECODE); /* the same wait, for something else */
	look(5);
	ck_assert_uint_eq(view.waiting_ns, 4 * S);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_DECODE], 2 * S);
	look(6); /* a look changes nothing */
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_DECODE], 3 * S);
	note(7, LAYOUT_STAGE_NONE);
	note(8, LAYOUT_STAGE_SLOT);
	look(8.5);
	ck_assert_uint_eq(view.waiting_ns, S / 2);
}
END_TEST

START_TEST(what_was_long_ago_goes)
{
	note(0, LAYOUT_STAGE_READ);
	note(9, LAYOUT_STAGE_DECODE);
	note(10, LAYOUT_STAGE_NONE); /* the end of a window */
	look(15);
	ck_assert_uint_eq(view.window_ns, 15 * S);
	ck_assert_uint_eq(view.all_ns[LAYOUT_STAGE_READ], 9 * S);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_READ], 9 * S);
	note(20, LAYOUT_STAGE_NONE);
	look(21);
	ck_assert_uint_eq(view.window_ns, 11 * S);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_READ], 0);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_DECODE], 0);
}
END_TEST

START_TEST(a_long_wait_is_no_more_than_a_window)
{
	note(2, LAYOUT_STAGE_DECODE);
	look(1002);
	ck_assert_uint_eq(view.waiting_ns, 1000 * S);
	ck_assert_uint_eq(view.window_ns, WAITS_WINDOW_NS);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_DECODE], WAITS_WINDOW_NS);
	note(1002, LAYOUT_STAGE_NONE);
	look(1012); /* and is forgotten as any other */
	ck_assert_uint_le(view.by_stage[LAYOUT_STAGE_DECODE], WAITS_WINDOW_NS);
	look(1032);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_DECODE], 0);
}
END_TEST

START_TEST(a_clock_that_goes_back)
{
	note(5, LAYOUT_STAGE_READ);
	note(4, LAYOUT_STAGE_DECODE);
	look(3);
	ck_assert_uint_eq(view.window_ns, 5 * S);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_READ], 0);
	ck_assert_uint_eq(view.waiting_ns, 0);
	look(6);
	ck_assert_uint_eq(view.by_stage[LAYOUT_STAGE_DECODE], S);
}
END_TEST

/* From when it is known to be late until it is there, however long that is. */
START_TEST(late_samples)
{
	note(1, LAYOUT_STAGE_READ);
	note_late(2, LAYOUT_STAGE_READ, true);
	note_late(4, LAYOUT_STAGE_DECODE, true);
	look(104);
	ck_assert_uint_eq(view.late_ns, 102 * S);
	note(105, LAYOUT_STAGE_NONE);
	note_late(106, LAYOUT_STAGE_NONE, true); /* who does not wait is not kept by one */
	note(107, LAYOUT_STAGE_DECODE);
	look(110);
	ck_assert_uint_eq(view.late_ns, 103 * S);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, by_stage);
	tcase_add_test(tcase, the_current_wait);
	tcase_add_test(tcase, what_was_long_ago_goes);
	tcase_add_test(tcase, a_long_wait_is_no_more_than_a_window);
	tcase_add_test(tcase, a_clock_that_goes_back);
	tcase_add_test(tcase, late_samples);
}

int main(void)
{
	return suite_run("waits", add);
}
