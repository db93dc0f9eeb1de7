/* SPDX-License-Identifier: Apache-2.0 */

/* TFRecord: CRC-32C by both ways, tf.Example in pieces of any size, files in windows. */

#include "storage/source/scan/crc32c.h"
#include "storage/source/scan/example.h"
#include "storage/source/scan/scan_shard.h"
#include "tests/storage/scan_run.h"

#include "base/base.h"
#include "tests/patience.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#define PICTURE "\xff\xd8\xff\xe0 a picture"
#define PICTURE_BYTES (sizeof(PICTURE) - 1)

static struct scan_run run;

/* As the library of protocol buffers writes it (7.36, deterministic). */
static const uint8_t golden[] =
    "\n\xb9\x01\n\x1b\n\x11image/class/label\x12\x06\x1a\x04\n\x02\xac\x02\n\x1d\n\x10image/class/"
    "text"
    "\x12\x09\n\x07\n\x05tench\n "
    "\n\rimage/encoded\x12\x0f\n\r\n\x0b\xff\xd8\xff\xe0picture\n&\n\x16"
    "image/object/bbox/xmin\x12\x0c\x12\n\n\x08\x00\x00\x80>\x00\x00\x00?\n1\n\x18image/object/"
    "class/"
    "label\x12\x15\x1a\x13\n\x11\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x80\x80\x80\x80\x80 ";
#define GOLDEN_BYTES (sizeof(golden) - 1)
#define GOLDEN_AT 86

/* As TensorFlow 2.21 writes it: tf.io.TFRecordWriter, tf.train.Example. */
static const uint8_t golden_file[] =
    "t\x00\x00\x00\x00\x00\x00\x00_gs\xd2\x0ar\x0aT\x0a\x0dimage/encoded\x12"
    "C\x0a"
    "A\x0a"
    "\x3f\xff\xd8\xff\xe0pic\xff\xd8\xff\xe0pic\xff\xd8\xff\xe0pic\xff\xd8\xff\xe0pic\xff\xd8"
    "\xff\xe0pic\xff\xd8\xff\xe0pic\xff\xd8\xff\xe0pic\xff\xd8\xff\xe0pic\xff\xd8\xff\xe0pic"
    "\x0a\x1a\x0a\x11image/class/label\x12\x05\x1a\x03\x0a\x01\x07\xc3-\xba"
    "F";
#define GOLDEN_FILE_BYTES (sizeof(golden_file) - 1)

/* ---- CRC-32C ---- */

START_TEST(known_sums)
{
	uint8_t bytes[32];

	ck_assert_uint_eq(crc32c_add(0, "123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof(bytes)); /* RFC 3720, B.4 */
	ck_assert_uint_eq(crc32c_add(0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	ck_assert_uint_eq(crc32c_add(0, bytes, 32), 0x62a8ab43);
	for (unsigned i = 0; i < 32; i++)
		bytes[i] = (uint8_t)i;
	ck_assert_uint_eq(crc32c_add(0, bytes, 32), 0x46dd794e);
	ck_assert_uint_eq(crc32c_add(0, NULL, 0), 0);
}
END_TEST

START_TEST(both_ways_and_parts)
{
	uint8_t bytes[257];

	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 131 + i / 7);
	for (unsigned size = 0; size <= sizeof(bytes); size++) {
		const uint32_t sum = crc32c_plain(0, bytes, size);

		if (crc32c_sse42())
			ck_assert_uint_eq(crc32c_sse42()(0, bytes, size), sum);
		ck_assert_uint_eq(
		    crc32c_add(crc32c_add(0, bytes, size / 3), bytes + size / 3, size - size / 3),
		    sum);
	}
}
END_TEST

/* ---- tf.Example ---- */

static bool walk_in_pieces(const uint8_t *data, size_t size, size_t piece,
			   const struct example_names *names, struct example *ret,
			   struct example_walk *walk)
{
	example_begin(walk, names, size);
	while (walk->at < size && !walk->why) {
		const uint64_t at = walk->at;
		const size_t end = BASE_MIN(size, at + piece);

		example_feed(walk, at, data + at, end - at);
		ck_assert(walk->why || walk->at > at);
	}
	return !walk->why && example_end(walk, ret);
}

static const struct example_names usual;

START_TEST(golden_example)
{
	struct example_walk walk;
	struct example found;

	ck_assert(walk_in_pieces(golden, GOLDEN_BYTES, 400, &usual, &found, &walk));
	ck_assert_uint_eq(found.at, GOLDEN_AT);
	ck_assert_uint_eq(found.bytes, 11);
	ck_assert_mem_eq(golden + found.at, "\xff\xd8\xff\xe0picture", 11);
	ck_assert(found.has_label);
	ck_assert_int_eq(found.label, 300);
}
END_TEST

START_TEST(pieces_of_any_size)
{
	static const int64_t many[200] = {1, -1, INT64_MIN, INT64_MAX}, label = 7;
	struct shard_bytes features, example;
	struct example_walk walk;
	struct example found;
	char name[200];

	memset(name, 'n', sizeof(name));
	name[199] = '\0';
	shard_bytes_init(&features, 65536);
	shard_bytes_init(&example, 65536);
	shard_put_ints(&features, name, many, 200, 1);
	shard_put_ints(&features, "unpacked", many, 200, 0);
	shard_put_bytes(&features, "image/encoded", PICTURE, PICTURE_BYTES);
	shard_put_ints(&features, "label", &label, 1, 0);
	shard_put_example(&example, &features);
	for (size_t piece = EXAMPLE_AHEAD; piece < EXAMPLE_AHEAD + 300; piece++) {
		ck_assert(walk_in_pieces(example.data, example.size, piece, &usual, &found, &walk));
		ck_assert_mem_eq(example.data + found.at, PICTURE, PICTURE_BYTES);
		ck_assert(found.has_label && found.label == 7);
	}
	shard_bytes_fini(&features);
	shard_bytes_fini(&example);
}
END_TEST

struct fit { /* which feature is taken */
	const char *name[3];
	const char *picture, *label; /* that are named */
	const char *why;             /* NULL: it is the first */
};
static const struct fit fits[] = {
    {{"image/encoded", "other"}, "", "", NULL},
    {{"only"}, "", "", NULL},
    {{"one", "two"}, "", "", "several features are pictures"},
    {{"two", "one", "image/encoded"}, "two", "", NULL},
    {{"one"}, "two", "", "no feature of bytes is the picture"},
    {{"one"}, "", "absent", "no feature of whole numbers is the label"},
};

START_TEST(names)
{
	const struct fit *fit = &fits[_i];
	struct shard_bytes features, example;
	struct example_names wanted = {.is_whole = false};
	struct example_walk walk;
	struct example found;

	snprintf(wanted.picture, sizeof(wanted.picture), "%s", fit->picture);
	snprintf(wanted.label, sizeof(wanted.label), "%s", fit->label);
	shard_bytes_init(&features, 4096);
	shard_bytes_init(&example, 4096);
	for (unsigned i = 0; i < 3 && fit->name[i]; i++)
		shard_put_bytes(&features, fit->name[i], PICTURE, PICTURE_BYTES - i);
	shard_put_example(&example, &features);
	if (walk_in_pieces(example.data, example.size, 4096, &wanted, &found, &walk)) {
		ck_assert_ptr_null(fit->why);
		ck_assert_uint_eq(found.bytes, PICTURE_BYTES);
		ck_assert(!found.has_label);
	} else {
		ck_assert_ptr_nonnull(fit->why);
		ck_assert_ptr_nonnull(strstr(walk.why, fit->why));
	}
	shard_bytes_fini(&features);
	shard_bytes_fini(&example);
}
END_TEST

START_TEST(labels)
{
	static const int64_t seven = 7, eight = 8, two[2] = {1, 2};
	struct shard_bytes features, example;
	struct example_walk walk;
	struct example found;

	shard_bytes_init(&features, 4096);
	shard_bytes_init(&example, 4096);
	shard_put_ints(&features, "image/class/label", &seven, 1, _i & 1);
	shard_put_ints(&features, "label", _i & 2 ? two : &eight, _i & 2 ? 2 : 1, 1);
	shard_put_bytes(&features, "image/encoded", PICTURE, PICTURE_BYTES);
	shard_put_example(&example, &features);
	ck_assert(walk_in_pieces(example.data, example.size, 4096, &usual, &found, &walk));
	ck_assert(found.has_label && found.label == 7);
	shard_bytes_fini(&features);
	shard_bytes_fini(&example);
}
END_TEST

/* Whatever one byte of it becomes, places stay within it. */
START_TEST(damaged_examples)
{
	struct example_walk walk;
	struct example found;
	uint8_t copy[GOLDEN_BYTES];

	for (size_t at = 0; at < GOLDEN_BYTES; at++)
		for (unsigned value = 0; value < 256; value++) {
			memcpy(copy, golden, sizeof(copy));
			copy[at] = (uint8_t)value;
			if (walk_in_pieces(copy, sizeof(copy), EXAMPLE_AHEAD, &usual, &found,
					   &walk))
				ck_assert(found.at <= sizeof(copy) &&
					  found.bytes <= sizeof(copy) - found.at);
			else
				ck_assert(walk.why && walk.bad_at <= sizeof(copy));
		}
}
END_TEST

/* ---- files ---- */

static void put_picture(struct shard_bytes *file, size_t bytes, int64_t label, size_t behind)
{
	struct shard_bytes features, example, picture;

	shard_bytes_init(&picture, bytes + PICTURE_BYTES + behind);
	shard_bytes_init(&features, bytes + behind + 4096);
	shard_bytes_init(&example, bytes + behind + 8192);
	shard_put(&picture, PICTURE, PICTURE_BYTES);
	shard_put_fill(&picture, 'x', bytes - PICTURE_BYTES);
	shard_put_bytes(&features, "image/encoded", picture.data, bytes);
	shard_put_bytes(&features, "padding", picture.data, behind);
	shard_put_ints(&features, "image/class/label", &label, 1, 1);
	shard_put_example(&example, &features);
	shard_put_tfrecord(file, example.data, example.size);
	shard_bytes_fini(&features);
	shard_bytes_fini(&example);
	shard_bytes_fini(&picture);
}

START_TEST(file_of_tensorflow)
{
	ck_assert_int_eq(scan_run(&scan_tfrecord, golden_file, GOLDEN_FILE_BYTES, "", &run),
			 SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert_uint_eq(run.record[0].at, 37);
	ck_assert_uint_eq(run.record[0].bytes, 63);
	ck_assert_uint_eq(run.record[0].label, 7);
	ck_assert_int_eq(
	    scan_run(&scan_tfrecord, golden_file, GOLDEN_FILE_BYTES, "members=all", &run),
	    SCAN_E_END);
	ck_assert_uint_eq(run.n, 1);
	ck_assert_uint_eq(run.record[0].at, 12);
	ck_assert_uint_eq(run.record[0].bytes, GOLDEN_FILE_BYTES - 16);
	ck_assert_uint_eq(run.record[0].label, 7);
}
END_TEST

/* Without a picture, and with labels of several values, which are no classes. */
START_TEST(whole_records)
{
	const int64_t several[2] = {5, 6};
	struct shard_bytes file, features, example;

	shard_bytes_init(&file, 4096);
	shard_bytes_init(&features, 4096);
	shard_bytes_init(&example, 4096);
	shard_put_bytes(&features, "text", "none", 4);
	shard_put_ints(&features, "label", several, 2, 1);
	shard_put_example(&example, &features);
	shard_put_tfrecord(&file, example.data, example.size);
	ck_assert_int_eq(
	    scan_run(&scan_tfrecord, file.data, file.size, "members=all,image=text", &run),
	    SCAN_E_END);
	ck_assert_uint_eq(run.record[0].at, 12);
	ck_assert_uint_eq(run.record[0].bytes, example.size);
	ck_assert_uint_eq(run.record[0].label, SCAN_NO_LABEL);
	ck_assert_int_eq(scan_run(&scan_tfrecord, file.data, file.size, "members=some", &run),
			 SCAN_E_BAD);
	file.size = 0;
	shard_put_tfrecord(&file, "", 0);
	ck_assert_int_eq(scan_run(&scan_tfrecord, file.data, file.size, "members=all", &run),
			 SCAN_E_BAD);
	shard_bytes_fini(&file);
	shard_bytes_fini(&features);
	shard_bytes_fini(&example);
}
END_TEST

START_TEST(records_of_a_file)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 1 << 20);
	for (unsigned i = 0; i < 100; i++)
		put_picture(&file, 100 + 50 * i, i == 99 ? -1 : (int64_t)i, i);
	ck_assert_int_eq(scan_run(&scan_tfrecord, file.data, file.size, "", &run), SCAN_E_END);
	ck_assert_uint_eq(run.n, 100);
	for (unsigned i = 0; i < 100; i++) {
		ck_assert_uint_eq(run.record[i].bytes, 100 + 50 * i);
		ck_assert_mem_eq(file.data + run.record[i].at, PICTURE, PICTURE_BYTES);
		ck_assert_uint_eq(run.record[i].label, i == 99 ? SCAN_NO_LABEL : i);
	}
	ck_assert_uint_eq(run.wants, 1);
	shard_bytes_fini(&file);
}
END_TEST

/* The end of a window, wherever it cuts a record. */
START_TEST(windows)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 4 << 20);
	for (size_t shift = 0; shift < 700; shift += 7) {
		file.size = 0;
		put_picture(&file, SCAN_MOST_WANT - 600 + shift, 5, 20);
		put_picture(&file, 2 * SCAN_MOST_WANT, 6, 400);
		put_picture(&file, 50, 7, 0);
		ck_assert_int_eq(scan_run(&scan_tfrecord, file.data, file.size, "", &run),
				 SCAN_E_END);
		ck_assert_uint_eq(run.n, 3);
		for (unsigned i = 0; i < 3; i++)
			ck_assert_uint_eq(run.record[i].label, 5 + i);
		ck_assert_uint_eq(run.record[1].bytes, 2 * SCAN_MOST_WANT);
	}
	shard_bytes_fini(&file);
}
END_TEST

START_TEST(each_byte_is_checked)
{
	struct shard_bytes file;
	size_t first;

	shard_bytes_init(&file, 65536);
	put_picture(&file, 100, 1, 10);
	first = file.size;
	put_picture(&file, 100, 1, 10);
	for (size_t at = 0; at < file.size; at++) {
		file.data[at] ^= 0x10;
		ck_assert_int_eq(scan_run(&scan_tfrecord, file.data, file.size, "", &run),
				 SCAN_E_BAD);
		ck_assert_uint_eq(run.n, at < first ? 0 : 1);
		ck_assert_ptr_nonnull(strstr(run.why, "checksum"));
		ck_assert_uint_ge(run.bad_at, at < first ? 0 : first);
		ck_assert_uint_le(run.bad_at, at);
		file.data[at] ^= 0x10;
	}
	shard_bytes_fini(&file);
}
END_TEST

START_TEST(cut_files)
{
	struct shard_bytes file;
	size_t first;

	shard_bytes_init(&file, 65536);
	put_picture(&file, 100, 1, 10);
	first = file.size;
	put_picture(&file, 100, 1, 10);
	for (size_t size = 0; size < file.size; size++) {
		const int r = scan_run(&scan_tfrecord, file.data, size, "", &run);

		ck_assert_int_eq(r, size == 0 || size == first ? SCAN_E_END : SCAN_E_BAD);
		if (r == SCAN_E_BAD)
			ck_assert_ptr_nonnull(strstr(run.why, "cut off"));
	}
	shard_bytes_fini(&file);
}
END_TEST

START_TEST(labels_that_are_no_classes)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 65536);
	put_picture(&file, 100, _i == 0 ? -2 : INT64_MAX, 0);
	ck_assert_int_eq(scan_run(&scan_tfrecord, file.data, file.size, "", &run), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "record 0: its label is no class"));
	shard_bytes_fini(&file);
}
END_TEST

START_TEST(options)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 65536);
	put_picture(&file, 100, 1, 50);
	ck_assert_int_eq(
	    scan_run(&scan_tfrecord, file.data, file.size, "x=1,image=padding,label=nothing", &run),
	    SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "the label"));
	ck_assert_int_eq(scan_run(&scan_tfrecord, file.data, file.size, "image=padding", &run),
			 SCAN_E_END);
	ck_assert_uint_eq(run.record[0].bytes, 50);
	shard_bytes_fini(&file);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tfrecord");
	TCase *sums = tcase_create("sums"), *example = tcase_create("example"),
	      *file = tcase_create("file");
	SRunner *runner;
	int failed;

	tcase_add_test(sums, known_sums);
	tcase_add_test(sums, both_ways_and_parts);
	tcase_add_test(example, golden_example);
	tcase_add_test(example, pieces_of_any_size);
	tcase_add_loop_test(example, names, 0, BASE_ARRAY_LEN(fits));
	tcase_add_loop_test(example, labels, 0, 4);
	tcase_add_test(example, damaged_examples);
	tcase_add_test(file, file_of_tensorflow);
	tcase_add_test(file, records_of_a_file);
	tcase_add_test(file, whole_records);
	tcase_add_test(file, windows);
	tcase_add_test(file, each_byte_is_checked);
	tcase_add_test(file, cut_files);
	tcase_add_loop_test(file, labels_that_are_no_classes, 0, 2);
	tcase_add_test(file, options);
	tcase_set_timeout(file, PATIENCE_OF_A_TEST_S);
	suite_add_tcase(suite, sums);
	suite_add_tcase(suite, example);
	suite_add_tcase(suite, file);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
