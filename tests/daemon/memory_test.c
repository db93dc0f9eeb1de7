/* SPDX-License-Identifier: Apache-2.0 */

/* The budget: what is used and kept of it, by whom, and what is left, which is never less than nothing. */

#include "daemon/tenant/memory.h"

#include "tests/suite.h"

START_TEST(parts_add_up)
{
	struct memory memory = {.budget = 100};
	struct memory_part one = {.used = 0}, other = {.used = 0};

	memory_account(&memory, &one, 30);
	memory_account(&memory, &other, 40);
	memory_keep(&memory, &one, 20);
	ck_assert_uint_eq(memory_left(&memory), 10);
	memory_account(&memory, &one, -30);
	memory_keep(&memory, &one, 5); /* in all, not more */
	ck_assert_uint_eq(one.used, 0);
	ck_assert_uint_eq(one.kept, 5);
	ck_assert_uint_eq(memory.used, 40);
	ck_assert_uint_eq(memory_left(&memory), 55);
}
END_TEST

START_TEST(a_budget_that_shrank_leaves_nothing)
{
	struct memory memory = {.budget = 100};
	struct memory_part one = {.used = 0};

	memory_account(&memory, &one, 80);
	memory_keep(&memory, &one, 10);
	memory.budget = 50;
	ck_assert_uint_eq(memory_left(&memory), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, parts_add_up);
	tcase_add_test(tcase, a_budget_that_shrank_leaves_nothing);
}

int main(void)
{
	return suite_run("memory", add);
}
