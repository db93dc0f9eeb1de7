/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tail of a spec, in this order: filter, label ops (map, one_hot, smooth), at most one each of mixup and
 * cutmix, or mosaic. That they stand behind the picture's ops is asked for, not arranged, so that texts which
 * mean the same are the same, and the place of a random op in the list, which its draws follow, is
 * no other because of them.
 *
 * What each job does for itself is no part of the name of a stream: tail_strip() takes it out of the
 * list before that is hashed.
 */

#include "pipeline/engine/finish.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/spec/tail.h"

struct tail_state {
	struct tail tail;
	const struct shape *shape;
	const struct op_list *ops;
	double p; /* of the batch ops so far */
};

/* ---- ops on whole batches ---- */

static const char *tail_check_image(const struct tail_state *state, const struct op *op)
{
	if (state->shape->frames)
		return "mosaic, mixup and cutmix are of pictures, and these are clips; leave them "
		       "out";
	if (state->shape->views)
		return "there are several pictures of each sample; leave out the op that makes "
		       "them";
	if (op->id == OP_MIXUP && state->shape->dtype == PIPELINE_U8)
		return "the image is uint8, which cannot be added up; put {\"op\": \"cast\", "
		       "\"dtype\": \"f32\"} (f16, bf16) or normalize before it, or take cutmix";
	return NULL;
}

static const char *tail_set_classes(struct tail_state *state, const struct op *op)
{
	struct pipeline_batch *batch = &state->tail.batch;
	uint32_t of_label = state->tail.label.classes, classes = of_label;

	if (!op_is_null(op, OP_MIXUP_NUM_CLASSES))
		classes = (uint32_t)op_number(op, OP_MIXUP_NUM_CLASSES, 0);
	if (!classes)
		return "labels are class numbers; give num_classes, or put one_hot before it";
	if (of_label && classes != of_label)
		return "its num_classes is not that of the label; leave it out";
	if (batch->n && classes != batch->classes)
		return "its num_classes is not that of the other op; give both the same";
	batch->classes = classes;
	return NULL;
}

/* A pixel of that colour, as the image has it. */
static void tail_set_fill(const struct shape *shape, const struct op *op, uint8_t *ret)
{
	struct shape pictures = *shape;
	struct finish finish;
	uint8_t color[3];

	pictures.raw = 0; /* what stands behind finish.c did the same to the image */
	finish_init(&finish, &pictures);
	op_color(op, OP_MOSAIC_FILL, color);
	for (unsigned c = 0; c < shape->channels; c++)
		finish_plain.plane(&finish, c, &color[c], 1,
				   ret + c * finish_value_bytes(shape->dtype));
}

static const char *tail_add_mosaic(struct tail_state *state, const struct op *op)
{
	struct pipeline_batch *batch = &state->tail.batch;
	struct pipeline_mosaic mosaic = {
	    .min_size = op_number(op, OP_MOSAIC_MIN_SIZE, 0),
	    .min_visibility = op_number(op, OP_MOSAIC_MIN_VISIBILITY, 0),
	};

	for (unsigned i = 0; i < 2; i++) {
		mosaic.center[i] = op_number(op, OP_MOSAIC_CENTER, i);
		mosaic.scale[i] = op_number(op, OP_MOSAIC_SCALE, i);
	}
	if (!op_is_null(op, OP_MOSAIC_EPOCHS))
		mosaic.epochs = (uint64_t)op_number(op, OP_MOSAIC_EPOCHS, 0);
	if (!state->shape->bands) /* which are refused */
		tail_set_fill(state->shape, op, mosaic.fill);
	batch->mosaic = mosaic;
	batch->op[batch->n++] = (struct pipeline_batch_op){
	    .kind = PIPELINE_MOSAIC,
	    .p = op_number(op, OP_MOSAIC_P, 0),
	};
	batch->is_planar = state->shape->order == OP_CHW;
	return NULL;
}

static const char *tail_add_batch(struct tail_state *state, const struct op *op)
{
	struct pipeline_batch *batch = &state->tail.batch;
	const char *wrong = tail_check_image(state, op);

	if (!wrong && batch->n && (op->id == OP_MOSAIC || batch->op[0].kind == PIPELINE_MOSAIC))
		wrong = "mosaic is the only op on a pipeline's batches; leave the others out";
	if (!wrong && op->id == OP_MOSAIC)
		return tail_add_mosaic(state, op);
	if (!wrong)
		wrong = tail_set_classes(state, op);
	if (wrong)
		return wrong;
	for (unsigned i = 0; i < batch->n; i++)
		if ((batch->op[i].kind == PIPELINE_MIXUP) == (op->id == OP_MIXUP))
			return "it is there twice; leave one out";
	batch->op[batch->n] = (struct pipeline_batch_op){
	    .kind = op->id == OP_MIXUP ? PIPELINE_MIXUP : PIPELINE_CUTMIX,
	    .alpha = op_number(op, OP_MIXUP_ALPHA, 0),
	    .p = op_number(op, OP_MIXUP_P, 0),
	};
	state->p += batch->op[batch->n++].p;
	if (state->p > 1)
		return "one batch has at most one of mixup and cutmix, and their p are more than 1 "
		       "together; give each \"p\": 0.5, for instance";
	batch->is_planar = state->shape->order == OP_CHW;
	return NULL;
}

_Static_assert((int)OP_MIXUP_ALPHA == (int)OP_CUTMIX_ALPHA &&
		   (int)OP_MIXUP_NUM_CLASSES == (int)OP_CUTMIX_NUM_CLASSES &&
		   (int)OP_MIXUP_P == (int)OP_CUTMIX_P,
	       "both have the same parameters");

const struct op_impl tail_batch_op = {.stage = OP_STAGE_BATCH};

/* ---- all of it ---- */

static const char *tail_add(struct tail_state *state, const struct op *op)
{
	switch (op_impl(op->id)->stage) {
	case OP_STAGE_FILTER:
		if (state->tail.label_filter.is_there)
			return "it is there twice; give one filter all of it";
		return label_filter_init(&state->tail.label_filter, op);
	case OP_STAGE_LABEL:
		return label_add(&state->tail.label, state->ops, op);
	default:
		return tail_add_batch(state, op);
	}
}

/* The op that stands too early, or NULL. */
static const struct op *tail_out_of_order(const struct op_list *ops, unsigned number)
{
	const struct op *op = &ops->op[number], *before = op - 1;

	return number > 0 && op_impl(before->id)->stage > op_impl(op->id)->stage ? before : NULL;
}

int tail_infer(const struct op_list *ops, const struct shape *shape, struct tail *ret,
	       struct diag *diag)
{
	struct tail_state state = {.shape = shape, .ops = ops};

	while (state.tail.first < ops->count &&
	       op_impl(ops->op[state.tail.first].id)->stage < OP_STAGE_FILTER)
		state.tail.first++;
	for (unsigned i = state.tail.first; i < ops->count; i++) {
		const struct op *op = &ops->op[i], *before = tail_out_of_order(ops, i);
		const char *wrong;

		if (before)
			return diag_fail(
			    diag, PIPELINE_E_BAD,
			    "pipeline: op %u (%s) stands behind op %u (%s); put it before", i + 1,
			    op_name(op->id), i, op_name(before->id));
		wrong = tail_add(&state, op);
		if (wrong)
			return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s", i + 1,
					 op_name(op->id), wrong);
	}
	*ret = state.tail;
	return 0;
}

void tail_strip(const struct tail *tail, struct op_list *ops)
{
	struct op *filter = &ops->op[tail->first];

	ops->count -= tail->batch.n;
	if (!tail->label_filter.by_label)
		return;
	filter->value[OP_FILTER_KEEP].count = filter->value[OP_FILTER_DROP].count = 0;
	if (!tail->label_filter.by_size)
		memmove(filter, filter + 1, (--ops->count - tail->first) * sizeof(*filter));
}
