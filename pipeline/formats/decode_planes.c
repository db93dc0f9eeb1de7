/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bands: what libraries decode, pixels of four bytes, as the planes that the fused engine reads.
 *
 * A band has few rows, so that its pixels are still in the first cache when they are taken apart,
 * and its planes when they are resized. Each row has 64 bytes before and behind it that belong to
 * the buffer: kernels read whole registers past a row's ends.
 */

#include "pipeline/formats/decode_planes.h"

#define DECODE_PLANES_PAD 64

void decode_planes_fini(struct decode_planes *planes)
{
	picture_buffer_fini(&planes->buffer);
}

void decode_planes_trim(struct decode_planes *planes)
{
	picture_buffer_trim(&planes->buffer);
}

void decode_planes_plain(const uint8_t *from, uint32_t width, uint8_t *red, uint8_t *green,
			 uint8_t *blue)
{
	for (uint32_t x = 0; x < width; x++, from += 4) {
		red[x] = from[0];
		green[x] = from[1];
		blue[x] = from[2];
	}
}

decode_planes_fn *decode_planes_best(void)
{
	decode_planes_fn *fast = decode_planes_avx2();

	if (!fast)
		fast = decode_planes_neon();
	return fast ? fast : decode_planes_plain;
}

int decode_planes_fill(struct decode_planes *planes, const struct picture *picture,
		       struct decode_band *ret)
{
	size_t stride =
	    base_align_up((size_t)picture->width, DECODE_PLANES_PAD) + DECODE_PLANES_PAD;
	size_t plane = stride * DECODE_PLANES_ROWS;
	decode_planes_fn *split = decode_planes_best();
	uint8_t *to = picture_bytes(&planes->buffer, 3 * plane + 2 * DECODE_PLANES_PAD);

	if (!to)
		return PIPELINE_FAIL_MEMORY;
	to += DECODE_PLANES_PAD;
	ret->rows = BASE_MIN(picture->height, DECODE_PLANES_ROWS);
	ret->stride = stride;
	for (unsigned c = 0; c < 3; c++)
		ret->plane[c] = to + c * plane;
	for (uint32_t y = 0; y < ret->rows; y++, to += stride)
		split(picture_row(picture, y), picture->width, to, to + plane, to + 2 * plane);
	return 0;
}
