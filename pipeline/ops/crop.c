/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crops that engines may take from the file at once: random_resized_crop and center_crop.
 *
 * What part they take is known before any pixel is, so that an engine may fetch just that
 * (fuse_plan.c).
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/crop.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/pad.h"

_Static_assert(OP_RANDOM_RESIZED_CROP_SIZE == OP_CENTER_CROP_SIZE, "one shape for both");

static const char *crop_shape(const struct op *op, struct shape *shape)
{
	shape->height = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0);
	shape->width = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1);
	return NULL;
}

/* Five numbers: top, left, height and width; the filter. */
static void crop_resized_draw(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	struct picture_box box;

	draw_crop(&drawn->seq, op, height, width, &box);
	drawn->number[0] = box.top;
	drawn->number[1] = box.left;
	drawn->number[2] = box.height;
	drawn->number[3] = box.width;
	drawn->number[4] = op_number(op, OP_RANDOM_RESIZED_CROP_INTERPOLATION, 0);
	if (!op_is_null(op, OP_RANDOM_RESIZED_CROP_OR_INTERPOLATION) &&
	    draw_chance(&drawn->seq, 0.5))
		drawn->number[4] = op_number(op, OP_RANDOM_RESIZED_CROP_OR_INTERPOLATION, 0);
}

static int crop_resized_run(struct steps_scratch *scratch, const struct op *op,
			    const struct op_drawn *drawn, struct picture *picture)
{
	struct picture_box box = {(uint32_t)drawn->number[0], (uint32_t)drawn->number[1],
				  (uint32_t)drawn->number[2], (uint32_t)drawn->number[3]};

	*picture = picture_part(picture, &box);
	return steps_scale(scratch, (enum filter_id)drawn->number[4],
			   (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 0),
			   (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 1), picture);
}

static void crop_resized_follow(const struct op *op, const struct op_drawn *drawn,
				struct follow *follow)
{
	follow_window(follow, drawn->number[0], drawn->number[1], drawn->number[2],
		      drawn->number[3]);
	follow_scale(follow, op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 0),
		     op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 1));
}

/* The middle `want` pixels of `have`. */
static void crop_middle_of(enum op_half half, uint32_t have, uint32_t want, uint32_t *ret_first,
			   uint32_t *ret_count)
{
	const double first = have > want ? (have - want) / 2.0 : 0;

	*ret_first = (uint32_t)(half == OP_HALF_DOWN ? floor(first) : rint(first));
	*ret_count = BASE_MIN(have, want);
}

void crop_middle(const struct op *op, uint32_t height, uint32_t width, struct picture_box *ret)
{
	const enum op_half half = (enum op_half)op_number(op, OP_CENTER_CROP_HALF, 0);

	crop_middle_of(half, height, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0), &ret->top,
		       &ret->height);
	crop_middle_of(half, width, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1), &ret->left,
		       &ret->width);
}

bool crop_fills_black(const struct op *op)
{
	const double *fill = op->value[OP_CENTER_CROP_FILL].number;

	return fill[0] == 0 && fill[1] == 0 && fill[2] == 0;
}

static int crop_surround(struct steps_scratch *scratch, const struct op *op,
			 struct picture *picture)
{
	struct pad pad = {.height = (uint64_t)op_number(op, OP_CENTER_CROP_SIZE, 0),
			  .width = (uint64_t)op_number(op, OP_CENTER_CROP_SIZE, 1),
			  .mode = PAD_CONSTANT};

	if (picture->height == pad.height && picture->width == pad.width)
		return 0;
	pad.top = -(int64_t)((pad.height - picture->height) / 2);
	pad.left = -(int64_t)((pad.width - picture->width) / 2);
	op_color(op, OP_CENTER_CROP_FILL, pad.fill);
	return pad_run(scratch, &pad, picture);
}

static int crop_center_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	struct picture_box box;

	(void)drawn;
	crop_middle(op, picture->height, picture->width, &box);
	*picture = picture_part(picture, &box);
	return crop_surround(scratch, op, picture);
}

/* As crop_middle(), then crop_surround(). */
static void crop_center_follow(const struct op *op, const struct op_drawn *drawn,
			       struct follow *follow)
{
	const double height = op_number(op, OP_CENTER_CROP_SIZE, 0);
	const double width = op_number(op, OP_CENTER_CROP_SIZE, 1);
	struct picture_box box;

	(void)drawn;
	crop_middle(op, (uint32_t)follow->height, (uint32_t)follow->width, &box);
	follow_window(follow, box.top, box.left, box.height, box.width);
	follow_window(follow, -floor((height - box.height) / 2), -floor((width - box.width) / 2),
		      height, width);
}

const struct op_impl crop_resized_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = crop_shape,
    .draw = crop_resized_draw,
    .run = crop_resized_run,
    .follow = crop_resized_follow,
};

const struct op_impl crop_center_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = crop_shape,
    .run = crop_center_run,
    .follow = crop_center_follow,
};
