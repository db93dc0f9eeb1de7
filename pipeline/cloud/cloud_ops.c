/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ops on points do. x, y and z are the first three channels; others stay with their point, and of these normals turn and
 * flip with it. A number is computed in double, and rounded to float32 once for each op.
 *
 * drawn->number[0] says whether the op is done at all; numbers for each point go on in drawn->seq, point after point.
 */

#include "pipeline/cloud/cloud.h"

#include <math.h>

#include "base/exact.h"

#define CLOUD_PI 3.14159265358979323846

enum cloud_unit { CLOUD_SPHERE = 0, CLOUD_CUBE = 1 }; /* as op_unit_words */
enum cloud_middle { CLOUD_MEAN = 0, CLOUD_BOX = 1 };  /* as op_middle_words */

static void cloud_draw_chance(const struct op *op, unsigned p, struct op_drawn *drawn)
{
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, p, 0));
}

static float *cloud_point(const struct cloud_part *part, size_t i)
{
	return part->at + i * part->cloud->channels;
}

/* ---- which points there are ---- */

bool cloud_is_in_range(void *arg, const float *point)
{
	const double *range = arg;

	for (unsigned k = 0; k < 3; k++)
		if ((double)point[k] < range[k] || (double)point[k] > range[k + 3])
			return false;
	return true;
}

static void cloud_range(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	double range[6];

	(void)drawn;
	memcpy(range, op->value[OP_POINT_RANGE_RANGE].number, sizeof(range));
	cloud_keep(part, cloud_is_in_range, range);
}

const struct op_impl cloud_range_op = {
    .stage = OP_STAGE_CLOUD, .cloud = cloud_range, .cloud_boxes = cloud_boxes_range};

static void cloud_sample(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	cloud_choose((enum cloud_pick)op_number(op, OP_POINT_SAMPLE_PICK, 0),
		     (uint32_t)op_number(op, OP_POINT_SAMPLE_POINTS, 0), &drawn->seq, part);
}

static void cloud_draw_always(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	(void)op, (void)height, (void)width;
	drawn->number[0] = 1;
}

static bool cloud_sample_varies(const struct op *op)
{
	return op_number(op, OP_POINT_SAMPLE_PICK, 0) == CLOUD_RANDOM;
}

const struct op_impl cloud_sample_op = {.stage = OP_STAGE_CLOUD,
					.draw = cloud_draw_always,
					.is_random = cloud_sample_varies,
					.cloud = cloud_sample};

static void cloud_shuffle(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	(void)op;
	cloud_shuffle_first(&drawn->seq, part->n, part);
}

const struct op_impl cloud_shuffle_op = {
    .stage = OP_STAGE_CLOUD, .draw = cloud_draw_always, .cloud = cloud_shuffle};

static bool cloud_is_lucky(void *arg, const float *point)
{
	struct op_drawn *drawn = arg;

	(void)point;
	return philox_unit(&drawn->seq) >= drawn->number[1];
}

static void cloud_dropout(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	(void)op;
	cloud_keep(part, cloud_is_lucky, drawn);
}

static void cloud_draw_dropout(const struct op *op, uint32_t height, uint32_t width,
			       struct op_drawn *drawn)
{
	(void)height, (void)width;
	cloud_draw_chance(op, OP_POINT_DROPOUT_P, drawn);
	drawn->number[1] = draw_between(&drawn->seq, op_number(op, OP_POINT_DROPOUT_RATIO, 0),
					op_number(op, OP_POINT_DROPOUT_RATIO, 1));
}

static bool cloud_dropout_varies(const struct op *op)
{
	return op_varies(op, OP_POINT_DROPOUT_P, op_number(op, OP_POINT_DROPOUT_RATIO, 1) > 0);
}

const struct op_impl cloud_dropout_op = {.stage = OP_STAGE_CLOUD,
					 .draw = cloud_draw_dropout,
					 .is_random = cloud_dropout_varies,
					 .cloud = cloud_dropout};

/* ---- where they are ---- */

void cloud_turn(const double *matrix, float *at)
{
	const double x = (double)at[0], y = (double)at[1], z = (double)at[2];

	for (unsigned k = 0; k < 3; k++, matrix += 3)
		at[k] = (float)(matrix[0] * x + matrix[1] * y + matrix[2] * z);
}

static void cloud_rotate(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	const unsigned normals = part->cloud->normals;

	(void)op;
	for (size_t i = 0; i < part->n; i++) {
		cloud_turn(&drawn->number[CLOUD_DRAWN_MATRIX], cloud_point(part, i));
		if (normals > 0)
			cloud_turn(&drawn->number[CLOUD_DRAWN_MATRIX],
				   cloud_point(part, i) + normals);
	}
}

/* Counter-clockwise for who looks against the axis. */
static void cloud_matrix_of_axis(enum cloud_axis axis, double degrees, double ret[9])
{
	const double angle = degrees * CLOUD_PI / 180, cosine = exact_cos(angle),
		     sine = exact_sin(angle);
	const unsigned u = ((unsigned)axis + 1) % 3, v = ((unsigned)axis + 2) % 3;

	memset(ret, 0, 9 * sizeof(*ret));
	ret[4 * (unsigned)axis] = 1;
	ret[4 * u] = ret[4 * v] = cosine;
	ret[3 * u + v] = -sine;
	ret[3 * v + u] = sine;
}

/* Of a quaternion that is uniform among those of length 1: Shoemake, "Uniform random rotations", Graphics Gems III, 1992. */
static void cloud_matrix_of_any(struct philox_seq *seq, double ret[9])
{
	const double share = philox_unit(seq), one = 2 * CLOUD_PI * philox_unit(seq),
		     other = 2 * CLOUD_PI * philox_unit(seq);
	const double x = sqrt(1 - share) * exact_sin(one), y = sqrt(1 - share) * exact_cos(one);
	const double z = sqrt(share) * exact_sin(other), w = sqrt(share) * exact_cos(other);
	const double matrix[9] = {
	    1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
	    2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
	    2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};

	memcpy(ret, matrix, sizeof(matrix));
}

static void cloud_draw_rotation(const struct op *op, uint32_t height, uint32_t width,
				struct op_drawn *drawn)
{
	const enum cloud_axis axis = (enum cloud_axis)op_number(op, OP_POINT_ROTATION_AXIS, 0);
	double degrees;

	(void)height, (void)width;
	cloud_draw_chance(op, OP_POINT_ROTATION_P, drawn);
	if (axis == CLOUD_ANY) {
		cloud_matrix_of_any(&drawn->seq, &drawn->number[CLOUD_DRAWN_MATRIX]);
		return;
	}
	degrees = draw_between(&drawn->seq, op_number(op, OP_POINT_ROTATION_DEGREES, 0),
			       op_number(op, OP_POINT_ROTATION_DEGREES, 1));
	cloud_matrix_of_axis(axis, degrees, &drawn->number[CLOUD_DRAWN_MATRIX]);
	drawn->number[CLOUD_DRAWN_ANGLE] = degrees * CLOUD_PI / 180;
}

static bool cloud_rotation_varies(const struct op *op)
{
	return op_varies(op, OP_POINT_ROTATION_P, op_is_span(op, OP_POINT_ROTATION_DEGREES));
}

const struct op_impl cloud_rotation_op = {.stage = OP_STAGE_CLOUD,
					  .draw = cloud_draw_rotation,
					  .is_random = cloud_rotation_varies,
					  .cloud = cloud_rotate,
					  .cloud_boxes = cloud_boxes_rotate};

static void cloud_flip(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	const unsigned axis = (unsigned)op_number(op, OP_POINT_FLIP_AXIS, 0),
		       normals = part->cloud->normals;

	(void)drawn;
	for (size_t i = 0; i < part->n; i++) {
		float *point = cloud_point(part, i);

		point[axis] = -point[axis];
		if (normals > 0)
			point[normals + axis] = -point[normals + axis];
	}
}

static void cloud_draw_flip(const struct op *op, uint32_t height, uint32_t width,
			    struct op_drawn *drawn)
{
	(void)height, (void)width;
	cloud_draw_chance(op, OP_POINT_FLIP_P, drawn);
}

static bool cloud_flip_varies(const struct op *op)
{
	return op_varies(op, OP_POINT_FLIP_P, false);
}

const struct op_impl cloud_flip_op = {.stage = OP_STAGE_CLOUD,
				      .draw = cloud_draw_flip,
				      .is_random = cloud_flip_varies,
				      .cloud = cloud_flip,
				      .cloud_boxes = cloud_boxes_flip};

/* x, y and z times the first three numbers, and the others added. */
static void cloud_move(const double factor[3], const double shift[3], struct cloud_part *part)
{
	for (size_t i = 0; i < part->n; i++) {
		float *point = cloud_point(part, i);

		for (unsigned k = 0; k < 3; k++)
			point[k] = (float)((double)point[k] * factor[k] + shift[k]);
	}
}

static void cloud_scale(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	(void)op;
	cloud_move(&drawn->number[1], (const double[3]){0, 0, 0}, part);
}

static void cloud_draw_scale(const struct op *op, uint32_t height, uint32_t width,
			     struct op_drawn *drawn)
{
	const bool is_each = op_number(op, OP_POINT_SCALE_ANISOTROPIC, 0) != 0;

	(void)height, (void)width;
	cloud_draw_chance(op, OP_POINT_SCALE_P, drawn);
	for (unsigned k = 0; k < 3; k++)
		drawn->number[1 + k] =
		    k > 0 && !is_each
			? drawn->number[1]
			: draw_between(&drawn->seq, op_number(op, OP_POINT_SCALE_SCALE, 0),
				       op_number(op, OP_POINT_SCALE_SCALE, 1));
}

static bool cloud_scale_varies(const struct op *op)
{
	return op_varies(op, OP_POINT_SCALE_P, op_is_span(op, OP_POINT_SCALE_SCALE));
}

const struct op_impl cloud_scale_op = {.stage = OP_STAGE_CLOUD,
				       .draw = cloud_draw_scale,
				       .is_random = cloud_scale_varies,
				       .cloud = cloud_scale,
				       .cloud_boxes = cloud_boxes_scale};

static void cloud_translate(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	(void)op;
	cloud_move((const double[3]){1, 1, 1}, &drawn->number[1], part);
}

static void cloud_draw_translation(const struct op *op, uint32_t height, uint32_t width,
				   struct op_drawn *drawn)
{
	const struct op_value *most = &op->value[OP_POINT_TRANSLATION_TRANSLATE];

	(void)height, (void)width;
	cloud_draw_chance(op, OP_POINT_TRANSLATION_P, drawn);
	for (unsigned k = 0; k < 3; k++) {
		const double edge = most->number[most->count == 3 ? k : 0];

		drawn->number[1 + k] = draw_between(&drawn->seq, -edge, edge);
	}
}

static bool cloud_translation_varies(const struct op *op)
{
	return op_varies(op, OP_POINT_TRANSLATION_P, true);
}

const struct op_impl cloud_translation_op = {.stage = OP_STAGE_CLOUD,
					     .draw = cloud_draw_translation,
					     .is_random = cloud_translation_varies,
					     .cloud = cloud_translate,
					     .cloud_boxes = cloud_boxes_translate};

static void cloud_jitter(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	const double sigma = op_number(op, OP_POINT_JITTER_SIGMA, 0);
	const double clip = op_is_null(op, OP_POINT_JITTER_CLIP)
				? INFINITY
				: op_number(op, OP_POINT_JITTER_CLIP, 0);

	for (size_t i = 0; i < part->n; i++) {
		float *point = cloud_point(part, i);

		for (unsigned k = 0; k < 3; k++) {
			const double shift = sigma * (double)draw_normal_float(&drawn->seq);

			point[k] =
			    (float)((double)point[k] + BASE_MAX(-clip, BASE_MIN(shift, clip)));
		}
	}
}

static void cloud_draw_jitter(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	(void)height, (void)width;
	cloud_draw_chance(op, OP_POINT_JITTER_P, drawn);
}

static bool cloud_jitter_varies(const struct op *op)
{
	return op_varies(op, OP_POINT_JITTER_P, true);
}

const struct op_impl cloud_jitter_op = {.stage = OP_STAGE_CLOUD,
					.draw = cloud_draw_jitter,
					.is_random = cloud_jitter_varies,
					.cloud = cloud_jitter};

/* ---- what a model takes in ---- */

static void cloud_find_middle(const struct cloud_part *part, enum cloud_middle which, double ret[3])
{
	for (unsigned k = 0; k < 3; k++) {
		double sum = 0, least = INFINITY, most = -INFINITY;

		for (size_t i = 0; i < part->n; i++) {
			const double x = (double)cloud_point(part, i)[k];

			sum += x;
			least = BASE_MIN(least, x);
			most = BASE_MAX(most, x);
		}
		ret[k] = which == CLOUD_BOX && part->n > 0
			     ? (least + most) / 2
			     : sum / (double)BASE_MAX(part->n, (size_t)1);
	}
}

/* The middle becomes 0, and what was `size` from it 1; the boxes are told. */
static void cloud_to_middle(const double middle[3], double size, struct op_drawn *drawn,
			    struct cloud_part *part)
{
	memcpy(&drawn->number[1], middle, 3 * sizeof(*middle));
	drawn->number[4] = size;
	for (size_t i = 0; i < part->n; i++)
		for (unsigned k = 0; k < 3; k++)
			cloud_point(part, i)[k] =
			    (float)(((double)cloud_point(part, i)[k] - middle[k]) / size);
}

static void cloud_center(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	double middle[3];

	cloud_find_middle(part, (enum cloud_middle)op_number(op, OP_POINT_CENTER_BY, 0), middle);
	cloud_to_middle(middle, 1, drawn, part);
}

const struct op_impl cloud_center_op = {
    .stage = OP_STAGE_CLOUD, .cloud = cloud_center, .cloud_boxes = cloud_boxes_to_middle};

static void cloud_to_unit(const struct op *op, struct op_drawn *drawn, struct cloud_part *part)
{
	const bool is_cube = (enum cloud_unit)op_number(op, OP_POINT_UNIT_TO, 0) == CLOUD_CUBE;
	double middle[3], most = 0;

	cloud_find_middle(part, CLOUD_MEAN, middle);
	for (size_t i = 0; i < part->n; i++) {
		double squares = 0, side = 0;

		for (unsigned k = 0; k < 3; k++) {
			const double x = (double)cloud_point(part, i)[k] - middle[k];

			squares += x * x;
			side = BASE_MAX(side, fabs(x));
		}
		most = BASE_MAX(most, is_cube ? side : sqrt(squares));
	}
	cloud_to_middle(middle, most > 0 ? most : 1, drawn, part);
}

const struct op_impl cloud_unit_op = {
    .stage = OP_STAGE_CLOUD, .cloud = cloud_to_unit, .cloud_boxes = cloud_boxes_to_middle};

void cloud_normalize(const struct op_list *ops, const struct op *op, struct cloud_part *part)
{
	for (unsigned c = 0; c < part->cloud->channels; c++) {
		const float mean = (float)op_channel(ops, op, OP_NORMALIZE_MEAN, c);
		const float deviation = (float)op_channel(ops, op, OP_NORMALIZE_STD, c);

		for (size_t i = 0; i < part->n; i++)
			cloud_point(part, i)[c] = (cloud_point(part, i)[c] - mean) / deviation;
	}
}
