/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JPEG by libjpeg-turbo, with Pillow's pixels and Pillow's outcomes.
 *
 * Pixels: the slow integer DCT, fancy upsampling, grey repeated, CMYK and YCCK taken as Adobe's
 * (inverted) and converted as Pillow's convert("RGB") does. EXIF orientation is not looked at, just
 * as torchvision's ImageFolder does not.
 *
 * Outcomes: libjpeg's warnings (damage that it decodes around) are no errors; a file that ends
 * before its end marker is one. The whole picture is read to the end marker for that. decode_part
 * stops at the last row it needs, so it looks for the end marker itself: behind a picture's only
 * scan come entropy-coded bytes and restart markers, then the end marker. Anything else there is
 * left to the whole decode, so the outcome never depends on which part was asked for.
 *
 * Parts: libjpeg-turbo can start at a column and skip rows. It knows nothing of the pixels left and
 * right of the columns asked for, which fancy upsampling looks at, so a margin is decoded and
 * thrown away. Entropy-coded data in front of the part are still decoded; only their pixels are not
 * made.
 *
 * Hostile files: sizes are checked in 64 bits before any buffer is made; the coefficients that a
 * progressive file needs are bounded by DECODE_MEMORY, its scans by DECODE_SCANS (a few bytes a
 * scan can each cost a pass over the whole picture). libjpeg leaves by longjmp: functions that call
 * setjmp hold nothing that must be freed, and read no local they changed after it. Nothing here
 * opens a file: libjpeg-turbo's memory manager has no backing store.
 *
 * The only file that includes jpeglib.h.
 */

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jpeglib.h>
#include <jerror.h>
#include "pipeline/decode.h"
#include "pipeline/op.h"

#ifndef JCS_EXTENSIONS
#error "OneAccess needs libjpeg-turbo's jpeglib.h (Debian: libjpeg62-turbo-dev)"
#endif

#define DECODE_SCANS 100
#define DECODE_MEMORY (1L << 30) /* bytes of libjpeg's own arrays */
#define DECODE_MARGIN 4          /* pixels; fancy upsampling looks at one chroma sample beside */
#define DECODE_EOI 0xd9
#define DECODE_TRUNCATED_TEXT "the file ends before the picture does"

struct decode {
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr manager;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	jmp_buf escape;
	bool is_made;
	const uint8_t *data;
	size_t size;
	struct pipeline_error *ret_error; /* of the call under way */
};

int decode_fail(struct pipeline_error *ret_error, enum pipeline_fail stage, int code,
		const char *fmt, ...)
{
	va_list args;

	ret_error->stage = stage;
	ret_error->code = code;
	va_start(args, fmt);
	vsnprintf(ret_error->text, sizeof(ret_error->text), fmt, args);
	va_end(args);
	return PIPELINE_E_BAD;
}

/* ---- what libjpeg calls ---- */

static void decode_on_error(j_common_ptr common)
{
	struct decode *decode = common->client_data;
	char text[JMSG_LENGTH_MAX];
	int code = common->err->msg_code;
	enum pipeline_fail stage = PIPELINE_FAIL_DECODE;

	if (code == JERR_OUT_OF_MEMORY || code == JERR_NO_BACKING_STORE)
		stage = PIPELINE_FAIL_MEMORY;
	else if (code == JERR_IMAGE_TOO_BIG || code == JERR_WIDTH_OVERFLOW)
		stage = PIPELINE_FAIL_REFUSED;
	common->err->format_message(common, text);
	decode_fail(decode->ret_error, stage, code, "%.47s", text);
	longjmp(decode->escape, 1);
}

static void decode_on_message(j_common_ptr common)
{
	(void)common;
}

static void decode_on_warning(j_common_ptr common, int level)
{
	if (level < 0)
		common->err->num_warnings++;
}

static void decode_on_source(j_decompress_ptr jpeg)
{
	(void)jpeg;
}

static _Noreturn void decode_truncated(struct decode *decode)
{
	decode_fail(decode->ret_error, PIPELINE_FAIL_DECODE, JWRN_JPEG_EOF, DECODE_TRUNCATED_TEXT);
	longjmp(decode->escape, 1);
}

static boolean decode_on_empty(j_decompress_ptr jpeg)
{
	decode_truncated(jpeg->client_data);
}

static void decode_on_skip(j_decompress_ptr jpeg, long bytes)
{
	if (bytes <= 0)
		return;
	if ((size_t)bytes > jpeg->src->bytes_in_buffer)
		decode_truncated(jpeg->client_data);
	jpeg->src->next_input_byte += bytes;
	jpeg->src->bytes_in_buffer -= (size_t)bytes;
}

static void decode_on_progress(j_common_ptr common)
{
	const struct jpeg_decompress_struct *jpeg = (j_decompress_ptr)common;
	struct decode *decode = common->client_data;

	if (jpeg->input_scan_number <= DECODE_SCANS)
		return;
	decode_fail(decode->ret_error, PIPELINE_FAIL_REFUSED, DECODE_SCANS,
		    "a JPEG of more than %d scans", DECODE_SCANS);
	longjmp(decode->escape, 1);
}

/* ---- the handle ---- */

static void decode_unmake(struct decode *decode)
{
	if (decode->is_made)
		jpeg_destroy_decompress(&decode->jpeg);
	decode->is_made = false;
}

/* A new handle for each picture: one used again still has the tables of the picture before, and a
 * damaged picture without tables of its own would be decoded with those. May longjmp. */
static void decode_make(struct decode *decode)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	decode_unmake(decode);
	jpeg->err = jpeg_std_error(&decode->manager);
	decode->manager.error_exit = decode_on_error;
	decode->manager.output_message = decode_on_message;
	decode->manager.emit_message = decode_on_warning;
	jpeg->client_data = decode;
	jpeg_create_decompress(jpeg);
	decode->is_made = true;
	decode->source.init_source = decode_on_source;
	decode->source.fill_input_buffer = decode_on_empty;
	decode->source.skip_input_data = decode_on_skip;
	decode->source.resync_to_restart = jpeg_resync_to_restart;
	decode->source.term_source = decode_on_source;
	decode->source.next_input_byte = decode->data;
	decode->source.bytes_in_buffer = decode->size;
	jpeg->src = &decode->source;
	decode->progress.progress_monitor = decode_on_progress;
	jpeg->progress = &decode->progress;
	jpeg->mem->max_memory_to_use = DECODE_MEMORY;
}

int decode_new(struct decode **ret)
{
	struct decode *decode = calloc(1, sizeof(*decode));

	if (!decode)
		return -ENOMEM;
	*ret = decode;
	return 0;
}

void decode_close(struct decode *decode)
{
	decode_unmake(decode);
}

void decode_free(struct decode *decode)
{
	if (!decode)
		return;
	decode_unmake(decode);
	free(decode);
}

/* ---- the head ---- */

/* What else the bytes may be; NULL for a JPEG. */
static const char *decode_other(const uint8_t *data, size_t size)
{
	static const struct {
		unsigned size;
		const char *magic, *text;
	} others[] = {
	    {4, "\x89PNG", "a PNG picture, not JPEG"},
	    {4, "GIF8", "a GIF picture, not JPEG"},
	    {4, "RIFF", "a WebP picture, not JPEG"},
	    {2, "BM", "a BMP picture, not JPEG"},
	    {4, "II*", "a TIFF picture, not JPEG"},
	    {4, "MM\0*", "a TIFF picture, not JPEG"},
	    {4, "\0\0\0\x0c", "a JPEG 2000 picture, not JPEG"},
	};

	if (size == 0)
		return "the file is empty";
	for (unsigned i = 0; i < BASE_ARRAY_LEN(others); i++) {
		if (size >= others[i].size && memcmp(data, others[i].magic, others[i].size) == 0)
			return others[i].text;
	}
	return size >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0 ? NULL : "not a JPEG picture";
}

/* Chooses what comes out: RGB with a fourth byte, or CMYK that decode_from_cmyk turns into it. */
static int decode_set_up(struct decode *decode)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	if ((uint64_t)jpeg->image_width * jpeg->image_height > OP_MAX_PIXELS)
		return decode_fail(decode->ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%u x %u pixels are more than %llu", jpeg->image_width,
				   jpeg->image_height, (unsigned long long)OP_MAX_PIXELS);
	if (jpeg->num_components != 1 && jpeg->num_components != 3 && jpeg->num_components != 4)
		return decode_fail(decode->ret_error, PIPELINE_FAIL_DECODE, 0,
				   "a JPEG of %d components", jpeg->num_components);
	jpeg->out_color_space = jpeg->num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
	jpeg->dct_method = JDCT_ISLOW;
	jpeg->do_fancy_upsampling = TRUE;
	return 0;
}

/* May be called again for the same data, to read the picture again. */
static int decode_start(struct decode *decode)
{
	if (setjmp(decode->escape)) {
		decode_unmake(decode);
		return PIPELINE_E_BAD;
	}
	decode_make(decode);
	jpeg_read_header(&decode->jpeg, TRUE);
	return decode_set_up(decode);
}

int decode_open(struct decode *decode, const void *data, size_t size, uint32_t *ret_height,
		uint32_t *ret_width, struct pipeline_error *ret_error)
{
	const char *other = decode_other(data, size);
	int r;

	if (other)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "%s", other);
	decode->data = data;
	decode->size = size;
	decode->ret_error = ret_error;
	r = decode_start(decode);
	if (r != 0)
		return r;
	*ret_height = decode->jpeg.image_height;
	*ret_width = decode->jpeg.image_width;
	return 0;
}

/* ---- pixels ---- */

static inline uint32_t decode_times(uint32_t a, uint32_t b)
{
	uint32_t product = a * b + 128;

	return (product + (product >> 8)) >> 8; /* a * b / 255, rounded */
}

/* In place: a row of Adobe's CMYK (255 is no ink) to RGB. */
static void decode_from_cmyk(uint8_t *row, uint32_t width)
{
	for (uint32_t x = 0; x < width; x++, row += 4) {
		uint32_t white = row[3];

		for (unsigned c = 0; c < 3; c++)
			row[c] = (uint8_t)(white - decode_times(255 - row[c], white));
	}
}

/* count rows of the picture from row y of to on. May longjmp. */
static void decode_rows(struct decode *decode, const struct picture *to, uint32_t count)
{
	for (uint32_t y = 0; y < count;) {
		JSAMPROW rows[8];
		uint32_t n = BASE_MIN(count - y, (uint32_t)BASE_ARRAY_LEN(rows)), got;

		for (uint32_t i = 0; i < n; i++)
			rows[i] = picture_row(to, y + i);
		got = jpeg_read_scanlines(&decode->jpeg, rows, n);
		for (uint32_t i = 0; i < got && decode->jpeg.out_color_space == JCS_CMYK; i++)
			decode_from_cmyk(rows[i], to->width);
		y += got;
	}
}

static int decode_no_room(struct decode *decode, int r)
{
	return decode_fail(decode->ret_error, (enum pipeline_fail)r, 0,
			   "no room for %u x %u pixels", decode->jpeg.image_width,
			   decode->jpeg.image_height);
}

int decode_whole(struct decode *decode, struct picture_buffer *buffer, struct picture *ret,
		 struct pipeline_error *ret_error)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	int r;

	decode->ret_error = ret_error;
	r = picture_make(buffer, jpeg->image_height, jpeg->image_width, ret);
	if (r != 0)
		return decode_no_room(decode, r);
	if (setjmp(decode->escape)) {
		decode_unmake(decode);
		return PIPELINE_E_BAD;
	}
	jpeg_start_decompress(jpeg);
	decode_rows(decode, ret, jpeg->output_height);
	jpeg_finish_decompress(jpeg);
	return 0;
}

/* ---- parts ---- */

enum decode_tail { DECODE_WHOLE_FILE, DECODE_TRUNCATED, DECODE_UNCLEAR };

/* How the file goes on behind the last row that was read of its only scan. */
static enum decode_tail decode_look_at_tail(const struct decode *decode)
{
	const uint8_t *at = decode->source.next_input_byte;
	const uint8_t *end = at + decode->source.bytes_in_buffer;
	int marker = decode->jpeg.unread_marker;

	while (marker == 0 || (marker >= 0xd0 && marker <= 0xd7)) {
		at = memchr(at, 0xff, (size_t)(end - at));
		if (!at || end - at < 2)
			return DECODE_TRUNCATED;
		marker = at[1] == 0xff ? 0 : at[1];
		at += at[1] == 0xff ? 1 : 2;
	}
	return marker == DECODE_EOI ? DECODE_WHOLE_FILE : DECODE_UNCLEAR;
}

static bool decode_can_part(const struct decode *decode, const struct picture_box *box)
{
	const struct jpeg_decompress_struct *jpeg = &decode->jpeg;

	if (jpeg->num_components == 4)
		return false;
	return (uint64_t)box->height * box->width <
	       (uint64_t)jpeg->image_height * jpeg->image_width;
}

/* box with its margin, in *ret_outer; libjpeg is told the columns and moves them outwards to where
 * its blocks begin. May longjmp. */
static void decode_choose(struct decode *decode, const struct picture_box *box,
			  struct picture_box *ret_outer)
{
	struct jpeg_decompress_struct *jpeg = &decode->jpeg;
	uint32_t right = BASE_MIN(box->left + box->width + DECODE_MARGIN, jpeg->output_width);
	uint32_t bottom = BASE_MIN(box->top + box->height + DECODE_MARGIN, jpeg->output_height);
	JDIMENSION left = box->left > DECODE_MARGIN ? box->left - DECODE_MARGIN : 0;
	JDIMENSION width = right - left;

	jpeg_crop_scanline(jpeg, &left, &width);
	ret_outer->left = left;
	ret_outer->width = width;
	ret_outer->top = box->top > DECODE_MARGIN ? box->top - DECODE_MARGIN : 0;
	ret_outer->height = bottom - ret_outer->top;
}

/* Decodes outer into to, whose rows are wide enough for the whole picture. */
static int decode_try_part(struct decode *decode, const struct picture_box *box,
			   const struct picture *to, struct picture_box *ret_outer)
{
	if (setjmp(decode->escape)) {
		decode_unmake(decode);
		return PIPELINE_E_BAD;
	}
	jpeg_start_decompress(&decode->jpeg);
	decode_choose(decode, box, ret_outer);
	if (ret_outer->top > 0)
		jpeg_skip_scanlines(&decode->jpeg, ret_outer->top);
	decode_rows(decode, to, ret_outer->height);
	return 0;
}

static int decode_whole_again(struct decode *decode, const struct picture_box *box,
			      struct picture_buffer *buffer, struct picture *ret)
{
	struct picture whole;
	int r = decode_start(decode);

	if (r == 0)
		r = decode_whole(decode, buffer, &whole, decode->ret_error);
	if (r == 0)
		*ret = picture_part(&whole, box);
	return r;
}

int decode_part(struct decode *decode, const struct picture_box *box, struct picture_buffer *buffer,
		struct picture *ret, struct pipeline_error *ret_error)
{
	struct picture_box outer = {0}, inner = *box;
	struct picture picture;
	int r;

	decode->ret_error = ret_error;
	if (!decode_can_part(decode, box)) {
		r = decode_whole(decode, buffer, &picture, ret_error);
		if (r == 0)
			*ret = picture_part(&picture, box);
		return r;
	}
	r = picture_make(buffer,
			 BASE_MIN(box->height + 2 * DECODE_MARGIN, decode->jpeg.image_height),
			 decode->jpeg.image_width, &picture);
	if (r != 0)
		return decode_no_room(decode, r);
	r = decode_try_part(decode, box, &picture, &outer);
	if (r != 0)
		return r;
	if (!jpeg_has_multiple_scans(&decode->jpeg)) {
		enum decode_tail tail = decode_look_at_tail(decode);

		if (tail == DECODE_UNCLEAR)
			return decode_whole_again(decode, box, buffer, ret);
		if (tail == DECODE_TRUNCATED)
			return decode_fail(ret_error, PIPELINE_FAIL_DECODE, JWRN_JPEG_EOF,
					   DECODE_TRUNCATED_TEXT);
	}
	inner.top -= outer.top;
	inner.left -= outer.left;
	*ret = picture_part(&picture, &inner);
	return 0;
}
