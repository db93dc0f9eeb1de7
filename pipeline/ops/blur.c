/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gaussian_blur: torchvision's GaussianBlur.
 *
 * torchvision puts a Pillow picture into a float32 tensor, reflects it at its borders, convolves it
 * with the outer product of two kernels of weights softmax(-(x / sigma)^2) at kernel_size points
 * evenly spaced in +-(kernel_size - 1) / (2 sqrt 2), and rounds to 8 bits, half to even. In which
 * order torch adds up the products is its own affair and differs from machine to machine. Here the
 * two kernels are applied one after the other, rows first, in float32, products added from left to
 * right and from top to bottom; weights are float32, computed in double. The sum is the same but for
 * the rounding of float32, so a value differs, by one, only where the exact sum is within about
 * 0.0001 of a half: tests/pipeline/parity.py says how many do.
 *
 * A window of kernel_size[1] blurred rows goes down the picture, so that memory is small and each
 * row is blurred across once. Rows are float32 of four values a pixel; every loop runs along them.
 */

#include <math.h>
#include "base/exact.h"
#include "pipeline/engine/steps.h"
#include "pipeline/ops/blur.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

struct blur {
	unsigned taps[2]; /* across, down */
	float weight[2][BLUR_MAX_TAPS];
	size_t row;   /* floats of a row */
	float *wide;  /* one row of the picture with its reflections */
	float *rows;  /* taps[1] rows, blurred across: row y of the picture at y mod taps[1] */
	float *total; /* one row */
};

/* false: some libm would give another weight. */
static bool blur_weigh(unsigned taps, double sigma, double (*exp_of)(double), float *weight)
{
	const double reach = (taps - 1) / (2 * sqrt(2.0));
	double value[BLUR_MAX_TAPS], sum = 0;
	bool is_sure = true;

	for (unsigned i = 0; i < taps; i++) {
		double x = taps > 1 ? reach * (2.0 * i / (taps - 1) - 1) / sigma : 0;

		/* the middle has the largest exponent: 0 */
		value[i] = exp_of(-x * x);
		sum += value[i];
	}
	for (unsigned i = 0; i < taps; i++) {
		weight[i] = (float)(value[i] / sum);
		is_sure &= exact_is_sure_float(value[i] / sum);
	}
	return is_sure;
}

void blur_weights(unsigned taps, double sigma, float *weight)
{
	if (!blur_weigh(taps, sigma, exp, weight))
		blur_weigh(taps, sigma, exact_exp, weight);
}

uint32_t blur_reflect(int64_t at, uint32_t size)
{
	const int64_t last = (int64_t)size - 1;
	const int64_t turn = last > 0 ? 2 * last : 1;

	at = (at < 0 ? -at : at) % turn;
	return (uint32_t)(at > last ? turn - at : at);
}

void blur_add(float *restrict total, const float *restrict row, float weight, size_t n)
{
	for (size_t i = 0; i < n; i++)
		total[i] += weight * row[i];
}

static void blur_across(const struct blur *blur, const uint8_t *in, uint32_t width, float *total)
{
	const int64_t reach = blur->taps[0] / 2;

	for (int64_t x = -reach; x < 0; x++) {
		const uint8_t *left = in + 4 * (size_t)blur_reflect(x, width);
		const uint8_t *right = in + 4 * (size_t)blur_reflect(width - 1 - x, width);

		for (unsigned c = 0; c < 4; c++) {
			blur->wide[4 * (x + reach) + c] = left[c];
			blur->wide[4 * (reach + width - 1 - x) + c] = right[c];
		}
	}
	for (size_t i = 0; i < 4 * (size_t)width; i++)
		blur->wide[4 * (size_t)reach + i] = in[i];
	memset(total, 0, blur->row * sizeof(*total));
	for (unsigned t = 0; t < blur->taps[0]; t++)
		blur_add(total, blur->wide + 4 * (size_t)t, blur->weight[0][t], blur->row);
}

/* Rounded half to even by the addition itself: values are within 0 ... 255.01. */
static void blur_round(const float *restrict total, uint8_t *restrict out, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float moved = total[i] + 8388608.0f;
		uint32_t bits;

		memcpy(&bits, &moved, sizeof(bits));
		out[i] = (uint8_t)bits;
	}
}

static void blur_down(const struct blur *blur, const struct picture *picture,
		      const struct picture *to)
{
	const int64_t reach = blur->taps[1] / 2;
	uint32_t done = 0; /* rows blurred across */

	for (uint32_t y = 0; y < to->height; y++) {
		while (done < picture->height && done <= y + reach) {
			blur_across(blur, picture_row(picture, done), picture->width,
				    blur->rows + done % blur->taps[1] * blur->row);
			done++;
		}
		memset(blur->total, 0, blur->row * sizeof(*blur->total));
		for (unsigned t = 0; t < blur->taps[1]; t++) {
			uint32_t at = blur_reflect((int64_t)y + t - reach, picture->height);

			blur_add(blur->total, blur->rows + at % blur->taps[1] * blur->row,
				 blur->weight[1][t], blur->row);
		}
		blur_round(blur->total, picture_row(to, y), blur->row);
	}
}

/* Two numbers: sigma, and whether it is done. */
static void blur_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	drawn->number[0] = draw_between(&drawn->seq, op_number(op, OP_GAUSSIAN_BLUR_SIGMA, 0),
					op_number(op, OP_GAUSSIAN_BLUR_SIGMA, 1));
	drawn->number[1] = draw_chance(&drawn->seq, op_number(op, OP_GAUSSIAN_BLUR_P, 0));
}

static bool blur_is_random(const struct op *op)
{
	const double p = op_number(op, OP_GAUSSIAN_BLUR_P, 0);

	return p > 0 && (p < 1 || op_number(op, OP_GAUSSIAN_BLUR_SIGMA, 0) <
				      op_number(op, OP_GAUSSIAN_BLUR_SIGMA, 1));
}

/* The scratch memory of a blur of pictures of that width. */
static bool blur_init(struct blur *blur, struct steps_scratch *scratch, const struct op *op,
		      double sigma, uint32_t width)
{
	size_t wide;

	for (unsigned i = 0; i < 2; i++) {
		blur->taps[i] = (unsigned)op_number(op, OP_GAUSSIAN_BLUR_KERNEL_SIZE, i);
		blur_weights(blur->taps[i], sigma, blur->weight[i]);
	}
	blur->row = (size_t)width * 4;
	wide = blur->row + 4 * (size_t)blur->taps[0];
	blur->wide = steps_work(scratch, (wide + blur->row * (blur->taps[1] + 1)) * sizeof(float));
	if (!blur->wide)
		return false;
	blur->rows = blur->wide + wide;
	blur->total = blur->rows + blur->row * blur->taps[1];
	return true;
}

static int blur_run(struct steps_scratch *scratch, const struct op *op,
		    const struct op_drawn *drawn, struct picture *picture)
{
	struct blur blur;
	struct picture to;
	int r;

	if (drawn->number[1] == 0)
		return 0;
	if (op_number(op, OP_GAUSSIAN_BLUR_KERNEL_SIZE, 0) / 2 >= picture->width ||
	    op_number(op, OP_GAUSSIAN_BLUR_KERNEL_SIZE, 1) / 2 >= picture->height)
		return steps_refuse(scratch, "the picture is too small");
	r = steps_begin(scratch, picture->height, picture->width, &to);
	if (r != 0)
		return r;
	if (!blur_init(&blur, scratch, op, drawn->number[0], picture->width))
		return PIPELINE_FAIL_MEMORY;
	blur_down(&blur, picture, &to);
	steps_end(scratch, &to, picture);
	return 0;
}

const struct op_impl blur_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = blur_draw,
    .is_random = blur_is_random,
    .run = blur_run,
};
