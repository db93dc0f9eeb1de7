/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op resize: torchvision's sizes, resize.c's pixels.
 *
 * One number is the length of the shorter side; the other one is size * longer / shorter, cut to a
 * whole number, as Python's int() does (torchvision.transforms.functional._compute_resized_output_size).
 */

#include "pipeline/op_run.h"
#include "pipeline/scale.h"
#include "pipeline/steps.h"

void scale_size(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
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

static const char *scale_shape(const struct op *op, struct shape *shape)
{
	uint64_t height, width;

	if (!shape->height && op->value[OP_RESIZE_SIZE].count < 2)
		return NULL;
	scale_size(op, shape->height, shape->width, &height, &width);
	if (height * width > OP_MAX_PIXELS || height < 1 || width < 1)
		return "the picture gets too large; give a smaller size";
	shape->height = (uint32_t)height;
	shape->width = (uint32_t)width;
	return NULL;
}

static int scale_run(struct steps_scratch *scratch, const struct op *op,
		     const struct op_drawn *drawn, struct picture *picture)
{
	uint64_t height, width;

	(void)drawn;
	scale_size(op, picture->height, picture->width, &height, &width);
	return steps_scale(scratch, (enum filter_id)op_number(op, OP_RESIZE_INTERPOLATION, 0),
			   height, width, picture);
}

const struct op_impl scale_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = scale_shape,
    .run = scale_run,
};
