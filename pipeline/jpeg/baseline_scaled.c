/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks to fewer samples: the picture with its sides halved once, twice or three times.
 *
 * The arithmetic is libjpeg's for 4 x 4, 2 x 2 and 1 x 1 samples of a block (jidctred.c). Of a block's
 * eight rows and columns of coefficients the first one leaves out the fifth, the second one the
 * third, fifth and seventh; so nearly all of a block must be decoded still. Only a single sample
 * needs no more than the first coefficient, and the others are read over. Chroma with half the rows and columns gets
 * twice the samples that luma gets, up to all eight: it never has to be smoothed.
 *
 * As with the whole inverse DCT (baseline_plain.c) numbers so large that libjpeg's own versions
 * differ on them are found and refused.
 */

#include "pipeline/jpeg/baseline.h"
#include "pipeline/jpeg/baseline_inner.h"

#define SCALED_BITS 13   /* of the constants' fractions */
#define SCALED_MOST 8191 /* as in baseline_plain.c */
#define SCALED_OUT 512

static const int16_t scaled_zeros[BASELINE_BLOCK] __attribute__((aligned(32)));

/* ---- the inverse DCTs ---- */

static uint8_t scaled_clip(int32_t value)
{
	return (uint8_t)(BASE_MAX(BASE_MIN(value, 127), -128) + 128);
}

/* Of n numbers, step apart. */
static bool scaled_is_within(const int32_t *v, unsigned n, unsigned step, int32_t most)
{
	int32_t far = 0;

	for (unsigned i = 0; i < n; i++)
		far |= v[i * step] > most || v[i * step] < -most - 1;
	return !far;
}

/* Coefficients times steps, row by row; those of rows and columns whose bit is not set in used are 0.
 */
static void scaled_natural_order(const int16_t *zigzag, const uint16_t *quant, unsigned used,
				 int32_t v[64])
{
	for (unsigned i = 0; i < 64; i++) {
		unsigned at = baseline_natural[i];
		bool is_used = used >> at % 8 & used >> at / 8 & 1;

		v[at] = is_used ? zigzag[i] * (int32_t)quant[at] : 0;
	}
}

/* Eight numbers, step apart, to the first four; descaled by shift bits. */
static void scaled_dct4(int32_t *v, unsigned step, unsigned shift)
{
	const int32_t half = 1 << (shift - 1);
	int32_t a1 = v[step], a2 = v[2 * step], a3 = v[3 * step];
	int32_t a5 = v[5 * step], a6 = v[6 * step], a7 = v[7 * step];
	int32_t even = v[0] * (1 << (SCALED_BITS + 1)) + half;
	int32_t t2 = a2 * 15137 - a6 * 6270;
	int32_t o0 = a1 * 8697 - a3 * 17799 + a5 * 11893 - a7 * 1730;
	int32_t o2 = a1 * 20995 + a3 * 7373 - a5 * 4926 - a7 * 4176;

	v[0] = (even + t2 + o2) >> shift;
	v[step] = (even - t2 + o0) >> shift;
	v[2 * step] = (even - t2 - o0) >> shift;
	v[3 * step] = (even + t2 - o2) >> shift;
}

/* The same to the first two. */
static void scaled_dct2(int32_t *v, unsigned step, unsigned shift)
{
	const int32_t half = 1 << (shift - 1);
	int32_t even = v[0] * (1 << (SCALED_BITS + 2)) + half;
	int32_t odd =
	    v[step] * 29692 - v[3 * step] * 10426 + v[5 * step] * 6967 - v[7 * step] * 5906;

	v[0] = (even + odd) >> shift;
	v[step] = (even - odd) >> shift;
}

/* side x side samples of v, row by row. Returns not 0 for numbers too large. */
static int scaled_store(const int32_t v[64], unsigned side, uint8_t *to, size_t stride)
{
	for (unsigned y = 0; y < side; y++) {
		if (!scaled_is_within(v + y * 8, side, 1, SCALED_OUT - 1))
			return 1;
		for (unsigned x = 0; x < side; x++)
			to[y * stride + x] = scaled_clip(v[y * 8 + x]);
	}
	return 0;
}

static int scaled_block4(const int16_t *zigzag, const uint16_t *quant, uint8_t *to, size_t stride)
{
	int32_t v[64];

	scaled_natural_order(zigzag, quant, 0xef, v);
	if (!scaled_is_within(v, 64, 1, SCALED_MOST))
		return 1;
	for (unsigned i = 0; i < 8; i++)
		scaled_dct4(v + i, 8, SCALED_BITS - 1);
	if (!scaled_is_within(v, 32, 1, SCALED_MOST))
		return 1;
	for (unsigned i = 0; i < 4; i++)
		scaled_dct4(v + 8 * i, 1, SCALED_BITS + 6);
	return scaled_store(v, 4, to, stride);
}

static int scaled_block2(const int16_t *zigzag, const uint16_t *quant, uint8_t *to, size_t stride)
{
	int32_t v[64];

	scaled_natural_order(zigzag, quant, 0xab, v);
	if (!scaled_is_within(v, 64, 1, SCALED_MOST))
		return 1;
	for (unsigned i = 0; i < 8; i++)
		scaled_dct2(v + i, 8, SCALED_BITS);
	if (!scaled_is_within(v, 16, 1, SCALED_MOST))
		return 1;
	for (unsigned i = 0; i < 2; i++)
		scaled_dct2(v + 8 * i, 1, SCALED_BITS + 7);
	return scaled_store(v, 2, to, stride);
}

int baseline_idct4_plain(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
			 uint8_t *to, size_t stride)
{
	(void)end; /* coefficients from there on are zeros */
	return scaled_block4(a, quant, to, stride) | scaled_block4(b, quant, to + 4, stride);
}

int baseline_idct2_plain(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
			 uint8_t *to, size_t stride)
{
	(void)end;
	return scaled_block2(a, quant, to, stride) | scaled_block2(b, quant, to + 2, stride);
}

/* One sample, width times. */
static int scaled_block1(int16_t dc, uint16_t step, uint8_t *to, unsigned width)
{
	int32_t value = dc * (int32_t)step;
	int r = !scaled_is_within(&value, 1, 1, SCALED_MOST);

	value = (value + 4) >> 3;
	for (unsigned i = 0; i < width; i++)
		to[i] = scaled_clip(value);
	return r | !scaled_is_within(&value, 1, 1, SCALED_OUT - 1);
}

/* ---- MCUs ---- */

/* Blocks of both MCUs that stand side by side: across of each. */
struct scaled_row {
	const struct baseline *baseline;
	unsigned component, block; /* the first one's number in its MCU */
	uint8_t *to;
};

static int scaled_ones(const struct scaled_row *row)
{
	const struct baseline *baseline = row->baseline;
	const unsigned across = baseline->head.component[row->component].across;
	const unsigned width = baseline->plane[row->component].block_width;
	const uint16_t step = baseline->quant[row->component][0];
	int r = 0;

	for (unsigned i = 0; i < 2 * across; i++) {
		const int16_t *block = baseline->mcu[i / across].coef[row->block + i % across];

		r |= scaled_block1(block[0], step, row->to + i * width, width);
	}
	return r;
}

static int scaled_pair(const struct scaled_row *row, const struct baseline_mcu *mcu_a,
		       unsigned block_a, const struct baseline_mcu *mcu_b, unsigned block_b,
		       uint8_t *to)
{
	const struct baseline_kernels *kernels = row->baseline->kernels;
	const struct baseline_plane *plane = &row->baseline->plane[row->component];
	const unsigned end_a = mcu_a->end[block_a], end_b = mcu_b->end[block_b];
	const int16_t *a = end_a > 0 ? mcu_a->coef[block_a] : scaled_zeros;
	const int16_t *b = end_b > 0 ? mcu_b->coef[block_b] : scaled_zeros;
	const unsigned end = BASE_MAX(end_a, end_b);

	if (end == 0)
		return 0;
	return (plane->side == 8   ? kernels->idct
		: plane->side == 4 ? kernels->idct4
				   : kernels->idct2)(
	    a, b, end, row->baseline->quant[row->component], to, plane->stride);
}

static int scaled_pairs(const struct scaled_row *row)
{
	const struct baseline_mcu *a = &row->baseline->mcu[0], *b = &row->baseline->mcu[1];
	const unsigned block = row->block;

	if (row->baseline->head.component[row->component].across == 1)
		return scaled_pair(row, a, block, b, block, row->to);
	return scaled_pair(row, a, block, a, block + 1, row->to) |
	       scaled_pair(row, b, block, b, block + 1,
			   row->to + (size_t)2 * row->baseline->plane[row->component].side);
}

int baseline_scaled_samples(const struct baseline *baseline, uint32_t x)
{
	struct scaled_row row = {.baseline = baseline};
	int r = 0;

	for (; row.component < baseline->head.n_components; row.component++) {
		const struct baseline_component *component =
		    &baseline->head.component[row.component];
		const struct baseline_plane *plane = &baseline->plane[row.component];

		row.to = plane->rows + (size_t)x * component->across * plane->block_width;
		for (unsigned j = 0; j < component->down; j++) {
			r |= plane->side == 1 ? scaled_ones(&row) : scaled_pairs(&row);
			row.block += component->across;
			row.to += plane->side * plane->stride;
		}
	}
	return r == 0 ? 0 : BASELINE_E_DAMAGED;
}
