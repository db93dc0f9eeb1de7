/* SPDX-License-Identifier: Apache-2.0 */

/* When a value is fetched and when it is made: by what both took, and never without another look. */

#include <check.h>
#include <stdlib.h>

#include "base/base.h"
#include "sched/peering.h"
#include "tests/suite.h"

#define MANY 1000

static struct peering peering;
static struct peering_carry carry;
static struct point_cost file = {
    .samples = MANY, .work_us = 400, .read_us = 50, .read_cpu_us = 40, .bytes = 110e3};
static struct point_cost form = {
    .samples = MANY, .made = MANY, .work_us = 160, .make_us = 1400, .bytes = 140e3};

static struct peering_choice choose(double wire_us, uint64_t out, double cores)
{
	struct peering_choice choice;

	peering_init(&peering);
	for (unsigned i = 0; i < MANY; i++)
		peering_came(&peering, wire_us, 20, 140e3, out);
	peering_choose(&peering, &carry, &file, &form, cores, 4, &choice);
	return choice;
}

START_TEST(what_is_dear_to_make_is_fetched)
{
	const struct peering_choice choice = choose(20000, 100, 2);

	ck_assert(choice.is_worth);
	ck_assert_double_eq_tol(choice.make_us, (1400 + 160 + 40) / 2., 1);
	ck_assert_double_eq_tol(choice.fetch_us, 200, 1); /* the wire: one each 200 us */
}
END_TEST

START_TEST(what_comes_slower_than_it_is_made_is_made)
{
	const struct peering_choice choice = choose(20000, 10, 2);

	ck_assert(!choice.is_worth);
	ck_assert_double_eq_tol(choice.fetch_us, 2000, 10);
	ck_assert(choose(8500, 10, 2).is_worth); /* about as long: others have it then */
}
END_TEST

/* With many cores it is the source that is slow, or the wire. */
START_TEST(a_slow_source_is_no_cheap_one)
{
	file.read_us = 8000; /* four at once: one each 2 ms */
	ck_assert(choose(20000, 20, 64).is_worth);
	file.read_us = 50;
	ck_assert(!choose(20000, 20, 64).is_worth);
}
END_TEST

START_TEST(what_is_not_measured_is_asked_for)
{
	struct point_cost unknown = form;
	struct peering_choice choice;

	peering_init(&peering);
	peering_choose(&peering, &carry, &file, &form, 2, 4, &choice);
	ck_assert(choice.is_worth && choice.fetch_us < 0);
	unknown.made = 0;
	for (unsigned i = 0; i < MANY; i++)
		peering_came(&peering, 1e9, 20, 140e3, 1);
	peering_choose(&peering, &carry, &file, &unknown, 2, 4, &choice);
	ck_assert(choice.is_worth);
	peering_choose(&peering, &carry, &file, &form, 0, 4, &choice); /* no number is believed */
	ck_assert(choice.is_worth);
}
END_TEST

/* A wire that was slow once and is quick again is noticed. */
START_TEST(it_is_tried_again)
{
	struct peering_choice choice = choose(20000, 1, 2);
	unsigned asked = 0;

	ck_assert(!choice.is_worth);
	for (uint64_t turn = 0; turn < 400000 && !choice.is_worth; turn++) {
		if (!peering_asks(&choice, turn))
			continue;
		asked++;
		peering_came(&peering, 300, 20, 140e3, 1);
		peering_choose(&peering, &carry, &file, &form, 2, 4, &choice);
	}
	ck_assert(choice.is_worth);
	ck_assert_uint_lt(asked, 400000 / 16);
}
END_TEST

START_TEST(room_for_what_is_not_known)
{
	ck_assert_uint_ge(peering_room(0, 0, 1000), 1000);
	ck_assert_uint_ge(peering_room(150528, 110e3, 5000), 150528); /* pixels, of any file */
	ck_assert_uint_ge(peering_room(140e3, 110e3, 500000), 500000 * 14 / 11);
	ck_assert_uint_eq(peering_room(1e300, 1e-300, 500000), 0);
	ck_assert_uint_lt(peering_room(140e3, 110e3, 110000), 3 * 140000);
}
END_TEST

/* Of what the carrier used and carried in between; one that began anew says nothing of what was before. */
START_TEST(what_carrying_costs_is_measured)
{
	const uint64_t mib = UINT64_C(1) << 20;
	const double unknown = peering_carry_us(&carry);
	struct peering_choice dear;

	peering_carried(&carry, 1000, mib);
	ck_assert_double_eq(peering_carry_us(&carry), unknown);
	peering_carried(&carry, 1000000, 10 * mib);
	ck_assert_double_eq_tol(peering_carry_us(&carry), 100, 1);
	for (uint64_t i = 1; i <= 40; i++)
		peering_carried(&carry, 1000000 + i * 20000000, (10 + 10 * i) * mib);
	ck_assert_double_eq_tol(peering_carry_us(&carry), 2000, 1);
	peering_carried(&carry, 5, 0);
	ck_assert_double_eq_tol(peering_carry_us(&carry), 2000, 1);
	for (uint64_t i = 1; i <= 40; i++)
		peering_carried(&carry, i * 500000000, 10 * i * mib);
	dear = choose(300, 1, 2);
	ck_assert_double_eq_tol(dear.carry_us, 50000 * 140e3 / (double)mib, 50);
	ck_assert(!dear.is_worth);
	carry = (struct peering_carry){.bytes = 0};
	ck_assert(choose(300, 1, 2).is_worth);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, what_carrying_costs_is_measured);
	tcase_add_test(tcase, what_is_dear_to_make_is_fetched);
	tcase_add_test(tcase, what_comes_slower_than_it_is_made_is_made);
	tcase_add_test(tcase, a_slow_source_is_no_cheap_one);
	tcase_add_test(tcase, what_is_not_measured_is_asked_for);
	tcase_add_test(tcase, it_is_tried_again);
	tcase_add_test(tcase, room_for_what_is_not_known);
}

int main(void)
{
	return suite_run("peering", add);
}
