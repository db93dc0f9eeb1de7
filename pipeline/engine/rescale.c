/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows' pass, fed from a picture in place of a decoder: its rows are taken apart into planes, a band at a time.
 */

#include "pipeline/engine/rescale.h"
#include "pipeline/ops/resize.h"
#include "pipeline/spec/op.h"

void rescale_fini(struct rescale *rescale)
{
	fuse_rows_fini(&rescale->rows);
	decode_planes_fini(&rescale->planes);
}

void rescale_trim(struct rescale *rescale)
{
	fuse_rows_trim(&rescale->rows);
	decode_planes_trim(&rescale->planes);
}

static int rescale_feed(struct rescale *rescale, const struct picture *from)
{
	struct picture_box box = rescale->rows.box;
	struct decode_band band;
	int r = 0;

	for (const uint32_t end = box.top + box.height; r == 0 && box.top < end;
	     box.top += band.rows) {
		struct picture part;

		box.height = end - box.top;
		part = picture_part(from, &box);
		r = decode_planes_fill(&rescale->planes, &part, &band);
		if (r == 0)
			fuse_rows_feed(&rescale->rows, &band);
	}
	return r;
}

int rescale_run(struct rescale *rescale, const struct picture *from, enum filter_id filter,
		const struct resize_cut *cut, uint64_t height, uint64_t width,
		struct picture_buffer *buffer, struct picture *ret)
{
	struct fuse_plan plan = {.source = {0, 0, from->height, from->width},
				 .cut = *cut,
				 .resized = true,
				 .filter = filter};
	const bool down = height != from->height || filter_is_cut(cut->down);
	const bool across = width != from->width || filter_is_cut(cut->across);
	int r;

	if (!down && !across)
		return picture_copy(from, buffer, ret);
	r = picture_make(buffer, height, width, ret);
	if (r != 0)
		return r;
	plan.to = plan.frame = (struct fuse_size){ret->height, ret->width};
	plan.window = (struct picture_box){0, 0, ret->height, ret->width};
	/* Of two passes there is a picture between in Pillow, which must not be too large either. */
	if (down && across &&
	    (resize_down_first(from->height, from->width, ret->height, ret->width)
		 ? height * from->width
		 : from->height * width) > OP_MAX_PIXELS)
		return PIPELINE_FAIL_REFUSED;
	r = fuse_rows_begin(&rescale->rows, &(struct fuse_sink){.plan = &plan, .picture = ret});
	return r == 0 ? rescale_feed(rescale, from) : r;
}
