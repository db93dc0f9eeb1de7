/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rows of numbers, by a real access-reader: the records that it composes are those that workers take
 * (pipeline/forms/packed.h), with the file's numbers.
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/little.h"
#include "pipeline/forms/packed.h"
#include "base/number.h"
#include "tests/storage/reader_process.h"
#include "tests/suite.h"

#define FILE_BYTES 4096

static struct tree tree;
static struct process process;

static void setup(void)
{
	tree_new(&tree);
	process_start(&process, NULL, true);
}

static void teardown(void)
{
	tree_remove(&tree);
}

/* A .bin of whatever bytes. */
static void write_bin(uint8_t bytes[FILE_BYTES])
{
	const int fd = openat(tree.fd, "a.bin", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	for (unsigned i = 0; i < FILE_BYTES; i++)
		bytes[i] = tree_byte("a.bin", i);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(base_write_at(fd, bytes, FILE_BYTES, 0), 0);
	close(fd);
}

static struct dataset *open_bin(const char *options)
{
	struct dataset *index;
	char path[4200];
	int fd;

	snprintf(path, sizeof(path), "%s/a.bin?%s", tree.path, options);
	process_ask_open(&process, 1, path, -1);
	fd = process_opened(&process, 1);
	ck_assert_int_ge(fd, 0);
	ck_assert(dataset_is_sealed(fd));
	ck_assert_int_eq(dataset_map(fd, &index), 0);
	close(fd);
	return index;
}

START_TEST(types_are_those_of_batches)
{
	static const struct {
		enum number number;
		enum pipeline_dtype dtype;
	} types[] = {
	    {NUMBER_U8, PIPELINE_U8},   {NUMBER_BOOL, PIPELINE_U8}, {NUMBER_F16, PIPELINE_F16},
	    {NUMBER_F32, PIPELINE_F32}, {NUMBER_I8, PIPELINE_I64},  {NUMBER_U16, PIPELINE_I64},
	    {NUMBER_I16, PIPELINE_I64}, {NUMBER_U32, PIPELINE_I64}, {NUMBER_I32, PIPELINE_I64},
	    {NUMBER_I64, PIPELINE_I64}, {NUMBER_U64, PIPELINE_U64}, {NUMBER_F64, PIPELINE_F64}};

	for (size_t i = 0; i < BASE_ARRAY_LEN(types); i++) {
		ck_assert_uint_eq(number_batch_dtype(types[i].number), types[i].dtype);
		ck_assert_uint_eq(number_batch_bytes(types[i].number),
				  packed_dtype_bytes(types[i].dtype));
	}
	process_stop(&process);
}
END_TEST

static void write_npy(void)
{
	static const char text[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (64, 2), }";
	uint8_t bytes[128 + 128] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
	const int fd = openat(tree.fd, "a.bin", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	memset(bytes + 10, ' ', 118);
	memcpy(bytes + 10, text, strlen(text));
	bytes[127] = '\n';
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(base_write_at(fd, bytes, sizeof(bytes), 0), 0);
	close(fd);
}

/* Of two ways to say what a row is, none is left unheeded. */
START_TEST(rows_are_said_once)
{
	static const struct {
		bool is_npy;
		const char *options, *text;
	} cases[] = {
	    {false, "record=64,seq_len=7,dtype=uint16", "leave record or seq_len out"},
	    {true, "record=64,seq_len=7", "leave record or seq_len out"},
	    {true, "record=2", "leave record out"},
	    {false, "window=2", "windows are of rows of a .npy"},
	    {true, "window=2,seq_len=7", "leave window or seq_len out"},
	    {true, "stride=2", "give window"},
	    {true, "window=65", "none of its series has the 65 rows"},
	    {true, "window=134217727", "more than 2^27 numbers"},
	};
	char path[4200], text[768];
	uint8_t bytes[FILE_BYTES];

	if (cases[_i].is_npy)
		write_npy();
	else
		write_bin(bytes);
	snprintf(path, sizeof(path), "%s/a.bin?%s", tree.path, cases[_i].options);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_REFUSED);
	ck_assert_msg(strstr(text, cases[_i].text), "%s", text);
	process_stop(&process);
}
END_TEST

/* Rows of write_npy(), which are not all in order: bytes of windows are where they are to be. */
static const struct {
	const char *options;
	unsigned windows, length, stride;
} window_cases[] = {
    {"window=1", 64, 1, 1},
    {"window=64", 1, 64, 1},
    {"window=10,stride=7", 8, 10, 7},
    {"stride=100,window=3", 1, 3, 100},
};

START_TEST(records_of_windows)
{
	const unsigned length = window_cases[_i].length, stride = window_cases[_i].stride;
	uint8_t bytes[128];
	struct dataset *index;
	struct work work;
	int fd;

	write_npy();
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = tree_byte("a.bin", i);
	fd = openat(tree.fd, "a.bin", O_WRONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(base_write_at(fd, bytes, sizeof(bytes), 128), 0);
	close(fd);
	index = open_bin(window_cases[_i].options);
	ck_assert_uint_eq(dataset_count(index), window_cases[_i].windows);
	work_new(&work, &tree, index, 1);
	work_attach(&process, &work, 1);
	work_queue(&process, &work);
	work_wait(&process, &work);
	for (unsigned i = 0; i < window_cases[_i].windows; i++) {
		const uint8_t *record = work.arena + work.offset[i];
		struct pipeline_error error;
		struct packed packed;

		ck_assert_int_eq(packed_parse(record, dataset_size_of(index, i), &packed, &error),
				 0);
		ck_assert_uint_eq(packed.field[0].ndim, 2);
		ck_assert_uint_eq(packed.field[0].shape[0], length);
		ck_assert_uint_eq(packed.field[0].shape[1], 2);
		ck_assert_mem_eq(record + packed.field[0].at, bytes + 2 * (size_t)(i * stride),
				 2 * (size_t)length);
	}
	work_detach(&process, &work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* Which would be the end of an archive. */
START_TEST(zeros_are_no_archive)
{
	const int fd = openat(tree.fd, "a.bin", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct dataset *index;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, FILE_BYTES), 0);
	close(fd);
	index = open_bin(_i ? "record=64" : "seq_len=31,dtype=uint16");
	ck_assert_uint_eq(dataset_count(index), _i ? FILE_BYTES / 64 : FILE_BYTES / 2 / 31);
	dataset_unmap(index);
	process_stop(&process);
}
END_TEST

/* Value k of sample i, as the file has it. */
static int64_t value_of(const uint8_t *bytes, unsigned each, bool is_signed, unsigned at)
{
	const uint64_t value = little_get(bytes + (size_t)at * each, each);
	const unsigned unused = 64 - 8 * each;

	return is_signed ? (int64_t)(value << unused) >> unused : (int64_t)value;
}

static const struct rows_case {
	const char *options;
	unsigned each; /* bytes of a number */
	bool is_signed;
	unsigned rows, values, step; /* numbers from one row to the next */
} rows_cases[] = {
    {"record=64", 1, false, 64, 64, 64},
    {"record=4096", 1, false, 1, 4096, 4096},
    {"seq_len=1,dtype=uint16", 2, false, 2047, 2, 1},
    {"seq_len=100,dtype=uint16", 2, false, 20, 101, 100},
    {"seq_len=100,dtype=int32", 4, true, 10, 101, 100},
    {"dtype=uint32,seq_len=1023", 4, false, 1, 1024, 1023},
    {"seq_len=7,dtype=int64", 8, true, 73, 8, 7},
};

static void check_record(const struct rows_case *is, const uint8_t *bytes, const uint8_t *record,
			 uint32_t size, unsigned row)
{
	struct pipeline_error error;
	struct packed packed;

	ck_assert_int_eq(packed_parse(record, size, &packed, &error), 0);
	ck_assert_uint_eq(packed.n, 1);
	ck_assert_uint_eq(packed.field[0].ndim, 1);
	ck_assert_uint_eq(packed.field[0].shape[0], is->values);
	for (unsigned k = 0; k < is->values; k++) {
		const uint8_t *at = record + packed.field[0].at;
		const int64_t value =
		    is->each == 1 ? at[k] : (int64_t)little_64(at + 8 * (size_t)k);

		ck_assert_int_eq(value,
				 value_of(bytes, is->each, is->is_signed, row * is->step + k));
	}
}

START_TEST(records_of_rows)
{
	const struct rows_case *is = &rows_cases[_i];
	static uint8_t bytes[FILE_BYTES];
	struct dataset *index;
	struct work work;

	write_bin(bytes);
	index = open_bin(is->options);
	ck_assert_uint_eq(dataset_count(index), is->rows);
	ck_assert_str_eq(dataset_name_of(index, 0), "[0]");
	work_new(&work, &tree, index, 1);
	work_attach(&process, &work, 1);
	work_queue(&process, &work);
	work_wait(&process, &work);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), is->rows);
	for (unsigned i = 0; i < is->rows; i++)
		check_record(is, bytes, work.arena + work.offset[i], dataset_size_of(index, i), i);
	work_detach(&process, &work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

/* Whoever writes to the file ends all of it. */
START_TEST(changed_file)
{
	static uint8_t bytes[FILE_BYTES];
	struct dataset *index;
	struct work work;

	write_bin(bytes);
	index = open_bin("record=1024");
	work_new(&work, &tree, index, 1);
	work_attach(&process, &work, 1);
	tree_mtime(&tree, "a.bin", 5, 0);
	work_queue(&process, &work);
	work_wait(&process, &work);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), 0);
	work_detach(&process, &work);
	work_free(&work);
	process_stop(&process);
}
END_TEST

static const char *const versions[] = {"seq_len=16,dtype=uint16", "seq_len=16,dtype=int16",
				       "seq_len=17,dtype=uint16", "record=64"};

START_TEST(other_options_are_other_versions)
{
	struct hash_id id[BASE_ARRAY_LEN(versions)];
	static uint8_t bytes[FILE_BYTES];

	write_bin(bytes);
	for (size_t i = 0; i < BASE_ARRAY_LEN(versions); i++) {
		struct dataset *index = open_bin(versions[i]);
		struct wire_out out;

		id[i] = *dataset_version(index);
		for (size_t k = 0; k < i; k++)
			ck_assert_mem_ne(&id[i], &id[k], sizeof(id[i]));
		dataset_unmap(index);
		wire_out_init(&out, READER_CANCEL);
		wire_put_u64(&out, READER_KEY_ID, 1);
		process_send(&process, &out);
	}
	process_stop(&process);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, rows_are_said_once, 0, 8);
	tcase_add_loop_test(tcase, zeros_are_no_archive, 0, 2);
	tcase_add_test(tcase, types_are_those_of_batches);
	tcase_add_loop_test(tcase, records_of_rows, 0, BASE_ARRAY_LEN(rows_cases));
	tcase_add_loop_test(tcase, records_of_windows, 0, BASE_ARRAY_LEN(window_cases));
	tcase_add_test(tcase, changed_file);
	tcase_add_test(tcase, other_options_are_other_versions);
}

int main(void)
{
	return suite_run("rows", add);
}
