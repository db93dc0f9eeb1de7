/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colour ops as pipelines have them: torchvision's ColorJitter, Grayscale, RandomGrayscale,
 * RandomAutocontrast, RandomEqualize, RandomInvert, RandomPosterize, RandomSolarize,
 * RandomAdjustSharpness, RandomChannelPermutation and RandomPhotometricDistort. What they do to pixels is colour.h's.
 *
 * A picture of one channel is kept as one of three that are equal, to the end of the pipeline
 * (colour.h): so grayscale to one channel differs from grayscale to three only in the shape.
 */

#include "pipeline/engine/steps.h"
#include "pipeline/ops/colour.h"
#include "pipeline/ops/draw.h"

/* 0 to n - 1 in random order. */
static void colour_op_draw_order(struct philox_seq *seq, unsigned n, double *number)
{
	for (unsigned i = 0; i < n; i++)
		number[i] = i;
	for (unsigned i = n - 1; i > 0; i--) {
		unsigned k = (unsigned)draw_integer(seq, 0, i);
		double moved = number[i];

		number[i] = number[k];
		number[k] = moved;
	}
}

/* ---- color_jitter ---- */

enum { COLOUR_OP_ADJUSTMENTS = 4, COLOUR_OP_FACTORS = 4, COLOUR_OP_IS_DONE = 8 };

/* Drawn: the order of the four adjustments as numbers of their parameters, then their factors, in
 * the parameters' order, then whether it is done at all. As torchvision, an adjustment whose range is where it changes nothing is
 * not made at all, which matters for hue: there and back through HSV loses a little. */
static bool colour_op_adjusts(const struct op *op, unsigned param)
{
	const double *range = op->value[param].number,
		     neutral = param == OP_COLOR_JITTER_HUE ? 0 : 1;

	return !op_is_null(op, param) && (range[0] != neutral || range[1] != neutral);
}

static void colour_op_draw_jitter(const struct op *op, uint32_t height, uint32_t width,
				  struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	colour_op_draw_order(&drawn->seq, COLOUR_OP_ADJUSTMENTS, drawn->number);
	for (unsigned i = 0; i < COLOUR_OP_ADJUSTMENTS; i++) {
		const double *range = op->value[i].number;

		if (!op_is_null(op, i))
			drawn->number[COLOUR_OP_FACTORS + i] =
			    draw_between(&drawn->seq, range[0], range[1]);
	}
	drawn->number[COLOUR_OP_IS_DONE] =
	    draw_chance(&drawn->seq, op_number(op, OP_COLOR_JITTER_P, 0));
}

/* Fixed factors are random still if the order of several is. */
static bool colour_op_is_random_jitter(const struct op *op)
{
	const double p = op_number(op, OP_COLOR_JITTER_P, 0);
	unsigned made = 0;

	if (p == 0)
		return false;
	for (unsigned i = 0; i < COLOUR_OP_ADJUSTMENTS; i++) {
		const double *range = op->value[i].number;

		if (!colour_op_adjusts(op, i))
			continue;
		made++;
		if (range[0] < range[1])
			return true;
	}
	return made > 1 || (made && p < 1);
}

static void colour_op_adjust(struct picture *picture, unsigned param, double factor)
{
	if (param == OP_COLOR_JITTER_BRIGHTNESS)
		colour_brightness(picture, (float)factor);
	else if (param == OP_COLOR_JITTER_CONTRAST)
		colour_contrast(picture, (float)factor);
	else if (param == OP_COLOR_JITTER_SATURATION)
		colour_saturation(picture, (float)factor);
	else
		colour_hue(picture, factor);
}

static int colour_op_run_jitter(struct steps_scratch *scratch, const struct op *op,
				const struct op_drawn *drawn, struct picture *picture)
{
	(void)scratch;
	if (drawn->number[COLOUR_OP_IS_DONE] == 0)
		return 0;
	for (unsigned i = 0; i < COLOUR_OP_ADJUSTMENTS; i++) {
		unsigned param = (unsigned)drawn->number[i];
		double factor = drawn->number[COLOUR_OP_FACTORS + param];

		if (!colour_op_adjusts(op, param))
			continue;
		colour_op_adjust(picture, param, factor);
	}
	return 0;
}

const struct op_impl colour_op_jitter = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = colour_op_draw_jitter,
    .is_random = colour_op_is_random_jitter,
    .run = colour_op_run_jitter,
};

/* ---- grayscale ---- */

static const char *colour_op_shape_grayscale(const struct op *op, struct shape *shape)
{
	shape->channels = (unsigned)op_number(op, OP_GRAYSCALE_NUM_OUTPUT_CHANNELS, 0);
	return shape->channels == 2 ? "two channels are none of its choices; give 1 or 3" : NULL;
}

static int colour_op_run_grayscale(struct steps_scratch *scratch, const struct op *op,
				   const struct op_drawn *drawn, struct picture *picture)
{
	(void)scratch;
	(void)op;
	(void)drawn;
	colour_grayscale(picture);
	return 0;
}

const struct op_impl colour_op_grayscale = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .shape = colour_op_shape_grayscale,
    .run = colour_op_run_grayscale,
};

/* ---- random_channel_permutation ---- */

/* Three numbers: where red, green and blue of what comes out are taken from. */
static void colour_op_draw_permute(const struct op *op, uint32_t height, uint32_t width,
				   struct op_drawn *drawn)
{
	(void)op;
	(void)height;
	(void)width;
	colour_op_draw_order(&drawn->seq, 3, drawn->number);
}

static void colour_op_permuted(struct picture *picture, const double from[3])
{
	const unsigned red_at = (unsigned)from[0], green_at = (unsigned)from[1],
		       blue_at = (unsigned)from[2];

	for (uint32_t y = 0; y < picture->height; y++) {
		uint8_t *pixel = picture_row(picture, y);

		for (uint32_t x = 0; x < picture->width; x++, pixel += 4) {
			const uint8_t red = pixel[red_at], green = pixel[green_at],
				      blue = pixel[blue_at];

			pixel[0] = red;
			pixel[1] = green;
			pixel[2] = blue;
		}
	}
}

static int colour_op_run_permute(struct steps_scratch *scratch, const struct op *op,
				 const struct op_drawn *drawn, struct picture *picture)
{
	(void)scratch;
	(void)op;
	colour_op_permuted(picture, drawn->number);
	return 0;
}

const struct op_impl colour_op_permute = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = colour_op_draw_permute,
    .run = colour_op_run_permute,
};

/* ---- random_photometric_distort ---- */

_Static_assert(OP_RANDOM_PHOTOMETRIC_DISTORT_BRIGHTNESS == OP_COLOR_JITTER_BRIGHTNESS &&
		   OP_RANDOM_PHOTOMETRIC_DISTORT_CONTRAST == OP_COLOR_JITTER_CONTRAST &&
		   OP_RANDOM_PHOTOMETRIC_DISTORT_SATURATION == OP_COLOR_JITTER_SATURATION &&
		   OP_RANDOM_PHOTOMETRIC_DISTORT_HUE == OP_COLOR_JITTER_HUE,
	       "one adjustment for both");

enum { COLOUR_OP_MADE = 4, COLOUR_OP_LATE = 8, COLOUR_OP_PERMUTED = 9, COLOUR_OP_FROM = 10 };

/* Drawn: the factors of the four adjustments, which of them are made, whether contrast comes last, whether the channels
 * are permuted, and where each is taken from then. */
static void colour_op_draw_distort(const struct op *op, uint32_t height, uint32_t width,
				   struct op_drawn *drawn)
{
	const double p = op_number(op, OP_RANDOM_PHOTOMETRIC_DISTORT_P, 0);

	(void)height;
	(void)width;
	for (unsigned i = 0; i < COLOUR_OP_ADJUSTMENTS; i++) {
		const double *range = op->value[i].number;

		drawn->number[COLOUR_OP_MADE + i] = draw_chance(&drawn->seq, p);
		drawn->number[i] = draw_between(&drawn->seq, range[0], range[1]);
	}
	drawn->number[COLOUR_OP_LATE] = draw_chance(&drawn->seq, 0.5);
	drawn->number[COLOUR_OP_PERMUTED] = draw_chance(&drawn->seq, p);
	colour_op_draw_order(&drawn->seq, 3, drawn->number + COLOUR_OP_FROM);
}

static bool colour_op_is_random_distort(const struct op *op)
{
	return op_number(op, OP_RANDOM_PHOTOMETRIC_DISTORT_P, 0) > 0;
}

static int colour_op_run_distort(struct steps_scratch *scratch, const struct op *op,
				 const struct op_drawn *drawn, struct picture *picture)
{
	static const unsigned orders[2][COLOUR_OP_ADJUSTMENTS] = {{0, 1, 2, 3}, {0, 2, 3, 1}};
	const unsigned *order = orders[drawn->number[COLOUR_OP_LATE] != 0];

	(void)scratch;
	(void)op;
	for (unsigned i = 0; i < COLOUR_OP_ADJUSTMENTS; i++)
		if (drawn->number[COLOUR_OP_MADE + order[i]] != 0)
			colour_op_adjust(picture, order[i], drawn->number[order[i]]);
	if (drawn->number[COLOUR_OP_PERMUTED] != 0)
		colour_op_permuted(picture, drawn->number + COLOUR_OP_FROM);
	return 0;
}

const struct op_impl colour_op_distort = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = colour_op_draw_distort,
    .is_random = colour_op_is_random_distort,
    .run = colour_op_run_distort,
};

/* ---- done or not done ---- */

/* The table puts p before their other parameters. */
_Static_assert(OP_RANDOM_GRAYSCALE_P == 0 && OP_AUTOCONTRAST_P == 0 && OP_EQUALIZE_P == 0 &&
		   OP_INVERT_P == 0 && OP_POSTERIZE_P == 0 && OP_SOLARIZE_P == 0 &&
		   OP_SHARPNESS_P == 0,
	       "one draw for all");

static void colour_op_draw(const struct op *op, uint32_t height, uint32_t width,
			   struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, 0, 0));
}

static bool colour_op_is_random(const struct op *op)
{
	double p = op_number(op, 0, 0);

	return p > 0 && p < 1;
}

int colour_op_sharpen(struct steps_scratch *scratch, float factor, struct picture *picture)
{
	struct picture to;
	int r = steps_begin(scratch, picture->height, picture->width, &to);

	if (r != 0)
		return r;
	colour_sharpness(picture, factor, &to);
	steps_end(scratch, &to, picture);
	return 0;
}

static int colour_op_run(struct steps_scratch *scratch, const struct op *op,
			 const struct op_drawn *drawn, struct picture *picture)
{
	if (drawn->number[0] == 0)
		return 0;
	switch (op->id) {
	case OP_RANDOM_GRAYSCALE:
		colour_grayscale(picture);
		return 0;
	case OP_AUTOCONTRAST:
		colour_autocontrast(picture);
		return 0;
	case OP_EQUALIZE:
		colour_equalize(picture);
		return 0;
	case OP_INVERT:
		colour_invert(picture);
		return 0;
	case OP_POSTERIZE:
		colour_posterize(picture, (unsigned)op_number(op, OP_POSTERIZE_BITS, 0));
		return 0;
	case OP_SOLARIZE:
		colour_solarize(picture, op_number(op, OP_SOLARIZE_THRESHOLD, 0));
		return 0;
	default:
		return colour_op_sharpen(
		    scratch, (float)op_number(op, OP_SHARPNESS_SHARPNESS_FACTOR, 0), picture);
	}
}

const struct op_impl colour_op_chance = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = colour_op_draw,
    .is_random = colour_op_is_random,
    .run = colour_op_run,
};
