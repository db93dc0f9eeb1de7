/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Bytes of a picture's file, or of a stored form of it (form.h), to 8-bit RGB. The bytes are hostile. One
 * handle a run, used for picture after picture: open, then read at most once, by one of whole, part and
 * band_start.
 */

#include "pipeline/formats/decode_band.h"
#include "pipeline/formats/decode_numbers.h"
#include "pipeline/picture.h"
#include "pipeline/types.h"

enum { DECODE_E_AGAIN = 2 }; /* of decode_band_next */

/* Loads the libraries of formats that are found when the program runs: once a process, before a sandbox closes
 * and before threads. Without it the first such picture does. */
void decode_load(void);

struct decode;
int decode_new(struct decode **ret); /* 0 or -ENOMEM */
void decode_free(struct decode *decode);
/* From now on libraries decode everything, as if the file were none for our own decoder: to compare
 * with. */
void decode_by_library(struct decode *decode);
/* From now on pictures are turned as their EXIF says (exif.h): sizes, boxes and pixels are those of
 * the turned picture. */
void decode_by_exif(struct decode *decode);
/* From now on fn is told the size of each picture that is opened, before any of its pixels; arg is the
 * caller's. */
typedef void (*decode_size_fn)(void *arg, uint32_t height, uint32_t width);
void decode_watch(struct decode *decode, decode_size_fn fn, void *arg);

/* Gives back what the decoder holds of the last picture; the handle is used on. */
void decode_close(struct decode *decode);

/* Reads the head of data (borrowed until the next open). The size is checked against OP_MAX_PIXELS.
 * 0, or PIPELINE_E_BAD with *ret_error. */
int decode_open(struct decode *decode, const void *data, size_t size, uint32_t *ret_height,
		uint32_t *ret_width, struct pipeline_error *ret_error);

/* ---- smaller pictures ---- */

#define DECODE_MAX_SHIFT 3

struct decode_about { /* an open picture, before its pixels */
	uint32_t height, width;
	unsigned done;   /* ops of the pipeline that it has behind it: 1, or more if kept (cut.h) */
	bool can_reduce; /* decode_reduce may be called */
	bool is_upside_down; /* its first row is the file's last row, or column */
	bool is_mirrored;    /* its first column is the file's last column, or row */
};
void decode_tell(const struct decode *decode, struct decode_about *ret);

/* From now on until the next open, boxes and pixels are those of the picture with its sides halved
 * shift times (at most DECODE_MAX_SHIFT), rounded up, as libjpeg-turbo decodes it at that scale. May be
 * called again, but not between decode_band_start and the last row. */
void decode_reduce(struct decode *decode, unsigned shift);

/* ---- pixels ---- */

/* The whole picture into buffer. 0, or PIPELINE_E_BAD with *ret_error. */
int decode_whole(struct decode *decode, struct picture_buffer *buffer, struct picture *ret,
		 struct pipeline_error *ret_error);

/* A mask: a picture of numbers from 0 to 65535 (PNG, PGM, TIFF), grey as they are or a palette's indices, which must have that size.
 * The first two bytes of each pixel are its number, the lower one first. No open is needed, and EXIF is not looked
 * at. 0, or PIPELINE_E_BAD with *ret_error. */
int decode_labels(struct decode *decode, const void *data, size_t size, uint32_t height,
		  uint32_t width, struct picture_buffer *buffer, struct picture *ret,
		  struct pipeline_error *ret_error);

/* The numbers of a picture's file (decode_numbers.h), without EXIF. open is as decode_open, and counts a row of each channel for the
 * watch; then the channels that `to` says, all of which the file has. 0, or PIPELINE_E_BAD with *ret_error. */
int decode_numbers_open(struct decode *decode, const void *data, size_t size,
			struct decode_numbers_head *ret, struct pipeline_error *ret_error);
int decode_numbers(struct decode *decode, const struct decode_numbers *to,
		   struct pipeline_error *ret_error);

/* ---- bands: a part from top to bottom, a few rows at a time, for who works on them while they
 * are in the cache ---- */

/* Begins with box's rows; the pixels and the outcome are those of the whole picture.
 * 0, or PIPELINE_E_BAD with *ret_error. */
int decode_band_start(struct decode *decode, const struct picture_box *box,
		      struct pipeline_error *ret_error);

/* The next rows, at least one; not to be called again after the box's last row or an error. With
 * the last row the rest of the file has been looked at. 0; PIPELINE_E_BAD with *ret_error;
 * DECODE_E_AGAIN: the file is not what the quick way takes, forget its rows and begin again with
 * decode_band_start, which then goes another way. That happens a bounded number of times. */
int decode_band_next(struct decode *decode, struct decode_band *ret,
		     struct pipeline_error *ret_error);

/* ---- writing ---- */

/* The file of a picture as a JPEG of that quality, 1 to 100, with the defaults of libjpeg and of Pillow's save(). *ret is the
 * caller's to free. 0; PIPELINE_FAIL_REFUSED: a side has more than 65500 pixels; PIPELINE_FAIL_MEMORY. */
int decode_jpeg_write(const struct picture *picture, unsigned quality, uint8_t **ret,
		      size_t *ret_size);

/* Do the first bytes say that it is a picture, of a format that this build has? */
bool decode_is_picture(const void *data, size_t size);
/* Fills *ret_error, the text printf-like. Returns PIPELINE_E_BAD. */
int decode_fail(struct pipeline_error *ret_error, enum pipeline_fail stage, int code,
		const char *fmt, ...) BASE_PRINTF(4, 5);
/* The same for a stored form that form_read (form.h) refuses; why: what it returned. */
int decode_fail_form(int why, struct pipeline_error *ret_error);
