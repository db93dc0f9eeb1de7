/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What lies ready in memory: a part that stays, shared by all who use the same group, below a limit; and no
 * byte of it changes while somebody may still read it, whoever needs the room. The test is accessd: it is
 * asked, and answers when it likes.
 */

#include <check.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/philox.h"
#include "storage/reader_parts.h"
#include "tests/suite.h"

/* 20 values fill a chunk, but for some bytes. */
enum { CHUNKS = 4, SAMPLES = 256, VALUE = 104832, PER_CHUNK = RESIDENT_CHUNK / VALUE };
#define STRIDE 1021
#define LARGE (3 * RESIDENT_CHUNK / 4)

static uint64_t asked; /* the last question */
static unsigned n_asked;
static int fd;

void reader_say_ask_unread(uint64_t question)
{
	__atomic_store_n(&asked, question, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&n_asked, 1, __ATOMIC_SEQ_CST);
}

/* ---- means ---- */

static void setup(void)
{
	ck_assert_int_eq(resident_new(CHUNKS * RESIDENT_CHUNK, &fd), 0);
}

static void begin(void)
{
	ck_assert_int_eq(reader_resident_init(fd), 0);
	ck_assert_uint_eq(n_asked, 1);
	reader_resident_limit(CHUNKS * RESIDENT_CHUNK, true);
	reader_resident_unread(asked);
}

static struct hash_id id_of(unsigned number)
{
	struct hash_id id;

	hash_of(&number, sizeof(number), &id);
	return id;
}

static struct reader_resident *open_group(unsigned number)
{
	struct hash_id id = id_of(number);
	struct reader_resident *group = reader_resident_open(&id, SAMPLES);

	ck_assert_ptr_nonnull(group);
	return group;
}

static uint8_t byte_of(unsigned group, uint64_t sample)
{
	return (uint8_t)(group * 101 + sample * 7 + 1);
}

static void keep(struct reader_resident *group, unsigned number, uint64_t sample)
{
	uint8_t value[VALUE];

	memset(value, byte_of(number, sample), sizeof(value));
	reader_resident_keep(group, sample, value, sizeof(value));
}

/* Each byte of a value is the same one: a few of them tell whether it is another's now. */
static bool is_whole(const struct reader_place *at, uint8_t byte)
{
	for (uint32_t i = 0; i < at->bytes; i += STRIDE)
		if (at->data[i] != byte)
			return false;
	return at->bytes == VALUE && at->data[VALUE - 1] == byte;
}

/* How many of a group's values are there, each whole. */
static unsigned count(const struct reader_resident *group, unsigned number)
{
	struct reader_place at;
	unsigned n = 0;

	for (uint64_t i = 0; i < SAMPLES; i++) {
		if (!reader_resident_find(group, i, &at))
			continue;
		ck_assert_msg(is_whole(&at, byte_of(number, i)), "sample %llu",
			      (unsigned long long)i);
		n++;
	}
	return n;
}

static void keep_all(struct reader_resident *group, unsigned number)
{
	for (uint64_t i = 0; i < SAMPLES; i++)
		keep(group, number, i);
}

static struct reader_state state(void)
{
	struct reader_state ret = {0};

	reader_resident_state(&ret);
	return ret;
}

/* ---- what stays ---- */

START_TEST(a_stable_part_below_the_limit)
{
	struct reader_resident *group;
	struct reader_place first, again;

	begin();
	group = open_group(1);
	keep_all(group, 1);
	ck_assert_uint_eq(count(group, 1), CHUNKS * PER_CHUNK);
	ck_assert(reader_resident_find(group, 3, &first));
	for (unsigned round = 0; round < 3; round++)
		keep_all(group, 1);
	ck_assert(reader_resident_find(group, 3, &again));
	ck_assert_uint_eq(again.place, first.place);
	ck_assert_uint_eq(count(group, 1), CHUNKS * PER_CHUNK);
	ck_assert_uint_eq(state().memory_used, CHUNKS * RESIDENT_CHUNK);
	ck_assert_uint_eq(state().memory_values, CHUNKS * PER_CHUNK);
	ck_assert_uint_eq(n_asked, 1); /* nobody else has anything that could give way */
}
END_TEST

START_TEST(no_more_than_is_granted)
{
	struct reader_resident *group;

	ck_assert_int_eq(reader_resident_init(fd), 0);
	reader_resident_unread(asked);
	group = open_group(1);
	keep(group, 1, 1);
	ck_assert_uint_eq(count(group, 1), 0);
	for (unsigned chunks = 1; chunks <= CHUNKS; chunks++) {
		reader_resident_limit(chunks * RESIDENT_CHUNK + 4096, false);
		keep_all(group, 1);
		ck_assert_uint_eq(count(group, 1), chunks * PER_CHUNK);
		ck_assert(reader_resident_has_grown((chunks - 1) * RESIDENT_CHUNK));
		ck_assert(!reader_resident_has_grown(chunks * RESIDENT_CHUNK));
	}
	reader_resident_limit(CHUNKS * RESIDENT_CHUNK, true);
	ck_assert(!reader_resident_has_grown(0)); /* to say so brings no more */
}
END_TEST

START_TEST(shared_by_all_and_there_when_they_come_back)
{
	struct reader_resident *a, *b;
	struct hash_id id = id_of(1);

	begin();
	a = open_group(1);
	keep(a, 1, 5);
	b = open_group(1);
	ck_assert_ptr_eq(a, b);
	ck_assert_uint_eq(count(b, 1), 1);
	ck_assert_ptr_null(reader_resident_open(&id, SAMPLES + 1));
	reader_resident_close(a);
	reader_resident_close(b);
	ck_assert_uint_eq(state().memory_values, 1);
	a = open_group(1);
	ck_assert_uint_eq(count(a, 1), 1);
	b = open_group(2);
	ck_assert_uint_eq(count(b, 2), 0);
}
END_TEST

START_TEST(what_does_not_fit_is_not_taken)
{
	static uint8_t large[RESIDENT_VALUE_MOST + 1];
	struct hash_id id = id_of(1);
	struct reader_resident *group;
	struct reader_place at;

	begin();
	group = open_group(1);
	reader_resident_keep(group, 0, large, sizeof(large));
	reader_resident_keep(group, 1, large, 0);
	reader_resident_keep(group, SAMPLES, large, 10);
	reader_resident_keep(group, UINT64_MAX, large, 10);
	reader_resident_keep(NULL, 0, large, 10);
	ck_assert_uint_eq(state().memory_values, 0);
	ck_assert(!reader_resident_find(group, SAMPLES, &at));
	ck_assert(!reader_resident_find(NULL, 0, &at));
	ck_assert_ptr_null(reader_resident_open(&id, UINT64_C(1) << 27)); /* a table of a GiB */
	reader_resident_close(NULL);
}
END_TEST

/* Large values lie across chunks, so that none of them is left half empty; also of memory that is used again. */
START_TEST(no_chunk_is_half_empty)
{
	static uint8_t value[LARGE];

	begin();
	for (unsigned g = 0; g < 3; g++) {
		struct reader_resident *group = open_group(g);
		struct reader_place at;

		memset(value, (int)g + 1, sizeof(value));
		for (uint64_t i = 0; i < SAMPLES; i++)
			reader_resident_keep(group, i, value, sizeof(value));
		reader_resident_unread(asked); /* the one before has left */
		for (uint64_t i = 0; i < SAMPLES; i++)
			reader_resident_keep(group, i, value, sizeof(value));
		ck_assert_uint_eq(state().memory_values, CHUNKS * RESIDENT_CHUNK / LARGE);
		for (uint64_t i = 0; i < CHUNKS * RESIDENT_CHUNK / LARGE; i++) {
			ck_assert(reader_resident_find(group, i, &at));
			ck_assert_uint_eq(at.bytes, LARGE);
			ck_assert_int_eq(memcmp(at.data, value, LARGE), 0);
		}
		reader_resident_close(group);
	}
}
END_TEST

/* ---- who gives way, and when ---- */

START_TEST(nothing_changes_before_the_answer)
{
	struct reader_resident *old, *new;
	struct reader_place at;

	begin();
	old = open_group(1);
	keep_all(old, 1);
	new = open_group(2);
	keep_all(new, 2);
	ck_assert_uint_eq(count(new, 2), 0); /* the old one is in use */
	ck_assert_uint_eq(n_asked, 1);
	ck_assert(reader_resident_find(old, 0, &at)); /* a task is told of it */
	reader_resident_close(old);
	keep_all(new, 2);
	ck_assert_uint_eq(n_asked, 2);
	ck_assert_uint_eq(count(new, 2), 0);
	reader_resident_unread(asked - 1);
	reader_resident_unread(asked + 1);
	keep_all(new, 2);
	ck_assert_uint_eq(count(new, 2), 0);
	ck_assert(is_whole(&at, byte_of(1, 0)));
	old = open_group(1); /* comes back meanwhile: too late */
	ck_assert_uint_eq(count(old, 1), 0);
	reader_resident_unread(asked);
	keep_all(new, 2);
	ck_assert_uint_eq(count(new, 2), CHUNKS * PER_CHUNK);
	ck_assert_uint_eq(state().memory_used, CHUNKS * RESIDENT_CHUNK);
}
END_TEST

START_TEST(what_all_yield_gives_way)
{
	struct reader_resident *old, *again, *new;

	begin();
	old = open_group(1);
	again = open_group(1);
	new = open_group(2);
	keep_all(old, 1);
	reader_resident_yield(old, true); /* the other one still reads it */
	keep_all(new, 2);
	ck_assert_uint_eq(n_asked, 1);
	reader_resident_yield(again, true);
	keep_all(new, 2);
	ck_assert_uint_eq(n_asked, 2);
	ck_assert_uint_eq(count(old, 1), 0);
	keep_all(old, 1); /* takes nothing any more */
	reader_resident_unread(asked);
	keep_all(old, 1);
	keep_all(new, 2);
	ck_assert_uint_eq(count(new, 2), CHUNKS * PER_CHUNK);
	ck_assert_uint_eq(count(old, 1), 0);
	reader_resident_yield(old, false);
	reader_resident_yield(again, false);
	reader_resident_close(again);
	reader_resident_yield(new, true);
	keep_all(old, 1);
	reader_resident_unread(asked);
	keep_all(old, 1);
	ck_assert_uint_eq(count(old, 1), CHUNKS * PER_CHUNK);
	reader_resident_limit(0, true); /* what has nothing is looked for no more */
	ck_assert_uint_eq(count(old, 1), 0);
}
END_TEST

START_TEST(the_longest_rest_gives_way_first)
{
	struct reader_resident *group[3];

	begin();
	for (unsigned g = 0; g < 3; g++) {
		group[g] = open_group(g);
		for (uint64_t i = 0; i < PER_CHUNK; i++)
			keep(group[g], g, i);
	}
	reader_resident_close(group[1]);
	reader_resident_close(group[0]);
	keep_all(group[2], 2); /* a chunk was free */
	reader_resident_unread(asked);
	for (uint64_t i = 0; i < 3 * PER_CHUNK; i++)
		keep(group[2], 2, i);
	ck_assert_uint_eq(count(group[2], 2), 3 * PER_CHUNK);
	group[0] = open_group(0);
	ck_assert_uint_eq(count(group[0], 0), PER_CHUNK);
	group[1] = open_group(1);
	ck_assert_uint_eq(count(group[1], 1), 0);
}
END_TEST

START_TEST(less_is_granted_and_more_again)
{
	struct reader_resident *group;
	struct reader_place at;

	begin();
	group = open_group(1);
	keep_all(group, 1);
	ck_assert(reader_resident_find(group, 2, &at));
	reader_resident_limit(0, true);
	ck_assert_uint_eq(count(group, 1), 0);
	ck_assert(is_whole(&at, byte_of(1, 2)));
	ck_assert_uint_eq(state().memory_used, CHUNKS * RESIDENT_CHUNK);
	reader_resident_unread(asked);
	ck_assert_uint_eq(state().memory_used, 0);
	ck_assert(!is_whole(&at, byte_of(1, 2)));
	keep_all(group, 1);
	ck_assert_uint_eq(count(group, 1), 0);
	reader_resident_limit(2 * RESIDENT_CHUNK, true);
	keep_all(group, 1);
	ck_assert_uint_eq(count(group, 1), 2 * PER_CHUNK);
}
END_TEST

/* Where there is no store the table says what is here, and who keeps a value whether it came to stay. */
START_TEST(a_table_of_what_stands_alone)
{
	struct reader_resident *group, *other;
	uint8_t value[VALUE] = {1};
	uint32_t table[SAMPLES];
	unsigned n = 0;

	ck_assert_int_eq(reader_resident_init(fd), 0);
	ck_assert(reader_resident_stand_alone());
	group = open_group(1);
	other = open_group(2);
	ck_assert_int_eq(reader_resident_keep(group, 3, value, VALUE), RESIDENT_LATER);
	reader_resident_unread(asked);
	ck_assert_int_eq(reader_resident_keep(group, 3, value, VALUE), RESIDENT_LATER);
	reader_resident_limit(CHUNKS * RESIDENT_CHUNK, true);
	for (uint64_t i = 0; i < SAMPLES; i++)
		n += reader_resident_keep(group, i, value, VALUE) == RESIDENT_KEEPS;
	ck_assert_uint_eq(n, CHUNKS * PER_CHUNK);
	ck_assert_int_eq(reader_resident_keep(group, 3, value, VALUE), RESIDENT_KEEPS);
	ck_assert_int_eq(reader_resident_keep(other, 3, value, VALUE), RESIDENT_FULL);
	ck_assert_int_eq(reader_resident_keep(group, SAMPLES, value, VALUE), RESIDENT_FULL);
	ck_assert_int_eq(pread(reader_resident_table(group), table, sizeof(table), 0),
			 sizeof(table));
	for (uint64_t i = 0; i < SAMPLES; i++)
		ck_assert_uint_eq(table[i], i < n ? VALUE : 0);
	reader_resident_close(group);
	ck_assert_int_eq(reader_resident_keep(other, 3, value, VALUE), RESIDENT_LATER);
	group = open_group(1);
	ck_assert_int_eq(pread(reader_resident_table(group), table, sizeof(table), 0),
			 sizeof(table));
	for (uint64_t i = 0; i < SAMPLES; i++)
		ck_assert_uint_eq(table[i], 0);
}
END_TEST

START_TEST(what_is_dropped_is_gone)
{
	struct hash_id used = id_of(1), unused = id_of(2), none = id_of(3);
	struct reader_resident *group;

	begin();
	group = open_group(2);
	keep(group, 2, 9);
	reader_resident_close(group);
	group = open_group(1);
	keep(group, 1, 9);
	reader_resident_drop(&used);
	ck_assert_uint_eq(count(group, 1), 0);
	reader_resident_drop(&unused);
	reader_resident_drop(&none);
	ck_assert_uint_eq(state().memory_used, 2 * RESIDENT_CHUNK);
	reader_resident_unread(asked);
	reader_resident_unread(asked); /* the second had to wait for the first */
	ck_assert_uint_eq(state().memory_used, 0);
	ck_assert_uint_eq(state().memory_values, 0);
	reader_resident_close(group);
	group = open_group(2);
	ck_assert_uint_eq(count(group, 2), 0);
}
END_TEST

/* It does not know what that one told. */
START_TEST(another_process_was_there_before)
{
	struct resident before;
	struct reader_resident *group;
	struct reader_place at;

	ck_assert_int_eq(resident_attach(fd, true, &before), 0);
	ck_assert_int_eq(resident_take(fd, 0), 0);
	ck_assert_int_eq(resident_take(fd, 2), 0);
	memset(before.data, 77, RESIDENT_CHUNK);
	ck_assert_int_eq(reader_resident_init(fd), 0);
	reader_resident_limit(CHUNKS * RESIDENT_CHUNK, true);
	group = open_group(1);
	keep_all(group, 1);
	ck_assert_uint_eq(count(group, 1), 0);
	ck_assert_uint_eq(n_asked, 1);
	ck_assert_uint_eq(state().memory_used, 2 * RESIDENT_CHUNK);
	for (uint64_t i = 0; i < RESIDENT_CHUNK; i += STRIDE)
		ck_assert_uint_eq(before.data[i], 77);
	reader_resident_unread(asked);
	ck_assert_uint_eq(state().memory_used, 0);
	ck_assert_uint_eq(before.data[0] + before.data[RESIDENT_CHUNK - 1], 0);
	keep(group, 1, 3);
	ck_assert(reader_resident_find(group, 3, &at));
	ck_assert_uint_eq(before.data[at.place - 1], byte_of(1, 3));
}
END_TEST

/* ---- many at once ---- */

/* Threads hand out tasks and read them; each lies between a read lock, so that to hold the write lock is to
 * know that no task is read. */
static pthread_rwlock_t tasks = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
static bool is_over;

static void *storm(void *arg)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 1, (uint64_t)(uintptr_t)arg, 0);
	while (!__atomic_load_n(&is_over, __ATOMIC_SEQ_CST)) {
		unsigned number = (unsigned)philox_below(&seq, 3);
		struct reader_resident *group = open_group(number);

		pthread_rwlock_rdlock(&tasks);
		for (unsigned i = 0; i < 20; i++) {
			uint64_t sample = philox_below(&seq, SAMPLES);
			struct reader_place at;

			if (!reader_resident_find(group, sample, &at))
				keep(group, number, sample);
			else if (!is_whole(&at, byte_of(number, sample)))
				abort();
		}
		pthread_rwlock_unlock(&tasks);
		reader_resident_close(group);
	}
	return NULL;
}

START_TEST(no_byte_of_a_task_changes)
{
	pthread_t thread[3];
	uint64_t answered;
	struct philox_seq seq;

	begin();
	answered = asked;
	philox_seq_init(&seq, 2, 0, 0);
	for (uintptr_t i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, storm, (void *)i), 0);
	for (unsigned round = 0; round < 200; round++) {
		struct hash_id id = id_of((unsigned)philox_below(&seq, 3));
		uint64_t question = __atomic_load_n(&asked, __ATOMIC_SEQ_CST);

		if (round % 3 == 0)
			reader_resident_drop(&id);
		if (round % 7 == 0)
			reader_resident_limit(philox_below(&seq, CHUNKS + 1) * RESIDENT_CHUNK,
					      round % 2);
		if (question == answered) {
			usleep(100);
			continue;
		}
		pthread_rwlock_wrlock(&tasks);
		pthread_rwlock_unlock(&tasks);
		reader_resident_unread(question);
		answered = question;
		ck_assert_uint_le(state().memory_used, CHUNKS * RESIDENT_CHUNK);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_SEQ_CST);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, a_stable_part_below_the_limit);
	tcase_add_test(tcase, no_more_than_is_granted);
	tcase_add_test(tcase, shared_by_all_and_there_when_they_come_back);
	tcase_add_test(tcase, what_does_not_fit_is_not_taken);
	tcase_add_test(tcase, no_chunk_is_half_empty);
	tcase_add_test(tcase, nothing_changes_before_the_answer);
	tcase_add_test(tcase, what_all_yield_gives_way);
	tcase_add_test(tcase, the_longest_rest_gives_way_first);
	tcase_add_test(tcase, less_is_granted_and_more_again);
	tcase_add_test(tcase, a_table_of_what_stands_alone);
	tcase_add_test(tcase, what_is_dropped_is_gone);
	tcase_add_test(tcase, another_process_was_there_before);
	tcase_add_test(tcase, no_byte_of_a_task_changes);
}

int main(void)
{
	return suite_run("reader_resident", add);
}
