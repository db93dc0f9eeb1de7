/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops of one picture on another that is so many times as large.
 *
 * An op draws for the size of the first picture, which is this one's divided by `times`, as each op leaves it so.
 * What it drew and its parameters are then multiplied. Where an op computes a place or a size of the
 * picture's, with a fraction that it rounds, that is done for the first picture, too: the middle of the
 * larger one may lie half a pixel of the smaller one beside.
 *
 * What moves no pixel (colours, blur) is done as it is.
 */

#include "pipeline/engine/enlarge.h"

#include "pipeline/ops/apply.h"
#include "pipeline/ops/crop.h"
#include "pipeline/ops/scale.h"

bool enlarge_can(const struct op *op)
{
	switch (op->id) {
	case OP_RESIZE:
	case OP_CENTER_CROP:
	case OP_RANDOM_CROP:
	case OP_RANDOM_RESIZED_CROP:
	case OP_PAD:
	case OP_HFLIP:
	case OP_VFLIP:
		return true;
	case OP_RANDOM_ERASING:
	case OP_COARSE_DROPOUT:
		return false;
	default:
		return op_impl(op->id)->stays;
	}
}

static void enlarge_value(struct op *op, unsigned param, unsigned times)
{
	for (unsigned i = 0; i < OP_MAX_NUMBERS; i++)
		op->value[param].number[i] *= times;
}

static void enlarge_drawn(struct op_drawn *drawn, unsigned n, unsigned times)
{
	for (unsigned i = 0; i < n; i++)
		drawn->number[i] *= times;
}

/* To the size that the first picture gets. */
static void enlarge_resize(struct op *op, uint32_t height, uint32_t width, unsigned times)
{
	uint64_t to[2];

	scale_size(op, height, width, &to[0], &to[1]);
	op->value[OP_RESIZE_MAX_SIZE].count = 0;
	op->value[OP_RESIZE_FIT].number[0] = OP_EXACT;
	op->value[OP_RESIZE_SIZE].count = 2;
	for (unsigned i = 0; i < 2; i++)
		op->value[OP_RESIZE_SIZE].number[i] = (double)(to[i] * times);
}

/* The window that the first picture's middle is, as a crop that has been drawn. */
static void enlarge_middle(struct op *op, uint32_t height, uint32_t width, unsigned times,
			   struct op_drawn *drawn)
{
	const uint32_t to[2] = {(uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0),
				(uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1)};
	struct op crop = {.id = OP_RANDOM_CROP};
	struct picture_box box;

	crop_middle(op, height, width, &box);
	drawn->number[0] = (double)box.top - (to[0] - box.height) / 2;
	drawn->number[1] = (double)box.left - (to[1] - box.width) / 2;
	enlarge_drawn(drawn, 2, times);
	crop.value[OP_RANDOM_CROP_SIZE] = op->value[OP_CENTER_CROP_SIZE];
	crop.value[OP_RANDOM_CROP_FILL] = op->value[OP_CENTER_CROP_FILL];
	crop.value[OP_RANDOM_CROP_PAD_IF_NEEDED].number[0] = 1;
	enlarge_value(&crop, OP_RANDOM_CROP_SIZE, times);
	*op = crop;
}

static void enlarge_op(struct op *op, uint32_t height, uint32_t width, unsigned times,
		       struct op_drawn *drawn)
{
	switch (op->id) {
	case OP_RESIZE:
		enlarge_resize(op, height, width, times);
		break;
	case OP_CENTER_CROP:
		enlarge_middle(op, height, width, times, drawn);
		break;
	case OP_RANDOM_CROP:
		enlarge_value(op, OP_RANDOM_CROP_SIZE, times);
		enlarge_value(op, OP_RANDOM_CROP_PADDING, times);
		enlarge_drawn(drawn, 2, times);
		break;
	case OP_RANDOM_RESIZED_CROP:
		enlarge_value(op, OP_RANDOM_RESIZED_CROP_SIZE, times);
		enlarge_drawn(drawn, 4, times);
		break;
	case OP_PAD:
		enlarge_value(op, OP_PAD_PADDING, times);
		break;
	default:
		break;
	}
}

int enlarge_one(const struct op_list *ops, struct steps_scratch *scratch, unsigned i,
		unsigned times, struct picture *picture, const struct draw *draw,
		struct pipeline_error *ret_error)
{
	const uint32_t height = picture->height / times, width = picture->width / times;
	struct op op = ops->op[i];
	struct op_drawn drawn;

	if (apply_skips(ops, i, draw))
		return 0;
	op_draw(&op, i, draw, height, width, &drawn);
	enlarge_op(&op, height, width, times, &drawn);
	return steps_op(scratch, &op, &drawn, picture, ret_error);
}
