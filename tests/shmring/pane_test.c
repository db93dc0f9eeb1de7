/* SPDX-License-Identifier: Apache-2.0 */

/* A text under a sequence lock: read whole or not at all, by whoever has it, while it is written; and what is none of ours. */

#include "shmring/pane.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/shmring/suite.h"

static struct pane pane;
static struct pane_view view;

static void made(uint64_t room)
{
	ck_assert_int_eq(pane_new(room, &pane), 0);
	ck_assert_int_eq(pane_attach(pane.fd, &view), 0);
}

static void ended(void)
{
	pane_detach(&view);
	pane_end(&pane);
}

static void check_reads(const char *expected)
{
	char *text = NULL;
	size_t size = 0;

	ck_assert_int_eq(pane_read(&view, &text, &size), 0);
	ck_assert_uint_eq(size, strlen(expected));
	ck_assert_str_eq(text, expected);
	free(text);
}

static void check_read_is(int expected)
{
	char *text = NULL;
	size_t size = 0;

	ck_assert_int_eq(pane_read(&view, &text, &size), expected);
	ck_assert_ptr_null(text);
}

static int wrote(const char *text)
{
	return pane_write(&pane, text, strlen(text));
}

START_TEST(what_is_written_is_read_once)
{
	made(100);
	check_read_is(PANE_E_OLD); /* nothing was written yet */
	ck_assert_int_eq(wrote("a longer text, of several words"), 0);
	check_reads("a longer text, of several words");
	check_read_is(PANE_E_OLD);
	ck_assert_int_eq(wrote("short"), 0);
	ck_assert_int_eq(wrote(""), 0);
	check_reads("");
	pane_end(&pane);
	check_read_is(PANE_E_ENDED);
	ended();
}
END_TEST

START_TEST(what_has_no_room_leaves_the_text)
{
	char *large;

	made(100);
	large = calloc(1, pane.room + 2);
	ck_assert_ptr_nonnull(large);
	memset(large, 'x', pane.room + 1);
	ck_assert_int_eq(wrote("good"), 0);
	ck_assert_int_eq(wrote(large), PANE_E_ROOM);
	check_reads("good");
	large[pane.room] = '\0';
	ck_assert_int_eq(wrote(large), 0); /* to the last byte */
	check_reads(large);
	free(large);
	ended();
}
END_TEST

START_TEST(watchers_cannot_write)
{
	made(100);
	ck_assert_ptr_eq(mmap(NULL, pane.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, pane.fd, 0),
			 MAP_FAILED);
	ck_assert_int_eq(pwrite(pane.fd, "x", 1, 0), -1);
	ck_assert_int_eq(ftruncate(pane.fd, 0), -1);
	ck_assert_int_eq(fallocate(pane.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096),
			 -1);
	ck_assert_int_eq(mprotect((void *)(uintptr_t)view.map, view.bytes, PROT_READ | PROT_WRITE),
			 -1);
	ended();
}
END_TEST

/* Words that an accessd gone mad, or stopped in the middle, leaves. */
START_TEST(odd_words_are_noticed)
{
	made(100);
	ck_assert_int_eq(wrote("good"), 0);
	atomic_store(&pane.map->d_seq, 3);
	check_read_is(PANE_E_BUSY);
	atomic_store(&pane.map->d_seq, 4);
	atomic_store(&pane.map->d_size, pane.room + 1);
	check_read_is(PANE_E_BAD);
	atomic_store(&pane.map->d_size, UINT64_MAX);
	check_read_is(PANE_E_BAD);
	atomic_store(&pane.map->d_size, 4);
	check_reads("good");
	ended();
}
END_TEST

/* ---- forged ones ---- */

static const struct {
	size_t offset; /* of a word of 64 bits */
	uint64_t value;
	int seals;
} forged[] = {
    {0, 1, F_SEAL_WRITE}, /* magic */
    {8, 2 | UINT64_C(128) << 32, F_SEAL_WRITE},
    {8, 1 | UINT64_C(64) << 32, F_SEAL_WRITE},
    {16, 1 << 20, F_SEAL_WRITE}, /* room */
    {16, UINT64_MAX, F_SEAL_WRITE},
    {24, 0, 0}, /* as it should be, but not sealed against writing */
};

START_TEST(forged_ones_stay_out)
{
	int fd = base_memfd("forged", 4096);
	struct layout_pane head = {.magic = LAYOUT_MAGIC_PANE,
				   .version = LAYOUT_VERSION,
				   .head_bytes = sizeof(head),
				   .room = 4096 - sizeof(head)};

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &head, sizeof(head), 0), sizeof(head));
	ck_assert_int_eq(pwrite(fd, &forged[_i].value, 8, (off_t)forged[_i].offset), 8);
	ck_assert_int_eq(
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL | forged[_i].seals),
	    0);
	ck_assert_int_eq(pane_attach(fd, &view), PANE_E_BAD);
	close(fd);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ne(pane_attach(fd, &view), 0);
	close(fd);
}
END_TEST

/* ---- while it is written ---- */

#define WRITINGS 20000

static atomic_bool is_over;

/* Each text is of one letter, whose number says how long it is. */
static void *write_all(void *arg)
{
	char text[26 * 40 + 1];

	(void)arg;
	for (unsigned i = 0; i < WRITINGS; i++) {
		size_t size = (i % 26 + 1) * 40;

		memset(text, (char)('a' + i % 26), size);
		if (pane_write(&pane, text, size))
			abort();
	}
	atomic_store(&is_over, true);
	return NULL;
}

static void *read_all(void *arg)
{
	uintptr_t *n = arg;
	struct pane_view mine;
	bool was_over = false;

	if (pane_attach(pane.fd, &mine))
		abort();
	while (!was_over) { /* once more behind the end: the last one is there */
		char *text = NULL;
		size_t size = 0;

		was_over = atomic_load(&is_over);
		if (pane_read(&mine, &text, &size) == 0) {
			if (size != (size_t)(text[0] - 'a' + 1) * 40 ||
			    strspn(text, (char[]){text[0], '\0'}) != size)
				abort(); /* a torn one */
			++*n;
		}
		free(text);
	}
	pane_detach(&mine);
	return NULL;
}

START_TEST(no_text_is_torn)
{
	pthread_t writer, reader[3];
	uintptr_t n[3] = {0};

	made(26 * 40);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(pthread_create(&reader[i], NULL, read_all, &n[i]), 0);
	ck_assert_int_eq(pthread_create(&writer, NULL, write_all, NULL), 0);
	pthread_join(writer, NULL);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(reader[i], NULL);
		ck_assert_uint_ge(n[i], 1);
	}
	ended();
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_test(tcase, what_is_written_is_read_once);
	tcase_add_test(tcase, what_has_no_room_leaves_the_text);
	tcase_add_test(tcase, watchers_cannot_write);
	tcase_add_test(tcase, odd_words_are_noticed);
	tcase_add_loop_test(tcase, forged_ones_stay_out, 0, BASE_ARRAY_LEN(forged));
	tcase_add_test(tcase, no_text_is_torn);
}

int main(void)
{
	return suite_run("pane", add_tests);
}
