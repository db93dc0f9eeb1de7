/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are one array: NumPy's .npy of [points, columns], and float32 with nothing before or behind it (KITTI, nuScenes),
 * of which the pipeline says how many columns there are.
 */

#include "base/npy.h"
#include "pipeline/cloud/cloud_file.h"

static const enum pipeline_dtype cloud_npy_dtypes[] = {
    [NUMBER_U8] = PIPELINE_U8,   [NUMBER_I8] = PIPELINE_I8,   [NUMBER_U16] = PIPELINE_U16,
    [NUMBER_I16] = PIPELINE_I16, [NUMBER_U32] = PIPELINE_U32, [NUMBER_I32] = PIPELINE_I32,
    [NUMBER_I64] = PIPELINE_I64, [NUMBER_F16] = PIPELINE_F16, [NUMBER_F32] = PIPELINE_F32,
    [NUMBER_BOOL] = PIPELINE_U8, [NUMBER_U64] = PIPELINE_U64, [NUMBER_F64] = PIPELINE_F64,
};

/* Rows of that many numbers. */
static int cloud_array(const uint8_t *data, uint64_t points, unsigned columns,
		       enum pipeline_dtype dtype, struct cloud_file *ret,
		       struct pipeline_error *ret_error)
{
	const size_t bytes = decode_numbers_bytes(dtype);
	int r = 0;

	ret->rows = data;
	ret->points = points;
	for (unsigned c = 0; r == 0 && c < columns; c++)
		r = cloud_add_column(ret, "", dtype, c * bytes, columns * bytes, ret_error);
	return r;
}

static bool cloud_npy_probe(const struct cloud_source *source)
{
	return source->size >= 10 && memcmp(source->data, "\x93NUMPY", 6) == 0;
}

static int cloud_npy_open(const struct cloud_source *source, struct cloud_file *ret,
			  struct pipeline_error *ret_error)
{
	struct npy file;
	struct diag diag = {.text = "the file is cut off"};

	if (npy_read(source->data, BASE_MIN(source->size, (size_t)NPY_MOST_HEAD), source->size,
		     &file, &diag) != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "NPY: %.42s", diag.text);
	if (file.ndim != 2 || file.shape[1] > CLOUD_MOST_COLUMNS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "NPY: not [points, columns], or over 64 columns");
	return cloud_array(source->data + file.data_at, file.shape[0], (unsigned)file.shape[1],
			   cloud_npy_dtypes[file.number], ret, ret_error);
}

const struct cloud_format cloud_npy = {"NPY", cloud_npy_probe, cloud_npy_open, NULL};

/* ---- nothing but numbers ---- */

static bool cloud_raw_probe(const struct cloud_source *source)
{
	(void)source;
	return true;
}

static int cloud_raw_open(const struct cloud_source *source, struct cloud_file *ret,
			  struct pipeline_error *ret_error)
{
	const size_t row = source->raw * sizeof(float);

	if (source->raw == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "raw numbers need the op's raw_columns");
	if (source->size % row != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "%zu bytes: no rows of %u float32", source->size, source->raw);
	return cloud_array(source->data, source->size / row, source->raw, PIPELINE_F32, ret,
			   ret_error);
}

const struct cloud_format cloud_raw = {"raw", cloud_raw_probe, cloud_raw_open, NULL};
