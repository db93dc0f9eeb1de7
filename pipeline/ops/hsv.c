/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hue_saturation_value: albumentations' HueSaturationValue, which adds to each of the three.
 *
 * They are OpenCV's of 8 bits: hue has 180 steps. Quotients come from tables of 12 bits after the point there, and here. The way back
 * is in float32, cut off; a product and its difference from 1 are rounded once, as where OpenCV has AVX2 and FMA. Its
 * loop for the last pixels of a row that fill no vector rounds to the nearest, and here all are cut off.
 */

#include <math.h>
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

#define HSV_HUES 180
#define HSV_BITS 12

struct hsv {
	int32_t saturation_over[256], hue_over[256]; /* of a value, of a difference: quotients */
	uint8_t hue[HSV_HUES], saturation[256], value[256]; /* what each becomes */
	float part[HSV_HUES]; /* of a hue: how much of the saturation its middle channel lacks */
	uint8_t order[HSV_HUES][3]; /* which channel is the most, the middle and the least */
};

/* Drawn: is it done; then what is added to hue, saturation and value. */
static void hsv_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	op_draw_spans(op, OP_HUE_SATURATION_VALUE_VALUE, drawn);
}

static bool hsv_is_random(const struct op *op)
{
	return op_spans_vary(op, OP_HUE_SATURATION_VALUE_VALUE);
}

/* The sum with what stands before the point of more. */
static uint8_t hsv_add(unsigned value, double more)
{
	const int sum = (int)value + (int)more;

	return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static uint8_t hsv_turn(unsigned hue, double more)
{
	const double turned = fmod(hue + more, HSV_HUES);
	const unsigned to = (unsigned)(turned < 0 ? turned + HSV_HUES : turned);

	return to < HSV_HUES ? (uint8_t)to : 0; /* of a sum just below 0 */
}

static void hsv_init(struct hsv *hsv, const struct op_drawn *drawn)
{
	static const uint8_t order[6][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0},
					    {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};

	hsv->saturation_over[0] = hsv->hue_over[0] = 0;
	for (unsigned i = 0; i < 256; i++) {
		if (i > 0) {
			hsv->saturation_over[i] = (int32_t)rint((255 << HSV_BITS) / (double)i);
			hsv->hue_over[i] = (int32_t)rint((HSV_HUES << HSV_BITS) / (6.0 * i));
		}
		/* grey stays grey */
		hsv->saturation[i] =
		    i == 0 ? 0 : hsv_add(i, drawn->number[OP_HUE_SATURATION_VALUE_SATURATION]);
		hsv->value[i] = hsv_add(i, drawn->number[OP_HUE_SATURATION_VALUE_VALUE]);
	}
	for (unsigned i = 0; i < HSV_HUES; i++) {
		const float sixths = (float)i * (6.0F / HSV_HUES);
		const unsigned sixth = (unsigned)sixths;
		const float part = sixths - (float)sixth;

		hsv->hue[i] = hsv_turn(i, drawn->number[OP_HUE_SATURATION_VALUE_HUE]);
		hsv->part[i] = sixth % 2 == 0 ? 1 - part : part;
		memcpy(hsv->order[i], order[sixth % 6], 3);
	}
}

static inline void hsv_pixel(const struct hsv *hsv, uint8_t *pixel)
{
	const int32_t r = pixel[0], g = pixel[1], b = pixel[2];
	const int32_t most = r > g ? (r > b ? r : b) : (g > b ? g : b);
	const int32_t least = r < g ? (r < b ? r : b) : (g < b ? g : b);
	const int32_t span = most - least, half = 1 << (HSV_BITS - 1);
	const int32_t saturation = (span * hsv->saturation_over[most] + half) >> HSV_BITS;
	const int32_t from = most == r ? g - b : most == g ? b - r + 2 * span : r - g + 4 * span;
	const int32_t turn = (from * hsv->hue_over[span] + half) >> HSV_BITS;
	const unsigned hue = hsv->hue[turn < 0 ? turn + HSV_HUES : turn];
	const float s = (float)hsv->saturation[saturation] * (1.0F / 255);
	const float v = (float)hsv->value[most] * (1.0F / 255);
	const float lacking = (float)(1 - (double)s * hsv->part[hue]);
	const uint8_t *order = hsv->order[hue];

	pixel[order[0]] = hsv->value[most];
	pixel[order[1]] = (uint8_t)(v * lacking * 255);
	pixel[order[2]] = (uint8_t)(v * (1 - s) * 255);
}

static int hsv_run(struct steps_scratch *scratch, const struct op *op, const struct op_drawn *drawn,
		   struct picture *picture)
{
	const double *more = drawn->number;
	struct hsv hsv;

	(void)scratch;
	(void)op;
	if (more[0] == 0 || (more[1] == 0 && more[2] == 0 && more[3] == 0))
		return 0;
	hsv_init(&hsv, drawn);
	for (uint32_t y = 0; y < picture->height; y++) {
		uint8_t *row = picture_row(picture, y);

		for (uint32_t x = 0; x < picture->width; x++)
			hsv_pixel(&hsv, row + 4 * (size_t)x);
	}
	return 0;
}

const struct op_impl hsv_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = hsv_draw,
    .is_random = hsv_is_random,
    .run = hsv_run,
};
