/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over planes for AArch64 machines, all of which have NEON.
 *
 * Along a row, tables are those of AVX2 (PLANE_BLOCKS, plane_table.c), half a block of four outputs
 * at a time: a table lookup brings the inputs of a pair of taps beside each other, as 16-bit
 * numbers, which are multiplied by the weights' high and low parts; what belongs to one output is
 * added at the end. Along a column a pair's rows are taken apart as they are loaded, and weights
 * are whole 32-bit numbers, as wider inputs cost less than a second multiplication.
 *
 * Sums have 31 bits at most, as in plane_plain.c. 22 bits are shifted out in two steps, of which
 * the first stops at 0 and the second at 255.
 */

#include "pipeline/engine/plane.h"

#ifdef __aarch64__

#include <arm_neon.h>

#define PLANE_NEON_HALF (1 << (FILTER_BITS - 1))
#define PLANE_NEON_FIRST 16 /* bits shifted out in the first step */
#define PLANE_NEON_IN static inline __attribute__((always_inline))

PLANE_NEON_IN uint8x8_t plane_neon_clip(int32x4_t low, int32x4_t high)
{
	uint16x8_t both = vcombine_u16(vqshrun_n_s32(low, PLANE_NEON_FIRST),
				       vqshrun_n_s32(high, PLANE_NEON_FIRST));

	return vqshrn_n_u16(both, FILTER_BITS - PLANE_NEON_FIRST);
}

/* ---- along rows ---- */

struct plane_neon_sum { /* two numbers an output: outputs 0 and 1, outputs 2 and 3 */
	int32x4_t high[2], low[2];
};

PLANE_NEON_IN struct plane_neon_sum plane_neon_zero(void)
{
	const int32x4_t zero = vdupq_n_s32(0);

	return (struct plane_neon_sum){{zero, zero}, {zero, zero}};
}

PLANE_NEON_IN void plane_neon_add(struct plane_neon_sum *sum, const uint8_t *from,
				  uint8x16_t shuffle, int16x8_t high, int16x8_t low)
{
	int16x8_t inputs = vreinterpretq_s16_u8(vqtbl1q_u8(vld1q_u8(from), shuffle));

	sum->high[0] = vmlal_s16(sum->high[0], vget_low_s16(inputs), vget_low_s16(high));
	sum->high[1] = vmlal_high_s16(sum->high[1], inputs, high);
	sum->low[0] = vmlal_s16(sum->low[0], vget_low_s16(inputs), vget_low_s16(low));
	sum->low[1] = vmlal_high_s16(sum->low[1], inputs, low);
}

PLANE_NEON_IN int32x4_t plane_neon_join(const struct plane_neon_sum *sum)
{
	int32x4_t high = vpaddq_s32(sum->high[0], sum->high[1]);
	int32x4_t low = vpaddq_s32(sum->low[0], sum->low[1]);

	low = vaddq_s32(low, vdupq_n_s32(PLANE_NEON_HALF));
	return vaddq_s32(vshlq_n_s32(high, PLANE_LOW_BITS), low);
}

/* Four outputs of each of two rows, the sums. */
PLANE_NEON_IN void plane_neon_half(const int16_t *split, const uint8_t *shuffles, uint32_t pairs,
				   const uint8_t *a, const uint8_t *b, int32x4_t *ret_a,
				   int32x4_t *ret_b)
{
	struct plane_neon_sum of_a = plane_neon_zero(), of_b = of_a;
	const uint8x16_t shuffle = vld1q_u8(shuffles);

	for (uint32_t i = 0; i < pairs; i++, split += 32, a += 2, b += 2) {
		int16x8_t high = vld1q_s16(split), low = vld1q_s16(split + 16);

		plane_neon_add(&of_a, a, shuffle, high, low);
		plane_neon_add(&of_b, b, shuffle, high, low);
	}
	*ret_a = plane_neon_join(&of_a);
	*ret_b = plane_neon_join(&of_b);
}

static void plane_neon_blocks(const struct plane_table *table, const uint8_t *a, const uint8_t *b,
			      uint8_t *to)
{
	const int16_t *split = table->split;
	const uint8_t *shuffle = table->shuffle, *end = to + (size_t)table->blocks * 16;
	const uint32_t *at = table->at, pairs = table->pairs;

	for (; to != end; to += 16, split += (size_t)pairs * 32, shuffle += 32, at += 2) {
		int32x4_t of_a[2], of_b[2];

		plane_neon_half(split, shuffle, pairs, a + at[0], b + at[0], &of_a[0], &of_b[0]);
		plane_neon_half(split + 8, shuffle + 16, pairs, a + at[1], b + at[1], &of_a[1],
				&of_b[1]);
		vst2_u8(to, ((uint8x8x2_t){{plane_neon_clip(of_a[0], of_a[1]),
					    plane_neon_clip(of_b[0], of_b[1])}}));
	}
}

/* Pictures that shrink a lot: eight taps of one output at a time. */
static uint8_t plane_neon_output(const struct plane_table *table, const uint8_t *row, uint32_t x)
{
	const int32_t *weight = table->weight + (size_t)x * table->taps;
	const uint8_t *from = row + table->first[x];
	int32x4_t low = vdupq_n_s32(0), high = low;
	int32_t value;

	for (uint32_t t = 0; t < table->count[x]; t += 8) {
		int16x8_t inputs = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from + t)));

		low = vmlaq_s32(low, vmovl_s16(vget_low_s16(inputs)), vld1q_s32(weight + t));
		high = vmlaq_s32(high, vmovl_high_s16(inputs), vld1q_s32(weight + t + 4));
	}
	value = (vaddvq_s32(vaddq_s32(low, high)) + PLANE_NEON_HALF) >> FILTER_BITS;
	value = value < 0 ? 0 : value;
	return (uint8_t)(value > 255 ? 255 : value);
}

static void plane_neon_across(const struct plane_table *table, const uint8_t *a, const uint8_t *b,
			      uint8_t *to)
{
	if (table->form == PLANE_BLOCKS) {
		plane_neon_blocks(table, a, b, to);
		return;
	}
	for (uint32_t x = 0; x < table->want.count; x++) {
		to[2 * (size_t)x] = plane_neon_output(table, a, x);
		to[2 * (size_t)x + 1] = plane_neon_output(table, b, x);
	}
}

static void plane_neon_zip(const uint8_t *a, const uint8_t *b, uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x += 16)
		vst2q_u8(to + 2 * (size_t)x, ((uint8x16x2_t){{vld1q_u8(a + x), vld1q_u8(b + x)}}));
}

static void plane_neon_unzip(const uint8_t *from, uint32_t n, uint8_t *a, uint8_t *b)
{
	for (uint32_t x = 0; x < n; x += 16) {
		uint8x16x2_t both = vld2q_u8(from + 2 * (size_t)x);

		vst1q_u8(a + x, both.val[0]);
		vst1q_u8(b + x, both.val[1]);
	}
}

/* ---- along columns ---- */

/* A weight whole again. */
PLANE_NEON_IN int32_t plane_neon_weight(const int16_t *high)
{
	return (int32_t)high[0] * (1 << PLANE_LOW_BITS) + high[2];
}

/* 16 values of one row. */
PLANE_NEON_IN void plane_neon_add_row(int32x4_t sum[4], uint8x16_t bytes, int32_t weight)
{
	int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(bytes)));
	int16x8_t high = vreinterpretq_s16_u16(vmovl_high_u8(bytes));

	sum[0] = vmlaq_n_s32(sum[0], vmovl_s16(vget_low_s16(low)), weight);
	sum[1] = vmlaq_n_s32(sum[1], vmovl_high_s16(low), weight);
	sum[2] = vmlaq_n_s32(sum[2], vmovl_s16(vget_low_s16(high)), weight);
	sum[3] = vmlaq_n_s32(sum[3], vmovl_high_s16(high), weight);
}

static void plane_neon_down(const uint8_t *const rows[], uint32_t pairs, const int16_t *split,
			    uint32_t n, uint8_t *to)
{
	const int32x4_t half = vdupq_n_s32(PLANE_NEON_HALF);

	for (uint32_t x = 0; x < n; x += 16) {
		int32x4_t sum[4] = {half, half, half, half};

		for (uint32_t i = 0; i < pairs; i++) {
			uint8x16x2_t two = vld2q_u8(rows[i] + 2 * (size_t)x);
			const int16_t *weights = split + 4 * (size_t)i;

			plane_neon_add_row(sum, two.val[0], plane_neon_weight(weights));
			plane_neon_add_row(sum, two.val[1], plane_neon_weight(weights + 1));
		}
		vst1q_u8(to + x, vcombine_u8(plane_neon_clip(sum[0], sum[1]),
					     plane_neon_clip(sum[2], sum[3])));
	}
}

static void plane_neon_mirror(const uint8_t *from, uint32_t n, uint8_t *to)
{
	uint32_t x = 0;

	for (; x + 16 <= n; x += 16) {
		uint8x16_t halves = vrev64q_u8(vld1q_u8(from + n - 16 - x));

		vst1q_u8(to + x, vextq_u8(halves, halves, 8));
	}
	for (; x < n; x++)
		to[x] = from[n - 1 - x];
}

static const struct plane_kernels plane_neon_kernels = {
    .across_form = PLANE_BLOCKS,
    .across = plane_neon_across,
    .zip = plane_neon_zip,
    .unzip = plane_neon_unzip,
    .down = plane_neon_down,
    .mirror = plane_neon_mirror,
};

const struct plane_kernels *plane_neon(void)
{
	return &plane_neon_kernels;
}

#else

const struct plane_kernels *plane_neon(void)
{
	return NULL;
}

#endif
