/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arrays beside each other, and beside pictures, by a real access-reader: the records that it composes are those that workers take, with the
 * files' numbers; and whatever numbers stand in a file, nothing but that file's bytes comes of it.
 */

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/little.h"
#include "base/npy.h"
#include "pipeline/forms/packed.h"
#include "tests/storage/reader_process.h"
#include "tests/suite.h"

#define SAMPLES 6
#define ROWS 9 /* of the ragged field */
#define MOST 3

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

static void write_npy(const char *name, const char *descr, const char *shape, const void *data,
		      size_t size)
{
	uint8_t head[128] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
	const int fd = openat(tree.fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	char text[118];
	int length;

	length = snprintf(text, sizeof(text),
			  "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
	ck_assert_int_ge(fd, 0);
	memset(head + 10, ' ', 118);
	memcpy(head + 10, text, (size_t)length);
	head[127] = '\n';
	ck_assert_int_eq(base_write_at(fd, head, sizeof(head), 0), 0);
	ck_assert_int_eq(base_write_at(fd, data, size, sizeof(head)), 0);
	close(fd);
}

static int16_t dense[SAMPLES][2];
static float ragged[ROWS];
static int64_t places[SAMPLES][2] = {{6, 3}, {0, 1}, {1, 0}, {1, 2}, {3, 3}, {9, 0}};
static const uint8_t written[SAMPLES] = {1, 1, 1, 1, 1, 1};

static void write_all(void)
{
	for (int i = 0; i < SAMPLES; i++) {
		dense[i][0] = (int16_t)(100 * i);
		dense[i][1] = (int16_t)-i;
	}
	for (int i = 0; i < ROWS; i++)
		ragged[i] = (float)i / 2;
	write_npy("dense.npy", "<i2", "6, 2", dense, sizeof(dense));
	write_npy("ragged.npy", "<f4", "9,", ragged, sizeof(ragged));
	write_npy("ragged.places.npy", "<i8", "6, 2", places, sizeof(places));
	write_npy("written.npy", "|u1", "6,", written, sizeof(written));
}

static struct dataset *open_with(const char *options)
{
	struct dataset *index;
	char path[9000];
	int fd;

	snprintf(path, sizeof(path), "%s?%s", tree.path, options);
	process_ask_open(&process, 1, path, -1);
	fd = process_opened(&process, 1);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(dataset_map(fd, &index), 0);
	close(fd);
	return index;
}

static void read_all(struct work *work, struct dataset *index)
{
	work_new(work, &tree, index, 1);
	work_attach(&process, work, 1);
	work_queue(&process, work);
	work_wait(&process, work);
}

static void end(struct work *work)
{
	work_detach(&process, work);
	work_free(work);
	process_stop(&process);
}

static void parse(const struct work *work, uint32_t i, struct packed *ret)
{
	struct pipeline_error error;

	ck_assert_int_eq(packed_parse(work->arena + work->offset[i],
				      dataset_size_of(work->dataset, i), ret, &error),
			 0);
}

static void check_dense(const struct packed *record, unsigned field, unsigned sample)
{
	ck_assert_uint_eq(record->field[field].dtype, PIPELINE_I64);
	ck_assert_uint_eq(record->field[field].ndim, 1);
	ck_assert_uint_eq(record->field[field].shape[0], 2);
	for (unsigned k = 0; k < 2; k++)
		ck_assert_int_eq((int64_t)little_64(record->value[field] + 8 * k),
				 dense[sample][k]);
}

static void check_ragged(const struct packed *record, unsigned field, unsigned sample)
{
	ck_assert_uint_eq(record->field[field].dtype, PIPELINE_F32);
	ck_assert_uint_eq(record->field[field].shape[0], (uint64_t)places[sample][1]);
	ck_assert_mem_eq(record->value[field], ragged + places[sample][0],
			 sizeof(float) * (size_t)places[sample][1]);
}

START_TEST(fields_are_those_of_the_files)
{
	struct dataset *index;
	struct packed record;
	struct work work;

	write_all();
	index = open_with("fields=dense;ragged:3");
	ck_assert_uint_eq(dataset_count(index), SAMPLES);
	read_all(&work, index);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), SAMPLES);
	for (unsigned i = 0; i < SAMPLES; i++) {
		parse(&work, i, &record);
		ck_assert_uint_eq(record.n, 2);
		check_dense(&record, 0, i);
		check_ragged(&record, 1, i);
	}
	end(&work);
}
END_TEST

/* Of each of them sample 3 alone is bad. */
START_TEST(numbers_may_be_any)
{
	static const int64_t bad[][2] = {
	    {0, MOST + 1},          {-1, 1}, {ROWS, 1},      {1, ROWS},
	    {INT64_MAX, 2},         {0, -1}, {INT64_MIN, 1}, {1, INT64_MAX},
	    {INT64_MAX, INT64_MAX}, {-3, 3},
	};
	int64_t forged[SAMPLES][2];
	uint8_t marks[SAMPLES];
	struct packed record;
	struct work work;

	write_all();
	memcpy(forged, places, sizeof(forged));
	memcpy(marks, written, sizeof(marks));
	if (_i < (int)BASE_ARRAY_LEN(bad))
		memcpy(forged[3], bad[_i], sizeof(forged[3]));
	else
		marks[3] = 0;
	write_npy("ragged.places.npy", "<i8", "6, 2", forged, sizeof(forged));
	write_npy("written.npy", "|u1", "6,", marks, sizeof(marks));
	read_all(&work, open_with("fields=ragged:3;dense"));
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), SAMPLES - 1);
	process_failed(&process, &work, 3);
	for (unsigned i = 0; i < SAMPLES; i++)
		if (i != 3) {
			parse(&work, i, &record);
			check_ragged(&record, 0, i);
			check_dense(&record, 1, i);
		}
	end(&work);
}
END_TEST

START_TEST(what_does_not_fit_is_refused)
{
	static const struct {
		const char *options, *text;
	} cases[] = {
	    {"fields=absent", "\"absent.npy\": No such file"},
	    {"fields=dense;", "a list of names"},
	    {"fields=;dense", "a list of names"},
	    {"fields=../dense", "a list of names"},
	    {"fields=dense:0", "a list of names"},
	    {"fields=dense:4294967296", "a list of names"},
	    {"fields=dense:3", "\"dense.places.npy\": No such file"},
	    {"fields=dense;short", "\"short.npy\" has 5 samples, and \"dense.npy\" 6"},
	    {"fields=text", "\"text.npy\": it is no .npy"},
	    {"fields=odd:3", "no array int64 [samples, 2]"},
	    {"fields=ragged:4294967295", "more than 4 GiB"},
	    {"fields=dense,other=1", "options of dataset"},
	};
	char path[9000], text[768];

	write_all();
	write_npy("short.npy", "<i2", "5, 2", dense, 20);
	write_npy("odd.npy", "<f4", "9,", ragged, sizeof(ragged));
	write_npy("odd.places.npy", "<i8", "12,", places, sizeof(places));
	tree_file(&tree, "text.npy", 300);
	snprintf(path, sizeof(path), "%s?%s", tree.path, cases[_i].options);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_REFUSED);
	ck_assert_msg(strstr(text, cases[_i].text), "%s", text);
	process_stop(&process);
}
END_TEST

/* A file of no blocks says so much at no cost: refused before a mark of it is read. */
START_TEST(too_many_are_refused)
{
	static const char *const names[] = {"many.npy", "written.npy"};
	char path[9000], text[768];

	for (unsigned i = 0; i < 2; i++) {
		write_npy(names[i], "|u1", "1099511627776,", "", 0);
		snprintf(path, sizeof(path), "%s/%s", tree.path, names[i]);
		ck_assert_int_eq(truncate(path, 128 + (INT64_C(1) << 40)), 0);
	}
	snprintf(path, sizeof(path), "%s?fields=many", tree.path);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_REFUSED);
	ck_assert_msg(strstr(text, "1099511627776 samples, more than 2^32"), "%s", text);
	process_stop(&process);
}
END_TEST

/* ---- beside pictures ---- */

static void write_pictures(void)
{
	static const char *const names[SAMPLES] = {"p/a/0.jpg", "p/a/1.jpg", "p/a/2.jpg",
						   "p/b/3.jpg", "p/b/4.jpg", "p/b/5.jpg"};

	for (unsigned i = 0; i < SAMPLES; i++)
		tree_file(&tree, names[i], 50 + 77 * i);
}

START_TEST(pictures_have_fields_beside_them)
{
	struct dataset *index;
	struct packed record;
	struct work work;
	char path[9000];
	int fd;

	write_all();
	write_pictures();
	snprintf(path, sizeof(path), "%s/p?beside=%s,fields=dense;ragged:3", tree.path, tree.path);
	process_ask_open(&process, 1, path, -1);
	fd = process_opened(&process, 1);
	ck_assert_int_eq(dataset_map(fd, &index), 0);
	close(fd);
	ck_assert_uint_eq(dataset_classes(index), 2);
	ck_assert_str_eq(dataset_class_name(index, 1), "b");
	read_all(&work, index);
	ck_assert_uint_eq(work_in_state(&work, LAYOUT_TASK_READY), SAMPLES);
	for (unsigned i = 0; i < SAMPLES; i++) {
		char name[64];

		snprintf(name, sizeof(name), "p/%s", dataset_name_of(index, i));
		parse(&work, i, &record);
		ck_assert_uint_eq(record.n, 4);
		ck_assert_uint_eq(record.field[0].bytes, 50 + 77 * i);
		for (unsigned at = 0; at < record.field[0].bytes; at++)
			ck_assert_uint_eq(record.value[0][at], tree_byte(name, at));
		ck_assert_uint_eq(little_64(record.value[1]), i / 3);
		check_dense(&record, 2, i);
		check_ragged(&record, 3, i);
	}
	end(&work);
}
END_TEST

START_TEST(what_is_of_another_is_refused)
{
	static const struct {
		const char *before, *behind, *text; /* the folder's path */
	} cases[] = {
	    {"beside=", ",fields=dense,of=00ff",
	     "is of version 00ff, and the data set has version"},
	    {"beside=", ",fields=absent", "\"absent.npy\": No such file"},
	    {"beside=", "", "a list of names"},
	    {"beside=", "/none,fields=dense", "No such file"},
	    {"beside=a", ",fields=dense", "an absolute one"},
	    {"fields=dense,beside=", ",label=3", "options of dataset"},
	    {"beside=", ",fields=dense", "has 6 samples, and the data set 7"},
	};
	char path[9000], text[768];

	write_all();
	write_pictures();
	if (_i == BASE_ARRAY_LEN(cases) - 1)
		tree_file(&tree, "p/b/6.jpg", 60);
	snprintf(path, sizeof(path), "%s/p?%s%s%s", tree.path, cases[_i].before, tree.path,
		 cases[_i].behind);
	process_ask_open(&process, 1, path, -1);
	ck_assert_int_eq(process_refused(&process, 1, text), DATASET_E_REFUSED);
	ck_assert_msg(strstr(text, cases[_i].text), "%s", text);
	process_stop(&process);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, fields_are_those_of_the_files);
	tcase_add_loop_test(tcase, numbers_may_be_any, 0, 11);
	tcase_add_loop_test(tcase, what_does_not_fit_is_refused, 0, 12);
	tcase_add_test(tcase, too_many_are_refused);
	tcase_add_test(tcase, pictures_have_fields_beside_them);
	tcase_add_loop_test(tcase, what_is_of_another_is_refused, 0, 7);
}

int main(void)
{
	return suite_run("arrays", add);
}
