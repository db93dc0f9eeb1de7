/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the quick JPEG decoder by themselves: those of this machine against the plain ones. */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/jpeg/baseline_inner.h"
#include "tests/suite.h"

static const struct baseline_kernels *const kernel_plain = &baseline_kernels_plain;

/* NULL: there are only the plain ones. */
static const struct baseline_kernels *kernel_fast(void)
{
	const struct baseline_kernels *best = baseline_kernels_best();

	return best == &baseline_kernels_plain ? NULL : best;
}

/* ---- bytes ---- */

/* FF 00 and markers among others, more or fewer. */
static void kernel_scan(struct philox_seq *seq, uint8_t *data, size_t size, uint32_t one_in)
{
	for (size_t i = 0; i < size; i++) {
		uint32_t value = philox_u32(seq);

		data[i] = (uint8_t)value;
		if (data[i] == 0xff)
			data[i] = 0xfe;
		if (value >> 8 & 1 && one_in > 0 && philox_below(seq, one_in) == 0) {
			data[i] = 0xff;
			if (i + 1 < size)
				data[++i] = philox_below(seq, 100) == 0 ? 0xd9 : 0;
		}
	}
}

START_TEST(bytes)
{
	const struct baseline_kernels *fast = kernel_fast();
	static const uint32_t one_in[] = {0, 1, 3, 20, 200};
	uint8_t out[2][1200] = {{0}};
	struct philox_seq seq;

	if (!fast)
		return;
	philox_seq_init(&seq, 1, 0, 0);
	for (unsigned i = 0; i < 4000; i++) {
		size_t size = (size_t)philox_below(&seq, 1000), n[2];
		size_t room = (size_t)philox_below(&seq, 1100);
		uint8_t *data = malloc(size + 1);
		const uint8_t *at[2] = {data, data};

		kernel_scan(&seq, data, size, one_in[i % BASE_ARRAY_LEN(one_in)]);
		n[0] = kernel_plain->unstuff(&at[0], data + size, out[0], room);
		n[1] = fast->unstuff(&at[1], data + size, out[1], room);
		if (n[0] != n[1] || at[0] != at[1] || memcmp(out[0], out[1], n[0]) != 0 ||
		    n[0] > room)
			ck_abort_msg("%zu of %zu bytes, %zu", n[1], size, n[0]);
		if (kernel_plain->find(data, data + size) != fast->find(data, data + size))
			ck_abort_msg("another marker of %zu bytes", size);
		free(data);
	}
}
END_TEST

START_TEST(bytes_by_hand)
{
	static const uint8_t data[] = {1, 0xff, 0, 2, 0xff, 0, 0xff, 0, 3, 0xff, 0xd0, 4};
	static const uint8_t right[] = {1, 0xff, 2, 0xff, 0xff, 3};
	const uint8_t *at = data;
	uint8_t out[80];

	ck_assert_uint_eq(kernel_plain->unstuff(&at, data + sizeof(data), out, 80), 6);
	ck_assert_mem_eq(out, right, 6);
	ck_assert_ptr_eq(at, data + 9);
	ck_assert_ptr_eq(kernel_plain->find(data, data + sizeof(data)), data + 9);
	ck_assert_ptr_eq(kernel_plain->find(data, data + 10), data + 9);
	ck_assert_ptr_eq(kernel_plain->find(data, data + 9), data + 9);
	at = data;
	ck_assert_uint_eq(kernel_plain->unstuff(&at, data + sizeof(data), out, 2), 2);
	ck_assert_ptr_eq(at, data + 3);
	at = data;
	ck_assert_uint_eq(kernel_plain->unstuff(&at, data + 2, out, 80), 1);
	ck_assert_ptr_eq(at, data + 1);
}
END_TEST

/* ---- the inverse DCT ---- */

struct kernel_blocks {
	int16_t coef[2][BASELINE_BLOCK] __attribute__((aligned(32)));
	uint16_t quant[64] __attribute__((aligned(32)));
	unsigned end;
};

/* Those to fewer samples refuse the same numbers. */
static void kernel_assert_scaled(const struct kernel_blocks *blocks)
{
	uint8_t out[4][4 * 48];
	int r[4];

	for (unsigned i = 0; i < 4; i++) {
		const struct baseline_kernels *kernels = i / 2 ? kernel_fast() : kernel_plain;
		memset(out[i], 7, sizeof(out[i]));
		r[i] = (i % 2 ? kernels->idct2 : kernels->idct4)(
		    blocks->coef[0], blocks->coef[1], blocks->end, blocks->quant, out[i], 48);
		if (i < 2)
			continue;
		ck_assert_int_eq(r[i] != 0, r[i - 2] != 0);
		if (r[i] == 0)
			ck_assert_mem_eq(out[i], out[i - 2], sizeof(out[i]));
	}
}

static void kernel_assert_idct(const struct kernel_blocks *blocks)
{
	uint8_t out[2][8 * 48];
	int r[2];

	kernel_assert_scaled(blocks);
	memset(out, 7, sizeof(out));
	r[0] = kernel_plain->idct(blocks->coef[0], blocks->coef[1], blocks->end, blocks->quant,
				  out[0], 48);
	r[1] = kernel_fast()->idct(blocks->coef[0], blocks->coef[1], blocks->end, blocks->quant,
				   out[1], 48);
	if (r[0] != 0)
		return; /* the other must be libjpeg's, which the whole decoder's test looks at */
	ck_assert_int_eq(r[1], 0);
	ck_assert_mem_eq(out[0], out[1], sizeof(out[0]));
}

/* Random numbers up to most in count coefficients of the first end. */
static void kernel_fill(struct philox_seq *seq, struct kernel_blocks *blocks, unsigned end,
			unsigned count, uint32_t most, uint32_t step)
{
	memset(blocks->coef, 0, sizeof(blocks->coef));
	for (unsigned i = 0; i < 2 * count; i++)
		blocks->coef[i % 2][philox_below(seq, end)] =
		    (int16_t)((int32_t)philox_below(seq, 2 * most + 1) - (int32_t)most);
	for (unsigned i = 0; i < 64; i++)
		blocks->quant[i] = (uint16_t)(1 + philox_below(seq, step));
	blocks->end = end;
}

/* The number of coefficients, _i. */
START_TEST(idct)
{
	static const uint32_t most[] = {1, 3, 20, 100, 1023, 2047};
	struct kernel_blocks blocks;
	struct philox_seq seq;

	if (!kernel_fast())
		return;
	philox_seq_init(&seq, (uint64_t)_i, 0, 0);
	for (unsigned i = 0; i < 300; i++) {
		uint32_t step = i % 3 == 0 ? 1 : i % 3 == 1 ? 16 : 255;

		kernel_fill(&seq, &blocks, (unsigned)_i, (unsigned)_i * (i % 2 ? 2 : 1),
			    most[i % BASE_ARRAY_LEN(most)], step);
		kernel_assert_idct(&blocks);
		if (i % 5 == 0)
			memset(blocks.coef[i % 2], 0, sizeof(blocks.coef[0]));
		kernel_assert_idct(&blocks);
	}
}
END_TEST

/* Every single coefficient, in either block, of every power of two and beside. */
START_TEST(idct_single)
{
	struct kernel_blocks blocks;

	if (!kernel_fast())
		return;
	for (unsigned i = 0; i < 64; i++)
		blocks.quant[i] = 1;
	for (unsigned at = 0; at < 64; at++) {
		for (int value = -4096; value <= 4096; value += abs(value) < 40 ? 1 : 37) {
			memset(blocks.coef, 0, sizeof(blocks.coef));
			blocks.coef[value & 1][at] = (int16_t)value;
			for (blocks.end = at + 1; blocks.end <= 64; blocks.end += 13)
				kernel_assert_idct(&blocks);
		}
	}
}
END_TEST

/* What the plain transform means, by the formula: within one of the exact cosine sum. */
START_TEST(idct_is_a_dct)
{
	struct kernel_blocks blocks;
	uint8_t out[8 * 16];

	memset(&blocks, 0, sizeof(blocks));
	for (unsigned i = 0; i < 64; i++)
		blocks.quant[i] = 2;
	blocks.coef[0][0] = 100; /* 200 / 8 above 128 everywhere */
	blocks.coef[1][0] = -600;
	blocks.end = 1;
	ck_assert_int_eq(
	    kernel_plain->idct(blocks.coef[0], blocks.coef[1], 1, blocks.quant, out, 16), 0);
	for (unsigned i = 0; i < 128; i++)
		ck_assert_uint_eq(out[i], i % 16 < 8 ? 153 : 0);
	blocks.coef[0][1] = 50; /* the first cosine across: 100 / 8 * sqrt(2) * cos(...) */
	ck_assert_int_eq(
	    kernel_plain->idct(blocks.coef[0], blocks.coef[1], 2, blocks.quant, out, 16), 0);
	ck_assert_uint_eq(out[0], 170);
	ck_assert_uint_eq(out[7], 136);
	ck_assert_uint_eq(out[112], 170);
}
END_TEST

/* ---- colour ---- */

#define KERNEL_ROW 2560

struct kernel_rows {
	uint8_t in[5][KERNEL_ROW]; /* y, near, far */
	uint8_t out[2][3][KERNEL_ROW];
};

static void kernel_random_rows(struct philox_seq *seq, struct kernel_rows *rows)
{
	for (unsigned i = 0; i < 5; i++) {
		for (unsigned x = 0; x < KERNEL_ROW; x++) {
			uint32_t value = philox_u32(seq);

			rows->in[i][x] = (uint8_t)(value & 0x700 ? value : value & 0x80 ? 255 : 0);
		}
	}
}

static void kernel_assert_rows(const struct kernel_rows *rows, size_t pixels)
{
	for (unsigned c = 0; c < 3; c++)
		ck_assert_mem_eq(rows->out[0][c], rows->out[1][c], pixels);
}

/* _i: which makes are tried against the plain ones. */
START_TEST(smooth)
{
	const struct baseline_kernels *const makes[] = {
	    baseline_kernels_avx2(), baseline_kernels_avx512(), baseline_kernels_neon()};
	const struct baseline_kernels *kernels[2] = {kernel_plain, makes[_i]};
	static struct kernel_rows rows;
	struct philox_seq seq;

	if (!kernels[1])
		return;
	philox_seq_init(&seq, 3, 0, 0);
	/* wide ones, too: kernels may take rows piece by piece */
	for (size_t count = 1; count < 1200; count += count < 150 ? 1 : 23) {
		const uint8_t *near[2] = {rows.in[1] + 64, rows.in[2] + 64};
		const uint8_t *far[2] = {rows.in[3] + 64, rows.in[4] + 64};

		kernel_random_rows(&seq, &rows);
		for (unsigned k = 0; k < 2; k++) {
			uint8_t *to[3] = {rows.out[k][0], rows.out[k][1], rows.out[k][2]};

			kernels[k]->h2v2(rows.in[0], near, far, to, count);
		}
		kernel_assert_rows(&rows, 2 * count);
		for (unsigned k = 0; k < 2; k++) {
			uint8_t *to[3] = {rows.out[k][0], rows.out[k][1], rows.out[k][2]};

			kernels[k]->h2v1(rows.in[0], near, to, count);
		}
		kernel_assert_rows(&rows, 2 * count);
	}
}
END_TEST

/* jdcolor.c's conversion, for every pair of chroma and with lumas from end to end. */
static void kernel_right(int y, int cb, int cr, uint8_t ret[3])
{
	int rgb[3] = {y + ((91881 * (cr - 128) + 32768) >> 16),
		      y + ((-22554 * (cb - 128) - 46802 * (cr - 128) + 32768) >> 16),
		      y + ((116130 * (cb - 128) + 32768) >> 16)};

	for (unsigned c = 0; c < 3; c++)
		ret[c] = (uint8_t)BASE_MAX(BASE_MIN(rgb[c], 255), 0);
}

START_TEST(colours)
{
	const struct baseline_kernels *kernels[2] = {kernel_plain, kernel_fast()};
	static struct kernel_rows rows;
	uint8_t right[3];

	for (unsigned k = 0; k < 2 && kernels[k]; k++) {
		for (int cb = 0; cb < 256; cb++) {
			const uint8_t *near[2] = {rows.in[1], rows.in[2]};
			uint8_t *to[3] = {rows.out[k][0], rows.out[k][1], rows.out[k][2]};

			for (unsigned x = 0; x < 256; x++) {
				rows.in[0][x] = (uint8_t)(x * 37 + (unsigned)cb * 11);
				rows.in[1][x] = (uint8_t)cb;
				rows.in[2][x] = (uint8_t)x;
			}
			kernels[k]->h1v1(rows.in[0], near, to, 256);
			for (int x = 0; x < 256; x++) {
				kernel_right(rows.in[0][x], cb, x, right);
				if (to[0][x] != right[0] || to[1][x] != right[1] ||
				    to[2][x] != right[2])
					ck_abort_msg("cb %d, cr %d", cb, x);
			}
		}
	}
}
END_TEST

/* ---- tables ---- */

/* A code of one length only, one that is too full, one that is all ones, one with no symbols. */
START_TEST(codes)
{
	struct baseline_tables *tables;
	uint8_t code[16 + 256] = {0};

	ck_assert_int_eq(baseline_tables_new(&tables), 0);
	ck_assert_ptr_null(baseline_tables_ac(tables, code));
	ck_assert_ptr_null(baseline_tables_dc(tables, code));
	code[0] = 2; /* 0 and 1: the second is all ones */
	ck_assert_ptr_null(baseline_tables_ac(tables, code));
	code[0] = 1;
	code[16] = 0;
	ck_assert_ptr_nonnull(baseline_tables_ac(tables, code));
	ck_assert_ptr_nonnull(baseline_tables_dc(tables, code));
	ck_assert_ptr_eq(baseline_tables_ac(tables, code), baseline_tables_ac(tables, code));
	code[2] = 4; /* 100, 101, 110, 111 */
	ck_assert_ptr_null(baseline_tables_ac(tables, code));
	code[2] = 3;
	ck_assert_ptr_nonnull(baseline_tables_ac(tables, code));
	code[17] = 12; /* no DC of 8 bit samples has so many bits */
	ck_assert_ptr_null(baseline_tables_dc(tables, code));
	code[17] = 11;
	ck_assert_ptr_nonnull(baseline_tables_dc(tables, code));
	baseline_tables_free(tables);
}
END_TEST

/* Groups by hand: codes 0 (an end), 10 (run 0, size 1), 110 (run 2, size 3), 1110 (sixteen zeros). */
START_TEST(groups)
{
	uint8_t code[16 + 256] = {1, 1, 1, 1};
	const struct baseline_ac *ac;
	struct baseline_tables *tables;
	unsigned index;

	code[16] = 0x00;
	code[17] = 0x01;
	code[18] = 0x23;
	code[19] = 0xf0;
	ck_assert_int_eq(baseline_tables_new(&tables), 0);
	ac = baseline_tables_ac(tables, code);
	ck_assert_ptr_nonnull(ac);
	index = 0x0; /* 0...: an end, and nothing behind it */
	ck_assert_int_eq(ac->step[index], 1 + 64 * 128);
	index = 0x2 << 9 | 0x1 << 8; /* 10 1, 0: 1, end */
	ck_assert_int_eq(ac->step[index], 4 + 64 * 129);
	ck_assert_int_eq(ac->last[index], 2 | 62 << 6 | 0 << 12);
	index = 0x2 << 9 | 0x6 << 5 | 0x2 << 2; /* 10 0, 110 010, 0 ...: -1, two zeros, -5, end */
	ck_assert_int_eq(ac->step[index], 10 + 64 * 132);
	ck_assert_int_eq(ac->value[index][0], -1);
	ck_assert_int_eq(ac->value[index][1], 0);
	ck_assert_int_eq(ac->value[index][3], -5);
	ck_assert_int_eq(ac->last[index], 6 | 60 << 6 | 3 << 12);
	index = 0xe << 7; /* 1110, 0 */
	ck_assert_int_eq(ac->step[index], 5 + 64 * 144);
	index = 0xf << 7; /* no code */
	ck_assert_int_eq(ac->step[index], 64 * BASELINE_AC_NONE);
	baseline_tables_free(tables);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, bytes);
	tcase_add_test(tcase, bytes_by_hand);
	tcase_add_loop_test(tcase, idct, 1, 65);
	tcase_add_test(tcase, idct_single);
	tcase_add_test(tcase, idct_is_a_dct);
	tcase_add_loop_test(tcase, smooth, 0, 3);
	tcase_add_test(tcase, colours);
	tcase_add_test(tcase, codes);
	tcase_add_test(tcase, groups);
}

int main(void)
{
	return suite_run("baseline_kernel", add);
}
