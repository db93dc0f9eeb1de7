/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pixels to planes for AArch64 machines, whose loads take them apart: 16 pixels a step, the last
 * step over pixels that the step before took, too.
 */

#include "pipeline/formats/decode_planes.h"

#ifdef __aarch64__

#include <arm_neon.h>

#define PLANES_STEP 16

static void decode_planes_step(const uint8_t *from, uint8_t *red, uint8_t *green, uint8_t *blue)
{
	uint8x16x4_t pixels = vld4q_u8(from);

	vst1q_u8(red, pixels.val[0]);
	vst1q_u8(green, pixels.val[1]);
	vst1q_u8(blue, pixels.val[2]);
}

static void decode_planes_wide(const uint8_t *from, uint32_t width, uint8_t *red, uint8_t *green,
			       uint8_t *blue)
{
	uint32_t x = 0;

	if (width < PLANES_STEP) {
		decode_planes_plain(from, width, red, green, blue);
		return;
	}
	for (; x + PLANES_STEP <= width; x += PLANES_STEP)
		decode_planes_step(from + (size_t)x * 4, red + x, green + x, blue + x);
	x = width - PLANES_STEP;
	decode_planes_step(from + (size_t)x * 4, red + x, green + x, blue + x);
}

decode_planes_fn *decode_planes_neon(void)
{
	return decode_planes_wide;
}

#else

decode_planes_fn *decode_planes_neon(void)
{
	return NULL;
}

#endif
