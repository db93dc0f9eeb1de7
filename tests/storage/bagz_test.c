/* SPDX-License-Identifier: Apache-2.0 */

/* Bagz: pictures, tf.Examples, limits that lie. */

#include "storage/source/scan/scan_shard.h"
#include "tests/suite.h"
#include "tests/storage/scan_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct scan_run run;

/* As bagz 0.3.8 writes them, with bagz.Writer("x.bag").write() of each record: a JPEG's begin, a PNG's. */
static const uint8_t pictures[] = "\xff\xd8\xff\xe0"
				  "abcdefgh"
				  "\x89PNG\r\n\x1a\n----"
				  "\x0c\0\0\0\0\0\0\0\x18\0\0\0\0\0\0";

/* The same of two tf.Examples with image/class/label 3 and 1 and image/encoded. */
static const uint8_t examples[] =
    "\nD\n\x1a\n\x11image/class/label\x12\x05\x1a\x03\n\x01\x03\n&\n\rimage/"
    "encoded\x12\x15\n\x13\n\x11"
    "\xff\xd8\xff\xe0"
    "first-picture"
    "\nA\n\x1a\n\x11image/class/label\x12\x05\x1a\x03\n\x01\x01\n#\n\rimage/"
    "encoded\x12\x12\n\x10\n\x0e"
    "\x89PNG\r\n\x1a\nsecond"
    "F\0\0\0\0\0\0\0\x89\0\0\0\0\0\0";

/* And pictures, as they are in "x.bagz". */
static const uint8_t compressed[] =
    "\x28\xb5\x2f\xfd\x20\x48\x9d\0\0h\xff\xd8\xff\xe0"
    "abcdefgha\x01\0\x90\xc0\x17"
    "\x28\xb5\x2f\xfd\x20\x48\x9d\0\0h\x89PNG\r\n\x1a\n----a\x01\0\x90\xc0\x17"
    "\x1c\0\0\0\0\0\0\0\x38\0\0\0\0\0\0";

static int scan(const uint8_t *bytes, size_t size, const char *options)
{
	return scan_run(&scan_bagz, bytes, size, options, &run);
}

START_TEST(files_of_bagz)
{
	ck_assert_uint_eq(sizeof(pictures), 40);
	ck_assert_int_eq(scan(pictures, sizeof(pictures), ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_uint_eq(run.record[i].at, 12 * i);
		ck_assert_uint_eq(run.record[i].bytes, 12);
		ck_assert_uint_eq(run.record[i].label, SCAN_NO_LABEL);
	}
	ck_assert_uint_eq(sizeof(examples), 153);
	ck_assert_int_eq(scan(examples, sizeof(examples), ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 2);
	ck_assert_uint_eq(run.record[0].label, 3);
	ck_assert_uint_eq(run.record[1].label, 1);
	ck_assert_uint_eq(run.record[0].bytes, 17);
	ck_assert_mem_eq(examples + run.record[0].at,
			 "\xff\xd8\xff\xe0"
			 "first-picture",
			 17);
	ck_assert_mem_eq(examples + run.record[1].at, "\x89PNG\r\n\x1a\nsecond", 14);
	ck_assert_int_eq(scan(examples, sizeof(examples), "members=all"), SCAN_E_END);
	ck_assert_uint_eq(run.record[1].at, 70);
	ck_assert_uint_eq(run.record[1].bytes, 67);
	ck_assert_uint_eq(sizeof(compressed), 72);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(scan(compressed, 72, i ? "members=all" : ""), SCAN_E_END);
		ck_assert_uint_eq(run.n, 2);
		ck_assert_uint_eq(run.record[1].at, 28);
		ck_assert_uint_eq(run.record[1].bytes, 28);
		ck_assert_uint_eq(run.record[1].label, SCAN_NO_LABEL);
	}
	ck_assert_int_eq(scan(compressed, 72, "label=kind"), SCAN_E_BAD);
	ck_assert_ptr_nonnull(strstr(run.why, "from_bagz()"));
	ck_assert_int_eq(scan(pictures, 0, ""), SCAN_E_END); /* of no record */
	ck_assert_uint_eq(run.n, 0);
}
END_TEST

static const struct one_option {
	const char *options, *why;
} options[] = {
    {"image=photo", "no feature of bytes is the picture"},
    {"label=kind", "no feature of whole numbers is the label"},
    {"members=some", "the option members is all"},
};

START_TEST(options_that_do_not_fit)
{
	ck_assert_int_eq(scan(examples, sizeof(examples), options[_i].options), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, options[_i].why), "%s", run.why);
}
END_TEST

/* ---- files of ours ---- */

static void put_limits(struct shard_bytes *file, const uint64_t *limit, size_t n)
{
	for (size_t i = 0; i < n; i++)
		shard_put_64(file, limit[i]);
}

/* More records than limits are looked at together, each of its own size, some of them larger than what is looked at. */
START_TEST(many_records)
{
	enum { N = 1300 };
	uint64_t limit[N];
	struct shard_bytes file;

	shard_bytes_init(&file, 8 << 20);
	for (unsigned i = 0; i < N; i++) {
		shard_put(&file, "\xff\xd8\xff\xe0", 4);
		shard_put_fill(&file, 'p', 8 + 7 * (i % 900));
		limit[i] = file.size;
	}
	put_limits(&file, limit, N);
	ck_assert_int_eq(scan(file.data, file.size, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, N);
	for (unsigned i = 0; i < N; i++) {
		ck_assert_uint_eq(run.record[i].at, i ? limit[i - 1] : 0);
		ck_assert_uint_eq(run.record[i].at + run.record[i].bytes, limit[i]);
	}
	shard_bytes_fini(&file);
}
END_TEST

/* A picture of some windows, with the label behind it. */
START_TEST(long_examples)
{
	static uint8_t picture[100000] = "\xff\xd8\xff\xe0";
	const int64_t label = 9;
	struct shard_bytes features, file;
	uint64_t limit[3];

	shard_bytes_init(&features, 1 << 18);
	shard_bytes_init(&file, 1 << 20);
	shard_put_bytes(&features, "image/encoded", picture, sizeof(picture));
	shard_put_ints(&features, "image/class/label", &label, 1, 1);
	for (unsigned i = 0; i < 3; i++) {
		shard_put_example(&file, &features);
		limit[i] = file.size;
	}
	put_limits(&file, limit, 3);
	ck_assert_int_eq(scan(file.data, file.size, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 3);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_uint_eq(run.record[i].label, 9);
		ck_assert_uint_eq(run.record[i].bytes, sizeof(picture));
		ck_assert_mem_eq(file.data + run.record[i].at, picture, sizeof(picture));
	}
	shard_bytes_fini(&features);
	shard_bytes_fini(&file);
}
END_TEST

static const struct damage {
	uint64_t limit[3];
	const char *why;
} damages[] = {
    {{0, 12, 24}, "record 0: it is empty"},
    {{12, 12, 24}, "record 1: it is empty"},
    {{12, 11, 24}, "record 1: it ends before it begins"},
    {{25, 12, 24}, "record 0: it ends before it begins, or behind all records"},
    {{UINT64_MAX, 12, 24}, "record 0: it ends before it begins, or behind all records"},
    {{4, 12, 24}, "record 0: it is neither a picture nor a tf.Example"},
    {{12, 24, 48}, "does not end in the limits"},
    {{12, 24, 41}, "does not end in the limits"},
    {{12, 24, UINT64_MAX}, "does not end in the limits"},
    {{12, 24, 25}, "does not end in the limits"},
};

START_TEST(limits_that_lie)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 64);
	shard_put(&file, pictures, 24);
	put_limits(&file, damages[_i].limit, 3);
	ck_assert_int_eq(scan(file.data, file.size, ""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, damages[_i].why), "%s", run.why);
	shard_bytes_fini(&file);
}
END_TEST

/* Wherever a file is cut off, its last eight bytes are no place where limits begin. */
START_TEST(cut_off)
{
	for (size_t size = 1; size < sizeof(examples); size++) {
		uint8_t *copy = malloc(size);

		memcpy(copy, examples, size);
		ck_assert_int_eq(scan(copy, size, ""), SCAN_E_BAD);
		ck_assert_msg(strstr(run.why, "cut off"), "%s", run.why);
		free(copy);
	}
}
END_TEST

static void add(TCase *all)
{
	tcase_add_test(all, files_of_bagz);
	tcase_add_loop_test(all, options_that_do_not_fit, 0, sizeof(options) / sizeof(*options));
	tcase_add_test(all, many_records);
	tcase_add_test(all, long_examples);
	tcase_add_loop_test(all, limits_that_lie, 0, sizeof(damages) / sizeof(*damages));
	tcase_add_test(all, cut_off);
}

int main(void)
{
	return suite_run("bagz", add);
}
