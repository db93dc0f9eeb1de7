/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MP3 by libmpg123, from memory, silent: a sandboxed worker dies of a word on stderr. Layer III alone: of layer II it writes one
 * whatever it is told.
 *
 * The headers of all frames are read first (mpg123_scan): they say how long the sound is, without what the encoder put before
 * and behind it where a LAME tag tells so, and where each frame is. A part is decoded from so far before it that its
 * numbers are those of a decoding from the beginning, but for the last bits: the order of a filter's sums is another.
 *
 * Samples are libmpg123's floats, as those of the Python package soundfile.
 *
 * The only file that includes mpg123.h.
 */

#include <mpg123.h>
#include <stdio.h>

#include "pipeline/formats/decode.h"
#include "pipeline/sound/sound_reader.h"

/* Layer III takes bits from frames before: at most 511 bytes back, or 255 in MPEG-2, where the smallest frame has 11 bytes of
 * them. Two more fill what the filters remember. */
#define MP3_FRAMES_BEFORE 32
#define MP3_TAGS 8 /* ID3v2 tags in a row */
#define MP3_FREE_FORMAT \
	4608 /* bytes in which the second frame is looked for if the first does not say how long it is */
#define MP3_SAME 0xfffe0c00u /* of a header: sync, version, layer and rate */

struct sound_mp3 {
	mpg123_handle *handle; /* owned */
	const uint8_t *data;
	off_t size, at;
	unsigned channels;
	bool is_over; /* its end, or another rate or other channels */
};

/* ---- telling it ---- */

static uint32_t mp3_u32(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static bool mp3_is_header(uint32_t header)
{
	return header >> 21 == 0x7ff && (header >> 19 & 3) != 1 && (header >> 17 & 3) == 1 &&
	       (header >> 12 & 15) != 15 && (header >> 10 & 3) != 3;
}

/* Bytes of the frame with that header; 0: it does not say. */
static size_t mp3_frame_size(uint32_t header)
{
	static const uint16_t kbits[2][15] = {
	    {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}, /* MPEG-2 */
	    {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
	};
	static const uint32_t rates[3] = {44100, 48000, 32000};
	const unsigned version = header >> 19 & 3; /* 3: MPEG-1, 2: MPEG-2, 0: 2.5 */
	const uint32_t bits = kbits[version == 3][header >> 12 & 15] * 1000u;
	const uint32_t rate = rates[header >> 10 & 3] >> (version == 3 ? 0 : version == 2 ? 1 : 2);
	const uint32_t padding = header >> 9 & 1;

	return bits ? (version == 3 ? 144 : 72) * bits / rate + padding : 0;
}

/* Behind ID3v2 tags, and zeros after them. */
static size_t mp3_behind_tags(const uint8_t *data, size_t size)
{
	size_t at = 0;

	for (unsigned i = 0; i < MP3_TAGS && size - at >= 10; i++) {
		const uint8_t *tag = data + at;
		size_t bytes;

		if (memcmp(tag, "ID3", 3) != 0 || (tag[6] | tag[7] | tag[8] | tag[9]) & 0x80)
			break;
		bytes = (size_t)tag[6] << 21 | (size_t)tag[7] << 14 | (size_t)tag[8] << 7 | tag[9];
		bytes += tag[5] & 0x10 ? 20 : 10;
		if (bytes > size - at)
			return size;
		at += bytes;
	}
	while (at < size && data[at] == 0)
		at++;
	return at;
}

static bool mp3_begins(const uint8_t *data, size_t size, size_t *ret_start)
{
	const size_t start = mp3_behind_tags(data, size);
	const uint8_t *frame = data + start;
	uint32_t header;
	size_t first, last;

	size -= start;
	if (size < 8 || !mp3_is_header(mp3_u32(frame)))
		return false;
	*ret_start = start;
	header = mp3_u32(frame);
	first = mp3_frame_size(header);
	last = first ? first : MP3_FREE_FORMAT;
	first = first ? first : 4;
	for (size_t at = first; at <= last && at <= size - 4; at++) {
		const uint32_t other = mp3_u32(frame + at);

		if (mp3_is_header(other) && ((header ^ other) & MP3_SAME) == 0)
			return true;
	}
	return false;
}

/* ---- the bytes, for libmpg123 ---- */

static ssize_t mp3_get(void *arg, void *to, size_t bytes)
{
	struct sound_mp3 *mp3 = arg;
	const size_t n = BASE_MIN(bytes, (size_t)(mp3->size - mp3->at));

	memcpy(to, mp3->data + mp3->at, n);
	mp3->at += (off_t)n;
	return (ssize_t)n;
}

/* Nobody gets behind the end, or before the beginning. */
static off_t mp3_go(void *arg, off_t offset, int whence)
{
	struct sound_mp3 *mp3 = arg;
	const off_t from = whence == SEEK_CUR ? mp3->at : whence == SEEK_END ? mp3->size : 0;

	if (offset < -from || offset > mp3->size - from)
		return -1;
	mp3->at = from + offset;
	return mp3->at;
}

/* ---- opening, reading ---- */

static int mp3_set_up(mpg123_handle *handle)
{
	int r = mpg123_param(handle, MPG123_ADD_FLAGS,
			     MPG123_QUIET | MPG123_FORCE_FLOAT | MPG123_GAPLESS |
				 MPG123_SKIP_ID3V2 | MPG123_NO_FRANKENSTEIN,
			     0);

	if (r == MPG123_OK)
		r = mpg123_param(handle, MPG123_REMOVE_FLAGS, MPG123_AUTO_RESAMPLE, 0);
	if (r == MPG123_OK)
		r = mpg123_param(handle, MPG123_PREFRAMES, MP3_FRAMES_BEFORE, 0);
	return r == MPG123_OK ? mpg123_replace_reader_handle(handle, mp3_get, mp3_go, NULL) : r;
}

static int mp3_start(struct sound_mp3 *mp3, struct sound_head *ret_head)
{
	int channels, kind, r = mp3_set_up(mp3->handle);
	long rate;

	if (r == MPG123_OK)
		r = mpg123_open_handle(mp3->handle, mp3);
	if (r == MPG123_OK)
		r = mpg123_scan(mp3->handle);
	if (r == MPG123_OK)
		r = mpg123_getformat(mp3->handle, &rate, &channels, &kind);
	if (r != MPG123_OK)
		return r != MPG123_ERR || mpg123_errcode(mp3->handle) == MPG123_OK
			   ? r
			   : mpg123_errcode(mp3->handle);
	if (kind != MPG123_ENC_FLOAT_32 || rate < 0 || channels < 1 || channels > 2)
		return MPG123_BAD_OUTFORMAT;
	*ret_head = (struct sound_head){
	    .frames = mpg123_length(mp3->handle),
	    .rate = (uint32_t)rate,
	    .channels = (uint32_t)channels,
	};
	return MPG123_OK;
}

static void mp3_close(void *sound)
{
	struct sound_mp3 *mp3 = sound;

	mpg123_delete(mp3->handle);
	free(mp3);
}

static int mp3_open(const uint8_t *data, size_t size, void **ret, struct sound_head *ret_head,
		    struct pipeline_error *ret_error)
{
	struct sound_mp3 *mp3 = calloc(1, sizeof(*mp3));
	int r = mpg123_init(); /* before 1.27 this made tables, once */

	if (!mp3)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for the sound");
	mp3->data = data;
	mp3->size = (off_t)size;
	if (r == MPG123_OK)
		mp3->handle = mpg123_new(NULL, &r);
	if (mp3->handle)
		r = mp3_start(mp3, ret_head);
	if (r != MPG123_OK) {
		mp3_close(mp3);
		return decode_fail(
		    ret_error, r == MPG123_OUT_OF_MEM ? PIPELINE_FAIL_MEMORY : PIPELINE_FAIL_DECODE,
		    r, "%.47s", mpg123_plain_strerror(r));
	}
	mp3->channels = ret_head->channels;
	*ret = mp3;
	return 0;
}

static size_t mp3_read(void *sound, float *out, size_t frames, struct pipeline_error *ret_error)
{
	struct sound_mp3 *mp3 = sound;
	const size_t each = mp3->channels * sizeof(*out);
	size_t done = 0;

	if (!mp3->is_over)
		mp3->is_over =
		    mpg123_read(mp3->handle, (void *)out, frames * each, &done) != MPG123_OK;
	return done >= each ? done / each : sound_ends(0, ret_error);
}

static bool mp3_seek(void *sound, int64_t frame)
{
	struct sound_mp3 *mp3 = sound;

	return mpg123_seek(mp3->handle, frame, SEEK_SET) == frame;
}

const struct sound_reader sound_mp3_reader = {
    .begins = mp3_begins,
    .open = mp3_open,
    .close = mp3_close,
    .seek = mp3_seek,
    .read = mp3_read,
};
