/* SPDX-License-Identifier: Apache-2.0 */

/* RecordIO: records, labels, records that are cut up, damage. */

#include "storage/source/scan/scan_shard.h"
#include "tests/suite.h"
#include "tests/storage/scan_run.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC "\n#\xd7\xce"

static struct scan_run run;

/* As MXIndexedRecordIO and pack() of MXNet 1.9.1 write them: no picture; one of class 3; one of the labels 7 and 1.5, with the magic
 * in it, cut up; one without a class. */
static const uint8_t golden[] = MAGIC
    " \0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xa0\x40\0\0\x10\x41" MAGIC
    "\x1f\0\0\0\0\0\0\0\0\0\x40\x40\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xd8\xff\xe0"
    "abc\0" MAGIC
    "$\0\0\x20\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0\x40\0\0\xc0\x3f"
    "\xff\xd8\xff\xe0" MAGIC "\10\0\0\x40mid" MAGIC "x" MAGIC "\0\0\0\x40" MAGIC "\5\0\0\x60"
    "end12\0\0\0" MAGIC "\x1c\0\0\0\0\0\0\0\0\0\x80\xbf\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x89PNG";
#define GOLDEN_BYTES (sizeof(golden) - 1)
#define CUT_PICTURE "\xff\xd8\xff\xe0" MAGIC "mid" MAGIC "x" MAGIC MAGIC "end12"

static int scan(const uint8_t *bytes, size_t size, const char *options)
{
	return scan_run(&scan_recordio, bytes, size, options, &run);
}

static void check_picture(unsigned i, const uint8_t *file, const char *picture, size_t size)
{
	uint8_t bytes[256];

	ck_assert_uint_le(run.record[i].bytes, sizeof(bytes));
	memcpy(bytes, file + run.record[i].at, run.record[i].bytes);
	scan_recordio.join(bytes, run.record[i].bytes, run.record[i].at);
	ck_assert_uint_ge(run.record[i].bytes, size);
	ck_assert_mem_eq(bytes, picture, size);
	for (size_t at = size; at < run.record[i].bytes; at++)
		ck_assert_uint_eq(bytes[at], 0);
}

START_TEST(file_of_mxnet)
{
	ck_assert_uint_eq(GOLDEN_BYTES, 200);
	ck_assert_int_eq(scan(golden, GOLDEN_BYTES, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 3);
	ck_assert_uint_eq(run.record[0].label, 3);
	ck_assert_uint_eq(run.record[1].label, 7);
	ck_assert_uint_eq(run.record[2].label, SCAN_NO_LABEL);
	ck_assert_uint_eq(run.record[0].bytes, 7);
	ck_assert_uint_eq(run.record[2].bytes, 4);
	check_picture(0, golden,
		      "\xff\xd8\xff\xe0"
		      "abc",
		      7);
	check_picture(1, golden, CUT_PICTURE, sizeof(CUT_PICTURE) - 1);
	check_picture(2, golden, "\x89PNG", 4);
}
END_TEST

/* ---- files of ours ---- */

static void put_head(struct shard_bytes *file, unsigned cut, uint32_t bytes)
{
	shard_put(file, MAGIC, 4);
	shard_put_32(file, cut << 29 | bytes);
}

static void put_float(struct shard_bytes *file, float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	shard_put_32(file, bits);
}

/* A record of so many bytes of a picture, with the label in its head, or n of them behind it. */
static void put_record(struct shard_bytes *file, const float *label, unsigned n, size_t size)
{
	put_head(file, 0, (uint32_t)(24 + 4 * (size_t)n + size));
	shard_put_32(file, n);
	put_float(file, n ? 0 : *label);
	shard_put_64(file, 1);
	shard_put_64(file, 0);
	for (unsigned i = 0; i < n; i++)
		put_float(file, label[i]);
	shard_put_fill(file, 'p', size);
	shard_put_fill(file, 0, (4 - file->size % 4) % 4);
}

START_TEST(records_of_any_size)
{
	struct shard_bytes file;

	shard_bytes_init(&file, 1 << 16);
	for (unsigned i = 1; i < 100; i++)
		put_record(&file, &(float){(float)i}, 0, i);
	ck_assert_int_eq(scan(file.data, file.size, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 99);
	for (unsigned i = 0; i < 99; i++) {
		ck_assert_uint_eq(run.record[i].bytes, i + 1);
		ck_assert_uint_eq(run.record[i].label, i + 1);
		ck_assert_uint_eq(file.data[run.record[i].at], 'p');
	}
	/* a writer that leaves out what fills up the last one */
	ck_assert_int_eq(scan(file.data, file.size - 1, ""), SCAN_E_END);
	ck_assert_uint_eq(run.n, 99);
	shard_bytes_fini(&file);
}
END_TEST

static const struct one_label {
	float label[40];
	unsigned n;
	const char *options;
	uint32_t is;
	const char *why; /* not NULL: it is refused, with these words */
} labels[] = {
    {{0}, 0, "", 0, NULL},
    {{16777215}, 0, "", 16777215, NULL},
    {{16777216}, 0, "", 0, "no class"},
    {{-1}, 0, "", SCAN_NO_LABEL, NULL},
    {{-2}, 0, "", 0, "no class"},
    {{0.5F}, 0, "", 0, "no class"},
    {{-0.5F}, 0, "", 0, "no class"},
    {{1e30F}, 0, "", 0, "no class"},
    {{__builtin_nanf("")}, 0, "", 0, "no class"},
    {{0.5F}, 0, "label=none", SCAN_NO_LABEL, NULL},
    {{5, 6, 7}, 3, "", 5, NULL},
    {{.5F, 6, 7}, 3, "label=1", 6, NULL},
    {{5}, 1, "label=1", 0, "not so many labels"},
    {{5}, 0, "label=1", 0, "not so many labels"},
    {{[39] = 8}, 40, "label=39", 8, NULL}, /* beyond what is looked at first */
    {{[7] = 8}, 40, "label=7", 8, NULL},
    {{5}, 0, "label=first", 0, "option label"},
    {{5}, 0, "label=0x", 0, "option label"},
    {{5}, 0, "label=00000000000000000000", 0, "option label"},
};

START_TEST(labels_of_all_kinds)
{
	const struct one_label *is = &labels[_i];
	struct shard_bytes file;

	shard_bytes_init(&file, 4096);
	put_record(&file, is->label, is->n, 10);
	ck_assert_int_eq(scan(file.data, file.size, is->options),
			 is->why ? SCAN_E_BAD : SCAN_E_END);
	if (is->why)
		ck_assert_ptr_nonnull(strstr(run.why, is->why));
	else
		ck_assert_uint_eq(run.record[0].label, is->is);
	shard_bytes_fini(&file);
}
END_TEST

START_TEST(cut_off)
{
	static const size_t ends[] = {
	    0, 39, 40, 79, 80, 161, 162, 163, 164}; /* of records, and within what fills them up */

	for (size_t size = 0; size < GOLDEN_BYTES; size++) {
		uint8_t *copy = malloc(size + 1);
		bool is_end = false;

		for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
			is_end = is_end || (ends[i] == size && size != 39);
		memcpy(copy, golden, size);
		ck_assert_int_eq(scan(copy, size, ""), is_end ? SCAN_E_END : SCAN_E_BAD);
		if (!is_end)
			ck_assert_ptr_nonnull(strstr(run.why, "cut off"));
		free(copy);
	}
}
END_TEST

static const struct damage {
	size_t at;
	uint8_t is;
	const char *why;
} damages[] = {
    {0, 0, "record 0: it does not begin as records do"},
    {40, 0, "record 1: it does not begin as records do"},
    {7, 0x20, "parts do not follow"},                 /* a part that nothing follows */
    {7, 0x60, "parts do not follow"},                 /* a last part without the others */
    {84, 0x25, "parts do not follow"},                /* of a size that no part has */
    {87, 0, "record 3: its parts do not follow"},     /* whole, so that the next one is a part */
    {131, 0x60, "record 3: its parts do not follow"}, /* the last part, and one more */
    {155, 0x40, "parts do not follow"},
    {6, 1, "cut off"},
    {44, 10, "head of a picture's record"},
    {8, 9, "all labels"},
    {11, 0xff, "all labels"},
};

START_TEST(damaged)
{
	const struct damage *is = &damages[_i];
	uint8_t copy[GOLDEN_BYTES];

	memcpy(copy, golden, sizeof(copy));
	copy[is->at] = is->is;
	ck_assert_int_eq(scan(copy, sizeof(copy), ""), SCAN_E_BAD);
	ck_assert_msg(strstr(run.why, is->why), "%s", run.why);
}
END_TEST

/* What is written comes back, wherever the magic is in it. */
START_TEST(cut_up_and_joined)
{
	uint8_t bytes[700], cut[1400];

	for (size_t magic = 0; magic < 600; magic += 7) {
		size_t size = 0, done = 0;

		memset(bytes, 'x', sizeof(bytes));
		memcpy(bytes + magic, MAGIC, 4);
		memcpy(bytes + 600 + magic % 90, MAGIC MAGIC, 8);
		for (size_t at = 0; at + 4 <= sizeof(bytes); at += 4) {
			if (memcmp(bytes + at, MAGIC, 4) != 0)
				continue;
			memcpy(cut + size, bytes + done, at + 4 - done);
			size += at + 4 - done;
			memcpy(cut + size, "\7\0\0\x40", 4);
			size += 4;
			done = at + 4;
		}
		memcpy(cut + size, bytes + done, sizeof(bytes) - done);
		size += sizeof(bytes) - done;
		scan_recordio.join(cut, size, 0);
		ck_assert_mem_eq(cut, bytes, sizeof(bytes));
		for (size_t at = sizeof(bytes); at < size; at++)
			ck_assert_uint_eq(cut[at], 0);
	}
}
END_TEST

START_TEST(told_by_its_begin)
{
	ck_assert(scan_recordio.is_shard(golden, GOLDEN_BYTES));
	ck_assert(!scan_recordio.is_shard(golden, 7));
	ck_assert(!scan_recordio.is_shard(golden + 4, 100));
	ck_assert(!scan_recordio.is_shard(golden + 128, 70)); /* a part */
}
END_TEST

static void add(TCase *all)
{
	tcase_add_test(all, file_of_mxnet);
	tcase_add_test(all, records_of_any_size);
	tcase_add_loop_test(all, labels_of_all_kinds, 0, sizeof(labels) / sizeof(*labels));
	tcase_add_test(all, cut_off);
	tcase_add_loop_test(all, damaged, 0, sizeof(damages) / sizeof(*damages));
	tcase_add_test(all, cut_up_and_joined);
	tcase_add_test(all, told_by_its_begin);
}

int main(void)
{
	return suite_run("recordio", add);
}
