/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode's parameter "fast": how small a picture may be decoded.
 *
 * A JPEG's blocks can be decoded to 4, 2 or 1 pixels a side in place of 8: the mean of what they
 * show, nearly, for less work, and there are fewer pixels to resize. That is done where the op behind
 * decode shrinks the picture or a part of it: sides are halved as often as the part, halved too, has
 * no fewer rows and no fewer columns than what the op makes of it. That is the rule of Pillow's draft.
 *
 * The part is the one that is drawn for the picture in its own size. Its edges need not lie between
 * pixels of the smaller picture: the pixels they cross are taken, and the eighths that are too much
 * are cut off in the filter's weights, so that nothing shifts. That is Pillow's
 * resize(size, filter, box) of the crop around the box.
 *
 * Smaller pictures begin with the file's first row and column; where EXIF turned that to the
 * bottom or to the right, what is missing of the last pixel is missing of the picture's first one.
 *
 * Nearest takes single pixels, which the smaller picture has not. All is decided by sizes and draws
 * alone: neither which decoder or engine runs nor what shares the decode changes a sample.
 */

#include "pipeline/engine/reduce.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/scale.h"

#define REDUCE_MAX_SIDE 65536 /* larger ones are resized by whole pictures */

/* What op 1 works on and what it makes of that; false: not an op that resizes. */
static bool reduce_ask(const struct op *op, const struct draw *draw,
		       const struct decode_about *about, struct picture_box *ret_box,
		       struct reduce *ret)
{
	uint64_t height, width;
	struct op_drawn drawn;

	*ret_box = (struct picture_box){0, 0, about->height, about->width};
	if (op->id == OP_RANDOM_RESIZED_CROP) {
		op_draw(op, 1, draw, about->height, about->width, &drawn);
		*ret_box =
		    (struct picture_box){(uint32_t)drawn.number[0], (uint32_t)drawn.number[1],
					 (uint32_t)drawn.number[2], (uint32_t)drawn.number[3]};
		ret->filter = (enum filter_id)drawn.number[4];
		height = (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 0);
		width = (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 1);
	} else if (op->id == OP_RESIZE) {
		ret->filter = (enum filter_id)op_number(op, OP_RESIZE_INTERPOLATION, 0);
		scale_size(op, about->height, about->width, &height, &width);
	} else {
		return false;
	}
	if (height < 1 || width < 1 || height > ret_box->height || width > ret_box->width)
		return false;
	ret->height = (uint32_t)height;
	ret->width = (uint32_t)width;
	return ret->filter != FILTER_NEAREST && ret_box->height <= REDUCE_MAX_SIDE &&
	       ret_box->width <= REDUCE_MAX_SIDE;
}

/* One side of the part in the smaller picture; size is the whole picture's, and reversed if its last
 * pixel is the file's first. */
static struct filter_cut reduce_side(uint32_t size, bool reversed, unsigned shift, uint32_t *first,
				     uint32_t *count)
{
	const uint32_t mask = (1u << shift) - 1, lead = reversed ? -size & mask : 0;
	const uint32_t start = *first + lead, end = start + *count;

	*first = start >> shift;
	*count = ((end + mask) >> shift) - *first;
	return (struct filter_cut){(uint8_t)((start & mask) << (3 - shift)),
				   (uint8_t)((-end & mask) << (3 - shift))};
}

void reduce_choose(const struct op_list *ops, const struct draw *draw,
		   const struct decode_about *about, struct reduce *ret)
{
	struct picture_box box;

	*ret = (struct reduce){.shift = 0};
	if (ops->op[0].id != OP_DECODE || op_number(&ops->op[0], OP_DECODE_FAST, 0) == 0 ||
	    !about->can_reduce || ops->count < 2 ||
	    !reduce_ask(&ops->op[1], draw, about, &box, ret))
		return;
	while (ret->shift < DECODE_MAX_SHIFT && box.height >> (ret->shift + 1) >= ret->height &&
	       box.width >> (ret->shift + 1) >= ret->width)
		ret->shift++;
	ret->box = box;
	ret->cut.down = reduce_side(about->height, about->is_upside_down, ret->shift, &ret->box.top,
				    &ret->box.height);
	ret->cut.across = reduce_side(about->width, about->is_mirrored, ret->shift, &ret->box.left,
				      &ret->box.width);
}
