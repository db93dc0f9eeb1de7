/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mask goes through the picture's own ops, with three differences: those that leave all in its place are
 * left out, every filter is nearest, and what comes from outside of the picture is the field's label for that. So
 * an op that works on pictures works on masks, and nothing of it is written twice. The draws are the picture's,
 * since they are functions of the sample's key, the op's number and the picture's size, and the mask has that size.
 *
 * A label stands in the first two bytes of a pixel (decode_labels()). Nearest only ever moves whole
 * pixels, so that no label is made of two others.
 *
 * Nearest is two things. PyTorch's (and OpenCV's) takes the pixel at an output's corner, which is what
 * torchvision's v2 transforms do to a Mask; Pillow's takes the one at its middle. They differ where an op resizes;
 * turns are Pillow's in both.
 *
 * Whole pictures, op after op: a PNG has no part that could be decoded alone, and most of a mask's time is its PNG's.
 */

#include "pipeline/engine/mask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline/forms/packed.h"

struct mask {
	struct op_list ops;
	struct shape shape;
	struct steps steps; /* borrows ops */
	struct pipeline_field field;
};

static void mask_set(struct op_value *value, double number)
{
	for (unsigned i = 0; i < OP_MAX_NUMBERS; i++)
		value->number[i] = number;
}

/* The op as masks go through it. */
static void mask_op(struct op *op, const struct pipeline_field *field)
{
	const bool is_resize = op->id == OP_RESIZE || op->id == OP_RANDOM_RESIZED_CROP;
	const struct op_param *params;
	const unsigned n = op_params(op->id, &params);

	for (unsigned i = 0; i < n; i++) {
		struct op_value *value = &op->value[i];

		if (strstr(params[i].name, "interpolation")) {
			mask_set(value, is_resize && !field->by_middle ? FILTER_CORNER : 0);
		} else if (strcmp(params[i].name, "fill") == 0) {
			mask_set(value, field->fill >> 8);
			value->number[0] = field->fill & 255;
		}
	}
}

int mask_new(const struct op_list *ops, const struct shape *shape, struct pipeline_field *field,
	     struct mask **ret)
{
	struct mask *mask = calloc(1, sizeof(*mask));

	if (!mask)
		return -ENOMEM;
	field->ndim = 2;
	field->shape[0] = shape->height;
	field->shape[1] = shape->width;
	field->bytes =
	    packed_dtype_bytes(field->dtype) * field->shape[0] * (uint64_t)field->shape[1];
	mask->ops = *ops;
	mask->shape = *shape;
	mask->steps.ops = &mask->ops;
	mask->field = *field;
	for (unsigned i = 1; i < shape->pixel_ops; i++)
		mask_op(&mask->ops.op[i], field);
	*ret = mask;
	return 0;
}

void mask_free(struct mask *mask)
{
	free(mask);
}

/* ---- one sample ---- */

static uint32_t mask_label(const uint8_t *pixel)
{
	return pixel[0] | (uint32_t)pixel[1] << 8;
}

/* A row to numbers of the field's type, of which those of 16 bits have room for every label. */
static uint32_t mask_row(const uint8_t *row, uint32_t width, enum pipeline_dtype dtype,
			 uint8_t *out)
{
	const size_t bytes = packed_dtype_bytes(dtype);
	uint32_t largest = 0;

	for (size_t x = 0; x < width; x++) {
		const uint32_t label = mask_label(row + 4 * x);
		const uint64_t number = label; /* little endian, as records are */

		largest = BASE_MAX(largest, label);
		memcpy(out + x * bytes, &number, bytes);
	}
	return largest;
}

static int mask_finish(const struct mask *mask, const struct picture *picture, uint8_t *out,
		       struct pipeline_error *ret_error)
{
	const struct pipeline_field *field = &mask->field;
	uint32_t largest = 0;

	for (uint32_t y = 0; y < picture->height; y++) {
		const uint32_t most =
		    mask_row(picture_row(picture, y), picture->width, field->dtype, out);

		largest = BASE_MAX(largest, most);
		out += packed_dtype_bytes(field->dtype) * picture->width;
	}
	if (field->dtype == PIPELINE_U8 && largest > UINT8_MAX)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "label %u of a uint8 mask",
				   largest);
	return 0;
}

static int mask_ops(const struct mask *mask, struct steps_scratch *scratch, struct picture *picture,
		    const struct draw *draw, struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned i = 1; r == 0 && i < mask->shape.pixel_ops; i++)
		if (!op_impl(mask->ops.op[i].id)->stays)
			r = steps_one(&mask->steps, scratch, i, picture, draw, ret_error);
	return r;
}

int mask_run(const struct mask *mask, struct steps_scratch *scratch, const void *data, size_t size,
	     uint32_t height, uint32_t width, const struct draw *draw, void *out,
	     struct pipeline_error *ret_error)
{
	struct picture picture;
	int r;

	scratch->at = 0;
	r = decode_labels(scratch->decode, data, size, height, width, &scratch->buffer[0], &picture,
			  ret_error);
	if (r == 0)
		r = mask_ops(mask, scratch, &picture, draw, ret_error);
	if (r == 0)
		r = mask_finish(mask, &picture, out, ret_error);
	steps_trim(scratch);
	return r;
}
