/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From bytes to tensors.
 *
 * A value of a channel is one of 256, so normalize and cast are a table of what each becomes, made
 * once with torchvision's arithmetic: float32 throughout, value / 255, then - mean, then / std,
 * mean and std rounded to float32 first; float16 and bfloat16 are rounded from that. Without
 * normalize a float is value / 255, as torchvision's ToTensor gives (v2's to_dtype(scale=True)
 * multiplies by 1 / 255, which is another float32 for 126 of the 256 values).
 *
 * Looking values up one by one is slow, and a division is, too: the fast kernels compute, in five
 * operations a value, something that is the table's number for nearly all means and spreads. That
 * is tried out for all 3 x 256 values when the pipeline is compiled; where one bit differs the
 * table is used.
 */

#include "base/half.h"
#include "pipeline/engine/finish.h"
#include "pipeline/formats/decode_planes.h"

#define FINISH_ROWS 8
#define FINISH_COLUMNS 512

/* ---- making ---- */

unsigned finish_value_bytes(enum pipeline_dtype dtype)
{
	return dtype == PIPELINE_F32 ? 4 : dtype == PIPELINE_U8 ? 1 : 2;
}

/* One number stands for all channels. */
static float finish_number(const struct op *normalize, unsigned param, unsigned channel)
{
	return (float)op_number(normalize, param,
				channel < normalize->value[param].count ? channel : 0);
}

float finish_normalize(const struct op *normalize, unsigned channel, float value)
{
	if (!normalize)
		return value;
	value -= finish_number(normalize, OP_NORMALIZE_MEAN, channel);
	return value / finish_number(normalize, OP_NORMALIZE_STD, channel);
}

static float finish_value(const struct shape *shape, unsigned channel, unsigned value)
{
	if (shape->raw)
		return (float)value;
	return finish_normalize(shape->normalize, channel, (float)value / 255.0f);
}

static void finish_fill_table(struct finish *finish, const struct shape *shape, unsigned c)
{
	for (unsigned v = 0; v < 256; v++) {
		float value = finish_value(shape, c, v);

		if (finish->dtype == PIPELINE_F32)
			finish->table.f32[c][v] = value;
		else if (finish->dtype == PIPELINE_F16)
			finish->table.half[c][v] = half_f16(value);
		else if (finish->dtype == PIPELINE_BF16)
			finish->table.half[c][v] = half_bf16(value);
	}
}

/* A factor in two parts: what float32 can say of it, and what that leaves. */
static void finish_factor(double factor, float *ret, float *ret_rest)
{
	*ret = (float)factor;
	*ret_rest = (float)(factor - *ret);
}

static void finish_fill_line(struct finish_line *line, const struct shape *shape, unsigned c)
{
	const struct op *normalize = shape->raw ? NULL : shape->normalize;
	double std = normalize ? finish_number(normalize, OP_NORMALIZE_STD, c) : 1.0;

	line->mean = normalize ? finish_number(normalize, OP_NORMALIZE_MEAN, c) : 0.0f;
	finish_factor(shape->raw ? 1.0 : 1.0 / 255.0, &line->scale, &line->scale_rest);
	finish_factor(1.0 / std, &line->inverse, &line->inverse_rest);
}

const struct finish_kernels *finish_best(void)
{
	const struct finish_kernels *fast = finish_avx2();

	if (!fast)
		fast = finish_neon();
	return fast ? fast : &finish_plain;
}

/* Do the kernels give the table's values for all that a byte may be? */
static bool finish_is_exact(const struct finish *finish, const struct finish_kernels *kernels)
{
	uint8_t from[3 * 256];
	float want[3 * 256], got[3 * 256];
	const size_t size = finish_value_bytes(finish->dtype);

	for (unsigned c = 0; c < 3; c++) {
		for (unsigned v = 0; v < 256; v++)
			from[v] = (uint8_t)v;
		finish_plain.plane(finish, c, from, 256, want);
		kernels->plane(finish, c, from, 256, got);
		if (memcmp(want, got, 256 * size) != 0)
			return false;
	}
	for (unsigned i = 0; i < 3 * 256; i++)
		from[i] = (uint8_t)(i / 3);
	finish_plain.pixels(finish, from, sizeof(from), want);
	kernels->pixels(finish, from, sizeof(from), got);
	return memcmp(want, got, sizeof(from) * size) == 0;
}

void finish_init(struct finish *finish, const struct shape *shape)
{
	const struct finish_kernels *best = finish_best();

	finish->dtype = shape->dtype;
	finish->order = shape->order;
	finish->channels = shape->channels;
	for (unsigned c = 0; c < 3; c++) {
		finish_fill_table(finish, shape, c);
		finish_fill_line(&finish->line[c], shape, c);
	}
	finish->kernels = finish_is_exact(finish, best) ? best : &finish_plain;
}

/* ---- rows ---- */

void finish_plane(const struct finish *finish, unsigned c, const uint8_t *from, size_t n, void *out)
{
	finish->kernels->plane(finish, c, from, n, out);
}

void finish_pixels(const struct finish *finish, const uint8_t *const from[3], size_t n,
		   uint8_t *scratch, void *out)
{
	if (finish->dtype == PIPELINE_U8) {
		finish->kernels->zip(from, n, out);
		return;
	}
	finish->kernels->zip(from, n, scratch);
	finish->kernels->pixels(finish, scratch, 3 * n, out);
}

void finish_end(const struct finish *finish)
{
	finish->kernels->fence();
}

void finish_join(const uint8_t *const from[3], size_t n, uint8_t *to)
{
	finish_best()->join(from, n, to);
}

/* ---- whole pictures ---- */

struct finish_tile { /* part of a picture in planes */
	uint8_t plane[3][FINISH_ROWS][FINISH_COLUMNS];
	uint8_t scratch[3 * FINISH_COLUMNS];
};

/* The part at row y and column x, rows x columns in size, to its place in the field. Planes are
 * written one after another: several streams past the cache at a time are slow. */
static void finish_tile(const struct finish *finish, const struct picture *picture, uint32_t y,
			uint32_t x, uint32_t rows, uint32_t columns, struct finish_tile *tile,
			uint8_t *out)
{
	const size_t size = finish_value_bytes(finish->dtype);
	const size_t width = picture->width, plane = width * picture->height;
	const bool planes = finish->order == OP_CHW || finish->channels == 1;
	decode_planes_fn *split = decode_planes_best();

	for (uint32_t i = 0; i < rows; i++)
		split(picture_row(picture, y + i) + (size_t)x * 4, columns, tile->plane[0][i],
		      tile->plane[1][i], tile->plane[2][i]);
	for (unsigned c = 0; planes && c < finish->channels; c++) {
		for (uint32_t i = 0; i < rows; i++)
			finish_plane(finish, c, tile->plane[c][i], columns,
				     out + (c * plane + (y + i) * width + x) * size);
	}
	for (uint32_t i = 0; !planes && i < rows; i++) {
		const uint8_t *from[3] = {tile->plane[0][i], tile->plane[1][i], tile->plane[2][i]};

		finish_pixels(finish, from, columns, tile->scratch,
			      out + ((y + i) * width + x) * 3 * size);
	}
}

void finish_run(const struct finish *finish, const struct picture *picture, void *out)
{
	struct finish_tile tile;

	for (uint32_t y = 0; y < picture->height; y += FINISH_ROWS) {
		for (uint32_t x = 0; x < picture->width; x += FINISH_COLUMNS)
			finish_tile(finish, picture, y, x,
				    BASE_MIN(picture->height - y, FINISH_ROWS),
				    BASE_MIN(picture->width - x, FINISH_COLUMNS), &tile, out);
	}
	finish_end(finish);
}

/* ---- patches ---- */

#define FINISH_PATCH 64 /* pixels, of the largest one's sides */

struct finish_patch {
	uint8_t plane[3][FINISH_PATCH * FINISH_PATCH];
	uint8_t scratch[3 * FINISH_PATCH * FINISH_PATCH];
};

/* One patch, taken apart, `times` times: of each channel, or of the whole. */
static void finish_patch(const struct finish *finish, struct finish_patch *patch, size_t n,
			 unsigned times, uint8_t *out)
{
	const uint8_t *const from[3] = {patch->plane[0], patch->plane[1], patch->plane[2]};
	const bool planes = finish->order == OP_CHW || finish->channels == 1;
	const size_t bytes = n * finish_value_bytes(finish->dtype);

	for (unsigned c = 0; planes && c < finish->channels; c++)
		for (unsigned i = 0; i < times; i++, out += bytes)
			finish_plane(finish, c, from[c], n, out);
	for (unsigned i = 0; !planes && i < times; i++, out += 3 * bytes)
		finish_pixels(finish, from, n, patch->scratch, out);
}

void finish_patches(const struct finish *finish, const struct shape *shape,
		    const struct picture *picture, void *out)
{
	const struct shape_patches *patches = &shape->patches;
	const unsigned size = patches->size, block = patches->block, square = block * block;
	const size_t bytes = shape_patch_values(shape) * finish_value_bytes(shape->dtype);
	decode_planes_fn *split = decode_planes_best();
	struct finish_patch patch;
	uint32_t rows, columns, n;

	shape_patch_grid(patches, picture->height, picture->width, &rows, &columns);
	n = rows * columns;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t blocks = i / square, across = columns / block;
		const uint32_t y = (blocks / across * block + i % square / block) * size;
		const uint32_t x = (blocks % across * block + i % block) * size;

		for (unsigned at = 0; at < size; at++)
			split(picture_row(picture, y + at) + (size_t)x * 4, size,
			      patch.plane[0] + (size_t)at * size,
			      patch.plane[1] + (size_t)at * size,
			      patch.plane[2] + (size_t)at * size);
		finish_patch(finish, &patch, (size_t)size * size, patches->times,
			     (uint8_t *)out + i * bytes);
	}
	memset((uint8_t *)out + n * bytes, 0, (patches->most - n) * bytes);
	finish_end(finish);
}
