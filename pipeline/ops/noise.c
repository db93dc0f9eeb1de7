/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gaussian_noise: torchvision's GaussianNoise, which is of float tensors alone.
 *
 * Where it stands between pictures and normalize, as it mostly does, finish.c leaves a picture's bytes as numbers of the field's
 * type, each of which has room for 0 to 255 (shape.raw), and here the rest is done: value / 255, the noise, then normalize. Behind
 * normalize or cast it works on what they made. All in float32, as torch rounds: noise x sigma, + mean, + value, cut off.
 *
 * Noise is drawn channel by channel, row by row, so it is the same in every type and order.
 */

#include "base/half.h"
#include "pipeline/engine/finish.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/volume/volume_part.h"

static const char *noise_shape(const struct op *op, struct shape *shape)
{
	if (op->gate)
		return "random_apply cannot decide on it; put it behind that's ops, and give it "
		       "\"p\"";
	if (shape->views || shape->frames)
		return "all of several pictures would have the same noise; leave it out";
	if (shape->is_volume && op_number(op, OP_GAUSSIAN_NOISE_CLIP, 0) != 0)
		return "numbers of volumes may lie beyond 0 and 1; give \"clip\": false";
	if (!shape->raw && shape->dtype == PIPELINE_U8)
		return "it is of floats; put it before or behind normalize, or behind a cast to "
		       "them";
	return NULL;
}

/* Is it done, sigma, and where the noise begins. */
static void noise_draw(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn)
{
	(void)height;
	(void)width;
	drawn->number[0] = draw_chance(&drawn->seq, op_number(op, OP_GAUSSIAN_NOISE_P, 0));
	drawn->number[1] = draw_between(&drawn->seq, op_number(op, OP_GAUSSIAN_NOISE_SIGMA, 0),
					op_number(op, OP_GAUSSIAN_NOISE_SIGMA, 1));
	draw_tell(&drawn->seq, drawn->number + 2);
}

static bool noise_is_random(const struct op *op)
{
	const double p = op_number(op, OP_GAUSSIAN_NOISE_P, 0);

	return p > 0 && (p < 1 || op_number(op, OP_GAUSSIAN_NOISE_SIGMA, 1) > 0);
}

static float noise_get(const void *values, size_t at, enum pipeline_dtype dtype)
{
	if (dtype == PIPELINE_F32)
		return ((const float *)values)[at];
	return dtype == PIPELINE_F16 ? half_f16_value(((const uint16_t *)values)[at])
				     : half_bf16_value(((const uint16_t *)values)[at]);
}

static void noise_set(void *values, size_t at, enum pipeline_dtype dtype, float value)
{
	if (dtype == PIPELINE_F32)
		((float *)values)[at] = value;
	else
		((uint16_t *)values)[at] =
		    dtype == PIPELINE_F16 ? half_f16(value) : half_bf16(value);
}

struct noise {
	struct philox_seq seq;
	float mean, sigma;
	bool is_done, is_clipped;
};

static float noise_add(struct noise *noise, float value)
{
	if (!noise->is_done)
		return value;
	value += noise->mean + draw_normal_float(&noise->seq) * noise->sigma;
	if (!noise->is_clipped)
		return value;
	return value < 0 ? 0 : value > 1 ? 1 : value;
}

static void noise_finished(const struct shape *shape, const struct op *op,
			   const struct op_drawn *drawn, void *out)
{
	const size_t plane = (size_t)shape->height * shape->width;
	const bool planes = shape->order == OP_CHW;
	struct noise noise = {drawn->seq, (float)op_number(op, OP_GAUSSIAN_NOISE_MEAN, 0),
			      (float)drawn->number[1], drawn->number[0] != 0,
			      op_number(op, OP_GAUSSIAN_NOISE_CLIP, 0) != 0};

	for (unsigned c = 0; c < shape->channels; c++) {
		size_t at = planes ? c * plane : c;

		for (size_t i = 0; i < plane; i++, at += planes ? 1 : shape->channels) {
			float value = noise_get(out, at, shape->dtype);

			value = noise_add(&noise, shape->raw ? value / 255.0f : value);
			if (shape->raw)
				value = finish_normalize(shape->normalize, c, value);
			noise_set(out, at, shape->dtype, value);
		}
	}
}

static void noise_volume(const struct op *op, struct op_drawn *drawn, struct volume_part *part)
{
	noise_draw(op, 0, 0, drawn);
	if (drawn->number[0] != 0)
		part->change[part->n_changes++] =
		    (struct volume_change){.times = (float)drawn->number[1],
					   .plus = (float)op_number(op, OP_GAUSSIAN_NOISE_MEAN, 0),
					   .is_noise = true,
					   .seq = drawn->seq};
}

const struct op_impl noise_op = {
    .stage = OP_STAGE_PICTURE,
    .stays = true,
    .floats = true,
    .shape = noise_shape,
    .draw = noise_draw,
    .is_random = noise_is_random,
    .finished = noise_finished,
    .volume = noise_volume,
};
