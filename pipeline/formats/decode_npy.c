/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NumPy's .npy: an array [height, width], [channels, height, width] or [volumes, depth, height, width] of whole or floating-point numbers, little-endian, in C's order. It is no
 * picture of 8 bits, so the op decode refuses it by name; the op bands takes it. Of three dimensions whose last one is 1 to 4, and the others are
 * more, it is [height, width, channels].
 */

#include "base/npy.h"
#include "pipeline/formats/decode_format.h"

struct decode_npy {
	const uint8_t *data; /* borrowed; the numbers */
	struct decode_numbers_head head;
	enum pipeline_dtype dtype;
	bool is_interleaved; /* a pixel's numbers are one behind the other */
};

#define NPY_FEW 4

static bool decode_npy_probe(const uint8_t *data, size_t size)
{
	return size >= 10 && memcmp(data, "\x93NUMPY", 6) == 0;
}

static const char *decode_npy_refusal(const uint8_t *data, size_t size)
{
	(void)data, (void)size;
	return "NPY: no picture; the op bands takes it";
}

static const enum pipeline_dtype npy_dtypes[] = {
    [NUMBER_U8] = PIPELINE_U8,   [NUMBER_I8] = PIPELINE_I8,   [NUMBER_U16] = PIPELINE_U16,
    [NUMBER_I16] = PIPELINE_I16, [NUMBER_U32] = PIPELINE_U32, [NUMBER_I32] = PIPELINE_I32,
    [NUMBER_I64] = PIPELINE_I64, [NUMBER_F16] = PIPELINE_F16, [NUMBER_F32] = PIPELINE_F32,
    [NUMBER_BOOL] = PIPELINE_U8, [NUMBER_U64] = PIPELINE_U64, [NUMBER_F64] = PIPELINE_F64,
};

/* [height, width, channels] to [channels, height, width] */
static void decode_npy_turn(uint64_t *shape)
{
	const uint64_t channels = shape[2];

	shape[2] = shape[1];
	shape[1] = shape[0];
	shape[0] = channels;
}

static int decode_npy_numbers_open(void *state, const uint8_t *data, size_t size,
				   struct decode_numbers_head *ret,
				   struct pipeline_error *ret_error)
{
	struct decode_npy *npy = state;
	struct npy file;
	struct diag diag = {.text = "the file is cut off"};
	uint64_t depth, channels;
	int r;

	if (npy_read(data, BASE_MIN(size, NPY_MOST_HEAD), size, &file, &diag) != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "NPY: %.42s", diag.text);
	if (file.ndim < 2 || file.ndim > 4)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "NPY: not [H, W], [C, H, W] or [C, D, H, W]");
	npy->is_interleaved = file.ndim == 3 && file.shape[2] <= NPY_FEW &&
			      file.shape[0] > NPY_FEW && file.shape[1] > NPY_FEW;
	if (npy->is_interleaved)
		decode_npy_turn(file.shape);
	depth = file.ndim > 2 && !npy->is_interleaved ? file.shape[file.ndim - 3] : 1;
	channels = BASE_MIN(npy->is_interleaved ? file.shape[0] : depth, UINT16_MAX);
	channels *= file.ndim == 4 ? BASE_MIN(file.shape[0], UINT16_MAX) : 1;
	if (channels < 1 || channels > DECODE_NUMBERS_MOST)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "NPY: not 1 to %d channels or slices", DECODE_NUMBERS_MOST);
	r = decode_check_size(file.shape[file.ndim - 2], file.shape[file.ndim - 1], ret_error);
	if (r != 0)
		return r;
	npy->data = data + file.data_at;
	npy->dtype = npy_dtypes[file.number];
	npy->head = (struct decode_numbers_head){(uint32_t)file.shape[file.ndim - 2],
						 (uint32_t)file.shape[file.ndim - 1],
						 (unsigned)channels, (unsigned)depth};
	*ret = npy->head;
	return 0;
}

static int decode_npy_numbers(void *state, const struct decode_numbers *to,
			      struct pipeline_error *ret_error)
{
	const struct decode_npy *npy = state;
	const struct picture_box *part = &to->part;
	const uint32_t height = npy->head.height, width = npy->head.width;
	const uint64_t row = (uint64_t)width * decode_numbers_bytes(npy->dtype);

	(void)ret_error;
	for (uint32_t y = 0; npy->is_interleaved && y < height; y++)
		decode_numbers_put(to, npy->dtype, npy->data + y * row * npy->head.channels,
				   npy->head.channels, 0, npy->head.channels, y, 0, width);
	if (npy->is_interleaved)
		return 0;
	for (unsigned c = 0; c < npy->head.channels; c++) {
		if (!decode_numbers_want(to, c, 1))
			continue;
		for (uint32_t y = part->top; y < part->top + part->height; y++)
			decode_numbers_put(to, npy->dtype,
					   npy->data + ((uint64_t)c * height + y) * row, 1, c, 1, y,
					   0, width);
	}
	return 0;
}

const struct decode_format decode_npy = {
    .name = "NPY",
    .state_size = sizeof(struct decode_npy),
    .probe = decode_npy_probe,
    .refusal = decode_npy_refusal,
    .numbers_open = decode_npy_numbers_open,
    .numbers = decode_npy_numbers,
};
