/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The crops that engines may take from the file at once: random_resized_crop and center_crop.
 *
 * Each is cut in two (steps.h), the part it looks at and what it makes of that, so that an engine
 * may fetch just the part and still run the same code.
 */

#include "pipeline/draw.h"
#include "pipeline/op_run.h"
#include "pipeline/steps.h"

_Static_assert(OP_RANDOM_RESIZED_CROP_SIZE == OP_CENTER_CROP_SIZE, "one shape for both");

static const char *crop_shape(const struct op *op, struct shape *shape)
{
	shape->height = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 0);
	shape->width = (uint32_t)op_number(op, OP_CENTER_CROP_SIZE, 1);
	return NULL;
}

/* Four numbers: top, left, height and width. */
static void crop_resized_draw(const struct op *op, uint32_t height, uint32_t width,
			      struct op_drawn *drawn)
{
	struct picture_box box;

	draw_crop_from(&drawn->seq, op, height, width, &box);
	drawn->number[0] = box.top;
	drawn->number[1] = box.left;
	drawn->number[2] = box.height;
	drawn->number[3] = box.width;
}

static int crop_resized_run(struct steps_scratch *scratch, const struct op *op,
			    const struct op_drawn *drawn, struct picture *picture)
{
	struct picture_box box = {(uint32_t)drawn->number[0], (uint32_t)drawn->number[1],
				  (uint32_t)drawn->number[2], (uint32_t)drawn->number[3]};

	*picture = picture_part(picture, &box);
	return steps_complete(scratch, op, picture);
}

static int crop_center_run(struct steps_scratch *scratch, const struct op *op,
			   const struct op_drawn *drawn, struct picture *picture)
{
	struct picture_box box;

	(void)drawn;
	steps_part(op, 0, NULL, picture->height, picture->width, &box);
	*picture = picture_part(picture, &box);
	return steps_complete(scratch, op, picture);
}

const struct op_impl crop_resized_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = crop_shape,
    .draw = crop_resized_draw,
    .run = crop_resized_run,
};

const struct op_impl crop_center_op = {
    .stage = OP_STAGE_PICTURE,
    .shape = crop_shape,
    .run = crop_center_run,
};
