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

/* What it takes to write, of the values that were written alone. */
START_TEST(test_writing_is_measured)
{
	struct store_group *group = hold_group(&hold, 1, 10);
	struct store_state state, again;
	uint64_t bytes = 0;

	store_state(hold.store, &state);
	ck_assert_uint_eq(state.write_bytes + state.write_ns + state.write_cpu_ns, 0);
	for (uint64_t i = 0, size = 30; i < 3; i++, size *= 15) {
		ck_assert(hold_put(group, 1, i, size));
		ck_assert_uint_ge(store_bytes_of(size), size);
		bytes += store_bytes_of(size);
	}
	hold_settle(&hold);
	store_state(hold.store, &state);
	ck_assert_uint_eq(state.write_bytes, bytes);
	ck_assert_uint_gt(state.write_ns, 0);
	ck_assert_uint_gt(state.write_cpu_ns, 0);
	ck_assert(!hold_put(group, 1, 0, 30)); /* is there already */
	hold_settle(&hold);
	store_state(hold.store, &again);
	ck_assert_uint_eq(again.write_bytes, state.write_bytes);
	ck_assert_uint_eq(again.write_ns, state.write_ns);
	store_group_close(group);
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

/* ---- what people ask ---- */

struct seen {
	unsigned count;
	struct store_listing last;
	char note[STORE_NOTE_MAX + 1];
};

static void see(void *arg, const struct store_listing *listing)
{
	struct seen *seen = arg;

	seen->count++;
	seen->last = *listing;
	strcpy(seen->note, listing->note);
}

static struct seen list(void)
{
	struct seen seen = {.count = 0};

	ck_assert_int_eq(store_list(hold.store, see, &seen), 0);
	return seen;
}

static bool is_id(struct hash_id id, struct hash_id other)
{
	return memcmp(&id, &other, sizeof(id)) == 0;
}

/* What a peer names is not what it says only because it says so. */
START_TEST(test_guests_change_nothing)
{
	struct store_group *group = hold_group(&hold, 1, 10), *guest;
	const struct hash_id id = hold_id(1);
	struct seen before, seen;

	ck_assert(hold_put(group, 1, 3, 30));
	hold_settle(&hold);
	before = list();
	for (unsigned i = 0; i < 2; i++) { /* in use, and not */
		ck_assert_int_eq(store_group_open_guest(hold.store, &id, "no", 1, &guest), -EINVAL);
		ck_assert_int_eq(store_group_open_guest(hold.store, &id, "no", 10, &guest), 0);
		ck_assert_int_eq(hold_get(guest, 1, 3, 30), 0);
		seen = list();
		ck_assert_str_eq(seen.note, before.note);
		ck_assert_uint_eq(seen.last.n_samples, 10);
		store_group_close(guest);
		if (i == 0)
			store_group_close(group);
	}
	group = hold_group(&hold, 1, 10);
	ck_assert_int_eq(hold_get(group, 1, 3, 30), 0);
	store_group_close(group);
}
END_TEST

START_TEST(test_guests_are_bounded)
{
	struct store_group *group = hold_group(&hold, 0, 10), *guest;
	struct hash_id id;

	for (unsigned i = 1; i <= STORE_GUESTS_MOST; i++) {
		id = hold_id(i);
		ck_assert_int_eq(store_group_open_guest(hold.store, &id, "", 5, &guest), 0);
		store_group_close(guest);
	}
	id = hold_id(STORE_GUESTS_MOST + 1);
	ck_assert_int_eq(store_group_open_guest(hold.store, &id, "", 5, &guest), -ENOSPC);
	id = hold_id(1);
	ck_assert_int_eq(store_group_open_guest(hold.store, &id, "", 5, &guest), 0);
	store_group_close(guest);
	id = hold_id(0);
	ck_assert_int_eq(store_group_open_guest(hold.store, &id, "", 10, &guest), 0);
	store_group_close(guest);
	store_group_close(group);
	group = hold_group(&hold, 2, 7); /* a stream knows better */
	ck_assert_int_eq(store_group_open_guest(hold.store, &(struct hash_id){{0}}, "", 0, &guest),
			 -EINVAL);
	ck_assert(hold_put(group, 2, 6, 60));
	store_group_close(group);
}
END_TEST

START_TEST(test_list_and_pin)
{
	struct store_group *group = hold_group(&hold, 7, 50);
	const struct hash_id id = hold_id(7), none = hold_id(8);

	ck_assert_int_eq(store_pin(hold.store, &none, true), -ENOENT);
	for (uint64_t i = 0; i < 5; i++)
		ck_assert(hold_put(group, 7, i, 1000));
	store_group_worth(group, 123.5);
	store_group_worth(group, -1);
	hold_settle(&hold);
	ck_assert_int_eq(store_pin(hold.store, &id, true), 0);
	ck_assert_int_eq(store_drop(hold.store, &id), -EBUSY);
	ck_assert(list().last.is_used);
	store_group_close(group);
	hold_reopen(&hold);
	ck_assert_uint_eq(list().count, 1);
	ck_assert(is_id(list().last.id, id));
	ck_assert_uint_eq(list().last.n_samples, 50);
	ck_assert_uint_eq(list().last.values, 5);
	ck_assert_uint_eq(list().last.bytes, 5000);
	ck_assert(list().last.us_per_mib == 123.5);
	ck_assert_uint_ge(list().last.last_use_s, 1600000000);
	ck_assert(list().last.is_pinned && !list().last.is_used && !list().last.is_superseded);
	ck_assert_str_eq(list().note, "{\"dataset\":\"/data/7\"}");
	ck_assert_int_eq(store_drop(hold.store, &id), -EBUSY);
	ck_assert_int_eq(store_pin(hold.store, &id, false), 0);
	ck_assert_int_eq(store_drop(hold.store, &id), 0);
	ck_assert_uint_eq(list().count, 0);
	ck_assert_int_eq(store_drop(hold.store, &id), -ENOENT);
	ck_assert_uint_eq(hold_state(&hold).values, 0);
}
END_TEST

/* Is a sample's value in one of the files, from a byte of it on? */
static bool is_in_files(uint64_t number, uint64_t sample, size_t size)
{
	static const char *const names[] = {"cache.mdb", "cache.mdb-damaged"};
	uint8_t *value = malloc(size);
	bool is = false;

	hold_fill(number, sample, size, value);
	for (unsigned i = 0; i < 2; i++) {
		const size_t bytes = hold_bytes(&hold, names[i]);
		const int fd = openat(hold.fd, names[i], O_RDONLY | O_CLOEXEC);
		uint8_t *all = malloc(bytes + 1);

		ck_assert_int_eq(pread(fd, all, bytes, 0), fd < 0 ? -1 : (ssize_t)bytes);
		for (size_t at = 0; fd >= 0 && at + 64 <= size; at += 1024)
			is = is || memmem(all, bytes, value + at, 64);
		free(all);
		if (fd >= 0)
			close(fd);
	}
	free(value);
	return is;
}

START_TEST(test_wiped)
{
	struct store_group *gone = hold_group(&hold, 1, 100), *stays = hold_group(&hold, 2, 100);
	const struct hash_id id = hold_id(1);

	for (uint64_t i = 0; i < 20; i++) {
		ck_assert(hold_put(gone, 1, i, 30000));
		ck_assert(hold_put(stays, 2, i, 30000));
	}
	hold_settle(&hold);
	hold_scribble(&hold, "cache.mdb-damaged", 0, "x", 1);
	for (uint64_t i = 0; i < 20; i++)
		ck_assert(is_in_files(1, i, 30000) && is_in_files(2, i, 30000));
	ck_assert_int_eq(store_drop(hold.store, &id), 0);
	ck_assert(is_in_files(1, 7, 30000)); /* in a free page */
	ck_assert_int_eq(store_wipe(hold.store), 0);
	for (uint64_t i = 0; i < 20; i++) {
		ck_assert(!is_in_files(1, i, 30000));
		ck_assert_int_eq(hold_get(stays, 2, i, 30000), 0);
	}
	ck_assert_uint_eq(hold_bytes(&hold, "cache.mdb-damaged"), 0);
	ck_assert_uint_eq(hold_state(&hold).bytes_file, hold_bytes(&hold, "cache.mdb"));
	store_group_close(gone);
	store_group_close(stays);
	hold_reopen(&hold);
	stays = hold_group(&hold, 2, 100);
	for (uint64_t i = 0; i < 20; i++)
		ck_assert_int_eq(hold_get(stays, 2, i, 30000), 0);
	for (uint64_t i = 20; i < 90; i++) /* into the holes */
		ck_assert(hold_put(stays, 2, i, 30000));
	hold_settle(&hold);
	for (uint64_t i = 0; i < 90; i++)
		ck_assert_int_eq(hold_get(stays, 2, i, 30000), 0);
	store_group_close(stays);
	ck_assert_uint_eq(hold_state(&hold).damaged, 0);
}
END_TEST

START_TEST(test_note_is_cut)
{
	const struct hash_id id = hold_id(1);
	struct store_group *group;
	char note[STORE_NOTE_MAX + 100];

	memset(note, 'n', sizeof(note));
	note[sizeof(note) - 1] = '\0';
	ck_assert_int_eq(store_group_open(hold.store, &id, note, 10, &group), 0);
	ck_assert(hold_put(group, 1, 1, 10));
	hold_settle(&hold);
	store_group_close(group);
	hold_reopen(&hold);
	ck_assert_uint_eq(strlen(list().note), STORE_NOTE_MAX);
}
END_TEST

START_TEST(test_drop_of_a_group_in_use)
{
	struct store_group *group = hold_group(&hold, 1, 10000), *again;
	const struct hash_id id = hold_id(1);

	for (uint64_t i = 0; i < 9000; i++)
		ck_assert(hold_put(group, 1, i, 100));
	hold_settle(&hold);
	ck_assert_int_eq(store_drop(hold.store, &id), 0);
	for (uint64_t i = 0; i < 9000; i += 500) {
		ck_assert_int_eq(hold_get(group, 1, i, 0), STORE_E_NONE);
		ck_assert_uint_eq(hold_table(group, i), 0);
		ck_assert(!hold_put(group, 1, i, 100));
	}
	ck_assert_uint_eq(hold_state(&hold).values, 0);
	again = hold_group(&hold, 1, 10000);
	ck_assert(hold_put(again, 1, 5, 100));
	hold_settle(&hold);
	ck_assert_int_eq(hold_get(group, 1, 5, 100), 0);
	store_group_close(group);
	store_group_close(again);
}
END_TEST

static void tell(void *arg, uint64_t done, uint64_t total)
{
	uint64_t *last = arg;

	ck_assert_uint_ge(done, *last);
	ck_assert_uint_le(done, total);
	*last = done;
}

static bool cancelled(void *arg)
{
	return arg == NULL;
}

START_TEST(test_verify)
{
	struct store_group *group = hold_group(&hold, 1, 2000);
	uint64_t told = 0;
	struct store_progress progress = {.tell = tell, .cancelled = cancelled, .arg = &told};
	struct store_checked checked;

	ck_assert_int_eq(store_verify(hold.store, NULL, &checked), 0);
	ck_assert_uint_eq(checked.values, 0);
	for (uint64_t i = 0; i < 1500; i++)
		ck_assert(hold_put(group, 1, i, 10 + i));
	hold_settle(&hold);
	ck_assert_int_eq(store_verify(hold.store, &progress, &checked), 0);
	ck_assert_uint_eq(checked.groups, 1);
	ck_assert_uint_eq(checked.values, 1500);
	ck_assert_uint_eq(checked.bytes, 1500 * 10 + 1499 * 1500 / 2);
	ck_assert_uint_eq(checked.damaged, 0);
	ck_assert_uint_eq(told, 1500);
	progress = (struct store_progress){.cancelled = cancelled};
	ck_assert_int_eq(store_verify(hold.store, &progress, &checked), -ECANCELED);
	store_group_close(group);
}
END_TEST

/* Writing goes on at the close. */
START_TEST(test_close_writes_what_is_queued)
{
	struct store_group *group = hold_group(&hold, 1, 100);

	for (uint64_t i = 0; i < 100; i++)
		ck_assert(hold_put(group, 1, i, 3000));
	store_group_close(group);
	hold_reopen(&hold);
	ck_assert_uint_eq(hold_state(&hold).values, 100);
}
END_TEST

START_TEST(test_counters)
{
	struct store_group *group = hold_group(&hold, 1, 100);
	struct store_state state;

	ck_assert(hold_put(group, 1, 1, 500));
	hold_settle(&hold);
	ck_assert(!hold_put(group, 1, 1, 500));
	hold_get(group, 1, 1, 500);
	hold_get(group, 1, 1, 500);
	hold_get(group, 1, 2, 0);
	state = hold_state(&hold);
	ck_assert_int_eq(state.mode, STORE_ON);
	ck_assert_str_eq(state.why, "");
	ck_assert_uint_eq(state.limit, LIMIT);
	ck_assert_uint_eq(state.hits, 2);
	ck_assert_uint_eq(state.misses, 1);
	ck_assert_uint_eq(state.puts, 1);
	ck_assert_uint_eq(state.puts_not_taken, 1);
	ck_assert_uint_eq(state.puts_full, 0); /* it was there */
	ck_assert_uint_eq(state.groups, 1);
	ck_assert_uint_eq(state.values, 1);
	ck_assert_uint_gt(state.bytes_used, 0);
	ck_assert_uint_eq(state.bytes_file, hold_bytes(&hold, "cache.mdb"));
	ck_assert_uint_eq(state.damaged + state.evicted + state.set_aside + state.write_errors, 0);
	store_group_close(group);
}
END_TEST

static Suite *store_suite(void)
{
	Suite *suite = suite_create("store");
	TCase *values = tcase_create("values"), *people = tcase_create("people");

	tcase_add_checked_fixture(values, setup, teardown);
	tcase_add_test(values, test_round_trip);
	tcase_add_test(values, test_edges);
	tcase_add_test(values, test_writing_is_measured);
	tcase_add_test(values, test_table_is_sealed);
	tcase_add_test(values, test_handles_are_counted);
	suite_add_tcase(suite, values);
	tcase_add_checked_fixture(people, setup, teardown);
	tcase_add_test(people, test_list_and_pin);
	tcase_add_test(people, test_guests_change_nothing);
	tcase_add_test(people, test_guests_are_bounded);
	tcase_add_test(people, test_wiped);
	tcase_add_test(people, test_note_is_cut);
	tcase_add_test(people, test_drop_of_a_group_in_use);
	tcase_add_test(people, test_verify);
	tcase_add_test(people, test_close_writes_what_is_queued);
	tcase_add_test(people, test_counters);
	suite_add_tcase(suite, people);
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
