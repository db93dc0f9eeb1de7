/* SPDX-License-Identifier: Apache-2.0 */

/* The resident memory: what is taken can be written and is seen, what is given back is gone, nobody who has it
 * read-only writes it, and no number of a task leads out of it. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmring/region.h"
#include "shmring/resident.h"
#include "tests/shmring/suite.h"

enum { CHUNKS = 3 };
#define BYTES (CHUNKS * RESIDENT_CHUNK)

static int fd;
static struct resident writer, reader;

static void setup(void)
{
	ck_assert_int_eq(resident_new(BYTES + 4095, &fd), 0);
	ck_assert_int_eq(resident_attach(fd, true, &writer), 0);
	ck_assert_int_eq(resident_attach(fd, false, &reader), 0);
	ck_assert_uint_eq(reader.bytes, BYTES);
}

static void teardown(void)
{
	resident_detach(&writer);
	resident_detach(&reader);
	resident_detach(&reader);
	close(fd);
}

static uint64_t taken_bytes(void)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

START_TEST(chunks_come_and_go)
{
	const uint8_t *at = resident_at(&reader, RESIDENT_CHUNK + 1, RESIDENT_CHUNK);

	ck_assert_ptr_eq(at, reader.data + RESIDENT_CHUNK);
	ck_assert_uint_eq(taken_bytes(), 0);
	ck_assert_int_eq(resident_take(fd, 1), 0);
	ck_assert_uint_eq(taken_bytes(), RESIDENT_CHUNK);
	memset(writer.data + RESIDENT_CHUNK, 0x5a, RESIDENT_CHUNK);
	ck_assert_uint_eq(at[0] + at[RESIDENT_CHUNK - 1], 2 * 0x5a);
	ck_assert_int_eq(resident_take(fd, 2), 0);
	ck_assert_int_eq(resident_give_back(fd, 1, 1), 0);
	ck_assert_uint_eq(taken_bytes(), RESIDENT_CHUNK);
	ck_assert_uint_eq(at[0] + at[RESIDENT_CHUNK - 1], 0);
	ck_assert_int_eq(resident_give_back(fd, 0, CHUNKS), 0);
	ck_assert_uint_eq(taken_bytes(), 0);
	ck_assert_int_lt(resident_take(fd, CHUNKS), 0); /* it does not grow */
}
END_TEST

static const struct {
	uint64_t place, bytes;
	bool is_there;
} places[] = {
    {0, 0, false},
    {0, 1, false},
    {1, 0, true},
    {1, BYTES, true},
    {1, BYTES + 1, false},
    {2, BYTES, false},
    {BYTES, 1, true},
    {BYTES, 2, false},
    {BYTES + 1, 0, true},
    {BYTES + 1, 1, false},
    {BYTES + 2, 0, false},
    {UINT64_MAX, 1, false},
    {UINT64_MAX, UINT32_MAX, false},
    {1, UINT64_MAX, false},
    {UINT64_MAX, UINT64_MAX, false},
};

START_TEST(no_number_leads_out_of_it)
{
	const struct resident none = {.data = NULL};

	for (size_t i = 0; i < BASE_ARRAY_LEN(places); i++) {
		const uint8_t *at = resident_at(&reader, places[i].place, places[i].bytes);

		ck_assert_msg((at != NULL) == places[i].is_there, "place %zu", i);
		ck_assert(!at || at == reader.data + (places[i].place - 1));
		ck_assert(places[i].bytes == 0 ||
			  !resident_at(&none, places[i].place, places[i].bytes));
	}
}
END_TEST

/* As a worker has it: the descriptor is closed. */
START_TEST(readers_do_not_write)
{
	const struct rlimit no_core = {0, 0};
	int status;
	pid_t pid;

	ck_assert_int_eq(resident_take(fd, 0), 0);
	pid = fork();
	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		signal(SIGSEGV, SIG_DFL);
		close(fd);
		*(volatile uint8_t *)reader.data = 1;
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	ck_assert_uint_eq(writer.data[0], 0);
}
END_TEST

START_TEST(its_size_is_for_ever)
{
	ck_assert_int_lt(ftruncate(fd, RESIDENT_CHUNK), 0);
	ck_assert_int_lt(ftruncate(fd, 2 * BYTES), 0);
	ck_assert_int_lt(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0);
}
END_TEST

START_TEST(what_is_none_is_refused)
{
	struct resident other = {.data = NULL};
	int open_fd = base_memfd("open", BYTES), odd_fd = base_memfd("odd", BYTES - 4096), none;

	ck_assert_int_eq(resident_new(0, &none), RESIDENT_E_BAD);
	ck_assert_int_eq(resident_new(RESIDENT_CHUNK - 1, &none), RESIDENT_E_BAD);
	ck_assert_int_eq(resident_new(UINT64_MAX, &none), RESIDENT_E_BAD);
	ck_assert_int_eq(resident_attach(open_fd, true, &other), RESIDENT_E_BAD);
	ck_assert_int_eq(fcntl(odd_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	ck_assert_int_eq(resident_attach(odd_fd, true, &other), RESIDENT_E_BAD);
	ck_assert_ptr_null(other.data);
	close(open_fd);
	close(odd_fd);
}
END_TEST

static long faults(void)
{
	struct rusage usage;

	ck_assert_int_eq(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_minflt + usage.ru_majflt;
}

/* Else each page of it is met by a fault. A sanitizer's shadow has some of its own. */
START_TEST(what_was_touched_is_there)
{
	const long pages = (long)(RESIDENT_CHUNK / base_page_size());
	long before;

	ck_assert_int_eq(resident_take(fd, 1), 0);
	region_touch(writer.data + RESIDENT_CHUNK + 5, RESIDENT_CHUNK - 5);
	before = faults();
	memset(writer.data + RESIDENT_CHUNK, 0x5a, RESIDENT_CHUNK);
	ck_assert_int_lt(faults() - before, pages / 2);
	ck_assert_uint_eq(taken_bytes(), RESIDENT_CHUNK);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, chunks_come_and_go);
	tcase_add_test(tcase, what_was_touched_is_there);
	tcase_add_test(tcase, no_number_leads_out_of_it);
	tcase_add_test(tcase, readers_do_not_write);
	tcase_add_test(tcase, its_size_is_for_ever);
	tcase_add_test(tcase, what_is_none_is_refused);
}

int main(void)
{
	return suite_run("resident", add);
}
