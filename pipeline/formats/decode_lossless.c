/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG lossless (ITU T.81, annex H): each sample is what its neighbours predict, plus a difference that is coded by Huffman's codes.
 * libjpeg-turbo of Debian 12 does not decode it. What DICOM files have is taken: one scan with all components, none subsampled.
 *
 * A table of 16 bits finds a code in one step. It is made of the tables that the scan uses alone, so definitions that are repeated cost
 * nothing. Each sample takes at least a bit of the file: before memory is taken for pixels, the file's bytes are compared with their
 * number.
 */

#include "pipeline/formats/decode_lossless.h"

#include <stdlib.h>
#include "pipeline/formats/decode_format.h"

#define LOSSLESS_CODES 65536
#define LOSSLESS_MOST_LENGTH 16 /* of a code, and of a difference */
#define LOSSLESS_MOST_COMPONENTS 3

enum lossless_marker {
	LOSSLESS_SOF3 = 0xc3,
	LOSSLESS_DHT = 0xc4,
	LOSSLESS_SOI = 0xd8,
	LOSSLESS_SOS = 0xda,
	LOSSLESS_DRI = 0xdd,
	LOSSLESS_RST = 0xd0, /* to 0xd7 */
};

struct lossless_code {
	uint8_t length; /* 0: no code begins so */
	uint8_t value;
};

struct lossless_bits {
	const uint8_t *at, *end;
	uint64_t held; /* the upper bits are next */
	unsigned n;
	unsigned fed; /* of n, that the scan does not have: zeros */
};

static int lossless_fail(struct pipeline_error *ret_error, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "JPEG lossless: %.31s", why);
}

static int lossless_refuse(struct pipeline_error *ret_error, const char *why)
{
	return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "JPEG lossless: %.31s", why);
}

/* ---- the head ---- */

static int lossless_frame(struct decode_lossless *lossless, const uint8_t *at, size_t size,
			  struct pipeline_error *ret_error)
{
	if (size < 6 || size < 6 + 3 * (size_t)at[5])
		return lossless_fail(ret_error, "its head is damaged");
	lossless->bits = at[0];
	lossless->height = decode_be16(at + 1);
	lossless->width = decode_be16(at + 3);
	lossless->components = at[5];
	if (lossless->bits < 2 || lossless->bits > 16)
		return lossless_fail(ret_error, "it has not 2 to 16 bits");
	if (lossless->components != 1 && lossless->components != LOSSLESS_MOST_COMPONENTS)
		return lossless_refuse(ret_error, "neither 1 nor 3 components");
	for (unsigned i = 0; i < lossless->components; i++)
		if (at[6 + 3 * i + 1] != 0x11)
			return lossless_refuse(ret_error, "it is subsampled");
	return decode_check_size(lossless->height, lossless->width, ret_error);
}

static int lossless_tables(struct decode_lossless *lossless, const uint8_t *at, size_t size,
			   struct pipeline_error *ret_error)
{
	while (size > 0) {
		const unsigned number = at[0];
		unsigned values = 0;

		if (size < 17 || number > 3)
			return lossless_fail(ret_error, "a table is damaged");
		for (unsigned i = 1; i <= LOSSLESS_MOST_LENGTH; i++)
			values += at[i];
		if (size < 17 + (size_t)values)
			return lossless_fail(ret_error, "a table is damaged");
		lossless->huffman[number] = at + 1;
		at += 17 + values;
		size -= 17 + values;
	}
	return 0;
}

static int lossless_scan(struct decode_lossless *lossless, const uint8_t *at, size_t size,
			 struct pipeline_error *ret_error)
{
	const unsigned n = lossless->components;

	if (n == 0 || size < 4 || size < 4 + 2 * (size_t)n)
		return lossless_fail(ret_error, "its scan is damaged");
	if (at[0] != n)
		return lossless_refuse(ret_error, "a scan for each component");
	for (unsigned i = 0; i < n; i++) {
		const unsigned table = at[2 + 2 * i] >> 4;

		if (table > 3 || !lossless->huffman[table])
			return lossless_fail(ret_error, "a table is missing");
		lossless->table[i] = (uint8_t)table;
	}
	at += 1 + 2 * n;
	lossless->predictor = at[0];
	lossless->shift = at[2] & 15;
	if (lossless->predictor < 1 || lossless->predictor > 7 || lossless->shift >= lossless->bits)
		return lossless_fail(ret_error, "its predictor is unknown");
	if (lossless->restart % lossless->width != 0)
		return lossless_refuse(ret_error, "restarts within a row");
	lossless->scan = at + 3;
	if ((uint64_t)lossless->height * lossless->width * n >
	    8 * (uint64_t)(lossless->data + lossless->size - lossless->scan))
		return decode_fail_truncated(ret_error);
	return 0;
}

int decode_lossless_open(struct decode_lossless *lossless, const uint8_t *data, size_t size,
			 struct pipeline_error *ret_error)
{
	size_t at = 2;
	int r = 0;

	*lossless = (struct decode_lossless){.data = data, .size = size};
	if (size < 4 || data[0] != 0xff || data[1] != LOSSLESS_SOI)
		return lossless_fail(ret_error, "it is no JPEG");
	while (r == 0 && !lossless->scan) {
		unsigned marker;
		size_t length;

		if (size - at < 4)
			return decode_fail_truncated(ret_error);
		marker = data[at + 1];
		length = decode_be16(data + at + 2);
		if (data[at] != 0xff)
			return lossless_fail(ret_error, "a marker is damaged");
		if (marker == 0xff) { /* filled */
			at++;
			continue;
		}
		if (length < 2 || length > size - at - 2)
			return decode_fail_truncated(ret_error);
		if (marker == LOSSLESS_SOF3)
			r = lossless_frame(lossless, data + at + 4, length - 2, ret_error);
		else if (marker == LOSSLESS_DHT)
			r = lossless_tables(lossless, data + at + 4, length - 2, ret_error);
		else if (marker == LOSSLESS_SOS)
			r = lossless_scan(lossless, data + at + 4, length - 2, ret_error);
		else if (marker == LOSSLESS_DRI && length == 4)
			lossless->restart = decode_be16(data + at + 4);
		else if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc8 && marker != 0xcc)
			r = lossless_refuse(ret_error, "it is another kind of JPEG");
		at += 2 + length;
	}
	return r;
}

/* ---- codes ---- */

static int lossless_codes(const struct decode_lossless *lossless, unsigned table,
			  struct lossless_code *to, struct pipeline_error *ret_error)
{
	const uint8_t *counts = lossless->huffman[table], *value = counts + LOSSLESS_MOST_LENGTH;
	unsigned at = 0;

	for (unsigned length = 1; length <= LOSSLESS_MOST_LENGTH; length++)
		for (unsigned i = 0; i < counts[length - 1]; i++, value++) {
			const unsigned n = 1u << (LOSSLESS_MOST_LENGTH - length);

			if (n > LOSSLESS_CODES - at || *value > LOSSLESS_MOST_LENGTH)
				return lossless_fail(ret_error, "a table is damaged");
			for (unsigned k = 0; k < n; k++)
				to[at++] = (struct lossless_code){(uint8_t)length, *value};
		}
	memset(to + at, 0, (LOSSLESS_CODES - at) * sizeof(*to));
	return 0;
}

/* At least 32 bits. A marker ends the scan, or the part to the next restart. */
static void lossless_fill(struct lossless_bits *bits)
{
	while (bits->n <= 56) {
		uint64_t byte = 0;

		if (bits->at < bits->end && bits->at[0] != 0xff) {
			byte = *bits->at++;
		} else if (bits->end - bits->at >= 2 && bits->at[1] == 0) {
			byte = 0xff;
			bits->at += 2;
		} else {
			bits->fed += 8;
		}
		bits->held |= byte << (56 - bits->n);
		bits->n += 8;
	}
}

static unsigned lossless_take(struct lossless_bits *bits, unsigned n)
{
	const unsigned taken = n ? (unsigned)(bits->held >> (64 - n)) : 0;

	bits->held <<= n;
	bits->n -= n;
	return taken;
}

/* false: no code begins so, or the bits are over. */
static inline bool lossless_difference(struct lossless_bits *bits,
				       const struct lossless_code *codes, int *ret)
{
	struct lossless_code code;

	if (bits->n < 2 * LOSSLESS_MOST_LENGTH)
		lossless_fill(bits);
	code = codes[bits->held >> (64 - LOSSLESS_MOST_LENGTH)];
	if (code.length == 0)
		return false;
	lossless_take(bits, code.length);
	*ret = 32768;
	if (code.value < 16) {
		const int half = (1 << code.value) >> 1;
		const int value = (int)lossless_take(bits, code.value);

		*ret = value < half ? value - (1 << code.value) + 1 : value;
	}
	return bits->n >= bits->fed;
}

/* ---- samples ---- */

static int lossless_predict(unsigned predictor, int left, int above, int corner)
{
	switch (predictor) {
	case 1:
		return left;
	case 2:
		return above;
	case 3:
		return corner;
	case 4:
		return left + above - corner;
	case 5:
		return left + ((above - corner) >> 1);
	case 6:
		return above + ((left - corner) >> 1);
	default:
		return (left + above) >> 1;
	}
}

/* A row of n components each; above: NULL in the first one, also behind a restart. */
static bool lossless_row(const struct decode_lossless *lossless, struct lossless_bits *bits,
			 struct lossless_code *const *codes, const uint16_t *above, uint16_t *to)
{
	const unsigned n = lossless->components;
	const int first = 1 << (lossless->bits - lossless->shift - 1);

	for (uint32_t x = 0; x < lossless->width; x++)
		for (unsigned c = 0; c < n; c++) {
			const size_t at = (size_t)x * n + c;
			int guess, difference;

			if (x == 0)
				guess = above ? above[at] : first;
			else if (!above)
				guess = to[at - n];
			else
				guess = lossless_predict(lossless->predictor, to[at - n], above[at],
							 above[at - n]);
			if (!lossless_difference(bits, codes[lossless->table[c]], &difference))
				return false;
			to[at] = (uint16_t)(guess + difference);
		}
	return true;
}

static bool lossless_rows(const struct decode_lossless *lossless,
			  struct lossless_code *const *codes, uint16_t *to)
{
	const size_t row = (size_t)lossless->width * lossless->components;
	const uint32_t part = lossless->restart / lossless->width;
	struct lossless_bits bits = {.at = lossless->scan, .end = lossless->data + lossless->size};

	for (uint32_t y = 0; y < lossless->height; y++, to += row) {
		const bool is_first = y == 0 || (part && y % part == 0);

		if (is_first && y > 0) {
			bits = (struct lossless_bits){.at = bits.at, .end = bits.end};
			if (bits.end - bits.at < 2 || (bits.at[1] & 0xf8) != LOSSLESS_RST)
				return false;
			bits.at += 2;
		}
		if (!lossless_row(lossless, &bits, codes, is_first ? NULL : to - row, to))
			return false;
	}
	return true;
}

int decode_lossless_read(const struct decode_lossless *lossless, uint16_t *to,
			 struct pipeline_error *ret_error)
{
	const size_t n = (size_t)lossless->height * lossless->width * lossless->components;
	struct lossless_code *codes[4] = {NULL};
	bool is_whole = true;
	int r = 0;

	for (unsigned c = 0; r == 0 && c < lossless->components; c++) {
		const unsigned table = lossless->table[c];

		if (codes[table])
			continue;
		codes[table] = malloc(LOSSLESS_CODES * sizeof(*codes[table]));
		r = codes[table]
			? lossless_codes(lossless, table, codes[table], ret_error)
			: decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	}
	if (r == 0)
		is_whole = lossless_rows(lossless, codes, to);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(codes); i++)
		free(codes[i]);
	if (!is_whole)
		return lossless_fail(ret_error, "damaged, or cut off");
	for (size_t i = 0; r == 0 && lossless->shift && i < n; i++)
		to[i] = (uint16_t)(to[i] << lossless->shift);
	return r;
}
