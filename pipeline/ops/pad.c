/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops pad and random_zoom_out, and padding for others: torchvision's pad of a Pillow picture, which is Pillow's
 * ImageOps.expand for one colour and numpy.pad for the other modes. As numpy does, a picture that is
 * smaller than its padding is reflected again and again.
 *
 * What surrounds a picture is a question of coordinates alone, row and column apart from each other:
 * a table says from which column each column of the window comes, or that it is filled.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/pad.h"

#define PAD_FILL UINT32_MAX

/* Where the pixel stands that is seen at `at` along an axis of size pixels. */
static uint32_t pad_place(int64_t at, uint32_t size, enum pad_mode mode)
{
	int64_t n = size, period;

	if (at >= 0 && at < n)
		return (uint32_t)at;
	if (mode == PAD_CONSTANT)
		return PAD_FILL;
	if (mode == PAD_EDGE || n == 1)
		return at < 0 ? 0 : size - 1;
	period = mode == PAD_REFLECT ? 2 * n - 2 : 2 * n;
	at %= period;
	if (at < 0)
		at += period;
	if (at >= n)
		at = (mode == PAD_REFLECT ? period : period - 1) - at;
	return (uint32_t)at;
}

static void pad_row(const uint8_t *in, uint8_t *out, const uint32_t *columns, const struct pad *pad)
{
	const uint8_t fill[4] = {pad->fill[0], pad->fill[1], pad->fill[2], 0};

	for (size_t x = 0; x < pad->width; x++)
		memcpy(out + 4 * x,
		       in && columns[x] != PAD_FILL ? in + 4 * (size_t)columns[x] : fill, 4);
}

int pad_run(struct steps_scratch *scratch, const struct pad *pad, struct picture *picture)
{
	struct picture to;
	uint32_t *columns;
	int r = steps_begin(scratch, pad->height, pad->width, &to);

	if (r != 0)
		return r;
	columns = steps_work(scratch, (size_t)pad->width * sizeof(*columns));
	if (!columns)
		return PIPELINE_FAIL_MEMORY;
	for (uint32_t x = 0; x < to.width; x++)
		columns[x] = pad_place(pad->left + x, picture->width, pad->mode);
	for (uint32_t y = 0; y < to.height; y++) {
		uint32_t row = pad_place(pad->top + y, picture->height, pad->mode);

		pad_row(row == PAD_FILL ? NULL : picture_row(picture, row), picture_row(&to, y),
			columns, pad);
	}
	steps_end(scratch, &to, picture);
	return 0;
}

/* ---- the op ---- */

static const char *pad_shape(const struct op *op, struct shape *shape)
{
	const double *sides = op->value[OP_PAD_PADDING].number; /* left, top, right, bottom */
	double height = shape->height + sides[1] + sides[3];
	double width = shape->width + sides[0] + sides[2];

	if (!shape->height)
		return NULL;
	if (height * width > (double)OP_MAX_PIXELS)
		return "the picture gets too large; give a smaller padding";
	shape->height = (uint32_t)height;
	shape->width = (uint32_t)width;
	return NULL;
}

static int pad_op_run(struct steps_scratch *scratch, const struct op *op,
		      const struct op_drawn *drawn, struct picture *picture)
{
	const double *sides = op->value[OP_PAD_PADDING].number;
	struct pad pad = {
	    .top = -(int64_t)sides[1],
	    .left = -(int64_t)sides[0],
	    .height = picture->height + (uint64_t)sides[1] + (uint64_t)sides[3],
	    .width = picture->width + (uint64_t)sides[0] + (uint64_t)sides[2],
	    .mode = (enum pad_mode)op_number(op, OP_PAD_PADDING_MODE, 0),
	};

	(void)drawn;
	op_color(op, OP_PAD_FILL, pad.fill);
	return pad_run(scratch, &pad, picture);
}

static void pad_follow(const struct op *op, const struct op_drawn *drawn, struct follow *follow)
{
	const double *sides = op->value[OP_PAD_PADDING].number;

	(void)drawn;
	follow_window(follow, -sides[1], -sides[0], follow->height + sides[1] + sides[3],
		      follow->width + sides[0] + sides[2]);
}

const struct op_impl pad_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = pad_shape,
    .run = pad_op_run,
    .follow = pad_follow,
};

/* ---- random_zoom_out ---- */

/* Four numbers: height and width of the larger picture, 0 where it is not done; and where in it the picture is, top and
 * left. */
static void pad_zoom_draw(const struct op *op, uint32_t height, uint32_t width,
			  struct op_drawn *drawn)
{
	const double *range = op->value[OP_RANDOM_ZOOM_OUT_SIDE_RANGE].number;
	double ratio;

	if (!draw_chance(&drawn->seq, op_number(op, OP_RANDOM_ZOOM_OUT_P, 0)))
		return;
	ratio = draw_between(&drawn->seq, range[0], range[1]);
	drawn->number[0] = floor(height * ratio);
	drawn->number[1] = floor(width * ratio);
	drawn->number[3] = floor((drawn->number[1] - width) * philox_unit(&drawn->seq));
	drawn->number[2] = floor((drawn->number[0] - height) * philox_unit(&drawn->seq));
}

static bool pad_zoom_is_random(const struct op *op)
{
	return op_number(op, OP_RANDOM_ZOOM_OUT_P, 0) > 0 &&
	       op_number(op, OP_RANDOM_ZOOM_OUT_SIDE_RANGE, 1) > 1;
}

static const char *pad_zoom_shape(const struct op *op, struct shape *shape)
{
	if (pad_zoom_is_random(op))
		shape->height = shape->width = 0;
	return NULL;
}

static int pad_zoom_run(struct steps_scratch *scratch, const struct op *op,
			const struct op_drawn *drawn, struct picture *picture)
{
	struct pad pad = {.top = -(int64_t)drawn->number[2],
			  .left = -(int64_t)drawn->number[3],
			  .height = (uint64_t)drawn->number[0],
			  .width = (uint64_t)drawn->number[1],
			  .mode = PAD_CONSTANT};

	if (pad.height == 0)
		return 0;
	op_color(op, OP_RANDOM_ZOOM_OUT_FILL, pad.fill);
	return pad_run(scratch, &pad, picture);
}

static void pad_zoom_follow(const struct op *op, const struct op_drawn *drawn,
			    struct follow *follow)
{
	(void)op;
	if (drawn->number[0] != 0)
		follow_window(follow, -drawn->number[2], -drawn->number[3], drawn->number[0],
			      drawn->number[1]);
}

const struct op_impl pad_zoom_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = pad_zoom_shape,
    .draw = pad_zoom_draw,
    .is_random = pad_zoom_is_random,
    .run = pad_zoom_run,
    .follow = pad_zoom_follow,
};
