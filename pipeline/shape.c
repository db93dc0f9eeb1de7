/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of ops and the shape of what they give.
 *
 * A pipeline has two parts: decode and the ops that change 8-bit pictures, in any order and number;
 * then at most one each of normalize, cast and layout, which together are one step (finish.c). That
 * split is what engines are written against. Every sample of a stream has the same place and size
 * in the slot, so the image's shape must be known before any picture is: a pipeline that leaves it
 * to the pictures is refused here, and told which op to add.
 */

#include <math.h>
#include <string.h>
#include "pipeline/shape.h"

struct shape_state {
	struct shape shape;      /* height and width are 0 while they depend on the picture */
	unsigned seen[OP_COUNT]; /* number (from 1) of the last op of that id, 0: none */
	struct diag *diag;
};

static int shape_bad(struct shape_state *state, unsigned number, const struct op *op,
		     const char *what)
{
	diag_set(state->diag, "pipeline: op %u (%s): %s", number, op_name(op->id), what);
	return PIPELINE_E_BAD;
}

static int shape_pixel_op(struct shape_state *state, unsigned number, const struct op *op)
{
	static const enum op_id finishing[] = {OP_NORMALIZE, OP_CAST, OP_LAYOUT};
	struct shape *shape = &state->shape;
	uint64_t height, width;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(finishing); i++) {
		if (!state->seen[finishing[i]])
			continue;
		diag_set(state->diag,
			 "pipeline: op %u (%s) works on 8-bit pictures; put it before op %u (%s)",
			 number, op_name(op->id), state->seen[finishing[i]], op_name(finishing[i]));
		return PIPELINE_E_BAD;
	}
	shape->pixel_ops = number;
	if (op->id == OP_RANDOM_RESIZED_CROP || op->id == OP_CENTER_CROP) {
		shape->height = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0);
		shape->width = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1);
	} else if (op->id == OP_RESIZE && (shape->height || op->value[OP_RESIZE_SIZE].count == 2)) {
		shape_resized(op, shape->height, shape->width, &height, &width);
		if (height * width > OP_MAX_PIXELS || height < 1 || width < 1)
			return shape_bad(state, number, op,
					 "the picture gets too large; give a smaller size");
		shape->height = (uint32_t)height;
		shape->width = (uint32_t)width;
	}
	return 0;
}

static int shape_finishing_op(struct shape_state *state, unsigned number, const struct op *op)
{
	struct shape *shape = &state->shape;

	if (state->seen[op->id])
		return shape_bad(state, number, op, "it is there twice; leave one out");
	if (op->id == OP_NORMALIZE) {
		if (state->seen[OP_CAST])
			return shape_bad(state, number, op,
					 "it works in float32; put it before cast");
		shape->normalize = op;
		shape->dtype = PIPELINE_F32;
	} else if (op->id == OP_CAST) {
		shape->dtype = op_dtype(op);
		if (shape->normalize && shape->dtype == PIPELINE_U8)
			return shape_bad(state, number, op,
					 "normalized values do not fit u8; give f16, bf16 or "
					 "f32, or leave normalize out");
	} else {
		shape->order = (enum op_order)op_number(op, OP_LAYOUT_ORDER, 0);
	}
	return 0;
}

static int shape_op(struct shape_state *state, unsigned number, const struct op *op)
{
	int r;

	if (number == 1 && op->id != OP_DECODE)
		return shape_bad(state, number, op,
				 "the first op must be decode; put {\"op\": \"decode\"} before it");
	if (number > 1 && op->id == OP_DECODE)
		return shape_bad(state, number, op, "the picture is decoded already; leave it out");
	if (op->id == OP_NORMALIZE || op->id == OP_CAST || op->id == OP_LAYOUT)
		r = shape_finishing_op(state, number, op);
	else
		r = shape_pixel_op(state, number, op);
	state->seen[op->id] = number;
	return r;
}

int shape_infer(const struct op_list *ops, struct shape *ret, struct diag *diag)
{
	struct shape_state state = {.shape = {.dtype = PIPELINE_U8, .order = OP_HWC}, .diag = diag};

	for (unsigned i = 0; i < ops->count; i++) {
		int r = shape_op(&state, i + 1, &ops->op[i]);

		if (r != 0)
			return r;
	}
	if (!state.shape.height) {
		diag_set(diag,
			 "pipeline: the image's size would differ from sample to sample; after op "
			 "%u (%s) add {\"op\": \"center_crop\", \"size\": 224}, or give resize "
			 "[height, width]",
			 state.shape.pixel_ops, op_name(ops->op[state.shape.pixel_ops - 1].id));
		return PIPELINE_E_BAD;
	}
	*ret = state.shape;
	return 0;
}

void shape_resized(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		   uint64_t *ret_width)
{
	double side = op_number(op, OP_RESIZE_SIZE, 0);

	if (op->value[OP_RESIZE_SIZE].count == 2) {
		*ret_height = (uint64_t)side;
		*ret_width = (uint64_t)op_number(op, OP_RESIZE_SIZE, 1);
	} else if (width <= height) {
		*ret_width = (uint64_t)side;
		*ret_height = (uint64_t)(side * height / width);
	} else {
		*ret_height = (uint64_t)side;
		*ret_width = (uint64_t)(side * width / height);
	}
}
