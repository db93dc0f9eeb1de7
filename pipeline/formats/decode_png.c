/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PNG by libspng: all depths, palettes, interlaced or not; of an animated one the first frame.
 *
 * Pixels are Pillow's: of 16 bits the upper 8 are taken, but grey without alpha is cut off at 255; alpha,
 * transparency and colour profiles are passed over; a colour that the palette lacks is black.
 *
 * Which damaged files are pictures is libspng's to say: it refuses wrong checksums of critical chunks, image
 * data that end early and more than 1,000 texts, and passes over damaged ancillary chunks. Behind the image data
 * only their own checksum counts: the end chunk may be missing.
 *
 * Hostile files: libspng reads the file's bytes where they are. It allocates rows of the width that the head says,
 * which is checked before, and texts and profiles up to a limit for all of them together.
 *
 * The only file that includes spng.h.
 */

#include <spng.h>
#include "pipeline/formats/decode_format.h"

#define PNG_MOST_ASIDE (64 << 20) /* bytes of all that is no picture, inflated */

struct decode_png {
	spng_ctx *spng; /* owned until closed */
	struct spng_ihdr head;
	struct picture_buffer raw; /* rows as the file has them, for numbers */
};

static bool decode_png_probe(const uint8_t *data, size_t size)
{
	return size >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0;
}

static void decode_png_close(void *state)
{
	struct decode_png *png = state;

	spng_ctx_free(png->spng);
	png->spng = NULL;
	picture_buffer_trim(&png->raw);
}

static void decode_png_fini(void *state)
{
	struct decode_png *png = state;

	decode_png_close(png);
	picture_buffer_fini(&png->raw);
}

static int decode_png_fail(int why, struct pipeline_error *ret_error)
{
	if (why == SPNG_IO_EOF || why == SPNG_EIDAT_TOO_SHORT)
		return decode_fail_truncated(ret_error);
	return decode_fail(ret_error,
			   why == SPNG_EMEM ? PIPELINE_FAIL_MEMORY : PIPELINE_FAIL_DECODE, why,
			   "PNG: %s", spng_strerror(why));
}

/* Up to the first image data. */
static int decode_png_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			   uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_png *png = state;
	struct spng_plte palette;
	int r;

	decode_png_close(png);
	png->spng = spng_ctx_new(SPNG_CTX_IGNORE_ADLER32); /* checksums of chunks tell as much */
	if (!png->spng || spng_set_chunk_limits(png->spng, PNG_MOST_ASIDE, PNG_MOST_ASIDE) != 0)
		return decode_png_fail(SPNG_EMEM, ret_error);
	r = spng_set_png_buffer(png->spng, data, size);
	r = r ? r : spng_get_ihdr(png->spng, &png->head);
	if (r != 0)
		return decode_png_fail(r, ret_error);
	r = decode_check_size(png->head.height, png->head.width, ret_error);
	if (r != 0)
		return r;
	r = spng_get_plte(png->spng, &palette); /* for what stands before it */
	if (r != 0 && r != SPNG_ECHUNKAVAIL)
		return decode_png_fail(r, ret_error);
	*ret_height = png->head.height;
	*ret_width = png->head.width;
	return 0;
}

/* 16 bits of grey, the machine's, in the first half of each row: to pixels, from the last one on. */
static void decode_png_cut_off(const struct picture *picture)
{
	for (uint32_t y = 0; y < picture->height; y++) {
		uint8_t *row = picture_row(picture, y);

		for (size_t x = picture->width; x-- > 0;) {
			uint16_t number;
			uint8_t grey;

			memcpy(&number, row + 2 * x, sizeof(number));
			grey = (uint8_t)BASE_MIN(number, 255);
			decode_put(row + 4 * x, grey, grey, grey);
		}
	}
}

static int decode_png_rows(struct decode_png *png, enum spng_format format,
			   const struct picture *to)
{
	struct spng_row_info row;
	int r = spng_decode_image(png->spng, NULL, 0, format, SPNG_DECODE_PROGRESSIVE);

	while (r == 0) {
		r = spng_get_row_info(png->spng, &row);
		r = r ? r : spng_decode_row(png->spng, picture_row(to, row.row_num), to->stride);
	}
	if (r != SPNG_EOI)
		return r;
	return spng_decode_chunks(png->spng) == SPNG_ECHUNK_CRC ? SPNG_ECHUNK_CRC : 0;
}

static int decode_png_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			    struct pipeline_error *ret_error)
{
	struct decode_png *png = state;
	const bool is_grey16 =
	    png->head.color_type == SPNG_COLOR_TYPE_GRAYSCALE && png->head.bit_depth == 16;
	int r = decode_make(buffer, png->head.height, png->head.width, ret, ret_error);

	if (r != 0)
		return r;
	r = decode_png_rows(png, is_grey16 ? SPNG_FMT_PNG : SPNG_FMT_RGBA8, ret);
	if (r != 0)
		return decode_png_fail(r, ret_error);
	if (is_grey16)
		decode_png_cut_off(ret);
	decode_png_close(png);
	return 0;
}

/* What a row of the file's own format says, in its first bytes: to labels, from the last one on. As Pillow
 * reads it grey of 2 and 4 bits is stretched to 8, of 1 bit is 0 or 1, and indices are as they are. */
static void decode_png_labels_row(const struct spng_ihdr *head, uint8_t *row)
{
	static const uint8_t stretch[5] = {[1] = 1, [2] = 85, [4] = 17};
	const unsigned bits = head->bit_depth;
	const bool is_grey = head->color_type == SPNG_COLOR_TYPE_GRAYSCALE;
	const unsigned times = is_grey && bits < 8 ? stretch[bits] : 1;

	for (size_t x = head->width; x-- > 0 && bits == 8;)
		decode_put_label(row + 4 * x, row[x]);
	for (size_t x = head->width; x-- > 0 && bits == 16;) {
		uint16_t deep;

		memcpy(&deep, row + 2 * x, sizeof(deep));
		decode_put_label(row + 4 * x, deep);
	}
	for (size_t x = head->width; x-- > 0 && bits < 8;) {
		const unsigned shift = 8 - bits - x * bits % 8;

		decode_put_label(row + 4 * x,
				 (row[x * bits / 8] >> shift & ((1u << bits) - 1)) * times);
	}
}

/* Of an interlaced picture libspng adds the bits of each pass to what stands in the row. */
static void decode_png_clear(const struct spng_ihdr *head, const struct picture *picture)
{
	if (!head->interlace_method || head->bit_depth >= 8)
		return;
	for (uint32_t y = 0; y < head->height; y++)
		memset(picture_row(picture, y), 0, ((size_t)head->width * head->bit_depth + 7) / 8);
}

static int decode_png_labels(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	struct decode_png *png = state;
	int r;

	if (png->head.color_type != SPNG_COLOR_TYPE_GRAYSCALE &&
	    png->head.color_type != SPNG_COLOR_TYPE_INDEXED)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "mask of colours: their labels are for \"colors\"");
	r = decode_make(buffer, png->head.height, png->head.width, ret, ret_error);
	if (r != 0)
		return r;
	decode_png_clear(&png->head, ret);
	r = decode_png_rows(png, SPNG_FMT_PNG, ret);
	if (r != 0)
		return decode_png_fail(r, ret_error);
	for (uint32_t y = 0; y < ret->height; y++)
		decode_png_labels_row(&png->head, picture_row(ret, y));
	decode_png_close(png);
	return 0;
}

/* ---- numbers: as the file has them, a palette's indices too ---- */

static unsigned decode_png_samples(const struct spng_ihdr *head)
{
	static const unsigned samples[] = {
	    [SPNG_COLOR_TYPE_GRAYSCALE] = 1,       [SPNG_COLOR_TYPE_TRUECOLOR] = 3,
	    [SPNG_COLOR_TYPE_INDEXED] = 1,         [SPNG_COLOR_TYPE_GRAYSCALE_ALPHA] = 2,
	    [SPNG_COLOR_TYPE_TRUECOLOR_ALPHA] = 4,
	};

	return samples[head->color_type];
}

static int decode_png_numbers_open(void *state, const uint8_t *data, size_t size,
				   struct decode_numbers_head *ret,
				   struct pipeline_error *ret_error)
{
	struct decode_png *png = state;
	int r = decode_png_open(png, data, size, &ret->height, &ret->width, ret_error);

	if (r == 0)
		ret->channels = decode_png_samples(&png->head);
	return r;
}

/* Bits to bytes, from the last one on. */
static void decode_png_unpack(const struct spng_ihdr *head, uint8_t *row)
{
	const unsigned bits = head->bit_depth;

	for (size_t x = head->width; x-- > 0;)
		row[x] = row[x * bits / 8] >> (8 - bits - x * bits % 8) & ((1u << bits) - 1);
}

static int decode_png_numbers(void *state, const struct decode_numbers *to,
			      struct pipeline_error *ret_error)
{
	struct decode_png *png = state;
	const unsigned samples = decode_png_samples(&png->head), bits = png->head.bit_depth;
	const uint64_t bytes = (uint64_t)png->head.width * samples * (bits == 16 ? 2 : 1);
	struct picture raw;
	int r = picture_make(&png->raw, png->head.height, (bytes + 3) / 4, &raw);

	if (r != 0)
		return decode_fail(ret_error, (enum pipeline_fail)r, 0, "no room for the numbers");
	decode_png_clear(&png->head, &raw);
	r = decode_png_rows(png, SPNG_FMT_PNG, &raw);
	if (r != 0)
		return decode_png_fail(r, ret_error);
	for (uint32_t y = 0; y < raw.height; y++) {
		if (bits < 8)
			decode_png_unpack(&png->head, picture_row(&raw, y));
		decode_numbers_put(to, bits == 16 ? PIPELINE_U16 : PIPELINE_U8,
				   picture_row(&raw, y), samples, 0, samples, y, 0,
				   png->head.width);
	}
	decode_png_close(png);
	return 0;
}

const struct decode_format decode_png = {
    .name = "PNG",
    .state_size = sizeof(struct decode_png),
    .probe = decode_png_probe,
    .open = decode_png_open,
    .whole = decode_png_whole,
    .labels = decode_png_labels,
    .numbers_open = decode_png_numbers_open,
    .numbers = decode_png_numbers,
    .close = decode_png_close,
    .fini = decode_png_fini,
};
