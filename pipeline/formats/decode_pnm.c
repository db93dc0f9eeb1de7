/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PBM, PGM and PPM, plain (P1, P2, P3) and raw (P4, P5, P6).
 *
 * Pixels and outcomes are Pillow's. Values are scaled to 8 bits by the largest one that the head
 * tells, halves to even; grey of more than 8 bits is scaled to 16 and then everything above 255 is
 * 255, which is what convert("RGB") makes of Pillow's mode "I". Numbers are what Python's int()
 * reads, of at most ten characters; a comment is as if it were not there, not even a blank.
 *
 * Raw RGB of 8 bits, which frames of videos come as (video_frames.c), is given by rows.
 *
 * Plain files are read in blocks of PNM_BLOCK bytes as Pillow does, for what stands behind the last
 * pixel is judged up to the end of its block: bits must be bits; a word of more than ten characters
 * is an error, any other is not looked at.
 */

#include <math.h>
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/decode_planes.h"

#define PNM_BLOCK (1 << 20)
#define PNM_MOST_DIGITS 10

struct decode_pnm {
	const uint8_t *data;
	size_t size, offset; /* of the pixels */
	uint32_t width, height, most;
	unsigned channels; /* 1, 3; 0: bits */
	bool is_plain;
	uint8_t *block;          /* of plain files: what is left of a word, and a block; owned */
	struct picture_box rest; /* rows that wait to be given */
	struct picture_buffer rows;
};

static inline bool decode_pnm_is_blank(int c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool decode_pnm_probe(const uint8_t *data, size_t size)
{
	return size >= 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6' &&
	       (size == 2 || decode_pnm_is_blank(data[2]));
}

static int decode_pnm_bad(struct pipeline_error *ret_error, const char *what)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "PNM: %s", what);
}

/* ---- numbers ---- */

/* As Python's int(): a sign, digits, single underscores between them. */
static bool decode_pnm_number(const uint8_t *text, size_t size, int64_t *ret)
{
	bool is_negative = size > 0 && text[0] == '-', was_digit = false;
	int64_t value = 0;
	size_t i = size > 0 && (text[0] == '-' || text[0] == '+');

	for (; i < size; i++) {
		if (text[i] == '_' && was_digit) {
			was_digit = false;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return false;
		value = value * 10 + (text[i] - '0');
		was_digit = true;
	}
	*ret = is_negative ? -value : value;
	return was_digit;
}

/* The next number of the head, from offset on; one blank behind it is read, too. */
static bool decode_pnm_token(struct decode_pnm *pnm, int64_t *ret)
{
	uint8_t text[PNM_MOST_DIGITS];
	size_t count = 0;

	while (pnm->offset < pnm->size) {
		uint8_t c = pnm->data[pnm->offset++];

		if (c == '#') {
			while (pnm->offset < pnm->size) {
				c = pnm->data[pnm->offset++];
				if (c == '\n' || c == '\r')
					break;
			}
		} else if (!decode_pnm_is_blank(c)) {
			if (count == sizeof(text))
				return false;
			text[count++] = c;
		} else if (count > 0) {
			break;
		}
	}
	return decode_pnm_number(text, count, ret);
}

static int decode_pnm_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	static const unsigned channels[] = {0, 1, 3};
	struct decode_pnm *pnm = state;
	int64_t width, height, most = 1;
	unsigned kind = (unsigned)(data[1] - '1');
	int r;

	pnm->data = data;
	pnm->size = size;
	pnm->offset = BASE_MIN(size, 3);
	pnm->is_plain = kind < 3;
	pnm->channels = channels[kind % 3];
	if (!decode_pnm_token(pnm, &width) || !decode_pnm_token(pnm, &height) ||
	    (pnm->channels > 0 && !decode_pnm_token(pnm, &most)))
		return decode_pnm_bad(ret_error, "a number of the head is missing");
	if (most < 1 || most > 65535)
		return decode_pnm_bad(ret_error, "the largest value is not 1 to 65535");
	r = decode_check_size((uint64_t)BASE_MAX(height, 0), (uint64_t)BASE_MAX(width, 0),
			      ret_error);
	if (r != 0)
		return r;
	pnm->most = (uint32_t)most;
	*ret_height = pnm->height = (uint32_t)height;
	*ret_width = pnm->width = (uint32_t)width;
	return 0;
}

/* ---- values ---- */

/* A value of a channel, at most `most`, in 8 bits. */
static inline uint8_t decode_pnm_scale(const struct decode_pnm *pnm, uint32_t value)
{
	bool is_deep = pnm->channels == 1 && pnm->most > 255;
	double scaled = rint(value / (double)pnm->most * (is_deep ? 65535 : 255));

	return (uint8_t)(scaled < 255 ? scaled : 255);
}

static void decode_pnm_bits(const struct decode_pnm *pnm, const uint8_t *from, uint8_t *to)
{
	for (uint32_t x = 0; x < pnm->width; x++, to += 4)
		memset(to, from[x / 8] >> (7 - x % 8) & 1 ? 0 : 255, 4);
}

static void decode_pnm_values(const struct decode_pnm *pnm, const uint8_t *from, uint8_t *to)
{
	unsigned bytes = pnm->most > 255 ? 2 : 1;

	for (uint32_t x = 0; x < pnm->width; x++, to += 4) {
		uint8_t value[3];

		for (unsigned c = 0; c < pnm->channels; c++, from += bytes) {
			uint32_t v = bytes == 2 ? decode_be16(from) : *from;

			value[c] = pnm->most == 255 ? (uint8_t)v : decode_pnm_scale(pnm, v);
		}
		decode_put(to, value[0], value[pnm->channels / 2], value[pnm->channels - 1]);
	}
}

/* RGB of 8 bits, n pixels. What is behind a pixel stands where nobody reads; behind the last one there may be nothing. */
static void decode_pnm_pixels(const uint8_t *from, uint32_t n, uint8_t *to)
{
	for (; n > 1; n--, from += 3, to += 4)
		memcpy(to, from, 4);
	if (n > 0)
		decode_put(to, from[0], from[1], from[2]);
}

static bool decode_pnm_is_rgb(const struct decode_pnm *pnm)
{
	return !pnm->is_plain && pnm->channels == 3 && pnm->most == 255;
}

/* Bytes of a row of a raw file, if all are there; else PIPELINE_E_BAD with *ret_error. */
static int decode_pnm_row(const struct decode_pnm *pnm, uint64_t *ret,
			  struct pipeline_error *ret_error)
{
	*ret = ((uint64_t)pnm->width + 7) / 8;
	if (pnm->channels > 0)
		*ret = (uint64_t)pnm->width * pnm->channels * (pnm->most > 255 ? 2 : 1);
	return *ret * pnm->height > pnm->size - pnm->offset ? decode_fail_truncated(ret_error) : 0;
}

static int decode_pnm_raw(const struct decode_pnm *pnm, const struct picture *to,
			  struct pipeline_error *ret_error)
{
	uint64_t row;
	int r = decode_pnm_row(pnm, &row, ret_error);

	if (r != 0)
		return r;
	for (uint32_t y = 0; y < pnm->height; y++) {
		const uint8_t *from = pnm->data + pnm->offset + y * row;

		if (pnm->channels == 0)
			decode_pnm_bits(pnm, from, picture_row(to, y));
		else if (decode_pnm_is_rgb(pnm))
			decode_pnm_pixels(from, pnm->width, picture_row(to, y));
		else
			decode_pnm_values(pnm, from, picture_row(to, y));
	}
	return 0;
}

/* ---- plain files ---- */

struct pnm_reader {
	struct decode_pnm *pnm;
	const struct picture *to;
	size_t at;            /* byte of the file */
	bool in_comment;      /* the last block ended in one */
	uint64_t done, total; /* values */
	uint8_t value[3];     /* of the pixel under way */
	size_t half;          /* bytes of a word that the last block cut */
};

static size_t decode_pnm_end_of_comment(const struct pnm_reader *reader, size_t at, size_t end)
{
	const uint8_t *data = reader->pnm->data;

	while (at < end && data[at] != '\n' && data[at] != '\r')
		at++;
	return at;
}

/* The next block without its comments behind the half word. False: the file is at its end. */
static bool decode_pnm_block(struct pnm_reader *reader, size_t *ret_size)
{
	struct decode_pnm *pnm = reader->pnm;
	size_t end = 0, out = reader->half;

	do { /* a comment may fill several */
		reader->at = BASE_MAX(reader->at, end);
		if (reader->at == pnm->size)
			break;
		end = BASE_MIN(reader->at + PNM_BLOCK, pnm->size);
		if (!reader->in_comment)
			break;
		reader->at = decode_pnm_end_of_comment(reader, reader->at, end);
		if (reader->at < end) {
			reader->at++;
			reader->in_comment = false;
		}
	} while (reader->in_comment);
	if (end == 0)
		return false;
	while (reader->at < end) {
		uint8_t c = pnm->data[reader->at++];

		if (c != '#') {
			pnm->block[out++] = c;
			continue;
		}
		reader->at = decode_pnm_end_of_comment(reader, reader->at, end);
		reader->in_comment = reader->at == end;
		reader->at += !reader->in_comment;
	}
	*ret_size = out;
	return true;
}

static void decode_pnm_emit(struct pnm_reader *reader, uint8_t value)
{
	unsigned channels = BASE_MAX(reader->pnm->channels, 1U);
	uint64_t pixel = reader->done / channels;
	uint8_t *row = picture_row(reader->to, (uint32_t)(pixel / reader->pnm->width));

	reader->value[reader->done++ % channels] = value;
	if (reader->done % channels == 0)
		decode_put(row + pixel % reader->pnm->width * 4, reader->value[0],
			   reader->value[channels / 2], reader->value[channels - 1]);
}

/* All words of a block are bits, each of its own. */
static int decode_pnm_plain_bits(struct pnm_reader *reader, size_t size,
				 struct pipeline_error *ret_error)
{
	const uint8_t *block = reader->pnm->block;

	for (size_t i = 0; i < size; i++) {
		if (decode_pnm_is_blank(block[i]))
			continue;
		if (block[i] != '0' && block[i] != '1')
			return decode_pnm_bad(ret_error, "a bit is neither 0 nor 1");
		if (reader->done < reader->total)
			decode_pnm_emit(reader, block[i] == '1' ? 0 : 255);
	}
	return 0;
}

static int decode_pnm_word(struct pnm_reader *reader, const uint8_t *word, size_t size,
			   struct pipeline_error *ret_error)
{
	int64_t value;

	if (size > PNM_MOST_DIGITS || !decode_pnm_number(word, size, &value) || value < 0 ||
	    value > reader->pnm->most)
		return decode_pnm_bad(ret_error, "a value is no number of its range");
	decode_pnm_emit(reader, decode_pnm_scale(reader->pnm, (uint32_t)value));
	return 0;
}

/* The numbers of a block; a word that it cuts is kept for the next. */
static int decode_pnm_plain_words(struct pnm_reader *reader, size_t size,
				  struct pipeline_error *ret_error)
{
	uint8_t *block = reader->pnm->block;
	size_t begin = 0, last = size;
	int r = 0;

	while (last > 0 && !decode_pnm_is_blank(block[last - 1]))
		last--;
	reader->half = size - last;
	if (reader->half > PNM_MOST_DIGITS)
		return decode_pnm_bad(ret_error, "a value is no number of its range");
	while (r == 0 && begin < last && reader->done < reader->total) {
		size_t end = begin;

		while (!decode_pnm_is_blank(block[end]))
			end++;
		if (end > begin)
			r = decode_pnm_word(reader, block + begin, end - begin, ret_error);
		begin = end + 1;
	}
	memmove(block, block + last, reader->half);
	return r;
}

static int decode_pnm_plain(struct decode_pnm *pnm, const struct picture *to,
			    struct pipeline_error *ret_error)
{
	struct pnm_reader reader = {.pnm = pnm, .to = to, .at = pnm->offset};
	size_t size;
	int r = 0;

	reader.total = (uint64_t)pnm->height * pnm->width * BASE_MAX(pnm->channels, 1U);
	while (r == 0 && reader.done < reader.total && decode_pnm_block(&reader, &size)) {
		if (pnm->channels == 0)
			r = decode_pnm_plain_bits(&reader, size, ret_error);
		else
			r = decode_pnm_plain_words(&reader, size, ret_error);
	}
	if (r == 0 && reader.done < reader.total && reader.half > 0)
		r = decode_pnm_word(&reader, pnm->block, reader.half, ret_error);
	if (r == 0 && reader.done < reader.total)
		r = decode_fail_truncated(ret_error);
	return r;
}

static void decode_pnm_close(void *state)
{
	struct decode_pnm *pnm = state;

	free(pnm->block);
	pnm->block = NULL;
	picture_buffer_trim(&pnm->rows);
}

static int decode_pnm_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_pnm *pnm = state;
	int r = decode_make(buffer, pnm->height, pnm->width, ret, ret_error);

	if (r != 0)
		return r;
	if (!pnm->is_plain)
		return decode_pnm_raw(pnm, ret, ret_error);
	pnm->block = malloc(BASE_MIN(pnm->size, PNM_BLOCK) + PNM_MOST_DIGITS);
	if (!pnm->block)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	r = decode_pnm_plain(pnm, ret, ret_error);
	decode_pnm_close(pnm);
	return r;
}

static int decode_pnm_rows_start(void *state, const struct picture_box *box,
				 struct pipeline_error *ret_error)
{
	struct decode_pnm *pnm = state;
	uint64_t row;

	if (!decode_pnm_is_rgb(pnm))
		return DECODE_E_AGAIN;
	pnm->rest = *box;
	return decode_pnm_row(pnm, &row, ret_error);
}

static int decode_pnm_rows_next(void *state, struct picture *ret, struct decode_band *ret_band,
				struct pipeline_error *ret_error)
{
	struct decode_pnm *pnm = state;
	struct picture_box *rest = &pnm->rest;
	const uint32_t rows = BASE_MIN(rest->height, DECODE_PLANES_ROWS);
	int r = decode_make(&pnm->rows, rows, rest->width, ret, ret_error);

	ret_band->rows = 0;
	for (uint32_t y = 0; r == 0 && y < rows; y++, rest->top++, rest->height--)
		decode_pnm_pixels(pnm->data + pnm->offset +
				      ((size_t)rest->top * pnm->width + rest->left) * 3,
				  rest->width, picture_row(ret, y));
	return r;
}

static void decode_pnm_fini(void *state)
{
	struct decode_pnm *pnm = state;

	decode_pnm_close(pnm);
	picture_buffer_fini(&pnm->rows);
}

/* Values as they are, whatever the largest one is said to be. */
static int decode_pnm_labels(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	const struct decode_pnm *pnm = state;
	const unsigned bytes = pnm->most > 255 ? 2 : 1;
	const uint8_t *from = pnm->data + pnm->offset;
	int r;

	if (pnm->channels != 1 || pnm->is_plain)
		return decode_pnm_bad(ret_error, "a mask is raw PGM (P5)");
	if ((uint64_t)pnm->width * pnm->height * bytes > pnm->size - pnm->offset)
		return decode_fail_truncated(ret_error);
	r = decode_make(buffer, pnm->height, pnm->width, ret, ret_error);
	for (uint32_t y = 0; r == 0 && y < ret->height; y++)
		for (uint32_t x = 0; x < ret->width; x++, from += bytes)
			decode_put_label(picture_row(ret, y) + 4 * (size_t)x,
					 bytes == 2 ? decode_be16(from) : *from);
	return r;
}

static int decode_pnm_numbers_open(void *state, const uint8_t *data, size_t size,
				   struct decode_numbers_head *ret,
				   struct pipeline_error *ret_error)
{
	struct decode_pnm *pnm = state;
	int r = decode_pnm_open(pnm, data, size, &ret->height, &ret->width, ret_error);

	if (r != 0)
		return r;
	if (pnm->channels == 0 || pnm->is_plain)
		return decode_pnm_bad(ret_error, "numbers are of raw PGM or PPM");
	ret->channels = pnm->channels;
	return 0;
}

/* Values as they are, whatever the largest one is said to be. */
static int decode_pnm_numbers(void *state, const struct decode_numbers *to,
			      struct pipeline_error *ret_error)
{
	struct decode_pnm *pnm = state;
	const bool is_deep = pnm->most > 255;
	const uint64_t count = (uint64_t)pnm->width * pnm->channels;
	const uint8_t *from = pnm->data + pnm->offset;
	uint16_t *row = picture_bytes(&pnm->rows, count * sizeof(*row));

	if (!row)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no room for the numbers");
	if (count * pnm->height * (is_deep ? 2 : 1) > pnm->size - pnm->offset)
		return decode_fail_truncated(ret_error);
	for (uint32_t y = 0; y < pnm->height; y++) {
		for (uint64_t i = 0; i < count; i++, from += is_deep ? 2 : 1)
			row[i] = is_deep ? (uint16_t)decode_be16(from) : *from;
		decode_numbers_put(to, PIPELINE_U16, (const uint8_t *)row, pnm->channels, 0,
				   pnm->channels, y, 0, pnm->width);
	}
	return 0;
}

const struct decode_format decode_pnm = {
    .name = "PNM",
    .state_size = sizeof(struct decode_pnm),
    .probe = decode_pnm_probe,
    .open = decode_pnm_open,
    .whole = decode_pnm_whole,
    .labels = decode_pnm_labels,
    .numbers_open = decode_pnm_numbers_open,
    .numbers = decode_pnm_numbers,
    .rows_start = decode_pnm_rows_start,
    .rows_next = decode_pnm_rows_next,
    .close = decode_pnm_close,
    .fini = decode_pnm_fini,
};
