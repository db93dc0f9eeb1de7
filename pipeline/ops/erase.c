/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_erasing: torchvision's RandomErasing, a rectangle of one colour or of noise. coarse_dropout: albumentations'
 * CoarseDropout, several rectangles, on 8-bit pictures alone, from which boxes shrink.
 *
 * random_erasing: in front of the finishing ops it works on 8-bit pictures, behind any of them on the finished
 * values, in their own type: that is where torchvision's users put it, and what noise is meant for.
 * On 8 bits noise is cut to a whole number and taken modulo 256, as a cast of torch does.
 */

#include <math.h>
#include "base/half.h"
#include "pipeline/engine/finish.h"
#include "pipeline/engine/steps.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"

#define ERASE_TRIES 10
#define ERASE_MAX_HOLES 256

/* A word, not colours. */
static bool erase_is_word(const struct op *op, unsigned param)
{
	return op->value[param].count == 1;
}

static bool erase_is_noise(const struct op *op)
{
	return erase_is_word(op, OP_RANDOM_ERASING_VALUE);
}

/* Is it no colour of 8 bits? */
static bool erase_is_beyond(const struct op *op, unsigned param)
{
	for (unsigned c = 0; !erase_is_word(op, param) && c < 3; c++) {
		const double value = op_number(op, param, c);

		if (value < 0 || value > 255 || value != floor(value))
			return true;
	}
	return false;
}

/* Values of 8 bits must fit. */
static const char *erase_check_bytes(const struct shape *shape, const struct op *op)
{
	if (erase_is_noise(op) && shape->channels == 1)
		return "noise on 8-bit values of one channel is not there; give a number as "
		       "\"value\", or put the op behind normalize";
	if (erase_is_beyond(op, OP_RANDOM_ERASING_VALUE))
		return "on 8-bit values \"value\" is from 0 to 255 and whole; give such "
		       "a value, or put the op behind normalize";
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

/* ---- coarse_dropout ---- */

struct erase_hole { /* across, down */
	int64_t from[2], to[2];
};

static const char *erase_holes_shape(const struct op *op, struct shape *shape)
{
	const double *holes = op->value[OP_COARSE_DROPOUT_HOLES].number;

	if (holes[0] != floor(holes[0]) || holes[1] != floor(holes[1]))
		return "\"holes\" are whole; give whole numbers";
	if ((op_number(op, OP_COARSE_DROPOUT_HEIGHT, 1) < 1) !=
	    (op_number(op, OP_COARSE_DROPOUT_WIDTH, 1) < 1))
		return "of \"height\" and \"width\" one is a share, the other one pixels; give "
		       "both "
		       "below 1, or both from 1 on";
	if (erase_is_word(op, OP_COARSE_DROPOUT_VALUE) && shape->channels == 1)
		return "random colours are not there for a picture of one channel; give a number "
		       "as \"value\"";
	if (erase_is_beyond(op, OP_COARSE_DROPOUT_VALUE))
		return "\"value\" is from 0 to 255 and whole; give such a value";
	return NULL;
}

/* Seven numbers: how many there are, and where the numbers of all of them begin (draw_tell()). */
static void erase_holes_draw(const struct op *op, uint32_t height, uint32_t width,
			     struct op_drawn *drawn)
{
	const double *holes = op->value[OP_COARSE_DROPOUT_HOLES].number;

	(void)height;
	(void)width;
	if (draw_chance(&drawn->seq, op_number(op, OP_COARSE_DROPOUT_P, 0)))
		drawn->number[0] =
		    (double)draw_integer(&drawn->seq, (int64_t)holes[0], (int64_t)holes[1]);
	draw_tell(&drawn->seq, drawn->number + 1);
}

static bool erase_holes_is_random(const struct op *op)
{
	return op_number(op, OP_COARSE_DROPOUT_P, 0) > 0;
}

/* A hole's side, of a picture's. */
static int64_t erase_side(struct philox_seq *seq, const double span[2], int64_t size)
{
	const int64_t least = (int64_t)span[0], most = (int64_t)span[1];

	if (span[1] < 1)
		return (int64_t)((double)size * draw_between(seq, span[0], span[1]));
	return draw_integer(seq, least < size ? least : size, most < size ? most : size);
}

/* All of them, at most ERASE_MAX_HOLES: height, width, top, left of each are drawn. Returns how many. */
static unsigned erase_holes_of(const struct op *op, struct philox_seq *seq, unsigned n,
			       int64_t height, int64_t width, struct erase_hole *hole)
{
	for (unsigned i = 0; i < n; i++) {
		const int64_t h =
		    erase_side(seq, op->value[OP_COARSE_DROPOUT_HEIGHT].number, height);
		const int64_t w = erase_side(seq, op->value[OP_COARSE_DROPOUT_WIDTH].number, width);

		hole[i].from[1] = draw_integer(seq, 0, height - h);
		hole[i].from[0] = draw_integer(seq, 0, width - w);
		hole[i].to[1] = hole[i].from[1] + h;
		hole[i].to[0] = hole[i].from[0] + w;
	}
	return n;
}

/* The colour of one pixel, or of a hole. */
static void erase_pick(struct philox_seq *seq, uint8_t colour[4])
{
	const uint32_t word = philox_u32(seq);

	for (unsigned c = 0; c < 3; c++)
		colour[c] = (uint8_t)(word >> 8 * c);
}

static int erase_holes_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	const bool is_noise = erase_is_word(op, OP_COARSE_DROPOUT_VALUE);
	const bool is_uniform = is_noise && op_number(op, OP_COARSE_DROPOUT_VALUE, 0) == 1;
	struct erase_hole hole[ERASE_MAX_HOLES];
	struct philox_seq seq = drawn->seq;
	uint8_t colour[4] = {0};
	unsigned n = erase_holes_of(op, &seq, (unsigned)drawn->number[0], picture->height,
				    picture->width, hole);

	(void)scratch;
	if (!is_noise)
		op_color(op, OP_COARSE_DROPOUT_VALUE, colour);
	for (unsigned i = 0; i < n; i++) {
		if (is_uniform)
			erase_pick(&seq, colour);
		for (int64_t y = hole[i].from[1]; y < hole[i].to[1]; y++) {
			uint8_t *row = picture_row(picture, (uint32_t)y);

			for (int64_t x = hole[i].from[0]; x < hole[i].to[0]; x++) {
				if (is_noise && !is_uniform)
					erase_pick(&seq, colour);
				memcpy(row + 4 * x, colour, 4);
			}
		}
	}
	return 0;
}

/* Is the line at `at` of that axis hidden from low to high of the other one? */
static bool erase_hides(const struct erase_hole *hole, unsigned n, unsigned axis, int64_t at,
			int64_t low, int64_t high)
{
	bool was_moved = true;

	while (was_moved && low < high) {
		was_moved = false;
		for (unsigned i = 0; i < n; i++)
			if (hole[i].from[axis] <= at && at < hole[i].to[axis] &&
			    hole[i].from[!axis] <= low && low < hole[i].to[!axis]) {
				low = hole[i].to[!axis];
				was_moved = true;
			}
	}
	return low >= high;
}

/* A box is what is around its pixels that are still seen, as albumentations has it; a side from which nothing is hidden stays. */
static void erase_shrink(const struct erase_hole *hole, unsigned n, float box[4])
{
	const int64_t from[2] = {(int64_t)box[0], (int64_t)box[1]};
	const int64_t to[2] = {(int64_t)box[2], (int64_t)box[3]};

	for (unsigned axis = 0; axis < 2; axis++) {
		int64_t low = from[axis], high = to[axis];

		while (low < high && erase_hides(hole, n, axis, low, from[!axis], to[!axis]))
			low++;
		while (low < high && erase_hides(hole, n, axis, high - 1, from[!axis], to[!axis]))
			high--;
		if (low > from[axis])
			box[axis] = (float)low;
		if (high < to[axis])
			box[2 + axis] = (float)high;
	}
}

static void erase_holes_follow(const struct op *op, const struct op_drawn *drawn,
			       struct follow *follow)
{
	struct erase_hole hole[ERASE_MAX_HOLES];
	struct philox_seq seq = drawn->seq;
	unsigned n = erase_holes_of(op, &seq, (unsigned)drawn->number[0], (int64_t)follow->height,
				    (int64_t)follow->width, hole);

	for (uint64_t i = 0; i < follow->n; i++)
		if (!follow_is_gone(follow->box[i]))
			erase_shrink(hole, n, follow->box[i]);
}

const struct op_impl erase_holes_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .shape = erase_holes_shape,
    .draw = erase_holes_draw,
    .is_random = erase_holes_is_random,
    .run = erase_holes_run,
    .follow = erase_holes_follow,
};
