/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first frame of a GIF.
 *
 * Pixels and outcomes are Pillow's: the frame stands on a canvas of the screen's size (grown to hold
 * it) that is filled with the transparent colour if there is one, else with colour 0; transparency
 * itself is dropped. A palette that is the greys in order counts as none. Colours that the palette
 * lacks are black. A grey local palette does not hide a global one, which is an oddity of Pillow.
 *
 * Codes are read from whole blocks only, and those from GIF_PIECE bytes of the file at a time, for
 * an end code that comes before the last pixel is passed over unless the file's last piece has been
 * taken; Pillow reads so, and whether a damaged file has an outcome depends on it.
 *
 * Hostile files: a code is looked up only below the next free one, links point to smaller codes, so
 * that a chain ends within the table; pixels are counted against the frame, and the frame lies
 * within the canvas.
 */

#include <string.h>
#include "base/little.h"
#include "pipeline/decode_format.h"
#include "pipeline/op.h"

#define GIF_PIECE 65536
#define GIF_BITS 12
#define GIF_TABLE (1 << GIF_BITS)
#define GIF_STRING (GIF_TABLE + 1) /* pixels that a code can stand for */
#define GIF_COLORS 256

struct gif_palette {
	const uint8_t *color; /* 3 bytes each; NULL: none */
	unsigned count;
};

struct decode_gif {
	const uint8_t *data;
	size_t size, at; /* at: the next byte of the head, then the first of the frame's codes */
	uint32_t width, height;
	struct picture_box frame;
	struct gif_palette global, local, used;
	bool is_interlaced, is_too_large;
	int transparent; /* -1: none */
	unsigned bits;   /* of a code at the beginning, less one */
};

static bool decode_gif_probe(const uint8_t *data, size_t size)
{
	return size >= 6 && (memcmp(data, "GIF87a", 6) == 0 || memcmp(data, "GIF89a", 6) == 0);
}

/* ---- the head ---- */

/* NULL: the file ends before. */
static const uint8_t *decode_gif_take(struct decode_gif *gif, size_t count)
{
	const uint8_t *at = gif->data + gif->at;

	if (count > gif->size - gif->at)
		return NULL;
	gif->at += count;
	return at;
}

/* A block's bytes, of which the last may be missing; false: it is empty, or there is none. */
static bool decode_gif_block(struct decode_gif *gif, const uint8_t **ret, size_t *ret_size)
{
	const uint8_t *size = decode_gif_take(gif, 1);

	if (!size || *size == 0)
		return false;
	*ret_size = BASE_MIN(*size, gif->size - gif->at);
	*ret = decode_gif_take(gif, *ret_size);
	return *ret_size > 0;
}

static void decode_gif_skip_blocks(struct decode_gif *gif)
{
	const uint8_t *block;
	size_t size;

	while (decode_gif_block(gif, &block, &size))
		continue;
}

/* The palette of flags, if they name one; one of greys in order is as none. */
static bool decode_gif_palette(struct decode_gif *gif, unsigned flags, struct gif_palette *ret)
{
	unsigned count = 2U << (flags & 7);

	if (!(flags & 128))
		return true;
	ret->color = decode_gif_take(gif, (size_t)3 * count);
	ret->count = count;
	if (!ret->color)
		return false;
	for (unsigned i = 0; i < 3 * count; i++) {
		if (ret->color[i] != i / 3)
			return true;
	}
	ret->color = NULL;
	return true;
}

static bool decode_gif_extension(struct decode_gif *gif)
{
	const uint8_t *label = decode_gif_take(gif, 1), *block;
	size_t size;

	if (!label)
		return false;
	if (!decode_gif_block(gif, &block, &size)) {
		if (*label != 254)
			decode_gif_skip_blocks(gif);
		return true;
	}
	if (*label == 249) {
		if (size < 3 || (block[0] & 1 && size < 4))
			return false;
		if (block[0] & 1)
			gif->transparent = block[3];
	}
	if (*label == 255 && size >= 11 && memcmp(block, "NETSCAPE2.0", 11) == 0)
		decode_gif_block(gif, &block, &size); /* Pillow reads one more, even an empty one */
	decode_gif_skip_blocks(gif);
	return true;
}

static bool decode_gif_frame(struct decode_gif *gif)
{
	const uint8_t *head = decode_gif_take(gif, 9), *bits;

	if (!head)
		return false;
	gif->frame.left = little_16(head);
	gif->frame.top = little_16(head + 2);
	gif->frame.width = little_16(head + 4);
	gif->frame.height = little_16(head + 6);
	gif->width = BASE_MAX(gif->width, gif->frame.left + gif->frame.width);
	gif->height = BASE_MAX(gif->height, gif->frame.top + gif->frame.height);
	gif->is_interlaced = head[8] & 64;
	gif->is_too_large = (uint64_t)gif->width * gif->height > OP_MAX_PIXELS;
	gif->used = gif->global;
	if (!decode_gif_palette(gif, head[8], &gif->local))
		return false;
	if (gif->local.color)
		gif->used = gif->local;
	bits = decode_gif_take(gif, 1);
	if (bits)
		gif->bits = *bits;
	return bits != NULL;
}

/* Up to the frame's codes. */
static bool decode_gif_head(struct decode_gif *gif)
{
	const uint8_t *screen = decode_gif_take(gif, 13), *next;

	if (!screen)
		return false;
	gif->width = little_16(screen + 6);
	gif->height = little_16(screen + 8);
	if (!decode_gif_palette(gif, screen[10], &gif->global))
		return false;
	while ((next = decode_gif_take(gif, 1)) && *next != ';') {
		if (*next == ',')
			return decode_gif_frame(gif);
		if (*next == '!' && !decode_gif_extension(gif))
			return false;
	}
	return false;
}

static int decode_gif_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_gif *gif = state;
	int r;

	memset(gif, 0, sizeof(*gif));
	gif->data = data;
	gif->size = size;
	gif->transparent = -1;
	if (!decode_gif_head(gif) && !gif->is_too_large)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "GIF: no picture before the end");
	r = decode_check_size(gif->height, gif->width, ret_error);
	if (r != 0)
		return r;
	if (gif->frame.width == 0 || gif->frame.height == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "GIF: an empty frame");
	if (gif->bits > GIF_BITS)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "GIF: codes of %u bits",
				   gif->bits);
	*ret_height = gif->height;
	*ret_width = gif->width;
	return 0;
}

/* ---- codes ---- */

struct gif_reader {
	const struct decode_gif *gif;
	const struct picture *to;
	size_t at, have; /* the next byte; how far the file was read */
	unsigned block;  /* bytes left of the block */
	uint32_t bits;   /* read and not used yet, the next one lowest */
	unsigned n_bits;
	/* codes */
	unsigned clear, next, code_bits, last_code;
	bool is_first; /* the next code is the first behind a clear code */
	uint8_t last;  /* the first pixel of the last string */
	uint16_t link[GIF_TABLE];
	uint8_t pixel[GIF_TABLE];
	uint8_t string[GIF_STRING]; /* from its end */
	/* where the next pixel goes */
	uint8_t color[GIF_COLORS][4];
	uint32_t x, y;
	unsigned pass, step;
};

#define GIF_TRUNCATED (-1) /* in place of a code */

/* Reads on in the file, if there is more. */
static bool decode_gif_read(struct gif_reader *reader)
{
	size_t left = reader->gif->size - reader->have;

	reader->have += BASE_MIN(left, GIF_PIECE);
	return left > 0;
}

/* The next code, or GIF_TRUNCATED. */
static int decode_gif_code(struct gif_reader *reader)
{
	const uint8_t *data = reader->gif->data;
	int code;

	while (reader->n_bits < reader->code_bits) {
		if (reader->block > 0) {
			reader->bits |= (uint32_t)data[reader->at++] << reader->n_bits;
			reader->n_bits += 8;
			reader->block--;
			continue;
		}
		while (reader->at == reader->have ||
		       reader->have - reader->at < (size_t)data[reader->at] + 1) {
			if (!decode_gif_read(reader))
				return GIF_TRUNCATED;
		}
		reader->block = data[reader->at++];
	}
	code = (int)(reader->bits & ((1U << reader->code_bits) - 1));
	reader->bits >>= reader->code_bits;
	reader->n_bits -= reader->code_bits;
	return code;
}

static void decode_gif_clear(struct gif_reader *reader)
{
	reader->next = reader->clear + 2;
	reader->code_bits = reader->gif->bits + 1;
	reader->is_first = true;
}

static void decode_gif_learn(struct gif_reader *reader, unsigned code)
{
	if (reader->next < GIF_TABLE) {
		reader->pixel[reader->next] = reader->last;
		reader->link[reader->next] = (uint16_t)reader->last_code;
		if (reader->next == (1U << reader->code_bits) - 1 && reader->code_bits < GIF_BITS)
			reader->code_bits++;
		reader->next++;
	}
	reader->last_code = code;
}

/* The pixels that a code stands for, at the end of string; their number, 0: a code that cannot be. */
static size_t decode_gif_string(struct gif_reader *reader, unsigned code)
{
	uint8_t *at = reader->string + GIF_STRING;
	unsigned c = code;

	if (reader->is_first) {
		if (code > reader->clear)
			return 0;
		reader->is_first = false;
		reader->last = (uint8_t)code;
		reader->last_code = code;
		at[-1] = reader->last;
		return 1;
	}
	if (c > reader->next)
		return 0;
	if (c == reader->next) {
		*--at = reader->last;
		c = reader->last_code;
	}
	while (c >= reader->clear) {
		if (at == reader->string + 1 || c >= GIF_TABLE)
			return 0;
		*--at = reader->pixel[c];
		c = reader->link[c];
	}
	*--at = reader->last = (uint8_t)c;
	decode_gif_learn(reader, code);
	return (size_t)(reader->string + GIF_STRING - at);
}

/* ---- pixels ---- */

/* To the next row of the frame; false: there is none. */
static bool decode_gif_next_row(struct gif_reader *reader)
{
	static const struct {
		unsigned first, step;
	} passes[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};

	reader->x = 0;
	reader->y += reader->step;
	while (reader->y >= reader->gif->frame.height) {
		if (!reader->gif->is_interlaced || ++reader->pass == BASE_ARRAY_LEN(passes))
			return false;
		reader->y = passes[reader->pass].first;
		reader->step = passes[reader->pass].step;
	}
	return true;
}

/* False behind the frame's last pixel. */
static bool decode_gif_emit(struct gif_reader *reader, const uint8_t *string, size_t count)
{
	const struct picture_box *frame = &reader->gif->frame;

	while (count > 0) {
		uint32_t n = (uint32_t)BASE_MIN(count, frame->width - reader->x);
		uint8_t *to = picture_row(reader->to, frame->top + reader->y) +
			      ((size_t)frame->left + reader->x) * 4;

		for (uint32_t i = 0; i < n; i++)
			memcpy(to + (size_t)i * 4, reader->color[string[i]], 4);
		string += n;
		count -= n;
		reader->x += n;
		if (reader->x == frame->width && !decode_gif_next_row(reader))
			return false;
	}
	return true;
}

static void decode_gif_begin(struct gif_reader *reader)
{
	const struct decode_gif *gif = reader->gif;
	const struct gif_palette *used = &gif->used;
	const uint8_t *ground = reader->color[BASE_MAX(gif->transparent, 0)];
	bool covers = gif->frame.width == gif->width && gif->frame.height == gif->height;

	reader->at = reader->have = gif->at;
	reader->clear = 1U << gif->bits;
	reader->step = gif->is_interlaced ? 8 : 1;
	decode_gif_clear(reader);
	for (unsigned i = 0; i < GIF_COLORS; i++) {
		if (!used->color)
			decode_put(reader->color[i], (uint8_t)i, (uint8_t)i, (uint8_t)i);
		else if (i < used->count)
			memcpy(reader->color[i], used->color + (size_t)3 * i, 3);
	}
	for (uint32_t y = 0; y < gif->height && !covers; y++) {
		for (uint32_t x = 0; x < gif->width; x++)
			memcpy(picture_row(reader->to, y) + (size_t)x * 4, ground, 4);
	}
}

static int decode_gif_run(struct gif_reader *reader, struct pipeline_error *ret_error)
{
	for (;;) {
		int code = decode_gif_code(reader);
		size_t count;

		if (code == GIF_TRUNCATED)
			return decode_fail_truncated(ret_error);
		if ((unsigned)code == reader->clear) {
			if (!reader->is_first)
				decode_gif_clear(reader);
			continue;
		}
		if ((unsigned)code == reader->clear + 1) {
			if (!decode_gif_read(reader))
				return decode_fail_truncated(ret_error);
			continue;
		}
		count = decode_gif_string(reader, (unsigned)code);
		if (count == 0)
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
					   "GIF: a code that cannot be");
		if (!decode_gif_emit(reader, reader->string + GIF_STRING - count, count))
			return 0;
	}
}

static int decode_gif_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	const struct decode_gif *gif = state;
	struct gif_reader reader;
	int r = decode_make(buffer, gif->height, gif->width, ret, ret_error);

	if (r != 0)
		return r;
	memset(&reader, 0, sizeof(reader));
	reader.gif = gif;
	reader.to = ret;
	decode_gif_begin(&reader);
	return decode_gif_run(&reader, ret_error);
}

static void decode_gif_close(void *state)
{
	(void)state;
}

const struct decode_format decode_gif = {
    .name = "GIF",
    .state_size = sizeof(struct decode_gif),
    .probe = decode_gif_probe,
    .open = decode_gif_open,
    .whole = decode_gif_whole,
    .close = decode_gif_close,
    .fini = decode_gif_close,
};
