/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows of a picture at its own scale: random_crop, fixed_size_crop, five_crop and ten_crop, torchvision's RandomCrop, the
 * FixedSizeCrop of its references for detection, and FiveCrop. None copies a pixel but where the window reaches into padding.
 *
 * five_crop makes five pictures of one, which the finishing ops then work on one by one; that is why
 * it is the last op on pictures.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/pad.h"

static void window_set_shape(const struct op *op, unsigned param, struct shape *shape)
{
	shape->height = (uint32_t)op_number(op, param, 0);
	shape->width = (uint32_t)op_number(op, param, 1);
}

/* ---- random_crop ---- */

/* One axis of the padded picture. */
struct window_axis {
	int64_t before; /* the padding in front of the picture */
	int64_t size;   /* of all */
};

static struct window_axis window_axis(const struct op *op, int64_t size, bool down)
{
	const double *sides = op->value[OP_RANDOM_CROP_PADDING].number; /* 0 where null */
	int64_t want = (int64_t)op_number(op, OP_RANDOM_CROP_SIZE, !down);
	int64_t before = (int64_t)sides[down], after = (int64_t)sides[down + 2];
	int64_t lack = want - (size + before + after);

	if (lack <= 0 || op_number(op, OP_RANDOM_CROP_PAD_IF_NEEDED, 0) == 0)
		return (struct window_axis){before, size + before + after};
	/* what is missing is put on both sides, each time all of it */
	return (struct window_axis){before + lack, want + lack};
}

static double window_draw_axis(const struct op *op, int64_t size, bool down, struct op_drawn *drawn)
{
	struct window_axis axis = window_axis(op, size, down);
	int64_t room = axis.size - (int64_t)op_number(op, OP_RANDOM_CROP_SIZE, !down);
	int64_t at = room > 0 ? draw_integer(&drawn->seq, 0, room) : 0;

	return (double)(at - axis.before);
}

static const char *window_crop_shape(const struct op *op, struct shape *shape)
{
	window_set_shape(op, OP_RANDOM_CROP_SIZE, shape);
	return NULL;
}

/* Two numbers: top and left of the window, from the picture's corner. */
static void window_crop_draw(const struct op *op, uint32_t height, uint32_t width,
			     struct op_drawn *drawn)
{
	drawn->number[0] = window_draw_axis(op, height, true, drawn);
	drawn->number[1] = window_draw_axis(op, width, false, drawn);
}

/* The picture's part, or what is around it, too. */
static int window_show(struct steps_scratch *scratch, const struct pad *pad,
		       struct picture *picture)
{
	const struct picture_box box = {(uint32_t)pad->top, (uint32_t)pad->left,
					(uint32_t)pad->height, (uint32_t)pad->width};

	if (pad->top < 0 || pad->left < 0 || pad->top + (int64_t)pad->height > picture->height ||
	    pad->left + (int64_t)pad->width > picture->width)
		return pad_run(scratch, pad, picture);
	*picture = picture_part(picture, &box);
	return 0;
}

static int window_crop_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	struct pad pad = {
	    .top = (int64_t)drawn->number[0],
	    .left = (int64_t)drawn->number[1],
	    .height = (uint64_t)op_number(op, OP_RANDOM_CROP_SIZE, 0),
	    .width = (uint64_t)op_number(op, OP_RANDOM_CROP_SIZE, 1),
	    .mode = (enum pad_mode)op_number(op, OP_RANDOM_CROP_PADDING_MODE, 0),
	};

	if (window_axis(op, picture->height, true).size < (int64_t)pad.height ||
	    window_axis(op, picture->width, false).size < (int64_t)pad.width)
		return steps_refuse(scratch, "the picture is too small");
	op_color(op, OP_RANDOM_CROP_FILL, pad.fill);
	return window_show(scratch, &pad, picture);
}

static void window_crop_follow(const struct op *op, const struct op_drawn *drawn,
			       struct follow *follow)
{
	follow_window(follow, drawn->number[0], drawn->number[1],
		      op_number(op, OP_RANDOM_CROP_SIZE, 0), op_number(op, OP_RANDOM_CROP_SIZE, 1));
}

const struct op_impl window_crop_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = window_crop_shape,
    .draw = window_crop_draw,
    .run = window_crop_run,
    .follow = window_crop_follow,
};

/* ---- fixed_size_crop ---- */

_Static_assert(OP_FIXED_SIZE_CROP_SIZE == OP_RANDOM_CROP_SIZE, "one shape for both");

/* Two numbers: top and left of the window, by one draw for both. */
static void window_fixed_draw(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	const double *size = op->value[OP_FIXED_SIZE_CROP_SIZE].number;
	const double at = philox_unit(&drawn->seq);

	drawn->number[0] = floor(fmax(height - size[0], 0) * at);
	drawn->number[1] = floor(fmax(width - size[1], 0) * at);
}

/* What is cut off is gone before something is put around the rest. */
static int window_fixed_run(struct steps_scratch *scratch, const struct op *op,
			    const struct op_drawn *drawn, struct picture *picture)
{
	struct pad pad = {
	    .height = (uint64_t)op_number(op, OP_FIXED_SIZE_CROP_SIZE, 0),
	    .width = (uint64_t)op_number(op, OP_FIXED_SIZE_CROP_SIZE, 1),
	    .mode = (enum pad_mode)op_number(op, OP_FIXED_SIZE_CROP_PADDING_MODE, 0),
	};
	const struct picture_box box = {(uint32_t)drawn->number[0], (uint32_t)drawn->number[1],
					(uint32_t)BASE_MIN(picture->height, pad.height),
					(uint32_t)BASE_MIN(picture->width, pad.width)};

	*picture = picture_part(picture, &box);
	op_color(op, OP_FIXED_SIZE_CROP_FILL, pad.fill);
	return window_show(scratch, &pad, picture);
}

const struct op_impl window_fixed_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = window_crop_shape,
    .draw = window_fixed_draw,
    .run = window_fixed_run,
    .follow = window_crop_follow,
};

/* ---- five_crop ---- */

_Static_assert(OP_TEN_CROP_SIZE == OP_FIVE_CROP_SIZE, "one shape for both");

static const char *window_five_shape(const struct op *op, struct shape *shape)
{
	window_set_shape(op, OP_FIVE_CROP_SIZE, shape);
	shape->views = op->id == OP_TEN_CROP ? 10 : 5;
	return NULL;
}

/* Upper left, upper right, lower left, lower right, middle, of a picture of that size that begins in row `top`. */
static int window_five(struct steps_scratch *scratch, const struct op *op, uint32_t all_height,
		       uint32_t all_width, uint32_t top, struct picture_box view[5])
{
	const uint32_t height = (uint32_t)op_number(op, OP_FIVE_CROP_SIZE, 0);
	const uint32_t width = (uint32_t)op_number(op, OP_FIVE_CROP_SIZE, 1);
	uint32_t bottom, right;

	if (height > all_height || width > all_width)
		return steps_refuse(scratch, "the picture is too small");
	bottom = all_height - height;
	right = all_width - width;
	for (unsigned i = 0; i < 4; i++)
		view[i] = (struct picture_box){top + (i & 2 ? bottom : 0), i & 1 ? right : 0,
					       height, width};
	view[4] = (struct picture_box){top + (uint32_t)rint(bottom / 2.0),
				       (uint32_t)rint(right / 2.0), height, width};
	return 0;
}

static int window_five_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	(void)drawn;
	return window_five(scratch, op, picture->height, picture->width, 0, scratch->view);
}

const struct op_impl window_five_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = window_five_shape,
    .run = window_five_run,
};

/* ---- ten_crop ---- */

/* The picture, and below it the same flipped: five views of each. */
static int window_ten_run(struct steps_scratch *scratch, const struct op *op,
			  const struct op_drawn *drawn, struct picture *picture)
{
	const uint32_t height = picture->height, width = picture->width;
	const struct picture_box below = {height, 0, height, width};
	struct picture to, flipped;
	int r;

	(void)drawn;
	r = window_five(scratch, op, height, width, 0, scratch->view);
	r = r ? r : window_five(scratch, op, height, width, height, scratch->view + 5);
	r = r ? r : steps_begin(scratch, 2 * (uint64_t)height, width, &to);
	if (r != 0)
		return r;
	flipped = picture_part(&to, &below);
	for (uint32_t y = 0; y < height; y++) {
		memcpy(picture_row(&to, y), picture_row(picture, y), (size_t)4 * width);
		memcpy(picture_row(&flipped, y), picture_row(picture, y), (size_t)4 * width);
	}
	if (op_number(op, OP_TEN_CROP_VERTICAL_FLIP, 0) != 0)
		picture_turn_over(&flipped);
	else
		picture_mirror(&flipped);
	steps_end(scratch, &to, picture);
	return 0;
}

const struct op_impl window_ten_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = window_five_shape,
    .run = window_ten_run,
};
