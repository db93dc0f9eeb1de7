/* SPDX-License-Identifier: Apache-2.0 */

/* The store with one user of it: values, tables, what stays, what a full store does, what is shown. */

#include "tests/storage/hold.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LIMIT (16 << 20)

static struct hold hold;

static void setup(void)
{
	hold_new(&hold, LIMIT);
	hold_open(&hold);
}

static void teardown(void)
{
	hold_remove(&hold);
}

static const size_t sizes[] = {1, 7, 8, 100, 2000, 2040, 4000, 4072, 4073, 4096, 65536, 100001};

START_TEST(test_round_trip)
{
	struct store_group *group = hold_group(&hold, 1, 100);

	for (size_t i = 0; i < BASE_ARRAY_LEN(sizes); i++) {
		ck_assert_int_eq(hold_get(group, 1, i, 0), STORE_E_NONE);
		ck_assert(hold_put(group, 1, i, sizes[i]));
	}
	hold_settle(&hold);
	for (unsigned turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < BASE_ARRAY_LEN(sizes); i++) {
			ck_assert_uint_eq(hold_table(group, i), sizes[i]);
			ck_assert_int_eq(hold_get(group, 1, i, sizes[i]), 0);
			ck_assert(!hold_put(group, 1, i, sizes[i])); /* is there */
		}
		store_group_close(group);
		hold_reopen(&hold);
		group = hold_group(&hold, 1, 100);
	}
	ck_assert_uint_eq(hold_state(&hold).values, BASE_ARRAY_LEN(sizes));
	store_group_close(group);
}
END_TEST

START_TEST(test_edges)
{
	struct store_group *group = hold_group(&hold, 1, 10), *other = hold_group(&hold, 2, 10);
	const struct hash_id id = hold_id(3);
	uint8_t small[8];
	size_t size;

	ck_assert(!hold_put(group, 1, 10, 5)); /* no such sample */
	ck_assert(!hold_put(group, 1, UINT64_MAX, 5));
	ck_assert(!store_put(group, 0, small, 0));
	ck_assert(!hold_put(group, 1, 0, LIMIT)); /* one too big */
	ck_assert(hold_put(group, 1, 9, 9));
	hold_settle(&hold);
	ck_assert_int_eq(store_get(group, 10, small, sizeof(small), &size), STORE_E_NONE);
	ck_assert_int_eq(store_get(group, 9, small, sizeof(small), &size), STORE_E_ROOM);
	ck_assert_int_eq(hold_get(other, 2, 9, 0), STORE_E_NONE);
	ck_assert_int_eq(store_group_open(hold.store, &id, "", 0, &group), -EINVAL);
	ck_assert_int_eq(store_group_open(hold.store, &id, "", UINT64_MAX / 2, &group), -EINVAL);
	store_group_close(group);
	store_group_close(other);
	store_group_close(NULL);
	store_close(NULL);
}
END_TEST

START_TEST(test_table_is_sealed)
{
	struct store_group *group = hold_group(&hold, 1, 1000);
	const int fd = store_group_table(group);

	ck_assert_int_eq(ftruncate(fd, 0), -1);
	ck_assert_int_eq(ftruncate(fd, 1 << 20), -1);
	ck_assert_ptr_eq(mmap(NULL, 4000, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	ck_assert_int_eq((int)write(fd, "x", 1), -1);
	ck_assert_int_eq((int)lseek(fd, 0, SEEK_END), 4000);
	store_group_close(group);
}
END_TEST

START_TEST(test_handles_are_counted)
{
	struct store_group *one = hold_group(&hold, 1, 10), *two = hold_group(&hold, 1, 10);
	const struct hash_id id = hold_id(1);
	struct store_group *wrong;

	ck_assert_ptr_eq(one, two);
	ck_assert_int_eq(store_group_open(hold.store, &id, "", 11, &wrong), -EINVAL);
	store_group_close(one);
	ck_assert(hold_put(two, 1, 3, 30));
	hold_settle(&hold);
	ck_assert_int_eq(hold_get(two, 1, 3, 30), 0);
	store_group_close(two);
	one = hold_group(&hold, 1, 10);
	ck_assert_int_eq(hold_get(one, 1, 3, 30), 0);
	store_group_close(one);
}
END_TEST

static Suite *store_suite(void)
{
	Suite *suite = suite_create("store");
	TCase *values = tcase_create("values");

	tcase_add_checked_fixture(values, setup, teardown);
	tcase_add_test(values, test_round_trip);
	tcase_add_test(values, test_edges);
	tcase_add_test(values, test_table_is_sealed);
	tcase_add_test(values, test_handles_are_counted);
	suite_add_tcase(suite, values);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(store_suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed > 0;
}
