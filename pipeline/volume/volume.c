/* SPDX-License-Identifier: Apache-2.0 */
/* The op "volume", and in which order others stand behind it. */

#include "pipeline/volume/volume.h"

#include "pipeline/ops/op_run.h"

static bool volume_is_random(const struct op *op)
{
	return op_number(op, OP_VOLUME_SOURCE, 0) == OP_RECORDED_ANEW;
}

const struct op_impl volume_op = {.stage = OP_STAGE_DECODE, .is_random = volume_is_random};

static const char *volume_check_op(const struct op *op, unsigned at, const struct shape *shape)
{
	if (op->id == OP_RANDOM_CROP_BY_LABEL && at != 1)
		return "it looks at all of the labels; put it first, behind volume";
	if (op->id == OP_LAYOUT && shape->order != OP_CHW)
		return "volumes are [channels, depth, height, width]; leave it out";
	if (op->id == OP_CAST && shape->dtype == PIPELINE_U8)
		return "numbers do not fit u8; give f32, f16 or bf16, or leave it out";
	if (shape->finished >> at & 1)
		return "put it before normalize and cast";
	return NULL;
}

const char *volume_init(const struct op_list *ops, const struct shape *shape, struct volume *ret,
			unsigned *ret_at)
{
	const struct op *op = &ops->op[0], *normalize = shape->normalize;
	const double *clamp = op->value[OP_VOLUME_CLAMP].number;

	*ret = (struct volume){
	    .bands = {.channels = shape->channels,
		      .n = shape->channels,
		      .scale = (float)op_number(op, OP_VOLUME_SCALE, 0),
		      .is_clamped = !op_is_null(op, OP_VOLUME_CLAMP),
		      .least = (float)clamp[0],
		      .most = (float)clamp[1],
		      .is_inverted = op_number(op, OP_VOLUME_INVERT, 0) != 0},
	    .fill = (float)op_number(op, OP_VOLUME_FILL, 0),
	};
	for (unsigned c = 0; normalize && c < shape->channels; c++) {
		ret->mean[c] = (float)op_channel(ops, normalize, OP_NORMALIZE_MEAN, c);
		ret->std[c] = (float)op_channel(ops, normalize, OP_NORMALIZE_STD, c);
	}
	for (unsigned i = 1; i < ops->count; i++) {
		const char *wrong = volume_check_op(&ops->op[i], i, shape);

		*ret_at = i;
		if (wrong)
			return wrong;
		ret->by_labels |= ops->op[i].id == OP_RANDOM_CROP_BY_LABEL;
	}
	return NULL;
}
