/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rotate and affine: torchvision's RandomRotation and RandomAffine on Pillow's pictures.
 *
 * Both are one inverse matrix, from a pixel of the result to its place in the picture, computed here
 * with the same operations in the same order as Pillow's Image.rotate (whose entries are rounded to
 * 15 decimals) and torchvision's _get_inverse_affine_matrix; warp.c does the rest. Turns by multiples
 * of 90 degrees around the middle are no transforms in Pillow but exchanges of pixels.
 */

#include <float.h>
#include <math.h>
#include <stdio.h>
#include "base/exact.h"
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/turn.h"

#define TURN_PI 3.14159265358979323846

static double turn_radians(double degrees)
{
	return degrees * (TURN_PI / 180.0);
}

/* Python's round(value, 15): the decimal number that is nearest to the exact value. */
static double turn_rounded(double value)
{
	char text[64];

	snprintf(text, sizeof(text), "%.15f", value);
	return strtod(text, NULL);
}

static double turn_at_x(const double m[6], double x, double y)
{
	return m[0] * x + m[1] * y + m[2];
}

static double turn_at_y(const double m[6], double x, double y)
{
	return m[3] * x + m[4] * y + m[5];
}

/* Where the corners of a picture of that size come from: [left, top, right, bottom] around them. */
static void turn_around(const double m[6], double height, double width, double ret[4])
{
	ret[0] = ret[1] = DBL_MAX;
	ret[2] = ret[3] = -DBL_MAX;
	for (unsigned i = 0; i < 4; i++) {
		const double x = i & 1 ? width : 0, y = i & 2 ? height : 0;

		ret[0] = fmin(ret[0], turn_at_x(m, x, y));
		ret[1] = fmin(ret[1], turn_at_y(m, x, y));
		ret[2] = fmax(ret[2], turn_at_x(m, x, y));
		ret[3] = fmax(ret[3], turn_at_y(m, x, y));
	}
}

/* The picture with as much around it as the result shows and its filter needs; the matrix is of that one then. */
static int turn_pad(struct steps_scratch *scratch, const struct turn *turn, double m[6],
		    uint64_t height, uint64_t width, struct picture *picture)
{
	struct pad pad = {.mode = turn->border};
	double around[4];

	turn_around(m, (double)height, (double)width, around);
	around[0] = fmin(floor(around[0]) - 2, 0);
	around[1] = fmin(floor(around[1]) - 2, 0);
	around[2] = fmax(ceil(around[2]) + 2, picture->width);
	around[3] = fmax(ceil(around[3]) + 2, picture->height);
	if ((around[2] - around[0]) * (around[3] - around[1]) > (double)OP_MAX_PIXELS)
		return PIPELINE_FAIL_REFUSED;
	pad.left = (int64_t)around[0];
	pad.top = (int64_t)around[1];
	pad.width = (uint64_t)(around[2] - around[0]);
	pad.height = (uint64_t)(around[3] - around[1]);
	m[2] -= around[0];
	m[5] -= around[1];
	return pad_run(scratch, &pad, picture);
}

int turn_warp(struct steps_scratch *scratch, const struct turn *turn, const double inverse[6],
	      uint64_t height, uint64_t width, struct picture *picture)
{
	struct picture to;
	uint32_t *table;
	double matrix[6];
	int r = 0;

	memcpy(matrix, inverse, sizeof(matrix));
	if (turn->border != PAD_CONSTANT)
		r = turn_pad(scratch, turn, matrix, height, width, picture);
	r = r ? r : steps_begin(scratch, height, width, &to);
	if (r != 0)
		return r;
	table = steps_work(scratch, (size_t)width * sizeof(*table));
	if (!table)
		return PIPELINE_FAIL_MEMORY;
	warp_run(picture, &to, matrix, turn->filter, turn->fill, table);
	steps_end(scratch, &to, picture);
	return 0;
}

/* ---- rotate ---- */

/* A quarter turn, counter-clockwise or the other way. */
static int turn_quarter(struct steps_scratch *scratch, bool clockwise, struct picture *picture)
{
	const uint32_t height = picture->width, width = picture->height;
	struct picture to;
	int r = steps_begin(scratch, height, width, &to);

	if (r != 0)
		return r;
	for (uint32_t y = 0; y < height; y++) {
		const size_t column = (size_t)(clockwise ? y : height - 1 - y) * 4;
		uint8_t *out = picture_row(&to, y);

		for (uint32_t x = 0; x < width; x++)
			memcpy(out + 4 * (size_t)x,
			       picture_row(picture, clockwise ? width - 1 - x : x) + column, 4);
	}
	steps_end(scratch, &to, picture);
	return 0;
}

/* Does Pillow turn by this angle (0 <= angle < 360) without a transform? */
static bool turn_is_exchange(const struct turn *turn, double angle, const struct picture *picture)
{
	if (turn->has_center)
		return false;
	if (angle == 0 || angle == 180)
		return true;
	return (angle == 90 || angle == 270) && (turn->expand || picture->width == picture->height);
}

static void turn_rotate_matrix(const struct turn *turn, double angle, double height, double width,
			       double m[6])
{
	const double radians = -turn_radians(angle);
	const double x = turn->has_center ? turn->center[0] : width / 2.0;
	const double y = turn->has_center ? turn->center[1] : height / 2.0;
	double left, top;

	m[0] = m[4] = turn_rounded(exact_cos(radians));
	m[1] = turn_rounded(exact_sin(radians));
	m[3] = turn_rounded(-exact_sin(radians));
	m[2] = m[5] = 0;
	left = turn_at_x(m, -x, -y);
	top = turn_at_y(m, -x, -y);
	m[2] = left + x;
	m[5] = top + y;
}

/* The size that holds the turned picture, and the matrix for it. */
static void turn_expand(double m[6], double height, double width, uint64_t *ret_height,
			uint64_t *ret_width)
{
	double around[4], left, top;

	turn_around(m, height, width, around);
	*ret_width = (uint64_t)(ceil(around[2]) - floor(around[0]));
	*ret_height = (uint64_t)(ceil(around[3]) - floor(around[1]));
	left = turn_at_x(m, -((double)*ret_width - width) / 2.0,
			 -((double)*ret_height - height) / 2.0);
	top = turn_at_y(m, -((double)*ret_width - width) / 2.0,
			-((double)*ret_height - height) / 2.0);
	m[2] = left;
	m[5] = top;
}

/* 0 <= angle < 360 */
static double turn_angle(const struct turn *turn)
{
	const double angle = fmod(turn->angle, 360);

	return angle < 0 ? angle + 360 : angle;
}

/* The matrix, and the size of what comes out. */
static void turn_rotate_map(const struct turn *turn, uint32_t height, uint32_t width, double m[6],
			    uint64_t *ret_height, uint64_t *ret_width)
{
	turn_rotate_matrix(turn, turn_angle(turn), height, width, m);
	*ret_height = height;
	*ret_width = width;
	if (turn->expand)
		turn_expand(m, height, width, ret_height, ret_width);
}

int turn_rotate(struct steps_scratch *scratch, const struct turn *turn, struct picture *picture)
{
	const double angle = turn_angle(turn);
	uint64_t height, width;
	double matrix[6];

	if (turn_is_exchange(turn, angle, picture)) {
		if (angle == 180) {
			picture_mirror(picture);
			picture_turn_over(picture);
		}
		if (angle == 90 || angle == 270)
			return turn_quarter(scratch, angle == 270, picture);
		return 0;
	}
	turn_rotate_map(turn, picture->height, picture->width, matrix, &height, &width);
	return turn_warp(scratch, turn, matrix, height, width, picture);
}

/* ---- affine ---- */

static void turn_affine_matrix(const struct turn *turn, double height, double width, double m[6])
{
	const double angle = turn_radians(turn->angle);
	const double shear_x = turn_radians(turn->shear[0]), shear_y = turn_radians(turn->shear[1]);
	const double x = turn->has_center ? turn->center[0] : width * 0.5;
	const double y = turn->has_center ? turn->center[1] : height * 0.5;
	const double moved_x = x + turn->shift[0], moved_y = y + turn->shift[1];
	const double a = exact_cos(angle - shear_y) / exact_cos(shear_y);
	const double b = -(a * exact_tan(shear_x) + exact_sin(angle));
	const double c = exact_sin(angle - shear_y) / exact_cos(shear_y);
	const double d = exact_cos(angle) - c * exact_tan(shear_x);
	const double scale_y = turn->scale_y > 0 ? turn->scale_y : turn->scale;

	m[0] = d / turn->scale;
	m[1] = -b / turn->scale;
	m[3] = -c / scale_y;
	m[4] = a / scale_y;
	m[2] = 0 + (x - m[0] * moved_x - m[1] * moved_y);
	m[5] = 0 + (y - m[3] * moved_x - m[4] * moved_y);
}

int turn_affine(struct steps_scratch *scratch, const struct turn *turn, struct picture *picture)
{
	double matrix[6];

	turn_affine_matrix(turn, picture->height, picture->width, matrix);
	return turn_warp(scratch, turn, matrix, picture->height, picture->width, picture);
}

/* ---- the ops ---- */

static void turn_set_center(struct turn *turn, const struct op *op, unsigned param)
{
	turn->has_center = !op_is_null(op, param);
	turn->center[0] = op_number(op, param, 0);
	turn->center[1] = op_number(op, param, 1);
}

static const char *turn_rotate_shape(const struct op *op, struct shape *shape)
{
	const double angle = op_number(op, OP_ROTATE_DEGREES, 0);
	const uint32_t height = shape->height;

	if (op_number(op, OP_ROTATE_EXPAND, 0) == 0)
		return NULL;
	if (angle < op_number(op, OP_ROTATE_DEGREES, 1) || fmod(angle, 90) != 0 ||
	    !op_is_null(op, OP_ROTATE_CENTER)) {
		shape->height = shape->width = 0;
	} else if (fmod(angle, 180) != 0) { /* a quarter turn */
		shape->height = shape->width;
		shape->width = height;
	}
	return NULL;
}

/* One number: the angle. */
static void turn_rotate_draw(const struct op *op, uint32_t height, uint32_t width,
			     struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	drawn->number[0] = draw_between(&drawn->seq, op_number(op, OP_ROTATE_DEGREES, 0),
					op_number(op, OP_ROTATE_DEGREES, 1));
}

static bool turn_rotate_is_random(const struct op *op)
{
	return op_is_span(op, OP_ROTATE_DEGREES);
}

static struct turn turn_of_rotate(const struct op *op, const struct op_drawn *drawn)
{
	struct turn turn = {
	    .angle = drawn->number[0],
	    .expand = op_number(op, OP_ROTATE_EXPAND, 0) != 0,
	    .filter = (enum warp_filter)op_number(op, OP_ROTATE_INTERPOLATION, 0),
	    .border = (enum pad_mode)op_number(op, OP_ROTATE_PADDING_MODE, 0),
	};

	turn_set_center(&turn, op, OP_ROTATE_CENTER);
	op_color(op, OP_ROTATE_FILL, turn.fill);
	return turn;
}

static int turn_rotate_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	const struct turn turn = turn_of_rotate(op, drawn);

	return turn_rotate(scratch, &turn, picture);
}

static void turn_rotate_follow(const struct op *op, const struct op_drawn *drawn,
			       struct follow *follow)
{
	const struct turn turn = turn_of_rotate(op, drawn);
	uint64_t height, width;
	double matrix[8] = {0};

	turn_rotate_map(&turn, (uint32_t)follow->height, (uint32_t)follow->width, matrix, &height,
			&width);
	follow_turn(follow, matrix, (double)height, (double)width);
}

/* Seven numbers: angle, shift to the right and down, scale, the two shears, the scale of heights or 0. */
static void turn_affine_draw(const struct op *op, uint32_t height, uint32_t width,
			     struct op_drawn *drawn)
{
	struct philox_seq *seq = &drawn->seq;
	const double *degrees = op->value[OP_AFFINE_DEGREES].number;
	const double *scale = op->value[OP_AFFINE_SCALE].number;
	const double *shear = op->value[OP_AFFINE_SHEAR].number;

	drawn->number[0] = draw_between(seq, degrees[0], degrees[1]);
	if (!op_is_null(op, OP_AFFINE_TRANSLATE)) {
		double right = op_number(op, OP_AFFINE_TRANSLATE, 0) * width;
		double down = op_number(op, OP_AFFINE_TRANSLATE, 1) * height;

		drawn->number[1] = rint(draw_between(seq, -right, right));
		drawn->number[2] = rint(draw_between(seq, -down, down));
	}
	drawn->number[3] = 1;
	if (!op_is_null(op, OP_AFFINE_SCALE))
		drawn->number[3] = draw_between(seq, scale[0], scale[1]);
	if (!op_is_null(op, OP_AFFINE_SHEAR)) {
		drawn->number[4] = draw_between(seq, shear[0], shear[1]);
		drawn->number[5] = draw_between(seq, shear[2], shear[3]);
	}
	if (!op_is_null(op, OP_AFFINE_SCALE_Y))
		drawn->number[6] = draw_between(seq, op_number(op, OP_AFFINE_SCALE_Y, 0),
						op_number(op, OP_AFFINE_SCALE_Y, 1));
}

static bool turn_affine_is_random(const struct op *op)
{
	return op_is_span(op, OP_AFFINE_DEGREES) || op_is_span(op, OP_AFFINE_SCALE) ||
	       op_is_span(op, OP_AFFINE_SCALE_Y) || op_is_span(op, OP_AFFINE_SHEAR) ||
	       op_number(op, OP_AFFINE_SHEAR, 2) < op_number(op, OP_AFFINE_SHEAR, 3) ||
	       op_number(op, OP_AFFINE_TRANSLATE, 0) > 0 ||
	       op_number(op, OP_AFFINE_TRANSLATE, 1) > 0;
}

static struct turn turn_of_affine(const struct op *op, const struct op_drawn *drawn)
{
	const double *number = drawn->number;
	struct turn turn = {
	    .angle = number[0],
	    .shift = {number[1], number[2]},
	    .scale = number[3],
	    .shear = {number[4], number[5]},
	    .scale_y = number[6],
	    .filter = (enum warp_filter)op_number(op, OP_AFFINE_INTERPOLATION, 0),
	    .border = (enum pad_mode)op_number(op, OP_AFFINE_PADDING_MODE, 0),
	};

	turn_set_center(&turn, op, OP_AFFINE_CENTER);
	op_color(op, OP_AFFINE_FILL, turn.fill);
	return turn;
}

static int turn_affine_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	const struct turn turn = turn_of_affine(op, drawn);

	return turn_affine(scratch, &turn, picture);
}

static void turn_affine_follow(const struct op *op, const struct op_drawn *drawn,
			       struct follow *follow)
{
	const struct turn turn = turn_of_affine(op, drawn);
	double matrix[8] = {0};

	turn_affine_matrix(&turn, follow->height, follow->width, matrix);
	follow_turn(follow, matrix, follow->height, follow->width);
}

const struct op_impl turn_rotate_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = turn_rotate_shape,
    .draw = turn_rotate_draw,
    .is_random = turn_rotate_is_random,
    .run = turn_rotate_run,
    .follow = turn_rotate_follow,
};

const struct op_impl turn_affine_op = {
    .stage = OP_STAGE_PICTURE,
    .draw = turn_affine_draw,
    .is_random = turn_affine_is_random,
    .run = turn_affine_run,
    .follow = turn_affine_follow,
};
