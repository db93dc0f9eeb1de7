/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops on volumes. Their names and parameters are near to MONAI's, and so is what they do: a crop that is larger than the volume has as much
 * outside on both sides, the odd one behind; the middle of a size is its half, rounded down.
 *
 * random_crop_by_label is MONAI's RandCropByPosNegLabel: a place with a label, or without one, is the middle, moved so that the crop lies within.
 * Where there are none of the wanted kind, it is one of the other.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/volume/volume_part.h"

_Static_assert((int)OP_RANDOM_CROP_3D_SIZE == (int)OP_CENTER_CROP_3D_SIZE &&
		   (int)OP_RANDOM_CROP_3D_SIZE == (int)OP_RANDOM_CROP_BY_LABEL_SIZE,
	       "one size for all");
_Static_assert((int)OP_RANDOM_FLIP_3D_P == (int)OP_RANDOM_ROTATE90_P &&
		   (int)OP_RANDOM_FLIP_3D_AXES == (int)OP_RANDOM_ROTATE90_AXES,
	       "one chance, and the axes, for both");
_Static_assert((int)OP_RANDOM_SCALE_INTENSITY_P == (int)OP_RANDOM_SHIFT_INTENSITY_P &&
		   (int)OP_RANDOM_SCALE_INTENSITY_FACTORS == (int)OP_RANDOM_SHIFT_INTENSITY_OFFSETS,
	       "one chance, and what is drawn, for both");

/* ---- crops ---- */

static int64_t volume_side(const struct op *op, unsigned axis)
{
	const struct op_value *size = &op->value[OP_RANDOM_CROP_3D_SIZE];

	return (int64_t)size->number[size->count == 1 ? 0 : axis];
}

static const char *volume_crop_shape(const struct op *op, struct shape *shape)
{
	const unsigned n = op->value[OP_RANDOM_CROP_3D_SIZE].count;

	if (n != 1 && n != VOLUME_AXES)
		return "size is one number, or [depth, height, width]";
	shape->depth = (uint32_t)volume_side(op, 0);
	shape->height = (uint32_t)volume_side(op, 1);
	shape->width = (uint32_t)volume_side(op, 2);
	if ((uint64_t)shape->depth * shape->height * shape->width * shape->channels > OP_MAX_PIXELS)
		return "it would have more than 178956970 numbers; give a smaller size";
	return NULL;
}

/* `size` places of an axis from `start` on, which are within it, or around all of it. */
static void volume_window(struct volume_part *part, unsigned a, int64_t start, int64_t size)
{
	struct volume_axis *axis = &part->axis[a];
	const int64_t from = axis->first + axis->step * BASE_MAX(start, 0);
	const int64_t to = axis->first + axis->step * (BASE_MIN(start + size, axis->size) - 1);

	part->least[axis->of] = BASE_MAX(part->least[axis->of], BASE_MIN(from, to));
	part->end[axis->of] = BASE_MIN(part->end[axis->of], BASE_MAX(from, to) + 1);
	axis->first += axis->step * start;
	axis->size = size;
}

/* The first place of a part of a longer axis; else with as much before as behind. */
static int64_t volume_around(int64_t have, int64_t size, int64_t start)
{
	if (have < size)
		return -((size - have) / 2);
	return BASE_MAX(0, BASE_MIN(start, have - size));
}

static void volume_random_crop(const struct op *op, struct op_drawn *drawn,
			       struct volume_part *part)
{
	for (unsigned a = 0; a < VOLUME_AXES; a++) {
		const int64_t have = part->axis[a].size, size = volume_side(op, a);
		const int64_t start = draw_integer(&drawn->seq, 0, BASE_MAX(have - size, 0));

		volume_window(part, a, volume_around(have, size, start), size);
	}
}

static void volume_center_crop(const struct op *op, struct op_drawn *drawn,
			       struct volume_part *part)
{
	(void)drawn;
	for (unsigned a = 0; a < VOLUME_AXES; a++) {
		const int64_t have = part->axis[a].size, size = volume_side(op, a);

		volume_window(part, a, volume_around(have, size, have / 2 - size / 2), size);
	}
}

static void volume_label_crop(const struct op *op, struct op_drawn *drawn, struct volume_part *part)
{
	const double pos = op_number(op, OP_RANDOM_CROP_BY_LABEL_POS, 0);
	const double neg = op_number(op, OP_RANDOM_CROP_BY_LABEL_NEG, 0);
	bool is_labelled = draw_chance(&drawn->seq, pos / (pos + neg));
	int64_t middle[VOLUME_AXES];

	if (volume_count(part->room, is_labelled) == 0)
		is_labelled = !is_labelled;
	volume_find(part->room, is_labelled,
		    (uint64_t)draw_integer(&drawn->seq, 0,
					   (int64_t)volume_count(part->room, is_labelled) - 1),
		    middle);
	for (unsigned a = 0; a < VOLUME_AXES; a++) {
		const int64_t have = part->axis[a].size, size = volume_side(op, a);

		volume_window(part, a, volume_around(have, size, middle[a] - size / 2), size);
	}
}

static const char *volume_label_shape(const struct op *op, struct shape *shape)
{
	if (op_number(op, OP_RANDOM_CROP_BY_LABEL_POS, 0) +
		op_number(op, OP_RANDOM_CROP_BY_LABEL_NEG, 0) ==
	    0)
		return "pos and neg are 0; give one of them more";
	return volume_crop_shape(op, shape);
}

static bool volume_is_random(const struct op *op)
{
	(void)op;
	return true;
}

const struct op_impl volume_random_crop_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = volume_crop_shape,
    .is_random = volume_is_random,
    .volume = volume_random_crop,
};

const struct op_impl volume_center_crop_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = volume_crop_shape,
    .volume = volume_center_crop,
};

const struct op_impl volume_label_crop_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = volume_label_shape,
    .is_random = volume_is_random,
    .volume = volume_label_crop,
};

/* ---- flips and quarter turns ---- */

static bool volume_has_chance(const struct op *op)
{
	return op_number(op, OP_RANDOM_FLIP_3D_P, 0) > 0;
}

static bool volume_may_not(const struct op *op)
{
	return op_varies(op, OP_RANDOM_FLIP_3D_P, false);
}

static void volume_flip_axis(struct volume_axis *axis)
{
	axis->first += axis->step * (axis->size - 1);
	axis->step = -axis->step;
}

static void volume_flip(const struct op *op, struct op_drawn *drawn, struct volume_part *part)
{
	const struct op_value *axes = &op->value[OP_RANDOM_FLIP_3D_AXES];

	if (!draw_chance(&drawn->seq, op_number(op, OP_RANDOM_FLIP_3D_P, 0)))
		return;
	for (unsigned i = 0; i < axes->count; i++)
		volume_flip_axis(&part->axis[(unsigned)axes->number[i]]);
}

static const char *volume_flip_shape(const struct op *op, struct shape *shape)
{
	const struct op_value *axes = &op->value[OP_RANDOM_FLIP_3D_AXES];
	unsigned seen = 0;

	(void)shape;
	for (unsigned i = 0; i < axes->count; i++) {
		if (seen >> (unsigned)axes->number[i] & 1)
			return "an axis is there twice; give it once";
		seen |= 1u << (unsigned)axes->number[i];
	}
	return NULL;
}

/* As numpy.rot90(volume, times, axes). */
static void volume_turn(struct volume_axis *first, struct volume_axis *second, int64_t times)
{
	const struct volume_axis was = *first;

	if (times == 2)
		volume_flip_axis(first);
	if (times != 3)
		volume_flip_axis(second);
	if (times == 2)
		return;
	*first = *second;
	*second = was;
	if (times == 3)
		volume_flip_axis(second);
}

static void volume_rotate(const struct op *op, struct op_drawn *drawn, struct volume_part *part)
{
	const double *axes = op->value[OP_RANDOM_ROTATE90_AXES].number;
	const bool is_done = draw_chance(&drawn->seq, op_number(op, OP_RANDOM_ROTATE90_P, 0));
	const int64_t times = draw_integer(&drawn->seq, 1, 3);

	if (is_done)
		volume_turn(&part->axis[(unsigned)axes[0]], &part->axis[(unsigned)axes[1]], times);
}

static const char *volume_rotate_shape(const struct op *op, struct shape *shape)
{
	const uint32_t sides[VOLUME_AXES] = {shape->depth, shape->height, shape->width};
	const struct op_value *axes = &op->value[OP_RANDOM_ROTATE90_AXES];

	if (axes->count != 2 || axes->number[0] == axes->number[1])
		return "axes are two of 0, 1 and 2";
	if (shape->height == 0)
		return "put it behind a crop, which makes the sides that it turns alike";
	if (sides[(unsigned)axes->number[0]] != sides[(unsigned)axes->number[1]])
		return "it would exchange sides that differ; give a crop before it as much of "
		       "both, or other axes";
	return NULL;
}

const struct op_impl volume_flip_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = volume_flip_shape,
    .is_random = volume_may_not,
    .volume = volume_flip,
};

const struct op_impl volume_rotate_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = volume_rotate_shape,
    .is_random = volume_has_chance,
    .volume = volume_rotate,
};

/* ---- changes ---- */

static double volume_drawn(const struct op *op, struct op_drawn *drawn, double otherwise)
{
	const double *range = op->value[OP_RANDOM_SCALE_INTENSITY_FACTORS].number;
	const bool is_done =
	    draw_chance(&drawn->seq, op_number(op, OP_RANDOM_SCALE_INTENSITY_P, 0));

	return is_done ? draw_between(&drawn->seq, range[0], range[1]) : otherwise;
}

static void volume_scale(const struct op *op, struct op_drawn *drawn, struct volume_part *part)
{
	part->change[part->n_changes++] =
	    (struct volume_change){.times = (float)(1 + volume_drawn(op, drawn, 0))};
}

static void volume_shift(const struct op *op, struct op_drawn *drawn, struct volume_part *part)
{
	part->change[part->n_changes++] =
	    (struct volume_change){.times = 1, .plus = (float)volume_drawn(op, drawn, 0)};
}

static bool volume_is_changed(const struct op *op)
{
	return op_varies(op, OP_RANDOM_SCALE_INTENSITY_P,
			 op_is_span(op, OP_RANDOM_SCALE_INTENSITY_FACTORS));
}

const struct op_impl volume_scale_op = {
    .stage = OP_STAGE_PICTURE,
    .is_random = volume_is_changed,
    .volume = volume_scale,
};

const struct op_impl volume_shift_op = {
    .stage = OP_STAGE_PICTURE,
    .is_random = volume_is_changed,
    .volume = volume_shift,
};
