/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LAS 1.0 to 1.4, point formats 0 to 10: a head, and rows of bytes. x, y and z are whole numbers with a scale and an offset; they
 * are computed in double, and less the least ones that the head tells, since of metres in UTM a float32 holds no centimetres. The
 * names of columns are laspy's. The times of GPS are no column: a float32 holds none of their seconds.
 *
 * LAZ has the same head, and bits beside the point format that say that it is compressed.
 */

#include "base/little.h"
#include "pipeline/cloud/cloud_file.h"

#include <math.h>

enum { /* where the head has them */
       LAS_MINOR = 25,
       LAS_BEGIN = 96,
       LAS_FORMAT = 104,
       LAS_STRIDE = 105,
       LAS_POINTS = 107,
       LAS_SCALE = 131,
       LAS_OFFSET = 155,
       LAS_LEAST = 187, /* of x; 16 bytes on those of y and of z, the most before each */
       LAS_HEAD = 227,
       LAS_POINTS_OF_4 = 247,
       LAS_HEAD_OF_4 = 375
};
#define LAS_COMPRESSED 0xc0

static const uint8_t las_bytes[] = {20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67};

#define LAS_OLD 0x03fu /* formats, a bit for each */
#define LAS_NEW 0x7c0u
#define LAS_ALL 0x7ffu

static const struct {
	const char *name;
	unsigned formats;
	enum pipeline_dtype dtype;
	uint8_t at, shift, mask;
} las_columns[] = {
    {"x", LAS_ALL, PIPELINE_I32, 0, 0, 0},
    {"y", LAS_ALL, PIPELINE_I32, 4, 0, 0},
    {"z", LAS_ALL, PIPELINE_I32, 8, 0, 0},
    {"intensity", LAS_ALL, PIPELINE_U16, 12, 0, 0},
    {"return_number", LAS_OLD, PIPELINE_U8, 14, 0, 7},
    {"return_number", LAS_NEW, PIPELINE_U8, 14, 0, 15},
    {"number_of_returns", LAS_OLD, PIPELINE_U8, 14, 3, 7},
    {"number_of_returns", LAS_NEW, PIPELINE_U8, 14, 4, 15},
    {"classification", LAS_OLD, PIPELINE_U8, 15, 0, 31},
    {"classification", LAS_NEW, PIPELINE_U8, 16, 0, 255},
    {"red", 1 << 2, PIPELINE_U16, 20, 0, 0},
    {"green", 1 << 2, PIPELINE_U16, 22, 0, 0},
    {"blue", 1 << 2, PIPELINE_U16, 24, 0, 0},
    {"red", 1 << 3 | 1 << 5, PIPELINE_U16, 28, 0, 0},
    {"green", 1 << 3 | 1 << 5, PIPELINE_U16, 30, 0, 0},
    {"blue", 1 << 3 | 1 << 5, PIPELINE_U16, 32, 0, 0},
    {"red", 1 << 7 | 1 << 8 | 1 << 10, PIPELINE_U16, 30, 0, 0},
    {"green", 1 << 7 | 1 << 8 | 1 << 10, PIPELINE_U16, 32, 0, 0},
    {"blue", 1 << 7 | 1 << 8 | 1 << 10, PIPELINE_U16, 34, 0, 0},
    {"nir", 1 << 8 | 1 << 10, PIPELINE_U16, 36, 0, 0},
    {"scan_angle_rank", LAS_OLD, PIPELINE_I8, 16, 0, 0},
    {"scan_angle", LAS_NEW, PIPELINE_I16, 18, 0, 0},
    {"user_data", LAS_ALL, PIPELINE_U8, 17, 0, 0},
    {"point_source_id", LAS_OLD, PIPELINE_U16, 18, 0, 0},
    {"point_source_id", LAS_NEW, PIPELINE_U16, 20, 0, 0},
};

static int las_bad(struct pipeline_error *ret_error, const char *what)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "LAS: %s", what);
}

static double las_number(const uint8_t *at)
{
	const uint64_t bits = little_64(at);
	double number;

	memcpy(&number, &bits, sizeof(number));
	return number;
}

/* How x, y or z is written, number k of the three; false: as nothing that could be computed. */
static bool las_set_scale(const uint8_t *head, unsigned k, struct cloud_column *column)
{
	column->scale = las_number(head + LAS_SCALE + 8 * k);
	column->offset = las_number(head + LAS_OFFSET + 8 * k);
	column->origin = las_number(head + LAS_LEAST + 16 * k);
	return isfinite(column->scale) && column->scale != 0 && isfinite(column->offset) &&
	       isfinite(column->origin);
}

static int las_set_columns(const uint8_t *head, unsigned format, size_t stride,
			   struct cloud_file *ret, struct pipeline_error *ret_error)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < BASE_ARRAY_LEN(las_columns); i++) {
		struct cloud_column *column = &ret->column[ret->columns];

		if ((las_columns[i].formats >> format & 1) == 0)
			continue;
		r = cloud_add_column(ret, las_columns[i].name, las_columns[i].dtype,
				     las_columns[i].at, stride, ret_error);
		if (r == 0 && i < 3 && !las_set_scale(head, i, column))
			r = las_bad(ret_error, "its scale, offset or minimum is none");
		if (r == 0) {
			column->shift = las_columns[i].shift;
			column->mask = las_columns[i].mask;
		}
	}
	return r;
}

static bool las_probe(const struct cloud_source *source)
{
	return source->size >= 4 && memcmp(source->data, "LASF", 4) == 0;
}

static int las_open(const struct cloud_source *source, struct cloud_file *ret,
		    struct pipeline_error *ret_error)
{
	const uint8_t *head = source->data;
	uint32_t begin, stride;
	unsigned format;
	bool is_of_4;

	if (source->size < LAS_HEAD)
		return las_bad(ret_error, "the file is cut off");
	is_of_4 = head[LAS_MINOR] >= 4;
	format = head[LAS_FORMAT];
	begin = little_32(head + LAS_BEGIN);
	stride = little_16(head + LAS_STRIDE);
	if (format & LAS_COMPRESSED)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "LAZ: make LAS of it by pdal translate");
	if (format >= BASE_ARRAY_LEN(las_bytes) || stride < las_bytes[format])
		return las_bad(ret_error, "its points are of no format from 0 to 10");
	if ((is_of_4 && source->size < LAS_HEAD_OF_4) || begin > source->size)
		return las_bad(ret_error, "the file is cut off");
	ret->points = is_of_4 ? little_64(head + LAS_POINTS_OF_4) : little_32(head + LAS_POINTS);
	ret->rows = head + begin;
	if (ret->points > (source->size - begin) / stride)
		return las_bad(ret_error, "the file is cut off");
	return las_set_columns(head, format, stride, ret, ret_error);
}

const struct cloud_format cloud_las = {"LAS", las_probe, las_open, NULL};
