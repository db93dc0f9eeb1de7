/* SPDX-License-Identifier: Apache-2.0 */

/* The scroll: what was appended is read, in order, by readers of any speed; who is too slow is
 * told; a reader cannot write. */

#include "tests/shmring/suite.h"

#include "shmring/region.h"
#include "shmring/scroll.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_GRAINS 300
#define STORM 20000

static const uint8_t id[SCROLL_ID] = "a log's name";

/* Entry number k: its size and its words follow from k. */
static void make(uint64_t k, uint32_t *grains, int64_t *ids, struct scroll_entry *ret)
{
	uint32_t count = (uint32_t)(k * 37 % MOST_GRAINS) + 1;

	*ret = (struct scroll_entry){.epoch = k / 50, .place = k, .seed = ~k, .lap = 3 * k};
	ret->count = k % 9 ? count : count / 4 + 1;
	ret->n_grains = k % 9 ? count : 0;
	for (uint32_t i = 0; i < ret->count; i++) {
		grains[i] = (uint32_t)(k + i);
		ids[i] = (int64_t)(k * i);
	}
	ret->grains = k % 9 ? grains : NULL;
	ret->ids = k % 9 ? NULL : ids;
}

static bool is_same(const struct scroll_entry *a, const struct scroll_entry *b)
{
	if (a->epoch != b->epoch || a->place != b->place || a->seed != b->seed ||
	    a->lap != b->lap || a->count != b->count || a->n_grains != b->n_grains)
		return false;
	return a->n_grains ? !memcmp(a->grains, b->grains, a->n_grains * sizeof(uint32_t))
			   : !memcmp(a->ids, b->ids, a->count * sizeof(int64_t));
}

static void append(struct scroll *scroll, uint64_t k)
{
	uint32_t grains[MOST_GRAINS];
	int64_t ids[MOST_GRAINS];
	struct scroll_entry entry;

	make(k, grains, ids, &entry);
	scroll_append(scroll, &entry);
}

static void show(struct scroll *scroll, uint64_t k)
{
	append(scroll, k);
	scroll_publish(scroll);
}

START_TEST(what_was_appended_is_read)
{
	uint32_t grains[MOST_GRAINS];
	int64_t ids[MOST_GRAINS];
	struct scroll writer, reader;
	struct scroll_entry expected, got;
	uint64_t offset, late, k;
	int fd;

	ck_assert_int_eq(scroll_new(10000, 77, id, &writer, &fd), 0);
	ck_assert_int_eq(scroll_attach(fd, &reader), 0);
	ck_assert_uint_eq(reader.n_samples, 77);
	ck_assert_mem_eq(reader.id, id, sizeof(id));
	offset = late = scroll_first(&reader);
	ck_assert_int_eq(scroll_read(&reader, &offset, &got), SCROLL_E_NONE);
	for (k = 0; k < 1000; k++) { /* many times round */
		append(&writer, k);
		ck_assert_int_eq(scroll_read(&reader, &offset, &got), SCROLL_E_NONE);
		scroll_publish(&writer);
		make(k, grains, ids, &expected);
		ck_assert_int_eq(scroll_read(&reader, &offset, &got), 0);
		ck_assert(is_same(&got, &expected));
		ck_assert_int_eq(scroll_read(&reader, &offset, &got), SCROLL_E_NONE);
	}
	ck_assert_int_eq(scroll_read(&reader, &late, &got), SCROLL_E_GONE);
	offset = scroll_first(&reader); /* what is kept is the newest, as much as was asked for */
	for (k = 0; scroll_read(&reader, &offset, &got) == 0; k += 64 + 4 * got.n_grains)
		ck_assert(got.place < 1000);
	ck_assert_uint_eq(got.place, 999);
	ck_assert_uint_ge(k, 10000);
	scroll_detach(&reader);
	scroll_detach(&writer);
	close(fd);
}
END_TEST

START_TEST(a_reader_cannot_write)
{
	struct scroll writer;
	int fd;

	ck_assert_int_eq(scroll_new(10000, 1, id, &writer, &fd), 0);
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	ck_assert_int_lt(ftruncate(fd, 4096), 0);
	scroll_detach(&writer);
	close(fd);
}
END_TEST

/* ---- the copy in a file ---- */

static unsigned writes_left; /* then the writer is dead */

static ssize_t write_or_die(int fd, const void *data, size_t size, off_t offset)
{
	if (!writes_left) {
		errno = EIO;
		return -1;
	}
	writes_left--;
	return syscall(SYS_pwrite64, fd, data, size, offset);
}

/* In place of the C library's, for scroll_save(). */
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	return write_or_die(fd, data, size, offset);
}

/* As a file comes back: copied to memory that is sealed. */
static int sealed_copy(int file)
{
	off_t size = lseek(file, 0, SEEK_END);
	uint8_t *map;
	int fd;

	ck_assert_int_gt(size, 0);
	ck_assert_int_eq(region_new("copy", (uint64_t)size, (void **)&map, &fd), 0);
	ck_assert_int_eq(pread(file, map, (size_t)size, 0), size);
	region_unmap(map, (uint64_t)size);
	ck_assert_int_eq(region_seal(fd, REGION_READ_ONLY), 0);
	return fd;
}

/* Reads all of the file, each entry being what it should. Returns how many there ever were. */
static uint64_t read_file(int file)
{
	uint32_t grains[MOST_GRAINS];
	int64_t ids[MOST_GRAINS];
	struct scroll_entry expected, got = {.place = UINT64_MAX};
	struct scroll reader;
	uint64_t offset, next;
	int fd = sealed_copy(file), r;

	ck_assert_int_eq(scroll_attach(fd, &reader), 0);
	ck_assert_mem_eq(reader.id, id, sizeof(id));
	ck_assert_uint_eq(reader.origin, 5);
	ck_assert_uint_eq(reader.first_epoch, 2);
	offset = scroll_first(&reader);
	for (next = 0; (r = scroll_read(&reader, &offset, &got)) == 0; next = got.place + 1) {
		ck_assert(!next || got.place == next);
		make(got.place, grains, ids, &expected);
		ck_assert(is_same(&got, &expected));
	}
	ck_assert_int_eq(r, SCROLL_E_NONE);
	scroll_detach(&reader);
	close(fd);
	return next;
}

START_TEST(a_file_is_whole_wherever_its_writer_dies)
{
	struct scroll writer;
	uint64_t saved = 0, kept = 0, seed = 1, n_died = 0;
	int fd, file = base_memfd("file", 0);

	ck_assert_int_eq(scroll_new(10000, 77, id, &writer, &fd), 0);
	scroll_set_origin(&writer, 5, 2);
	writes_left = 9;
	ck_assert_int_eq(scroll_save(&writer, file, &saved), 0);
	ck_assert_uint_eq(read_file(file), 0);
	for (uint64_t k = 0; k < 2000; k++) {
		append(&writer, k);
		writes_left = (unsigned)(suite_random(&seed) % 6);
		if (scroll_save(&writer, file, &saved)) {
			uint64_t n = read_file(file);

			n_died++;
			ck_assert(n == kept || n == k + 1);
		} else {
			kept = k + 1;
			ck_assert_uint_eq(read_file(file), kept);
		}
	}
	ck_assert_uint_gt(n_died, 500);
	ck_assert_uint_lt(n_died, 1500);
	scroll_detach(&writer);
	close(fd);
	close(file);
}
END_TEST

/* ---- at once ---- */

static void *write_storm(void *arg)
{
	for (uint64_t k = 0; k < STORM; k++)
		show(arg, k);
	return NULL;
}

/* A reader beside a writer that does not wait: each entry that it gets is whole. */
START_TEST(no_entry_is_torn)
{
	uint32_t grains[MOST_GRAINS];
	int64_t ids[MOST_GRAINS];
	struct scroll writer, reader;
	struct scroll_entry expected, got = {.place = 0};
	uint64_t offset = 0;
	pthread_t thread;
	int fd;

	ck_assert_int_eq(scroll_new(10000, 1, id, &writer, &fd), 0);
	ck_assert_int_eq(scroll_attach(fd, &reader), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_storm, &writer), 0);
	while (got.place + 1 < STORM) {
		int r = scroll_read(&reader, &offset, &got);

		if (r == SCROLL_E_GONE)
			offset = scroll_first(&reader);
		if (r == SCROLL_E_GONE || r == SCROLL_E_NONE)
			continue;
		ck_assert_int_eq(r, 0);
		make(got.place, grains, ids, &expected);
		ck_assert_msg(is_same(&got, &expected), "entry %llu",
			      (unsigned long long)got.place);
	}
	pthread_join(thread, NULL);
	scroll_detach(&reader);
	scroll_detach(&writer);
	close(fd);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, what_was_appended_is_read);
	tcase_add_test(tcase, a_reader_cannot_write);
	tcase_add_test(tcase, a_file_is_whole_wherever_its_writer_dies);
	tcase_add_test(tcase, no_entry_is_torn);
}

int main(void)
{
	return suite_run("scroll", add_tests);
}
