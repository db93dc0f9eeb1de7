/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding, whatever the format: which it is, and the forms in which pixels are wanted.
 *
 * The format is told by the file's first bytes; names say nothing. Formats give whole pictures, and
 * where they can parts and rows without the rest (decode_format.h); here the wanted form is made of
 * what the format has.
 *
 * Bands go one of several ways, the quickest first: our own decoder for plain JPEG files, which has
 * planes (baseline.h); rows as the format decodes them, taken apart into planes at once; else the part or the whole picture, and rows of that. A way may find out late
 * that it does not know the outcome (DECODE_E_AGAIN: bytes behind the picture that only a whole
 * decode can judge, say); the next start goes the next way. The last way never says so. A file that
 * the quick way takes is not opened by its format until that is needed.
 *
 * A smaller picture (decode_reduce) is the format's own, or the quick way's; all else works on it as on any.
 *
 * Instead of a file there may be a stored form of it (form.h), which is taken apart at once. Kept
 * pixels are a format of their own, which has planes already.
 *
 * Where EXIF is asked for and turns the picture, the bands of a box are collected into the turned
 * part (decode_turn.h), and bands of that are given.
 */

#include <stdarg.h>
#include <stdio.h>
#include "pipeline/formats/decode_format.h"
#include "pipeline/formats/decode_planes.h"
#include "pipeline/formats/decode_turn.h"
#include "pipeline/formats/exif.h"
#include "pipeline/forms/form.h"
#include "pipeline/jpeg/baseline.h"
#include "pipeline/spec/op.h"

static const struct decode_format *const decode_formats[] = {
    &decode_dicom, /* before all others: what is in front of its magic may be another format's head */
    &decode_jpeg,
#if HAS_PNG
    &decode_png,
#endif
#if HAS_WEBP
    &decode_webp,
#endif
#if HAS_TIFF
    &decode_tiff,
#endif
#if HAS_GIF
    &decode_gif,
#endif
#if HAS_JP2
    &decode_jp2,
#endif
#if HAS_AVIF
    &decode_avif,
#endif
#if HAS_HEIF
    &decode_heif,
#endif
#if HAS_JXL
    &decode_jxl,
#endif
    &decode_bmp,   &decode_pnm, &decode_npy, &decode_nifti, &decode_flo, &decode_pfm, &decode_kept,
};

enum decode_way { DECODE_QUICK, DECODE_BY_PLANES, DECODE_BY_ROWS, DECODE_BY_PART };

struct decode {
	const struct decode_format *format; /* of the open picture; NULL: none */
	void *state[BASE_ARRAY_LEN(decode_formats)];
	void *current;       /* the format's state */
	const uint8_t *data; /* the file's bytes */
	size_t size;
	struct form form;     /* that they were in; without an index: none */
	uint8_t *restored;    /* the file that packed coefficients stand for, if one was needed */
	decode_size_fn watch; /* NULL: nobody wants to know */
	void *watch_arg;
	/* EXIF */
	bool by_exif;
	unsigned orientation;   /* EXIF_UPRIGHT: the picture is as the file has it */
	uint32_t height, width; /* in the file */
	unsigned shift;         /* their halves, so often */
	struct picture_buffer turned;
	/* bands */
	enum decode_way way;
	bool is_fresh;          /* the format's state has read the head, and nothing else */
	struct baseline *quick; /* NULL: not needed yet */
	bool by_library;        /* never */
	struct picture_buffer buffer;
	struct picture rest;    /* rows that wait to be given */
	struct picture_box box; /* of planes */
	struct decode_planes planes;
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

int decode_fail_truncated(struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, DECODE_TRUNCATED_TEXT);
}

int decode_fail_form(int why, struct pipeline_error *ret_error)
{
	return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "%s",
			   why == FORM_E_VERSION ? "made by another version: convert again"
						 : "a damaged stored form");
}

int decode_check_size(uint64_t height, uint64_t width, struct pipeline_error *ret_error)
{
	if (height == 0 || width == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "a picture without pixels");
	if (height > OP_MAX_PIXELS || width > OP_MAX_PIXELS || height * width > OP_MAX_PIXELS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%llu x %llu pixels are more than %llu",
				   (unsigned long long)width, (unsigned long long)height,
				   (unsigned long long)OP_MAX_PIXELS);
	return 0;
}

int decode_make(struct picture_buffer *buffer, uint32_t height, uint32_t width, struct picture *ret,
		struct pipeline_error *ret_error)
{
	int r = picture_make(buffer, height, width, ret);

	if (r == 0)
		return 0;
	return decode_fail(ret_error, (enum pipeline_fail)r, 0, "no room for %u x %u pixels", width,
			   height);
}

/* ---- libraries ---- */

static bool decode_is_loaded[BASE_ARRAY_LEN(decode_formats)];
static FILE *decode_nowhere;

static ssize_t decode_swallow(void *cookie, const char *text, size_t size)
{
	(void)cookie, (void)text;
	return (ssize_t)size;
}

void decode_load(void)
{
	const cookie_io_functions_t swallow = {.write = decode_swallow};
	static bool is_done;

	if (is_done)
		return;
	is_done = true;
	decode_nowhere = fopencookie(NULL, "w", swallow);
	if (!decode_nowhere)
		return;
	setvbuf(decode_nowhere, NULL, _IONBF, 0);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(decode_formats); i++)
		decode_is_loaded[i] = decode_formats[i]->load && decode_formats[i]->load();
}

bool decode_has_brand(const uint8_t *data, size_t size, const char *brands)
{
	size_t end;

	if (size < 16 || memcmp(data + 4, "ftyp", 4) != 0)
		return false;
	end = BASE_MIN(size, (size_t)decode_be32(data));
	for (size_t at = 8; at + 4 <= end; at += at == 8 ? 8 : 4)
		for (const char *brand = brands; *brand; brand += 4)
			if (memcmp(data + at, brand, 4) == 0)
				return true;
	return false;
}

FILE *decode_hush(void)
{
	FILE *real = stderr;

	stderr = decode_nowhere;
	return real;
}

/* ---- the handle ---- */

int decode_new(struct decode **ret)
{
	struct decode *decode = calloc(1, sizeof(*decode));

	if (!decode)
		return -ENOMEM;
	*ret = decode;
	return 0;
}

static void decode_forget(struct decode *decode)
{
	if (decode->format && decode->format->close)
		decode->format->close(decode->current);
	decode->format = NULL;
	free(decode->restored);
	decode->restored = NULL;
}

void decode_close(struct decode *decode)
{
	decode_forget(decode);
	if (decode->quick)
		baseline_trim(decode->quick);
	picture_buffer_trim(&decode->buffer);
	picture_buffer_trim(&decode->turned);
	decode_planes_trim(&decode->planes);
}

void decode_by_library(struct decode *decode)
{
	decode->by_library = true;
}

void decode_by_exif(struct decode *decode)
{
	decode->by_exif = true;
}

void decode_watch(struct decode *decode, decode_size_fn fn, void *arg)
{
	decode->watch = fn;
	decode->watch_arg = arg;
}

void decode_free(struct decode *decode)
{
	if (!decode)
		return;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(decode_formats); i++) {
		if (decode->state[i] && decode_formats[i]->fini)
			decode_formats[i]->fini(decode->state[i]);
		free(decode->state[i]);
	}
	baseline_free(decode->quick);
	free(decode->restored);
	picture_buffer_fini(&decode->buffer);
	picture_buffer_fini(&decode->turned);
	decode_planes_fini(&decode->planes);
	free(decode);
}

/* ---- the head ---- */

/* What bytes of no format are that this build has. */
static const char *decode_other(const uint8_t *data, size_t size)
{
	static const struct {
		unsigned at, size;
		const char *magic, *text;
	} others[] = {
	    {0, 8, "\0\0\0\x0cjP  ", "JPEG 2000, which this build cannot decode"},
	    {0, 4, "\xff\x4f\xff\x51", "JPEG 2000, which this build cannot decode"},
	    {0, 8, "\0\0\0\x0cJXL ", "JPEG XL, which this build cannot decode"},
	    {0, 2, "\xff\x0a", "JPEG XL, which this build cannot decode"},
	    {0, 4, "\x89PNG", "a PNG picture, which this build cannot decode"},
	    {8, 4, "WEBP", "a WebP picture, which this build cannot decode"},
	    {0, 4, "II*", "a TIFF picture, which this build cannot decode"},
	    {0, 4, "MM\0*", "a TIFF picture, which this build cannot decode"},
	    {0, 4, "GIF8", "a GIF picture, which this build cannot decode"},
	    {8, 4, "WAVE", "a sound (WAV), which the op audio decodes"},
	    {0, 4, "fLaC", "a sound (FLAC), which the op audio decodes"},
	    {0, 4, "OggS", "a sound (Ogg), which the op audio decodes"},
	    {4, 8, "ftypavif", "an AVIF picture, which this build cannot decode"},
	    {4, 8, "ftypavis", "an AVIF picture, which this build cannot decode"},
	    {4, 8, "ftypheic", "a HEIF picture, which this build cannot decode"},
	    {4, 8, "ftypmif1", "a HEIF picture, which this build cannot decode"},
	    {4, 4, "ftyp", "a video (MP4), which the op video decodes"},
	    {4, 4, "moov", "a video (MOV), which the op video decodes"},
	    {0, 4, "\x1a\x45\xdf\xa3", "a video (Matroska), which the op video decodes"},
	    {8, 4, "AVI ", "a video (AVI), which the op video decodes"},
	    {0, 4, "\0\0\x01\xba", "a video (MPEG-1 or -2), which is not supported"},
	};

	if (size == 0)
		return "the file is empty";
	for (unsigned i = 0; i < BASE_ARRAY_LEN(others); i++) {
		const unsigned end = others[i].at + others[i].size;

		if (size >= end &&
		    memcmp(data + others[i].at, others[i].magic, others[i].size) == 0)
			return others[i].text;
	}
	return "not JPEG, PNG or another format of pictures";
}

/* Number in decode_formats, or their count. */
static unsigned decode_find(const uint8_t *data, size_t size)
{
	unsigned i = 0;

	while (i < BASE_ARRAY_LEN(decode_formats) && !decode_formats[i]->probe(data, size))
		i++;
	return i;
}

bool decode_is_picture(const void *data, size_t size)
{
	return decode_find(data, size) < BASE_ARRAY_LEN(decode_formats);
}

/* Whether the quick way takes the file; then its size is known. */
static bool decode_open_quick(struct decode *decode, uint32_t *ret_height, uint32_t *ret_width)
{
	uint32_t height, width;

	if (!decode->quick && baseline_new(&decode->quick) != 0)
		return false;
	if (baseline_open(decode->quick, decode->data, decode->size, &height, &width) != 0 ||
	    (uint64_t)height * width > OP_MAX_PIXELS)
		return false;
	if (decode->form.kind == FORM_PACKED &&
	    baseline_packed_use(decode->quick, decode->form.index, decode->form.index_size) != 0)
		return false;
	/* One that cannot be of this file changes nothing. */
	if (decode->form.kind == FORM_INDEXED && decode->form.index)
		baseline_index_use(decode->quick, decode->form.index, decode->form.index_size);
	*ret_height = height;
	*ret_width = width;
	return true;
}

/* Packed coefficients are open: the file they stand for, for who knows no others. */
static int decode_restore(struct decode *decode, struct pipeline_error *ret_error)
{
	int r;

	if (decode->form.kind != FORM_PACKED || decode->restored)
		return 0;
	r = baseline_restore(decode->quick, &decode->restored, &decode->size);
	if (r < 0)
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	if (r > 0)
		return decode_fail_form(FORM_E_OTHER, ret_error);
	decode->data = decode->restored;
	return 0;
}

/* The file of a stored form, or the bytes themselves. */
static int decode_unwrap(struct decode *decode, const void *data, size_t size,
			 struct pipeline_error *ret_error)
{
	int r;

	decode->form = (struct form){.file = data, .file_size = size};
	r = form_probe(data, size) ? form_read(data, size, &decode->form) : 0;
	if (r != 0)
		return decode_fail_form(r, ret_error);
	if (decode->form.kind == FORM_PIXELS)
		decode->form = (struct form){.file = data, .file_size = size}; /* decode_kept's */
	decode->data = decode->form.file;
	decode->size = decode->form.file_size;
	return 0;
}

/* The bytes' format is the one that is open. */
static int decode_choose(struct decode *decode, struct pipeline_error *ret_error)
{
	const unsigned i = decode_find(decode->data, decode->size);

	if (i == BASE_ARRAY_LEN(decode_formats))
		return decode_fail(ret_error, PIPELINE_FAIL_DECODE, 0, "%s",
				   decode_other(decode->data, decode->size));
	decode_load();
	if (decode_formats[i]->load && !decode_is_loaded[i])
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%s needs %s on the node",
				   decode_formats[i]->name, decode_formats[i]->library);
	if (!decode->state[i])
		decode->state[i] = calloc(1, decode_formats[i]->state_size);
	if (!decode->state[i])
		return decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory to decode");
	decode->format = decode_formats[i];
	decode->current = decode->state[i];
	return 0;
}

/* As decode_open, of the picture in the file. */
static int decode_open_file(struct decode *decode, uint32_t *ret_height, uint32_t *ret_width,
			    struct pipeline_error *ret_error)
{
	const bool is_packed = decode->form.kind == FORM_PACKED;
	bool is_quick = false;
	int r = decode_choose(decode, ret_error);

	if (r != 0)
		return r;
	if (!decode->format->open)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "%s",
				   decode->format->refusal(decode->data, decode->size));
	if (decode->format->reduce)
		decode->format->reduce(decode->current, 0);
	decode->is_fresh = false;
	decode->way = DECODE_QUICK;
	if (decode->format == &decode_jpeg && (is_packed || !decode->by_library))
		is_quick = decode_open_quick(decode, ret_height, ret_width);
	if (is_quick && !decode->by_library)
		return 0;
	if (is_packed && !is_quick)
		return decode_fail_form(FORM_E_OTHER, ret_error);
	r = decode_restore(decode, ret_error);
	if (r != 0)
		return r;
	decode->way = DECODE_BY_ROWS;
	decode->is_fresh = true;
	return decode->format->open(decode->current, decode->data, decode->size, ret_height,
				    ret_width, ret_error);
}

static unsigned decode_orientation(const struct decode *decode)
{
	if (decode->format->orientation)
		return decode->format->orientation(decode->current);
	return exif_orientation(decode->data, decode->size);
}

int decode_open(struct decode *decode, const void *data, size_t size, uint32_t *ret_height,
		uint32_t *ret_width, struct pipeline_error *ret_error)
{
	bool exchanges;
	int r;

	decode_forget(decode);
	decode->shift = 0;
	r = decode_unwrap(decode, data, size, ret_error);
	r = r ? r : decode_open_file(decode, &decode->height, &decode->width, ret_error);
	if (r != 0)
		return r;
	if (decode->watch)
		decode->watch(decode->watch_arg, decode->height, decode->width);
	decode->orientation = decode->by_exif ? decode_orientation(decode) : EXIF_UPRIGHT;
	exchanges = decode_turn_exchanges(decode->orientation);
	*ret_height = exchanges ? decode->width : decode->height;
	*ret_width = exchanges ? decode->height : decode->width;
	return 0;
}

void decode_tell(const struct decode *decode, struct decode_about *ret)
{
	const bool exchanges = decode_turn_exchanges(decode->orientation);

	ret->height = exchanges ? decode->width : decode->height;
	ret->width = exchanges ? decode->height : decode->width;
	ret->done = decode->format->done ? decode->format->done(decode->current) : 1;
	ret->can_reduce = decode->format->reduce;
	decode_turn_ends(decode->orientation, &ret->is_upside_down, &ret->is_mirrored);
}

void decode_reduce(struct decode *decode, unsigned shift)
{
	decode->shift = shift;
	if (decode->format->reduce)
		decode->format->reduce(decode->current, shift);
	if (decode->way == DECODE_QUICK && baseline_reduce(decode->quick, shift) != 0)
		decode->way = DECODE_BY_ROWS;
}

/* The box of the picture in the file that becomes box. */
static void decode_box_in_file(const struct decode *decode, const struct picture_box *box,
			       struct picture_box *ret)
{
	const uint32_t round = (1u << decode->shift) - 1;

	decode_turn_box(decode->orientation, (decode->height + round) >> decode->shift,
			(decode->width + round) >> decode->shift, box, ret);
}

/* Has the format read the head, if it did not or has read on since. It is about to be used. */
static int decode_use(struct decode *decode, struct pipeline_error *ret_error)
{
	uint32_t height, width;
	int r;

	if (decode->is_fresh) {
		decode->is_fresh = false;
		return 0;
	}
	r = decode_restore(decode, ret_error);
	if (r != 0)
		return r;
	return decode->format->open(decode->current, decode->data, decode->size, &height, &width,
				    ret_error);
}

/* ---- pictures ---- */

/* picture of the file, turned, in buffer. */
static int decode_turn(struct decode *decode, const struct picture *picture,
		       struct picture_buffer *buffer, struct picture *ret,
		       struct pipeline_error *ret_error)
{
	bool exchanges = decode_turn_exchanges(decode->orientation);
	int r = decode_make(buffer, exchanges ? picture->width : picture->height,
			    exchanges ? picture->height : picture->width, ret, ret_error);

	if (r == 0)
		decode_turn_picture(decode->orientation, picture, ret);
	return r;
}

int decode_whole(struct decode *decode, struct picture_buffer *buffer, struct picture *ret,
		 struct pipeline_error *ret_error)
{
	bool is_turned = decode->orientation != EXIF_UPRIGHT;
	struct picture picture;
	int r = decode_use(decode, ret_error);

	if (r != 0)
		return r;
	if (!is_turned)
		return decode->format->whole(decode->current, buffer, ret, ret_error);
	r = decode->format->whole(decode->current, &decode->buffer, &picture, ret_error);
	return r == 0 ? decode_turn(decode, &picture, buffer, ret, ret_error) : r;
}

/* The format of a file that is not a picture to be turned or scaled. */
static int decode_choose_of(struct decode *decode, const void *data, size_t size,
			    struct pipeline_error *ret_error)
{
	decode_forget(decode);
	decode->data = data;
	decode->size = size;
	return decode_choose(decode, ret_error);
}

int decode_labels(struct decode *decode, const void *data, size_t size, uint32_t height,
		  uint32_t width, struct picture_buffer *buffer, struct picture *ret,
		  struct pipeline_error *ret_error)
{
	uint32_t its_height, its_width;
	int r;

	r = decode_choose_of(decode, data, size, ret_error);
	if (r != 0)
		return r;
	if (!decode->format->labels)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "a mask is PNG, PGM or TIFF, this one %s", decode->format->name);
	r = decode->format->open(decode->current, data, size, &its_height, &its_width, ret_error);
	if (r != 0)
		return r;
	if (its_height != height || its_width != width)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "mask %u x %u, picture %u x %u",
				   its_width, its_height, width, height);
	return decode->format->labels(decode->current, buffer, ret, ret_error);
}

/* ---- numbers ---- */

#define DECODE_MOST_NUMBERS (UINT64_C(1) << 30)

int decode_numbers_open(struct decode *decode, const void *data, size_t size,
			struct decode_numbers_head *ret, struct pipeline_error *ret_error)
{
	struct decode_numbers_head head = {.depth = 1};
	int r;

	r = decode_choose_of(decode, data, size, ret_error);
	if (r != 0)
		return r;
	if (!decode->format->numbers_open)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%s: no numbers here, take the op decode", decode->format->name);
	r = decode->format->numbers_open(decode->current, data, size, &head, ret_error);
	if (r != 0)
		return r;
	if ((uint64_t)head.height * head.channels * head.width > DECODE_MOST_NUMBERS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "%u x %u x %u numbers are too many", head.width, head.height,
				   head.channels);
	if (decode->watch)
		decode->watch(decode->watch_arg, head.height * head.channels, head.width);
	*ret = head;
	return 0;
}

int decode_numbers(struct decode *decode, const struct decode_numbers *to,
		   struct pipeline_error *ret_error)
{
	return decode->format->numbers(decode->current, to, ret_error);
}

/* ---- bands ---- */

/* As decode_band_start, of the picture in the file. */
static int decode_start_file(struct decode *decode, const struct picture_box *box,
			     struct pipeline_error *ret_error)
{
	int r;
	struct picture picture;

	decode->rest.height = 0;
	if (decode->way == DECODE_QUICK) {
		r = baseline_start(decode->quick, box);
		return r == 0
			   ? 0
			   : decode_fail(ret_error, PIPELINE_FAIL_MEMORY, 0, "no memory for rows");
	}
	if (decode->format->planes) {
		decode->way = DECODE_BY_PLANES;
		decode->box = *box;
		return 0;
	}
	if (decode->way == DECODE_BY_ROWS && decode->format->rows_start) {
		r = decode_use(decode, ret_error);
		r = r ? r : decode->format->rows_start(decode->current, box, ret_error);
		if (r != DECODE_E_AGAIN)
			return r;
	}
	decode->way = DECODE_BY_PART;
	/* The pixels of box, bit for bit those of the whole picture, and the same outcome, in less time. */
	r = decode_use(decode, ret_error);
	if (r != 0)
		return r;
	if (decode->format->part)
		return decode->format->part(decode->current, box, &decode->buffer, &decode->rest,
					    ret_error);
	r = decode->format->whole(decode->current, &decode->buffer, &picture, ret_error);
	if (r == 0)
		decode->rest = picture_part(&picture, box);
	return r;
}

/* The next rows of rest. */
static int decode_give(struct decode *decode, struct decode_band *ret,
		       struct pipeline_error *ret_error)
{
	struct picture *rest = &decode->rest;
	int r = decode_planes_fill(&decode->planes, rest, ret);

	if (r != 0)
		return decode_fail(ret_error, (enum pipeline_fail)r, 0, "no memory for rows");
	rest->data += ret->rows * rest->stride;
	rest->height -= ret->rows;
	return 0;
}

/* As decode_band_next, of the picture in the file. */
static int decode_next_file(struct decode *decode, struct decode_band *ret,
			    struct pipeline_error *ret_error)
{
	struct picture *rest = &decode->rest;
	int r;

	if (decode->way == DECODE_QUICK) {
		if (baseline_next(decode->quick, ret) == 0)
			return 0;
		decode->way = DECODE_BY_ROWS;
		return DECODE_E_AGAIN;
	}
	if (decode->way == DECODE_BY_PLANES) {
		decode->format->planes(decode->current, &decode->box, ret);
		return 0;
	}
	if (rest->height == 0) {
		ret->rows = 0;
		r = decode->format->rows_next(decode->current, rest, ret, ret_error);
		if (r == DECODE_E_AGAIN)
			decode->way = DECODE_BY_PART;
		if (r != 0 || ret->rows > 0)
			return r;
	}
	return decode_give(decode, ret, ret_error);
}

/* ---- bands of turned pictures ---- */

/* All of box (in the file) into to: turned. As decode_band_next. */
static int decode_collect(struct decode *decode, const struct picture_box *box,
			  const struct picture *to, struct pipeline_error *ret_error)
{
	struct decode_band band;
	int r = decode_start_file(decode, box, ret_error);

	for (uint32_t y = 0; r == 0 && y < box->height; y += band.rows) {
		r = decode_next_file(decode, &band, ret_error);
		if (r == 0)
			decode_turn_band(decode->orientation, &band, y, to);
	}
	return r;
}

int decode_band_start(struct decode *decode, const struct picture_box *box,
		      struct pipeline_error *ret_error)
{
	struct picture_box in_file;
	struct picture turned;
	int r;

	if (decode->orientation == EXIF_UPRIGHT)
		return decode_start_file(decode, box, ret_error);
	decode_box_in_file(decode, box, &in_file);
	r = decode_make(&decode->turned, box->height, box->width, &turned, ret_error);
	if (r != 0)
		return r;
	do {
		r = decode_collect(decode, &in_file, &turned, ret_error);
	} while (r == DECODE_E_AGAIN);
	decode->rest = turned;
	return r;
}

int decode_band_next(struct decode *decode, struct decode_band *ret,
		     struct pipeline_error *ret_error)
{
	if (decode->orientation == EXIF_UPRIGHT)
		return decode_next_file(decode, ret, ret_error);
	return decode_give(decode, ret, ret_error);
}
