/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NIfTI-1 in one file (.nii, .nii.gz): volumes of MR and CT, as numbers. The first axis runs along a row, the second down the rows, and each
 * slice of the others is a channel: [C, H, W] is the transpose of nibabel's array. Numbers are scaled as nibabel does it: times scl_slope,
 * plus scl_inter, unless the slope is 0 or none.
 *
 * Of a file in gzip the header is inflated first; then what it says, and no more. What is claimed is held against what came.
 *
 * It is no picture of 8 bits, so the op decode refuses it by name.
 */

#include <math.h>
#include "base/little.h"
#include "pipeline/formats/decode_format.h"
#include "pipeline/forms/zipped.h"

#define NIFTI_HEAD 348
#define NIFTI_MAGIC 344 /* its place */

struct decode_nifti {
	const uint8_t *data; /* borrowed: the file */
	size_t size;
	bool is_big;
	enum pipeline_dtype dtype;
	struct decode_numbers_head head;
	uint64_t from; /* the numbers */
	double slope, intercept;
	struct picture_buffer line;
	struct zipped *zipped; /* NULL: not needed yet */
	struct unpacked unpacked;
};

static bool nifti_is_zipped(const uint8_t *data, size_t size)
{
	return size >= 3 && memcmp(data, "\x1f\x8b\x08", 3) == 0;
}

static bool nifti_is_head(const uint8_t *data, size_t size)
{
	return size >= NIFTI_HEAD && memcmp(data + NIFTI_MAGIC, "n+1\0", 4) == 0;
}

static bool decode_nifti_probe(const uint8_t *data, size_t size)
{
	return nifti_is_head(data, size) || nifti_is_zipped(data, size);
}

static const char *decode_nifti_refusal(const uint8_t *data, size_t size)
{
	return nifti_is_zipped(data, size) ? "gzip: no picture; t.Bands() takes NIfTI"
					   : "NIfTI: no picture; t.Bands() takes its numbers";
}

/* ---- the head ---- */

static unsigned nifti_16(const struct decode_nifti *nifti, const uint8_t *at)
{
	return nifti->is_big ? decode_be16(at) : little_16(at);
}

static double nifti_float(const struct decode_nifti *nifti, const uint8_t *at)
{
	const uint32_t bits = nifti->is_big ? decode_be32(at) : little_32(at);
	float number;

	memcpy(&number, &bits, sizeof(number));
	return (double)number;
}

static const struct {
	unsigned code;
	enum pipeline_dtype dtype;
} nifti_types[] = {
    {2, PIPELINE_U8},   {4, PIPELINE_I16},  {8, PIPELINE_I32},   {16, PIPELINE_F32},
    {64, PIPELINE_F64}, {256, PIPELINE_I8}, {512, PIPELINE_U16}, {768, PIPELINE_U32},
};

static int nifti_type(struct decode_nifti *nifti, unsigned code, struct pipeline_error *ret_error)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(nifti_types); i++)
		if (nifti_types[i].code == code) {
			nifti->dtype = nifti_types[i].dtype;
			return 0;
		}
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
			   "NIfTI: data of type %u are not supported", code);
}

/* dim: the number of axes, then their lengths. */
static int nifti_axes(struct decode_nifti *nifti, const uint8_t *dim,
		      struct pipeline_error *ret_error)
{
	const unsigned n = nifti_16(nifti, dim);
	uint64_t channels = 1;

	if (n < 2 || n > 7)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "NIfTI: %u axes", n);
	for (unsigned i = 3; i <= n && channels <= DECODE_NUMBERS_MOST_HAS; i++)
		channels *= nifti_16(nifti, dim + 2 * i) & 0x7fff;
	if (channels < 1 || channels > DECODE_NUMBERS_MOST_HAS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "NIfTI: not 1 to %d slices",
				   DECODE_NUMBERS_MOST_HAS);
	nifti->head =
	    (struct decode_numbers_head){nifti_16(nifti, dim + 4) & 0x7fff,
					 nifti_16(nifti, dim + 2) & 0x7fff, (unsigned)channels};
	return decode_check_size(nifti->head.height, nifti->head.width, ret_error);
}

static uint64_t nifti_end(const struct decode_nifti *nifti)
{
	const struct decode_numbers_head *head = &nifti->head;

	return nifti->from + (uint64_t)head->height * head->width * head->channels *
				 decode_numbers_bytes(nifti->dtype);
}

static int nifti_read(struct decode_nifti *nifti, const uint8_t *data, size_t size,
		      struct pipeline_error *ret_error)
{
	double from;
	int r;

	if (!nifti_is_head(data, size))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "gzip, and no NIfTI-1 file in it");
	nifti->is_big = data[40] == 0 && data[41] > 0;
	r = nifti_axes(nifti, data + 40, ret_error);
	r = r ? r : nifti_type(nifti, nifti_16(nifti, data + 70), ret_error);
	if (r != 0)
		return r;
	from = nifti_float(nifti, data + 108);
	if (!(from >= NIFTI_HEAD && from <= UNPACKED_MOST))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "NIfTI: its numbers begin nowhere");
	nifti->from = (uint64_t)from;
	nifti->slope = nifti_float(nifti, data + 112);
	nifti->intercept = nifti_float(nifti, data + 116);
	if (nifti->slope == 0 || !isfinite(nifti->slope) || !isfinite(nifti->intercept)) {
		nifti->slope = 1;
		nifti->intercept = 0;
	}
	return 0;
}

static int decode_nifti_numbers_open(void *state, const uint8_t *data, size_t size,
				     struct decode_numbers_head *ret,
				     struct pipeline_error *ret_error)
{
	struct decode_nifti *nifti = state;
	const bool is_zipped = nifti_is_zipped(data, size);
	size_t got;
	int r = 0;

	nifti->data = data;
	nifti->size = size;
	if (is_zipped) {
		r = zipped_inflate(&nifti->zipped, true, "NIfTI", data, size, NIFTI_HEAD,
				   &nifti->unpacked, &got, ret_error);
		data = nifti->unpacked.bytes;
		size = got;
	}
	r = r ? r : nifti_read(nifti, data, size, ret_error);
	if (r == 0 && !is_zipped && nifti_end(nifti) > size)
		return decode_fail_truncated(ret_error);
	if (r == 0 && nifti_end(nifti) > UNPACKED_MOST)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "NIfTI: more than 1 GiB of numbers");
	*ret = nifti->head;
	return r;
}

/* ---- numbers ---- */

/* As they stand there to double. */
static void nifti_row(const struct decode_nifti *nifti, const uint8_t *at, double *to)
{
	const unsigned bytes = decode_numbers_bytes(nifti->dtype);

	for (uint32_t x = 0; x < nifti->head.width; x++, at += bytes) {
		uint8_t number[8];

		for (unsigned i = 0; i < bytes; i++)
			number[i] = at[nifti->is_big ? bytes - 1 - i : i];
		to[x] =
		    decode_numbers_value(nifti->dtype, number) * nifti->slope + nifti->intercept;
	}
}

static int decode_nifti_numbers(void *state, const struct decode_numbers *to,
				struct pipeline_error *ret_error)
{
	struct decode_nifti *nifti = state;
	const struct decode_numbers_head *head = &nifti->head;
	const size_t row = (size_t)head->width * decode_numbers_bytes(nifti->dtype);
	const uint8_t *data = nifti->data;
	double *line = picture_bytes(&nifti->line, head->width * sizeof(*line));
	size_t got = nifti->size;
	int r = 0;

	if (!line)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	if (nifti_is_zipped(data, nifti->size)) {
		r = zipped_inflate(&nifti->zipped, true, "NIfTI", data, nifti->size,
				   (size_t)nifti_end(nifti), &nifti->unpacked, &got, ret_error);
		data = nifti->unpacked.bytes;
	}
	if (r == 0 && nifti_end(nifti) > got)
		return decode_fail_truncated(ret_error);
	for (unsigned c = 0; r == 0 && c < head->channels; c++)
		for (uint32_t y = 0; decode_numbers_want(to, c, 1) && y < head->height; y++) {
			nifti_row(nifti, data + nifti->from + ((size_t)c * head->height + y) * row,
				  line);
			decode_numbers_put(to, PIPELINE_F64, (const uint8_t *)line, 1, c, 1, y, 0,
					   head->width);
		}
	return r;
}

static void decode_nifti_close(void *state)
{
	struct decode_nifti *nifti = state;

	unpacked_rest(&nifti->unpacked);
}

static void decode_nifti_fini(void *state)
{
	struct decode_nifti *nifti = state;

	picture_buffer_fini(&nifti->line);
	zipped_free(nifti->zipped);
	unpacked_fini(&nifti->unpacked);
}

const struct decode_format decode_nifti = {
    .name = "NIfTI",
    .state_size = sizeof(struct decode_nifti),
    .probe = decode_nifti_probe,
    .refusal = decode_nifti_refusal,
    .numbers_open = decode_nifti_numbers_open,
    .numbers = decode_nifti_numbers,
    .close = decode_nifti_close,
    .fini = decode_nifti_fini,
};
