/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Planes of brightness and colour as RGB: what nearly all videos are made of. */

#include "base/base.h"

struct video_yuv {     /* how */
	bool is_full;  /* brightness from 0 to 255, not from 16 to 235 */
	unsigned bits; /* of a sample: 8 to 12; more than 8: in two bytes */
	unsigned right,
	    below; /* 1: half as many samples of colour in a row; half as many rows of them */
	int32_t matrix
	    [4]; /* red of V, blue of U, green of U and of V, times 65536, of the narrow range */
};

/* Rows of width pixels without gaps. */
void video_yuv_to_rgb(const struct video_yuv *yuv, const uint8_t *const plane[3],
		      const int stride[3], uint32_t height, uint32_t width, uint8_t *to);
