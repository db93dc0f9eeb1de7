/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pixels of a mosaic. The canvas never is in memory: a row of it is put together when it is wanted, of parts of the
 * two pictures that lie there and of the fill. With scale 1 that row, or its middle, is a row of the result.
 *
 * With another scale a pixel of the result is taken between four of the canvas, with weights by distance, as cv2's
 * warpAffine does with INTER_LINEAR; pixels are squares here, so that scale 1 is the limit. It is done down first and
 * then across, as only the latter has to look up where its values are. The last two rows of the canvas are kept, since
 * the next row of the result wants one of them. What takes the time is in mosaic_avx2.c once more, with the same bits.
 */

#include "plan/mix/mosaic.h"

#include <math.h>

#include "base/half.h"
#include "plan/mix/mosaic_loops.h"

struct mosaic_work { /* of a picture, in its scratch memory */
	const struct mosaic_picture *picture;
	const struct mosaic *mosaic;
	const uint8_t *tile[MOSAIC_TILES]; /* of the plane */
	const uint8_t *fill;               /* a pixel */
	size_t pixel;                      /* bytes */
	int32_t *column;                   /* of a mask: for each of the result, of the canvas */
	int32_t *place;                    /* for each value of a row of the result, in values */
	float *share;                      /* of the pixel behind that */
	float *line[2];                    /* rows of the canvas */
	int64_t row[2];                    /* which ones */
	float *values;                     /* between them */
	float *result;                     /* a row */
	uint8_t *raw;                      /* a row of the canvas */
	int64_t from, end;                 /* columns of the canvas that are looked at */
	bool has_avx2;
};

#define MOSAIC_BESIDE \
	3 /* columns of fill that are looked at: one before the canvas, two behind it */

static size_t mosaic_row_pixels(const struct mosaic_picture *picture)
{
	return (size_t)2 * picture->width + MOSAIC_BESIDE;
}

static void *mosaic_lay(size_t *at, void *scratch, size_t bytes)
{
	void *place = scratch ? (uint8_t *)scratch + *at : NULL;

	*at += base_align_up(bytes, 64);
	return place;
}

/* With scratch NULL it only counts. */
static size_t mosaic_lay_out(const struct mosaic_picture *picture, void *scratch,
			     struct mosaic_work *work)
{
	const size_t values = (size_t)picture->width * picture->channels;
	const size_t wide = mosaic_row_pixels(picture) * picture->channels;
	size_t at = 0;

	work->column = mosaic_lay(&at, scratch, picture->width * sizeof(*work->column));
	work->place = mosaic_lay(&at, scratch, values * sizeof(*work->place));
	work->share = mosaic_lay(&at, scratch, values * sizeof(float));
	work->line[0] = mosaic_lay(&at, scratch, wide * sizeof(float));
	work->line[1] = mosaic_lay(&at, scratch, wide * sizeof(float));
	work->values = mosaic_lay(&at, scratch, wide * sizeof(float));
	work->result = mosaic_lay(&at, scratch, values * sizeof(float));
	work->raw = mosaic_lay(&at, scratch, mosaic_row_pixels(picture) * work->pixel);
	return at;
}

size_t mosaic_scratch_bytes(const struct mosaic_picture *picture)
{
	struct mosaic_work work = {.pixel = (size_t)picture->channels * picture->value_bytes};

	return mosaic_lay_out(picture, NULL, &work);
}

static struct mosaic_work mosaic_begin(const struct mosaic_picture *picture,
				       const struct mosaic *mosaic, void *scratch)
{
	struct mosaic_work work = {.picture = picture,
				   .mosaic = mosaic,
				   .pixel = (size_t)picture->channels * picture->value_bytes,
				   .has_avx2 = batch_mix_has_avx2()};

	mosaic_lay_out(picture, scratch, &work);
	return work;
}

static void mosaic_set_plane(struct mosaic_work *work, const uint8_t *const tile[MOSAIC_TILES],
			     uint32_t plane)
{
	const struct mosaic_picture *picture = work->picture;
	const size_t bytes = (size_t)picture->height * picture->width * work->pixel;

	for (unsigned k = 0; k < MOSAIC_TILES; k++)
		work->tile[k] = tile[k] + plane * bytes;
	work->fill = picture->fill + plane * work->pixel;
	work->row[0] = work->row[1] = INT64_MIN;
}

/* ---- rows of the canvas ---- */

/* n pixels of fill; returns what is behind them. */
static uint8_t *mosaic_fill(const struct mosaic_work *work, size_t n, uint8_t *to)
{
	const size_t bytes = n * work->pixel;
	size_t done = BASE_MIN(work->pixel, bytes);

	memcpy(to, work->fill, done);
	for (size_t more; done < bytes; done += more) { /* twice as many each time */
		more = BASE_MIN(done, bytes - done);
		memcpy(to + done, to, more);
	}
	return to + bytes;
}

/* Columns `from` to `end` - 1 of row y of the canvas that a picture has, which begins in column `shift` there. */
static uint8_t *mosaic_copy(const struct mosaic_work *work, const uint8_t *row, int64_t shift,
			    int64_t from, int64_t end, uint8_t *to)
{
	const size_t bytes = (size_t)(end - from) * work->pixel;

	memcpy(to, row + (size_t)(from - shift) * work->pixel, bytes);
	return to + bytes;
}

/* Columns from .. end - 1 of the canvas's row y, all of them on the canvas. */
static uint8_t *mosaic_row(const struct mosaic_work *work, int64_t y, int64_t from, int64_t end,
			   uint8_t *to)
{
	const int64_t height = work->picture->height, width = work->picture->width;
	const int64_t middle = work->mosaic->center_y, center = work->mosaic->center_x;
	const bool is_below = y >= middle;
	const int64_t row = y - (is_below ? middle : middle - height);

	if (row < 0 || row >= height)
		return mosaic_fill(work, (size_t)(end - from), to);
	for (unsigned side = 0; side < 2; side++) {
		const uint8_t *pixels =
		    work->tile[2 * is_below + side] + (size_t)(row * width) * work->pixel;
		const int64_t shift = side ? center : center - width;
		const int64_t least = BASE_MIN(BASE_MAX(from, shift), end);
		const int64_t most = BASE_MIN(BASE_MAX(least, shift + width), end);

		if (!side)
			to = mosaic_fill(work, (size_t)(least - from), to);
		if (most > least)
			to = mosaic_copy(work, pixels, shift, least, most, to);
		from = BASE_MAX(most, from);
	}
	return mosaic_fill(work, (size_t)(end - from), to);
}

/* The columns of row y that are looked at; it and some of them may be off the canvas. */
static void mosaic_wide_row(const struct mosaic_work *work, int64_t y, uint8_t *to)
{
	const int64_t from = BASE_MAX(work->from, (int64_t)0);
	const int64_t end = BASE_MIN(work->end, 2 * (int64_t)work->picture->width);

	if (y < 0 || y >= 2 * (int64_t)work->picture->height) {
		mosaic_fill(work, (size_t)(work->end - work->from), to);
		return;
	}
	to = mosaic_fill(work, (size_t)(from - work->from), to);
	to = mosaic_row(work, y, from, end, to);
	mosaic_fill(work, (size_t)(work->end - end), to);
}

/* ---- between pixels ---- */

/* Of raw, but for float32, which is there. */
static void mosaic_read(const struct mosaic_work *work, size_t n, float *to)
{
	const uint16_t *half = (const uint16_t *)(const void *)work->raw;
	const enum mosaic_type type = work->picture->type;
	size_t i = work->has_avx2 ? mosaic_read_avx2(type, work->raw, n, to) : 0;

	if (type == MOSAIC_U8)
		for (; i < n; i++)
			to[i] = work->raw[i];
	else if (type == MOSAIC_F16)
		for (; i < n; i++)
			to[i] = half_f16_value(half[i]);
	else if (type == MOSAIC_BF16)
		for (; i < n; i++)
			to[i] = half_float((uint32_t)half[i] << 16);
}

static void mosaic_write(const struct mosaic_work *work, const float *from, size_t n, uint8_t *to)
{
	uint16_t *half = (uint16_t *)(void *)to;
	const enum mosaic_type type = work->picture->type;
	size_t i = work->has_avx2 ? mosaic_write_avx2(type, from, n, to) : 0;

	if (type == MOSAIC_F32)
		memcpy(to, from, n * sizeof(*from));
	else if (type == MOSAIC_U8)
		for (; i < n; i++)
			to[i] = (uint8_t)(from[i] + 0.5f);
	else if (type == MOSAIC_F16)
		for (; i < n; i++)
			half[i] = half_f16(from[i]);
	else
		for (; i < n; i++)
			half[i] = half_bf16(from[i]);
}

static void mosaic_down_between(const struct mosaic_work *work, const float *above,
				const float *below, float share, size_t n, float *to)
{
	size_t i = work->has_avx2 ? mosaic_down_avx2(above, below, share, n, to) : 0;

	for (; i < n; i++)
		to[i] = above[i] + (below[i] - above[i]) * share;
}

static void mosaic_across_between(const struct mosaic_work *work, size_t n, float *to)
{
	const size_t next = work->picture->channels;
	size_t i = work->has_avx2
		       ? mosaic_across_avx2(work->values, next, work->place, work->share, n, to)
		       : 0;

	for (; i < n; i++) {
		const float *left = work->values + work->place[i];

		to[i] = left[0] + (left[next] - left[0]) * work->share[i];
	}
}

/* The place on the canvas, along an axis, of the middle of the result's pixel number at. */
static double mosaic_place(uint32_t at, uint32_t side, double scale)
{
	return (at + 0.5 - side / 2) / scale + side;
}

/* The place between which pixels, one before the canvas and two behind it at most: farther off all is fill. */
static int64_t mosaic_between_pixels(uint32_t at, uint32_t side, double scale, float *ret_share)
{
	const double place = mosaic_place(at, side, scale) - 0.5, first = floor(place);

	*ret_share = first < -1 ? 0 : (float)(place - first);
	return BASE_MIN(BASE_MAX((int64_t)first, (int64_t)-1), 2 * (int64_t)side);
}

static void mosaic_set_columns(struct mosaic_work *work)
{
	const uint32_t channels = work->picture->channels, width = work->picture->width;
	const double scale = work->mosaic->scale;
	float share;

	work->from = mosaic_between_pixels(0, width, scale, &share);
	work->end = mosaic_between_pixels(width - 1, width, scale, &share) + 2;
	for (uint32_t x = 0; x < width; x++) {
		const int64_t column = mosaic_between_pixels(x, width, scale, &share) - work->from;

		for (uint32_t c = 0; c < channels; c++) {
			work->place[x * channels + c] = (int32_t)(column * channels + c);
			work->share[x * channels + c] = share;
		}
	}
}

/* The canvas's row y; the one of the other place stays. */
static const float *mosaic_line(struct mosaic_work *work, int64_t y, int64_t other)
{
	const enum mosaic_type type = work->picture->type;
	const unsigned place = work->row[0] == y   ? 0
			       : work->row[1] == y ? 1
						   : work->row[0] == other;
	float *line = work->line[place];

	if (work->row[place] == y)
		return line;
	work->row[place] = y;
	mosaic_wide_row(work, y, type == MOSAIC_F32 ? (uint8_t *)(void *)line : work->raw);
	mosaic_read(work, (size_t)(work->end - work->from) * work->picture->channels, line);
	return line;
}

static void mosaic_scaled(struct mosaic_work *work, uint8_t *out)
{
	const struct mosaic_picture *picture = work->picture;
	const size_t n = (size_t)picture->width * picture->channels;
	const size_t wide = (size_t)(work->end - work->from) * picture->channels;

	for (uint32_t y = 0; y < picture->height; y++) {
		float share;
		const int64_t row =
		    mosaic_between_pixels(y, picture->height, work->mosaic->scale, &share);
		const float *above = mosaic_line(work, row, row + 1);
		const float *below = mosaic_line(work, row + 1, row);

		mosaic_down_between(work, above, below, share, wide, work->values);
		mosaic_across_between(work, n, work->result);
		mosaic_write(work, work->result, n, out + y * (size_t)picture->width * work->pixel);
	}
}

static void mosaic_whole(struct mosaic_work *work, uint8_t *out)
{
	const struct mosaic_picture *picture = work->picture;
	const int64_t top = picture->height - picture->height / 2,
		      left = picture->width - picture->width / 2;

	for (uint32_t y = 0; y < picture->height; y++)
		out = mosaic_row(work, top + y, left, left + picture->width, out);
}

void mosaic_picture(const struct mosaic_picture *picture, const struct mosaic *mosaic,
		    const uint8_t *const tile[MOSAIC_TILES], void *scratch, uint8_t *out)
{
	struct mosaic_work work = mosaic_begin(picture, mosaic, scratch);
	const size_t bytes = (size_t)picture->height * picture->width * work.pixel;

	if (mosaic->scale != 1)
		mosaic_set_columns(&work);
	for (uint32_t plane = 0; plane < picture->planes; plane++) {
		mosaic_set_plane(&work, tile, plane);
		if (mosaic->scale == 1)
			mosaic_whole(&work, out + plane * bytes);
		else
			mosaic_scaled(&work, out + plane * bytes);
	}
}

/* ---- masks ---- */

/* -1: before the canvas; 2 side: behind it. */
static int64_t mosaic_nearest(uint32_t at, uint32_t side, double scale)
{
	const double place = floor(mosaic_place(at, side, scale));

	return BASE_MIN(BASE_MAX((int64_t)place, (int64_t)-1), 2 * (int64_t)side);
}

static uint64_t mosaic_value(const uint8_t *from, uint32_t bytes)
{
	uint64_t value = 0;

	if (bytes == 1)
		return *from;
	memcpy(&value, from, bytes); /* little endian, as all that runs this is */
	return value;
}

static void mosaic_renumber(const struct mosaic_work *work, const uint16_t *numbers, uint8_t *to)
{
	const uint32_t bytes = work->picture->value_bytes;
	const uint64_t value = mosaic_value(to, bytes);
	uint64_t number;

	if (value >= MOSAIC_NUMBERS || memcmp(to, work->fill, bytes) == 0)
		return;
	number = numbers[value];
	memcpy(to, &number, bytes);
}

void mosaic_mask(const struct mosaic_picture *picture, const struct mosaic *mosaic,
		 const uint8_t *const tile[MOSAIC_TILES], const uint16_t *numbers, void *scratch,
		 uint8_t *out)
{
	struct mosaic_work work = mosaic_begin(picture, mosaic, scratch);

	for (uint32_t x = 0; x < picture->width; x++)
		work.column[x] = (int32_t)mosaic_nearest(x, picture->width, mosaic->scale);
	work.from = work.column[0];
	work.end = work.column[picture->width - 1] + 1;
	mosaic_set_plane(&work, tile, 0);
	for (uint32_t y = 0; y < picture->height; y++) {
		const int64_t row = mosaic_nearest(y, picture->height, mosaic->scale);
		const uint16_t *side = numbers;

		mosaic_wide_row(&work, row, work.raw);
		if (side && row >= mosaic->center_y)
			side += 2 * (size_t)MOSAIC_NUMBERS;
		for (uint32_t x = 0; x < picture->width; x++, out += work.pixel) {
			memcpy(out, work.raw + (size_t)(work.column[x] - work.from) * work.pixel,
			       work.pixel);
			if (side)
				mosaic_renumber(&work,
						side + (work.column[x] >= (int64_t)mosaic->center_x
							    ? MOSAIC_NUMBERS
							    : 0),
						out);
		}
	}
}
