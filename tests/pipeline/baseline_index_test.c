/* SPDX-License-Identifier: Apache-2.0 */
/* The crop index: with it every part of every kind of file has the pixels that it has without; one that
 * says something else does no harm, and none is made of a file that is no good. */

#include <stdlib.h>
#include <string.h>
#include "tests/pipeline/parts.h"

static uint8_t *test_data, *test_index;
static size_t test_size, test_index_size;

static void test_forget(void)
{
	free(test_data);
	free(test_index);
	test_data = test_index = NULL;
}

static int test_open(unsigned k)
{
	uint32_t height, width;

	return baseline_open(parts_baseline[k], test_data, test_size, &height, &width);
}

static int test_make(unsigned k, uint32_t step)
{
	free(test_index);
	test_index = NULL;
	return baseline_index_make(parts_baseline[k], step, &test_index, &test_index_size);
}

static void test_encode(const struct oracle_file *file, uint32_t step)
{
	uint8_t *other;

	test_forget();
	test_data = oracle_encode(file, &test_size);
	ck_assert_int_eq(test_open(0), 0);
	ck_assert_int_eq(test_open(1), 0);
	ck_assert_int_eq(test_make(1, step), 0);
	other = base_take_ptr(test_index);
	ck_assert_int_eq(test_make(0, step), 0);
	ck_assert_mem_eq(test_index, other, test_index_size);
	free(other);
}

/* ---- parts ---- */

static int test_use(unsigned k)
{
	ck_assert_int_eq(test_open(k), 0);
	return baseline_index_use(parts_baseline[k], test_index, test_index_size);
}

/* Parts of the file at a scale, all of them with one opening. */
static void test_parts(unsigned shift, unsigned count)
{
	parts_compare(test_data, test_size, shift, count, test_use);
}

START_TEST(every_part)
{
	static const uint32_t sides[] = {5, 8, 17, 48, 130};
	static const uint32_t steps[] = {1, 2, 3, 8, 100};

	for (unsigned h = 0; h < BASE_ARRAY_LEN(sides); h++) {
		for (unsigned w = 0; w < BASE_ARRAY_LEN(sides); w++) {
			struct oracle_file file = parts_file(_i, sides[h], sides[w]);

			test_encode(&file, steps[(h + w) % BASE_ARRAY_LEN(steps)]);
			test_parts((h + 2 * w) % 4, 12);
		}
	}
}
END_TEST

/* Restarts at, before and behind entries, and at ends of rows. */
START_TEST(every_interval)
{
	for (unsigned interval = 1; interval < 40; interval += interval < 9 ? 1 : 5) {
		struct oracle_file file = parts_file(_i, 90, 120);

		file.interval = interval;
		file.is_optimised = interval % 2;
		for (uint32_t step = 1; step < 6; step += 2) {
			test_encode(&file, step);
			test_parts(0, 5);
		}
	}
}
END_TEST

/* Rows of more bytes than a window has, and codes of few bits. */
START_TEST(large)
{
	struct oracle_file file = parts_file(_i, 24, 6000);

	file.quality = 100;
	file.noise = 255;
	test_encode(&file, 0);
	ck_assert_uint_le(test_index_size, test_size / 51);
	test_parts(0, 6);
	file.interval = 500;
	test_encode(&file, 7);
	test_parts(0, 6);
	file = parts_file(_i, 200, 200);
	file.noise = 0;
	test_encode(&file, 3);
	test_parts(0, 6);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(not_worth_it)
{
	struct oracle_file file = parts_file(_i, 16, 16);

	test_data = oracle_encode(&file, &test_size);
	ck_assert_int_eq(test_open(0), 0);
	ck_assert_int_eq(test_make(0, 0), BASELINE_E_OTHER);
	/* The handle goes on as if nobody had asked. */
	ck_assert_int_eq(parts_decode(0, &(struct picture_box){3, 3, 9, 9}, false), 0);
}
END_TEST

/* An index that says something else: refused at once or while decoding, or nothing of it is needed. */
START_TEST(wrong_index)
{
	struct oracle_file file = parts_file(_i % PARTS_KINDS, 70, 90);
	struct picture_box all = {0, 0, 70, 90};
	unsigned refused = 0, late = 0;

	file.interval = _i < PARTS_KINDS ? 0 : 3;
	test_encode(&file, 2);
	ck_assert_int_eq(test_use(0), 0);
	for (size_t at = 0; at < test_index_size; at++) {
		for (unsigned bit = at % 3; bit < 8; bit += 8) {
			test_index[at] ^= (uint8_t)(1 << bit);
			if (test_use(0) != 0)
				refused++;
			else
				late += parts_decode(0, &all, false) != 0;
			test_index[at] ^= (uint8_t)(1 << bit);
		}
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_gt(late, 0);
}
END_TEST

START_TEST(short_index)
{
	struct oracle_file file = parts_file(_i, 70, 90);
	struct picture_box all = {0, 0, 70, 90};

	test_encode(&file, 2);
	for (size_t size = 0; size < test_index_size; size++) {
		uint8_t *cut = malloc(size + 1);

		ck_assert_ptr_nonnull(cut);
		memcpy(cut, test_index, size);
		ck_assert_int_eq(baseline_index_use(parts_baseline[0], cut, size),
				 BASELINE_E_OTHER);
		free(cut);
	}
	/* Refused: decoded without. */
	parts_picture.shift = 0;
	ck_assert_int_eq(oracle_decode(test_data, test_size, UINT64_MAX, &parts_picture), 0);
	ck_assert_int_eq(parts_decode(0, &all, true), 0);
	ck_assert_int_eq(test_use(0), 0);
	/* The next file that is opened has none. */
	ck_assert_int_eq(test_open(0), 0);
	ck_assert_ptr_null(parts_baseline[0]->index.rows);
}
END_TEST

/* The scan was changed under its index: rows or none, and no harm. */
START_TEST(changed_scan)
{
	struct oracle_file file = parts_file(_i % PARTS_KINDS, 70, 90);
	struct picture_box part = {20, 30, 40, 50};
	unsigned found = 0;

	file.interval = _i < PARTS_KINDS ? 0 : 3;
	test_encode(&file, 2);
	for (size_t at = (size_t)(parts_baseline[0]->head.scan - test_data); at < test_size;
	     at += 3) {
		test_data[at] ^= 0xa5;
		ck_assert_int_eq(test_use(0), 0);
		found += parts_decode(0, &part, false) != 0;
		test_data[at] ^= 0xa5;
	}
	ck_assert_uint_gt(found, 0);
}
END_TEST

/* Whatever an index is made of can be decoded, to its end. */
START_TEST(damaged_file)
{
	struct oracle_file file = parts_file(_i % PARTS_KINDS, 40, 40);
	unsigned made = 0;

	file.interval = _i < PARTS_KINDS ? 0 : 3;
	test_encode(&file, 2);
	for (size_t size = test_size - 1; size > 0; size -= BASE_MIN(size, 3)) {
		size_t whole = test_size;

		test_size = size;
		ck_assert(test_open(0) != 0 || test_make(0, 2) != 0);
		test_size = whole;
	}
	for (size_t at = 0; at < test_size; at += 5) {
		test_data[at] ^= 0x80;
		if (test_open(0) == 0 && parts_baseline[0]->head.height <= 40 &&
		    parts_baseline[0]->head.width <= 40 && test_make(0, 2) == 0) {
			parts_picture.shift = 0;
			ck_assert_int_eq(
			    oracle_decode(test_data, test_size, UINT64_MAX, &parts_picture), 0);
			made++;
		}
		test_data[at] ^= 0x80;
	}
	ck_assert_uint_gt(made, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	const int kinds = PARTS_KINDS;

	tcase_add_loop_test(tcase, every_part, 0, kinds);
	tcase_add_loop_test(tcase, every_interval, 0, kinds);
	tcase_add_loop_test(tcase, large, 0, kinds);
	tcase_add_loop_test(tcase, not_worth_it, 0, kinds);
	tcase_add_loop_test(tcase, wrong_index, 0, 2 * kinds);
	tcase_add_loop_test(tcase, short_index, 0, kinds);
	tcase_add_loop_test(tcase, changed_scan, 0, 2 * kinds);
	tcase_add_loop_test(tcase, damaged_file, 0, 2 * kinds);
}

int main(void)
{
	return parts_main("baseline_index", add_tests);
}
