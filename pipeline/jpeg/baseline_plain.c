/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for any machine, and the meaning of all others.
 *
 * The inverse DCT is libjpeg's slow integer one (jidctint.c), in the form that its SIMD versions
 * have. Those keep 16 bits between the passes and saturate, the portable one keeps 32 and wraps
 * around at the end: they agree on anything an encoder makes from a picture, and differ on numbers
 * made up. Here such numbers are found and refused, so that it does not matter which version this
 * machine's libjpeg-turbo has.
 *
 * Upsampling is libjpeg's "fancy" one, a triangle filter with alternating rounding. At the ends of
 * a row libjpeg has special cases; they are what the filter gives where the outermost sample is
 * repeated. Conversion of colours rounds as jdcolor.c does.
 */

#include "pipeline/jpeg/baseline_inner.h"

#define PLAIN_DCT_BITS 13 /* of the constants' fractions */
#define PLAIN_MOST 8191   /* what sums of two stay within 16 bits for, and sums of products in 32 */
#define PLAIN_OUT 512

const uint8_t baseline_natural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* ---- bytes ---- */

static size_t plain_unstuff(const uint8_t **at, const uint8_t *stop, uint8_t *to, size_t room)
{
	const uint8_t *from = *at;
	size_t n = 0;

	while (n < room && from < stop) {
		if (from[0] == 0xff) {
			if (stop - from < 2 || from[1] != 0)
				break;
			from++;
			to[n++] = 0xff;
			from++;
			continue;
		}
		to[n++] = *from++;
	}
	*at = from;
	return n;
}

static const uint8_t *plain_find(const uint8_t *at, const uint8_t *stop)
{
	while (at < stop && (at[0] != 0xff || (stop - at >= 2 && at[1] == 0)))
		at += at[0] == 0xff ? 2 : 1;
	return at;
}

/* ---- the inverse DCT ---- */

/* Eight numbers, step apart, in place; descaled by shift bits. */
static void plain_dct(int32_t *v, unsigned step, unsigned shift)
{
	const int32_t half = 1 << (shift - 1);
	int32_t a0 = v[0], a1 = v[step], a2 = v[2 * step], a3 = v[3 * step];
	int32_t a4 = v[4 * step], a5 = v[5 * step], a6 = v[6 * step], a7 = v[7 * step];
	int32_t t0 = (a0 + a4) * (1 << PLAIN_DCT_BITS) + half;
	int32_t t1 = (a0 - a4) * (1 << PLAIN_DCT_BITS) + half;
	int32_t t2 = a2 * 4433 + a6 * (4433 - 15137);
	int32_t t3 = a2 * (4433 + 6270) + a6 * 4433;
	int32_t z3 = (a7 + a3) * (9633 - 16069) + (a5 + a1) * 9633;
	int32_t z4 = (a7 + a3) * 9633 + (a5 + a1) * (9633 - 3196);
	int32_t o0 = a7 * (2446 - 7373) - a1 * 7373 + z3;
	int32_t o1 = a5 * (16819 - 20995) - a3 * 20995 + z4;
	int32_t o2 = a3 * (25172 - 20995) - a5 * 20995 + z3;
	int32_t o3 = a1 * (12299 - 7373) - a7 * 7373 + z4;

	v[0] = (t0 + t3 + o3) >> shift;
	v[7 * step] = (t0 + t3 - o3) >> shift;
	v[step] = (t1 + t2 + o2) >> shift;
	v[6 * step] = (t1 + t2 - o2) >> shift;
	v[2 * step] = (t1 - t2 + o1) >> shift;
	v[5 * step] = (t1 - t2 - o1) >> shift;
	v[3 * step] = (t0 - t3 + o0) >> shift;
	v[4 * step] = (t0 - t3 - o0) >> shift;
}

static bool plain_is_within(const int32_t *v, int32_t most)
{
	int32_t far = 0;

	for (unsigned i = 0; i < 64; i++)
		far |= v[i] > most || v[i] < -most - 1;
	return !far;
}

static int plain_block(const int16_t *zigzag, const uint16_t *quant, uint8_t *to, size_t stride)
{
	int32_t v[64];

	for (unsigned i = 0; i < 64; i++) {
		unsigned at = baseline_natural[i];

		v[at] = zigzag[i] * (int32_t)quant[at];
	}
	if (!plain_is_within(v, PLAIN_MOST))
		return 1;
	for (unsigned i = 0; i < 8; i++)
		plain_dct(v + i, 8, PLAIN_DCT_BITS - 2);
	if (!plain_is_within(v, PLAIN_MOST))
		return 1;
	for (unsigned i = 0; i < 8; i++)
		plain_dct(v + 8 * i, 1, PLAIN_DCT_BITS + 5);
	if (!plain_is_within(v, PLAIN_OUT - 1))
		return 1;
	for (unsigned i = 0; i < 64; i++)
		to[i / 8 * stride + i % 8] = (uint8_t)(BASE_MAX(BASE_MIN(v[i], 127), -128) + 128);
	return 0;
}

static int plain_idct(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
		      uint8_t *to, size_t stride)
{
	(void)end; /* coefficients from there on are zeros */
	return plain_block(a, quant, to, stride) | plain_block(b, quant, to + 8, stride);
}

/* ---- colour ---- */

static uint8_t plain_clip(int32_t value)
{
	return (uint8_t)BASE_MAX(BASE_MIN(value, 255), 0);
}

static void plain_pixel(int32_t y, int32_t cb, int32_t cr, uint8_t *const to[3], size_t x)
{
	cb -= 128;
	cr -= 128;
	to[0][x] = plain_clip(y + ((91881 * cr + 32768) >> 16));
	to[1][x] = plain_clip(y + ((-22554 * cb - 46802 * cr + 32768) >> 16));
	to[2][x] = plain_clip(y + ((116130 * cb + 32768) >> 16));
}

static void plain_h2v2(const uint8_t *y, const uint8_t *const near[2], const uint8_t *const far[2],
		       uint8_t *const to[3], size_t count)
{
	for (ptrdiff_t x = 0; x < (ptrdiff_t)count; x++) {
		int32_t even[2], odd[2];

		for (unsigned c = 0; c < 2; c++) {
			int32_t last = near[c][x - 1] * 3 + far[c][x - 1];
			int32_t this = near[c][x] * 3 + far[c][x];
			int32_t next = near[c][x + 1] * 3 + far[c][x + 1];

			even[c] = (this * 3 + last + 8) >> 4;
			odd[c] = (this * 3 + next + 7) >> 4;
		}
		plain_pixel(y[2 * x], even[0], even[1], to, 2 * (size_t)x);
		plain_pixel(y[2 * x + 1], odd[0], odd[1], to, 2 * (size_t)x + 1);
	}
}

static void plain_h2v1(const uint8_t *y, const uint8_t *const near[2], uint8_t *const to[3],
		       size_t count)
{
	for (ptrdiff_t x = 0; x < (ptrdiff_t)count; x++) {
		int32_t even[2], odd[2];

		for (unsigned c = 0; c < 2; c++) {
			even[c] = (near[c][x] * 3 + near[c][x - 1] + 1) >> 2;
			odd[c] = (near[c][x] * 3 + near[c][x + 1] + 2) >> 2;
		}
		plain_pixel(y[2 * x], even[0], even[1], to, 2 * (size_t)x);
		plain_pixel(y[2 * x + 1], odd[0], odd[1], to, 2 * (size_t)x + 1);
	}
}

static void plain_h1v1(const uint8_t *y, const uint8_t *const near[2], uint8_t *const to[3],
		       size_t count)
{
	for (size_t x = 0; x < count; x++)
		plain_pixel(y[x], near[0][x], near[1][x], to, x);
}

const struct baseline_kernels baseline_kernels_plain = {
    .unstuff = plain_unstuff,
    .find = plain_find,
    .mcu = baseline_entropy_mcu,
    .skip = baseline_entropy_skip,
    .idct = plain_idct,
    .idct4 = baseline_idct4_plain,
    .idct2 = baseline_idct2_plain,
    .h2v2 = plain_h2v2,
    .h2v1 = plain_h2v1,
    .h1v1 = plain_h1v1,
};
