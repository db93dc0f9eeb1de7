/* SPDX-License-Identifier: Apache-2.0 */
/* Packed coefficients: every part of every kind of file has its pixels, with every set of kernels; the file
 * that is made of them again has, too; and hostile ones do no harm. */

#include <stdlib.h>
#include <string.h>
#include "tests/pipeline/parts.h"

static uint8_t *test_data, *test_packed;
static size_t test_size, test_front, test_packed_size;

static void test_forget(void)
{
	free(test_data);
	free(test_packed);
	test_data = test_packed = NULL;
}

static int test_open(unsigned k, size_t size)
{
	uint32_t height, width;

	return baseline_open(parts_baseline[k], test_data, size, &height, &width);
}

/* From the file's first bytes alone. */
static int test_use(unsigned k)
{
	ck_assert_int_eq(test_open(k, test_front), 0);
	return baseline_packed_use(parts_baseline[k], test_packed, test_packed_size);
}

/* What baseline_pack says. */
static int test_try(const struct oracle_file *file)
{
	test_forget();
	test_data = oracle_encode(file, &test_size);
	ck_assert_int_eq(test_open(0, test_size), 0);
	test_front = baseline_front(parts_baseline[0]);
	return baseline_pack(parts_baseline[0], &test_packed, &test_packed_size);
}

static void test_encode(const struct oracle_file *file)
{
	ck_assert_int_eq(test_try(file), 0);
}

static void test_parts(unsigned shift, unsigned count)
{
	parts_compare(test_data, test_size, shift, count, test_use);
}

/* The file that the coefficients stand for. */
static void test_restored(void)
{
	size_t pixels, size;
	uint8_t *file, *before;

	parts_picture.shift = 0;
	ck_assert_int_eq(oracle_decode(test_data, test_size, UINT64_MAX, &parts_picture), 0);
	pixels = (size_t)parts_picture.height * parts_picture.width * 3;
	before = malloc(pixels);
	ck_assert_ptr_nonnull(before);
	memcpy(before, parts_picture.rgb, pixels);
	ck_assert_int_eq(test_use(0), 0);
	ck_assert_int_eq(baseline_restore(parts_baseline[0], &file, &size), 0);
	ck_assert_int_eq(oracle_decode(file, size, UINT64_MAX, &parts_picture), 0);
	ck_assert_int_eq(parts_picture.warnings, 0);
	ck_assert(memcmp(before, parts_picture.rgb, pixels) == 0);
	free(before);
	free(file);
}

START_TEST(every_part)
{
	static const uint32_t sides[] = {5, 8, 17, 48, 130};

	for (unsigned h = 0; h < BASE_ARRAY_LEN(sides); h++) {
		for (unsigned w = 0; w < BASE_ARRAY_LEN(sides); w++) {
			struct oracle_file file = parts_file(_i, sides[h], sides[w]);

			file.interval = (h + w) % 4 * 3;
			test_encode(&file);
			test_parts((h + 2 * w) % 4, 8);
			test_restored();
		}
	}
}
END_TEST

/* From flat blocks to numbers of all widths. */
START_TEST(every_quality)
{
	for (int quality = 10; quality <= 100; quality += 15) {
		for (uint32_t noise = 0; noise < 256; noise += 127) {
			struct oracle_file file = parts_file(_i, 60, 70);

			file.quality = quality;
			file.noise = noise;
			file.is_optimised = quality % 20 == 0;
			if (noise ==
			    0) { /* a bit or two a block, twice which is less than packed */
				int r = test_try(&file);

				ck_assert(r == 0 || r == BASELINE_E_OTHER);
				if (r != 0)
					continue;
			} else {
				test_encode(&file);
			}
			test_parts(0, 3);
			test_restored();
		}
	}
}
END_TEST

/* More shapes than there is room for: rare ones take wider ones. */
START_TEST(many_shapes)
{
	struct oracle_file file = parts_file(_i, 400, 600);

	file.quality = 97;
	file.noise = 40;
	test_encode(&file);
	ck_assert_uint_eq(test_packed[0] | test_packed[1] << 8, BASELINE_SHAPES);
	test_parts(0, 2);
	test_restored();
}
END_TEST

/* Rows of more bytes than 16 bits can tell. */
START_TEST(wide_rows)
{
	struct oracle_file file = parts_file(_i, 9, 16000);

	file.quality = 100;
	file.noise = 255;
	test_encode(&file);
	ck_assert_uint_gt(test_packed[6], 0);
	test_parts(0, 4);
	test_restored();
}
END_TEST

/* Every number that eight bits can have in a file, and shapes of all widths: one kernel as the other. */
START_TEST(kernels)
{
	struct baseline_packed packed = {.plain = 128};
	struct philox_seq seq;
	static const uint8_t widths[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12};
	uint8_t bytes[1024];

	if (parts_baseline[0]->kernels == &baseline_kernels_plain)
		return;
	philox_seq_init(&seq, (uint64_t)_i, 0, 0);
	for (unsigned i = 0; i < BASELINE_SHAPES; i++) {
		for (unsigned g = 0; g < 8; g++) {
			struct baseline_shape *shape = g < 4 ? &packed.low[i] : &packed.high[i];
			unsigned width = widths[philox_below(&seq, BASE_ARRAY_LEN(widths))];

			shape->widths |= (uint16_t)(width << 4 * (g % 4));
			shape->bytes += (uint8_t)width;
		}
	}
	for (unsigned round = 0; round < 200; round++) {
		const unsigned n = 1 + round % 6;
		const unsigned wanted = (unsigned)philox_below(&seq, 64);
		const uint8_t *end[PARTS_KERNELS];

		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)philox_below(&seq, 256);
		for (unsigned k = 0; k < PARTS_KERNELS; k++)
			end[k] = parts_baseline[k]->kernels->packed(&packed, bytes, n, wanted,
								    &parts_baseline[k]->mcu[0]);
		ck_assert_ptr_eq(end[0], end[1]);
		for (unsigned i = 0; i < n; i++) {
			const struct baseline_mcu *a = &parts_baseline[0]->mcu[0];
			const struct baseline_mcu *b = &parts_baseline[1]->mcu[0];

			ck_assert_uint_eq(a->end[i], b->end[i]);
			ck_assert_int_eq(a->coef[i][0], b->coef[i][0]);
			if (wanted >> i & 1)
				ck_assert_mem_eq(a->coef[i], b->coef[i], 64 * sizeof(int16_t));
		}
	}
}
END_TEST

/* ---- hostile bytes ---- */

START_TEST(cut_short)
{
	struct oracle_file file = parts_file(_i, 40, 50);
	struct picture_box all = {0, 0, 40, 50};

	test_encode(&file);
	for (size_t size = 0; size < test_packed_size; size += size < 100 ? 1 : 9) {
		uint8_t *cut = malloc(size + 1);

		ck_assert_ptr_nonnull(cut);
		memcpy(cut, test_packed, size);
		ck_assert_int_eq(test_open(0, test_front), 0);
		if (baseline_packed_use(parts_baseline[0], cut, size) == 0)
			ck_assert_int_eq(parts_decode(0, &all, false), BASELINE_E_DAMAGED);
		free(cut);
	}
}
END_TEST

START_TEST(each_byte_changed)
{
	struct oracle_file file = parts_file(_i, 40, 50);
	struct picture_box all = {0, 0, 40, 50};
	unsigned refused = 0, late = 0, restored = 0;
	uint8_t *file_again;
	size_t size;

	test_encode(&file);
	for (size_t at = 0; at < test_packed_size; at += at < 200 ? 1 : 7) {
		test_packed[at] ^= (uint8_t)(0x11 << at % 4);
		for (unsigned k = 0; k < PARTS_KERNELS; k++) {
			if (test_use(k) != 0) {
				refused++;
				continue;
			}
			late += parts_decode(k, &all, false) != 0;
			if (test_use(k) == 0 &&
			    baseline_restore(parts_baseline[k], &file_again, &size) == 0) {
				restored++;
				free(file_again);
			}
		}
		test_packed[at] ^= (uint8_t)(0x11 << at % 4);
	}
	ck_assert_uint_gt(refused, 0);
	ck_assert_uint_gt(late, 0);
	ck_assert_uint_gt(restored, 0);
}
END_TEST

/* Nothing is made of a file that the quick decoder does not take to its end. */
START_TEST(damaged_file)
{
	struct oracle_file file = parts_file(_i, 40, 50);
	uint8_t *packed;
	size_t size;

	test_encode(&file);
	for (size_t cut = test_front; cut < test_size; cut += 7) {
		ck_assert_int_eq(test_open(0, cut), 0);
		ck_assert_int_ne(baseline_pack(parts_baseline[0], &packed, &size), 0);
	}
}
END_TEST

static void add_tests(TCase *tcase)
{
	const int kinds = PARTS_KINDS;

	tcase_add_loop_test(tcase, every_part, 0, kinds);
	tcase_add_loop_test(tcase, every_quality, 0, kinds);
	tcase_add_loop_test(tcase, many_shapes, 0, kinds - 1); /* grey has fewer */
	tcase_add_loop_test(tcase, wide_rows, 2, 3);
	tcase_add_loop_test(tcase, kernels, 0, 4);
	tcase_add_loop_test(tcase, cut_short, 0, kinds);
	tcase_add_loop_test(tcase, each_byte_changed, 0, kinds);
	tcase_add_loop_test(tcase, damaged_file, 0, kinds);
}

int main(void)
{
	return parts_main("baseline_packed", add_tests);
}
