/* SPDX-License-Identifier: Apache-2.0 */

/* When memory is given back under pressure, and taken again: the steps, and rules that hold for any sequence. */

#include <check.h>
#include <stdlib.h>

#include "base/philox.h"
#include "daemon/machine/pressure.h"
#include "tests/patience.h"

#define SECOND UINT64_C(1000000000)
#define BEGIN 1000 /* seconds: no clock stands at 0 */

static struct pressure_act look(struct pressure *pressure, uint64_t seconds, double some,
				double full)
{
	const struct pressure_look at = {(BEGIN + seconds) * SECOND, some, full, false};

	return pressure_step(pressure, &at);
}

START_TEST(caches_go_first)
{
	struct pressure pressure = {.level = PRESSURE_NONE};
	struct pressure_act act = look(&pressure, 0, 9.9, 4.9);

	ck_assert(!act.caches && !act.slots && !act.is_moved);
	ck_assert_int_eq(pressure.level, PRESSURE_NONE);
	act = look(&pressure, 1, 10, 0);
	ck_assert(act.caches && !act.slots && act.is_moved);
	ck_assert_int_eq(pressure.level, PRESSURE_CACHES);
	ck_assert_uint_eq(pressure.withheld, PRESSURE_EIGHTHS);
	act = look(&pressure, 2, 90, 0); /* what was given back cannot show yet */
	ck_assert(!act.caches && !act.slots && !act.is_moved);
	act = look(&pressure, 3, 12, 0);
	ck_assert(!act.caches && act.slots && act.is_moved);
	ck_assert_int_eq(pressure.level, PRESSURE_SLOTS);
	act = look(&pressure, 4, 12, 0);
	ck_assert(!act.slots);
	act = look(&pressure, 5, 12, 0); /* what became idle meanwhile */
	ck_assert(act.slots && !act.is_moved);
}
END_TEST

START_TEST(all_at_once_when_all_wait)
{
	struct pressure pressure = {.level = PRESSURE_NONE};
	struct pressure_act act = look(&pressure, 0, 40, 5);

	ck_assert(act.caches && act.slots && act.is_moved);
	ck_assert_int_eq(pressure.level, PRESSURE_SLOTS);
	pressure = (struct pressure){.level = PRESSURE_NONE};
	look(&pressure, 0, 40, 0);
	act = look(&pressure, 1, 40, 6);
	ck_assert(!act.caches && act.slots && act.is_moved);
}
END_TEST

START_TEST(the_kernel_may_call)
{
	struct pressure pressure = {.level = PRESSURE_NONE};
	const struct pressure_look called = {BEGIN * SECOND, 0, 0, true};
	struct pressure_act act = pressure_step(&pressure, &called);

	ck_assert(act.caches && !act.slots);
	ck_assert_int_eq(pressure.level, PRESSURE_CACHES);
}
END_TEST

/* Looks once a second from *at on, until the level or the share moves. */
static uint64_t calm_until_moved(struct pressure *pressure, uint64_t *at)
{
	const uint64_t from = *at;

	while (!look(pressure, ++*at, 0.5, 0).is_moved)
		ck_assert_uint_lt(*at - from, 1000);
	return *at - from;
}

START_TEST(it_is_taken_again_slowly)
{
	struct pressure pressure = {.level = PRESSURE_NONE};
	uint64_t at = 0;

	look(&pressure, at, 50, 50);
	ck_assert_uint_eq(calm_until_moved(&pressure, &at), 11); /* calm since the first look */
	ck_assert_int_eq(pressure.level, PRESSURE_CACHES);
	ck_assert_uint_eq(pressure.withheld, PRESSURE_EIGHTHS);
	for (unsigned left = PRESSURE_EIGHTHS; left-- > 0;) {
		ck_assert_int_eq(pressure.level, PRESSURE_CACHES);
		ck_assert_uint_eq(calm_until_moved(&pressure, &at), 10);
		ck_assert_uint_eq(pressure.withheld, left);
	}
	ck_assert_int_eq(pressure.level, PRESSURE_NONE);
	ck_assert(!look(&pressure, at + 100, 0, 0).is_moved);
}
END_TEST

/* Neither hard nor calm: nothing more is given back, and nothing taken again. */
START_TEST(between_nothing_moves)
{
	struct pressure pressure = {.level = PRESSURE_NONE};
	uint64_t at = 0;

	look(&pressure, at, 20, 0);
	for (at = 1; at < 500; at++)
		ck_assert(!look(&pressure, at, 5, 0).is_moved);
	ck_assert_int_eq(pressure.level, PRESSURE_CACHES);
	for (unsigned i = 0; i < 9; i++)
		ck_assert(!look(&pressure, at++, 0, 0).is_moved);
	look(&pressure, at++, 5, 0); /* calm has to last */
	ck_assert_uint_eq(calm_until_moved(&pressure, &at), 11);
}
END_TEST

/* Who takes it again too soon waits twice as long the next time. */
START_TEST(what_comes_back_makes_patient)
{
	struct pressure pressure = {.level = PRESSURE_NONE};
	uint64_t at = 0, patience = 10;

	look(&pressure, at, 20, 0);
	for (unsigned i = 0; i < 6; i++) {
		struct pressure_act act;

		calm_until_moved(&pressure, &at);
		ck_assert_uint_eq(pressure.withheld, PRESSURE_EIGHTHS - 1);
		ck_assert_uint_eq(calm_until_moved(&pressure, &at), patience);
		act = look(&pressure, ++at, 20, 0);
		ck_assert(act.caches && act.is_moved && !act.slots);
		ck_assert_uint_eq(pressure.withheld, PRESSURE_EIGHTHS);
		patience = patience < 160 ? 2 * patience : 160;
	}
	while (pressure.level != PRESSURE_NONE)
		calm_until_moved(&pressure, &at);
	look(&pressure, at + 6 * 160, 20, 0); /* long ago: as if it were the first time */
	at += 6 * 160;
	calm_until_moved(&pressure, &at);
	ck_assert_uint_eq(calm_until_moved(&pressure, &at), 10);
}
END_TEST

static void rules_hold(const struct pressure *before, const struct pressure *after,
		       struct pressure_act act, bool is_hard)
{
	ck_assert_uint_le(after->withheld, PRESSURE_EIGHTHS);
	ck_assert_int_eq(after->level == PRESSURE_NONE, after->withheld == 0);
	ck_assert(after->level != PRESSURE_SLOTS || after->withheld == PRESSURE_EIGHTHS);
	ck_assert_int_eq(act.is_moved,
			 before->level != after->level || before->withheld != after->withheld);
	ck_assert(is_hard || (after->level <= before->level &&
			      after->withheld <= before->withheld && !act.caches && !act.slots));
	ck_assert(!is_hard || after->withheld == PRESSURE_EIGHTHS);
	ck_assert(before->withheld - after->withheld <= 1 || after->withheld > before->withheld);
	ck_assert(!act.slots || after->level == PRESSURE_SLOTS);
	ck_assert(act.caches || after->withheld <= before->withheld);
}

START_TEST(rules_hold_for_any_sequence)
{
	struct pressure pressure = {.level = PRESSURE_NONE};
	struct philox_seq draws;
	uint64_t now_ns = BEGIN * SECOND;

	philox_seq_init(&draws, (uint64_t)_i, 0, 0);
	for (unsigned i = 0; i < 20000; i++) {
		const struct pressure before = pressure;
		struct pressure_look at = {.some = (double)philox_below(&draws, 30) / 2};
		bool is_long = philox_below(&draws, 8) == 0;

		now_ns += philox_below(&draws, (is_long ? 200 : 5) * SECOND);
		at.now_ns = now_ns;
		at.some = philox_below(&draws, 3) ? 0 : at.some;
		at.full = at.some * philox_unit(&draws);
		at.is_triggered = philox_below(&draws, 40) == 0;
		rules_hold(&before, &pressure, pressure_step(&pressure, &at),
			   at.is_triggered || at.some >= 10 || at.full >= 5);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pressure");
	TCase *tcase = tcase_create("pressure");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_S);
	tcase_add_test(tcase, caches_go_first);
	tcase_add_test(tcase, all_at_once_when_all_wait);
	tcase_add_test(tcase, the_kernel_may_call);
	tcase_add_test(tcase, it_is_taken_again_slowly);
	tcase_add_test(tcase, between_nothing_moves);
	tcase_add_test(tcase, what_comes_back_makes_patient);
	tcase_add_loop_test(tcase, rules_hold_for_any_sequence, 0, 8);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
