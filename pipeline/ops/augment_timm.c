/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timm_rand_augment and timm_aug_mix. The latter is timm's AugMix of thirteen of these changes, all growing with the
 * magnitude; its mixture of the chains alone is then blended with the picture as Pillow does.
 *
 * timm_rand_augment: the RandAugment of timm (timm/data/auto_augment.py), which has torchvision's name
 * and is another one: fifteen changes, each of the drawn ones made with a probability, magnitudes that
 * are drawn around one, and changes that either grow or shrink with the magnitude.
 *
 * Levels become arguments by the same operations in double as there, so an argument that is cut to a
 * whole number (bits, thresholds) is the same. Shears and translations are affine matrices as timm
 * writes them, in parts of a pixel, not torchvision's; the rest is Pillow's and shared with augment.c.
 *
 * Drawn: for each change its number and 1, 0 for none; its argument; its filter.
 */

#include "pipeline/engine/steps.h"
#include "pipeline/ops/augment_mix.h"
#include "pipeline/ops/colour.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/turn.h"

#define AUGMENT_TIMM_MOST 5 /* changes of one picture: num_ops in op_tbl.h */
#define AUGMENT_TIMM_DRAWN 3
_Static_assert(AUGMENT_TIMM_MOST *AUGMENT_TIMM_DRAWN <= OP_MAX_DRAWN, "three numbers for each");

enum augment_timm_kind { /* in the order of timm's _RAND_TRANSFORMS */
			 AUGMENT_TIMM_AUTOCONTRAST,
			 AUGMENT_TIMM_EQUALIZE,
			 AUGMENT_TIMM_INVERT,
			 AUGMENT_TIMM_ROTATE,
			 AUGMENT_TIMM_POSTERIZE,
			 AUGMENT_TIMM_SOLARIZE,
			 AUGMENT_TIMM_SOLARIZE_ADD,
			 AUGMENT_TIMM_COLOR,
			 AUGMENT_TIMM_CONTRAST,
			 AUGMENT_TIMM_BRIGHTNESS,
			 AUGMENT_TIMM_SHARPNESS,
			 AUGMENT_TIMM_SHEAR_X,
			 AUGMENT_TIMM_SHEAR_Y,
			 AUGMENT_TIMM_TRANSLATE_X,
			 AUGMENT_TIMM_TRANSLATE_Y,
			 AUGMENT_TIMM_KINDS,
};

_Static_assert(OP_TIMM_AUG_MIX_INTERPOLATION == OP_TIMM_RAND_AUGMENT_INTERPOLATION &&
		   OP_TIMM_AUG_MIX_FILL == OP_TIMM_RAND_AUGMENT_FILL &&
		   OP_TIMM_AUG_MIX_MAGNITUDE == OP_TIMM_RAND_AUGMENT_MAGNITUDE &&
		   OP_TIMM_AUG_MIX_MAGNITUDE_STD == OP_TIMM_RAND_AUGMENT_MAGNITUDE_STD &&
		   OP_TIMM_AUG_MIX_UNIFORM == OP_TIMM_RAND_AUGMENT_UNIFORM &&
		   OP_TIMM_AUG_MIX_MAGNITUDE_MAX == OP_TIMM_RAND_AUGMENT_MAGNITUDE_MAX &&
		   OP_TIMM_AUG_MIX_INCREASING == OP_TIMM_RAND_AUGMENT_INCREASING &&
		   OP_TIMM_AUG_MIX_TRANSLATE == OP_TIMM_RAND_AUGMENT_TRANSLATE,
	       "levels and arguments are one for both");

enum { AUGMENT_TIMM_RANDOM = 3 }; /* of op_timm_words; the others are those of enum warp_filter */

/* ---- drawing ---- */

static double augment_timm_level(const struct op *op, struct philox_seq *seq)
{
	const double magnitude = op_number(op, OP_TIMM_RAND_AUGMENT_MAGNITUDE, 0);
	const double deviation = op_number(op, OP_TIMM_RAND_AUGMENT_MAGNITUDE_STD, 0);
	const double most = op_number(op, OP_TIMM_RAND_AUGMENT_MAGNITUDE_MAX, 0);
	double level = magnitude;

	if (op_number(op, OP_TIMM_RAND_AUGMENT_UNIFORM, 0) != 0)
		level = draw_between(seq, 0, magnitude);
	else if (deviation > 0)
		level = magnitude + deviation * draw_normal(seq);
	return BASE_MAX(0.0, BASE_MIN(level, most));
}

static double augment_timm_signed(struct philox_seq *seq, double value)
{
	return draw_chance(seq, 0.5) ? -value : value;
}

/* Cut to a whole number, and no more than most. */
static double augment_timm_whole(double value, double most)
{
	return BASE_MIN(most, (double)(int64_t)value);
}

/* What timm's LEVEL_TO_ARG makes of a part of its scale, level / 10. */
static double augment_timm_argument(const struct op *op, enum augment_timm_kind kind, double part,
				    struct philox_seq *seq)
{
	const bool increasing = op_number(op, OP_TIMM_RAND_AUGMENT_INCREASING, 0) != 0;
	double value;

	switch (kind) {
	case AUGMENT_TIMM_ROTATE:
		return augment_timm_signed(seq, part * 30.0);
	case AUGMENT_TIMM_POSTERIZE:
		value = augment_timm_whole(part * 4, 1e6);
		value = increasing ? 4 - value : value;
		return BASE_MAX(0.0, BASE_MIN(value, 8.0));
	case AUGMENT_TIMM_SOLARIZE:
		value = augment_timm_whole(part * 256, 256);
		return increasing ? 256 - value : value;
	case AUGMENT_TIMM_SOLARIZE_ADD:
		return augment_timm_whole(part * 110, 128);
	case AUGMENT_TIMM_COLOR:
	case AUGMENT_TIMM_CONTRAST:
	case AUGMENT_TIMM_BRIGHTNESS:
	case AUGMENT_TIMM_SHARPNESS:
		if (!increasing)
			return part * 1.8 + 0.1;
		value = 1.0 + augment_timm_signed(seq, part * .9);
		return BASE_MAX(0.1, value);
	case AUGMENT_TIMM_SHEAR_X:
	case AUGMENT_TIMM_SHEAR_Y:
		return augment_timm_signed(seq, part * 0.3);
	case AUGMENT_TIMM_TRANSLATE_X:
	case AUGMENT_TIMM_TRANSLATE_Y:
		value = op_number(op, OP_TIMM_RAND_AUGMENT_TRANSLATE, 0);
		return augment_timm_signed(seq, part * value);
	default:
		return 0;
	}
}

static double augment_timm_filter(const struct op *op, struct philox_seq *seq)
{
	const double filter = op_number(op, OP_TIMM_RAND_AUGMENT_INTERPOLATION, 0);

	if (filter != AUGMENT_TIMM_RANDOM)
		return filter;
	return draw_chance(seq, 0.5) ? WARP_BICUBIC : WARP_BILINEAR;
}

static void augment_timm_draw(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	const unsigned changes = (unsigned)op_number(op, OP_TIMM_RAND_AUGMENT_NUM_OPS, 0);
	const double p = op_number(op, OP_TIMM_RAND_AUGMENT_P, 0);
	double *number = drawn->number;

	(void)height;
	(void)width;
	for (unsigned i = 0; i < changes; i++, number += AUGMENT_TIMM_DRAWN) {
		const unsigned kind =
		    (unsigned)draw_integer(&drawn->seq, 0, AUGMENT_TIMM_KINDS - 1);
		const bool is_made = draw_chance(&drawn->seq, p);
		const double level = augment_timm_level(op, &drawn->seq);

		number[2] = augment_timm_filter(op, &drawn->seq);
		number[0] = is_made ? kind + 1 : 0;
		if (is_made)
			number[1] = augment_timm_argument(op, (enum augment_timm_kind)kind,
							  level / 10.0, &drawn->seq);
	}
}

static bool augment_timm_is_random(const struct op *op)
{
	return op_number(op, OP_TIMM_RAND_AUGMENT_NUM_OPS, 0) > 0 &&
	       op_number(op, OP_TIMM_RAND_AUGMENT_P, 0) > 0;
}

/* ---- chains ---- */

static const uint8_t augment_timm_mixed[] = {
    AUGMENT_TIMM_AUTOCONTRAST, AUGMENT_TIMM_COLOR,     AUGMENT_TIMM_CONTRAST,
    AUGMENT_TIMM_BRIGHTNESS,   AUGMENT_TIMM_SHARPNESS, AUGMENT_TIMM_EQUALIZE,
    AUGMENT_TIMM_ROTATE,       AUGMENT_TIMM_POSTERIZE, AUGMENT_TIMM_SOLARIZE,
    AUGMENT_TIMM_SHEAR_X,      AUGMENT_TIMM_SHEAR_Y,   AUGMENT_TIMM_TRANSLATE_X,
    AUGMENT_TIMM_TRANSLATE_Y,
};

static struct augment_mix augment_timm_mix_of(const struct op *op)
{
	return augment_mix_plan(op_number(op, OP_TIMM_AUG_MIX_WIDTH, 0),
				op_number(op, OP_TIMM_AUG_MIX_DEPTH, 0), AUGMENT_TIMM_DRAWN);
}

/* Drawn (augment_mix.h): first the mixture's share of the blend. */
static void augment_timm_draw_mixed(const struct op *op, uint32_t height, uint32_t width,
				    struct op_drawn *drawn)
{
	const struct augment_mix mix = augment_timm_mix_of(op);
	const double alpha = op_number(op, OP_TIMM_AUG_MIX_ALPHA, 0);
	float both[2], share[OP_MAX_DRAWN];

	(void)height;
	(void)width;
	augment_mix_shares(&drawn->seq, alpha, mix.chains, share);
	augment_mix_shares(&drawn->seq, alpha, 2, both);
	drawn->number[0] = both[0];
	for (unsigned chain = 0; chain < mix.chains; chain++) {
		const unsigned depth = augment_mix_depth(&mix, &drawn->seq);

		drawn->number[1 + chain] = share[chain];
		for (unsigned i = 0; i < depth; i++) {
			double *number = drawn->number + augment_mix_at(&mix, chain, i);
			const unsigned kind = augment_timm_mixed[draw_integer(
			    &drawn->seq, 0, BASE_ARRAY_LEN(augment_timm_mixed) - 1)];
			const double level = augment_timm_level(op, &drawn->seq);

			number[2] = augment_timm_filter(op, &drawn->seq);
			number[0] = kind + 1;
			number[1] = augment_timm_argument(op, (enum augment_timm_kind)kind,
							  level / 10.0, &drawn->seq);
		}
	}
}

static const char *augment_timm_shape_mixed(const struct op *op, struct shape *shape)
{
	const struct augment_mix mix = augment_timm_mix_of(op);

	(void)shape;
	return augment_mix_check(&mix);
}

/* ---- changing ---- */

static int augment_timm_move(struct steps_scratch *scratch, enum augment_timm_kind kind,
			     double value, const struct turn *turn, struct picture *picture)
{
	double matrix[6] = {1, 0, 0, 0, 1, 0};

	if (kind == AUGMENT_TIMM_SHEAR_X)
		matrix[1] = value;
	else if (kind == AUGMENT_TIMM_SHEAR_Y)
		matrix[3] = value;
	else if (kind == AUGMENT_TIMM_TRANSLATE_X)
		matrix[2] = value * picture->width;
	else
		matrix[5] = value * picture->height;
	return turn_warp(scratch, turn, matrix, picture->height, picture->width, picture);
}

static void augment_timm_recolour(enum augment_timm_kind kind, double value,
				  const struct picture *picture)
{
	switch (kind) {
	case AUGMENT_TIMM_AUTOCONTRAST:
		colour_autocontrast(picture);
		break;
	case AUGMENT_TIMM_EQUALIZE:
		colour_equalize(picture);
		break;
	case AUGMENT_TIMM_INVERT:
		colour_invert(picture);
		break;
	case AUGMENT_TIMM_POSTERIZE:
		colour_posterize(picture, (unsigned)value);
		break;
	case AUGMENT_TIMM_SOLARIZE:
		colour_solarize(picture, value);
		break;
	case AUGMENT_TIMM_SOLARIZE_ADD:
		colour_solarize_add(picture, (unsigned)value);
		break;
	case AUGMENT_TIMM_COLOR:
		colour_saturation(picture, (float)value);
		break;
	case AUGMENT_TIMM_CONTRAST:
		colour_contrast(picture, (float)value);
		break;
	default: /* AUGMENT_TIMM_BRIGHTNESS; geometry and sharpness are others' */
		colour_brightness(picture, (float)value);
		break;
	}
}

static int augment_timm_change(struct steps_scratch *scratch, enum augment_timm_kind kind,
			       double value, struct turn *turn, struct picture *picture)
{
	if (kind >= AUGMENT_TIMM_SHEAR_X)
		return augment_timm_move(scratch, kind, value, turn, picture);
	if (kind == AUGMENT_TIMM_SHARPNESS)
		return colour_op_sharpen(scratch, (float)value, picture);
	if (kind == AUGMENT_TIMM_ROTATE) {
		turn->angle = value;
		return turn_rotate(scratch, turn, picture);
	}
	augment_timm_recolour(kind, value, picture);
	return 0;
}

static int augment_timm_one(struct steps_scratch *scratch, const struct op *op,
			    const double *number, struct picture *picture)
{
	struct turn turn = {.filter = (enum warp_filter)number[2]};

	op_color(op, OP_TIMM_RAND_AUGMENT_FILL, turn.fill);
	return augment_timm_change(scratch, (enum augment_timm_kind)(number[0] - 1), number[1],
				   &turn, picture);
}

static int augment_timm_run_mixed(struct steps_scratch *scratch, const struct op *op,
				  const struct op_drawn *drawn, struct picture *picture)
{
	const struct augment_mix mix = augment_timm_mix_of(op);
	const float last = (float)drawn->number[0];

	return augment_mix_run(&mix, scratch, op, drawn, augment_timm_one, 0, &last, picture);
}

static int augment_timm_run(struct steps_scratch *scratch, const struct op *op,
			    const struct op_drawn *drawn, struct picture *picture)
{
	const double *number = drawn->number;
	int r = 0;

	for (unsigned i = 0; r == 0 && i < AUGMENT_TIMM_MOST; i++, number += AUGMENT_TIMM_DRAWN)
		if (number[0] > 0)
			r = augment_timm_one(scratch, op, number, picture);
	return r;
}

const struct op_impl augment_timm_op = {
    .stage = OP_STAGE_PICTURE,
    .draw = augment_timm_draw,
    .is_random = augment_timm_is_random,
    .run = augment_timm_run,
};

const struct op_impl augment_timm_mix_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = augment_timm_shape_mixed,
    .draw = augment_timm_draw_mixed,
    .run = augment_timm_run_mixed,
};
