/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A field of numbers goes through the picture's own ops, as a mask does (mask.h): the draws are the picture's, ops that leave all in its
 * place are left out, and what comes from outside of the picture was not measured. Planes of float32 go through ops as bands do
 * (bands.c); resizes have their own filter, or nearest, and turns nearest.
 *
 * A pixel that was not measured is no number (NaN) on its way, and one more plane, of ones, tells what comes from within the picture. So
 * resizing makes no number of what was measured and what was not: what has a part of such a pixel was not measured either.
 *
 * Vectors change with the picture: all ops together map a step on the first picture to a step on the last one (follow.h), by one matrix,
 * which flow is multiplied by once. Disparity is a step across; it is never turned, nor mirrored, as the right picture would have to become the left
 * one then. Normals are mirrored, and keep their length. Depth stays as it is.
 *
 * How a PNG has it: flow as KITTI, (number - 2^15) / 64 of u and v, and whether it was measured; disparity as KITTI, number / 256, of 16 bits
 * both, or in three channels of 8 bits as Sintel. Other formats have the numbers themselves.
 */

#include "pipeline/bands/measure.h"

#include <math.h>

#include "pipeline/bands/bands_inner.h"
#include "pipeline/ops/follow.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/ops/scale.h"

#define MEASURE_MOST 3       /* channels */
#define MEASURE_UNKNOWN 1e9F /* of flow, larger ones: Middlebury's */
#define MEASURE_KITTI_DISPARITY 256
#define PNG_BITS 24 /* where a file has them */

struct measure {
	struct bands_program program; /* ops as it goes through them */
	struct pipeline_measured is;
};

struct measure_file {      /* how the open file has it */
	unsigned png_bits; /* of a number; 0: it is no PNG */
	bool is_pfm;
	unsigned channels;
	float divisor;
};

/* ---- what there is ---- */

/* A pixel's numbers become what they say: was it measured? */
typedef bool measure_fn(const struct measure_file *file, float value[MEASURE_MOST]);

static bool measure_depth(const struct measure_file *file, float value[MEASURE_MOST])
{
	value[0] /= file->divisor;
	return isfinite(value[0]) && value[0] > 0;
}

static bool measure_disparity(const struct measure_file *file, float value[MEASURE_MOST])
{
	if (file->channels == 3)
		value[0] = value[0] * 4 + value[1] / 64 + value[2] / 16384;
	value[0] = fabsf(value[0]) / file->divisor;
	return isfinite(value[0]) && value[0] > 0;
}

static bool measure_flow(const struct measure_file *file, float value[MEASURE_MOST])
{
	for (unsigned c = 0; file->png_bits && c < 2; c++)
		value[c] = (value[c] - 32768) / 64;
	if (file->png_bits)
		return value[2] != 0;
	return fabsf(value[0]) < MEASURE_UNKNOWN && fabsf(value[1]) < MEASURE_UNKNOWN;
}

static bool measure_normals(const struct measure_file *file, float value[MEASURE_MOST])
{
	(void)file;
	return isfinite(value[0]) && isfinite(value[1]) && isfinite(value[2]) &&
	       (value[0] != 0 || value[1] != 0 || value[2] != 0);
}

/* The numbers of a pixel that was measured become those of the last picture. step: what the ops did to steps on it (follow.h). */
typedef void measure_follow_fn(const double step[4], float value[MEASURE_MOST]);

static void measure_turn(const double step[4], float value[MEASURE_MOST])
{
	const double u = (double)value[0], v = (double)value[1];

	value[0] = (float)(step[0] * u + step[1] * v);
	value[1] = (float)(step[2] * u + step[3] * v);
}

static void measure_widen(const double step[4], float value[MEASURE_MOST])
{
	value[0] = (float)(step[0] * (double)value[0]);
}

static void measure_mirror(const double step[4], float value[MEASURE_MOST])
{
	value[0] = step[0] < 0 ? -value[0] : value[0];
	value[1] = step[3] < 0 ? -value[1] : value[1];
}

static const struct measure_kind {
	const char *name;
	unsigned channels;
	measure_fn *read;
	measure_follow_fn *follow; /* NULL: they stay */
	bool can_mirror, can_turn, can_bend;
} measure_kind[] = {
    [PIPELINE_DEPTH] = {"depth", 1, measure_depth, NULL, true, true, true},
    [PIPELINE_DISPARITY] = {"disparity", 1, measure_disparity, measure_widen, false, false, false},
    [PIPELINE_FLOW] = {"flow", 2, measure_flow, measure_turn, true, true, false},
    [PIPELINE_NORMALS] = {"normals", 3, measure_normals, measure_mirror, true, false, false},
};

const char *measure_check(const struct op_list *ops, const struct shape *shape,
			  enum pipeline_measure what, unsigned *ret_at)
{
	const struct measure_kind *kind = &measure_kind[what];
	const unsigned stop = follow_stop(ops, shape);

	for (unsigned i = 1; i < shape->pixel_ops && i < stop; i++) {
		*ret_at = i;
		switch (ops->op[i].id) {
		case OP_HFLIP:
			if (!kind->can_mirror)
				return "disparity cannot follow it: in a mirror the right picture "
				       "is the left one; leave it out";
			break;
		case OP_ROTATE:
		case OP_AFFINE:
			if (!kind->can_turn)
				return what == PIPELINE_NORMALS
					   ? "normals cannot follow it; leave it out"
					   : "disparity is between places of one row, and cannot "
					     "follow it; leave it out";
			break;
		case OP_RANDOM_PERSPECTIVE:
		case OP_ELASTIC_TRANSFORM:
			if (!kind->can_bend)
				return "flow, disparity and normals cannot follow it; leave it out";
			break;
		default:
			break;
		}
	}
	*ret_at = stop;
	return stop < ops->count ? "what was measured of pixels cannot follow it; leave it out"
				 : NULL;
}

/* ---- one field ---- */

/* The op as it goes through it. */
static void measure_op(struct op *op, bool by_nearest)
{
	const bool is_resize = scale_is_op(op->id) || op->id == OP_RANDOM_RESIZED_CROP;
	const struct op_param *params;
	const unsigned n = op_params(op->id, &params);

	for (unsigned i = 0; i < n; i++) {
		const char *name = params[i].name;
		const bool is_filter = strstr(name, "interpolation") != NULL;

		if ((is_filter && (by_nearest || !is_resize)) || strcmp(name, "fill") == 0 ||
		    strcmp(name, "padding_mode") == 0)
			memset(op->value[i].number, 0, sizeof(op->value[i].number));
	}
}

int measure_new(const struct op_list *ops, const struct shape *shape, struct pipeline_field *field,
		struct pipeline_field *valid, struct measure **ret)
{
	struct measure *measure = calloc(1, sizeof(*measure));
	const uint64_t pixels = (uint64_t)shape->height * shape->width;

	if (!measure)
		return -ENOMEM;
	measure->is = field->measured;
	measure->program.ops = *ops;
	measure->program.shape = *shape;
	measure->program.steps.ops = &measure->program.ops;
	for (unsigned i = 1; i < shape->pixel_ops; i++)
		measure_op(&measure->program.ops.op[i], field->measured.by_nearest);
	field->ndim = 3;
	field->shape[0] = measure_kind[field->measured.what].channels;
	field->shape[1] = valid->shape[0] = shape->height;
	field->shape[2] = valid->shape[1] = shape->width;
	field->bytes = sizeof(float) * field->shape[0] * pixels;
	valid->ndim = 2;
	valid->bytes = pixels;
	*ret = measure;
	return 0;
}

void measure_free(struct measure *measure)
{
	free(measure);
}

/* ---- the file ---- */

/* Has the file as many channels as there must be? Flow has a third one in PNG, and in PFM, where it says nothing; one of 8 bits is a drawing
 * of it. */
static bool measure_fits(const struct measure *measure, const struct measure_file *file)
{
	const enum pipeline_measure what = measure->is.what;

	if (what == PIPELINE_FLOW && (file->png_bits || file->is_pfm))
		return file->channels == 3 && file->png_bits != 8;
	if (what == PIPELINE_DISPARITY && file->channels == 3)
		return file->png_bits == 8;
	return file->channels == measure_kind[what].channels;
}

/* What the numbers are divided by. */
static float measure_divisor(const struct measure *measure, const struct measure_file *file)
{
	const bool is_kitti = measure->is.what == PIPELINE_DISPARITY && file->png_bits == 16;

	if (measure->is.divisor > 0)
		return (float)measure->is.divisor;
	return is_kitti ? MEASURE_KITTI_DISPARITY : 1;
}

/* Of a file whose head was read: bits of a number; 0: it is no PNG. */
static unsigned measure_png_bits(const uint8_t *data, size_t size)
{
	return size > PNG_BITS && memcmp(data, "\x89PNG", 4) == 0 ? data[PNG_BITS] : 0;
}

/* The numbers of a row; on marks those that were measured. */
static void measure_row(const struct measure *measure, const struct measure_file *file,
			const struct picture *all, uint32_t height, uint32_t y)
{
	const struct measure_kind *kind = &measure_kind[measure->is.what];
	const unsigned n = file->channels;
	const float one = 1;

	for (uint32_t x = 0; x < all->width; x++) {
		float value[MEASURE_MOST] = {0};

		for (unsigned c = 0; c < n; c++)
			memcpy(&value[c], picture_row(all, c * height + y) + (size_t)4 * x,
			       sizeof(float));
		if (!kind->read(file, value))
			value[0] = value[1] = value[2] = NAN;
		for (unsigned c = 0; c < kind->channels; c++)
			memcpy(picture_row(all, c * height + y) + (size_t)4 * x, &value[c],
			       sizeof(float));
		memcpy(picture_row(all, n * height + y) + (size_t)4 * x, &one, sizeof(one));
	}
}

static int measure_read(struct bands_room *room, const struct measure *measure,
			struct decode *decode, const void *data, size_t size,
			struct pipeline_error *ret_error)
{
	struct decode_numbers *to = &room->numbers;
	struct measure_file file;
	int r = decode_numbers_open(decode, data, size, &room->head, ret_error);

	if (r != 0)
		return r;
	file.channels = room->head.channels;
	file.png_bits = measure_png_bits(data, size);
	file.is_pfm = size >= 2 && memcmp(data, "PF", 2) == 0;
	file.divisor = measure_divisor(measure, &file);
	if (!measure_fits(measure, &file))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%u channels are no %s",
				   file.channels, measure_kind[measure->is.what].name);
	to->n = file.channels;
	r = picture_make(&room->memory, (uint64_t)room->head.height * (to->n + 1), room->head.width,
			 &to->all);
	if (r != 0)
		return decode_fail(ret_error, (enum pipeline_fail)r, 0, "no room for %u x %u x %u",
				   room->head.width, room->head.height, to->n + 1);
	to->part = (struct picture_box){0, 0, room->head.height, room->head.width};
	to->is_inverted = false;
	for (unsigned c = 0; c < to->n; c++)
		to->channel[c] = (uint16_t)c;
	r = decode_numbers(decode, to, ret_error);
	for (uint32_t y = 0; r == 0 && y < room->head.height; y++)
		measure_row(measure, &file, &to->all, room->head.height, y);
	return r;
}

int measure_open(struct bands_room *room, const struct measure *measure, struct decode *decode,
		 const void *data, size_t size, struct pipeline_error *ret_error)
{
	int r = measure_read(room, measure, decode, data, size, ret_error);

	decode_close(decode);
	return r;
}

/* ---- one sample ---- */

/* Plane c behind all ops. */
static int measure_plane(struct bands_room *room, const struct measure *measure, unsigned c,
			 const struct draw *draw, struct picture *ret,
			 struct pipeline_error *ret_error)
{
	const struct bands_program *program = &measure->program;
	int r = bands_plane(room, c, ret, ret_error);

	for (unsigned i = 1; r == 0 && i < program->shape.pixel_ops; i++)
		if (!op_impl(program->ops.op[i].id)->stays)
			r = bands_one(room, program, i, ret, draw, ret_error);
	return r;
}

/* Pixel number i of planes of so many. Some filters go beyond the numbers they are made of: depth and disparity have to be above 0 behind them, too. */
static void measure_pixel(const struct measure *measure, const double step[4], size_t i,
			  size_t pixels, float *out, uint8_t *valid)
{
	const struct measure_kind *kind = &measure_kind[measure->is.what];
	const unsigned channels = kind->channels;
	float value[MEASURE_MOST] = {0};
	bool is_good = valid[i];

	for (unsigned c = 0; c < channels; c++)
		value[c] = out[c * pixels + i];
	if (kind->follow)
		kind->follow(step, value);
	for (unsigned c = 0; c < channels; c++)
		is_good = is_good && isfinite(value[c]) && (channels > 1 || value[c] > 0);
	for (unsigned c = 0; c < channels; c++)
		out[c * pixels + i] = is_good ? value[c] : 0;
	valid[i] = is_good;
}

int measure_run(struct bands_room *room, const struct measure *measure, const struct draw *draw,
		const double step[4], float *out, uint8_t *valid, struct pipeline_error *ret_error)
{
	const struct shape *shape = &measure->program.shape;
	const unsigned channels = measure_kind[measure->is.what].channels;
	const size_t pixels = (size_t)shape->height * shape->width;
	struct picture picture;
	int r = 0;

	for (unsigned c = 0; r == 0 && c < channels; c++) {
		r = measure_plane(room, measure, c, draw, &picture, ret_error);
		for (uint32_t y = 0; r == 0 && y < shape->height; y++)
			memcpy(out + c * pixels + (size_t)y * shape->width,
			       picture_row(&picture, y), sizeof(float) * shape->width);
	}
	if (r == 0)
		r = measure_plane(room, measure, room->numbers.n, draw, &picture, ret_error);
	for (uint32_t y = 0; r == 0 && y < shape->height; y++)
		for (uint32_t x = 0; x < shape->width; x++) {
			float within;

			memcpy(&within, picture_row(&picture, y) + (size_t)4 * x, sizeof(within));
			valid[(size_t)y * shape->width + x] = within == 1;
		}
	for (size_t i = 0; r == 0 && i < pixels; i++)
		measure_pixel(measure, step, i, pixels, out, valid);
	return r;
}
