/* SPDX-License-Identifier: Apache-2.0 */
/*
 * BMP, what of it Pillow reads: 1, 4 and 8 bits with a palette, 16, 24 and 32 bits, masks, the two
 * kinds of run lengths, from the bottom up or from the top down. Alpha is dropped.
 *
 * Pixels and outcomes are Pillow's, its oddities, too: a palette of greys makes the picture grey
 * (or black and white, where it has at most two colours), whatever the bits a pixel say; colours
 * that the palette lacks are black; the last row need not be padded; run lengths must give every
 * pixel.
 *
 * Hostile files: every offset is checked against the file's size before it is used; run lengths
 * are told by a pixel count that only grows up to the picture's.
 */

#include "base/little.h"
#include "pipeline/formats/decode_format.h"

#define BMP_HEAD 14 /* bytes of the file's header */
#define BMP_MAX_HEADER 124
#define BMP_COLORS 256

enum bmp_kind { BMP_INDEXED, BMP_PACKED, BMP_BYTES, BMP_RLE8, BMP_RLE4 };

struct decode_bmp {
	const uint8_t *data;
	size_t size;
	uint32_t width, height;
	enum bmp_kind kind;
	bool is_top_down, is_too_colorful;
	unsigned bits;       /* a pixel */
	unsigned green_bits; /* of packed pixels: 5 or 6 */
	unsigned at[3];      /* bytes of red, green, blue in a pixel of 3 or 4 */
	uint8_t color[BMP_COLORS][3];
	uint64_t offset, stride; /* of the pixels; of a row */
};

struct bmp_header {
	uint32_t size, bits, compression, colors, padding; /* padding: bytes of a palette's entry */
	uint32_t mask[4];
	uint64_t end; /* where the file goes on behind it */
};

static bool decode_bmp_probe(const uint8_t *data, size_t size)
{
	return size >= 2 && memcmp(data, "BM", 2) == 0;
}

static int decode_bmp_bad(struct pipeline_error *ret_error, const char *what, uint32_t value)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "BMP: %s %u is not known", what,
			   value);
}

/* ---- the header ---- */

/* Where the masks stand, if the header says so; 40 bytes have them behind. */
static int decode_bmp_masks(const struct decode_bmp *bmp, struct bmp_header *header,
			    struct pipeline_error *ret_error)
{
	const uint8_t *at = bmp->data + BMP_HEAD + 40;
	unsigned count = header->size >= 56 ? 4 : 3;

	if (header->compression != 3)
		return 0;
	if (header->size < 52) {
		if (bmp->size < BMP_HEAD + 40 + 12)
			return decode_fail_truncated(ret_error);
		header->end += 12;
	}
	for (unsigned i = 0; i < count; i++)
		header->mask[i] = little_32(at + 4 * (size_t)i);
	return 0;
}

static int decode_bmp_header(struct decode_bmp *bmp, struct bmp_header *header,
			     struct pipeline_error *ret_error)
{
	static const uint32_t sizes[] = {12, 40, 52, 56, 64, 108, 124};
	const uint8_t *at = bmp->data + BMP_HEAD;
	bool is_known = false;

	if (bmp->size < BMP_HEAD + 4)
		return decode_fail_truncated(ret_error);
	header->size = little_32(at);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sizes); i++)
		is_known |= sizes[i] == header->size;
	if (!is_known)
		return decode_bmp_bad(ret_error, "a header of size", header->size);
	if (bmp->size < BMP_HEAD + header->size)
		return decode_fail_truncated(ret_error);
	header->end = BMP_HEAD + header->size;
	if (header->size == 12) {
		bmp->width = little_16(at + 4);
		bmp->height = little_16(at + 6);
		header->bits = little_16(at + 10);
		header->padding = 3;
		return 0;
	}
	bmp->width = little_32(at + 4);
	bmp->height = little_32(at + 8);
	bmp->is_top_down = at[11] == 0xff;
	if (bmp->is_top_down)
		bmp->height = 0 - bmp->height;
	header->bits = little_16(at + 14);
	header->compression = little_32(at + 16);
	header->colors = little_32(at + 32);
	header->padding = 4;
	return decode_bmp_masks(bmp, header, ret_error);
}

/* ---- what a pixel is ---- */

struct bmp_layout {
	uint32_t mask[4]; /* red, green, blue, alpha */
	uint8_t at[3];
};

static int decode_bmp_masked(struct decode_bmp *bmp, const struct bmp_header *header,
			     struct pipeline_error *ret_error)
{
	static const struct bmp_layout layouts[] = {
	    {{0xff0000, 0xff00, 0xff, 0}, {2, 1, 0}},
	    {{0xff000000, 0xff0000, 0xff00, 0}, {3, 2, 1}},
	    {{0xff000000, 0xff00, 0xff, 0}, {3, 1, 0}},
	    {{0xff000000, 0xff0000, 0xff00, 0xff}, {3, 2, 1}},
	    {{0xff, 0xff00, 0xff0000, 0xff000000}, {0, 1, 2}},
	    {{0xff0000, 0xff00, 0xff, 0xff000000}, {2, 1, 0}},
	    {{0xff000000, 0xff00, 0xff, 0xff0000}, {3, 1, 0}},
	    {{0, 0, 0, 0}, {2, 1, 0}},
	};
	const uint32_t *mask = header->mask;

	if (header->bits == 24 && mask[0] == 0xff0000 && mask[1] == 0xff00 && mask[2] == 0xff)
		return 0;
	if (header->bits == 16 && mask[2] == 0x1f &&
	    ((mask[0] == 0xf800 && mask[1] == 0x7e0) || (mask[0] == 0x7c00 && mask[1] == 0x3e0))) {
		bmp->green_bits = mask[1] == 0x7e0 ? 6 : 5;
		return 0;
	}
	for (unsigned i = 0; header->bits == 32 && i < BASE_ARRAY_LEN(layouts); i++) {
		if (memcmp(mask, layouts[i].mask, sizeof(layouts[i].mask)) != 0)
			continue;
		for (unsigned c = 0; c < 3; c++)
			bmp->at[c] = layouts[i].at[c];
		return 0;
	}
	return decode_bmp_bad(ret_error, "a layout of masks, bits", header->bits);
}

static int decode_bmp_compression(struct decode_bmp *bmp, const struct bmp_header *header,
				  struct pipeline_error *ret_error)
{
	switch (header->compression) {
	case 0:
		return 0;
	case 1:
	case 2:
		if (header->bits > 8)
			return decode_bmp_bad(ret_error, "run lengths of bits", header->bits);
		bmp->kind = header->compression == 1 ? BMP_RLE8 : BMP_RLE4;
		return 0;
	case 3:
		return decode_bmp_masked(bmp, header, ret_error);
	default:
		return decode_bmp_bad(ret_error, "compression", header->compression);
	}
}

/* Is each of the palette's colours the grey that its number says? */
static bool decode_bmp_is_gray(const uint8_t *palette, size_t size, const struct bmp_header *header)
{
	for (uint32_t i = 0; i < header->colors; i++) {
		uint8_t gray = (uint8_t)(header->colors == 2 && i == 1 ? 255 : i);
		size_t at = (size_t)i * header->padding;

		if (at + 3 > size || palette[at] != gray || palette[at + 1] != gray ||
		    palette[at + 2] != gray)
			return false;
	}
	return true;
}

/* The palette as the file has it, which may be less than the header says. */
static int decode_bmp_palette(struct decode_bmp *bmp, struct bmp_header *header,
			      struct pipeline_error *ret_error)
{
	const uint8_t *palette = bmp->data + header->end;
	size_t size = (size_t)header->padding * header->colors;

	if (header->colors > 65536)
		return decode_bmp_bad(ret_error, "a number of colours,", header->colors);
	size = BASE_MIN(size, bmp->size - header->end);
	header->end += size;
	memset(bmp->color, 0, sizeof(bmp->color));
	if (decode_bmp_is_gray(palette, size, header)) {
		bool is_bits = header->colors <= 2;

		if (is_bits && bmp->kind != BMP_INDEXED)
			return decode_bmp_bad(ret_error, "run lengths of bits", 1);
		bmp->bits = is_bits ? 1 : 8;
		for (unsigned i = 0; i < BMP_COLORS; i++)
			memset(bmp->color[i], (int)(is_bits ? 255 * i : i), 3);
		return 0;
	}
	bmp->is_too_colorful = size / header->padding > BMP_COLORS;
	for (size_t i = 0; i < size / header->padding && i < BMP_COLORS; i++) {
		for (unsigned c = 0; c < 3; c++)
			bmp->color[i][c] = palette[i * header->padding + 2 - c];
	}
	return 0;
}

static int decode_bmp_pixels(struct decode_bmp *bmp, struct bmp_header *header,
			     struct pipeline_error *ret_error)
{
	int r;

	bmp->bits = header->bits;
	bmp->stride = ((uint64_t)bmp->width * header->bits + 31) >> 3 & ~UINT64_C(3);
	bmp->green_bits = 5;
	bmp->at[0] = 2;
	bmp->at[1] = 1;
	bmp->at[2] = 0;
	switch (header->bits) {
	case 1:
	case 4:
	case 8:
		bmp->kind = BMP_INDEXED;
		break;
	case 16:
		bmp->kind = BMP_PACKED;
		break;
	case 24:
	case 32:
		bmp->kind = BMP_BYTES;
		break;
	default:
		return decode_bmp_bad(ret_error, "a depth of bits,", header->bits);
	}
	r = decode_bmp_compression(bmp, header, ret_error);
	if (r == 0 && header->bits <= 8)
		r = decode_bmp_palette(bmp, header, ret_error);
	return r;
}

static int decode_bmp_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_bmp *bmp = state;
	struct bmp_header header = {0};
	uint64_t offset;
	int r;

	memset(bmp, 0, sizeof(*bmp));
	bmp->data = data;
	bmp->size = size;
	r = decode_bmp_header(bmp, &header, ret_error);
	if (r != 0)
		return r;
	offset = little_32(data + 10);
	if (header.colors == 0 && header.bits <= 8)
		header.colors = 1U << header.bits;
	if (offset == BMP_HEAD + header.size && header.bits <= 8)
		offset += (uint64_t)header.padding * header.colors;
	r = decode_bmp_pixels(bmp, &header, ret_error);
	r = r ? r : decode_check_size(bmp->height, bmp->width, ret_error);
	if (r == 0 && bmp->is_too_colorful)
		r = decode_bmp_bad(ret_error, "a number of colours,", header.colors);
	if (r != 0)
		return r;
	bmp->offset = offset ? offset : header.end;
	*ret_height = bmp->height;
	*ret_width = bmp->width;
	return 0;
}

/* ---- rows ---- */

static void decode_bmp_indexed(const struct decode_bmp *bmp, const uint8_t *from, uint8_t *to)
{
	unsigned bits = bmp->bits, mask = (1U << bits) - 1;

	for (uint32_t x = 0; x < bmp->width; x++, to += 4) {
		uint64_t bit = (uint64_t)x * bits;
		unsigned index = from[bit / 8] >> (8 - bits - bit % 8) & mask;
		const uint8_t *color = bmp->color[index];

		decode_put(to, color[0], color[1], color[2]);
	}
}

static void decode_bmp_packed(const struct decode_bmp *bmp, const uint8_t *from, uint8_t *to)
{
	unsigned green = (1U << bmp->green_bits) - 1;

	for (uint32_t x = 0; x < bmp->width; x++, from += 2, to += 4) {
		uint32_t pixel = little_16(from);

		decode_put(to, (uint8_t)((pixel >> (5 + bmp->green_bits) & 31) * 255 / 31),
			   (uint8_t)((pixel >> 5 & green) * 255 / green),
			   (uint8_t)((pixel & 31) * 255 / 31));
	}
}

static void decode_bmp_bytes(const struct decode_bmp *bmp, const uint8_t *from, uint8_t *to)
{
	const unsigned *at = bmp->at;

	for (uint32_t x = 0; x < bmp->width; x++, from += bmp->bits / 8, to += 4)
		decode_put(to, from[at[0]], from[at[1]], from[at[2]]);
}

static uint8_t *decode_bmp_row(const struct decode_bmp *bmp, const struct picture *to, uint64_t y)
{
	return picture_row(to, (uint32_t)(bmp->is_top_down ? y : bmp->height - 1 - y));
}

static int decode_bmp_rows(const struct decode_bmp *bmp, const struct picture *to,
			   struct pipeline_error *ret_error)
{
	uint64_t row = ((uint64_t)bmp->width * bmp->bits + 7) / 8;
	uint64_t all = (bmp->height - 1) * bmp->stride + row;

	if (bmp->stride < row)
		return decode_bmp_bad(ret_error, "grey of bits", bmp->bits);
	if (bmp->offset > bmp->size || all > bmp->size - bmp->offset)
		return decode_fail_truncated(ret_error);
	for (uint64_t y = 0; y < bmp->height; y++) {
		const uint8_t *from = bmp->data + bmp->offset + y * bmp->stride;

		if (bmp->kind == BMP_INDEXED)
			decode_bmp_indexed(bmp, from, decode_bmp_row(bmp, to, y));
		else if (bmp->kind == BMP_PACKED)
			decode_bmp_packed(bmp, from, decode_bmp_row(bmp, to, y));
		else
			decode_bmp_bytes(bmp, from, decode_bmp_row(bmp, to, y));
	}
	return 0;
}

/* ---- run lengths ---- */

struct bmp_runs {
	const struct decode_bmp *bmp;
	const struct picture *to;
	uint64_t at;          /* byte of the file; may be behind its end */
	uint64_t done, total; /* pixels */
	uint64_t x;           /* the column as the runs count it */
};

static void decode_bmp_emit(struct bmp_runs *runs, unsigned index)
{
	const struct decode_bmp *bmp = runs->bmp;
	const uint8_t *color = bmp->color[index];
	uint8_t *row = decode_bmp_row(bmp, runs->to, runs->done / bmp->width);

	decode_put(row + runs->done % bmp->width * 4, color[0], color[1], color[2]);
	runs->done++;
}

static int decode_bmp_take(struct bmp_runs *runs)
{
	return runs->at < runs->bmp->size ? runs->bmp->data[runs->at++] : -1;
}

static void decode_bmp_run(struct bmp_runs *runs, unsigned count, unsigned value)
{
	uint64_t width = runs->bmp->width;
	uint64_t room = runs->x < width ? width - runs->x : 0;

	count = (unsigned)BASE_MIN(count, room);
	for (unsigned i = 0; i < count && runs->done < runs->total; i++) {
		if (runs->bmp->kind == BMP_RLE4)
			decode_bmp_emit(runs, i % 2 == 0 ? value >> 4 : value & 15);
		else
			decode_bmp_emit(runs, value);
	}
	runs->x += count;
}

static bool decode_bmp_skip(struct bmp_runs *runs)
{
	int right = decode_bmp_take(runs), up = decode_bmp_take(runs);
	uint64_t count;

	if (right < 0 || up < 0)
		return false;
	count = (uint64_t)right + (uint64_t)up * runs->bmp->width;
	for (count = BASE_MIN(count, runs->total - runs->done); count > 0; count--)
		decode_bmp_emit(runs, 0);
	runs->x = runs->done % runs->bmp->width;
	return true;
}

/* Pixels told one by one, padded to a 16-bit word of the file. */
static bool decode_bmp_literal(struct bmp_runs *runs, unsigned count)
{
	unsigned pixels = (unsigned)BASE_MIN(count, runs->total - runs->done);

	for (unsigned i = 0; i < pixels; i++) {
		int value = decode_bmp_take(runs);

		if (value < 0)
			return false;
		if (runs->bmp->kind == BMP_RLE8) {
			decode_bmp_emit(runs, (unsigned)value);
			continue;
		}
		decode_bmp_emit(runs, (unsigned)value >> 4);
		if (++i < pixels)
			decode_bmp_emit(runs, (unsigned)value & 15);
	}
	runs->x += count;
	runs->at += runs->at % 2;
	return true;
}

/* One code. False: there is none, or it is the last. */
static bool decode_bmp_code(struct bmp_runs *runs)
{
	int count = decode_bmp_take(runs), value = decode_bmp_take(runs);

	if (count < 0 || value < 0)
		return false;
	if (count > 0) {
		decode_bmp_run(runs, (unsigned)count, (unsigned)value);
		return true;
	}
	switch (value) {
	case 0:
		while (runs->done % runs->bmp->width != 0)
			decode_bmp_emit(runs, 0);
		runs->x = 0;
		return true;
	case 1:
		return false;
	case 2:
		return decode_bmp_skip(runs);
	default:
		return decode_bmp_literal(runs, (unsigned)value);
	}
}

static int decode_bmp_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	const struct decode_bmp *bmp = state;
	struct bmp_runs runs = {.bmp = bmp, .to = ret, .at = bmp->offset};
	int r = decode_make(buffer, bmp->height, bmp->width, ret, ret_error);

	if (r != 0)
		return r;
	if (bmp->kind != BMP_RLE8 && bmp->kind != BMP_RLE4)
		return decode_bmp_rows(bmp, ret, ret_error);
	runs.total = (uint64_t)bmp->height * bmp->width;
	while (runs.done < runs.total && decode_bmp_code(&runs))
		continue;
	return runs.done < runs.total ? decode_fail_truncated(ret_error) : 0;
}

const struct decode_format decode_bmp = {
    .name = "BMP",
    .state_size = sizeof(struct decode_bmp),
    .probe = decode_bmp_probe,
    .open = decode_bmp_open,
    .whole = decode_bmp_whole,
};
