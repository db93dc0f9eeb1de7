/* SPDX-License-Identifier: Apache-2.0 */
/* Packed coefficients: every part of every kind of file has its pixels, with every set of kernels; the file
 * that is made of them again has, too; and hostile ones do no harm. */

#include <stdlib.h>
#include <string.h>
#include "pipeline/jpeg/baseline_packed.h"
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

/* Rows of more bytes than 16 bits can tell. */
START_TEST(wide_rows)
{
	struct oracle_file file = parts_file(_i, 9, 16000);

	file.quality = 100;
	file.noise = 255;
	test_encode(&file);
	ck_assert_uint_gt(test_packed[0], 0);
	test_parts(0, 4);
	test_restored();
}
END_TEST

/* ---- kernels ---- */

/* Eight numbers, bit by bit, to their places. */
static void test_group(const uint8_t *from, unsigned width, const uint8_t *order, int16_t *coef)
{
	for (unsigned i = 0; i < 8; i++) {
		int32_t number = 0;

		for (unsigned bit = 0; bit < width; bit++) {
			const unsigned at = i * width + bit;

			number |= (from[at / 8] >> at % 8 & 1) << bit;
		}
		if (width > 0 && number >> (width - 1) != 0)
			number -= 1 << width;
		coef[order[i]] = (int16_t)number;
	}
}

/* A block of a pair by the plain kernels. False: its numbers are so large that decoders differ. */
static bool test_block(const struct baseline_packed_pair *pair, unsigned side,
		       const uint16_t *quant, uint8_t to[8][16])
{
	int16_t coef[BASELINE_BLOCK] __attribute__((aligned(32))) = {0};
	const uint8_t *at = pair->at;

	for (unsigned g = 0; g < 8; g++) {
		const unsigned width = pair->widths >> 4 * g & 15;

		test_group(at + side * width, width, baseline_packed_order[g], coef);
		at += 2 * width;
	}
	coef[0] = baseline_packed_dc(pair, side);
	return baseline_kernels_plain.idct(coef, coef, 64, quant, to[0], 16) == 0;
}

/* A unit of such widths as there are, all else of it anything. */
static void test_unit(struct philox_seq *seq, const struct baseline_packed *packed, uint8_t *unit)
{
	static const uint8_t widths[] = {0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 9, 10, 12};
	const unsigned few = 1 + (unsigned)philox_below(seq, BASE_ARRAY_LEN(widths));
	uint8_t *head = unit + 1;

	for (unsigned i = 0; i < BASELINE_PACKED_MOST; i++)
		unit[i] = (uint8_t)philox_below(seq, 256);
	*unit &= (uint8_t)((1 << 2 * packed->n_pairs) - 1);
	for (unsigned p = 0; p < packed->n_pairs; p++) {
		const unsigned bytes = baseline_packed_bytes(*unit >> 2 * p & 3);
		const unsigned used = (unsigned)philox_below(seq, 2 * bytes + 1);
		uint8_t *at = head + packed->dc_bytes;

		for (unsigned g = 0; g < 2 * bytes; g++) {
			const unsigned width = g < used ? widths[philox_below(seq, few)] : 0;

			at[g / 2] = (uint8_t)(g % 2 ? at[g / 2] | width << 4 : width);
		}
		head = at + bytes;
	}
}

/* The samples of a pair are those of its blocks. Returns how many could be compared. */
static unsigned test_pair(const struct baseline *baseline, unsigned p,
			  const struct baseline_packed_pair *pair, uint8_t samples[2][8][8])
{
	unsigned compared = 0;

	for (unsigned i = 0; i < 2; i++) {
		const unsigned component = baseline->packed.place[p].component[i];
		uint8_t block[8][16];

		if (!test_block(pair, i, baseline->quant[component], block))
			continue;
		for (unsigned y = 0; y < 8; y++)
			ck_assert_mem_eq(samples[i][y], block[y], 8);
		compared++;
	}
	return compared;
}

/* Units of anything: the vector kernel's samples are the plain ones'. */
START_TEST(kernels)
{
	struct oracle_file file = parts_file(_i, 40, 50);
	struct baseline *baseline = parts_baseline[0];
	struct baseline_packed *packed = &baseline->packed;
	uint8_t unit[BASELINE_PACKED_MOST], samples[BASELINE_PAIRS][2][8][8];
	unsigned compared = 0;
	struct philox_seq seq;

	if (!baseline->kernels->packed_unit)
		return;
	philox_seq_init(&seq, (uint64_t)_i, 0, 0);
	test_encode(&file);
	ck_assert_int_eq(test_use(0), 0);
	for (unsigned p = 0; p < packed->n_pairs; p++)
		packed->target[p] =
		    (struct baseline_packed_target){{samples[p][0][0], samples[p][1][0]}, 8, 0};
	for (unsigned round = 0; round < 500; round++) {
		struct baseline_packed_cursor cursor;
		const uint8_t *end;

		packed->dc_bytes = 2 + round % 2;
		test_unit(&seq, packed, unit);
		end = baseline->kernels->packed_unit(packed, unit, 0, UINT32_MAX);
		cursor = baseline_packed_begin(unit, packed->n_pairs, packed->dc_bytes);
		for (unsigned p = 0; p < packed->n_pairs; p++) {
			struct baseline_packed_pair pair;

			baseline_packed_next(&cursor, &pair);
			compared += test_pair(baseline, p, &pair, samples[p]);
		}
		ck_assert_ptr_eq(cursor.at, end);
	}
	ck_assert_uint_gt(compared, 200);
}
END_TEST

/* The first so many steps of each of the file's tables. */
static void test_set_steps(size_t count, uint8_t step)
{
	unsigned tables = 0;

	for (size_t at = 2; at + 69 < test_front; at++) {
		if (memcmp(test_data + at, "\xff\xdb\0C", 4) != 0)
			continue;
		memset(test_data + at + 5, step, count);
		tables++;
	}
	ck_assert_uint_gt(tables, 0);
}

/* With steps so large no numbers stay small: decoders would differ. */
START_TEST(large_numbers)
{
	struct oracle_file file = parts_file(_i, 40, 50);
	uint8_t *packed;
	size_t size;

	test_encode(&file);
	test_set_steps(64, 255);
	ck_assert_int_eq(test_open(0, test_size), 0);
	ck_assert_int_eq(baseline_pack(parts_baseline[0], &packed, &size), BASELINE_E_OTHER);
}
END_TEST

/* Steps that let expect short DCs, of a file whose DCs are long all the same. */
START_TEST(longer_than_expected)
{
	struct oracle_file file = parts_file(_i, 40, 50);

	file.quality = 100;
	test_encode(&file);
	test_set_steps(1, 8); /* DC's */
	free(base_take_ptr(test_packed));
	ck_assert_int_eq(test_open(0, test_size), 0);
	ck_assert_int_eq(baseline_pack(parts_baseline[0], &test_packed, &test_packed_size), 0);
	ck_assert_uint_eq(little_16(test_packed + 2), 0);
	test_restored();
	file.quality = 50;
	test_encode(&file);
	ck_assert_uint_eq(little_16(test_packed + 2), 1);
	test_parts(0, 8);
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
	tcase_add_loop_test(tcase, longer_than_expected, 0, kinds);
	tcase_add_loop_test(tcase, wide_rows, 2, 3);
	tcase_add_loop_test(tcase, kernels, 0, kinds);
	tcase_add_loop_test(tcase, large_numbers, 0, kinds);
	tcase_add_loop_test(tcase, cut_short, 0, kinds);
	tcase_add_loop_test(tcase, each_byte_changed, 0, kinds);
	tcase_add_loop_test(tcase, damaged_file, 0, kinds);
}

int main(void)
{
	return parts_main("baseline_packed", add_tests);
}
