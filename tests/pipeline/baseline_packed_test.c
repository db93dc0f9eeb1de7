/* SPDX-License-Identifier: Apache-2.0 */
/* Packed coefficients: every part of every kind of file has its pixels, with every set of kernels; the file
 * that is made of them again has, too; and hostile ones do no harm. */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/baseline.h"
#include "pipeline/baseline_inner.h"
#include "tests/pipeline/jpeg_oracle.h"

#define TEST_KERNELS 2

static struct baseline *test_baseline[TEST_KERNELS];
static struct oracle_picture test_picture;
static uint8_t *test_data, *test_packed;
static size_t test_size, test_front, test_packed_size;

static void test_setup(void)
{
	for (unsigned i = 0; i < TEST_KERNELS; i++)
		ck_assert_int_eq(baseline_new(&test_baseline[i]), 0);
	test_baseline[1]->kernels = &baseline_kernels_plain;
}

static void test_forget(void)
{
	free(test_data);
	free(test_packed);
	test_data = test_packed = NULL;
}

static void test_teardown(void)
{
	test_forget();
	for (unsigned i = 0; i < TEST_KERNELS; i++)
		baseline_free(test_baseline[i]);
	oracle_fini(&test_picture);
}

/* Both factors of the first component; 0: grey. */
static const int test_sampling[][2] = {{2, 2}, {2, 1}, {1, 1}, {0, 0}};
#define TEST_KINDS ((int)BASE_ARRAY_LEN(test_sampling))

static struct oracle_file test_kind(int kind, uint32_t height, uint32_t width)
{
	return (struct oracle_file){
	    .height = height,
	    .width = width,
	    .across = test_sampling[kind][0],
	    .down = test_sampling[kind][1],
	    .quality = 90,
	    .noise = 70,
	    .seed = height * 1000 + width,
	};
}

static int test_open(unsigned k, size_t size)
{
	uint32_t height, width;

	return baseline_open(test_baseline[k], test_data, size, &height, &width);
}

/* From the file's first bytes alone. */
static int test_use(unsigned k)
{
	ck_assert_int_eq(test_open(k, test_front), 0);
	return baseline_packed_use(test_baseline[k], test_packed, test_packed_size);
}

/* What baseline_pack says. */
static int test_try(const struct oracle_file *file)
{
	test_forget();
	test_data = oracle_encode(file, &test_size);
	ck_assert_int_eq(test_open(0, test_size), 0);
	test_front = baseline_front(test_baseline[0]);
	return baseline_pack(test_baseline[0], &test_packed, &test_packed_size);
}

static void test_encode(const struct oracle_file *file)
{
	ck_assert_int_eq(test_try(file), 0);
}

static void test_rows(const struct decode_band *band, const struct picture_box *box, uint32_t y)
{
	for (uint32_t i = 0; i < band->rows; i++) {
		const uint8_t *right =
		    test_picture.rgb +
		    ((size_t)(box->top + y + i) * test_picture.width + box->left) * 3;

		for (size_t x = 0; x < (size_t)box->width * 3; x++) {
			if (band->plane[x % 3][i * band->stride + x / 3] != right[x])
				ck_abort_msg("row %u, column %zu of the part %u %u %u %u", y + i,
					     x / 3, box->top, box->left, box->height, box->width);
		}
	}
}

/* All rows of box, which handle k has in use. 0 or what ended it. */
static int test_part(unsigned k, const struct picture_box *box, bool is_compared)
{
	struct decode_band band = {0};
	int r = baseline_start(test_baseline[k], box);

	for (uint32_t y = 0; r == 0 && y < box->height; y += band.rows) {
		r = baseline_next(test_baseline[k], &band);
		if (r == 0 && is_compared)
			test_rows(&band, box, y);
	}
	return r;
}

static void test_span(struct philox_seq *seq, uint32_t size, uint32_t *ret_first,
		      uint32_t *ret_size)
{
	uint32_t a = (uint32_t)philox_below(seq, size), b = (uint32_t)philox_below(seq, size);

	*ret_first = BASE_MIN(a, b);
	*ret_size = BASE_MAX(a, b) - *ret_first + 1;
}

static void test_parts(unsigned shift, unsigned count)
{
	struct philox_seq seq;
	struct picture_box box;

	test_picture.shift = shift;
	ck_assert_int_eq(oracle_decode(test_data, test_size, UINT64_MAX, &test_picture), 0);
	philox_seq_init(&seq, test_size, shift, 0);
	for (unsigned k = 0; k < TEST_KERNELS; k++) {
		ck_assert_int_eq(test_use(k), 0);
		if (baseline_reduce(test_baseline[k], shift) != 0)
			continue; /* so narrow that it is left to libjpeg */
		for (unsigned i = 0; i < count; i++) {
			test_span(&seq, test_picture.height, &box.top, &box.height);
			test_span(&seq, test_picture.width, &box.left, &box.width);
			ck_assert_int_eq(test_part(k, &box, true), 0);
		}
	}
}

/* The file that the coefficients stand for. */
static void test_restored(void)
{
	size_t pixels, size;
	uint8_t *file, *before;

	test_picture.shift = 0;
	ck_assert_int_eq(oracle_decode(test_data, test_size, UINT64_MAX, &test_picture), 0);
	pixels = (size_t)test_picture.height * test_picture.width * 3;
	before = malloc(pixels);
	ck_assert_ptr_nonnull(before);
	memcpy(before, test_picture.rgb, pixels);
	ck_assert_int_eq(test_use(0), 0);
	ck_assert_int_eq(baseline_restore(test_baseline[0], &file, &size), 0);
	ck_assert_int_eq(oracle_decode(file, size, UINT64_MAX, &test_picture), 0);
	ck_assert_int_eq(test_picture.warnings, 0);
	ck_assert(memcmp(before, test_picture.rgb, pixels) == 0);
	free(before);
	free(file);
}

START_TEST(every_part)
{
	static const uint32_t sides[] = {5, 8, 17, 48, 130};

	for (unsigned h = 0; h < BASE_ARRAY_LEN(sides); h++) {
		for (unsigned w = 0; w < BASE_ARRAY_LEN(sides); w++) {
			struct oracle_file file = test_kind(_i, sides[h], sides[w]);

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
			struct oracle_file file = test_kind(_i, 60, 70);

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
	struct oracle_file file = test_kind(_i, 400, 600);

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
	struct oracle_file file = test_kind(_i, 9, 16000);

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

	if (test_baseline[0]->kernels == &baseline_kernels_plain)
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
		const uint8_t *end[TEST_KERNELS];

		for (unsigned i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)philox_below(&seq, 256);
		for (unsigned k = 0; k < TEST_KERNELS; k++)
			end[k] = test_baseline[k]->kernels->packed(&packed, bytes, n, wanted,
								   &test_baseline[k]->mcu[0]);
		ck_assert_ptr_eq(end[0], end[1]);
		for (unsigned i = 0; i < n; i++) {
			const struct baseline_mcu *a = &test_baseline[0]->mcu[0];
			const struct baseline_mcu *b = &test_baseline[1]->mcu[0];

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
	struct oracle_file file = test_kind(_i, 40, 50);
	struct picture_box all = {0, 0, 40, 50};

	test_encode(&file);
	for (size_t size = 0; size < test_packed_size; size += size < 100 ? 1 : 9) {
		uint8_t *cut = malloc(size + 1);

		ck_assert_ptr_nonnull(cut);
		memcpy(cut, test_packed, size);
		ck_assert_int_eq(test_open(0, test_front), 0);
		if (baseline_packed_use(test_baseline[0], cut, size) == 0)
			ck_assert_int_eq(test_part(0, &all, false), BASELINE_E_DAMAGED);
		free(cut);
	}
}
END_TEST

START_TEST(each_byte_changed)
{
	struct oracle_file file = test_kind(_i, 40, 50);
	struct picture_box all = {0, 0, 40, 50};
	unsigned refused = 0, late = 0, restored = 0;
	uint8_t *file_again;
	size_t size;

	test_encode(&file);
	for (size_t at = 0; at < test_packed_size; at += at < 200 ? 1 : 7) {
		test_packed[at] ^= (uint8_t)(0x11 << at % 4);
		for (unsigned k = 0; k < TEST_KERNELS; k++) {
			if (test_use(k) != 0) {
				refused++;
				continue;
			}
			late += test_part(k, &all, false) != 0;
			if (test_use(k) == 0 &&
			    baseline_restore(test_baseline[k], &file_again, &size) == 0) {
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
	struct oracle_file file = test_kind(_i, 40, 50);
	uint8_t *packed;
	size_t size;

	test_encode(&file);
	for (size_t cut = test_front; cut < test_size; cut += 7) {
		ck_assert_int_eq(test_open(0, cut), 0);
		ck_assert_int_ne(baseline_pack(test_baseline[0], &packed, &size), 0);
	}
}
END_TEST

int main(void)
{
	const int kinds = TEST_KINDS;
	Suite *suite = suite_create("baseline_packed");
	TCase *tcase = tcase_create("baseline_packed");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 600);
	tcase_add_checked_fixture(tcase, test_setup, test_teardown);
	tcase_add_loop_test(tcase, every_part, 0, kinds);
	tcase_add_loop_test(tcase, every_quality, 0, kinds);
	tcase_add_loop_test(tcase, many_shapes, 0, kinds - 1); /* grey has fewer */
	tcase_add_loop_test(tcase, wide_rows, 2, 3);
	tcase_add_loop_test(tcase, kernels, 0, 4);
	tcase_add_loop_test(tcase, cut_short, 0, kinds);
	tcase_add_loop_test(tcase, each_byte_changed, 0, kinds);
	tcase_add_loop_test(tcase, damaged_file, 0, kinds);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
