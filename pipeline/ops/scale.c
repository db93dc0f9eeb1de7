/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op resize: torchvision's sizes, resize.c's pixels.
 *
 * One number is the length of the shorter side; the other one is size * longer / shorter, cut to a
 * whole number, as Python's int() does; max_size bounds the longer one (torchvision.transforms.functional._compute_resized_output_size).
 * A height and a width that a picture is to cover, or to lie in, are timm's ResizeKeepRatio: both sides
 * are divided by one ratio, and rounded half to even.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/scale.h"

/* The other side of a picture whose one side becomes size. */
static double scale_other(double size, double one, double other)
{
	return trunc(size * other / one);
}

static enum op_fit scale_fit(const struct op *op)
{
	return (enum op_fit)op_number(op, OP_RESIZE_FIT, 0);
}

void scale_size(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		uint64_t *ret_width)
{
	const double *size = op->value[OP_RESIZE_SIZE].number;
	const double most = op_number(op, OP_RESIZE_MAX_SIZE, 0);
	const uint32_t longest = BASE_MAX(height, width), shortest = BASE_MIN(height, width);
	double one = size[0], other;

	if (scale_fit(op) != OP_EXACT) {
		const double down = height / op_number(op, OP_RESIZE_SIZE, 0);
		const double across = width / op_number(op, OP_RESIZE_SIZE, 1);
		const double ratio =
		    scale_fit(op) == OP_COVER ? fmin(down, across) : fmax(down, across);

		*ret_height = (uint64_t)rint(height / ratio);
		*ret_width = (uint64_t)rint(width / ratio);
		return;
	}
	if (op->value[OP_RESIZE_SIZE].count == 2) {
		*ret_height = (uint64_t)size[0];
		*ret_width = (uint64_t)size[1];
		return;
	}
	if (op_is_null(op, OP_RESIZE_SIZE)) {
		other = most;
		one = scale_other(most, longest, shortest);
	} else {
		other = scale_other(one, shortest, longest);
		if (!op_is_null(op, OP_RESIZE_MAX_SIZE) && other > most) {
			one = scale_other(most, other, one);
			other = most;
		}
	}
	*ret_height = (uint64_t)(width <= height ? other : one);
	*ret_width = (uint64_t)(width <= height ? one : other);
}

/* What is wrong with the parameters together, or NULL. */
static const char *scale_check(const struct op *op)
{
	if (op_number(op, OP_RESIZE_ANTIALIAS, 0) == 0)
		return "Pillow's pictures are always antialiased; leave \"antialias\" out";
	if (op_is_null(op, OP_RESIZE_SIZE) && op_is_null(op, OP_RESIZE_MAX_SIZE))
		return "neither \"size\" nor \"max_size\" is given; give one of them";
	if (scale_fit(op) != OP_EXACT && op->value[OP_RESIZE_SIZE].count < 2)
		return "\"fit\" needs a height and a width; give \"size\" both, or leave it out";
	if (op_is_null(op, OP_RESIZE_MAX_SIZE))
		return NULL;
	if (op->value[OP_RESIZE_SIZE].count == 2)
		return "\"max_size\" has no meaning beside [height, width]; leave one of them out";
	if (op_number(op, OP_RESIZE_MAX_SIZE, 0) <= op_number(op, OP_RESIZE_SIZE, 0))
		return "\"max_size\" is not above \"size\"; give a larger one";
	return NULL;
}

static const char *scale_shape(const struct op *op, struct shape *shape)
{
	const char *wrong = scale_check(op);
	uint64_t height, width;

	if (wrong ||
	    (!shape->height && (op->value[OP_RESIZE_SIZE].count < 2 || scale_fit(op) != OP_EXACT)))
		return wrong;
	scale_size(op, shape->height, shape->width, &height, &width);
	if (height < 1 || width < 1)
		return "nothing would be left of the picture; give a larger size";
	if (height * width > OP_MAX_PIXELS)
		return "the picture gets too large; give a smaller size";
	shape->height = (uint32_t)height;
	shape->width = (uint32_t)width;
	return NULL;
}

static int scale_run(struct steps_scratch *scratch, const struct op *op,
		     const struct op_drawn *drawn, struct picture *picture)
{
	uint64_t height, width;

	(void)drawn;
	scale_size(op, picture->height, picture->width, &height, &width);
	if (height < 1 || width < 1)
		return steps_refuse(scratch, "nothing would be left");
	return steps_scale(scratch, (enum filter_id)op_number(op, OP_RESIZE_INTERPOLATION, 0),
			   height, width, picture);
}

static void scale_follow(const struct op *op, const struct op_drawn *drawn, struct follow *follow)
{
	uint64_t height, width;

	(void)drawn;
	scale_size(op, (uint32_t)follow->height, (uint32_t)follow->width, &height, &width);
	follow_scale(follow, (double)height, (double)width);
}

const struct op_impl scale_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = scale_shape,
    .run = scale_run,
    .follow = scale_follow,
};
