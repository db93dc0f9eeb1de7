/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The seam between decode.c and the formats. A format is told by what the file begins with, never by
 * its name. Each has one file, which alone knows its library. All calls are as in decode.h, on a
 * state of the format's own: one a handle, all zero before the first open.
 */

#include <stdio.h>

#include "pipeline/formats/decode.h"

struct decode_format {
	const char *name;
	size_t state_size;
	/* Of a format whose library is found when the program runs: its file, and what loads it,
	 * called once. NULL: it is linked, or none. */
	const char *library;
	bool (*load)(void);
	bool (*probe)(const uint8_t *data, size_t size);
	/* Reads the head, data borrowed; may be called again for the same data, to begin again.
	 * Refuses more than OP_MAX_PIXELS, and no pixels. NULL: no picture of 8 bits, but numbers; `whole` is
	 * not there either. */
	int (*open)(void *state, const uint8_t *data, size_t size, uint32_t *ret_height,
		    uint32_t *ret_width, struct pipeline_error *ret_error);
	/* As decode_reduce; called before each open and between open and the others. NULL: it
	 * cannot. */
	void (*reduce)(void *state, unsigned shift);
	int (*whole)(void *state, struct picture_buffer *buffer, struct picture *ret,
		     struct pipeline_error *ret_error);
	/* Of an open picture that is a mask its numbers, as decode_labels() says; NULL: the format has none. */
	int (*labels)(void *state, struct picture_buffer *buffer, struct picture *ret,
		      struct pipeline_error *ret_error);
	/* Where there is no open: why not, for people. */
	const char *(*refusal)(const uint8_t *data, size_t size);
	/* Reads the head for `numbers`, as open does for the others; NULL: the format has none but of 8 bits. */
	int (*numbers_open)(void *state, const uint8_t *data, size_t size,
			    struct decode_numbers_head *ret, struct pipeline_error *ret_error);
	int (*numbers)(void *state, const struct decode_numbers *to,
		       struct pipeline_error *ret_error);
	/* The pixels of box, bit for bit those of the whole picture, and the same outcome; NULL: cut from that. */
	int (*part)(void *state, const struct picture_box *box, struct picture_buffer *buffer,
		    struct picture *ret, struct pipeline_error *ret_error);
	/* As decode_band_start and decode_band_next, but rows may come as pixels: then *ret is them
	 * and *ret_band has no rows. NULL: cut from what part or whole give. DECODE_E_AGAIN from
	 * either: not by rows, take part or whole. */
	int (*rows_start)(void *state, const struct picture_box *box,
			  struct pipeline_error *ret_error);
	int (*rows_next)(void *state, struct picture *ret, struct decode_band *ret_band,
			 struct pipeline_error *ret_error);
	/* All rows of box as planes, as they stand in memory; NULL: there are none. */
	void (*planes)(const void *state, const struct picture_box *box, struct decode_band *ret);
	/* EXIF's, of an open picture; NULL: exif.c finds it. */
	unsigned (*orientation)(const void *state);
	/* Ops of a pipeline that the picture has behind it; NULL: one, decode. */
	unsigned (*done)(const void *state);
	/* Gives back what the last picture needed; also without an open before. NULL: it needed nothing. */
	void (*close)(void *state);
	/* close, and all else that the state holds. NULL: it holds nothing. */
	void (*fini)(void *state);
};

extern const struct decode_format decode_avif;
extern const struct decode_format decode_bmp;
extern const struct decode_format decode_dicom;
extern const struct decode_format decode_flo;
extern const struct decode_format decode_gif;
extern const struct decode_format decode_heif;
extern const struct decode_format decode_jp2;
extern const struct decode_format decode_jpeg;
extern const struct decode_format decode_jxl;
extern const struct decode_format decode_kept;
extern const struct decode_format decode_nifti;
extern const struct decode_format decode_npy;
extern const struct decode_format decode_pfm;
extern const struct decode_format decode_png;
extern const struct decode_format decode_pnm;
extern const struct decode_format decode_tiff;
extern const struct decode_format decode_webp;

/* Is one of these brands, four letters each, in the box ftyp? */
bool decode_has_brand(const uint8_t *data, size_t size, const char *brands);
/* Makes stderr a stream that goes nowhere, until it is set to what this returns: for libraries that tell it of
 * damage, which a sandboxed worker would die of. Of formats with `load`. */
FILE *decode_hush(void);

#define DECODE_TRUNCATED_TEXT "the file ends before the picture does"

/* Fills *ret_error: the file ends too early. Returns PIPELINE_E_BAD. */
int decode_fail_truncated(struct pipeline_error *ret_error);
/* Is that a picture's size that may be decoded? 0, or PIPELINE_E_BAD with *ret_error. */
int decode_check_size(uint64_t height, uint64_t width, struct pipeline_error *ret_error);
/* picture_make for a format: 0, or PIPELINE_E_BAD with *ret_error. */
int decode_make(struct picture_buffer *buffer, uint32_t height, uint32_t width, struct picture *ret,
		struct pipeline_error *ret_error);

static inline uint32_t decode_be16(const uint8_t *from)
{
	return (uint32_t)from[0] << 8 | from[1];
}

static inline uint32_t decode_be32(const uint8_t *from)
{
	return decode_be16(from) << 16 | decode_be16(from + 2);
}

/* A pixel of a mask. */
static inline void decode_put_label(uint8_t *pixel, uint32_t label)
{
	pixel[0] = (uint8_t)label;
	pixel[1] = (uint8_t)(label >> 8);
	pixel[2] = pixel[3] = 0;
}

static inline void decode_put(uint8_t *pixel, uint8_t red, uint8_t green, uint8_t blue)
{
	pixel[0] = red;
	pixel[1] = green;
	pixel[2] = blue;
	pixel[3] = 255;
}
