/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Affine transforms and perspectives of 8-bit pictures to exactly Pillow's pixels. */

#include "pipeline/picture.h"

/* As op_warp_words of op.c. */
enum warp_filter { WARP_NEAREST = 0, WARP_BILINEAR = 1, WARP_BICUBIC = 2 };

/* Pillow's Image.transform(size of to, AFFINE, matrix, filter, fillcolor=fill): pixel (x, y) of to is
 * that of from at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]), pixel centres at halves; fill
 * where that is outside. table has room for to->width numbers. from and to do not overlap. */
void warp_run(const struct picture *from, const struct picture *to, const double matrix[6],
	      enum warp_filter filter, const uint8_t fill[3], uint32_t *table);
/* Image.transform(size of to, PERSPECTIVE, matrix, ...): both coordinates are divided by
 * m[6] x + m[7] y + 1. */
void warp_perspective(const struct picture *from, const struct picture *to, const double matrix[8],
		      enum warp_filter filter, const uint8_t fill[3]);
