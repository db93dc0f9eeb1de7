/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sample of numbers through the ops: it is decoded once, then each plane goes through all ops for itself, as the only picture, and to
 * its place in the field. All planes have the same size, so all have the same draws.
 *
 * normalize is (number - mean) / std, in float32; there is no 255.
 */

#include "base/half.h"
#include "pipeline/bands/bands_inner.h"
#include "pipeline/ops/apply.h"
#include "pipeline/ops/scale.h"

int bands_room_new(struct bands_room **ret)
{
	struct bands_room *room = calloc(1, sizeof(*room));

	if (!room || steps_scratch_new(&room->scratch) != 0) {
		free(room);
		return -ENOMEM;
	}
	*ret = room;
	return 0;
}

void bands_room_free(struct bands_room *room)
{
	if (!room)
		return;
	steps_scratch_free(room->scratch);
	picture_buffer_fini(&room->memory);
	bands_resize_fini(&room->resize);
	free(room);
}

void bands_close(struct bands_room *room)
{
	room->head = (struct decode_numbers_head){.height = 0};
	picture_buffer_trim(&room->memory);
	bands_resize_trim(&room->resize);
	steps_trim(room->scratch);
}

void bands_size(const struct bands_room *room, uint32_t *ret_height, uint32_t *ret_width)
{
	*ret_height = room->head.height;
	*ret_width = room->head.width;
}

/* ---- the file ---- */

static int bands_check_channels(const struct bands *bands, unsigned has,
				struct pipeline_error *ret_error)
{
	if (bands->channels && bands->channels != has)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "it has %u channels, and not %u", has, bands->channels);
	for (unsigned i = 0; i < bands->n; i++)
		if (bands->channel[i] >= has)
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					   "it has %u channels, and no band %u", has,
					   bands->channel[i]);
	return 0;
}

/* Not those that are none (NaN). */
static float bands_clamp(const struct bands *bands, float value)
{
	if (value < bands->least)
		return bands->least;
	return value > bands->most ? bands->most : value;
}

void bands_change(const struct bands *bands, const struct picture *all)
{
	if (bands->scale == 1 && !bands->is_clamped)
		return;
	for (uint32_t y = 0; y < all->height; y++) {
		uint8_t *at = picture_row(all, y);

		for (uint32_t x = 0; x < all->width; x++, at += 4) {
			float value;

			memcpy(&value, at, sizeof(value));
			value *= bands->scale;
			if (bands->is_clamped)
				value = bands_clamp(bands, value);
			memcpy(at, &value, sizeof(value));
		}
	}
}

static int bands_read(struct bands_room *room, const struct bands *bands, struct decode *decode,
		      const void *data, size_t size, struct pipeline_error *ret_error)
{
	struct decode_numbers *to = &room->numbers;
	int r = decode_numbers_open(decode, data, size, &room->head, ret_error);

	r = r ? r : bands_check_channels(bands, room->head.channels, ret_error);
	if (r != 0)
		return r;
	r = picture_make(&room->memory, (uint64_t)room->head.height * bands->n, room->head.width,
			 &to->all);
	if (r != 0)
		return decode_fail(ret_error, (enum pipeline_fail)r, 0, "no room for %u x %u x %u",
				   room->head.width, room->head.height, bands->n);
	to->part = (struct picture_box){0, 0, room->head.height, room->head.width};
	to->n = bands->n;
	to->is_inverted = bands->is_inverted;
	memcpy(to->channel, bands->channel, sizeof(bands->channel));
	r = decode_numbers(decode, to, ret_error);
	if (r == 0)
		bands_change(bands, &to->all);
	return r;
}

int bands_open(struct bands_room *room, const struct bands *bands, struct decode *decode,
	       const void *data, size_t size, struct pipeline_error *ret_error)
{
	int r = bands_read(room, bands, decode, data, size, ret_error);

	decode_close(decode);
	return r;
}

/* ---- ops ---- */

static int bands_scale(struct bands_room *room, double filter, uint64_t height, uint64_t width,
		       struct picture *picture)
{
	const enum filter_id id = (enum filter_id)filter;
	struct steps_scratch *scratch = room->scratch;
	struct picture made;
	int r;

	if (height == picture->height && width == picture->width)
		return 0;
	r = bands_resize(&room->resize, picture, id == FILTER_NEAREST ? FILTER_CORNER : id, height,
			 width, &scratch->buffer[!scratch->at], &made);
	if (r == 0)
		steps_end(scratch, &made, picture);
	return r;
}

/* Those ops that make a number of several. */
static int bands_op_scale(struct bands_room *room, const struct op *op,
			  const struct op_drawn *drawn, struct picture *picture)
{
	struct picture_box box;
	uint64_t height, width;

	if (scale_is_op(op->id)) {
		scale_to(op, drawn, picture->height, picture->width, &height, &width);
		if (height < 1 || width < 1)
			return PIPELINE_FAIL_OP;
		return bands_scale(room, op_number(op, OP_RESIZE_INTERPOLATION, 0), height, width,
				   picture);
	}
	box = (struct picture_box){(uint32_t)drawn->number[0], (uint32_t)drawn->number[1],
				   (uint32_t)drawn->number[2], (uint32_t)drawn->number[3]};
	*picture = picture_part(picture, &box);
	return bands_scale(room, drawn->number[4],
			   (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 0),
			   (uint64_t)op_number(op, OP_RANDOM_RESIZED_CROP_SIZE, 1), picture);
}

int bands_one(struct bands_room *room, const struct bands_program *program, unsigned i,
	      struct picture *picture, const struct draw *draw, struct pipeline_error *ret_error)
{
	const struct op *op = &program->ops.op[i];
	struct op_drawn drawn;
	int r;

	if (!scale_is_op(op->id) && op->id != OP_RANDOM_RESIZED_CROP)
		return steps_one(&program->steps, room->scratch, i, picture, draw, ret_error);
	if (apply_skips(&program->ops, i, draw))
		return 0;
	op_draw(op, i, draw, picture->height, picture->width, &drawn);
	r = bands_op_scale(room, op, &drawn, picture);
	if (r == PIPELINE_FAIL_OP)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "%.14s: nothing would be left",
				   op_name(op->id));
	return r == 0 ? 0 : steps_fail(ret_error, op, r);
}

/* ---- the field ---- */

void bands_value(void *out, size_t at, enum pipeline_dtype dtype, float value)
{
	if (dtype == PIPELINE_F32)
		((float *)out)[at] = value;
	else
		((uint16_t *)out)[at] = dtype == PIPELINE_F16 ? half_f16(value) : half_bf16(value);
}

static void bands_finish(const struct bands_program *program, unsigned c,
			 const struct picture *picture, void *out)
{
	const struct shape *shape = &program->shape;
	const bool planes = shape->order == OP_CHW;
	const size_t step = planes ? 1 : shape->channels;
	size_t at = planes ? (size_t)c * shape->height * shape->width : c;

	for (uint32_t y = 0; y < shape->height; y++) {
		const uint8_t *from = picture_row(picture, y);

		for (uint32_t x = 0; x < shape->width; x++, from += 4, at += step) {
			float value;

			memcpy(&value, from, sizeof(value));
			if (shape->normalize)
				value = (value - program->mean[c]) / program->std[c];
			bands_value(out, at, shape->dtype, value);
		}
	}
}

int bands_plane(struct bands_room *room, unsigned c, struct picture *ret,
		struct pipeline_error *ret_error)
{
	const struct picture_box box = {c * room->head.height, 0, room->head.height,
					room->head.width};
	const struct picture plane = picture_part(&room->numbers.all, &box);
	int r;

	room->scratch->at = 0;
	r = picture_copy(&plane, &room->scratch->buffer[0], ret);
	return r == 0 ? 0 : decode_fail(ret_error, (enum pipeline_fail)r, 0, "no room for a band");
}

int bands_run(struct bands_room *room, const struct bands_program *program,
	      const struct pipeline_key *key, void *out, struct pipeline_error *ret_error)
{
	const struct shape *shape = &program->shape;
	struct draw draw;
	int r = 0;

	draw_init(&draw, key);
	draw.first = shape->draws;
	for (unsigned c = 0; r == 0 && c < shape->channels; c++) {
		struct picture picture;

		r = bands_plane(room, c, &picture, ret_error);
		for (unsigned i = 1; r == 0 && i < shape->pixel_ops; i++)
			r = bands_one(room, program, i, &picture, &draw, ret_error);
		if (r == 0)
			bands_finish(program, c, &picture, out);
	}
	return r;
}
