/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boxes of objects among the points: x, y and z of the middle, dx, dy and dz along the box's own axes, and yaw, the angle about z from
 * x to y. They go where the points in them go, by the formulas of OpenPCDet (pcdet/datasets/augmentor/augmentor_utils.py, box_utils.py:
 * mask_boxes_outside_range_numpy with use_center_to_filter, common_utils.py: limit_period), which are those of mmdetection3d's
 * LiDARInstance3DBoxes but for whole turns of yaw. vx and vy, where there are so many columns, turn, flip and scale with them; what
 * else a row has stays.
 *
 * A number is computed in double, and rounded to float32 once for each op. A box that leaves is marked by an x that is no number;
 * rows are put together behind the last op.
 */

#include "pipeline/cloud/cloud.h"

#include <math.h>

#define BOX_PI 3.14159265358979323846

enum { BOX_YAW = 6, BOX_VELOCITY = 7 };

static float *box_at(const struct cloud_boxes *boxes, size_t i)
{
	return boxes->at + i * boxes->columns;
}

static bool box_has_velocity(const struct cloud_boxes *boxes)
{
	return boxes->columns >= CLOUD_BOX_WITH_VELOCITY;
}

/* ---- what they can follow ---- */

static bool box_is_normalize_other(const struct op_list *ops, const struct op *op)
{
	for (unsigned c = 0; c < 3; c++)
		if (op_channel(ops, op, OP_NORMALIZE_MEAN, c) != 0 ||
		    op_channel(ops, op, OP_NORMALIZE_STD, c) != 1)
			return false;
	return true;
}

static const char *box_check_op(const struct op_list *ops, const struct op *op)
{
	if (op->id == OP_POINT_ROTATION && op_number(op, OP_POINT_ROTATION_AXIS, 0) != CLOUD_Z)
		return "boxes turn about z alone; give axis z, or give the boxes as a field that "
		       "stays";
	if (op->id == OP_POINT_SCALE && op_number(op, OP_POINT_SCALE_ANISOTROPIC, 0) != 0)
		return "a turned box would be none any more; leave anisotropic out, or give the "
		       "boxes as a field that stays";
	if (op->id == OP_NORMALIZE && !box_is_normalize_other(ops, op))
		return "x, y and z would no longer be those of the boxes; give mean 0 and std 1 "
		       "for these, or take point_unit";
	return NULL;
}

int cloud_boxes_check(const struct op_list *ops, const struct cloud *cloud, struct diag *diag)
{
	for (unsigned i = 1; i < cloud->end; i++) {
		const char *wrong = box_check_op(ops, &ops->op[i]);

		if (wrong)
			return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s", i + 1,
					 op_name(ops->op[i].id), wrong);
	}
	return 0;
}

/* ---- ops ---- */

void cloud_boxes_range(const struct op *op, const struct op_drawn *drawn,
		       const struct cloud_boxes *boxes)
{
	double range[6];

	(void)drawn;
	memcpy(range, op->value[OP_POINT_RANGE_RANGE].number, sizeof(range));
	for (size_t i = 0; i < boxes->n; i++)
		if (!cloud_is_in_range(range, box_at(boxes, i)))
			box_at(boxes, i)[0] = NAN;
}

void cloud_boxes_rotate(const struct op *op, const struct op_drawn *drawn,
			const struct cloud_boxes *boxes)
{
	const double *matrix = &drawn->number[CLOUD_DRAWN_MATRIX];

	(void)op;
	for (size_t i = 0; i < boxes->n; i++) {
		float *box = box_at(boxes, i);

		cloud_turn(matrix, box);
		box[BOX_YAW] = (float)((double)box[BOX_YAW] + drawn->number[CLOUD_DRAWN_ANGLE]);
		if (box_has_velocity(boxes)) {
			float velocity[3] = {box[BOX_VELOCITY], box[BOX_VELOCITY + 1], 0};

			cloud_turn(matrix, velocity);
			memcpy(box + BOX_VELOCITY, velocity, 2 * sizeof(*velocity));
		}
	}
}

void cloud_boxes_flip(const struct op *op, const struct op_drawn *drawn,
		      const struct cloud_boxes *boxes)
{
	const unsigned axis = (unsigned)op_number(op, OP_POINT_FLIP_AXIS, 0);

	(void)drawn;
	for (size_t i = 0; i < boxes->n; i++) {
		float *box = box_at(boxes, i);

		box[axis] = -box[axis];
		if (axis == CLOUD_X)
			box[BOX_YAW] = (float)-((double)box[BOX_YAW] + BOX_PI);
		else if (axis == CLOUD_Y)
			box[BOX_YAW] = -box[BOX_YAW];
		if (axis != CLOUD_Z && box_has_velocity(boxes))
			box[BOX_VELOCITY + axis] = -box[BOX_VELOCITY + axis];
	}
}

/* Of `n` numbers. */
static void box_times(float *at, unsigned n, double factor)
{
	for (unsigned k = 0; k < n; k++)
		at[k] = (float)((double)at[k] * factor);
}

void cloud_boxes_scale(const struct op *op, const struct op_drawn *drawn,
		       const struct cloud_boxes *boxes)
{
	(void)op;
	for (size_t i = 0; i < boxes->n; i++) {
		box_times(box_at(boxes, i), BOX_YAW, drawn->number[1]);
		if (box_has_velocity(boxes))
			box_times(box_at(boxes, i) + BOX_VELOCITY, 2, drawn->number[1]);
	}
}

void cloud_boxes_translate(const struct op *op, const struct op_drawn *drawn,
			   const struct cloud_boxes *boxes)
{
	(void)op;
	for (size_t i = 0; i < boxes->n; i++)
		for (unsigned k = 0; k < 3; k++)
			box_at(boxes, i)[k] =
			    (float)((double)box_at(boxes, i)[k] + drawn->number[1 + k]);
}

/* Drawn are the points' middle, which becomes 0, and what becomes 1. */
void cloud_boxes_to_middle(const struct op *op, const struct op_drawn *drawn,
			   const struct cloud_boxes *boxes)
{
	const double size = drawn->number[4];

	(void)op;
	for (size_t i = 0; i < boxes->n; i++) {
		float *box = box_at(boxes, i);

		for (unsigned k = 0; k < BOX_YAW; k++)
			box[k] =
			    (float)(((double)box[k] - (k < 3 ? drawn->number[1 + k] : 0)) / size);
		for (unsigned k = 0; k < 2 && box_has_velocity(boxes); k++)
			box[BOX_VELOCITY + k] = (float)((double)box[BOX_VELOCITY + k] / size);
	}
}

/* ---- behind them ---- */

void cloud_boxes_end(const struct cloud_boxes *boxes)
{
	for (size_t i = 0; i < boxes->n; i++) {
		float *yaw = box_at(boxes, i) + BOX_YAW;
		const double turns = floor((double)*yaw / (2 * BOX_PI) + 0.5);

		if (turns != 0)
			*yaw = (float)((double)*yaw - turns * 2 * BOX_PI);
	}
}

bool cloud_boxes_is_gone(const float *box)
{
	for (unsigned k = 0; k < CLOUD_BOX_NUMBERS; k++)
		if (!isfinite(box[k]))
			return true;
	return false;
}
