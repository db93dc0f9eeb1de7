/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Converted data sets: what is written is read again, here and by a real access-reader, and every kind
 * of damage and change has its outcome.
 */

#include "storage/oads.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/index.h"
#include "tests/storage/reader_process.h"

#define FILES 150 /* three groups of places */

static struct tree tree;
static struct dataset *folder; /* what was converted */
static char path[4200];
static int fd = -1; /* of the converted data set, writable */

/* Some are empty, one has just the bytes between two places, one is larger. */
static uint32_t size_of(unsigned i)
{
	static const uint32_t sizes[] = {0, 1, 63, 64, 65, 9000};

	return i < BASE_ARRAY_LEN(sizes) ? sizes[i] : i * i % 977;
}

static void convert(void)
{
	static uint8_t bytes[9000];
	struct oads_writer writer;

	ck_assert_int_eq(oads_writer_init(&writer, fd, FILES), 0);
	for (uint64_t i = 0; i < FILES; i++) {
		const uint32_t size = dataset_size_of(folder, i);

		for (uint32_t k = 0; k < size; k++)
			bytes[k] = tree_byte(dataset_name_of(folder, i), k);
		ck_assert_int_eq(
		    oads_add(&writer, bytes, size, hash_checksum(bytes, size), size, false), 0);
	}
	ck_assert_int_eq(oads_add(&writer, bytes, 1, 0, 1, false), -ERANGE);
	ck_assert_int_eq(oads_finish(&writer, folder, 0), 0);
	oads_writer_fini(&writer);
}

static void setup(void)
{
	tree_new(&tree);
	for (unsigned i = 0; i < FILES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "c%u/%03u.jpg", i * 3 / FILES, i);
		tree_file(&tree, name, size_of(i));
	}
	snprintf(path, sizeof(path), "%s/all.oads", tree.path);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	folder = tree_scan(&tree, 2);
	convert();
}

static void teardown(void)
{
	dataset_unmap(folder);
	base_close(&fd);
	tree_remove(&tree);
}

struct opened {
	struct oads *oads;
	struct dataset *index;
};

static struct opened open_it(void)
{
	struct opened opened;
	struct diag diag = {""};
	int index_fd;

	ck_assert_msg(oads_open(fd, path, NULL, &opened.oads, &diag) == 0, "%s", diag.text);
	ck_assert_int_eq(oads_index(opened.oads, NULL, &index_fd), 0);
	ck_assert(dataset_is_sealed(index_fd));
	ck_assert_int_eq(dataset_map(index_fd, &opened.index), 0);
	close(index_fd);
	ck_assert(oads_is_index(opened.oads, opened.index));
	return opened;
}

static void close_it(struct opened *opened)
{
	oads_close(opened->oads);
	dataset_unmap(opened->index);
}

static void change_byte(uint64_t at)
{
	uint8_t byte;

	ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at), 1);
	byte ^= 0x10;
	ck_assert_int_eq(pwrite(fd, &byte, 1, (off_t)at), 1);
}

static uint64_t place_of(uint64_t sample)
{
	struct opened opened = open_it();
	uint64_t at;

	ck_assert(oads_place(opened.oads, opened.index, sample, &at));
	close_it(&opened);
	return at;
}

/* ---- the file ---- */

START_TEST(what_was_written_is_read)
{
	static uint8_t bytes[9001];
	struct opened opened = open_it();
	const struct oads_head *head = oads_head(opened.oads);

	ck_assert_uint_eq(dataset_count(opened.index), FILES);
	ck_assert_uint_eq(dataset_classes(opened.index), dataset_classes(folder));
	ck_assert_uint_eq(head->source_bytes, dataset_head(folder)->sum_bytes);
	for (uint64_t i = 0; i < FILES; i++) {
		const char *name = dataset_name_of(folder, i);
		const uint32_t size = dataset_size_of(folder, i);
		uint64_t at;

		ck_assert_str_eq(dataset_name_of(opened.index, i), name);
		ck_assert_uint_eq(dataset_size_of(opened.index, i), size);
		ck_assert_uint_eq(dataset_label_of(opened.index, i), dataset_label_of(folder, i));
		ck_assert(oads_place(opened.oads, opened.index, i, &at));
		ck_assert_uint_eq(at % OADS_ALIGN, 0);
		bytes[size] = 77;
		ck_assert_int_eq(oads_read(opened.oads, opened.index, i, bytes), 0);
		ck_assert_uint_eq(bytes[size], 77);
		for (uint32_t k = 0; k < size; k++)
			ck_assert_uint_eq(bytes[k], tree_byte(name, k));
	}
	close_it(&opened);
}
END_TEST

START_TEST(version_is_of_the_content_alone)
{
	struct opened opened = open_it();
	const struct hash_id version = *dataset_version(opened.index);

	close_it(&opened);
	ck_assert_mem_ne(&version, dataset_version(folder), sizeof(version));
	tree_mtime(&tree, "all.oads", 1000, 1);
	opened = open_it();
	ck_assert_mem_eq(&version, dataset_version(opened.index), sizeof(version));
	close_it(&opened);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	for (unsigned i = 0; i < FILES; i++) /* copied, with other times */
		tree_mtime(&tree, dataset_name_of(folder, i), 2000 + i, 0);
	dataset_unmap(folder);
	folder = tree_scan(&tree, 1);
	convert();
	opened = open_it();
	ck_assert_mem_eq(&version, dataset_version(opened.index), sizeof(version));
	close_it(&opened);
}
END_TEST

/* Each bit of the head and of the starts counts, and each length. */
START_TEST(damage_to_what_places_samples_is_found)
{
	struct opened opened = open_it();
	const struct oads_head head = *oads_head(opened.oads);
	const uint64_t starts = base_align_up(head.index_at + head.index_bytes, OADS_ALIGN);
	struct oads *oads;
	struct diag diag;

	close_it(&opened);
	for (uint64_t at = 0; at < sizeof(head); at++) {
		change_byte(at);
		ck_assert_int_eq(oads_open(fd, path, NULL, &oads, &diag),
				 at < sizeof(head.magic) ? OADS_E_NONE : OADS_E_BAD);
		change_byte(at);
	}
	for (uint64_t at = starts; at < head.bytes; at++) {
		change_byte(at);
		ck_assert_int_eq(oads_open(fd, path, NULL, &oads, &diag), OADS_E_BAD);
		change_byte(at);
	}
	ck_assert_int_eq(ftruncate(fd, (off_t)head.bytes + 1), 0);
	ck_assert_int_eq(oads_open(fd, path, NULL, &oads, &diag), OADS_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "all.oads"));
	for (uint64_t size = head.bytes; size-- > head.bytes - 200;) {
		ck_assert_int_eq(ftruncate(fd, (off_t)size), 0);
		ck_assert_int_eq(oads_open(fd, path, NULL, &oads, &diag), OADS_E_BAD);
	}
	ck_assert_int_eq(ftruncate(fd, sizeof(head) - 1), 0);
	ck_assert_int_eq(oads_open(fd, path, NULL, &oads, &diag), OADS_E_NONE);
}
END_TEST

START_TEST(damage_to_a_sample_is_found)
{
	static uint8_t bytes[9000];
	struct opened opened;

	change_byte(place_of(5) + 4711);
	opened = open_it();
	ck_assert_int_eq(oads_read(opened.oads, opened.index, 5, bytes), OADS_E_DAMAGED);
	ck_assert_int_eq(oads_read(opened.oads, opened.index, 4, bytes), 0);
	ck_assert_int_eq(oads_read(opened.oads, opened.index, 6, bytes), 0);
	change_byte(place_of(5) + 4711); /* whole again, but written to */
	ck_assert_int_eq(oads_read(opened.oads, opened.index, 5, bytes), OADS_E_CHANGED);
	ck_assert_int_eq(oads_check(opened.oads), OADS_E_CHANGED);
	close_it(&opened);
}
END_TEST

START_TEST(a_cut_file_has_changed)
{
	static uint8_t bytes[9000];
	struct opened opened = open_it();

	ck_assert_int_eq(ftruncate(fd, 5000), 0);
	for (uint64_t i = 0; i < FILES; i++)
		ck_assert_int_eq(oads_read(opened.oads, opened.index, i, bytes), OADS_E_CHANGED);
	close_it(&opened);
}
END_TEST

/* ---- claims: a file of some blocks that says that it is large ---- */

#define CLAIM (UINT64_C(1) << 40)

/* The head says that, and is whole. */
static void claim(struct oads_head head)
{
	ck_assert_int_eq(ftruncate(fd, (off_t)head.bytes), 0);
	head.head_checksum = 0;
	head.head_checksum = hash_checksum(&head, sizeof(head));
	ck_assert_int_eq(base_write_at(fd, &head, sizeof(head), 0), 0);
}

/* Of the machine's memory only what is there is taken: a whole claim would not fit. */
START_TEST(an_index_is_no_larger_than_what_is_stored)
{
	static uint8_t starts[4096];
	struct opened opened = open_it();
	struct oads_head head = *oads_head(opened.oads);
	const uint64_t at = base_align_up(head.index_at + head.index_bytes, OADS_ALIGN);
	const uint64_t size = head.bytes - at;
	struct oads *oads;
	struct diag diag = {""};
	int index_fd;

	close_it(&opened);
	ck_assert_uint_le(size, sizeof(starts));
	ck_assert_int_eq(pread(fd, starts, size, (off_t)at), (ssize_t)size);
	head.index_bytes += CLAIM;
	head.bytes += CLAIM;
	claim(head);
	ck_assert_int_eq(base_write_at(fd, starts, size, at + CLAIM), 0);
	ck_assert_msg(oads_open(fd, path, NULL, &oads, &diag) == 0, "%s", diag.text);
	ck_assert_int_eq(oads_index(oads, NULL, &index_fd), OADS_E_BAD);
	oads_close(oads);
}
END_TEST

/* As long as 2^32 samples would need, and without any. */
START_TEST(places_are_no_more_than_what_is_stored)
{
	struct opened opened = open_it();
	struct oads_head head = *oads_head(opened.oads);
	struct oads *oads;
	struct rusage usage;
	struct diag diag;

	close_it(&opened);
	head.n_samples = INDEX_MAX_SAMPLES;
	head.bytes = base_align_up(head.index_at + head.index_bytes, OADS_ALIGN) +
		     8 * (head.n_samples / OADS_GROUP + 1);
	claim(head);
	ck_assert_int_eq(oads_open(fd, path, NULL, &oads, &diag), OADS_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, "places"));
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &usage), 0);
	ck_assert_int_lt(usage.ru_maxrss, 256 << 10); /* KiB */
}
END_TEST

/* ---- access-reader ---- */

static struct process process;

static void open_work(struct work *work)
{
	struct dataset *index;
	int index_fd;

	process_ask_open(&process, 1, path, -1);
	index_fd = process_opened(&process, 1);
	ck_assert_int_ge(index_fd, 0);
	ck_assert(dataset_is_sealed(index_fd));
	ck_assert_int_eq(dataset_map(index_fd, &index), 0);
	close(index_fd);
	work_new(work, &tree, index, 1);
	work_attach(&process, work, 1);
}

static enum layout_fail outcome(const struct work *work, uint32_t task, char text[48])
{
	enum layout_fail stage;
	uint32_t us;
	int code;

	queue_task_outcome(&work->queue, work->row, task, &stage, &code, text, &us);
	return stage;
}

/* Also from a disk that gives few bytes at a time, or fails now and then. */
START_TEST(reader_reads_every_sample)
{
	static const char *const faults[] = {NULL, "short eintr", "eio"};
	struct work work;

#ifdef __clang__
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
	if (faults[_i])
		return; /* reader_test.c says why */
#endif
#endif
	process_start(&process, faults[_i], true);
	open_work(&work);
	work_queue(&process, &work);
	work_wait(&process, &work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

START_TEST(reader_tells_damage_of_one_sample)
{
	struct work work;
	char text[48];

	change_byte(place_of(5));
	process_start(&process, NULL, true);
	open_work(&work);
	work_queue(&process, &work);
	work_wait(&process, &work);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), FILES - 1);
	ck_assert_int_eq(outcome(&work, 5, text), LAYOUT_FAIL_READ);
	ck_assert_ptr_nonnull(strstr(text, "checksum"));
	process_failed(&process, &work, 5);
	work_free(&work);
	process_stop(&process);
}
END_TEST

static void touch_it(void)
{
	tree_mtime(&tree, "all.oads", 1000, 0);
}
static void cut_it(void)
{
	ck_assert_int_eq(ftruncate(fd, 4000), 0);
}
static void write_it(void)
{
	change_byte(place_of(5));
}
static void (*const changes[])(void) = {touch_it, cut_it, write_it};

START_TEST(reader_tells_a_change)
{
	struct work work;
	char text[48];

	tree_mtime(&tree, "all.oads", 5, 5);
	process_start(&process, NULL, true);
	open_work(&work);
	changes[_i]();
	work_queue(&process, &work);
	work_wait(&process, &work);
	for (uint32_t i = 0; i < FILES; i++)
		ck_assert_int_eq(outcome(&work, i, text), LAYOUT_FAIL_CHANGED);
	work_free(&work);
	process_stop(&process);
}
END_TEST

START_TEST(another_file_of_that_name_is_another_data_set)
{
	struct work work;

	process_start(&process, NULL, true);
	open_work(&work);
	ck_assert_int_eq(unlinkat(tree.fd, "all.oads", 0), 0);
	tree_file(&tree, "all.oads", 9999);
	work_queue(&process, &work);
	work_wait(&process, &work);
	work_check(&work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

static int stored_of(int index_fd)
{
	char name[] = "stored-XXXXXX";
	const int stored_fd = mkstemp(name);
	uint8_t buffer[65536];
	const ssize_t size = pread(index_fd, buffer, sizeof(buffer), 0);

	ck_assert_int_ge(stored_fd, 0);
	unlink(name);
	ck_assert_int_eq(write(stored_fd, buffer, (size_t)size), size);
	return stored_fd;
}

START_TEST(stored_index_is_used_if_it_is_the_same)
{
	_cleanup_close_ int index_fd = -1, stored_fd = -1, again_fd = -1;

	process_start(&process, NULL, true);
	process_ask_open(&process, 1, path, -1);
	index_fd = process_opened(&process, 1);
	stored_fd = stored_of(index_fd);
	process_ask_open(&process, 2, path, stored_fd);
	ck_assert_int_eq(process_opened(&process, 2), -1);
	change_byte(place_of(0) + 3 * OADS_ALIGN); /* whatever: it is the index that counts */
	process_ask_open(&process, 3, path, stored_fd);
	ck_assert_int_eq(process_opened(&process, 3), -1);
	tree_file(&tree, "c1/999.jpg", 9);
	dataset_unmap(folder);
	folder = tree_scan(&tree, 1); /* the index of something else */
	process_ask_open(&process, 4, tree.path, -1);
	again_fd = process_opened(&process, 4);
	base_close(&stored_fd);
	stored_fd = stored_of(again_fd);
	process_ask_open(&process, 5, path, stored_fd);
	base_close(&again_fd);
	again_fd = process_opened(&process, 5);
	ck_assert_int_ge(again_fd, 0);
	process_stop(&process);
}
END_TEST

START_TEST(reader_refuses_what_is_damaged_or_none)
{
	char other[4200], text[768];

	tree_file(&tree, "picture.jpg", 5000);
	snprintf(other, sizeof(other), "%s/picture.jpg", tree.path);
	process_start(&process, NULL, true);
	process_ask_open(&process, 1, other, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), -ENOTDIR);
	ck_assert_ptr_nonnull(strstr(text, "access-ctl convert"));

	change_byte(50);
	process_ask_open(&process, 2, path, -1);
	ck_assert_int_eq(process_refused(&process, 2, text), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(text, "all.oads"));
	change_byte(50);

	change_byte(base_align_up(place_of(FILES - 1) + size_of(FILES - 1), OADS_ALIGN) + 300);
	process_ask_open(&process, 3, path, -1);
	ck_assert_int_eq(process_refused(&process, 3, text), DATASET_E_REFUSED);
	ck_assert_ptr_nonnull(strstr(text, "index"));

	ck_assert_int_eq(mkfifoat(tree.fd, "fifo", 0600), 0);
	snprintf(other, sizeof(other), "%s/fifo", tree.path);
	process_ask_open(&process, 4, other, -1);
	ck_assert_int_eq(process_refused(&process, 4, text), -ENOTDIR);
	process_stop(&process);
}
END_TEST

START_TEST(reader_takes_no_more_memory_than_it_may)
{
	char text[768];

	process_start(&process, NULL, true);
	process_ask_open_within(&process, 1, path, 8); /* not even its places */
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_ROOM);
	process_ask_open_within(&process, 2, path, 1000);
	ck_assert_int_eq(process_refused(&process, 2, text), DATASET_E_ROOM);
	ck_assert_msg(strstr(text, "1000 B") && strstr(text, "tenant_memory"), "%s", text);
	process_ask_open_within(&process, 3, path, 100000);
	close(process_opened(&process, 3));
	process_stop(&process);
}
END_TEST

static Suite *oads_suite(void)
{
	Suite *suite = suite_create("oads");
	TCase *file = tcase_create("file"), *reader = tcase_create("reader");

	tcase_add_checked_fixture(file, setup, teardown);
	tcase_add_test(file, what_was_written_is_read);
	tcase_add_test(file, version_is_of_the_content_alone);
	tcase_add_test(file, damage_to_what_places_samples_is_found);
	tcase_add_test(file, damage_to_a_sample_is_found);
	tcase_add_test(file, a_cut_file_has_changed);
	tcase_add_test(file, an_index_is_no_larger_than_what_is_stored);
	tcase_add_test(file, places_are_no_more_than_what_is_stored);
	suite_add_tcase(suite, file);
	tcase_add_checked_fixture(reader, setup, teardown);
	tcase_add_loop_test(reader, reader_reads_every_sample, 0, 3);
	tcase_add_test(reader, reader_tells_damage_of_one_sample);
	tcase_add_loop_test(reader, reader_tells_a_change, 0, (int)BASE_ARRAY_LEN(changes));
	tcase_add_test(reader, another_file_of_that_name_is_another_data_set);
	tcase_add_test(reader, stored_index_is_used_if_it_is_the_same);
	tcase_add_test(reader, reader_refuses_what_is_damaged_or_none);
	tcase_add_test(reader, reader_takes_no_more_memory_than_it_may);
	suite_add_tcase(suite, reader);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(oads_suite());
	int failed;

	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
