/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DICOM: X-rays, CT, MR and the like, as numbers. They are what pydicom's apply_modality_lut() makes of pixel_array: the stored bits, with
 * their sign, times the rescale slope plus its intercept (Hounsfield units, for CT), computed in double. Frames are channels; of colours each
 * frame has three, red, green and blue. A window is no part of the numbers.
 *
 * MONOCHROME1 says that the least number is white. Its numbers stay as they are, unless the op says otherwise: then a stored number
 * becomes the greatest that its bits can be, less itself.
 *
 * It is no picture of 8 bits, so the op decode refuses it by name.
 */

#include <math.h>
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/dicom_frame.h"
#include "pipeline/forms/zipped.h"

struct decode_dicom {
	struct dicom_head head;
	struct dicom_room room;
	struct picture_buffer line;
	struct zipped *zipped; /* NULL: not needed yet */
	struct unpacked unpacked;
};

static const char *decode_dicom_refusal(const uint8_t *data, size_t size)
{
	(void)data, (void)size;
	return "DICOM: no picture; t.Bands(1) takes its numbers";
}

/* JPEG's are made red, green and blue by its decoder. */
static bool dicom_is_ybr(const struct dicom_head *head)
{
	return head->coding != DICOM_JPEG &&
	       (head->colours == DICOM_YBR || head->colours == DICOM_YBR_HALVES);
}

static int decode_dicom_numbers_open(void *state, const uint8_t *data, size_t size,
				     struct decode_numbers_head *ret,
				     struct pipeline_error *ret_error)
{
	struct decode_dicom *dicom = state;
	struct dicom_head *head = &dicom->head;
	size_t at;
	int r = dicom_head_meta(data, size, head, &at, ret_error);

	if (r != 0)
		return r;
	data += at;
	size -= at;
	if (head->is_deflated) {
		size_t got;

		r = zipped_inflate(&dicom->zipped, false, "DICOM", data, size, UNPACKED_MOST,
				   &dicom->unpacked, &got, ret_error);
		data = dicom->unpacked.bytes;
		size = got;
	}
	r = r ? r : dicom_head_read(data, size, head, ret_error);
	if (r == 0 && dicom_is_ybr(head) &&
	    (head->samples != 3 || head->stored != 8 || head->is_signed))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "DICOM: YBR_FULL of other than 8 bits");
	if (r != 0)
		return r;
	*ret = (struct decode_numbers_head){head->height, head->width, head->frames * head->samples,
					    head->samples == 1 ? head->frames : 1};
	return 0;
}

/* ---- numbers ---- */

/* The number that a stored one is, by its bits. */
static int64_t dicom_bits(const struct dicom_head *head, int64_t bits, bool is_inverted)
{
	const bool has_place = head->coding == DICOM_NATIVE || head->coding == DICOM_RLE;
	const int64_t all = (INT64_C(1) << head->stored) - 1;

	bits = bits >> (has_place ? head->high + 1 - head->stored : 0) & all;
	if (head->is_signed && bits > all / 2)
		bits -= all + 1;
	if (is_inverted)
		bits = (head->is_signed ? -1 : all) - bits;
	return bits;
}

static double dicom_number(const struct dicom_head *head, const struct dicom_frame *frame,
			   const uint8_t *at, bool is_inverted)
{
	const double number = decode_numbers_value(frame->dtype, at);

	return head->is_floating ? number : (double)dicom_bits(head, (int64_t)number, is_inverted);
}

static void dicom_row(const struct dicom_head *head, const struct dicom_frame *frame,
		      const uint8_t *at, bool is_inverted, double *to)
{
	for (uint32_t x = 0; x < head->width; x++, at += frame->pixel)
		to[x] = dicom_number(head, frame, at, is_inverted) * head->slope + head->intercept;
}

/* Red, green or blue of YBR_FULL, as pydicom has it. */
static void dicom_row_ybr(const struct dicom_head *head, const struct dicom_frame *frame,
			  const uint8_t *at, unsigned colour, double *to)
{
	static const double parts[3][2] = {
	    {0, 1.402},
	    {-0.114 * 1.772 / 0.587, -0.299 * 1.402 / 0.587},
	    {1.772, 0},
	};

	for (uint32_t x = 0; x < head->width; x++, at += frame->pixel) {
		double part[3], number;

		for (unsigned s = 0; s < 3; s++)
			part[s] = dicom_number(head, frame, at + s * frame->sample, false);
		number = floor(part[0] + parts[colour][0] * (part[1] - 128) +
			       parts[colour][1] * (part[2] - 128) + 0.5);
		to[x] = fmin(fmax(number, 0), 255) * head->slope + head->intercept;
	}
}

static int decode_dicom_frame(struct decode_dicom *dicom, uint32_t i,
			      const struct decode_numbers *to, struct pipeline_error *ret_error)
{
	const struct dicom_head *head = &dicom->head;
	const bool is_inverted = to->is_inverted && head->colours == DICOM_WHITE_LEAST;
	const bool is_ybr = dicom_is_ybr(head);
	const struct picture_box *part = &to->part;
	struct dicom_frame frame;
	double *line = picture_bytes(&dicom->line, head->width * sizeof(*line));
	int r = line ? dicom_frame_read(&dicom->room, head, i, &frame, ret_error)
		     : decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");

	for (unsigned s = 0; r == 0 && s < head->samples; s++) {
		const unsigned channel = i * head->samples + s;

		if (!decode_numbers_want(to, channel, 1))
			continue;
		for (uint32_t y = part->top; y < part->top + part->height; y++) {
			const uint8_t *row = frame.at + y * frame.row;

			if (is_ybr)
				dicom_row_ybr(head, &frame, row, s, line);
			else
				dicom_row(head, &frame, row + s * frame.sample, is_inverted, line);
			decode_numbers_put(to, PIPELINE_F64, (const uint8_t *)line, 1, channel, 1,
					   y, 0, head->width);
		}
	}
	return r;
}

static int decode_dicom_numbers(void *state, const struct decode_numbers *to,
				struct pipeline_error *ret_error)
{
	struct decode_dicom *dicom = state;
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < dicom->head.frames; i++)
		if (decode_numbers_want(to, i * dicom->head.samples, dicom->head.samples))
			r = decode_dicom_frame(dicom, i, to, ret_error);
	return r;
}

static void decode_dicom_close(void *state)
{
	struct decode_dicom *dicom = state;

	dicom_room_trim(&dicom->room);
	unpacked_rest(&dicom->unpacked);
}

static void decode_dicom_fini(void *state)
{
	struct decode_dicom *dicom = state;

	dicom_room_fini(&dicom->room);
	picture_buffer_fini(&dicom->line);
	zipped_free(dicom->zipped);
	unpacked_fini(&dicom->unpacked);
}

const struct decode_format decode_dicom = {
    .name = "DICOM",
    .state_size = sizeof(struct decode_dicom),
    .probe = dicom_head_probe,
    .refusal = decode_dicom_refusal,
    .numbers_open = decode_dicom_numbers_open,
    .numbers = decode_dicom_numbers,
    .close = decode_dicom_close,
    .fini = decode_dicom_fini,
};
