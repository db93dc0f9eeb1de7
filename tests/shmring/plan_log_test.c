/* SPDX-License-Identifier: Apache-2.0 */

/* The plan log: what was appended is read, in order, by readers of any speed; who is too slow is
 * told; a reader cannot write. */

#include "tests/shmring/suite.h"

#include "shmring/region.h"
#include "shmring/plan_log.h"

#include <errno.h>
#include <pthread.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_BLOCKS 300
#define STORM 20000

static const uint8_t id[PLAN_LOG_ID] = "a log's name";

/* Entry number k: its size and its words follow from k. */
static void make(uint64_t k, uint32_t *blocks, int64_t *ids, struct entry *ret)
{
	uint32_t count = (uint32_t)(k * 37 % MOST_BLOCKS) + 1;

	*ret = (struct entry){.epoch = k / 50, .place = k, .seed = ~k, .nonce = 3 * k};
	ret->count = k % 9 ? count : count / 4 + 1;
	ret->n_blocks = k % 9 ? count : 0;
	for (uint32_t i = 0; i < ret->count; i++) {
		blocks[i] = (uint32_t)(k + i);
		ids[i] = (int64_t)(k * i);
	}
	ret->blocks = k % 9 ? blocks : NULL;
	ret->ids = k % 9 ? NULL : ids;
}

static bool is_same(const struct entry *a, const struct entry *b)
{
	if (a->epoch != b->epoch || a->place != b->place || a->seed != b->seed ||
	    a->nonce != b->nonce || a->count != b->count || a->n_blocks != b->n_blocks)
		return false;
	return a->n_blocks ? !memcmp(a->blocks, b->blocks, a->n_blocks * sizeof(uint32_t))
			   : !memcmp(a->ids, b->ids, a->count * sizeof(int64_t));
}

static void append(struct plan_log *plan_log, uint64_t k)
{
	uint32_t blocks[MOST_BLOCKS];
	int64_t ids[MOST_BLOCKS];
	struct entry entry;

	make(k, blocks, ids, &entry);
	plan_log_append(plan_log, &entry);
}

static void show(struct plan_log *plan_log, uint64_t k)
{
	append(plan_log, k);
	plan_log_publish(plan_log);
}

static void begin(uint64_t n_samples, struct plan_log *ret, int *ret_fd)
{
	ck_assert_int_eq(plan_log_new(10000, n_samples, id, ret, ret_fd), 0);
	ck_assert_int_eq(plan_log_reserve(ret, *ret_fd, UINT64_MAX), 0);
}

START_TEST(what_was_appended_is_read)
{
	uint32_t blocks[MOST_BLOCKS];
	int64_t ids[MOST_BLOCKS];
	struct plan_log writer, reader;
	struct entry expected, got;
	uint64_t offset, late, k;
	int fd;

	begin(77, &writer, &fd);
	ck_assert_int_eq(plan_log_attach(fd, UINT64_MAX, &reader), 0);
	ck_assert_uint_eq(reader.n_samples, 77);
	ck_assert_mem_eq(reader.id, id, sizeof(id));
	offset = late = plan_log_first(&reader);
	ck_assert_int_eq(plan_log_read(&reader, &offset, &got), PLAN_LOG_E_NONE);
	for (k = 0; k < 1000; k++) { /* many times round */
		append(&writer, k);
		ck_assert_int_eq(plan_log_read(&reader, &offset, &got), PLAN_LOG_E_NONE);
		plan_log_publish(&writer);
		make(k, blocks, ids, &expected);
		ck_assert_int_eq(plan_log_read(&reader, &offset, &got), 0);
		ck_assert(is_same(&got, &expected));
		ck_assert_int_eq(plan_log_read(&reader, &offset, &got), PLAN_LOG_E_NONE);
	}
	ck_assert_int_eq(plan_log_read(&reader, &late, &got), PLAN_LOG_E_GONE);
	offset = plan_log_first(&reader); /* what is kept is the newest, as much as was asked for */
	for (k = 0; plan_log_read(&reader, &offset, &got) == 0; k += 64 + 4 * got.n_blocks)
		ck_assert(got.place < 1000);
	ck_assert_uint_eq(got.place, 999);
	ck_assert_uint_ge(k, 10000);
	plan_log_detach(&reader);
	plan_log_detach(&writer);
	close(fd);
}
END_TEST

/* When all is, others take it. */
START_TEST(memory_is_reserved_in_steps)
{
	const uint64_t step = 8192;
	struct plan_log writer, reader;
	struct stat status;
	unsigned steps = 0;
	int fd;

	ck_assert_int_eq(plan_log_new(100000, 1, id, &writer, &fd), 0);
	while (writer.reserved < writer.bytes) {
		ck_assert_uint_eq(writer.reserved, PLAN_LOG_HEAD + steps * step);
		ck_assert_int_eq(plan_log_reserve(&writer, fd, step), 0);
		ck_assert_int_eq(fstat(fd, &status), 0);
		ck_assert_uint_ge(512 * (uint64_t)status.st_blocks, writer.reserved);
		steps++;
	}
	ck_assert_uint_eq(steps, (writer.bytes - PLAN_LOG_HEAD + step - 1) / step);
	ck_assert_int_eq(plan_log_attach(fd, UINT64_MAX, &reader), 0);
	plan_log_detach(&reader);
	plan_log_detach(&writer);
	close(fd);
}
END_TEST

START_TEST(a_reader_cannot_write)
{
	struct plan_log writer;
	int fd;

	begin(1, &writer, &fd);
	ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
	ck_assert_int_lt(ftruncate(fd, 4096), 0);
	plan_log_detach(&writer);
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

/* In place of the C library's, for plan_log_save(). */
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
	ck_assert_int_eq(region_new("copy", REGION_UNSEALED, (uint64_t)size, (void **)&map, &fd),
			 0);
	ck_assert_int_eq(pread(file, map, (size_t)size, 0), size);
	region_unmap(map, (uint64_t)size);
	ck_assert_int_eq(region_seal(fd, REGION_READ_ONLY), 0);
	return fd;
}

/* Reads all of the file, each entry being what it should. Returns how many there ever were. */
static uint64_t read_file(int file)
{
	uint32_t blocks[MOST_BLOCKS];
	int64_t ids[MOST_BLOCKS];
	struct entry expected, got = {.place = UINT64_MAX};
	struct plan_log reader;
	uint64_t offset, next;
	int fd = sealed_copy(file), r;

	ck_assert_int_eq(plan_log_attach(fd, UINT64_MAX, &reader), 0);
	ck_assert_mem_eq(reader.id, id, sizeof(id));
	ck_assert_uint_eq(reader.origin, 5);
	ck_assert_uint_eq(reader.first_epoch, 2);
	offset = plan_log_first(&reader);
	for (next = 0; (r = plan_log_read(&reader, &offset, &got)) == 0; next = got.place + 1) {
		ck_assert(!next || got.place == next);
		make(got.place, blocks, ids, &expected);
		ck_assert(is_same(&got, &expected));
	}
	ck_assert_int_eq(r, PLAN_LOG_E_NONE);
	plan_log_detach(&reader);
	close(fd);
	return next;
}

START_TEST(a_file_is_whole_wherever_its_writer_dies)
{
	struct plan_log writer;
	uint64_t saved = 0, kept = 0, seed = 1, n_died = 0;
	int fd, file = base_memfd("file", 0);

	begin(77, &writer, &fd);
	plan_log_set_origin(&writer, 5, 2);
	writes_left = 9;
	ck_assert_int_eq(plan_log_save(&writer, file, &saved), 0);
	ck_assert_uint_eq(read_file(file), 0);
	for (uint64_t k = 0; k < 2000; k++) {
		append(&writer, k);
		writes_left = (unsigned)(suite_random(&seed) % 6);
		if (plan_log_save(&writer, file, &saved)) {
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
	plan_log_detach(&writer);
	close(fd);
	close(file);
}
END_TEST

/* ---- versions ---- */

/* A version of the plan, that goes on with `from` (NULL: the first one). */
static void begin_version(uint8_t version, const struct plan_log *from, uint64_t epoch,
			  uint64_t place, struct plan_log *ret)
{
	uint8_t its[PLAN_LOG_ID] = "a plan";
	int fd;

	its[PLAN_LOG_PLAN] = version;
	ck_assert_int_eq(plan_log_new(10000, 77, its, ret, &fd), 0);
	if (from)
		plan_log_go_on(ret, from, epoch, place);
	close(fd);
}

/* Two went on with the first one, where it had come to different places: one of them has less of it. A third has gone on with the
 * second, under its name; that is as it was. */
START_TEST(versions_know_where_they_part)
{
	enum { FIRST, SHORT, LONG, LONGER, AGAIN, VERSIONS };
	static const struct {
		unsigned of, in;
		uint64_t epoch, place;
		bool has;
	} cases[] = {
	    {FIRST, FIRST, 9, 9, true},   {FIRST, SHORT, 1, 10, true},
	    {FIRST, SHORT, 0, 99, true},  {FIRST, SHORT, 1, 11, false},
	    {FIRST, SHORT, 2, 0, false},  {FIRST, LONG, 1, 11, true},
	    {FIRST, LONGER, 1, 20, true}, {FIRST, LONGER, 1, 21, false},
	    {LONG, LONGER, 2, 5, true},   {LONG, LONGER, 2, 6, false},
	    {SHORT, LONG, 0, 0, false},   {LONG, SHORT, 0, 0, false},
	    {LONGER, LONG, 0, 0, false},  {LONGER, AGAIN, 9, 9, true},
	    {LONG, AGAIN, 2, 5, true},    {LONG, AGAIN, 2, 6, false},
	};
	struct plan_log version[VERSIONS];

	begin_version(1, NULL, 0, 0, &version[FIRST]);
	begin_version(2, &version[FIRST], 1, 10, &version[SHORT]);
	begin_version(3, &version[FIRST], 1, 20, &version[LONG]);
	begin_version(4, &version[LONG], 2, 5, &version[LONGER]);
	begin_version(4, &version[LONGER], 3, 5, &version[AGAIN]);
	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++)
		ck_assert_msg(plan_log_has(&version[cases[i].in], version[cases[i].of].id,
					   cases[i].epoch, cases[i].place) == cases[i].has,
			      "case %zu", i);
	for (unsigned i = 0; i < VERSIONS; i++)
		plan_log_detach(&version[i]);
}
END_TEST

/* The oldest give way. */
START_TEST(the_last_versions_are_known)
{
	struct plan_log version[2];

	begin_version(0, NULL, 0, 0, &version[0]);
	for (uint8_t i = 1; i <= PLAN_LOG_BEFORE + 10; i++) {
		begin_version(i, &version[(i - 1) % 2], 0, i, &version[i % 2]);
		plan_log_detach(&version[(i - 1) % 2]);
	}
	for (uint8_t i = 0; i < PLAN_LOG_BEFORE + 10; i++) {
		uint8_t its[PLAN_LOG_ID] = "a plan";

		its[PLAN_LOG_PLAN] = i;
		ck_assert_int_eq(
		    plan_log_has(&version[PLAN_LOG_BEFORE % 2], its, 0, (uint64_t)i + 1), i >= 10);
		ck_assert(!plan_log_has(&version[PLAN_LOG_BEFORE % 2], its, 0, (uint64_t)i + 2));
	}
	plan_log_detach(&version[PLAN_LOG_BEFORE % 2]);
}
END_TEST

START_TEST(a_file_knows_versions)
{
	struct plan_log first, writer, reader;
	uint64_t saved = 0;
	int file = base_memfd("file", 0), fd;

	begin_version(1, NULL, 0, 0, &first);
	begin_version(2, &first, 1, 10, &writer);
	writes_left = UINT_MAX;
	ck_assert_int_eq(plan_log_save(&writer, file, &saved), 0);
	ck_assert_int_eq(plan_log_save_before(&writer, file), 0);
	ck_assert_int_eq(plan_log_save(&writer, file, &saved), 0);
	fd = sealed_copy(file);
	ck_assert_int_eq(plan_log_attach(fd, UINT64_MAX, &reader), 0);
	ck_assert(plan_log_has(&reader, first.id, 1, 10));
	ck_assert(!plan_log_has(&reader, first.id, 1, 11));
	plan_log_detach(&reader);
	plan_log_detach(&writer);
	plan_log_detach(&first);
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
	uint32_t blocks[MOST_BLOCKS];
	int64_t ids[MOST_BLOCKS];
	struct plan_log writer, reader;
	struct entry expected, got = {.place = 0};
	uint64_t offset = 0;
	pthread_t thread;
	int fd;

	begin(1, &writer, &fd);
	ck_assert_int_eq(plan_log_attach(fd, UINT64_MAX, &reader), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_storm, &writer), 0);
	while (got.place + 1 < STORM) {
		int r = plan_log_read(&reader, &offset, &got);

		if (r == PLAN_LOG_E_GONE)
			offset = plan_log_first(&reader);
		if (r == PLAN_LOG_E_GONE || r == PLAN_LOG_E_NONE)
			continue;
		ck_assert_int_eq(r, 0);
		make(got.place, blocks, ids, &expected);
		ck_assert_msg(is_same(&got, &expected), "entry %llu",
			      (unsigned long long)got.place);
	}
	pthread_join(thread, NULL);
	plan_log_detach(&reader);
	plan_log_detach(&writer);
	close(fd);
}
END_TEST

/* Memory that says it is a plan log of that size: `there` bytes of it are. */
static int forged(uint64_t bytes, uint64_t there, int seals)
{
	struct plan_log_head head = {
	    .magic = PLAN_LOG_MAGIC, .bytes = bytes, .room = bytes - PLAN_LOG_HEAD, .n_samples = 1};
	int fd = base_memfd("forged", bytes);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(posix_fallocate(fd, 0, (off_t)there), 0);
	writes_left = 1;
	ck_assert_int_eq(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Of a size that no log has, with holes, or able to lose its end. */
START_TEST(memory_of_others_is_looked_at_first)
{
	const int sealed = F_SEAL_SHRINK | F_SEAL_GROW | 0x10 /* F_SEAL_FUTURE_WRITE */;
	static const struct {
		uint64_t bytes, there;
		int seals, is;
	} cases[] = {
	    {1 << 20, 1 << 20, sealed, 0},
	    {(1 << 20) + 4096, (1 << 20) + 4096, sealed, PLAN_LOG_E_BAD},
	    {8192, 8192, sealed, PLAN_LOG_E_BAD},
	    {1 << 20, (1 << 20) - 4096, sealed, PLAN_LOG_E_BAD},
	    {1 << 20, 4096, sealed, PLAN_LOG_E_BAD},
	    {1 << 20, 1 << 20, F_SEAL_SHRINK | F_SEAL_GROW, PLAN_LOG_E_BAD},
	    {1 << 20, 1 << 20, sealed & ~F_SEAL_SHRINK, PLAN_LOG_E_BAD},
	};
	struct plan_log plan_log = {.map = NULL};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		int fd = forged(cases[i].bytes, cases[i].there, cases[i].seals);

		ck_assert_msg(plan_log_attach(fd, 1 << 20, &plan_log) == cases[i].is, "case %zu",
			      i);
		close(fd);
	}
	plan_log_detach(&plan_log);
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, memory_of_others_is_looked_at_first);
	tcase_add_test(tcase, what_was_appended_is_read);
	tcase_add_test(tcase, memory_is_reserved_in_steps);
	tcase_add_test(tcase, a_reader_cannot_write);
	tcase_add_test(tcase, a_file_is_whole_wherever_its_writer_dies);
	tcase_add_test(tcase, versions_know_where_they_part);
	tcase_add_test(tcase, the_last_versions_are_known);
	tcase_add_test(tcase, a_file_knows_versions);
	tcase_add_test(tcase, no_entry_is_torn);
}

int main(void)
{
	return suite_run("plan_log", add_tests);
}
