/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whole pictures resized (resize.h): a pass of rows (fuse_rows.h) from one picture to another. */

#include "pipeline/engine/fuse_rows.h"
#include "pipeline/formats/decode_planes.h"

struct rescale { /* what resizing keeps from picture to picture; all zero at the start */
	struct fuse_rows rows;
	struct decode_planes planes;
};
void rescale_fini(struct rescale *rescale);
/* Gives memory back that only an unusual picture needed. */
void rescale_trim(struct rescale *rescale);

/* from, which is not in buffer, less the cut, to height x width in buffer.
 * 0, PIPELINE_FAIL_REFUSED, PIPELINE_FAIL_MEMORY. */
int rescale_run(struct rescale *rescale, const struct picture *from, enum filter_id filter,
		const struct resize_cut *cut, uint64_t height, uint64_t width,
		struct picture_buffer *buffer, struct picture *ret);
