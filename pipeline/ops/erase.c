/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_erasing: torchvision's RandomErasing, a rectangle of one colour or of noise.
 *
 * In front of the finishing ops it works on 8-bit pictures, behind any of them on the finished
 * values, in their own type: that is where torchvision's users put it, and what noise is meant for.
 * On 8 bits noise is cut to a whole number and taken modulo 256, as a cast of torch does.
 */

#include <math.h>
#include "base/half.h"
#include "pipeline/engine/finish.h"
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

#define ERASE_TRIES 10

static bool erase_is_noise(const struct op *op)
{
	return op->value[OP_RANDOM_ERASING_VALUE].count == 1;
}

/* Values of 8 bits must fit. */
static const char *erase_check_bytes(const struct shape *shape, const struct op *op)
{
	if (erase_is_noise(op) && shape->channels == 1)
		return "noise on 8-bit values of one channel is not there; give a number as "
		       "\"value\", or put the op behind normalize";
	for (unsigned c = 0; c < 3; c++) {
		double value = op_number(op, OP_RANDOM_ERASING_VALUE, c);

		if (!erase_is_noise(op) && (value < 0 || value > 255 || value != floor(value)))
			return "on 8-bit values \"value\" is from 0 to 255 and whole; give such "
			       "a value, or put the op behind normalize";
	}
	return NULL;
}

static const char *erase_shape(const struct op *op, struct shape *shape)
{
	return shape->dtype == PIPELINE_U8 ? erase_check_bytes(shape, op) : NULL;
}

/* Five numbers: is something erased (then 1), top, left, height, width. */
static void erase_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	const double *scale = op->value[OP_RANDOM_ERASING_SCALE].number;
	const double *ratio = op->value[OP_RANDOM_ERASING_RATIO].number;

	if (!draw_chance(&drawn->seq, op_number(op, OP_RANDOM_ERASING_P, 0)))
		return;
	for (unsigned i = 0; i < ERASE_TRIES; i++) {
		double area =
		    (double)height * width * draw_between(&drawn->seq, scale[0], scale[1]);
		double h, w;

		draw_sides(&drawn->seq, area, ratio, &w, &h); /* its ratio is height over width */
		if (!(h < height && w < width))
			continue;
		drawn->number[0] = 1;
		drawn->number[1] = (double)draw_integer(&drawn->seq, 0, height - (int64_t)h);
		drawn->number[2] = (double)draw_integer(&drawn->seq, 0, width - (int64_t)w);
		drawn->number[3] = h;
		drawn->number[4] = w;
		return;
	}
}

static bool erase_is_random(const struct op *op)
{
	return op_number(op, OP_RANDOM_ERASING_P, 0) > 0;
}

struct erase_source {
	const struct op *op;
	struct philox_seq seq;
	float pair[2];
	unsigned left; /* of pair */
};

static struct erase_source erase_source(const struct op *op, const struct op_drawn *drawn)
{
	return (struct erase_source){.op = op, .seq = drawn->seq};
}

/* What the next value becomes, which is one of that channel. */
static float erase_next(struct erase_source *source, unsigned channel)
{
	if (!erase_is_noise(source->op))
		return (float)op_number(source->op, OP_RANDOM_ERASING_VALUE, channel);
	if (source->left == 0) {
		draw_normal_floats(&source->seq, source->pair);
		source->left = 2;
	}
	return source->pair[--source->left];
}

static uint8_t erase_byte(float value)
{
	return (uint8_t)(int32_t)value;
}

static int erase_run(struct steps_scratch *scratch, const struct op *op,
		     const struct op_drawn *drawn, struct picture *picture)
{
	const uint32_t top = (uint32_t)drawn->number[1], left = (uint32_t)drawn->number[2];
	const uint32_t height = (uint32_t)drawn->number[3], width = (uint32_t)drawn->number[4];
	struct erase_source source = erase_source(op, drawn);

	(void)scratch;
	for (unsigned c = 0; c < 3; c++) {
		for (uint32_t y = 0; y < height; y++) {
			uint8_t *row = picture_row(picture, top + y) + (size_t)left * 4 + c;

			for (uint32_t x = 0; x < width; x++)
				row[4 * (size_t)x] = erase_byte(erase_next(&source, c));
		}
	}
	return 0;
}

/* A value into place `at` of the finished field. */
static void erase_put(void *out, size_t at, enum pipeline_dtype dtype, float value)
{
	if (dtype == PIPELINE_F32)
		((float *)out)[at] = value;
	else if (dtype == PIPELINE_F16)
		((uint16_t *)out)[at] = half_f16(value);
	else if (dtype == PIPELINE_BF16)
		((uint16_t *)out)[at] = half_bf16(value);
	else
		((uint8_t *)out)[at] = erase_byte(value);
}

static void erase_finished(const struct shape *shape, const struct op *op,
			   const struct op_drawn *drawn, void *out)
{
	const size_t top = (size_t)drawn->number[1], left = (size_t)drawn->number[2];
	const size_t height = (size_t)drawn->number[3], width = (size_t)drawn->number[4];
	const bool planes = shape->order == OP_CHW;
	const size_t plane = planes ? (size_t)shape->height * shape->width : 1;
	const size_t step = planes ? 1 : shape->channels;
	struct erase_source source = erase_source(op, drawn);

	for (size_t c = 0; c < shape->channels; c++) {
		for (size_t y = top; y < top + height; y++) {
			size_t at = c * plane + (y * shape->width + left) * step;

			for (size_t x = 0; x < width; x++, at += step)
				erase_put(out, at, shape->dtype, erase_next(&source, (unsigned)c));
		}
	}
}

const struct op_impl erase_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .shape = erase_shape,
    .draw = erase_draw,
    .is_random = erase_is_random,
    .run = erase_run,
    .finished = erase_finished,
};
