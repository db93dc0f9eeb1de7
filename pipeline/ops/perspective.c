/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_perspective: torchvision's RandomPerspective on Pillow's pictures.
 *
 * Each corner of the picture goes to a drawn place, and the four together say where every pixel comes from: eight
 * coefficients, which warp.c takes. torchvision has LAPACK solve eight equations for them, whose last bits differ
 * from machine to machine, and keeps a float32 of each. Here each is a quotient of whole numbers, the same on all
 * machines, and a float32, too, which is nearly always the one of torchvision.
 *
 * Four places for which the equations have no one solution are rare, but where a side has one pixel only: the picture
 * stays as it is there. torchvision fails, or takes any. Where three lie on a line there is one, with which all pixels come
 * from one place, here as there.
 */

#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/warp.h"

/* No number here has more than 120 bits, as no picture has more than OP_MAX_PIXELS. */
typedef __int128 perspective_whole;

struct perspective_corner { /* the places where the corners go, clockwise from the upper left one */
	perspective_whole x, y;
};

/* The most pixels that a corner goes along a side. */
static int64_t perspective_reach(const struct op *op, uint32_t size)
{
	return (int64_t)(op_number(op, OP_RANDOM_PERSPECTIVE_DISTORTION_SCALE, 0) * (size / 2));
}

/* Nine numbers: is it done (then 1), and x and y of the four corners. */
static void perspective_draw(const struct op *op, uint32_t height, uint32_t width,
			     struct op_drawn *drawn)
{
	const int64_t across = perspective_reach(op, width), down = perspective_reach(op, height);

	if (!draw_chance(&drawn->seq, op_number(op, OP_RANDOM_PERSPECTIVE_P, 0)))
		return;
	drawn->number[0] = 1;
	for (unsigned i = 0; i < 4; i++) {
		const int64_t left = i == 1 || i == 2 ? width - 1 - across : 0;
		const int64_t top = i >= 2 ? height - 1 - down : 0;

		drawn->number[1 + 2 * i] = (double)draw_integer(&drawn->seq, left, left + across);
		drawn->number[2 + 2 * i] = (double)draw_integer(&drawn->seq, top, top + down);
	}
}

static bool perspective_is_random(const struct op *op)
{
	return op_number(op, OP_RANDOM_PERSPECTIVE_P, 0) > 0 &&
	       op_number(op, OP_RANDOM_PERSPECTIVE_DISTORTION_SCALE, 0) > 0;
}

/* From the unit square to the corners, times some number: Heckbert's formula. Row by row. */
static void perspective_of_square(const struct perspective_corner p[4], perspective_whole m[9])
{
	const perspective_whole x1 = p[1].x - p[2].x, x2 = p[3].x - p[2].x;
	const perspective_whole y1 = p[1].y - p[2].y, y2 = p[3].y - p[2].y;
	const perspective_whole x = p[0].x - p[1].x - x2, y = p[0].y - p[1].y - y2;

	m[6] = x * y2 - x2 * y;
	m[7] = x1 * y - x * y1;
	m[8] = x1 * y2 - x2 * y1;
	m[0] = (p[1].x - p[0].x) * m[8] + p[1].x * m[6];
	m[1] = (p[3].x - p[0].x) * m[8] + p[3].x * m[7];
	m[2] = p[0].x * m[8];
	m[3] = (p[1].y - p[0].y) * m[8] + p[1].y * m[6];
	m[4] = (p[3].y - p[0].y) * m[8] + p[3].y * m[7];
	m[5] = p[0].y * m[8];
}

/* The other way, times some number. */
static void perspective_inverse(const perspective_whole m[9], perspective_whole n[9])
{
	for (unsigned i = 0; i < 3; i++) {
		const perspective_whole *a = &m[3 * ((i + 1) % 3)], *b = &m[3 * ((i + 2) % 3)];

		n[i] = a[1] * b[2] - a[2] * b[1];
		n[3 + i] = a[2] * b[0] - a[0] * b[2];
		n[6 + i] = a[0] * b[1] - a[1] * b[0];
	}
}

/* From a pixel of the result to its place in the picture (warp.h). False: the picture stays. */
static bool perspective_matrix(const struct op_drawn *drawn, uint32_t height, uint32_t width,
			       double matrix[8])
{
	const perspective_whole side[3] = {width - 1, height - 1, 1}; /* of the square's each row */
	struct perspective_corner corner[4];
	perspective_whole from_square[9], to_square[9];

	if (drawn->number[0] == 0)
		return false;
	for (unsigned i = 0; i < 4; i++)
		corner[i] =
		    (struct perspective_corner){(perspective_whole)drawn->number[1 + 2 * i],
						(perspective_whole)drawn->number[2 + 2 * i]};
	perspective_of_square(corner, from_square);
	perspective_inverse(from_square, to_square);
	if (to_square[8] == 0)
		return false;
	for (unsigned i = 0; i < 8; i++)
		matrix[i] = (float)((double)(to_square[i] * side[i / 3]) / (double)to_square[8]);
	return true;
}

static int perspective_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	struct picture to;
	uint8_t fill[3];
	double matrix[8];
	int r;

	if (!perspective_matrix(drawn, picture->height, picture->width, matrix))
		return 0;
	r = steps_begin(scratch, picture->height, picture->width, &to);
	if (r != 0)
		return r;
	op_color(op, OP_RANDOM_PERSPECTIVE_FILL, fill);
	warp_perspective(picture, &to, matrix,
			 (enum warp_filter)op_number(op, OP_RANDOM_PERSPECTIVE_INTERPOLATION, 0),
			 fill);
	steps_end(scratch, &to, picture);
	return 0;
}

static void perspective_follow(const struct op *op, const struct op_drawn *drawn,
			       struct follow *follow)
{
	double matrix[8];

	(void)op;
	if (perspective_matrix(drawn, (uint32_t)follow->height, (uint32_t)follow->width, matrix))
		follow_turn(follow, matrix, follow->height, follow->width);
}

const struct op_impl perspective_op = {
    .stage = OP_STAGE_PICTURE,
    .draw = perspective_draw,
    .is_random = perspective_is_random,
    .run = perspective_run,
    .follow = perspective_follow,
};
