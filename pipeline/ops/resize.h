/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resizing 8-bit pictures to exactly Pillow's pixels. */

#include "pipeline/ops/filter.h"
#include "pipeline/picture.h"

struct resize { /* what resizing keeps from picture to picture; all zero at the start */
	struct filter_cache across, down;
	struct picture_buffer between; /* what the first pass gives */
};
void resize_fini(struct resize *resize);
/* Gives memory back that only an unusual picture needed. */
void resize_trim(struct resize *resize);

/* from, which is not in buffer, to height x width in buffer.
 * 0, PIPELINE_FAIL_REFUSED, PIPELINE_FAIL_MEMORY. */
int resize_run(struct resize *resize, const struct picture *from, enum filter_id filter,
	       uint64_t height, uint64_t width, struct picture_buffer *buffer, struct picture *ret);

struct resize_cut {
	struct filter_cut down, across;
};
/* The same of from less the cut: Pillow's resize with a box. */
int resize_run_cut(struct resize *resize, const struct picture *from, enum filter_id filter,
		   const struct resize_cut *cut, uint64_t height, uint64_t width,
		   struct picture_buffer *buffer, struct picture *ret);

/* Does Pillow (the version that tests/pipeline names) resize this picture's height first? The
 * passes round in between, so their order shows. */
bool resize_down_first(uint32_t height, uint32_t width, uint32_t new_height, uint32_t new_width);
