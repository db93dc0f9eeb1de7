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
 * Masks in colours become labels as soon as they are decoded, by a table from colours to labels; a colour that
 * is not in it makes the sample bad, so that a mask which was saved with loss is told.
 *
 * Whole pictures, op after op: a PNG has no part that could be decoded alone, and most of a mask's time is its PNG's.
 */

#include "pipeline/engine/mask.h"

#include "pipeline/forms/packed.h"
#include "pipeline/ops/scale.h"

struct mask_color {
	uint32_t color, label;
};

struct mask {
	struct mask_color *color; /* owned; ascending; NULL: masks are grey or have a palette */
	size_t n_colors;
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
	const bool is_resize = scale_is_op(op->id) || op->id == OP_RANDOM_RESIZED_CROP;
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

/* ---- colours ---- */

static uint32_t mask_rgb(uint32_t red, uint32_t green, uint32_t blue)
{
	return red << 16 | green << 8 | blue;
}

static int mask_compare(const void *a, const void *b)
{
	const struct mask_color *one = a, *other = b;

	return (one->color > other->color) - (one->color < other->color);
}

static bool mask_has_colors(const struct op_list *ops)
{
	const struct op_intake *intake = op_intake(ops->op[0].id);

	return intake && intake->colors != OP_INTAKE_NONE &&
	       !op_is_null(&ops->op[0], intake->colors);
}

/* Of the lists, how many; to, if that is not NULL. */
static size_t mask_list_colors(const struct op_list *ops, struct mask_color *to)
{
	const unsigned param = op_intake(ops->op[0].id)->colors;
	const int32_t *item = op_items(ops, &ops->op[0], param);
	const int32_t *end = item + ops->op[0].value[param].count;
	size_t n = 0;

	for (; item < end; item += 1 + *item, n++)
		if (to)
			to[n] = (struct mask_color){
			    mask_rgb((uint32_t)item[1], (uint32_t)item[2], (uint32_t)item[3]),
			    *item == 4 ? (uint32_t)item[4] : (uint32_t)n};
	return n;
}

/* Ascending; NULL: no memory. */
static struct mask_color *mask_colors(const struct op_list *ops, size_t *ret_n)
{
	struct mask_color *color;

	*ret_n = mask_list_colors(ops, NULL);
	color = calloc(*ret_n, sizeof(*color));
	if (!color)
		return NULL;
	mask_list_colors(ops, color);
	qsort(color, *ret_n, sizeof(*color), mask_compare);
	return color;
}

const char *mask_check_colors(const struct op_list *ops)
{
	_cleanup_free_ struct mask_color *color = NULL;
	const int32_t *item, *end;
	unsigned param;
	size_t n;

	if (!mask_has_colors(ops))
		return NULL;
	param = op_intake(ops->op[0].id)->colors;
	item = op_items(ops, &ops->op[0], param);
	end = item + ops->op[0].value[param].count;
	for (; item < end; item += 1 + *item)
		if (*item < 3 || *item > 4 || BASE_MAX(item[1], BASE_MAX(item[2], item[3])) > 255)
			return "a colour is [red, green, blue] or [red, green, blue, label], the "
			       "first three to 255";
	color = mask_colors(ops, &n);
	for (size_t i = 1; color && i < n; i++)
		if (color[i].color == color[i - 1].color)
			return "a colour is in the table twice";
	return NULL;
}

/* The pixels of a row; neighbours mostly have one colour. */
static int mask_color_row(const struct mask *mask, uint8_t *row, uint32_t width,
			  struct pipeline_error *ret_error)
{
	const struct mask_color *found = NULL;

	for (uint8_t *pixel = row; pixel < row + 4 * (size_t)width; pixel += 4) {
		const struct mask_color wanted = {mask_rgb(pixel[0], pixel[1], pixel[2]), 0};

		if (!found || found->color != wanted.color)
			found = bsearch(&wanted, mask->color, mask->n_colors, sizeof(wanted),
					mask_compare);
		if (!found)
			return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
					   "mask: colour %u, %u, %u has no label", pixel[0],
					   pixel[1], pixel[2]);
		pixel[0] = (uint8_t)found->label;
		pixel[1] = (uint8_t)(found->label >> 8);
	}
	return 0;
}

/* As decode_labels(), of a picture in these colours. */
static int mask_decode_colors(const struct mask *mask, struct steps_scratch *scratch,
			      const void *data, size_t size, uint32_t height, uint32_t width,
			      struct picture *picture, struct pipeline_error *ret_error)
{
	uint32_t its_height, its_width;
	int r = decode_open(scratch->decode, data, size, &its_height, &its_width, ret_error);

	if (r == 0 && (its_height != height || its_width != width))
		r = decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "mask %u x %u, picture %u x %u",
				its_width, its_height, width, height);
	r = r ? r : decode_whole(scratch->decode, &scratch->buffer[0], picture, ret_error);
	for (uint32_t y = 0; r == 0 && y < height; y++)
		r = mask_color_row(mask, picture_row(picture, y), width, ret_error);
	decode_close(scratch->decode);
	return r;
}

/* ---- one field ---- */

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
	if (!mask_has_colors(ops))
		return 0;
	mask->color = mask_colors(ops, &mask->n_colors);
	return mask->color ? 0 : -ENOMEM;
}

void mask_free(struct mask *mask)
{
	if (mask)
		free(mask->color);
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
	if (mask->color)
		r = mask_decode_colors(mask, scratch, data, size, height, width, &picture,
				       ret_error);
	else
		r = decode_labels(scratch->decode, data, size, height, width, &scratch->buffer[0],
				  &picture, ret_error);
	r = r ? r : mask_ops(mask, scratch, &picture, draw, ret_error);
	r = r ? r : mask_finish(mask, &picture, out, ret_error);
	steps_trim(scratch);
	return r;
}
