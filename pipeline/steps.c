/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Op after op.
 *
 * The picture moves between two buffers of the scratch; ops that only look at part of it or change
 * it in place do not move it. Both crops are cut in two, the part they look at and what they make
 * of it, so that an engine may fetch just the part (engine_crop.c) and still run the same code.
 */

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "pipeline/steps.h"

int steps_new(const struct op_list *ops, const struct shape *shape, struct steps **ret)
{
	struct steps *steps = calloc(1, sizeof(*steps));

	if (!steps)
		return -ENOMEM;
	steps->ops = ops;
	steps->shape = *shape;
	finish_init(&steps->finish, shape);
	*ret = steps;
	return 0;
}

void steps_free(struct steps *steps)
{
	free(steps);
}

int steps_scratch_new(struct steps_scratch **ret)
{
	struct steps_scratch *scratch = calloc(1, sizeof(*scratch));

	if (!scratch)
		return -ENOMEM;
	if (decode_new(&scratch->decode) != 0) {
		free(scratch);
		return -ENOMEM;
	}
	*ret = scratch;
	return 0;
}

void steps_scratch_free(struct steps_scratch *scratch)
{
	if (!scratch)
		return;
	decode_free(scratch->decode);
	resize_fini(&scratch->resize);
	picture_buffer_fini(&scratch->buffer[0]);
	picture_buffer_fini(&scratch->buffer[1]);
	free(scratch);
}

void steps_trim(struct steps_scratch *scratch)
{
	decode_close(scratch->decode);
	picture_buffer_trim(&scratch->buffer[0]);
	picture_buffer_trim(&scratch->buffer[1]);
	resize_trim(&scratch->resize);
}

int steps_fail(struct pipeline_error *ret_error, const struct op *op, int r)
{
	static const char *const texts[] = {
	    [PIPELINE_FAIL_REFUSED] = "the picture would get too large",
	    [PIPELINE_FAIL_MEMORY] = "no memory for the picture",
	};

	return decode_fail(ret_error, (enum pipeline_fail)r, 0, "%.12s: %s", op_name(op->id),
			   texts[r]);
}

/* ---- crops ---- */

bool steps_is_crop(const struct op *op)
{
	return op->id == OP_RANDOM_RESIZED_CROP || op->id == OP_CENTER_CROP;
}

/* The middle `want` pixels of `have`, as torchvision's center_crop finds them: half to even. */
static void steps_middle(uint32_t have, uint32_t want, uint32_t *ret_first, uint32_t *ret_count)
{
	*ret_first = have > want ? (uint32_t)rint((have - want) / 2.0) : 0;
	*ret_count = BASE_MIN(have, want);
}

void steps_part(const struct op *op, unsigned index, const struct draw *draw, uint32_t height,
		uint32_t width, struct picture_box *ret)
{
	if (op->id == OP_RANDOM_RESIZED_CROP) {
		draw_crop(draw, index, op, height, width, ret);
		return;
	}
	steps_middle(height, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0), &ret->top,
		     &ret->height);
	steps_middle(width, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1), &ret->left,
		     &ret->width);
}

static int steps_scale(struct steps_scratch *scratch, enum filter_id filter, uint64_t height,
		       uint64_t width, struct picture *picture)
{
	struct picture to;
	int r = resize_run(&scratch->resize, picture, filter, height, width,
			   &scratch->buffer[!scratch->at], &to);

	if (r != 0)
		return r;
	scratch->at = !scratch->at;
	*picture = to;
	return 0;
}

static int steps_pad(struct steps_scratch *scratch, uint32_t height, uint32_t width,
		     struct picture *picture)
{
	struct picture to;
	int r;

	if (picture->height == height && picture->width == width)
		return 0;
	r = picture_make(&scratch->buffer[!scratch->at], height, width, &to);
	if (r != 0)
		return r;
	picture_pad(picture, &to, (height - picture->height) / 2, (width - picture->width) / 2);
	scratch->at = !scratch->at;
	*picture = to;
	return 0;
}

int steps_complete(struct steps_scratch *scratch, const struct op *op, struct picture *picture)
{
	if (op->id == OP_RANDOM_RESIZED_CROP)
		return steps_scale(
		    scratch, (enum filter_id)op_number(op, OP_RANDOM_RESIZED_CROP_INTERPOLATION, 0),
		    (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 0),
		    (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 1), picture);
	return steps_pad(scratch, (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0),
			 (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1), picture);
}

/* ---- ops ---- */

static int steps_op(struct steps_scratch *scratch, const struct op *op, unsigned index,
		    const struct draw *draw, struct picture *picture)
{
	struct picture_box box;
	uint64_t height, width;

	switch (op->id) {
	case OP_RANDOM_RESIZED_CROP:
	case OP_CENTER_CROP:
		steps_part(op, index, draw, picture->height, picture->width, &box);
		*picture = picture_part(picture, &box);
		return steps_complete(scratch, op, picture);
	case OP_RESIZE:
		shape_resized(op, picture->height, picture->width, &height, &width);
		return steps_scale(scratch,
				   (enum filter_id)op_number(op, OP_RESIZE_INTERPOLATION, 0),
				   height, width, picture);
	case OP_HFLIP:
		if (draw_flip(draw, index, op))
			picture_mirror(picture);
		return 0;
	default: /* the others are no pixel ops (shape.c) */
		return 0;
	}
}

int steps_rest(const struct steps *steps, struct steps_scratch *scratch, unsigned from,
	       struct picture *picture, const struct draw *draw, void *out,
	       struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned i = from; r == 0 && i < steps->shape.pixel_ops; i++) {
		r = steps_op(scratch, &steps->ops->op[i], i, draw, picture);
		if (r != 0)
			r = steps_fail(ret_error, &steps->ops->op[i], r);
	}
	if (r == 0)
		finish_run(&steps->finish, picture, out);
	return r;
}
