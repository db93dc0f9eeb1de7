/* SPDX-License-Identifier: Apache-2.0 */

/* A full store: the limit, the stable part that stays, who pushes out whom. */

#include "tests/storage/hold.h"

#include <stdlib.h>
#include <string.h>

#include "base/philox.h"
#include "tests/suite.h"

#define LIMIT (8 << 20)
#define SIZE 20000

static struct hold hold;

static void setup(void)
{
	hold_new(&hold, LIMIT);
	hold_open(&hold);
}

static void teardown(void)
{
	ck_assert_uint_le(hold_bytes(&hold, "cache.mdb") + hold_bytes(&hold, "cache.mdb-lock") +
			      hold_bytes(&hold, "cache.mdb-damaged"),
			  LIMIT);
	hold_remove(&hold);
}

/* Puts all samples that are not there, some at a time, as a reader does. Returns how many were taken. */
static unsigned put_all(struct store_group *group, uint64_t number, uint64_t n_samples, size_t size)
{
	unsigned taken = 0;

	for (uint64_t i = 0; i < n_samples; i++) {
		taken += hold_put(group, number, i, size);
		if (i % 16 == 15)
			hold_settle(&hold);
	}
	hold_settle(&hold);
	return taken;
}

static unsigned count(struct store_group *group, uint64_t n_samples)
{
	unsigned there = 0;

	for (uint64_t i = 0; i < n_samples; i++)
		there += hold_table(group, i) > 0;
	return there;
}

/* Of a dataset twice as large as the room, what was kept first stays: every epoch finds the same samples. */
START_TEST(test_a_stable_part_stays)
{
	const uint64_t n = 2 * LIMIT / SIZE;
	struct store_group *group = hold_group(&hold, 1, n);
	unsigned taken, there, hits = 0;

	taken = put_all(group, 1, n, SIZE);
	there = count(group, n);
	ck_assert_uint_eq(taken, there); /* nothing was deleted yet, so room is in one piece */
	/* a value of 20000 bytes has five pages; a 64th is for what is set aside, an eighth at most
	 * for the tree and its changes */
	ck_assert_uint_ge(there, LIMIT * 3 / 4 / (5 * 4096));
	for (unsigned epoch = 0; epoch < 3; epoch++) {
		for (uint64_t i = 0; i < n; i++)
			hits += hold_get(group, 1, i, SIZE) == 0;
		put_all(group, 1, n, SIZE);
		ck_assert_uint_le(count(group, n) - there, there / 50);
		there = count(group, n);
	}
	ck_assert_uint_ge(hits, there * 3 * 49 / 50);
	ck_assert_uint_eq(hold_state(&hold).evicted, 0);
	ck_assert_int_eq(hold_state(&hold).mode, STORE_ON);
	store_group_close(group);
}
END_TEST

START_TEST(test_a_group_in_use_keeps_its_own)
{
	const uint64_t n = LIMIT / SIZE;
	struct store_group *first = hold_group(&hold, 1, n), *second = hold_group(&hold, 2, n);
	unsigned there;

	put_all(first, 1, n, SIZE);
	there = count(first, n);
	store_group_worth(second, 1e6);
	put_all(second, 2, n, SIZE);
	ck_assert_uint_eq(count(first, n), there);
	ck_assert_uint_eq(hold_state(&hold).evicted, 0);
	store_group_close(first);
	store_group_close(second);
}
END_TEST

/* One that is in use, but that nobody brings from any more, makes room for any other, and its table says so. */
START_TEST(test_a_group_whose_users_yield_makes_room)
{
	const uint64_t n = LIMIT / SIZE;
	struct store_group *first = hold_group(&hold, 1, n), *again = hold_group(&hold, 1, n),
			   *second = hold_group(&hold, 2, n);
	unsigned there;

	store_group_worth(first, 1e6);
	put_all(first, 1, n, SIZE);
	there = count(first, n);
	store_group_yield(first, true); /* the other user does not */
	put_all(second, 2, n, SIZE);
	ck_assert_uint_eq(count(first, n), there);
	store_group_yield(again, true);
	put_all(second, 2, n, SIZE);
	ck_assert_uint_ge(count(second, n), there * 9 / 10);
	ck_assert_uint_eq(hold_state(&hold).evicted, there - count(first, n));
	ck_assert_uint_eq(hold_state(&hold).values, count(first, n) + count(second, n));
	for (uint64_t i = 0; i < n; i++)
		ck_assert_int_eq(hold_get(first, 1, i, SIZE) == 0, hold_table(first, i) > 0);
	store_group_yield(first, false); /* what is left stays, and it may be filled again */
	store_group_yield(again, false);
	there = count(first, n);
	put_all(second, 2, n, SIZE);
	ck_assert_uint_eq(count(first, n), there);
	store_group_close(again);
	store_group_close(first);
	store_group_close(second);
}
END_TEST

/* Puts group 2 of this worth into a store that is full of group 1. Returns how many of 1 stay. */
static unsigned push(double worth_of_first, double worth_of_second, bool is_pinned)
{
	const uint64_t n = LIMIT / SIZE;
	const struct hash_id id = hold_id(1);
	struct store_group *group = hold_group(&hold, 1, n);
	unsigned there;

	store_group_worth(group, worth_of_first);
	put_all(group, 1, n, SIZE);
	if (is_pinned)
		ck_assert_int_eq(store_pin(hold.store, &id, true), 0);
	store_group_close(group);
	group = hold_group(&hold, 2, n);
	store_group_worth(group, worth_of_second);
	put_all(group, 2, n, SIZE);
	for (uint64_t i = 0; i < n; i++)
		ck_assert_int_le(hold_get(group, 2, i, SIZE), STORE_E_NONE);
	there = count(group, n);
	store_group_close(group);
	group = hold_group(&hold, 1, n);
	ck_assert_uint_eq(hold_state(&hold).values, there + count(group, n));
	there = count(group, n);
	for (uint64_t i = 0; i < n; i++)
		ck_assert_int_le(hold_get(group, 1, i, SIZE), STORE_E_NONE);
	store_group_close(group);
	return there;
}

START_TEST(test_the_better_one_pushes_out)
{
	ck_assert_uint_le(push(10, 20, false), LIMIT / SIZE / 10);
	ck_assert_uint_gt(hold_state(&hold).evicted, LIMIT / SIZE / 2);
}
END_TEST

START_TEST(test_the_worse_one_does_not)
{
	ck_assert_uint_ge(push(20, 10, false), LIMIT / SIZE / 2);
	ck_assert_uint_eq(hold_state(&hold).evicted, 0);
}
END_TEST

START_TEST(test_nobody_pushes_out_what_is_pinned)
{
	ck_assert_uint_ge(push(10, 20, true), LIMIT / SIZE / 2);
	ck_assert_uint_eq(hold_state(&hold).evicted, 0);
}
END_TEST

/* The same dataset in a newer version: the old one goes, whatever it was worth, and before others. */
START_TEST(test_what_is_superseded_goes_first)
{
	const uint64_t n = LIMIT / SIZE / 2;
	const struct hash_id old_id = hold_id(11), new_id = hold_id(12);
	struct store_group *bystander = hold_group(&hold, 5, n), *group;
	unsigned there;

	store_group_worth(bystander, 1);
	put_all(bystander, 5, n / 2, SIZE);
	store_group_close(bystander);
	ck_assert_int_eq(store_group_open(hold.store, &old_id, "{\"dataset\":\"/a\"}", n, &group),
			 0);
	store_group_worth(group, 1e6);
	put_all(group, 11, n, SIZE);
	store_group_close(group);
	ck_assert_int_eq(store_group_open(hold.store, &new_id, "{\"dataset\":\"/a\"}", n, &group),
			 0);
	store_group_worth(group, 5);
	put_all(group, 12, n / 2, SIZE);
	ck_assert_uint_ge(count(group, n), n / 2 - n / 20);
	store_group_close(group);
	bystander = hold_group(&hold, 5, n);
	ck_assert_uint_eq(count(bystander, n), n / 2);
	store_group_close(bystander);
	ck_assert_int_eq(store_group_open(hold.store, &old_id, "{\"dataset\":\"/a\"}", n, &group),
			 0);
	there = count(group, n);
	ck_assert_uint_lt(there, n);
	ck_assert_uint_eq(hold_state(&hold).evicted, n - there);
	store_group_close(group);
}
END_TEST

/* Values of all sizes come and go for long: free pages in pieces never make the file pass the map. */
START_TEST(test_fragments)
{
	const uint64_t n = 400;
	struct philox_seq seq;

	philox_seq_init(&seq, 1, 2, 3);
	for (unsigned turn = 0; turn < 12; turn++) {
		struct store_group *group = hold_group(&hold, turn, n);

		store_group_worth(group, turn + 1);
		for (uint64_t i = 0; i < n; i++) {
			hold_put(group, turn, i, 1 + philox_below(&seq, i % 8 ? 5000 : 150000));
			if (i % 32 == 31)
				hold_settle(&hold);
		}
		hold_settle(&hold);
		for (uint64_t i = 0; i < n; i += 7)
			hold_get(group, turn, i, 0);
		ck_assert_uint_gt(count(group, n), n / 4);
		store_group_close(group);
		ck_assert_uint_le(hold_state(&hold).bytes_file, LIMIT);
	}
	ck_assert_uint_eq(hold_state(&hold).write_errors + hold_state(&hold).set_aside, 0);
}
END_TEST

START_TEST(test_another_limit)
{
	const uint64_t n = LIMIT / SIZE;
	struct store_group *group = hold_group(&hold, 1, 2 * n);
	unsigned there;

	put_all(group, 1, n, SIZE);
	there = count(group, n);
	store_group_close(group);
	hold_close(&hold);
	hold.settings.limit = 2 * LIMIT; /* all of it, and room for more */
	hold_open(&hold);
	group = hold_group(&hold, 1, 2 * n);
	ck_assert_uint_eq(count(group, n), there);
	put_all(group, 1, 2 * n, SIZE);
	ck_assert_uint_ge(count(group, 2 * n), there * 3 / 2);
	store_group_close(group);
	hold_close(&hold);
	hold.settings.limit = LIMIT; /* less than the file: begun anew */
	hold_open(&hold);
	ck_assert_uint_eq(hold_state(&hold).values, 0);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 1);
	ck_assert_uint_le(hold_state(&hold).bytes_file, LIMIT);
}
END_TEST

/* Values that are replaced again and again in a store that is full: most stay what is newest, and those that
 * were not taken leave room. */
START_TEST(test_replaced_in_a_full_store)
{
	const uint64_t n = 2 * LIMIT / SIZE;
	struct store_group *group = hold_group(&hold, 1, n);
	unsigned full;

	put_all(group, 1, n, SIZE);
	full = count(group, n);
	for (unsigned turn = 1; turn < 6; turn++) {
		const size_t size = SIZE + turn;

		for (uint64_t i = 0; i < n; i++) {
			const bool is_taken = hold_replace(group, 1, i, size);

			ck_assert(hold_table(group, i) == 0 || is_taken);
			if (i % 16 == 15)
				hold_settle(&hold);
		}
		hold_settle(&hold);
		ck_assert_uint_ge(count(group, n), full / 2);
		for (uint64_t i = 0; i < n; i++)
			ck_assert(hold_table(group, i) == 0 || hold_get(group, 1, i, size) == 0);
	}
	ck_assert_uint_eq(hold_state(&hold).set_aside + hold_state(&hold).damaged, 0);
	store_group_close(group);
}
END_TEST

static void add(TCase *room)
{
	tcase_add_checked_fixture(room, setup, teardown);
	tcase_add_test(room, test_a_stable_part_stays);
	tcase_add_test(room, test_replaced_in_a_full_store);
	tcase_add_test(room, test_a_group_in_use_keeps_its_own);
	tcase_add_test(room, test_a_group_whose_users_yield_makes_room);
	tcase_add_test(room, test_the_better_one_pushes_out);
	tcase_add_test(room, test_the_worse_one_does_not);
	tcase_add_test(room, test_nobody_pushes_out_what_is_pinned);
	tcase_add_test(room, test_what_is_superseded_goes_first);
	tcase_add_test(room, test_fragments);
	tcase_add_test(room, test_another_limit);
}

int main(void)
{
	return suite_run("store_room", add);
}
