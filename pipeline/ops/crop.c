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
#include "pipeline/ops/op_run.h"

_Static_assert(OP_RANDOM_RESIZED_CROP_SIZE == OP_CENTER_CROP_SIZE, "one shape for both");

static const char *crop_shape(const struct op *op, struct shape *shape)
{
	shape->height = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0);
	shape->width = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1);
	return NULL;
}

/* Four numbers: top, left, height and width. */
static void crop_resized_draw(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	struct picture_box box;

	draw_crop(&drawn->seq, op, height, width, &box);
	drawn->number[0] = box.top;
	drawn->number[1] = box.left;
	drawn->number[2] = box.height;
	drawn->number[3] = box.width;
}

static int crop_resized_run(struct steps_scratch *scratch, const struct op *op,
			    const struct op_drawn *drawn, struct picture *picture)
{
	struct picture_box box = {(uint32_t)drawn->number[0], (uint32_t)drawn->number[1],
				  (uint32_t)drawn->number[2], (uint32_t)drawn->number[3]};

	*picture = picture_part(picture, &box);
	return steps_scale(scratch,
			   (enum filter_id)op_number(op, OP_RANDOM_RESIZED_CROP_INTERPOLATION, 0),
			   (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 0),
			   (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 1), picture);
}

/* The middle `want` pixels of `have`, as torchvision's center_crop finds them: half to even. */
static void crop_middle_of(uint32_t have, uint32_t want, uint32_t *ret_first, uint32_t *ret_count)
{
	*ret_first = have > want ? (uint32_t)rint((have - want) / 2.0) : 0;
	*ret_count = BASE_MIN(have, want);
}

void crop_middle(const struct op *op, uint32_t height, uint32_t width, struct picture_box *ret)
{
	crop_middle_of(height, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0), &ret->top,
		       &ret->height);
	crop_middle_of(width, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1), &ret->left,
		       &ret->width);
}

static int crop_pad(struct steps_scratch *scratch, uint32_t height, uint32_t width,
		    struct picture *picture)
{
	struct picture to;
	int r;

	if (picture->height == height && picture->width == width)
		return 0;
	r = steps_begin(scratch, height, width, &to);
	if (r != 0)
		return r;
	picture_pad(picture, &to, (height - picture->height) / 2, (width - picture->width) / 2);
	steps_end(scratch, &to, picture);
	return 0;
}

static int crop_center_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	struct picture_box box;

	(void)drawn;
	crop_middle(op, picture->height, picture->width, &box);
	*picture = picture_part(picture, &box);
	return crop_pad(scratch, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0),
			(uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1), picture);
}

const struct op_impl crop_resized_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = crop_shape,
    .draw = crop_resized_draw,
    .run = crop_resized_run,
};

const struct op_impl crop_center_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = crop_shape,
    .run = crop_center_run,
};
