/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of a DICOM file: as they are, or in fragments that are compressed by RLE, JPEG, JPEG lossless or JPEG 2000.
 *
 * A frame's fragments are all (there is one frame), one (as many as frames), or those that the table of offsets says. Memory is taken once
 * the bytes can hold so many numbers.
 */

#include "pipeline/formats/dicom_frame.h"

#include <stdlib.h>
#include "base/little.h"
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/decode_lossless.h"

#define DICOM_FRAGMENT 8 /* bytes of its head */
#define DICOM_RLE_HEAD 64
#define DICOM_RLE_MOST 15 /* segments */

static int frame_fail(struct pipeline_error *ret_error, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "DICOM: %.39s", why);
}

static int frame_no_room(struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
}

/* ---- fragments ---- */

/* The item at *at: its bytes, and *at is behind it. false: there is no other. */
static bool frame_item(const struct dicom_head *head, size_t *at, const uint8_t **ret, size_t *size)
{
	const uint8_t *from = head->pixels + *at;

	if (head->size - *at < DICOM_FRAGMENT || memcmp(from, "\xfe\xff\x00\xe0", 4) != 0)
		return false;
	*size = little_32(from + 4);
	if (*size > head->size - *at - DICOM_FRAGMENT)
		return false;
	*ret = from + DICOM_FRAGMENT;
	*at += DICOM_FRAGMENT + *size;
	return true;
}

struct frame_pieces { /* that belong to a frame: by their number, or by where they begin */
	bool by_number;
	uint64_t from, to;
};

/* Those pieces, joined in `to` if it is not NULL. Returns their bytes; *ret: the first one's. */
static size_t frame_join(const struct dicom_head *head, size_t first,
			 const struct frame_pieces *pieces, uint8_t *to, unsigned *ret_n,
			 const uint8_t **ret)
{
	const uint8_t *piece;
	size_t at = first, before = first, size, all = 0;

	*ret_n = 0;
	for (uint64_t i = 0; frame_item(head, &at, &piece, &size); i++, before = at) {
		const uint64_t place = pieces->by_number ? i : before - first;

		if (place < pieces->from || place >= pieces->to)
			continue;
		if (to)
			memcpy(to + all, piece, size);
		if (++*ret_n == 1)
			*ret = piece;
		all += size;
	}
	return all;
}

static int frame_bytes(struct dicom_room *room, const struct dicom_head *head, uint32_t i,
		       const uint8_t **ret, size_t *ret_size, struct pipeline_error *ret_error)
{
	struct frame_pieces pieces = {true, 0, UINT64_MAX};
	const uint8_t *table;
	size_t first = 0, size;
	unsigned n;

	if (!frame_item(head, &first, &table, &size))
		return frame_fail(ret_error, "its table of offsets is damaged");
	*ret = table;
	frame_join(head, first, &pieces, NULL, &n, ret);
	if (n == head->frames && n > 1) {
		pieces.from = i;
		pieces.to = (uint64_t)i + 1;
	} else if (head->frames > 1) {
		if (size / 4 < head->frames)
			return frame_fail(ret_error, "where its frames begin is not said");
		pieces.by_number = false;
		pieces.from = little_32(table + 4 * (size_t)i);
		if (i + 1 < head->frames)
			pieces.to = little_32(table + 4 * (size_t)(i + 1));
	}
	*ret_size = frame_join(head, first, &pieces, NULL, &n, ret);
	if (n <= 1)
		return n ? 0 : frame_fail(ret_error, "a frame is missing");
	if (!picture_bytes(&room->joined, *ret_size ? *ret_size : 1))
		return frame_no_room(ret_error);
	frame_join(head, first, &pieces, room->joined.memory, &n, ret);
	*ret = room->joined.memory;
	return 0;
}

/* ---- native ---- */

static void frame_stored(const struct dicom_head *head, const uint8_t *at, bool is_planar,
			 struct dicom_frame *ret)
{
	const size_t unit = head->allocated / 8;

	*ret = (struct dicom_frame){.at = at};
	if (head->is_floating)
		ret->dtype = unit == 4 ? PIPELINE_F32 : PIPELINE_F64;
	else
		ret->dtype = unit == 1 ? PIPELINE_U8 : unit == 2 ? PIPELINE_U16 : PIPELINE_U32;
	ret->pixel = is_planar ? unit : unit * head->samples;
	ret->row = ret->pixel * head->width;
	ret->sample = is_planar ? ret->row * head->height : unit;
}

/* Each bit a byte. */
static int frame_of_bits(struct dicom_room *room, const struct dicom_head *head, uint32_t i,
			 struct dicom_frame *ret, struct pipeline_error *ret_error)
{
	const size_t n = (size_t)head->height * head->width * head->samples;
	struct dicom_head bytes = *head;
	uint8_t *to = picture_bytes(&room->made, n);

	if (!to)
		return frame_no_room(ret_error);
	for (size_t k = 0; k < n; k++) {
		const size_t bit = (size_t)i * n + k;

		to[k] = head->pixels[bit / 8] >> bit % 8 & 1;
	}
	bytes.allocated = 8;
	frame_stored(&bytes, to, head->is_planar, ret);
	return 0;
}

static int frame_native(struct dicom_room *room, const struct dicom_head *head, uint32_t i,
			struct dicom_frame *ret, struct pipeline_error *ret_error)
{
	const size_t size = (size_t)dicom_head_frame(head), first = i * size;
	size_t unit = head->allocated / 8;
	uint8_t *to;

	if (head->allocated == 1)
		return frame_of_bits(room, head, i, ret, ret_error);
	if (unit == 1 && head->is_words)
		unit = 2;
	frame_stored(head, head->pixels + first, head->is_planar, ret);
	if (!head->is_big || unit == 1)
		return 0;
	to = picture_bytes(&room->made, size);
	if (!to)
		return frame_no_room(ret_error);
	for (size_t k = 0; k < size; k++) {
		const size_t at = (first + k) ^ (unit - 1);

		to[k] = at < head->size ? head->pixels[at] : 0;
	}
	ret->at = to;
	return 0;
}

/* ---- RLE ---- */

/* PackBits: n bytes, each `step` behind the one before. false: there are not so many. */
static bool frame_unpack(const uint8_t *from, size_t size, uint8_t *to, size_t step, size_t n)
{
	size_t at = 0, done = 0;

	while (done < n && at < size) {
		const unsigned code = from[at++];
		const size_t many = BASE_MIN(code < 128 ? code + 1u : 257u - code, n - done);

		if (code == 128)
			continue;
		if (size - at < (code < 128 ? many : 1))
			return false;
		for (size_t k = 0; k < many; k++, done++)
			to[done * step] = from[code < 128 ? at + k : at];
		at += code < 128 ? code + 1u : 1;
		at = BASE_MIN(at, size);
	}
	return done == n;
}

static int frame_rle(struct dicom_room *room, const struct dicom_head *head, const uint8_t *data,
		     size_t size, struct dicom_frame *ret, struct pipeline_error *ret_error)
{
	const size_t unit = head->allocated / 8, n = (size_t)head->height * head->width;
	const size_t segments = unit * head->samples;
	uint8_t *to;

	if (size < DICOM_RLE_HEAD || segments > DICOM_RLE_MOST || little_32(data) != segments)
		return frame_fail(ret_error, "its RLE has other segments");
	if (n * segments > 64 * size)
		return decode_fail_truncated(ret_error);
	to = picture_bytes(&room->made, n * segments);
	if (!to)
		return frame_no_room(ret_error);
	for (size_t i = 0; i < segments; i++) {
		const size_t from = little_32(data + 4 + 4 * i);
		const size_t end = i + 1 < segments ? little_32(data + 8 + 4 * i) : size;
		uint8_t *plane = to + i / unit * n * unit;

		if (from > end || end > size ||
		    !frame_unpack(data + from, end - from, plane + (unit - 1 - i % unit), unit, n))
			return frame_fail(ret_error, "its RLE is damaged");
	}
	frame_stored(head, to, true, ret);
	return 0;
}

/* ---- JPEG ---- */

static int frame_check(const struct dicom_head *head, uint32_t height, uint32_t width,
		       unsigned samples, struct pipeline_error *ret_error)
{
	if (height == head->height && width == head->width && samples == head->samples)
		return 0;
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "DICOM: a frame of %u x %u x %u",
			   width, height, samples);
}

static int frame_lossless(struct dicom_room *room, const struct dicom_head *head,
			  const uint8_t *data, size_t size, struct dicom_frame *ret,
			  struct pipeline_error *ret_error)
{
	struct decode_lossless lossless;
	struct dicom_head words = *head;
	uint16_t *to;
	int r = decode_lossless_open(&lossless, data, size, ret_error);

	r = r ? r
	      : frame_check(head, lossless.height, lossless.width, lossless.components, ret_error);
	if (r != 0)
		return r;
	words.allocated = 16;
	to = picture_bytes(&room->made, dicom_head_frame(&words));
	if (!to)
		return frame_no_room(ret_error);
	frame_stored(&words, (const uint8_t *)to, false, ret);
	return decode_lossless_read(&lossless, to, ret_error);
}

static bool frame_state(const struct decode_format *format, void **state)
{
	if (!*state)
		*state = calloc(1, format->state_size);
	return *state != NULL;
}

/* libjpeg takes three components for YCbCr where no marker says what they are: Adobe's says that they are RGB. One of the file's own comes
 * later, and counts. */
static bool frame_mark_rgb(struct dicom_room *room, const uint8_t **data, size_t *size)
{
	static const uint8_t marker[] = {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b',
					 'e',  0,    0, 0,  0,   0,   0,   0};
	struct picture_buffer buffer = {0};
	uint8_t *to = picture_bytes(&buffer, *size + sizeof(marker));

	if (!to)
		return false;
	memcpy(to, *data, 2);
	memcpy(to + 2, marker, sizeof(marker));
	memcpy(to + 2 + sizeof(marker), *data + 2, *size - 2);
	picture_buffer_fini(&room->joined);
	room->joined = buffer;
	*data = to;
	*size += sizeof(marker);
	return true;
}

/* Of 8 bits: pixels. libjpeg makes RGB of what is none. */
static int frame_jpeg(struct dicom_room *room, const struct dicom_head *head, const uint8_t *data,
		      size_t size, struct dicom_frame *ret, struct pipeline_error *ret_error)
{
	struct picture picture;
	uint32_t height, width;
	int r;

	if (head->stored > 8)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "DICOM: JPEG 12 bits: convert by gdcmconv --raw");
	if (size < 2)
		return decode_fail_truncated(ret_error);
	if (!frame_state(&decode_jpeg, &room->jpeg) ||
	    (head->colours == DICOM_RGB && !frame_mark_rgb(room, &data, &size)))
		return frame_no_room(ret_error);
	r = decode_jpeg.open(room->jpeg, data, size, &height, &width, ret_error);
	r = r ? r : frame_check(head, height, width, head->samples, ret_error);
	r = r ? r : decode_jpeg.whole(room->jpeg, &room->made, &picture, ret_error);
	decode_jpeg.close(room->jpeg);
	if (r != 0)
		return r;
	*ret = (struct dicom_frame){picture.data, PIPELINE_U8, 4, picture.stride, 1};
	return 0;
}

#if HAS_JP2
static int frame_jp2(struct dicom_room *room, const struct dicom_head *head, const uint8_t *data,
		     size_t size, struct dicom_frame *ret, struct pipeline_error *ret_error)
{
	struct decode_numbers to = {
	    .part = {0, 0, head->height, head->width}, .n = head->samples, .channel = {0, 1, 2}};
	struct decode_numbers_head its = {0};
	int r;

	if (!frame_state(&decode_jp2, &room->jp2))
		return frame_no_room(ret_error);
	r = decode_jp2.numbers_open(room->jp2, data, size, &its, ret_error);
	r = r ? r : frame_check(head, its.height, its.width, its.channels, ret_error);
	r = r ? r
	      : decode_make(&room->made, head->height * head->samples, head->width, &to.all,
			    ret_error);
	r = r ? r : decode_jp2.numbers(room->jp2, &to, ret_error);
	decode_jp2.close(room->jp2);
	if (r != 0)
		return r;
	*ret = (struct dicom_frame){to.all.data, PIPELINE_F32, 4, to.all.stride,
				    to.all.stride * head->height};
	return 0;
}
#endif

/* ---- any ---- */

int dicom_frame_read(struct dicom_room *room, const struct dicom_head *head, uint32_t i,
		     struct dicom_frame *ret, struct pipeline_error *ret_error)
{
	const uint8_t *data = NULL;
	size_t size = 0;
	int r;

	if (head->coding == DICOM_NATIVE)
		return frame_native(room, head, i, ret, ret_error);
	r = frame_bytes(room, head, i, &data, &size, ret_error);
	if (r != 0)
		return r;
	switch (head->coding) {
	case DICOM_RLE:
		return frame_rle(room, head, data, size, ret, ret_error);
	case DICOM_LOSSLESS:
		return frame_lossless(room, head, data, size, ret, ret_error);
#if HAS_JP2
	case DICOM_JP2:
		return frame_jp2(room, head, data, size, ret, ret_error);
#endif
	default:
		return frame_jpeg(room, head, data, size, ret, ret_error);
	}
}

void dicom_room_trim(struct dicom_room *room)
{
	picture_buffer_trim(&room->joined);
	picture_buffer_trim(&room->made);
}

void dicom_room_fini(struct dicom_room *room)
{
	if (room->jpeg)
		decode_jpeg.fini(room->jpeg);
#if HAS_JP2
	if (room->jp2)
		decode_jp2.fini(room->jp2);
#endif
	free(room->jpeg);
	free(room->jp2);
	picture_buffer_fini(&room->joined);
	picture_buffer_fini(&room->made);
}
