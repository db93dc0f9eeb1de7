/* SPDX-License-Identifier: Apache-2.0 */
/*
 * levels: a table for each channel, made anew for each picture. albumentations' RandomBrightnessContrast, RandomGamma and
 * RGBShift, each a part of it, to the last bit: gamma in double, contrast and brightness in float32, all rounded down as NumPy's
 * astype does, and shifts towards 0.
 */

#include <math.h>
#include "base/exact.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

/* Drawn: is it done; then the parameters behind p, in their order. */
static void levels_draw(const struct op *op, uint32_t height, uint32_t width,
			struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	op_draw_spans(op, OP_LEVELS_BLUE, drawn);
}

static bool levels_is_random(const struct op *op)
{
	return op_spans_vary(op, OP_LEVELS_BLUE);
}

static const char *levels_shape(const struct op *op, struct shape *shape)
{
	for (unsigned i = OP_LEVELS_RED; shape->channels == 1 && i <= OP_LEVELS_BLUE; i++)
		if (op_number(op, i, 0) != 0 || op_number(op, i, 1) != 0)
			return "a picture of one channel has no red, green or blue; give "
			       "brightness";
	return NULL;
}

static double levels_cut(double value)
{
	return value < 0 ? 0 : value > 255 ? 255 : floor(value);
}

/* What value, 0 .. 255, becomes in all channels. */
static double levels_of(const struct op_drawn *drawn, unsigned value)
{
	const double gamma = drawn->number[OP_LEVELS_GAMMA], x = value * (1.0 / 255);
	float level = (float)value;

	if (gamma != 1 && value != 0)
		level = (float)levels_cut(exact_exp(gamma * exact_log(x)) * 255);
	level *= (float)drawn->number[OP_LEVELS_CONTRAST];
	level += (float)(drawn->number[OP_LEVELS_BRIGHTNESS] * 255);
	return levels_cut(level);
}

static int levels_run(struct steps_scratch *scratch, const struct op *op,
		      const struct op_drawn *drawn, struct picture *picture)
{
	uint8_t table[3][256];

	(void)scratch;
	(void)op;
	if (drawn->number[0] == 0)
		return 0;
	for (unsigned value = 0; value < 256; value++) {
		const double level = levels_of(drawn, value);

		for (unsigned c = 0; c < 3; c++)
			table[c][value] =
			    (uint8_t)levels_cut(level + trunc(drawn->number[OP_LEVELS_RED + c]));
	}
	for (uint32_t y = 0; y < picture->height; y++) {
		uint8_t *pixel = picture_row(picture, y);

		for (uint32_t x = 0; x < picture->width; x++, pixel += 4)
			for (unsigned c = 0; c < 3; c++)
				pixel[c] = table[c][pixel[c]];
	}
	return 0;
}

const struct op_impl levels_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .shape = levels_shape,
    .draw = levels_draw,
    .is_random = levels_is_random,
    .run = levels_run,
};
