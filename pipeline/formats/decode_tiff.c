/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TIFF by libtiff: the first picture of the file, in strips or tiles, its samples together or in planes of
 * their own; grey and palettes of 1 to 8 bits, grey, RGB and CMYK of 8 and 16, YCbCr in JPEG.
 *
 * Pixels are Pillow's: of 16 bits the upper 8 are taken, but grey is cut off at 255; alpha is dropped, and
 * colours that were multiplied by it are divided by it; further samples are passed over. Unlike other
 * formats a TIFF is always turned as its orientation says (the tag, or XMP), for Pillow does that when
 * it reads it. What is refused by name here is either refused by Pillow, too, or is nothing that 8 bits can show: 32 bits
 * a sample, floating point, more bands than four with a meaning.
 *
 * Hostile files: libtiff sees the file by a read that ends at its last byte, never by a mapping, and writes
 * to rows and tiles that have the size it said, which is checked against what is taken out of them. All
 * tiles together may have no more pixels than two largest pictures, nor more numbers, of all pages. The compressions are a list: what nobody
 * uses for photographs is not tried. libtiff tells nobody of errors and warnings: a worker has no stderr.
 *
 * The only file that includes tiffio.h.
 */

#include <tiffio.h>
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/decode_turn.h"
#include "pipeline/formats/exif.h"
#include "pipeline/spec/op.h"

#define TIFF_COLORS 256
#define TIFF_MOST_SAMPLES 6

enum tiff_kind {
	TIFF_TABLE,      /* one sample, 8 bits at most: a number in the table of colours */
	TIFF_GREY16,     /* one of 16 */
	TIFF_RGB,        /* samples as they are */
	TIFF_MULTIPLIED, /* by alpha */
	TIFF_CMYK,
};

struct tiff_source {
	const uint8_t *data; /* borrowed */
	uint64_t size, at;
};

struct decode_tiff {
	TIFF *tiff; /* owned until closed */
	struct tiff_source source;
	uint32_t height, width; /* in the file */
	uint32_t tile_height, tile_width;
	unsigned orientation;
	enum tiff_kind kind;
	bool is_signed;
	uint16_t bits, samples, channels; /* channels: of the samples, those with a meaning */
	bool is_planar;
	uint8_t color[TIFF_COLORS][4];
	struct picture_buffer upright, row; /* row: or a tile */
	/* where pixels go while they are read, or numbers */
	const struct picture *to;
	const struct decode_numbers *numbers; /* NULL: pixels */
	bool are_labels;                      /* pixels of a mask */
	enum pipeline_dtype dtype;            /* of numbers */
	unsigned first, pages;                /* of numbers: the channel of the page's first one */
};

/* ---- the file ---- */

static tmsize_t decode_tiff_read(thandle_t handle, void *to, tmsize_t size)
{
	struct tiff_source *source = handle;
	uint64_t left = source->at < source->size ? source->size - source->at : 0;
	size_t count = (size_t)BASE_MIN((uint64_t)BASE_MAX(size, 0), left);

	memcpy(to, source->data + (source->size - left), count);
	source->at += count;
	return (tmsize_t)count;
}

static tmsize_t decode_tiff_write(thandle_t handle, void *from, tmsize_t size)
{
	(void)handle;
	(void)from;
	(void)size;
	return 0;
}

static toff_t decode_tiff_seek(thandle_t handle, toff_t at, int whence)
{
	struct tiff_source *source = handle;

	if (whence == SEEK_CUR)
		at += source->at;
	else if (whence == SEEK_END)
		at += source->size;
	source->at = at;
	return at;
}

static int decode_tiff_leave(thandle_t handle)
{
	(void)handle;
	return 0;
}

static toff_t decode_tiff_size(thandle_t handle)
{
	const struct tiff_source *source = handle;

	return source->size;
}

static bool decode_tiff_probe(const uint8_t *data, size_t size)
{
	static const char magic[][4] = {
	    {'I', 'I', '*', 0}, {'M', 'M', 0, '*'}, {'I', 'I', '+', 0}, {'M', 'M', 0, '+'}};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(magic); i++) {
		if (size >= 8 && memcmp(data, magic[i], 4) == 0)
			return true;
	}
	return false;
}

static void decode_tiff_close(void *state)
{
	struct decode_tiff *tiff = state;

	if (tiff->tiff)
		TIFFClose(tiff->tiff);
	tiff->tiff = NULL;
	picture_buffer_trim(&tiff->upright);
	picture_buffer_trim(&tiff->row);
}

static void decode_tiff_fini(void *state)
{
	struct decode_tiff *tiff = state;

	decode_tiff_close(tiff);
	picture_buffer_fini(&tiff->upright);
	picture_buffer_fini(&tiff->row);
}

/* ---- the head ---- */

static int decode_tiff_fail(struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
			   "TIFF: the file is damaged or cut off");
}

static int decode_tiff_check_compression(const struct decode_tiff *tiff,
					 struct pipeline_error *ret_error)
{
	static const uint16_t known[] = {
	    COMPRESSION_NONE,      COMPRESSION_CCITTRLE,      COMPRESSION_CCITTFAX3,
	    COMPRESSION_CCITTFAX4, COMPRESSION_LZW,           COMPRESSION_JPEG,
	    COMPRESSION_PACKBITS,  COMPRESSION_ADOBE_DEFLATE, COMPRESSION_DEFLATE,
	    COMPRESSION_LZMA,      COMPRESSION_ZSTD,
	};
	uint16_t compression = COMPRESSION_NONE;

	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_COMPRESSION, &compression);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(known); i++) {
		if (compression == known[i] && TIFFIsCODECConfigured(compression))
			return 0;
	}
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, compression,
			   "TIFF: compression %u is not supported", compression);
}

static int decode_tiff_refuse_form(const struct decode_tiff *tiff, unsigned photo,
				   struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
			   "TIFF: %u x %u bits of kind %u are not supported", tiff->samples,
			   tiff->bits, photo);
}

static void decode_tiff_grey_table(struct decode_tiff *tiff, bool is_inverted)
{
	unsigned most = (1U << tiff->bits) - 1;

	for (unsigned i = 0; i <= most; i++) {
		uint8_t grey = (uint8_t)((is_inverted ? most - i : i) * 255 / most);

		decode_put(tiff->color[i], grey, grey, grey);
	}
}

/* The first of the samples that no kind of picture has, and whether they mean something: libtiff's
 * EXTRASAMPLE_..., or 999, which one program writes for alpha. */
struct tiff_extra {
	uint16_t count, first;
	bool is_known; /* only the first has a meaning, if any has */
};

static struct tiff_extra decode_tiff_extra(const struct decode_tiff *tiff)
{
	struct tiff_extra extra = {.is_known = true};
	uint16_t *kinds = NULL;

	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_EXTRASAMPLES, &extra.count, &kinds);
	for (unsigned i = 0; i < extra.count; i++) {
		if (i > 0 && kinds[i] != EXTRASAMPLE_UNSPECIFIED)
			extra.is_known = false;
	}
	if (extra.count > 0)
		extra.first = kinds[0];
	return extra;
}

/* One sample a pixel with a meaning. */
static bool decode_tiff_is_single(struct decode_tiff *tiff, unsigned photo, uint16_t format,
				  const struct tiff_extra *extra)
{
	const bool is_palette = photo == PHOTOMETRIC_PALETTE;
	const bool is_alone = tiff->samples == 1 && extra->count == 0;

	tiff->channels = 1;
	if (tiff->bits == 16) {
		tiff->kind = TIFF_GREY16;
		tiff->is_signed = format == SAMPLEFORMAT_INT;
		return is_alone && (photo == PHOTOMETRIC_MINISBLACK ||
				    (photo == PHOTOMETRIC_MINISWHITE && !tiff->is_signed &&
				     !TIFFIsBigEndian(tiff->tiff)));
	}
	tiff->kind = TIFF_TABLE;
	if (format != SAMPLEFORMAT_UINT || tiff->bits > 8 || (tiff->bits & (tiff->bits - 1)))
		return false;
	if (!is_alone &&
	    (tiff->bits != 8 || tiff->samples != 2 || extra->count != 1 ||
	     extra->first == EXTRASAMPLE_ASSOCALPHA || photo == PHOTOMETRIC_MINISWHITE))
		return false;
	if (is_palette) {
		uint16_t *red, *green, *blue;

		if (!TIFFGetField(tiff->tiff, TIFFTAG_COLORMAP, &red, &green, &blue))
			return false;
		for (unsigned i = 0; i < 1U << tiff->bits; i++)
			decode_put(tiff->color[i], (uint8_t)(red[i] >> 8), (uint8_t)(green[i] >> 8),
				   (uint8_t)(blue[i] >> 8));
		return true;
	}
	decode_tiff_grey_table(tiff, photo == PHOTOMETRIC_MINISWHITE);
	return true;
}

/* Three samples a pixel, or four, and others. */
static bool decode_tiff_is_colored(struct decode_tiff *tiff, unsigned photo, uint16_t format,
				   const struct tiff_extra *extra)
{
	const bool is_cmyk = photo == PHOTOMETRIC_SEPARATED;
	const unsigned own = is_cmyk ? 4 : 3;
	const bool is_unnamed = !is_cmyk && extra->count == 0 && tiff->samples == 4;
	const unsigned most = tiff->bits == 8 ? TIFF_MOST_SAMPLES : 4;

	if (format != SAMPLEFORMAT_UINT || (tiff->bits != 8 && tiff->bits != 16) ||
	    tiff->samples > most || !extra->is_known ||
	    (tiff->samples != own + extra->count && !is_unnamed))
		return false;
	if (is_cmyk && extra->count > 0 && extra->first != EXTRASAMPLE_UNSPECIFIED)
		return false;
	tiff->kind = is_cmyk ? TIFF_CMYK : TIFF_RGB;
	tiff->channels = (uint16_t)own;
	if (!is_cmyk && extra->count > 0 && extra->first == EXTRASAMPLE_ASSOCALPHA) {
		tiff->kind = TIFF_MULTIPLIED;
		tiff->channels = 4;
	}
	return true;
}

/* By JPEG alone, whose decoder converts it. */
static bool decode_tiff_is_ycc(struct decode_tiff *tiff)
{
	uint16_t compression = COMPRESSION_NONE;

	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_COMPRESSION, &compression);
	tiff->kind = TIFF_RGB;
	tiff->channels = 3;
	return compression == COMPRESSION_JPEG && !tiff->is_planar && tiff->bits == 8 &&
	       tiff->samples == 3 &&
	       TIFFSetField(tiff->tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
}

/* Which samples stand for which colours? */
static int decode_tiff_understand(struct decode_tiff *tiff, struct pipeline_error *ret_error)
{
	uint16_t photo = PHOTOMETRIC_MINISWHITE, format = SAMPLEFORMAT_UINT, order = 1, planar = 1;
	const struct tiff_extra extra = decode_tiff_extra(tiff);
	bool is_known = false;

	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_BITSPERSAMPLE, &tiff->bits);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_SAMPLESPERPIXEL, &tiff->samples);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_SAMPLEFORMAT, &format);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_FILLORDER, &order);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_PLANARCONFIG, &planar);
	TIFFGetField(tiff->tiff, TIFFTAG_PHOTOMETRIC, &photo);
	tiff->is_planar = planar == PLANARCONFIG_SEPARATE && tiff->samples > 1;
	tiff->is_signed = false;
	if (photo == PHOTOMETRIC_MINISWHITE || photo == PHOTOMETRIC_MINISBLACK ||
	    photo == PHOTOMETRIC_PALETTE)
		is_known = decode_tiff_is_single(tiff, photo, format, &extra);
	else if (photo == PHOTOMETRIC_RGB || photo == PHOTOMETRIC_SEPARATED)
		is_known = decode_tiff_is_colored(tiff, photo, format, &extra);
	else if (photo == PHOTOMETRIC_YCBCR)
		is_known = decode_tiff_is_ycc(tiff);
	if (is_known && (order == FILLORDER_MSB2LSB || tiff->bits <= 8))
		return 0;
	return decode_tiff_refuse_form(tiff, photo, ret_error);
}

static void decode_tiff_orient(struct decode_tiff *tiff)
{
	uint16_t orientation;
	uint32_t size = 0;
	const void *xmp = NULL;

	tiff->orientation = EXIF_UPRIGHT;
	if (TIFFGetField(tiff->tiff, TIFFTAG_ORIENTATION, &orientation)) {
		if (orientation >= 1 && orientation <= 8)
			tiff->orientation = orientation;
	} else if (TIFFGetField(tiff->tiff, TIFFTAG_XMLPACKET, &size, &xmp)) {
		tiff->orientation = exif_of_xmp(xmp, size);
	}
}

/* count: numbers of a pixel that are read of them, all pages together; pixels count once. */
static int decode_tiff_check_tiles(struct decode_tiff *tiff, uint64_t count,
				   struct pipeline_error *ret_error)
{
	uint32_t height, width;
	uint64_t down, across;

	tiff->tile_height = tiff->tile_width = 0;
	if (!TIFFIsTiled(tiff->tiff))
		return 0;
	if (!TIFFGetField(tiff->tiff, TIFFTAG_TILELENGTH, &tiff->tile_height) ||
	    !TIFFGetField(tiff->tiff, TIFFTAG_TILEWIDTH, &tiff->tile_width))
		return decode_tiff_fail(ret_error);
	height = tiff->tile_height;
	width = tiff->tile_width;
	if (decode_check_size(height, width, ret_error) != 0)
		return PIPELINE_E_BAD;
	down = ((uint64_t)tiff->height + height - 1) / height * height;
	across = ((uint64_t)tiff->width + width - 1) / width * width;
	if (down > 2 * OP_MAX_PIXELS / across / count)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0,
				   "TIFF: tiles of %u x %u are too large for it", width, height);
	return 0;
}

/* Up to what the pixels mean. */
static int decode_tiff_begin(struct decode_tiff *tiff, const uint8_t *data, size_t size,
			     struct pipeline_error *ret_error)
{
	int r;

	decode_tiff_close(tiff);
	TIFFSetErrorHandler(NULL);
	TIFFSetWarningHandler(NULL);
	tiff->source = (struct tiff_source){.data = data, .size = size};
	tiff->height = tiff->width = 0;
	tiff->tiff =
	    TIFFClientOpen("picture", "rm", &tiff->source, decode_tiff_read, decode_tiff_write,
			   decode_tiff_seek, decode_tiff_leave, decode_tiff_size, NULL, NULL);
	if (!tiff->tiff || !TIFFGetField(tiff->tiff, TIFFTAG_IMAGELENGTH, &tiff->height) ||
	    !TIFFGetField(tiff->tiff, TIFFTAG_IMAGEWIDTH, &tiff->width))
		return decode_tiff_fail(ret_error);
	r = decode_check_size(tiff->height, tiff->width, ret_error);
	return r ? r : decode_tiff_check_compression(tiff, ret_error);
}

static int decode_tiff_open(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
			    uint32_t *ret_width, struct pipeline_error *ret_error)
{
	struct decode_tiff *tiff = state;
	int r = decode_tiff_begin(tiff, data, size, ret_error);

	r = r ? r : decode_tiff_understand(tiff, ret_error);
	r = r ? r : decode_tiff_check_tiles(tiff, 1, ret_error);
	if (r != 0)
		return r;
	decode_tiff_orient(tiff);
	*ret_height = decode_turn_exchanges(tiff->orientation) ? tiff->width : tiff->height;
	*ret_width = decode_turn_exchanges(tiff->orientation) ? tiff->height : tiff->width;
	return 0;
}

/* ---- samples ---- */

/* n numbers in a table. */
static void decode_tiff_look_up(const struct decode_tiff *tiff, const uint8_t *from, uint32_t n,
				uint8_t *to)
{
	const unsigned bits = tiff->bits;
	const size_t step = tiff->is_planar ? 1 : tiff->samples;

	for (uint32_t i = 0; i < n; i++, to += 4) {
		uint64_t at = (uint64_t)i * bits;
		unsigned number =
		    bits == 8 ? from[i * step]
			      : (unsigned)from[at / 8] >> (8 - bits - at % 8) & ((1U << bits) - 1);

		memcpy(to, tiff->color[number], 4);
	}
}

static void decode_tiff_cut_off(const struct decode_tiff *tiff, const uint8_t *from, uint32_t n,
				uint8_t *to)
{
	for (uint32_t i = 0; i < n; i++, to += 4) {
		uint16_t number;
		int grey;

		memcpy(&number, from + (size_t)2 * i, sizeof(number));
		grey = tiff->is_signed ? (int16_t)number : number;
		grey = BASE_MAX(BASE_MIN(grey, 255), 0);
		decode_put(to, (uint8_t)grey, (uint8_t)grey, (uint8_t)grey);
	}
}

/* Samples to the bytes of pixels, from channel first on. */
static void decode_tiff_spread(const struct decode_tiff *tiff, const uint8_t *from, uint32_t n,
			       unsigned first, uint8_t *to)
{
	const unsigned bytes = tiff->bits / 8, count = tiff->is_planar ? 1 : tiff->channels;
	const size_t step = (size_t)(tiff->is_planar ? 1 : tiff->samples) * bytes;

	from += bytes - 1; /* the upper byte: numbers are the machine's */
	for (uint32_t i = 0; i < n; i++, from += step, to += 4) {
		for (unsigned c = 0; c < count; c++)
			to[first + c] = from[c * bytes];
	}
}

/* Grey as it is, or a palette's indices. */
static void decode_tiff_put_labels(const struct decode_tiff *tiff, const uint8_t *from, uint32_t n,
				   uint8_t *to)
{
	for (uint32_t i = 0; i < n; i++, to += 4) {
		uint16_t label = from[i];

		if (tiff->bits == 16)
			memcpy(&label, from + (size_t)2 * i, sizeof(label));
		decode_put_label(to, label);
	}
}

/* n pixels of one plane, or of all, to row y and column x. */
static void decode_tiff_put(const struct decode_tiff *tiff, const uint8_t *from, uint32_t n,
			    unsigned plane, uint32_t y, uint32_t x)
{
	const unsigned count = tiff->is_planar ? 1 : tiff->samples;
	uint8_t *to;

	if (tiff->numbers) {
		decode_numbers_put(tiff->numbers, tiff->dtype, from, count, tiff->first + plane,
				   count, y, x, n);
		return;
	}
	to = picture_row(tiff->to, y) + (size_t)x * 4;
	if (tiff->are_labels) {
		decode_tiff_put_labels(tiff, from, n, to);
		return;
	}
	switch (tiff->kind) {
	case TIFF_TABLE:
		decode_tiff_look_up(tiff, from, n, to);
		break;
	case TIFF_GREY16:
		decode_tiff_cut_off(tiff, from, n, to);
		break;
	default:
		decode_tiff_spread(tiff, from, n, plane, to);
		break;
	}
}

/* ---- colours ---- */

static void decode_tiff_from_cmyk(uint8_t *pixel)
{
	const unsigned light = 255U - pixel[3];

	for (unsigned c = 0; c < 3; c++) {
		unsigned product = pixel[c] * light + 128;

		pixel[c] = (uint8_t)(light - (((product >> 8) + product) >> 8));
	}
}

static void decode_tiff_divide(uint8_t *pixel)
{
	const unsigned alpha = pixel[3];

	for (unsigned c = 0; c < 3 && alpha < 255; c++)
		pixel[c] = alpha ? (uint8_t)BASE_MIN(pixel[c] * 255U / alpha, 255U) : 0;
}

static void decode_tiff_finish(const struct decode_tiff *tiff, const struct picture *picture)
{
	if (tiff->kind != TIFF_CMYK && tiff->kind != TIFF_MULTIPLIED)
		return;
	for (uint32_t y = 0; y < picture->height; y++) {
		uint8_t *pixel = picture_row(picture, y);

		for (uint32_t x = 0; x < picture->width; x++, pixel += 4) {
			if (tiff->kind == TIFF_CMYK)
				decode_tiff_from_cmyk(pixel);
			else
				decode_tiff_divide(pixel);
		}
	}
}

/* ---- strips and tiles ---- */

/* Room for rows of libtiff's size, if what is taken of each is in it. 0, or PIPELINE_E_BAD with *ret_error. */
static int decode_tiff_room(struct decode_tiff *tiff, uint64_t width, uint64_t row, uint64_t all,
			    uint8_t **ret, struct pipeline_error *ret_error)
{
	const uint64_t samples = tiff->is_planar ? 1 : tiff->samples;
	uint8_t *room;

	if (row < (width * samples * tiff->bits + 7) / 8 || all < row)
		return decode_tiff_fail(ret_error);
	room = picture_bytes(&tiff->row, all);
	if (!room)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0,
				   "no room for %llu bytes of a tile", (unsigned long long)all);
	memset(room, 0, all);
	*ret = room;
	return 0;
}

static int decode_tiff_strips(struct decode_tiff *tiff, unsigned plane,
			      struct pipeline_error *ret_error)
{
	const uint64_t size = TIFFScanlineSize64(tiff->tiff);
	uint8_t *row;
	int r = decode_tiff_room(tiff, tiff->width, size, size, &row, ret_error);

	if (r != 0)
		return r;
	for (uint32_t y = 0; y < tiff->height; y++) {
		if (TIFFReadScanline(tiff->tiff, row, y, (uint16_t)plane) < 0)
			return decode_tiff_fail(ret_error);
		decode_tiff_put(tiff, row, tiff->width, plane, y, 0);
	}
	return 0;
}

static int decode_tiff_tiles(struct decode_tiff *tiff, unsigned plane,
			     struct pipeline_error *ret_error)
{
	const uint64_t size = TIFFTileSize64(tiff->tiff), stride = TIFFTileRowSize64(tiff->tiff);
	const uint32_t height = tiff->tile_height, width = tiff->tile_width;
	uint8_t *tile;
	int r = size / height < stride
		    ? decode_tiff_fail(ret_error)
		    : decode_tiff_room(tiff, width, stride, size, &tile, ret_error);

	if (r != 0)
		return r;
	for (uint32_t top = 0; top < tiff->height; top += BASE_MIN(height, tiff->height - top)) {
		uint32_t rows = BASE_MIN(height, tiff->height - top), left = 0;

		while (left < tiff->width) {
			uint32_t n = BASE_MIN(width, tiff->width - left);

			if (TIFFReadTile(tiff->tiff, tile, left, top, 0, (uint16_t)plane) < 0)
				return decode_tiff_fail(ret_error);
			for (uint32_t y = 0; y < rows; y++)
				decode_tiff_put(tiff, tile + y * stride, n, plane, top + y, left);
			left += n;
		}
	}
	return 0;
}

static int decode_tiff_plane(struct decode_tiff *tiff, unsigned plane,
			     struct pipeline_error *ret_error)
{
	return TIFFIsTiled(tiff->tiff) ? decode_tiff_tiles(tiff, plane, ret_error)
				       : decode_tiff_strips(tiff, plane, ret_error);
}

static int decode_tiff_pixels(struct decode_tiff *tiff, const struct picture *to,
			      struct pipeline_error *ret_error)
{
	const unsigned planes = tiff->is_planar ? tiff->channels : 1;
	int r = 0;

	tiff->to = to;
	for (unsigned plane = 0; r == 0 && plane < planes; plane++)
		r = decode_tiff_plane(tiff, plane, ret_error);
	if (r == 0)
		decode_tiff_finish(tiff, to);
	return r;
}

static int decode_tiff_whole(void *state, struct picture_buffer *buffer, struct picture *ret,
			     struct pipeline_error *ret_error)
{
	struct decode_tiff *tiff = state;
	const bool exchanges = decode_turn_exchanges(tiff->orientation);
	struct picture upright;
	int r = decode_make(buffer, exchanges ? tiff->width : tiff->height,
			    exchanges ? tiff->height : tiff->width, ret, ret_error);

	if (r != 0 || tiff->orientation == EXIF_UPRIGHT)
		return r != 0 ? r : decode_tiff_pixels(tiff, ret, ret_error);
	r = decode_make(&tiff->upright, tiff->height, tiff->width, &upright, ret_error);
	r = r ? r : decode_tiff_pixels(tiff, &upright, ret_error);
	if (r == 0)
		decode_turn_picture(tiff->orientation, &upright, ret);
	return r;
}

/* Of 8 and 16 bits, one sample a pixel. */
static int decode_tiff_labels(void *state, struct picture_buffer *buffer, struct picture *ret,
			      struct pipeline_error *ret_error)
{
	struct decode_tiff *tiff = state;
	int r;

	if (tiff->samples != 1 || tiff->is_signed || (tiff->bits != 8 && tiff->bits != 16))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "a mask in TIFF has 8 or 16 bits of grey");
	if (tiff->orientation != EXIF_UPRIGHT) /* the picture beside may be turned, or not */
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "a mask in TIFF that its tag turns");
	r = decode_make(buffer, tiff->height, tiff->width, ret, ret_error);
	if (r != 0)
		return r;
	tiff->to = ret;
	tiff->are_labels = true;
	r = decode_tiff_plane(tiff, 0, ret_error);
	tiff->are_labels = false;
	return r;
}

/* ---- numbers ---- */

static bool decode_tiff_type(unsigned bits, unsigned format, enum pipeline_dtype *ret)
{
	static const struct {
		unsigned bits, format;
		enum pipeline_dtype dtype;
	} types[] = {
	    {8, SAMPLEFORMAT_UINT, PIPELINE_U8},     {8, SAMPLEFORMAT_INT, PIPELINE_I8},
	    {16, SAMPLEFORMAT_UINT, PIPELINE_U16},   {16, SAMPLEFORMAT_INT, PIPELINE_I16},
	    {32, SAMPLEFORMAT_UINT, PIPELINE_U32},   {32, SAMPLEFORMAT_INT, PIPELINE_I32},
	    {16, SAMPLEFORMAT_IEEEFP, PIPELINE_F16}, {32, SAMPLEFORMAT_IEEEFP, PIPELINE_F32},
	    {64, SAMPLEFORMAT_IEEEFP, PIPELINE_F64},
	};

	for (unsigned i = 0; i < BASE_ARRAY_LEN(types); i++) {
		if (types[i].bits != bits ||
		    types[i].format != (format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : format))
			continue;
		*ret = types[i].dtype;
		return true;
	}
	return false;
}

/* What a page's numbers are. YCbCr is of JPEG alone, whose decoder makes RGB of it. */
static int decode_tiff_numbers_page(struct decode_tiff *tiff, struct pipeline_error *ret_error)
{
	uint16_t photo = PHOTOMETRIC_MINISBLACK, format = SAMPLEFORMAT_UINT, planar = 1;

	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_BITSPERSAMPLE, &tiff->bits);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_SAMPLESPERPIXEL, &tiff->samples);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_SAMPLEFORMAT, &format);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_PLANARCONFIG, &planar);
	TIFFGetField(tiff->tiff, TIFFTAG_PHOTOMETRIC, &photo);
	tiff->is_planar = planar == PLANARCONFIG_SEPARATE && tiff->samples > 1;
	if (!decode_tiff_type(tiff->bits, format, &tiff->dtype) || tiff->samples < 1 ||
	    tiff->samples > DECODE_NUMBERS_MOST ||
	    (photo == PHOTOMETRIC_YCBCR && !decode_tiff_is_ycc(tiff)))
		return decode_tiff_refuse_form(tiff, photo, ret_error);
	if ((uint64_t)tiff->height * tiff->width * tiff->samples > OP_MAX_PIXELS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "TIFF: %u x %u x %u numbers are too many", tiff->width,
				   tiff->height, tiff->samples);
	return decode_tiff_check_tiles(tiff, tiff->samples, ret_error);
}

/* Is the page that was read as the one before it, in tiles of the same size if in any, and no smaller copy or mask of one? */
static bool decode_tiff_goes_on(const struct decode_tiff *tiff)
{
	uint32_t height = 0, width = 0, kind = 0, tile_height = 0, tile_width = 0;
	uint16_t bits = 1, samples = 1, format = SAMPLEFORMAT_UINT;
	enum pipeline_dtype dtype;

	TIFFGetField(tiff->tiff, TIFFTAG_IMAGELENGTH, &height);
	TIFFGetField(tiff->tiff, TIFFTAG_IMAGEWIDTH, &width);
	if (TIFFIsTiled(tiff->tiff)) {
		TIFFGetField(tiff->tiff, TIFFTAG_TILELENGTH, &tile_height);
		TIFFGetField(tiff->tiff, TIFFTAG_TILEWIDTH, &tile_width);
	}
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_SUBFILETYPE, &kind);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_BITSPERSAMPLE, &bits);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
	TIFFGetFieldDefaulted(tiff->tiff, TIFFTAG_SAMPLEFORMAT, &format);
	return (kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) == 0 && height == tiff->height &&
	       width == tiff->width && tile_height == tiff->tile_height &&
	       tile_width == tiff->tile_width && samples == 1 &&
	       decode_tiff_type(bits, format, &dtype) && dtype == tiff->dtype;
}

/* Pages of one channel, all alike, are as many channels: so tifffile writes [channels, height, width], and volumes are. */
static int decode_tiff_numbers_open(void *state, const uint8_t *data, size_t size,
				    struct decode_numbers_head *ret,
				    struct pipeline_error *ret_error)
{
	struct decode_tiff *tiff = state;
	int r = decode_tiff_begin(tiff, data, size, ret_error);

	r = r ? r : decode_tiff_numbers_page(tiff, ret_error);
	if (r != 0)
		return r;
	tiff->pages = 1;
	while (tiff->samples == 1 && tiff->pages < DECODE_NUMBERS_MOST &&
	       TIFFReadDirectory(tiff->tiff) && decode_tiff_goes_on(tiff))
		tiff->pages++;
	if (tiff->samples == 1 && !TIFFSetDirectory(tiff->tiff, 0))
		return decode_tiff_fail(ret_error);
	if (decode_tiff_check_tiles(tiff, (uint64_t)tiff->samples * tiff->pages, ret_error) != 0)
		return PIPELINE_E_BAD;
	*ret = (struct decode_numbers_head){tiff->height, tiff->width, tiff->samples * tiff->pages,
					    tiff->pages};
	return 0;
}

static int decode_tiff_numbers(void *state, const struct decode_numbers *to,
			       struct pipeline_error *ret_error)
{
	struct decode_tiff *tiff = state;
	int r = 0;

	if (tiff->pages > 1 && !TIFFSetDirectory(tiff->tiff, 0))
		return decode_tiff_fail(ret_error);
	tiff->numbers = to;
	for (tiff->first = 0; r == 0 && tiff->first < tiff->pages; tiff->first++) {
		if (tiff->first > 0 &&
		    (!TIFFReadDirectory(tiff->tiff) || !decode_tiff_goes_on(tiff)))
			r = decode_tiff_fail(ret_error);
		r = r ? r : decode_tiff_check_compression(tiff, ret_error);
		r = r ? r : decode_tiff_numbers_page(tiff, ret_error);
		for (unsigned plane = 0; r == 0 && plane < (tiff->is_planar ? tiff->samples : 1);
		     plane++)
			if (decode_numbers_want(to, tiff->first + plane,
						tiff->is_planar ? 1 : tiff->samples))
				r = decode_tiff_plane(tiff, plane, ret_error);
	}
	tiff->numbers = NULL;
	return r;
}

const struct decode_format decode_tiff = {
    .name = "TIFF",
    .state_size = sizeof(struct decode_tiff),
    .probe = decode_tiff_probe,
    .open = decode_tiff_open,
    .whole = decode_tiff_whole,
    .labels = decode_tiff_labels,
    .numbers_open = decode_tiff_numbers_open,
    .numbers = decode_tiff_numbers,
    .close = decode_tiff_close,
    .fini = decode_tiff_fini,
};
