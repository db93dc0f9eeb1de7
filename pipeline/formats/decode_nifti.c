/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NIfTI-1 and -2 in one file (.nii, .nii.gz): volumes of MR and CT, as numbers. The first axis runs along a row, the second down the rows, and each
 * slice of the others is a channel: [C, H, W] is the transpose of nibabel's array. Numbers are scaled as nibabel does it: times scl_slope,
 * plus scl_inter, unless the slope is 0 or none.
 *
 * Of a file in gzip the header is inflated first; then up to the last slice that is wanted, and no more. What is claimed is held against what came.
 *
 * It is no picture of 8 bits, so the op decode refuses it by name.
 */

#include <math.h>
#include "base/little.h"
#include "pipeline/formats/decode_format.h"
#include "pipeline/forms/zipped.h"

/* Where the two heads have what is read of them. */
struct nifti_form {
	unsigned size; /* which both begin with, as a number */
	unsigned magic_at;
	const char magic[4];
	unsigned axes, axis; /* eight numbers of so many bytes */
	unsigned type, from, slope, intercept;
	unsigned
	    number; /* bytes of each of the last three, of which `from` is a whole one, if they are eight */
};

static const struct nifti_form nifti_forms[] = {
    {348, 344, "n+1", 40, 2, 70, 108, 112, 116, 4},
    {540, 4, "n+2", 16, 8, 12, 168, 176, 184, 8},
};
#define NIFTI_HEAD 540 /* the larger one */

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
	size_t got; /* bytes of the file that are there, in `unpacked` if it is packed */
};

static bool nifti_is_zipped(const uint8_t *data, size_t size)
{
	return size >= 3 && memcmp(data, "\x1f\x8b\x08", 3) == 0;
}

/* NULL: it is no head. */
static const struct nifti_form *nifti_form(const uint8_t *data, size_t size)
{
	for (unsigned i = 0; i < BASE_ARRAY_LEN(nifti_forms); i++) {
		const struct nifti_form *form = &nifti_forms[i];

		if (size >= form->size && memcmp(data + form->magic_at, form->magic, 4) == 0)
			return form;
	}
	return NULL;
}

static bool decode_nifti_probe(const uint8_t *data, size_t size)
{
	return nifti_form(data, size) || nifti_is_zipped(data, size);
}

static const char *decode_nifti_refusal(const uint8_t *data, size_t size)
{
	return nifti_is_zipped(data, size) ? "gzip: no picture; t.Bands() takes NIfTI"
					   : "NIfTI: no picture; t.Bands() takes its numbers";
}

/* ---- the head ---- */

static uint64_t nifti_get(const struct decode_nifti *nifti, const uint8_t *at, unsigned bytes)
{
	const uint64_t number = little_get(at, bytes);

	return nifti->is_big ? __builtin_bswap64(number) >> (64 - 8 * bytes) : number;
}

static double nifti_float(const struct decode_nifti *nifti, const uint8_t *at, unsigned bytes)
{
	const uint64_t bits = nifti_get(nifti, at, bytes);
	const uint32_t half = (uint32_t)bits;
	float single;
	double number;

	memcpy(&number, &bits, sizeof(number));
	memcpy(&single, &half, sizeof(single));
	return bytes == 8 ? number : (double)single;
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

/* The number of axes, then their lengths; those that are not positive are as good as too long. */
static int nifti_axes(struct decode_nifti *nifti, const struct nifti_form *form,
		      const uint8_t *data, struct pipeline_error *ret_error)
{
	const uint64_t most = INT16_MAX;
	uint64_t axis[8], channels = 1;

	for (unsigned i = 0; i < 8; i++)
		axis[i] = nifti_get(nifti, data + form->axes + i * form->axis, form->axis);
	if (axis[0] < 2 || axis[0] > 7)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "NIfTI: %u axes",
				   (unsigned)axis[0]);
	for (unsigned i = 3; i <= axis[0] && channels <= DECODE_NUMBERS_MOST; i++)
		channels *= BASE_MIN(axis[i], most);
	if (channels < 1 || channels > DECODE_NUMBERS_MOST)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "NIfTI: not 1 to %d slices",
				   DECODE_NUMBERS_MOST);
	if (axis[1] > most || axis[2] > most)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "NIfTI: a side of more than %d", INT16_MAX);
	nifti->head =
	    (struct decode_numbers_head){(uint32_t)axis[2], (uint32_t)axis[1], (unsigned)channels,
					 axis[0] > 2 ? (unsigned)axis[3] : 1};
	return decode_check_size(nifti->head.height, nifti->head.width, ret_error);
}

/* Of the first so many channels. */
static uint64_t nifti_end(const struct decode_nifti *nifti, unsigned channels)
{
	const struct decode_numbers_head *head = &nifti->head;

	return nifti->from +
	       (uint64_t)head->height * head->width * channels * decode_numbers_bytes(nifti->dtype);
}

static int nifti_read(struct decode_nifti *nifti, const uint8_t *data, size_t size,
		      struct pipeline_error *ret_error)
{
	const struct nifti_form *form = nifti_form(data, size);
	double from;
	int r;

	if (!form)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "gzip, and no NIfTI file in it");
	nifti->is_big = data[form->axes] == 0 && data[form->axes + form->axis - 1] > 0;
	r = nifti_axes(nifti, form, data, ret_error);
	r = r ? r : nifti_type(nifti, (unsigned)nifti_get(nifti, data + form->type, 2), ret_error);
	if (r != 0)
		return r;
	from = form->number == 8 ? (double)nifti_get(nifti, data + form->from, 8)
				 : nifti_float(nifti, data + form->from, 4);
	if (!(from >= form->size && from <= UNPACKED_MOST))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "NIfTI: its numbers begin nowhere");
	nifti->from = (uint64_t)from;
	nifti->slope = nifti_float(nifti, data + form->slope, form->number);
	nifti->intercept = nifti_float(nifti, data + form->intercept, form->number);
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
	int r = 0;

	nifti->data = data;
	nifti->size = nifti->got = size;
	if (is_zipped) {
		r = zipped_inflate(&nifti->zipped, true, "NIfTI", data, size, NIFTI_HEAD,
				   &nifti->unpacked, &nifti->got, ret_error);
		data = nifti->unpacked.bytes;
		size = nifti->got;
	}
	r = r ? r : nifti_read(nifti, data, size, ret_error);
	if (r == 0 && !is_zipped && nifti_end(nifti, nifti->head.channels) > size)
		return decode_fail_truncated(ret_error);
	if (r == 0 && nifti_end(nifti, nifti->head.channels) > UNPACKED_MOST)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "NIfTI: more than 1 GiB of numbers");
	*ret = nifti->head;
	return r;
}

/* ---- numbers ---- */

/* As they stand there to double, n of them. */
static void nifti_row(const struct decode_nifti *nifti, const uint8_t *at, uint32_t n, double *to)
{
	const unsigned bytes = decode_numbers_bytes(nifti->dtype);

	for (uint32_t x = 0; x < n; x++, at += bytes) {
		uint8_t number[8];

		for (unsigned i = 0; i < bytes; i++)
			number[i] = at[nifti->is_big ? bytes - 1 - i : i];
		to[x] =
		    decode_numbers_value(nifti->dtype, number) * nifti->slope + nifti->intercept;
	}
}

/* What is wanted of a channel. */
static void nifti_channel(const struct decode_nifti *nifti, const uint8_t *data, unsigned c,
			  const struct decode_numbers *to)
{
	const struct picture_box *part = &to->part;
	const size_t bytes = decode_numbers_bytes(nifti->dtype);
	double *line = (double *)nifti->line.memory;

	for (uint32_t y = part->top; y < part->top + part->height; y++) {
		const size_t row = ((size_t)c * nifti->head.height + y) * nifti->head.width;

		nifti_row(nifti, data + nifti->from + (row + part->left) * bytes, part->width,
			  line);
		decode_numbers_put(to, PIPELINE_F64, (const uint8_t *)line, 1, c, 1, y, part->left,
				   part->width);
	}
}

static int decode_nifti_numbers(void *state, const struct decode_numbers *to,
				struct pipeline_error *ret_error)
{
	struct decode_nifti *nifti = state;
	const uint8_t *data = nifti->data;
	unsigned end = nifti->head.channels;
	int r = 0;

	while (end > 0 && !decode_numbers_want(to, end - 1, 1))
		end--;
	if (!picture_bytes(&nifti->line, nifti->head.width * sizeof(double)))
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	if (nifti_is_zipped(data, nifti->size)) {
		if (nifti_end(nifti, end) > nifti->got)
			r = zipped_inflate(&nifti->zipped, true, "NIfTI", data, nifti->size,
					   (size_t)nifti_end(nifti, end), &nifti->unpacked,
					   &nifti->got, ret_error);
		data = nifti->unpacked.bytes;
	}
	if (r == 0 && nifti_end(nifti, end) > nifti->got)
		return decode_fail_truncated(ret_error);
	for (unsigned c = 0; r == 0 && c < end; c++)
		if (decode_numbers_want(to, c, 1))
			nifti_channel(nifti, data, c, to);
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
