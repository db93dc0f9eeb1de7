/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patches: the picture in a size of whole patches, near its own proportion.
 *
 * On pictures the op is a resize, to one of two sizes. With max_patches it is that of transformers'
 * Siglip2ImageProcessor and of timm's ResizeToSequence: the largest scale, found by halving an interval, whose sides,
 * rounded up to patches, have no more patches. With max_pixels it is the smart_resize of Qwen2-VL. Both are computed in
 * doubles and in the order that Python has, so that they come out the same to the last pixel.
 *
 * Ops behind it may do what they like to the pixels, but not to the size. Only when the picture is written to its field
 * (finish.c) is it taken apart, so that what is kept behind the op is a picture like others, and grids follow from its
 * size. The field has room for the most patches that any picture gets, which follows from the parameters.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/patches.h"

#define PATCHES_NARROW 200.0 /* times as long as narrow: Qwen2-VL refuses more */
#define PATCHES_CLOSE 1e-5   /* an interval of scales is not halved any more */
#define PATCHES_SCALE 100.0  /* the largest one */

static bool patches_is_by_pixels(const struct op *op)
{
	return !op_is_null(op, OP_PATCHES_MAX_PIXELS);
}

static double patches_side(double scale, double side, double patch)
{
	return fmax(patch, ceil(side * scale / patch) * patch);
}

static void patches_by_count(const struct op *op, double height, double width, double *ret_height,
			     double *ret_width)
{
	const double patch = op_number(op, OP_PATCHES_PATCH_SIZE, 0);
	const double most = op_number(op, OP_PATCHES_MAX_PATCHES, 0);
	double low = PATCHES_CLOSE / 10, high = PATCHES_SCALE;

	while (high - low >= PATCHES_CLOSE) {
		const double scale = (low + high) / 2;
		const double rows = patches_side(scale, height, patch) / patch;
		const double columns = patches_side(scale, width, patch) / patch;

		if (rows * columns <= most)
			low = scale;
		else
			high = scale;
	}
	*ret_height = patches_side(low, height, patch);
	*ret_width = patches_side(low, width, patch);
}

static void patches_by_pixels(const struct op *op, double height, double width, double *ret_height,
			      double *ret_width)
{
	const double block =
	    op_number(op, OP_PATCHES_PATCH_SIZE, 0) * op_number(op, OP_PATCHES_MERGE_SIZE, 0);
	const double least = op_number(op, OP_PATCHES_MIN_PIXELS, 0);
	const double most = op_number(op, OP_PATCHES_MAX_PIXELS, 0);
	double down = rint(height / block) * block, across = rint(width / block) * block, ratio;

	if (down * across > most) {
		ratio = sqrt(height * width / most);
		down = fmax(block, floor(height / ratio / block) * block);
		across = fmax(block, floor(width / ratio / block) * block);
	} else if (down * across < least) {
		ratio = sqrt(least / (height * width));
		down = ceil(height * ratio / block) * block;
		across = ceil(width * ratio / block) * block;
	}
	*ret_height = down;
	*ret_width = across;
}

void patches_size(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		  uint64_t *ret_width)
{
	double down = 0, across = 0;

	if (!patches_is_by_pixels(op))
		patches_by_count(op, height, width, &down, &across);
	else if ((double)BASE_MAX(height, width) / BASE_MIN(height, width) <= PATCHES_NARROW)
		patches_by_pixels(op, height, width, &down, &across);
	*ret_height = (uint64_t)down;
	*ret_width = (uint64_t)across;
}

/* The most pixels that smart_resize gives. Where it makes less of a picture, a narrow one's short side stays one block;
 * where it makes more, both sides are rounded up. */
static double patches_most_pixels(double block, double least, double most)
{
	const double made_less = block * sqrt(PATCHES_NARROW * most);
	const double sides = sqrt(PATCHES_NARROW) + 1 / sqrt(PATCHES_NARROW);
	const double made_more = least + block * sqrt(least) * sides + block * block;

	return fmax(most, fmax(made_less, made_more));
}

static const char *patches_check(const struct op *op)
{
	if (patches_is_by_pixels(op) != op_is_null(op, OP_PATCHES_MAX_PATCHES))
		return "give one of \"max_patches\" (NaFlex) and \"max_pixels\" (Qwen2-VL)";
	if (!patches_is_by_pixels(op) && op_number(op, OP_PATCHES_MERGE_SIZE, 0) > 1)
		return "\"merge_size\" goes with \"max_pixels\"; leave it out";
	return NULL;
}

static const char *patches_shape(const struct op *op, struct shape *shape)
{
	const double size = op_number(op, OP_PATCHES_PATCH_SIZE, 0);
	const double block = size * op_number(op, OP_PATCHES_MERGE_SIZE, 0);
	const char *wrong = patches_check(op);
	double most;

	if (wrong)
		return wrong;
	if (shape->frames)
		return "a clip has many pictures, and patches are of one; leave it out";
	if (patches_is_by_pixels(op)) {
		const double pixels = op_number(op, OP_PATCHES_MAX_PIXELS, 0);
		const double least = op_number(op, OP_PATCHES_MIN_PIXELS, 0);

		if (pixels < block * block || pixels < least)
			return "\"max_pixels\" is less than \"min_pixels\", or than a block of "
			       "patches has; "
			       "give more";
		most = floor(patches_most_pixels(block, least, pixels) / (block * block)) * block *
		       block / (size * size);
	} else {
		most = op_number(op, OP_PATCHES_MAX_PATCHES, 0);
	}
	if (most * size * size > (double)OP_MAX_PIXELS)
		return "the picture gets too large; give fewer or smaller patches";
	shape->height = shape->width = 0;
	shape->patches = (struct shape_patches){
	    .most = (uint32_t)most,
	    .size = (unsigned)size,
	    .block = (unsigned)op_number(op, OP_PATCHES_MERGE_SIZE, 0),
	    .times = op_is_null(op, OP_PATCHES_TEMPORAL_PATCH_SIZE)
			 ? 1
			 : (unsigned)op_number(op, OP_PATCHES_TEMPORAL_PATCH_SIZE, 0),
	    .is_timed = !op_is_null(op, OP_PATCHES_TEMPORAL_PATCH_SIZE),
	};
	return NULL;
}

static int patches_run(struct steps_scratch *scratch, const struct op *op,
		       const struct op_drawn *drawn, struct picture *picture)
{
	uint64_t height, width;

	(void)drawn;
	patches_size(op, picture->height, picture->width, &height, &width);
	if (height == 0)
		return steps_refuse(scratch, "over 200 times as long as wide");
	return steps_scale(scratch, (enum filter_id)op_number(op, OP_PATCHES_INTERPOLATION, 0),
			   height, width, picture);
}

static void patches_follow(const struct op *op, const struct op_drawn *drawn, struct follow *follow)
{
	uint64_t height, width;

	(void)drawn;
	patches_size(op, (uint32_t)follow->height, (uint32_t)follow->width, &height, &width);
	follow_scale(follow, (double)height, (double)width);
}

const struct op_impl patches_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = patches_shape,
    .run = patches_run,
    .follow = patches_follow,
};
