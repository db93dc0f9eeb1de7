/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Many threads at once in a store that is too small for all: some get, some put, one opens and closes
 * groups, one drops, one looks, and one says that the environment is damaged or must be opened anew, so that it
 * is exchanged under all of them. A get brings the right bytes or none.
 */

#include "tests/storage/hold.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/philox.h"
#include "storage/store_parts.h"
#include "tests/suite.h"

#define LIMIT (4 << 20)
#define SAMPLES 500
#define GROUPS 4
#define GETTERS 3
#define TURNS 20000

static struct hold hold;
static struct store_group *groups[2]; /* the first two are in use all the time */
static struct counter hits, ended[GETTERS];

static void *get_many(void *arg)
{
	const uint64_t number = (uintptr_t)arg;
	struct philox_seq seq;
	uint64_t found = 0;

	philox_seq_init(&seq, 1, number, 0);
	for (unsigned i = 0; i < TURNS; i++) {
		const uint64_t group = philox_below(&seq, 2);
		const int r = hold_get(groups[group], group, philox_below(&seq, SAMPLES), 0);

		ck_assert(r == 0 || r == STORE_E_NONE);
		found += r == 0;
	}
	counter_set(&ended[number], 1 + found);
	return NULL;
}

static bool have_ended(void)
{
	for (unsigned i = 0; i < GETTERS; i++) {
		if (counter_get(&ended[i]) == 0)
			return false;
	}
	return true;
}

static void *put_many(void *arg)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 2, (uintptr_t)arg, 0);
	while (!have_ended()) {
		for (unsigned i = 0; i < 50; i++) {
			const uint64_t group = philox_below(&seq, 2);

			hold_put(groups[group], group, philox_below(&seq, SAMPLES),
				 1 + philox_below(&seq, 6000));
		}
		store_flush(hold.store);
	}
	return NULL;
}

static void *open_many(void *arg)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 3, (uintptr_t)arg, 0);
	while (!have_ended()) {
		const uint64_t number = philox_below(&seq, GROUPS);
		struct store_group *group = hold_group(&hold, number, SAMPLES);

		store_group_worth(group, (double)philox_below(&seq, 100));
		for (unsigned i = 0; i < 20; i++)
			hold_put(group, number, philox_below(&seq, SAMPLES),
				 1 + philox_below(&seq, 3000));
		store_flush(hold.store);
		hold_get(group, number, philox_below(&seq, SAMPLES), 0);
		store_group_close(group);
	}
	return NULL;
}

static void look(void *arg, const struct store_listing *listing)
{
	ck_assert_uint_le(listing->values, listing->n_samples);
	*(uint64_t *)arg += listing->values;
}

static void *administer(void *arg)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 4, (uintptr_t)arg, 0);
	while (!have_ended()) {
		const struct timespec pause = {.tv_nsec = 3000000};
		const struct hash_id id = hold_id(philox_below(&seq, GROUPS));
		const uint64_t what = philox_below(&seq, 40);
		struct store_checked checked;
		uint64_t sum = 0;

		if (what < 4)
			store_drop(hold.store, &id);
		else if (what < 8)
			store_pin(hold.store, &id, what < 5);
		else if (what < 12)
			store_verify(hold.store, NULL, &checked);
		else if (what < 20)
			ck_assert_int_eq(store_list(hold.store, look, &sum), 0);
		else if (what == 20)
			store_notice(hold.store, STORE_LMDB_E_DAMAGED);
		else if (what < 23)
			store_notice(hold.store, STORE_LMDB_E_AGAIN);
		else
			ck_assert_uint_le(hold_state(&hold).bytes_file, LIMIT);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

START_TEST(test_storm)
{
	void *(*const others[])(void *) = {put_many, open_many, administer};
	pthread_t thread[GETTERS + BASE_ARRAY_LEN(others)];
	struct store_checked checked;
	size_t n = 0;

	hold_new(&hold, LIMIT);
	hold_open(&hold);
	for (unsigned i = 0; i < 2; i++)
		groups[i] = hold_group(&hold, i, SAMPLES);
	for (uint64_t i = 0; i < SAMPLES / 4; i++)
		hold_put(groups[i % 2], i % 2, i, 2000);
	hold_settle(&hold);
	for (uintptr_t i = 0; i < GETTERS; i++)
		ck_assert_int_eq(pthread_create(&thread[n++], NULL, get_many, (void *)i), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(others); i++)
		ck_assert_int_eq(pthread_create(&thread[n++], NULL, others[i], NULL), 0);
	for (size_t i = 0; i < n; i++)
		ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
	for (unsigned i = 0; i < GETTERS; i++)
		counter_set(&hits, counter_get(&hits) + counter_get(&ended[i]) - 1);
	ck_assert_uint_gt(counter_get(&hits), 0);
	ck_assert_uint_eq(hold_state(&hold).damaged + hold_state(&hold).write_errors, 0);
	for (unsigned i = 0; i < 2; i++)
		store_group_close(groups[i]);
	hold_reopen(&hold);
	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.damaged, 0);
	ck_assert_uint_eq(hold_state(&hold).set_aside, 0);
	hold_remove(&hold);
}
END_TEST

static void add(TCase *storm)
{
	tcase_add_test(storm, test_storm);
}

int main(void)
{
	return suite_run("store_storm", add);
}
