/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of pixels as Pillow 13.0.0 computes them: the reference for all other makes.
 *
 * blend is libImaging/Blend.c. Between factors 0 and 1 Pillow does not clip, since nothing can leave
 * the range then; so one form serves for all factors, 0 and 1 included.
 *
 * luma is Convert.c's L24: 16-bit fixed point, rounded.
 *
 * turn is Convert.c's rgb2hsv_row and hsv2rgb around torchvision's shift of the hue by whole steps.
 * The hue is computed in Pillow's mix of float and double, since one in 450 of the quotients falls
 * on or beside a step and its rounding decides. All else is whole numbers here, and the same as
 * Pillow's for all 2^24 colours (tests/pipeline/colour_test.c tries them): with x of 255 for a sector's
 * remainder, round(v * (1 - s * x)) is (65025 v - v s x + 32512) / 65025, for a product of odd
 * divisors is never half of a step.
 *
 * smooth is Filter.c's 3x3 kernel (1 1 1, 1 5 1, 1 1 1) / 13 in float, plus one half, cut off: a
 * thirteenth is never half, and the error of the sum is far below 1/26, so whole numbers do.
 */

#include "pipeline/ops/colour_kernels.h"

static inline uint8_t colour_blend(uint8_t ground, uint8_t value, float factor)
{
	float blended = (float)ground + factor * (float)(value - ground);

	if (blended <= 0)
		return 0;
	return blended >= 255 ? 255 : (uint8_t)blended;
}

static inline uint8_t colour_luma(const uint8_t *pixel)
{
	return (uint8_t)((pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000) >> 16);
}

static void colour_plain_blend_flat(uint8_t *pixel, uint32_t width, uint8_t ground, float factor)
{
	for (size_t i = 0; i < (size_t)width * 4; i++)
		pixel[i] = colour_blend(ground, pixel[i], factor);
}

static void colour_plain_blend_luma(uint8_t *pixel, uint32_t width, float factor)
{
	for (; width > 0; width--, pixel += 4) {
		uint8_t luma = colour_luma(pixel);

		for (unsigned c = 0; c < 3; c++)
			pixel[c] = colour_blend(luma, pixel[c], factor);
	}
}

static void colour_plain_blend_row(const uint8_t *ground, const uint8_t *pixel, uint32_t width,
				   float factor, uint8_t *to)
{
	for (size_t i = 0; i < (size_t)width * 4; i++)
		to[i] = colour_blend(ground[i], pixel[i], factor);
}

static void colour_plain_gray(uint8_t *pixel, uint32_t width)
{
	for (; width > 0; width--, pixel += 4)
		memset(pixel, colour_luma(pixel), 3);
}

static uint64_t colour_plain_luma_sum(const uint8_t *pixel, uint32_t width)
{
	uint64_t sum = 0;

	for (; width > 0; width--, pixel += 4)
		sum += colour_luma(pixel);
	return sum;
}

/* The hue as Pillow's whole number; most and least of red, green and blue differ. */
static inline unsigned colour_hue(const uint8_t *pixel, unsigned most, unsigned least)
{
	float range = (float)(most - least);
	float red = (float)(most - pixel[0]) / range;
	float green = (float)(most - pixel[1]) / range;
	float blue = (float)(most - pixel[2]) / range;
	double turned;
	float hue;

	if (pixel[0] == most)
		hue = blue - green;
	else if (pixel[1] == most)
		hue = (float)(2.0 + (double)red - (double)blue);
	else
		hue = (float)(4.0 + (double)green - (double)red);
	turned = (double)hue / 6.0 + 1.0;
	hue = (float)(turned >= 1 ? turned - 1 : turned);
	return (unsigned)((double)hue * 255.0);
}

static inline void colour_turn_one(uint8_t *pixel, uint8_t turn)
{
	/* which of value, middle, lowest is red, green and blue, by sector */
	static const uint8_t places[6][3] = {
	    {0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {2, 1, 0}, {1, 2, 0}, {0, 2, 1},
	};
	unsigned most = BASE_MAX(pixel[0], BASE_MAX(pixel[1], pixel[2]));
	unsigned least = BASE_MIN(pixel[0], BASE_MIN(pixel[1], pixel[2]));
	unsigned hue, strength, sector, rest;
	uint8_t parts[3];

	if (most == least)
		return;
	hue = ((colour_hue(pixel, most, least) + turn) & 255) * 6;
	strength = (most - least) * 255 / most;
	sector = hue / 255;
	rest = sector & 1 ? hue % 255 : 255 - hue % 255;
	parts[0] = (uint8_t)most;
	parts[1] = (uint8_t)((65025 * most - most * strength * rest + 32512) / 65025);
	parts[2] = (uint8_t)((most * (255 - strength) + 127) / 255);
	for (unsigned c = 0; c < 3; c++)
		pixel[c] = parts[places[sector % 6][c]];
}

static void colour_plain_turn(uint8_t *pixel, uint32_t width, uint8_t turn)
{
	for (; width > 0; width--, pixel += 4)
		colour_turn_one(pixel, turn);
}

static void colour_plain_invert(uint8_t *pixel, uint32_t width, unsigned threshold, uint8_t mask)
{
	for (size_t i = 0; i < (size_t)width * 4; i++)
		pixel[i] = (pixel[i] >= threshold ? 255 - pixel[i] : pixel[i]) & mask;
}

static void colour_plain_smooth(const uint8_t *above, const uint8_t *pixel, const uint8_t *below,
				uint32_t width, uint8_t *to)
{
	for (ptrdiff_t i = 0; i < (ptrdiff_t)width * 4; i++) {
		int sum = above[i - 4] + above[i] + above[i + 4] + below[i - 4] + below[i] +
			  below[i + 4] + pixel[i - 4] + 5 * pixel[i] + pixel[i + 4];

		to[i] = (uint8_t)((sum + 6) / 13);
	}
}

static void colour_plain_extremes(const uint8_t *pixel, uint32_t width, uint8_t least[4],
				  uint8_t most[4])
{
	for (; width > 0; width--, pixel += 4) {
		for (unsigned c = 0; c < 3; c++) {
			least[c] = BASE_MIN(least[c], pixel[c]);
			most[c] = BASE_MAX(most[c], pixel[c]);
		}
	}
}

const struct colour_kernels colour_plain = {
    .blend_flat = colour_plain_blend_flat,
    .blend_luma = colour_plain_blend_luma,
    .blend_row = colour_plain_blend_row,
    .gray = colour_plain_gray,
    .luma_sum = colour_plain_luma_sum,
    .turn = colour_plain_turn,
    .invert = colour_plain_invert,
    .smooth = colour_plain_smooth,
    .extremes = colour_plain_extremes,
};
