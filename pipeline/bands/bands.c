/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op "bands", and which ops may stand behind it.
 *
 * A plane of float32 is a picture whose pixels' four bytes are one number. Ops that move whole pixels (crops, flips, padding with zeros,
 * turns whose filter is nearest) do that to any four bytes, so they run as they are, with the draws that they have for pictures. Ops that
 * make one pixel of several (resize, random_resized_crop) have arithmetic of their own (bands_resize.c). All others look into the bytes,
 * and are refused.
 *
 * nearest is PyTorch's, as of masks: a mask beside has the same pixels.
 */

#include "pipeline/bands/bands_inner.h"

static bool bands_is_random(const struct op *op)
{
	return op_number(op, OP_BANDS_SOURCE, 0) == OP_RECORDED_ANEW;
}

const struct op_impl bands_op = {.stage = OP_STAGE_DECODE, .is_random = bands_is_random};

const char *bands_init(const struct op_list *ops, struct bands *ret)
{
	const struct op *op = &ops->op[0];
	const unsigned picked = op->value[OP_BANDS_BANDS].count;
	const double *clamp = op->value[OP_BANDS_CLAMP].number;

	*ret = (struct bands){.scale = (float)op_number(op, OP_BANDS_SCALE, 0),
			      .is_clamped = !op_is_null(op, OP_BANDS_CLAMP),
			      .least = (float)clamp[0],
			      .most = (float)clamp[1],
			      .is_inverted = op_number(op, OP_BANDS_INVERT, 0) != 0};
	if (!op_is_null(op, OP_BANDS_CHANNELS))
		ret->channels = (unsigned)op_number(op, OP_BANDS_CHANNELS, 0);
	ret->n = picked ? picked : ret->channels;
	if (ret->n == 0)
		return "neither \"channels\" nor \"bands\" is given; give how many channels the "
		       "files have, or which are taken";
	if (ret->n > BANDS_MOST)
		return "more than 32 bands are taken; give fewer";
	for (unsigned i = 0; i < ret->n; i++) {
		ret->channel[i] =
		    picked ? (uint16_t)op_items(ops, op, OP_BANDS_BANDS)[i] : (uint16_t)i;
		if (ret->channels && ret->channel[i] >= ret->channels)
			return "a band is none of so many channels: they are counted from 0";
	}
	return NULL;
}

/* ---- ops behind it ---- */

static bool bands_is_black(const struct op *op)
{
	const struct op_param *params;
	const unsigned n = op_params(op->id, &params);

	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < op->value[i].count; k++)
			if (params[i].type.kind == OP_KIND_COLOR && op->value[i].number[k] != 0)
				return false;
	return true;
}

static const char *bands_check_op(const struct op *op)
{
	double filter = 0;

	switch (op->id) {
	case OP_RESIZE:
	case OP_SCALE_JITTER:
	case OP_RANDOM_SHORTEST_SIZE:
	case OP_RANDOM_RESIZE:
	case OP_RANDOM_RESIZED_CROP:
	case OP_HFLIP:
	case OP_VFLIP:
	case OP_RANDOM_APPLY:
		return NULL;
	case OP_CENTER_CROP:
	case OP_PAD:
	case OP_RANDOM_CROP:
	case OP_FIXED_SIZE_CROP:
	case OP_RANDOM_ZOOM_OUT:
		break;
	case OP_ROTATE:
		filter = op_number(op, OP_ROTATE_INTERPOLATION, 0);
		break;
	case OP_ELASTIC_TRANSFORM:
		filter = op_number(op, OP_ELASTIC_TRANSFORM_INTERPOLATION, 0);
		break;
	case OP_AFFINE:
		filter = op_number(op, OP_AFFINE_INTERPOLATION, 0);
		break;
	default:
		return "it works on 8-bit pictures, and behind bands there are numbers; leave it "
		       "out, or take decode in place of bands";
	}
	if (filter != 0)
		return "numbers are turned with interpolation nearest alone; give that";
	if (!bands_is_black(op))
		return "what is outside of the numbers is 0; leave fill out";
	return NULL;
}

const char *bands_check(const struct op_list *ops, const struct shape *shape, unsigned *ret_at)
{
	for (unsigned i = 1; i < ops->count; i++) {
		const struct op *op = &ops->op[i];
		const enum op_stage stage = op_impl(op->id)->stage;
		const char *wrong = stage == OP_STAGE_PICTURE ? bands_check_op(op) : NULL;

		*ret_at = i;
		if (wrong)
			return wrong;
		if (op->id == OP_CAST && shape->dtype == PIPELINE_U8)
			return "numbers do not fit u8; give f32, f16 or bf16, or leave it out";
		if (stage == OP_STAGE_BATCH)
			return "mosaic, mixup and cutmix are of pictures; leave them out";
	}
	return NULL;
}

/* ---- programs ---- */

int bands_program_new(const struct op_list *ops, const struct shape *shape,
		      struct bands_program **ret)
{
	struct bands_program *program = calloc(1, sizeof(*program));
	const struct op *normalize = shape->normalize;

	if (!program)
		return -ENOMEM;
	program->ops = *ops;
	program->shape = *shape;
	program->steps.ops = &program->ops;
	for (unsigned c = 0; normalize && c < shape->channels; c++) {
		program->mean[c] = (float)op_channel(ops, normalize, OP_NORMALIZE_MEAN, c);
		program->std[c] = (float)op_channel(ops, normalize, OP_NORMALIZE_STD, c);
	}
	*ret = program;
	return 0;
}

void bands_program_free(struct bands_program *program)
{
	free(program);
}
