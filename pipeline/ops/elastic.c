/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elastic_transform: torchvision's ElasticTransform, which makes a float tensor of a Pillow image, too.
 *
 * Each pixel has two numbers of noise, uniform in [-1, 1): first all those across, then all those down, row by row. Each of the two
 * planes is blurred (blur.h: torchvision takes int(8 sigma + 1) points, or one more), multiplied by alpha and divided by the
 * picture's height across, by its width down, as torchvision has it. That is how far a pixel is taken from, in halves of the
 * picture's width and height. Then it is torch's grid_sample: pixels outside are 0, and a pixel that is partly outside is mixed with
 * the fill by the part of it that is inside. All in float32, rounded after each operation; torch adds in another order, and
 * contracts, so that a value may differ by one (tests/pipeline/parity_torch.py says how many do).
 *
 * Boxes and key points go the other way, about: what is at a point is put where the noise there, with its sign turned, puts it.
 * Noise is a function of its place, so for a point the blur is made at that pixel alone, with the same sums: no plane is kept.
 */

#include <math.h>
#include "pipeline/engine/steps.h"
#include "pipeline/ops/blur.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"

struct elastic {
	const struct op *op;
	const struct philox_seq *seq; /* where noise begins */
	uint32_t height, width;
	unsigned taps[2]; /* of the kernel of noise across, down; 1: no blur */
	/* of each kernel, along rows and along columns */
	float weight[2][2][BLUR_MAX_TAPS];
};

static const char *elastic_shape(const struct op *op, struct shape *shape)
{
	const double *sigma = op->value[OP_ELASTIC_TRANSFORM_SIGMA].number;

	(void)shape;
	return (sigma[0] == 0) == (sigma[1] == 0)
		   ? NULL
		   : "one sigma is 0; give two above 0, or 0 for both";
}

/* Where the noise begins. */
static void elastic_draw(const struct op *op, uint32_t height, uint32_t width,
			 struct op_drawn *drawn)
{
	(void)op, (void)height, (void)width;
	draw_tell(&drawn->seq, drawn->number);
}

static bool elastic_is_random(const struct op *op)
{
	const double *alpha = op->value[OP_ELASTIC_TRANSFORM_ALPHA].number;

	return alpha[0] > 0 || alpha[1] > 0;
}

static void elastic_init(struct elastic *elastic, const struct op *op, const struct op_drawn *drawn,
			 uint32_t height, uint32_t width)
{
	const double *sigma = op->value[OP_ELASTIC_TRANSFORM_SIGMA].number;

	elastic->op = op;
	elastic->seq = &drawn->seq;
	elastic->height = height;
	elastic->width = width;
	for (unsigned plane = 0; plane < 2; plane++) {
		elastic->taps[plane] = sigma[plane] > 0 ? (unsigned)(8 * sigma[plane] + 1) | 1 : 1;
		for (unsigned along = 0; along < 2; along++)
			blur_weights(elastic->taps[plane], sigma[along] > 0 ? sigma[along] : 1,
				     elastic->weight[plane][along]);
	}
}

/* Noise has to be reflected at the edges. */
static bool elastic_is_small(const struct elastic *elastic)
{
	const uint32_t reach = BASE_MAX(elastic->taps[0], elastic->taps[1]) / 2;

	return reach >= elastic->height || reach >= elastic->width;
}

/* ---- noise ---- */

static float elastic_unit(uint32_t word)
{
	return (float)(word >> 8) * 0x1p-24f * 2 - 1;
}

/* n numbers of noise from number first on. */
static void elastic_noise(const struct elastic *elastic, uint64_t first, size_t n, float *ret)
{
	const struct philox_seq *seq = elastic->seq;
	uint64_t next = first / 4;
	unsigned at = (unsigned)(first % 4);

	for (size_t i = 0; i < n; next++, at = 0) {
		const struct philox block = philox_block(seq->key, seq->a, seq->b + next);

		for (; at < 4 && i < n; at++)
			ret[i++] = elastic_unit(block.word[at]);
	}
}

static uint64_t elastic_place(const struct elastic *elastic, unsigned plane, uint32_t y, uint32_t x)
{
	return ((uint64_t)plane * elastic->height + y) * elastic->width + x;
}

/* From blurred noise to what is added to a place, in halves of the side. */
static float elastic_far(const struct elastic *elastic, unsigned plane, float noise)
{
	const float alpha = (float)op_number(elastic->op, OP_ELASTIC_TRANSFORM_ALPHA, plane);

	return noise * alpha / (float)(plane ? elastic->width : elastic->height);
}

struct elastic_room {
	float *wide;     /* a row of noise with its reflections */
	float *rows[2];  /* of each plane taps rows, blurred across: row y at y mod taps */
	float *field[2]; /* a row of each plane at a time */
};

/* Row y of a plane, blurred across. */
static void elastic_across(const struct elastic *elastic, const struct elastic_room *room,
			   unsigned plane, uint32_t y, float *ret)
{
	const uint32_t width = elastic->width, reach = elastic->taps[plane] / 2;
	float *middle = room->wide + reach;

	elastic_noise(elastic, elastic_place(elastic, plane, y, 0), width, middle);
	for (uint32_t i = 1; i <= reach; i++) {
		middle[-(int64_t)i] = middle[i];
		middle[width - 1 + i] = middle[width - 1 - i];
	}
	memset(ret, 0, width * sizeof(*ret));
	for (unsigned t = 0; t < elastic->taps[plane]; t++)
		blur_add(ret, room->wide + t, elastic->weight[plane][0][t], width);
}

/* The plane's row y of distances; *done rows are blurred across so far. */
static void elastic_row(const struct elastic *elastic, const struct elastic_room *room,
			unsigned plane, uint32_t y, uint32_t *done)
{
	const unsigned taps = elastic->taps[plane];
	const uint32_t width = elastic->width;
	float *rows = room->rows[plane];
	float *field = room->field[plane];

	for (; *done < elastic->height && *done <= y + taps / 2; ++*done)
		elastic_across(elastic, room, plane, *done, rows + (size_t)(*done % taps) * width);
	memset(field, 0, width * sizeof(*field));
	for (unsigned t = 0; t < taps; t++) {
		const uint32_t at = blur_reflect((int64_t)y + t - taps / 2, elastic->height);

		blur_add(field, rows + (size_t)(at % taps) * width, elastic->weight[plane][1][t],
			 width);
	}
	for (uint32_t x = 0; x < width; x++)
		field[x] = elastic_far(elastic, plane, field[x]);
}

/* The same of one pixel. */
static float elastic_at(const struct elastic *elastic, unsigned plane, uint32_t y, uint32_t x)
{
	const int64_t taps = elastic->taps[plane];
	float total = 0;

	for (int64_t down = 0; down < taps; down++) {
		const uint32_t row = blur_reflect(y + down - taps / 2, elastic->height);
		float across = 0;

		for (int64_t t = 0; t < taps; t++) {
			const uint32_t column = blur_reflect(x + t - taps / 2, elastic->width);
			float noise;

			elastic_noise(elastic, elastic_place(elastic, plane, row, column), 1,
				      &noise);
			across += elastic->weight[plane][0][t] * noise;
		}
		total += elastic->weight[plane][1][down] * across;
	}
	return elastic_far(elastic, plane, total);
}

/* ---- pixels ---- */

/* torch.linspace((1 - size) / size, (size - 1) / size, size)[at]: a pixel's middle, the picture being from -1 to 1. */
static float elastic_middle(uint32_t size, uint32_t at)
{
	const float start = (float)((1.0 - size) / size), end = (float)((size - 1.0) / size);
	const float step = size > 1 ? (end - start) / (float)(size - 1) : 0;

	return at < size / 2 ? start + step * (float)at : end - step * (float)(size - 1 - at);
}

/* Where that is in pixels. */
static float elastic_pixel(float place, uint32_t size)
{
	return (place + 1) * ((float)size / 2) - 0.5f;
}

struct elastic_to {
	bool is_nearest, is_filled;
	uint8_t fill[3];
};

static bool elastic_has(float at, uint32_t size)
{
	return at >= 0 && at < (float)size;
}

static void elastic_nearest(const struct picture *from, const struct elastic_to *to, float x,
			    float y, uint8_t *out)
{
	x = rintf(x);
	y = rintf(y);
	if (elastic_has(x, from->width) && elastic_has(y, from->height)) {
		memcpy(out, picture_row(from, (uint32_t)y) + 4 * (size_t)x, 4);
	} else {
		memcpy(out, to->fill, 3);
		out[3] = 0;
	}
}

static void elastic_bilinear(const struct picture *from, const struct elastic_to *to, float x,
			     float y, uint8_t *out)
{
	const float left = floorf(x), above = floorf(y);
	const float right_part = x - left, lower_part = y - above;
	const float left_part = 1 - right_part, upper_part = 1 - lower_part;
	const float part[4] = {left_part * upper_part, right_part * upper_part,
			       left_part * lower_part, right_part * lower_part};
	float value[3] = {0}, inside = 0;

	for (unsigned k = 0; k < 4; k++) {
		const float column = left + (float)(k & 1), row = above + (float)(k >> 1);
		const uint8_t *pixel;

		if (!elastic_has(column, from->width) || !elastic_has(row, from->height))
			continue;
		pixel = picture_row(from, (uint32_t)row) + 4 * (size_t)column;
		for (unsigned c = 0; c < 3; c++)
			value[c] += pixel[c] * part[k];
		inside += part[k];
	}
	for (unsigned c = 0; c < 3; c++) {
		if (to->is_filled)
			value[c] = (value[c] - to->fill[c]) * inside + to->fill[c];
		out[c] = (uint8_t)rintf(fminf(fmaxf(value[c], 0), 255));
	}
	out[3] = 0;
}

static void elastic_pixels(const struct elastic *elastic, const struct elastic_room *room,
			   const struct elastic_to *to, const struct picture *from,
			   const struct picture *made)
{
	uint32_t done[2] = {0, 0};

	for (uint32_t y = 0; y < made->height; y++) {
		const float middle = elastic_middle(elastic->height, y);
		uint8_t *out = picture_row(made, y);

		for (unsigned plane = 0; plane < 2; plane++)
			elastic_row(elastic, room, plane, y, &done[plane]);
		for (uint32_t x = 0; x < made->width; x++, out += 4) {
			const float at_x = elastic_pixel(
			    elastic_middle(elastic->width, x) + room->field[0][x], elastic->width);
			const float at_y =
			    elastic_pixel(middle + room->field[1][x], elastic->height);

			if (to->is_nearest)
				elastic_nearest(from, to, at_x, at_y, out);
			else
				elastic_bilinear(from, to, at_x, at_y, out);
		}
	}
}

static bool elastic_room(struct elastic_room *room, const struct elastic *elastic,
			 struct steps_scratch *scratch)
{
	const size_t width = elastic->width, wide = width + BLUR_MAX_TAPS;
	const size_t rows = elastic->taps[0] + elastic->taps[1] + 2;

	room->wide = steps_work(scratch, (wide + rows * width) * sizeof(float));
	if (!room->wide)
		return false;
	room->field[0] = room->wide + wide;
	room->field[1] = room->field[0] + width;
	room->rows[0] = room->field[1] + width;
	room->rows[1] = room->rows[0] + elastic->taps[0] * width;
	return true;
}

static int elastic_run(struct steps_scratch *scratch, const struct op *op,
		       const struct op_drawn *drawn, struct picture *picture)
{
	struct elastic_to to = {.is_nearest =
				    op_number(op, OP_ELASTIC_TRANSFORM_INTERPOLATION, 0) == 0,
				.is_filled = !op_is_null(op, OP_ELASTIC_TRANSFORM_FILL)};
	struct elastic_room room;
	struct elastic elastic;
	struct picture made;
	int r;

	elastic_init(&elastic, op, drawn, picture->height, picture->width);
	if (elastic_is_small(&elastic))
		return steps_refuse(scratch, "the picture is too small");
	r = steps_begin(scratch, picture->height, picture->width, &made);
	if (r != 0)
		return r;
	if (!elastic_room(&room, &elastic, scratch))
		return PIPELINE_FAIL_MEMORY;
	op_color(op, OP_ELASTIC_TRANSFORM_FILL, to.fill);
	elastic_pixels(&elastic, &room, &to, picture, &made);
	steps_end(scratch, &made, picture);
	return 0;
}

/* ---- boxes and key points ---- */

/* Where the pixel that (x, y) is in, or the nearest, is put. */
static void elastic_moved(const struct elastic *elastic, double x, double y, double ret[2])
{
	const uint32_t column = (uint32_t)fmin(fmax(x, 0), elastic->width - 1.0);
	const uint32_t row = (uint32_t)fmin(fmax(y, 0), elastic->height - 1.0);

	ret[0] = elastic_pixel(elastic_middle(elastic->width, column) -
				   elastic_at(elastic, 0, row, column),
			       elastic->width);
	ret[1] = elastic_pixel(elastic_middle(elastic->height, row) -
				   elastic_at(elastic, 1, row, column),
			       elastic->height);
}

static void elastic_follow_box(const struct elastic *elastic, float box[4])
{
	double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY};

	for (unsigned corner = 0; corner < 4; corner++) {
		const double x = ceil(box[corner & 1 ? 2 : 0]), y = ceil(box[corner & 2 ? 3 : 1]);
		double at[2];

		/* the picture's end is one pixel behind its last one, where torchvision fails */
		elastic_moved(elastic, x, y, at);
		at[0] += x >= elastic->width;
		at[1] += y >= elastic->height;
		for (unsigned axis = 0; axis < 2; axis++) {
			least[axis] = fmin(least[axis], at[axis]);
			most[axis] = fmax(most[axis], at[axis]);
		}
	}
	box[0] = (float)least[0];
	box[1] = (float)least[1];
	box[2] = (float)most[0];
	box[3] = (float)most[1];
}

static void elastic_follow(const struct op *op, const struct op_drawn *drawn, struct follow *follow)
{
	struct elastic elastic;

	elastic_init(&elastic, op, drawn, (uint32_t)follow->height, (uint32_t)follow->width);
	if (elastic_is_small(&elastic))
		return; /* the picture is refused */
	for (uint64_t i = 0; i < follow->n; i++)
		elastic_follow_box(&elastic, follow->box[i]);
	for (uint64_t i = 0; i < follow->n_rows * follow->n_points; i++) {
		float *point = follow->point[i];
		double at[2];

		/* what was outside of the picture is not known to its noise */
		if (point[2] == 0)
			continue;
		elastic_moved(&elastic, point[0], point[1], at);
		point[0] = (float)at[0];
		point[1] = (float)at[1];
	}
	follow_window(follow, 0, 0, follow->height, follow->width);
}

const struct op_impl elastic_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = elastic_shape,
    .draw = elastic_draw,
    .is_random = elastic_is_random,
    .run = elastic_run,
    .follow = elastic_follow,
};
