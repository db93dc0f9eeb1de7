/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes, one an axis, each of which multiplies with 22-bit weights, rounds and clips to 8
 * bits. A pass whose axis keeps its size is left out (it would change nothing).
 *
 * The passes themselves are kernels (resize_plain.c, resize_avx2.c); this file chooses kernels,
 * tables and the order of the passes, and owns the picture in between.
 */

#include "pipeline/ops/resize.h"
#include "pipeline/ops/resize_kernels.h"
#include "pipeline/spec/op.h"

static const struct resize_kernels *resize_kernels(void)
{
	const struct resize_kernels *fast = resize_avx2();

	return fast ? fast : &resize_plain;
}

/* ---- the two passes ---- */

bool resize_down_first(uint32_t height, uint32_t width, uint32_t new_height, uint32_t new_width)
{
	int64_t fewer_rows = (int64_t)height - new_height;
	int64_t fewer_columns = (int64_t)width - new_width;

	return fewer_rows > 2 * BASE_MAX(fewer_columns, 0);
}

static int resize_one(struct resize *resize, bool down, enum filter_id filter,
		      const struct resize_cut *cut, const struct picture *from, uint64_t size,
		      struct picture_buffer *buffer, struct picture *ret)
{
	const struct filter_table *table;
	int r = picture_make(buffer, down ? size : from->height, down ? from->width : size, ret);

	if (r != 0)
		return r;
	table = down ? filter_get(&resize->down, filter, from->height, ret->height, cut->down)
		     : filter_get(&resize->across, filter, from->width, ret->width, cut->across);
	if (!table)
		return PIPELINE_FAIL_MEMORY;
	(down ? resize_kernels()->down : resize_kernels()->across)(table, from, ret);
	return 0;
}

static int resize_copy(const struct picture *from, struct picture_buffer *buffer,
		       struct picture *ret)
{
	int r = picture_make(buffer, from->height, from->width, ret);

	if (r == 0)
		picture_pad(from, ret, 0, 0);
	return r;
}

int resize_run(struct resize *resize, const struct picture *from, enum filter_id filter,
	       uint64_t height, uint64_t width, struct picture_buffer *buffer, struct picture *ret)
{
	static const struct resize_cut none;

	return resize_run_cut(resize, from, filter, &none, height, width, buffer, ret);
}

int resize_run_cut(struct resize *resize, const struct picture *from, enum filter_id filter,
		   const struct resize_cut *cut, uint64_t height, uint64_t width,
		   struct picture_buffer *buffer, struct picture *ret)
{
	bool down = height != from->height || filter_is_cut(cut->down);
	bool across = width != from->width || filter_is_cut(cut->across), down_first;
	struct picture between;
	int r;

	if (height > OP_MAX_PIXELS || width > OP_MAX_PIXELS || height * width > OP_MAX_PIXELS)
		return PIPELINE_FAIL_REFUSED;
	if (!down && !across)
		return resize_copy(from, buffer, ret);
	if (!down || !across)
		return resize_one(resize, down, filter, cut, from, down ? height : width, buffer,
				  ret);
	down_first =
	    resize_down_first(from->height, from->width, (uint32_t)height, (uint32_t)width);
	r = resize_one(resize, down_first, filter, cut, from, down_first ? height : width,
		       &resize->between, &between);
	if (r != 0)
		return r;
	return resize_one(resize, !down_first, filter, cut, &between, down_first ? width : height,
			  buffer, ret);
}

void resize_trim(struct resize *resize)
{
	filter_cache_trim(&resize->across);
	filter_cache_trim(&resize->down);
	picture_buffer_trim(&resize->between);
}

void resize_fini(struct resize *resize)
{
	filter_cache_fini(&resize->across);
	filter_cache_fini(&resize->down);
	picture_buffer_fini(&resize->between);
}
