/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hflip and vflip: torchvision's RandomHorizontalFlip and RandomVerticalFlip. In place.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"

/* p is the only parameter of both. */
_Static_assert(OP_VFLIP_P == OP_HFLIP_P, "one draw for both");

static void flip_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, OP_HFLIP_P, 0));
}

static bool flip_is_random(const struct op *op)
{
	double p = op_number(op, OP_HFLIP_P, 0);

	return p > 0 && p < 1;
}

static int flip_run_across(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	(void)scratch;
	(void)op;
	if (drawn->number[0] != 0)
		picture_mirror(picture);
	return 0;
}

static int flip_run_down(struct steps_scratch *scratch, const struct op *op,
			 const struct op_drawn *drawn, struct picture *picture)
{
	(void)scratch;
	(void)op;
	if (drawn->number[0] != 0)
		picture_turn_over(picture);
	return 0;
}

static void flip_follow_across(const struct op *op, const struct op_drawn *drawn,
			       struct follow *follow)
{
	(void)op;
	if (drawn->number[0] != 0)
		follow_mirror(follow);
}

static void flip_follow_down(const struct op *op, const struct op_drawn *drawn,
			     struct follow *follow)
{
	(void)op;
	if (drawn->number[0] != 0)
		follow_turn_over(follow);
}

const struct op_impl flip_across_op = {
    .stage = OP_STAGE_PICTURE,
    .draw = flip_draw,
    .is_random = flip_is_random,
    .run = flip_run_across,
    .follow = flip_follow_across,
};

const struct op_impl flip_down_op = {
    .stage = OP_STAGE_PICTURE,
    .draw = flip_draw,
    .is_random = flip_is_random,
    .run = flip_run_down,
    .follow = flip_follow_down,
};
