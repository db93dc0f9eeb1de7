/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Middlebury's .flo, optical flow: "PIEH", width and height as int32, then u and v of each pixel, row by row, as float32, little-endian.
 * Sintel's .dpt, depth, has the same head and one number for each pixel; the file's size tells them apart. It is no picture of 8 bits, so
 * the op decode refuses it by name.
 */

#include "pipeline/formats/decode_format.h"

#define FLO_HEAD 12

struct decode_flo {
	const uint8_t *data; /* borrowed; the numbers */
	struct decode_numbers_head head;
};

static bool decode_flo_probe(const uint8_t *data, size_t size)
{
	return size >= 4 && memcmp(data, "PIEH", 4) == 0;
}

static const char *decode_flo_refusal(const uint8_t *data, size_t size)
{
	(void)data, (void)size;
	return "FLO: no picture, but what is measured of one";
}

static int decode_flo_numbers_open(void *state, const uint8_t *data, size_t size,
				   struct decode_numbers_head *ret,
				   struct pipeline_error *ret_error)
{
	struct decode_flo *flo = state;
	int32_t width, height;
	uint64_t bytes;
	int r;

	if (size < FLO_HEAD)
		return decode_fail_truncated(ret_error);
	memcpy(&width, data + 4, sizeof(width));
	memcpy(&height, data + 8, sizeof(height));
	r = decode_check_size((uint64_t)BASE_MAX(height, 0), (uint64_t)BASE_MAX(width, 0),
			      ret_error);
	if (r != 0)
		return r;
	bytes =
	    sizeof(float) * (uint64_t)width * (uint64_t)height; /* of one number for each pixel */
	if (size - FLO_HEAD != bytes && size - FLO_HEAD < 2 * bytes)
		return decode_fail_truncated(ret_error);
	flo->data = data + FLO_HEAD;
	flo->head = (struct decode_numbers_head){(uint32_t)height, (uint32_t)width,
						 size - FLO_HEAD == bytes ? 1 : 2, 1};
	*ret = flo->head;
	return 0;
}

static int decode_flo_numbers(void *state, const struct decode_numbers *to,
			      struct pipeline_error *ret_error)
{
	const struct decode_flo *flo = state;
	const struct decode_numbers_head *head = &flo->head;
	const size_t row = (size_t)head->width * head->channels * sizeof(float);

	(void)ret_error;
	for (uint32_t y = 0; y < head->height; y++)
		decode_numbers_put(to, PIPELINE_F32, flo->data + y * row, head->channels, 0,
				   head->channels, y, 0, head->width);
	return 0;
}

const struct decode_format decode_flo = {
    .name = "FLO",
    .state_size = sizeof(struct decode_flo),
    .probe = decode_flo_probe,
    .refusal = decode_flo_refusal,
    .numbers_open = decode_flo_numbers_open,
    .numbers = decode_flo_numbers,
};
