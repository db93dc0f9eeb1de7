/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resizing 8-bit pictures to exactly Pillow's pixels: two passes, one an axis, each of which multiplies with 22-bit weights
 * (filter.h), rounds and clips to 8 bits. A pass whose axis keeps its size is left out. */

#include "pipeline/ops/filter.h"

struct resize_cut { /* Pillow's resize with a box */
	struct filter_cut down, across;
};

/* Does Pillow (the version that tests/pipeline names) resize this picture's height first? The
 * passes round in between, so their order shows. */
static inline bool resize_down_first(uint32_t height, uint32_t width, uint32_t new_height,
				     uint32_t new_width)
{
	const int64_t fewer_rows = (int64_t)height - new_height;
	const int64_t fewer_columns = (int64_t)width - new_width;

	return fewer_rows > 2 * BASE_MAX(fewer_columns, 0);
}
