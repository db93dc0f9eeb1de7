/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG: all depths, palettes, interlaced or not; of an animated one the first frame.
 *
 * Pixels and outcomes are Pillow's, which reads chunks itself, so this does, too, over zlib: libpng
 * takes and refuses other damaged files. Up to the first image data a chunk's name, length and
 * checksum must be right, and what its kind demands (decode_png_kinds); the data's checksums are
 * not looked at; behind the last row chunks are still judged until one cannot be told. A stream of
 * data that ends with a row before the last leaves the rest black; one that ends elsewhere is an
 * error. Transparency and colour profiles are passed over.
 *
 * Hostile files: a chunk's length is checked against the file before its bytes are looked at; rows
 * are as long as the head says, whose product is checked before they are allocated; compressed
 * texts are inflated to a mebibyte at most, into nothing.
 */

#include <stdlib.h>
#include <string.h>
#include "pipeline/decode_format.h"
#include "pipeline/decode_inflate.h"
#include "pipeline/decode_png.h"

#define PNG_PIECE 65536 /* bytes that are inflated at a time; the outcome may depend on it */
#define PNG_MOST_TEXT (1 << 20)   /* inflated */
#define PNG_MOST_TEXTS (64 << 20) /* of all texts together */
#define PNG_COLORS 256
#define PNG_HAS_CHANNELS 2 /* bits of the head's kind of colour */

struct png_chunk {
	char name[5];
	size_t at, size; /* the data; they may be longer than the file */
};

struct decode_png {
	const uint8_t *data;
	size_t size, at;
	uint32_t width, height;
	struct decode_png_kind kind; /* depth 0: none that is known */
	bool is_interlaced;
	uint8_t color[PNG_COLORS][3];
	bool has_palette, is_too_many_colors, is_one_transparent;
	/* animations */
	bool has_frame, is_animated;
	uint32_t frames;  /* 0: no animation */
	int64_t sequence; /* -1: none yet */
	struct picture_box frame;
	uint64_t texts;         /* bytes */
	struct png_chunk first; /* of the image data */
	/* rows; owned until the picture is done or closed */
	struct decode_inflate *inflate;
	uint8_t *row[2];
};

static bool decode_png_probe(const uint8_t *data, size_t size)
{
	return size >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static int decode_png_bad(struct pipeline_error *ret_error, const char *what, const char *name)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "PNG: %s (chunk %.4s)", what, name);
}

/* ---- chunks ---- */

static void decode_png_skip(struct decode_png *png, size_t count)
{
	png->at += BASE_MIN(count, png->size - png->at);
}

/* The next chunk's head. False: the file ends, or that is no name. */
static bool decode_png_next(struct decode_png *png, struct png_chunk *ret)
{
	const uint8_t *at = png->data + png->at;

	if (png->size - png->at < 8)
		return false;
	for (unsigned i = 0; i < 4; i++) {
		uint8_t c = at[4 + i], lower = c | 0x20;

		if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	memcpy(ret->name, at + 4, 4);
	ret->name[4] = '\0';
	ret->size = decode_be32(at);
	png->at += 8;
	ret->at = png->at;
	return true;
}

static bool decode_png_is(const struct png_chunk *chunk, const char *name)
{
	return memcmp(chunk->name, name, 4) == 0;
}

static bool decode_png_head(struct decode_png *png, const uint8_t *data, size_t size)
{
	static const struct {
		uint8_t depth, color, channels;
	} kinds[] = {
	    {1, 0, 1}, {2, 0, 1},  {4, 0, 1},  {8, 0, 1}, {16, 0, 1},
	    {8, 2, 3}, {16, 2, 3}, {1, 3, 1},  {2, 3, 1}, {4, 3, 1},
	    {8, 3, 1}, {8, 4, 2},  {16, 4, 2}, {8, 6, 4}, {16, 6, 4},
	};

	(void)size;
	png->width = decode_be32(data);
	png->height = decode_be32(data + 4);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(kinds); i++) {
		if (kinds[i].depth != data[8] || kinds[i].color != data[9])
			continue;
		png->kind.depth = data[8];
		png->kind.channels = kinds[i].channels;
		png->kind.color = data[9] == 3 ? (const uint8_t(*)[3])png->color : NULL;
	}
	png->is_interlaced |= data[12] != 0;
	return data[11] == 0;
}

static bool decode_png_palette(struct decode_png *png, const uint8_t *data, size_t size)
{
	if (!png->kind.color || png->first.size || png->first.at)
		return true;
	png->has_palette = true;
	png->is_too_many_colors = size / 3 > PNG_COLORS;
	memset(png->color, 0, sizeof(png->color));
	memcpy(png->color, data, BASE_MIN(size / 3, PNG_COLORS) * 3);
	return true;
}

/* Only looked at for what makes Pillow fail. */
static bool decode_png_transparency(struct decode_png *png, const uint8_t *data, size_t size)
{
	size_t zeros = 0, others = 0;

	if (!png->kind.color)
		return png->kind.channels % 2 == 0 || size >= (png->kind.channels == 3 ? 6 : 2);
	for (size_t i = 0; i < size; i++) {
		zeros += data[i] == 0;
		others += data[i] != 0 && data[i] != 255;
	}
	png->is_one_transparent = zeros == 1 && others == 0;
	return true;
}

static bool decode_png_count_text(struct decode_png *png, int64_t size)
{
	if (size < 0)
		return false;
	png->texts += (uint64_t)size;
	return png->texts <= PNG_MOST_TEXTS;
}

static bool decode_png_text(struct decode_png *png, const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size);

	if (!end || end == data)
		return true;
	return decode_png_count_text(png, data + size - end - 1);
}

static bool decode_png_packed_text(struct decode_png *png, const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size), *text = end ? end + 2 : NULL;

	if (!text || text > data + size)
		return true;
	if (end[1] != 0)
		return false;
	return decode_png_count_text(
	    png, decode_inflate_length(text, (size_t)(data + size - text), PNG_MOST_TEXT));
}

static bool decode_png_international_text(struct decode_png *png, const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size, *at = memchr(data, 0, size), *flags;

	if (!at || end - at < 3)
		return true;
	flags = at + 1;
	at += 3;
	for (unsigned i = 0; i < 2; i++) { /* language and translated keyword */
		at = memchr(at, 0, (size_t)(end - at));
		if (!at++)
			return true;
	}
	if (flags[0] == 0)
		return decode_png_count_text(png, end - at);
	if (flags[1] != 0)
		return true;
	return decode_png_count_text(png,
				     decode_inflate_length(at, (size_t)(end - at), PNG_MOST_TEXT));
}

static bool decode_png_profile(struct decode_png *png, const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
	size_t method = end ? (size_t)(end - data) + 1 : 0;

	(void)png;
	if (method >= size || data[method] != 0)
		return false;
	return decode_inflate_length(data + method + 1, size - method - 1, PNG_MOST_TEXT) >= 0;
}

static bool decode_png_animation(struct decode_png *png, const uint8_t *data, size_t size)
{
	uint32_t frames = decode_be32(data);

	(void)size;
	if (png->frames > 0)
		png->frames = 0;
	else if (frames <= 0x80000000)
		png->frames = frames;
	return true;
}

static bool decode_png_in_sequence(struct decode_png *png, uint32_t sequence)
{
	if (png->sequence < 0 ? sequence != 0 : png->sequence + 1 != sequence)
		return false;
	png->sequence = sequence;
	return true;
}

static bool decode_png_frame(struct decode_png *png, const uint8_t *data, size_t size)
{
	const struct picture_box frame = {decode_be32(data + 16), decode_be32(data + 12),
					  decode_be32(data + 8), decode_be32(data + 4)};

	(void)size;
	if (!decode_png_in_sequence(png, decode_be32(data)))
		return false;
	if ((uint64_t)frame.left + frame.width > png->width ||
	    (uint64_t)frame.top + frame.height > png->height)
		return false;
	png->frame = frame;
	png->has_frame = true;
	return true;
}

static bool decode_png_frame_data(struct decode_png *png, const uint8_t *data, size_t size)
{
	(void)size;
	return png->sequence >= 0 && decode_png_in_sequence(png, decode_be32(data));
}

static bool decode_png_as_it_is(struct decode_png *png, const uint8_t *data, size_t size)
{
	(void)png;
	(void)data;
	(void)size;
	return true;
}

static const struct png_kind {
	const char *name;
	size_t least; /* bytes */
	bool (*read)(struct decode_png *png, const uint8_t *data, size_t size);
} decode_png_kinds[] = {
    {"IHDR", 13, decode_png_head},        {"PLTE", 0, decode_png_palette},
    {"tRNS", 0, decode_png_transparency}, {"gAMA", 4, decode_png_as_it_is},
    {"cHRM", 32, decode_png_as_it_is},    {"sRGB", 1, decode_png_as_it_is},
    {"pHYs", 9, decode_png_as_it_is},     {"tEXt", 0, decode_png_text},
    {"zTXt", 0, decode_png_packed_text},  {"iTXt", 0, decode_png_international_text},
    {"iCCP", 0, decode_png_profile},      {"acTL", 8, decode_png_animation},
    {"fcTL", 26, decode_png_frame},       {"fdAT", 4, decode_png_frame_data},
};

/* Judges a chunk's data and goes behind them; not the checksum. */
static int decode_png_read(struct decode_png *png, const struct png_chunk *chunk,
			   struct pipeline_error *ret_error)
{
	const struct png_kind *kind = NULL;

	if (chunk->size > png->size - chunk->at)
		return decode_fail_truncated(ret_error);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(decode_png_kinds) && !kind; i++) {
		if (decode_png_is(chunk, decode_png_kinds[i].name))
			kind = &decode_png_kinds[i];
	}
	if (kind &&
	    (chunk->size < kind->least || !kind->read(png, png->data + chunk->at, chunk->size)))
		return decode_png_bad(ret_error, "not as it must be", chunk->name);
	png->at = chunk->at + chunk->size;
	return 0;
}

static int decode_png_check_sum(struct decode_png *png, const struct png_chunk *chunk,
				struct pipeline_error *ret_error)
{
	const uint8_t *sum = png->data + png->at;

	if (png->size - png->at < 4)
		return decode_fail_truncated(ret_error);
	if (decode_inflate_crc(png->data + chunk->at - 4, chunk->size + 4) != decode_be32(sum))
		return decode_png_bad(ret_error, "wrong checksum", chunk->name);
	png->at += 4;
	return 0;
}

/* ---- the head ---- */

/* Image data of a frame begin with its number in the sequence. */
static int decode_png_enter(struct decode_png *png, struct png_chunk *chunk,
			    struct pipeline_error *ret_error)
{
	if (!decode_png_is(chunk, "fdAT"))
		return 0;
	if (chunk->size < 4 || png->size - chunk->at < 4 ||
	    !decode_png_frame_data(png, png->data + chunk->at, 4))
		return decode_png_bad(ret_error, "not as it must be", chunk->name);
	chunk->at += 4;
	chunk->size -= 4;
	png->at = chunk->at;
	return 0;
}

/* Up to the first image data. */
static int decode_png_begin(struct decode_png *png, struct pipeline_error *ret_error)
{
	struct png_chunk *chunk = &png->first;
	int r = 0;

	while (r == 0) {
		struct png_chunk next;

		if (!decode_png_next(png, &next))
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "PNG: no image data before the end");
		if (decode_png_is(&next, "IEND")) {
			r = decode_check_size(png->height, png->width, ret_error);
			return r ? r : decode_png_bad(ret_error, "no image data", next.name);
		}
		if (decode_png_is(&next, "IDAT") || decode_png_is(&next, "fdAT")) {
			*chunk = next;
			return decode_png_enter(png, chunk, ret_error);
		}
		r = decode_png_read(png, &next, ret_error);
		if (r == 0)
			r = decode_png_check_sum(png, &next, ret_error);
	}
	return r;
}

static int decode_png_check(const struct decode_png *png, struct pipeline_error *ret_error)
{
	const struct picture_box *frame = &png->frame;

	if (png->kind.depth == 0)
		return decode_png_bad(ret_error, "no kind of pixels that is known", "IHDR");
	if (png->is_too_many_colors)
		return decode_png_bad(ret_error, "too many colours", "PLTE");
	if (png->kind.color && png->is_one_transparent && !png->has_palette)
		return decode_png_bad(ret_error, "no palette", "tRNS");
	if (png->has_frame && (frame->width == 0 || frame->height == 0))
		return decode_png_bad(ret_error, "an empty frame", "fcTL");
	return decode_check_size(png->height, png->width, ret_error);
}

static void decode_png_close(void *state)
{
	struct decode_png *png = state;

	decode_inflate_free(png->inflate);
	png->inflate = NULL;
	for (unsigned i = 0; i < 2; i++) {
		free(png->row[i]);
		png->row[i] = NULL;
	}
}

static int decode_png_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_png *png = state;
	int r;

	decode_png_close(png);
	memset(png, 0, sizeof(*png));
	png->data = data;
	png->size = size;
	png->at = 8;
	png->sequence = -1;
	r = decode_png_begin(png, ret_error);
	if (r == 0)
		r = decode_png_check(png, ret_error);
	if (r != 0)
		return r;
	png->is_animated = png->frames > 1 || (png->frames == 1 && !png->has_frame);
	if (!png->has_frame)
		png->frame = (struct picture_box){0, 0, png->height, png->width};
	*ret_height = png->height;
	*ret_width = png->width;
	return 0;
}

/* ---- rows ---- */

struct png_rows {
	struct decode_png *png;
	const struct picture *to;
	size_t left;   /* bytes of the chunk under way */
	unsigned pass; /* 0 - 6; of pictures that are not interlaced 7 */
	uint32_t y;
	size_t size,
	    have; /* bytes of a row without its filter; of it with the filter there already */
};

static const struct {
	uint8_t left, across, top, down;
} decode_png_passes[] = {{0, 8, 0, 8}, {4, 8, 0, 8}, {0, 4, 4, 8}, {2, 4, 0, 4},
			 {0, 2, 2, 4}, {1, 2, 0, 2}, {0, 1, 1, 2}, {0, 1, 0, 1}};

/* Image data to inflate. */
static int decode_png_feed(struct png_rows *rows, struct pipeline_error *ret_error)
{
	struct decode_png *png = rows->png;
	struct png_chunk chunk;
	size_t count;

	while (rows->left == 0) {
		int r;

		decode_png_skip(png, 4);
		if (!decode_png_next(png, &chunk) ||
		    !(decode_png_is(&chunk, "IDAT") || decode_png_is(&chunk, "DDAT") ||
		      decode_png_is(&chunk, "fdAT")))
			return decode_fail_truncated(ret_error);
		r = decode_png_enter(png, &chunk, ret_error);
		if (r != 0)
			return r;
		rows->left = chunk.size;
	}
	count = BASE_MIN(rows->left, PNG_PIECE);
	rows->left -= count;
	count = BASE_MIN(count, png->size - png->at);
	if (count == 0)
		return decode_fail_truncated(ret_error);
	decode_inflate_give(png->inflate, png->data + png->at, count);
	png->at += count;
	return 0;
}

static uint32_t decode_png_row_pixels(const struct png_rows *rows)
{
	uint32_t across = decode_png_passes[rows->pass].across;
	uint32_t left = decode_png_passes[rows->pass].left;

	return (uint32_t)(((uint64_t)rows->png->frame.width + across - 1 - left) / across);
}

static void decode_png_enter_pass(struct png_rows *rows)
{
	const struct decode_png *png = rows->png;

	rows->y = decode_png_passes[rows->pass].top;
	rows->size = ((size_t)decode_png_row_pixels(rows) * decode_png_bits(&png->kind) + 7) / 8;
}

/* To the next row that has pixels. False: there is none. */
static bool decode_png_advance(struct png_rows *rows)
{
	struct decode_png *png = rows->png;
	uint8_t *row = png->row[0];
	unsigned pass = rows->pass;

	rows->have = 0;
	rows->y += decode_png_passes[pass].down;
	while (rows->y >= png->frame.height || rows->size == 0) {
		if (rows->pass >= 6)
			return false;
		rows->pass++;
		decode_png_enter_pass(rows);
	}
	png->row[0] = png->row[1];
	png->row[1] = row;
	if (rows->pass != pass)
		memset(row, 0, rows->size + 1);
	return true;
}

static void decode_png_put_row(const struct png_rows *rows)
{
	const struct decode_png *png = rows->png;
	uint32_t top = png->is_interlaced ? 0 : png->frame.top;
	uint32_t left = png->is_interlaced ? 0 : png->frame.left;
	uint8_t *to = picture_row(rows->to, top + rows->y) +
		      ((size_t)left + decode_png_passes[rows->pass].left) * 4;

	decode_png_spread(&png->kind, png->row[0] + 1, decode_png_row_pixels(rows),
			  decode_png_passes[rows->pass].across, to);
}

/* Inflates all of a piece, row by row. 0: more is needed; 1: that was the last row. */
static int decode_png_piece(struct png_rows *rows, bool *ret_is_done,
			    struct pipeline_error *ret_error)
{
	struct decode_png *png = rows->png;

	while (!decode_inflate_is_empty(png->inflate)) {
		size_t count, step = BASE_MAX(decode_png_bits(&png->kind) / 8, 1U);
		bool is_end;
		int r = decode_inflate_take(png->inflate, png->row[0] + rows->have,
					    rows->size + 1 - rows->have, &count, &is_end);

		if (r != 0)
			return decode_fail(ret_error, (enum pipeline_fail)r, 0,
					   "PNG: the image data are damaged");
		rows->have += count;
		if (rows->have < rows->size + 1)
			break;
		if (!decode_png_unfilter(png->row[0][0], png->row[0] + 1, png->row[1] + 1,
					 rows->size, step))
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "PNG: filter %u is not known", png->row[0][0]);
		decode_png_put_row(rows);
		*ret_is_done = !decode_png_advance(rows) || is_end;
		if (*ret_is_done)
			break;
	}
	return 0;
}

/* Where no row will come: as Pillow's new pictures. */
static void decode_png_blank(const struct decode_png *png, const struct picture *to, uint32_t top)
{
	const uint8_t none[3] = {0}, *color = png->kind.color ? png->color[0] : none;

	for (uint32_t y = top; y < to->height; y++) {
		for (uint32_t x = 0; x < to->width; x++)
			decode_put(picture_row(to, y) + (size_t)x * 4, color[0], color[1],
				   color[2]);
	}
}

static int decode_png_rows(struct decode_png *png, const struct picture *to,
			   struct pipeline_error *ret_error)
{
	struct png_rows rows = {.png = png, .to = to, .pass = png->is_interlaced ? 0 : 7};
	bool is_done = false, is_plain = !png->has_frame && !png->is_interlaced;
	int r = 0;

	rows.left = png->first.size;
	decode_png_enter_pass(&rows);
	for (unsigned i = 0; i < 2; i++)
		png->row[i] =
		    calloc(1, ((size_t)png->frame.width * decode_png_bits(&png->kind) + 7) / 8 + 1);
	if (!png->row[0] || !png->row[1] || decode_inflate_new(&png->inflate) != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	if (!is_plain)
		decode_png_blank(png, to, 0);
	while (r == 0 && !is_done) {
		r = decode_png_feed(&rows, ret_error);
		if (r == 0)
			r = decode_png_piece(&rows, &is_done, ret_error);
	}
	if (r == 0 && is_plain)
		decode_png_blank(png, to, rows.y);
	if (r == 0)
		decode_png_skip(png, rows.left);
	return r;
}

/* The chunks behind the image data. */
static int decode_png_end(struct decode_png *png, struct pipeline_error *ret_error)
{
	struct png_chunk chunk;
	int r = 0;

	for (;;) {
		decode_png_skip(png, 4);
		if (!decode_png_next(png, &chunk) || decode_png_is(&chunk, "IEND") ||
		    (decode_png_is(&chunk, "fcTL") && png->is_animated))
			return 0;
		r = decode_png_read(png, &chunk, ret_error);
		if (r != 0)
			return r;
	}
}

static int decode_png_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_png *png = state;
	int r = decode_make(buffer, png->height, png->width, ret, ret_error);

	if (r == 0)
		r = decode_png_rows(png, ret, ret_error);
	if (r == 0)
		r = decode_png_end(png, ret_error);
	decode_png_close(png);
	return r;
}

const struct decode_format decode_png = {
    .name = "PNG",
    .state_size = sizeof(struct decode_png),
    .probe = decode_png_probe,
    .open = decode_png_open,
    .whole = decode_png_whole,
    .close = decode_png_close,
    .fini = decode_png_close,
};
