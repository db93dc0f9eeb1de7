/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What colour ops do to a row of pixels, in as many makes as there are kinds of machines. All give
 * the same red, green and blue; the fourth byte is whatever comes out. colour_plain is the
 * reference. */

#include "base/base.h"

struct colour_kernels {
	/* Pillow's blend: ground + factor * (pixel - ground) in float32, clipped, cut off. The ground
	 * is one value, the pixel's own luma, or another row. to may be pixel or ground. */
	void (*blend_flat)(uint8_t *pixel, uint32_t width, uint8_t ground, float factor);
	void (*blend_luma)(uint8_t *pixel, uint32_t width, float factor);
	void (*blend_row)(const uint8_t *ground, const uint8_t *pixel, uint32_t width, float factor,
			  uint8_t *to);
	/* Red, green and blue become the luma. */
	void (*gray)(uint8_t *pixel, uint32_t width);
	uint64_t (*luma_sum)(const uint8_t *pixel, uint32_t width);
	/* To HSV, the hue moved by turn / 256 of a circle, and back. */
	void (*turn)(uint8_t *pixel, uint32_t width, uint8_t turn);
	/* Values from threshold (0 .. 256) on are inverted, then only mask's bits are kept. */
	void (*invert)(uint8_t *pixel, uint32_t width, unsigned threshold, uint8_t mask);
	/* Pillow's SMOOTH of pixels that have neighbours on all sides. */
	void (*smooth)(const uint8_t *above, const uint8_t *pixel, const uint8_t *below,
		       uint32_t width, uint8_t *to);
	/* Lowers least and raises most to the values of each channel. */
	void (*extremes)(const uint8_t *pixel, uint32_t width, uint8_t least[4], uint8_t most[4]);
};

extern const struct colour_kernels colour_plain;
/* NULL where the machine lacks AVX2. */
const struct colour_kernels *colour_avx2(void);
