/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op resize, and scale_jitter, random_shortest_size and random_resize, which draw the size: torchvision's sizes, resize.c's pixels.
 *
 * One number is the length of the shorter side; the other one is size * longer / shorter, cut to a
 * whole number, as Python's int() does; max_size bounds the longer one (torchvision.transforms.functional._compute_resized_output_size).
 * A height and a width that a picture is to cover, or to lie in, are timm's ResizeKeepRatio: both sides
 * are divided by one ratio, and rounded half to even.
 *
 * Drawn sizes leave the result's to the picture, so an op that gives it a fixed one must follow.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/patches.h"
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

bool scale_is_op(enum op_id id)
{
	return id == OP_RESIZE || id == OP_SCALE_JITTER || id == OP_RANDOM_SHORTEST_SIZE ||
	       id == OP_RANDOM_RESIZE;
}

_Static_assert(OP_SCALE_JITTER_INTERPOLATION == OP_RESIZE_INTERPOLATION &&
		   OP_RANDOM_SHORTEST_SIZE_INTERPOLATION == OP_RESIZE_INTERPOLATION &&
		   OP_RANDOM_RESIZE_INTERPOLATION == OP_RESIZE_INTERPOLATION &&
		   OP_PATCHES_INTERPOLATION == OP_RESIZE_INTERPOLATION,
	       "one run for all");

void scale_to(const struct op *op, const struct op_drawn *drawn, uint32_t height, uint32_t width,
	      uint64_t *ret_height, uint64_t *ret_width)
{
	if (op->id == OP_RESIZE) {
		scale_size(op, height, width, ret_height, ret_width);
		return;
	}
	if (op->id == OP_PATCHES) {
		patches_size(op, height, width, ret_height, ret_width);
		return;
	}
	*ret_height = (uint64_t)drawn->number[0];
	*ret_width = (uint64_t)drawn->number[1];
}

static int scale_run(struct steps_scratch *scratch, const struct op *op,
		     const struct op_drawn *drawn, struct picture *picture)
{
	uint64_t height, width;

	scale_to(op, drawn, picture->height, picture->width, &height, &width);
	if (height < 1 || width < 1)
		return steps_refuse(scratch, "nothing would be left");
	return steps_scale(scratch, (enum filter_id)op_number(op, OP_RESIZE_INTERPOLATION, 0),
			   height, width, picture);
}

static void scale_follow(const struct op *op, const struct op_drawn *drawn, struct follow *follow)
{
	uint64_t height, width;

	scale_to(op, drawn, (uint32_t)follow->height, (uint32_t)follow->width, &height, &width);
	follow_scale(follow, (double)height, (double)width);
}

const struct op_impl scale_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = scale_shape,
    .run = scale_run,
    .follow = scale_follow,
};

/* ---- drawn sizes ---- */

static double scale_draw_jitter(const struct op *op, uint32_t height, uint32_t width,
				struct philox_seq *seq)
{
	const double *target = op->value[OP_SCALE_JITTER_TARGET_SIZE].number;
	const double *range = op->value[OP_SCALE_JITTER_SCALE_RANGE].number;

	/* torchvision compares the target's first side with the width. */
	return fmin(target[1] / height, target[0] / width) * draw_between(seq, range[0], range[1]);
}

static double scale_draw_shortest(const struct op *op, uint32_t height, uint32_t width,
				  struct philox_seq *seq)
{
	const struct op_value *sizes = &op->value[OP_RANDOM_SHORTEST_SIZE_MIN_SIZE];
	const double size = sizes->number[draw_integer(seq, 0, sizes->count - 1)];
	const double ratio = size / BASE_MIN(height, width);

	if (op_is_null(op, OP_RANDOM_SHORTEST_SIZE_MAX_SIZE))
		return ratio;
	return fmin(ratio,
		    op_number(op, OP_RANDOM_SHORTEST_SIZE_MAX_SIZE, 0) / BASE_MAX(height, width));
}

/* Two numbers: height and width of what comes out. */
static void scale_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	double ratio, size;

	if (op->id == OP_RANDOM_RESIZE) {
		size = (double)draw_integer(
		    &drawn->seq, (int64_t)op_number(op, OP_RANDOM_RESIZE_MIN_SIZE, 0),
		    (int64_t)op_number(op, OP_RANDOM_RESIZE_MAX_SIZE, 0) - 1);
		drawn->number[0] = width <= height ? scale_other(size, width, height) : size;
		drawn->number[1] = width <= height ? size : scale_other(size, height, width);
		return;
	}
	ratio = op->id == OP_SCALE_JITTER ? scale_draw_jitter(op, height, width, &drawn->seq)
					  : scale_draw_shortest(op, height, width, &drawn->seq);
	drawn->number[0] = fmax(floor(height * ratio), 1);
	drawn->number[1] = fmax(floor(width * ratio), 1);
}

static bool scale_is_random(const struct op *op)
{
	const double *range = op->value[OP_SCALE_JITTER_SCALE_RANGE].number;

	if (op->id == OP_SCALE_JITTER)
		return range[0] < range[1];
	if (op->id == OP_RANDOM_SHORTEST_SIZE)
		return op->value[OP_RANDOM_SHORTEST_SIZE_MIN_SIZE].count > 1;
	return op_number(op, OP_RANDOM_RESIZE_MIN_SIZE, 0) + 1 <
	       op_number(op, OP_RANDOM_RESIZE_MAX_SIZE, 0);
}

static const char *scale_drawn_shape(const struct op *op, struct shape *shape)
{
	shape->height = shape->width = 0;
	if (op->id == OP_RANDOM_RESIZE && op_number(op, OP_RANDOM_RESIZE_MIN_SIZE, 0) >=
					      op_number(op, OP_RANDOM_RESIZE_MAX_SIZE, 0))
		return "\"max_size\" is not above \"min_size\"; give a larger one";
	return NULL;
}

const struct op_impl scale_drawn_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = scale_drawn_shape,
    .draw = scale_draw,
    .is_random = scale_is_random,
    .run = scale_run,
    .follow = scale_follow,
};
