/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws of random ops.
 *
 * The first Philox block, keyed by the seed and counting (nonce, sample), gives key and counter of
 * this sample; each op then has a sequence of its own, named by its number in the pipeline. So the
 * draws of an op depend neither on how many numbers another op used nor on the order in which
 * samples or ops are run. The seed is first mixed with a constant of this file, because shuffles in
 * plan/ use the plain one with the same nonce.
 *
 * random_resized_crop is torchvision's RandomResizedCrop.get_params: up to ten tries of (area
 * uniform, ratio uniform in the logarithm, rounded to pixels, half to even as Python rounds), then
 * the largest middle part whose ratio is allowed. How numbers are drawn is ours; frozen by
 * tests/pipeline/draw_test.c, since a recorded instance must come out the same for ever.
 */

#include <math.h>
#include "base/exact.h"
#include "pipeline/ops/draw.h"

#define DRAW_DOMAIN UINT64_C(0x6f612d6472617773)
#define DRAW_TRIES 10

void draw_init(struct draw *draw, const struct pipeline_key *key)
{
	struct philox block = philox_block(key->seed ^ DRAW_DOMAIN, key->nonce, key->sample);

	draw->key = (uint64_t)block.word[1] << 32 | block.word[0];
	draw->counter = (uint64_t)block.word[3] << 32 | block.word[2];
	draw->first = 0;
	draw->choices = NULL;
}

void draw_seq(const struct draw *draw, unsigned index, struct philox_seq *ret)
{
	philox_seq_init(ret, draw->key, draw->counter, draw->first + index);
}

void draw_tell(const struct philox_seq *seq, double ret[6])
{
	ret[0] = (uint32_t)seq->key;
	ret[1] = (uint32_t)(seq->key >> 32);
	ret[2] = (uint32_t)seq->a;
	ret[3] = (uint32_t)(seq->a >> 32);
	ret[4] = (uint32_t)(seq->b >> 32);
	ret[5] = 4 * (double)(uint32_t)seq->b - (4 - seq->used);
}

bool draw_chance(struct philox_seq *seq, double p)
{
	return philox_unit(seq) < p;
}

double draw_between(struct philox_seq *seq, double low, double high)
{
	return low + (high - low) * philox_unit(seq);
}

static bool draw_sides_of(double area, double aspect, double *ret_height, double *ret_width)
{
	const double height = sqrt(area / aspect), width = sqrt(area * aspect);

	*ret_height = rint(height);
	*ret_width = rint(width);
	return exact_is_sure(height) && exact_is_sure(width);
}

void draw_sides(struct philox_seq *seq, double area, const double ratio[2], double *ret_height,
		double *ret_width)
{
	const double part = philox_unit(seq), low = log(ratio[0]);
	double exact_low;

	if (draw_sides_of(area, exp(low + (log(ratio[1]) - low) * part), ret_height, ret_width))
		return;
	exact_low = exact_log(ratio[0]);
	draw_sides_of(area, exact_exp(exact_low + (exact_log(ratio[1]) - exact_low) * part),
		      ret_height, ret_width);
}

int64_t draw_integer(struct philox_seq *seq, int64_t low, int64_t high)
{
	return low + (int64_t)philox_below(seq, (uint64_t)(high - low) + 1);
}

/* Box and Muller's pair, of two words. */
static void draw_normal_of(double unit, double angle, double ret[2])
{
	const double radius = sqrt(-2 * exact_log(unit));

	ret[0] = radius * exact_cos(angle);
	ret[1] = radius * exact_sin(angle);
}

static void draw_words(struct philox_seq *seq, double *ret_unit, double *ret_angle)
{
	*ret_unit = 1 - philox_u32(seq) * 0x1p-32;
	*ret_angle = 2 * 3.14159265358979323846 * (philox_u32(seq) * 0x1p-32);
}

double draw_normal(struct philox_seq *seq)
{
	double unit, angle, pair[2];

	draw_words(seq, &unit, &angle);
	draw_normal_of(unit, angle, pair);
	return pair[0];
}

void draw_normal_floats(struct philox_seq *seq, float ret[2])
{
	double unit, angle, radius, pair[2];

	draw_words(seq, &unit, &angle);
	radius = sqrt(-2 * log(unit));
	pair[0] = radius * cos(angle);
	pair[1] = radius * sin(angle);
	if (!exact_is_sure_float(pair[0]) || !exact_is_sure_float(pair[1]))
		draw_normal_of(unit, angle, pair);
	ret[0] = (float)pair[0];
	ret[1] = (float)pair[1];
}

/* The number that a normal one is below with probability unit: Wichura's PPND7 ("The percentage points of the normal
 * distribution", Applied Statistics 37, 1988), right to about 1e-7. */
static double draw_quantile(double unit, double (*log_of)(double))
{
	const double q = unit - 0.5;
	double r, value;

	if (fabs(q) <= 0.425) {
		r = 0.180625 - q * q;
		return q *
		       (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
		       (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1);
	}
	r = sqrt(-log_of(q < 0 ? unit : 1 - unit)) - 1.6;
	value = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
		((0.12021132975 * r + 0.73700164250) * r + 1);
	return q < 0 ? -value : value;
}

float draw_normal_float(struct philox_seq *seq)
{
	const double unit = (philox_u32(seq) + 0.5) * 0x1p-32;
	double value = draw_quantile(unit, log);

	if (!exact_is_sure_float(value))
		value = draw_quantile(unit, exact_log);
	return (float)value;
}

/* One try: the size of the part. False where it does not fit. */
static bool draw_try(struct philox_seq *seq, const struct op *op, uint32_t height, uint32_t width,
		     struct picture_box *ret)
{
	const double *scale = op->value[OP_RANDOM_RESIZED_CROP_SCALE].number;
	const double *ratio = op->value[OP_RANDOM_RESIZED_CROP_RATIO].number;
	double area = (double)height * width * draw_between(seq, scale[0], scale[1]);
	double w, h;

	draw_sides(seq, area, ratio, &h, &w);
	if (!(w >= 1 && w <= width && h >= 1 && h <= height))
		return false;
	ret->width = (uint32_t)w;
	ret->height = (uint32_t)h;
	ret->top = (uint32_t)philox_below(seq, height - ret->height + 1);
	ret->left = (uint32_t)philox_below(seq, width - ret->width + 1);
	return true;
}

/* Where no try fits: the middle, as large as the ratio allows. */
static void draw_middle(const struct op *op, uint32_t height, uint32_t width,
			struct picture_box *ret)
{
	const double *ratio = op->value[OP_RANDOM_RESIZED_CROP_RATIO].number;
	double w = width, h = height;

	if (w / h < ratio[0])
		h = rint(w / ratio[0]);
	else if (w / h > ratio[1])
		w = rint(h * ratio[1]);
	ret->width = (uint32_t)BASE_MAX(w, 1);
	ret->height = (uint32_t)BASE_MAX(h, 1);
	ret->top = (height - ret->height) / 2;
	ret->left = (width - ret->width) / 2;
}

void draw_crop(struct philox_seq *seq, const struct op *op, uint32_t height, uint32_t width,
	       struct picture_box *ret)
{
	for (unsigned i = 0; i < DRAW_TRIES; i++) {
		if (draw_try(seq, op, height, width, ret))
			return;
	}
	draw_middle(op, height, width, ret);
}
