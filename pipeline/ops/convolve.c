/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sharpen, box_blur, motion_blur and median_blur: albumentations' Sharpen, Blur, MotionBlur and MedianBlur, with OpenCV's pixels.
 *
 * Each row is made of the rows around it, which stand in a window that goes down the picture, with more pixels at both ends: mirrored
 * ones, or for a median the last one again, as in OpenCV. It sums up to ten taps along a side as here, in float32; with more it
 * goes by a Fourier transform, whose values differ by 1 at times.
 */

#include <math.h>
#include "base/exact.h"
#include "pipeline/engine/steps.h"
#include "pipeline/ops/blur.h"
#include "pipeline/ops/convolve.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

/* ---- rows ---- */

static void convolve_plain_taps(const struct convolve_taps *taps, const uint8_t *const *row,
				uint8_t *out, size_t n)
{
	typedef double four __attribute__((vector_size(32)));
	typedef float four_floats __attribute__((vector_size(16)));

	for (size_t x = 0; x < n; x += 4) {
		four_floats sum = {0};

		for (unsigned i = 0; i < taps->n; i++) {
			const struct convolve_tap *tap = &taps->tap[i];
			const uint8_t *at = row[tap->row] + tap->offset + x;
			const four value = {at[0], at[1], at[2], at[3]};

			sum = __builtin_convertvector(value * (double)tap->weight +
							  __builtin_convertvector(sum, four),
						      four_floats);
		}
		for (unsigned c = 0; c < 4; c++)
			out[x + c] = (uint8_t)rintf(sum[c] < 0 ? 0 : sum[c] > 255 ? 255 : sum[c]);
	}
}

CONVOLVE_MEDIAN(convolve_plain_median, )

const struct convolve_kernels convolve_plain = {
    .taps = convolve_plain_taps,
    .median = convolve_plain_median,
};

static const struct convolve_kernels *convolve_best(void)
{
	const struct convolve_kernels *fast = convolve_avx2();

	return fast ? fast : &convolve_plain;
}

/* The mean of size x size values: columns are summed up in down, then along the row. A size of up to 99 leaves the quotient
 * further from a half than float32 errs. */
static void convolve_box(unsigned size, const uint8_t *const *row, uint16_t *down, uint8_t *out,
			 size_t n)
{
	typedef int32_t four __attribute__((vector_size(16)));
	typedef float four_floats __attribute__((vector_size(16)));
	typedef uint8_t bytes __attribute__((vector_size(8), aligned(1), may_alias));
	typedef uint16_t words __attribute__((vector_size(16), aligned(2), may_alias));
	const size_t all = n + 4 * (size_t)(size - 1);
	const float share = 1.0F / (float)(size * size);
	four sum = {0};

	for (size_t x = 0; x < all; x += 8) {
		words total = {0};

		for (unsigned i = 0; i < size; i++)
			total += __builtin_convertvector(*(const bytes *)(row[i] + x), words);
		*(words *)(down + x) = total;
	}
	for (size_t x = 0; x < all; x += 4) {
		const uint16_t *in = down + x;
		uint8_t *to;
		four mean;

		sum += (four){in[0], in[1], in[2], in[3]};
		if (x < 4 * (size_t)(size - 1))
			continue;
		to = out + x - 4 * (size_t)(size - 1);
		mean = __builtin_convertvector(
		    __builtin_convertvector(sum, four_floats) * share + 0.5F, four);
		for (unsigned c = 0; c < 4; c++)
			to[c] = (uint8_t)mean[c];
		in -= 4 * (size_t)(size - 1);
		sum -= (four){in[0], in[1], in[2], in[3]};
	}
}

/* ---- pictures ---- */

struct convolve {
	unsigned size;                    /* taps along a side, odd */
	bool is_median;                   /* or a mean, where there are no taps */
	const struct convolve_taps *taps; /* borrowed */
};

/* One row of the picture with what its ends need. */
static void convolve_widen(const struct convolve *convolve, const uint8_t *in, uint32_t width,
			   uint8_t *out)
{
	const int64_t reach = convolve->size / 2, last = (int64_t)width - 1;

	memcpy(out + 4 * reach, in, 4 * (size_t)width);
	for (int64_t x = 1; x <= reach; x++) {
		const uint32_t left = convolve->is_median ? 0 : blur_reflect(-x, width);
		const uint32_t right =
		    convolve->is_median ? width - 1 : blur_reflect(last + x, width);

		memcpy(out + 4 * (reach - x), in + 4 * (size_t)left, 4);
		memcpy(out + 4 * (reach + last + x), in + 4 * (size_t)right, 4);
	}
}

static uint32_t convolve_row(const struct convolve *convolve, int64_t y, uint32_t height)
{
	if (!convolve->is_median)
		return blur_reflect(y, height);
	return y < 0 ? 0 : y < height ? (uint32_t)y : height - 1;
}

static int convolve_picture(struct steps_scratch *scratch, const struct convolve *convolve,
			    struct picture *picture)
{
	const struct convolve_kernels *kernels = convolve_best();
	const unsigned size = convolve->size;
	const size_t n = 4 * (size_t)picture->width;
	const size_t wide =
	    (n + 4 * (size_t)size + 63) / 32 * 32; /* and what kernels touch beyond */
	const uint8_t *row[CONVOLVE_MOST];
	struct picture to;
	uint8_t *rows, *out;
	uint16_t *down;
	int r = steps_begin(scratch, picture->height, picture->width, &to);

	if (r != 0)
		return r;
	rows = steps_work(scratch, wide * (size + 3));
	if (!rows)
		return PIPELINE_FAIL_MEMORY;
	memset(rows, 0, wide * (size + 3));
	out = rows + wide * size;
	down = (uint16_t *)(out + wide);
	for (int64_t y = -(int64_t)(size / 2); y < picture->height + (int64_t)(size / 2); y++) {
		const unsigned at = (unsigned)(y + size / 2) % size;
		const int64_t done = y - size / 2;

		convolve_widen(convolve,
			       picture_row(picture, convolve_row(convolve, y, picture->height)),
			       picture->width, rows + wide * at);
		if (done < 0)
			continue;
		for (unsigned i = 0; i < size; i++)
			row[i] = rows + wide * ((at + 1 + i) % size);
		if (convolve->taps)
			kernels->taps(convolve->taps, row, out, n);
		else if (convolve->is_median)
			kernels->median(size, row, out, n);
		else
			convolve_box(size, row, down, out, n);
		memcpy(picture_row(&to, (uint32_t)done), out, n);
	}
	steps_end(scratch, &to, picture);
	return 0;
}

static void convolve_add_tap(struct convolve_taps *taps, unsigned row, unsigned column,
			     float weight)
{
	if (weight != 0)
		taps->tap[taps->n++] = (struct convolve_tap){row, 4 * (size_t)column, weight};
}

/* ---- the ops ---- */

/* box_blur, median_blur and motion_blur have these in the same places. */
enum { CONVOLVE_P = OP_BOX_BLUR_P, CONVOLVE_SIZE = OP_BOX_BLUR_SIZE };
_Static_assert((int)OP_MEDIAN_BLUR_P == CONVOLVE_P && (int)OP_MOTION_BLUR_P == CONVOLVE_P, "p");
_Static_assert((int)OP_MEDIAN_BLUR_SIZE == CONVOLVE_SIZE &&
		   (int)OP_MOTION_BLUR_SIZE == CONVOLVE_SIZE,
	       "size");

static const char *convolve_shape(const struct op *op, struct shape *shape)
{
	const double *size = op->value[CONVOLVE_SIZE].number;

	(void)shape;
	if (fmod(size[0], 2) != 1 || fmod(size[1], 2) != 1)
		return "\"size\" is odd; give odd whole numbers";
	return NULL;
}

/* Two numbers: is it done, and how many taps a side has, odd. */
static void convolve_draw(const struct op *op, uint32_t height, uint32_t width,
			  struct op_drawn *drawn)
{
	const double *size = op->value[CONVOLVE_SIZE].number;

	(void)height;
	(void)width;
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, CONVOLVE_P, 0));
	drawn->number[1] =
	    size[0] + 2 * (double)draw_integer(&drawn->seq, 0, (int64_t)(size[1] - size[0]) / 2);
}

static void convolve_sharpen_draw(const struct op *op, uint32_t height, uint32_t width,
				  struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	op_draw_spans(op, OP_SHARPEN_LIGHTNESS, drawn);
}

static bool convolve_sharpen_is_random(const struct op *op)
{
	return op_spans_vary(op, OP_SHARPEN_LIGHTNESS);
}

static int convolve_sharpen_run(struct steps_scratch *scratch, const struct op *op,
				const struct op_drawn *drawn, struct picture *picture)
{
	const double alpha = drawn->number[OP_SHARPEN_ALPHA];
	const float around = -(float)(rint(alpha * 0x1p40) * 0x1p-40);
	const float middle =
	    (float)(1 - alpha) + (float)alpha * (float)(8 + drawn->number[OP_SHARPEN_LIGHTNESS]);
	struct convolve_taps taps = {0};
	const struct convolve convolve = {.size = 3, .taps = &taps};

	(void)op;
	if (drawn->number[0] == 0)
		return 0;
	for (unsigned i = 0; i < 9; i++)
		convolve_add_tap(&taps, i / 3, i % 3, i == 4 ? middle : around);
	return convolve_picture(scratch, &convolve, picture);
}

static bool convolve_is_random(const struct op *op)
{
	return op_varies(op, CONVOLVE_P, op_is_span(op, CONVOLVE_SIZE));
}

static int convolve_square_run(struct steps_scratch *scratch, const struct op *op,
			       const struct op_drawn *drawn, struct picture *picture)
{
	const struct convolve convolve = {.size = (unsigned)drawn->number[1],
					  .is_median = op->id == OP_MEDIAN_BLUR};

	return drawn->number[0] != 0 ? convolve_picture(scratch, &convolve, picture) : 0;
}

/* Six numbers: is it done, taps along a side, angle, direction, how far the line is moved to the right and down. */
static void convolve_motion_draw(const struct op *op, uint32_t height, uint32_t width,
				 struct op_drawn *drawn)
{
	const double *angle = op->value[OP_MOTION_BLUR_ANGLE].number;
	const double *direction = op->value[OP_MOTION_BLUR_DIRECTION].number;

	convolve_draw(op, height, width, drawn);
	drawn->number[2] = draw_between(&drawn->seq, angle[0], angle[1]);
	drawn->number[3] = draw_between(&drawn->seq, direction[0], direction[1]);
	for (unsigned i = 4; i < 6 && op_number(op, OP_MOTION_BLUR_SHIFT, 0) != 0; i++)
		drawn->number[i] = draw_between(&drawn->seq, -1, 1);
}

static bool convolve_motion_is_random(const struct op *op)
{
	return op_varies(op, CONVOLVE_P,
			 op_is_span(op, CONVOLVE_SIZE) || op_is_span(op, OP_MOTION_BLUR_ANGLE) ||
			     op_is_span(op, OP_MOTION_BLUR_DIRECTION) ||
			     op_number(op, OP_MOTION_BLUR_SHIFT, 0) != 0);
}

static unsigned convolve_within(double at, unsigned size)
{
	const double whole = rint(at);

	return whole < 0 ? 0 : whole > size - 1 ? size - 1 : (unsigned)whole;
}

/* A line of equal weights through the middle, as albumentations draws it. */
static void convolve_line(const struct op_drawn *drawn, struct convolve_taps *taps)
{
	const unsigned size = (unsigned)drawn->number[1];
	const double reach = size / 2, direction = drawn->number[3];
	const double radians = drawn->number[2] * (3.14159265358979323846 / 180);
	const double from = direction > 0 ? -reach * (1 - direction) : -reach;
	const double to = direction < 0 ? reach * (1 - -direction) : reach;
	bool is_set[CONVOLVE_MOST * CONVOLVE_MOST] = {false};
	unsigned n = 0;

	for (unsigned i = 0; i < size; i++) {
		const double t = i == size - 1 ? to : i * ((to - from) / (size - 1)) + from;
		const double x = reach + exact_cos(radians) * t + drawn->number[4] * reach / 2;
		const double y = reach + exact_sin(radians) * t + drawn->number[5] * reach / 2;

		is_set[convolve_within(y, size) * size + convolve_within(x, size)] = true;
	}
	for (unsigned i = 0; i < size * size; i++)
		n += is_set[i];
	for (unsigned i = 0; i < size * size; i++)
		if (is_set[i])
			convolve_add_tap(taps, i / size, i % size, 1.0F / (float)n);
}

static int convolve_motion_run(struct steps_scratch *scratch, const struct op *op,
			       const struct op_drawn *drawn, struct picture *picture)
{
	struct convolve_taps taps = {0};
	const struct convolve convolve = {.size = (unsigned)drawn->number[1], .taps = &taps};

	(void)op;
	if (drawn->number[0] == 0)
		return 0;
	convolve_line(drawn, &taps);
	return convolve_picture(scratch, &convolve, picture);
}

const struct op_impl convolve_square_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .shape = convolve_shape,
    .draw = convolve_draw,
    .is_random = convolve_is_random,
    .run = convolve_square_run,
};

const struct op_impl convolve_motion_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .shape = convolve_shape,
    .draw = convolve_motion_draw,
    .is_random = convolve_motion_is_random,
    .run = convolve_motion_run,
};

const struct op_impl convolve_sharpen_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .draw = convolve_sharpen_draw,
    .is_random = convolve_sharpen_is_random,
    .run = convolve_sharpen_run,
};
