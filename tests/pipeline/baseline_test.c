/* SPDX-License-Identifier: Apache-2.0 */
/* The quick JPEG decoder, whole: its pixels are those of libjpeg-turbo for every kind of file that it
 * takes, at every place of a part, with every set of kernels; what it must not take it does not. */

#include <stdlib.h>
#include <string.h>
#include "tests/pipeline/parts.h"

#define TEST_SCALES 4 /* a loop over kinds and scales: _i is kind + PARTS_KINDS * shift */

/* So narrow that libjpeg-turbo repeats chroma. */
static bool test_is_narrow(const struct oracle_file *file)
{
	const unsigned shift = parts_picture.shift;

	if (file->across != 2)
		return false;
	return file->width <= 4 ||
	       (file->down == 1 && shift < 3 && file->width <= UINT32_C(4) << shift);
}

/* ---- comparing ---- */

/* All rows of box by both sets of kernels. Returns how many gave up. */
static unsigned test_part(const uint8_t *data, size_t size, const struct picture_box *box)
{
	unsigned damaged = 0;

	for (unsigned k = 0; k < PARTS_KERNELS; k++) {
		struct decode_band band = {0};
		uint32_t height = 0, width = 0;

		if (baseline_open(parts_baseline[k], data, size, &height, &width) != 0 ||
		    baseline_reduce(parts_baseline[k], parts_picture.shift) != 0 ||
		    parts_baseline[k]->height != parts_picture.height ||
		    parts_baseline[k]->width != parts_picture.width ||
		    baseline_start(parts_baseline[k], box) != 0)
			ck_abort_msg("not taken");
		for (uint32_t y = 0; y < box->height; y += band.rows) {
			int r = baseline_next(parts_baseline[k], &band);

			if (r == BASELINE_E_DAMAGED) {
				damaged++;
				break;
			}
			if (r != 0 || band.rows < 1 || band.rows > box->height - y)
				ck_abort_msg("%d, %u rows", r, band.rows);
			parts_rows(&band, box, y);
		}
	}
	return damaged;
}

static uint8_t *test_file(const struct oracle_file *file, size_t *ret_size)
{
	uint8_t *data = oracle_encode(file, ret_size);

	ck_assert_int_eq(oracle_decode(data, *ret_size, UINT64_MAX, &parts_picture), 0);
	ck_assert_int_eq(parts_picture.warnings, 0);
	return data;
}

static void test_whole(const struct oracle_file *file)
{
	struct picture_box box = {0, 0, 0, 0};
	size_t size;
	uint8_t *data = test_file(file, &size);

	box.height = parts_picture.height;
	box.width = parts_picture.width;

	ck_assert_uint_eq(test_part(data, size, &box), 0);
	free(data);
}

static void test_parts(const struct oracle_file *file, unsigned count)
{
	struct philox_seq seq;
	struct picture_box box;
	size_t size;
	uint8_t *data = test_file(file, &size);

	philox_seq_init(&seq, file->seed, file->width, file->height);
	for (unsigned i = 0; i < count; i++) {
		parts_span(&seq, parts_picture.height, &box.top, &box.height);
		parts_span(&seq, parts_picture.width, &box.left, &box.width);
		ck_assert_msg(test_part(data, size, &box) == 0, "part %u %u %u %u of %u x %u",
			      box.top, box.left, box.height, box.width, file->height, file->width);
	}
	free(data);
}

/* ---- kinds of files ---- */

START_TEST(every_size)
{
	parts_picture.shift = (unsigned)(_i / PARTS_KINDS);
	for (uint32_t height = 1; height < 36; height += height < 18 ? 1 : 5) {
		for (uint32_t width = 1; width < 70; width += width < 18 ? 1 : 7) {
			struct oracle_file file = {height,
						   width,
						   parts_sampling[_i % PARTS_KINDS][0],
						   parts_sampling[_i % PARTS_KINDS][1],
						   85,
						   0,
						   false,
						   false,
						   80,
						   height};

			if (!test_is_narrow(&file))
				test_whole(&file);
		}
	}
}
END_TEST

START_TEST(every_part)
{
	static const uint32_t sides[] = {5, 8, 16, 17, 31, 33, 48, 70};

	parts_picture.shift = (unsigned)(_i / PARTS_KINDS);
	for (unsigned h = 0; h < BASE_ARRAY_LEN(sides); h++) {
		for (unsigned w = 0; w < BASE_ARRAY_LEN(sides); w++) {
			struct oracle_file file = {sides[h],
						   sides[w],
						   parts_sampling[_i % PARTS_KINDS][0],
						   parts_sampling[_i % PARTS_KINDS][1],
						   90,
						   0,
						   false,
						   false,
						   60,
						   h};

			if (!test_is_narrow(&file))
				test_parts(&file, 25);
		}
	}
}
END_TEST

START_TEST(every_edge)
{
	struct oracle_file file = {34,
				   50,
				   parts_sampling[_i % PARTS_KINDS][0],
				   parts_sampling[_i % PARTS_KINDS][1],
				   90,
				   0,
				   false,
				   false,
				   100,
				   1};
	uint32_t few_rows, few_columns;
	size_t size;
	uint8_t *data;

	parts_picture.shift = (unsigned)(_i / PARTS_KINDS);
	data = test_file(&file, &size);
	few_columns = BASE_MIN(parts_picture.width, 10);
	few_rows = BASE_MIN(parts_picture.height, 4);
	for (uint32_t top = 0; top < parts_picture.height; top++) {
		for (uint32_t height = 1; height <= parts_picture.height - top; height += 3) {
			struct picture_box box = {
			    top, (top * 7 + height) % (parts_picture.width - few_columns + 1),
			    height, few_columns};

			ck_assert_uint_eq(test_part(data, size, &box), 0);
		}
	}
	for (uint32_t left = 0; left < parts_picture.width; left++) {
		for (uint32_t width = 1; width <= parts_picture.width - left; width += 3) {
			struct picture_box box = {(left * 7 + width) %
						      (parts_picture.height - few_rows + 1),
						  left, few_rows, width};

			ck_assert_uint_eq(test_part(data, size, &box), 0);
		}
	}
	free(data);
}
END_TEST

START_TEST(every_quality)
{
	parts_picture.shift = (unsigned)(_i / PARTS_KINDS);
	for (int quality = 1; quality <= 100; quality++) {
		struct oracle_file file = {40,
					   56,
					   parts_sampling[_i % PARTS_KINDS][0],
					   parts_sampling[_i % PARTS_KINDS][1],
					   quality,
					   0,
					   quality % 2,
					   quality % 3 == 0,
					   255,
					   (uint32_t)quality};

		/* Coarse steps make numbers that the plain kernels leave to libjpeg. */
		if (quality >= 30)
			test_whole(&file);
		file.noise = 20;
		test_whole(&file);
	}
}
END_TEST

START_TEST(every_interval)
{
	parts_picture.shift = (unsigned)(_i / PARTS_KINDS);
	for (unsigned interval = 1; interval < 40; interval += interval < 12 ? 1 : 7) {
		struct oracle_file file = {90,
					   120,
					   parts_sampling[_i % PARTS_KINDS][0],
					   parts_sampling[_i % PARTS_KINDS][1],
					   80,
					   interval,
					   interval % 2,
					   false,
					   60,
					   interval};

		test_parts(&file, 25);
	}
}
END_TEST

/* Windows are filled again and again, within rows and while reading over. */
START_TEST(large)
{
	struct oracle_file file = {300,
				   500,
				   parts_sampling[_i % PARTS_KINDS][0],
				   parts_sampling[_i % PARTS_KINDS][1],
				   100,
				   0,
				   false,
				   false,
				   255,
				   3};

	parts_picture.shift = (unsigned)(_i / PARTS_KINDS);
	test_parts(&file, 8);
	file.interval = 200;
	test_parts(&file, 8);
}
END_TEST

/* More codes than there is room for, all in turn, and those of a picture at once. */
START_TEST(many_codes)
{
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t seed = 0; seed < 24; seed++) {
			struct oracle_file file = {40,
						   40,
						   parts_sampling[seed % 4][0],
						   parts_sampling[seed % 4][1],
						   60 + (int)seed,
						   0,
						   true,
						   false,
						   10 + 10 * seed,
						   seed};

			test_whole(&file);
		}
	}
}
END_TEST

/* Steps made larger than an encoder would: numbers in which 16 bits overflow. */
START_TEST(large_numbers)
{
	static const uint8_t steps[] = {2, 9, 40, 120, 255};
	struct oracle_file file = {40,
				   40,
				   parts_sampling[_i % PARTS_KINDS][0],
				   parts_sampling[_i % PARTS_KINDS][1],
				   100,
				   0,
				   false,
				   false,
				   255,
				   5};
	struct picture_box box = {0, 0, 0, 0};

	parts_picture.shift = (unsigned)(_i / PARTS_KINDS);
	box.height = box.width = 40u >> parts_picture.shift;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(steps); i++) {
		size_t size;
		uint8_t *data = test_file(&file, &size);

		for (size_t at = 2; data[at + 1] != 0xda;
		     at += 2 + (data[at + 2] << 8 | data[at + 3])) {
			if (data[at + 1] == 0xdb)
				memset(data + at + 5, steps[i], 64);
		}
		ck_assert_int_eq(oracle_decode(data, size, UINT64_MAX, &parts_picture), 0);
		/* Either the right pixels or none. */
		test_part(data, size, &box);
		free(data);
	}
}
END_TEST

/* ---- files that are not its own ---- */

/* Rewrites the first segment of that marker. */
static uint8_t *test_segment(uint8_t *data, uint8_t marker)
{
	uint8_t *at = data + 2;

	while (at[1] != marker) {
		ck_assert_uint_ne(at[1], 0xda);
		at += 2 + (at[2] << 8 | at[3]);
	}
	return at;
}

struct test_edit {
	const char *name;
	uint8_t marker, offset, value; /* of the byte behind the marker */
};

static const struct test_edit test_edits[] = {
    {"progressive", 0xc0, 1, 0xc2},
    {"arithmetic", 0xc0, 1, 0xc9},
    {"12 bit", 0xc0, 4, 12},
    {"no height", 0xc0, 6, 0},
    {"two components", 0xc0, 9, 2},
    {"factors 4:1:1", 0xc0, 11, 0x41},
    {"factors 4:4:0", 0xc0, 11, 0x12},
    {"equal names", 0xc0, 13, 1},
    {"missing steps", 0xc0, 12, 3},
    {"a step of 0", 0xdb, 9, 0},
    {"too many codes", 0xc4, 5, 3},
    {"a large DC", 0xc4, 24, 12},
    {"another component", 0xda, 5, 9},
    {"a missing code", 0xda, 6, 0x20},
    {"not from the start", 0xda, 11, 1},
    {"a short segment", 0xdb, 3, 64},
    {"an unknown marker", 0xdb, 1, 0xf0},
    {"garbage", 0xdb, 0, 0x11},
    {"RGB", 0xe0, 1, 0xee},
};

START_TEST(other_files)
{
	const struct test_edit *edit = &test_edits[_i];
	struct oracle_file file = {20, 20, 2, 2, 75, 0, false, false, 60, 1};
	uint32_t height = 7, width = 7;
	size_t size;
	uint8_t *data = test_file(&file, &size), *segment = test_segment(data, edit->marker);

	ck_assert_int_eq(baseline_open(parts_baseline[0], data, size, &height, &width), 0);
	segment[edit->offset] = edit->value;
	if (edit->marker == 0xe0)
		memcpy(segment + 4, "Adobe\0d\0\0\0\0\0", 12);
	height = width = 7;
	ck_assert_msg(baseline_open(parts_baseline[0], data, size, &height, &width) ==
			  BASELINE_E_OTHER,
		      "%s", edit->name);
	ck_assert_uint_eq(height + width, 14);
	free(data);
}
END_TEST

/* Chroma that is smoothed across in a smaller picture, too. */
START_TEST(narrow_when_smaller)
{
	struct oracle_file file = {20, 17, 2, 1, 75, 0, false, false, 60, 1};
	uint32_t h, w;
	size_t size;
	uint8_t *data = test_file(&file, &size);

	ck_assert_int_eq(baseline_open(parts_baseline[0], data, size, &h, &w), 0);
	ck_assert_int_eq(baseline_reduce(parts_baseline[0], 1), 0);
	ck_assert_int_eq(baseline_reduce(parts_baseline[0], 2), 0);
	ck_assert_int_eq(baseline_reduce(parts_baseline[0], 3), 0);
	free(data);
	file.width = 16;
	data = test_file(&file, &size);
	ck_assert_int_eq(baseline_open(parts_baseline[0], data, size, &h, &w), 0);
	ck_assert_int_eq(baseline_reduce(parts_baseline[0], 1), 0);
	ck_assert_int_eq(baseline_reduce(parts_baseline[0], 2), BASELINE_E_OTHER);
	ck_assert_int_eq(baseline_reduce(parts_baseline[0], 3), 0);
	free(data);
}
END_TEST

START_TEST(narrow_files)
{
	for (uint32_t width = 1; width <= 4; width++) {
		struct oracle_file file = {20, width, 2, 2, 75, 0, false, false, 60, 1};
		uint32_t h, w;
		size_t size;
		uint8_t *data = test_file(&file, &size);

		ck_assert_int_eq(baseline_open(parts_baseline[0], data, size, &h, &w),
				 BASELINE_E_OTHER);
		free(data);
	}
}
END_TEST

/* ---- damage ---- */

/* A damaged file: left to libjpeg, or its pixels. Returns whether it was taken. */
static bool test_damaged(const uint8_t *data, size_t size, const struct picture_box *box)
{
	uint32_t height, width;
	bool taken;

	if (baseline_open(parts_baseline[0], data, size, &height, &width) != 0 ||
	    baseline_reduce(parts_baseline[0], parts_picture.shift) != 0)
		return false;
	if (parts_baseline[0]->height < box->top + box->height ||
	    parts_baseline[0]->width < box->left + box->width || height > 4096 || width > 4096)
		return false;
	if (oracle_decode(data, size, UINT64_MAX, &parts_picture) == 0) {
		taken = test_part(data, size, box) == 0;
	} else {
		struct decode_band band = {0};

		ck_assert_int_eq(baseline_start(parts_baseline[0], box), 0);
		for (uint32_t y = 0; y < box->height; y += band.rows) {
			if (baseline_next(parts_baseline[0], &band) != 0)
				return false;
		}
		ck_abort_msg("taken, but libjpeg refuses it");
	}
	return taken;
}

START_TEST(cut_short)
{
	struct oracle_file file = {40,
				   40,
				   parts_sampling[_i % PARTS_KINDS][0],
				   parts_sampling[_i % PARTS_KINDS][1],
				   75,
				   _i % 2 ? 3 : 0,
				   false,
				   false,
				   60,
				   1};
	struct picture_box all = {0, 0, 40, 40}, top = {0, 0, 9, 40};
	size_t size;
	uint8_t *data = test_file(&file, &size), *cut;

	ck_assert(test_damaged(data, size, &all) && test_damaged(data, size, &top));
	for (size_t length = 0; length < size; length++) {
		cut = malloc(length + 1);
		ck_assert_ptr_nonnull(cut);
		memcpy(cut, data, length);
		ck_assert(!test_damaged(cut, length, &all));
		ck_assert(!test_damaged(cut, length, &top));
		free(cut);
	}
	free(data);
}
END_TEST

START_TEST(each_byte_changed)
{
	static const uint8_t flips[] = {0x01, 0x80, 0xff};
	struct oracle_file file = {40,
				   40,
				   parts_sampling[_i % PARTS_KINDS][0],
				   parts_sampling[_i % PARTS_KINDS][1],
				   75,
				   _i % 2 ? 3 : 0,
				   true,
				   false,
				   60,
				   1};
	const unsigned shift = (unsigned)(_i / PARTS_KINDS);
	struct picture_box all = {0, 0, 40u >> shift, 40u >> shift};
	struct picture_box low = {30u >> shift, 3u >> shift, 8u >> shift, 20u >> shift};
	unsigned taken = 0;
	size_t size;
	uint8_t *data = test_file(&file, &size);

	parts_picture.shift = shift;
	for (size_t at = 0; at < size; at += 1 + 3 * (size_t)shift) {
		for (unsigned i = 0; i < BASE_ARRAY_LEN(flips); i++) {
			data[at] ^= flips[i];
			taken += test_damaged(data, size, &all);
			taken += test_damaged(data, size, &low);
			data[at] ^= flips[i];
		}
	}
	ck_assert_uint_gt(taken, 0); /* the application's marker, at least */
	free(data);
}
END_TEST

/* What follows the rows wanted is not decoded, but it must be a scan's rest. */
START_TEST(tails)
{
	static const struct {
		uint8_t marker;
		bool taken;
	} kinds[] = {{0xd9, true}, {0xd0, true},  {0x00, true},
		     {0xff, true}, {0xda, false}, {0xc4, false}};
	struct oracle_file file = {64, 64, 2, 2, 90, 0, false, false, 80, 1};
	struct picture_box box = {0, 0, 10, 64};
	size_t size;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		uint8_t *data = test_file(&file, &size);

		data[size - 60] = 0xff;
		data[size - 59] = kinds[i].marker;
		data[size - 58] = kinds[i].marker == 0xff ? 0xd9 : 0x12;
		ck_assert_int_eq(test_damaged(data, size, &box), kinds[i].taken);
		free(data);
	}
}
END_TEST

/* A part of another picture after one that was left half-way; memory given back between. */
START_TEST(handle_use)
{
	struct oracle_file file = {64, 64, 2, 2, 90, 7, false, false, 80, 1};
	struct oracle_file wide = {16, 65000, 1, 1, 50, 0, false, false, 0, 1};
	struct picture_box box = {20, 20, 40, 40};
	struct decode_band band;
	size_t size;
	uint8_t *data = test_file(&file, &size);
	uint32_t height, width;

	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(baseline_open(parts_baseline[0], data, size, &height, &width), 0);
		ck_assert_int_eq(baseline_start(parts_baseline[0], &box), 0);
		ck_assert_int_eq(baseline_next(parts_baseline[0], &band), 0);
	}
	free(data);
	test_whole(&wide);
	ck_assert_uint_gt(parts_baseline[0]->memory_size, 1 << 20);
	baseline_trim(parts_baseline[0]);
	ck_assert_uint_eq(parts_baseline[0]->memory_size, 0);
	test_whole(&file);
	baseline_trim(parts_baseline[0]);
	ck_assert_uint_gt(parts_baseline[0]->memory_size, 0);
}
END_TEST

static void add_tests(TCase *tcase)
{
	const int kinds = PARTS_KINDS;

	tcase_add_loop_test(tcase, every_size, 0, kinds * TEST_SCALES);
	tcase_add_loop_test(tcase, every_part, 0, kinds * TEST_SCALES);
	tcase_add_loop_test(tcase, every_edge, 0, kinds * TEST_SCALES);
	tcase_add_loop_test(tcase, every_quality, 0, kinds * TEST_SCALES);
	tcase_add_loop_test(tcase, every_interval, 0, kinds * TEST_SCALES);
	tcase_add_loop_test(tcase, large, 0, kinds * TEST_SCALES);
	tcase_add_test(tcase, many_codes);
	tcase_add_loop_test(tcase, large_numbers, 0, kinds * TEST_SCALES);
	tcase_add_loop_test(tcase, other_files, 0, (int)BASE_ARRAY_LEN(test_edits));
	tcase_add_test(tcase, narrow_files);
	tcase_add_test(tcase, narrow_when_smaller);
	tcase_add_loop_test(tcase, cut_short, 0, kinds);
	tcase_add_loop_test(tcase, each_byte_changed, 0, kinds * TEST_SCALES);
	tcase_add_test(tcase, tails);
	tcase_add_test(tcase, handle_use);
}

int main(void)
{
	return parts_main("baseline", add_tests);
}
