/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The quick JPEG decoder: the part of a picture that is wanted, of the kind that most pictures are
 * (baseline Huffman, 8 bit, one interleaved scan; YCbCr 4:2:0, 4:2:2, 4:4:4 and grey), with the
 * pixels of libjpeg-turbo. Whatever is of another kind or damaged is left to libjpeg-turbo, so that
 * outcomes are always its own. One handle a run; no other calls than for memory.
 */

#include "pipeline/formats/decode_band.h"
#include "pipeline/picture.h"

#define BASELINE_E_OTHER 1   /* not a picture for this decoder */
#define BASELINE_E_DAMAGED 2 /* begin again with libjpeg-turbo */

struct baseline;
int baseline_new(struct baseline **ret); /* 0 or -ENOMEM */
void baseline_free(struct baseline *baseline);

/* Reads the head of data (borrowed until the next open). 0 or BASELINE_E_OTHER. */
int baseline_open(struct baseline *baseline, const void *data, size_t size, uint32_t *ret_height,
		  uint32_t *ret_width);

/* From now on until the next open, the picture has its sides halved shift times (0 to 3), rounded up:
 * pixels and boxes are those of libjpeg-turbo's decode at that scale. 0 or BASELINE_E_OTHER. */
int baseline_reduce(struct baseline *baseline, unsigned shift);

/* Begins with the rows of box, which lies within the picture that was opened; may be called again.
 * 0 or -ENOMEM. */
int baseline_start(struct baseline *baseline, const struct picture_box *box);

/* The next rows of box, at least one; valid until the next call. With the last ones the rest of the
 * file has been looked at. 0 or BASELINE_E_DAMAGED: forget all rows of this picture. */
int baseline_next(struct baseline *baseline, struct decode_band *ret);

/* ---- the crop index: bytes by which parts of a file are decoded without what is before them ---- */

/* Goes through the whole scan of the open file, whose scale has not been reduced, and makes its index:
 * malloc'ed. step: MCUs of a row from entry to entry; 0: as few as a 51st of the file's bytes can tell.
 * After it the handle is as if just opened. 0; BASELINE_E_OTHER: none would be small enough;
 * BASELINE_E_DAMAGED: the file is no good for this decoder; -ENOMEM. */
int baseline_index_make(struct baseline *baseline, uint32_t step, uint8_t **ret, size_t *ret_size);

/* From now on until the next open, an index (borrowed as long) says where to begin; pixels and outcomes
 * are what they are without, if it was made of this file. Hostile bytes do no harm. 0;
 * BASELINE_E_OTHER: it cannot be the open file's, which is decoded without. */
int baseline_index_use(struct baseline *baseline, const void *index, size_t size);

/* ---- packed coefficients: bytes in the place of a file's scan, which take no Huffman decoding ---- */

/* Packs the scan of the open file, whose scale has not been reduced: malloc'ed. After it the handle is as
 * if just opened. 0; BASELINE_E_OTHER: they would be too large, or have numbers that do not fit;
 * BASELINE_E_DAMAGED: the file is no good for this decoder; -ENOMEM. */
int baseline_pack(struct baseline *baseline, uint8_t **ret, size_t *ret_size);
/* How many of the open file's bytes come before its scan: packed coefficients need no others. */
size_t baseline_front(const struct baseline *baseline);

/* From now on until the next open, coefficients (borrowed as long) are taken for the scan of what is
 * open, which may end where that begins; pixels are those of the file. Hostile bytes do no harm. 0;
 * BASELINE_E_OTHER: they cannot be those of the file that is open. */
int baseline_packed_use(struct baseline *baseline, const void *packed, size_t size);

/* The file that the packed coefficients in use stand for, with its pixels, though not always with the same
 * bytes: malloc'ed. The handle is as if just opened and in use. 0; BASELINE_E_DAMAGED: they stand for
 * none; -ENOMEM. */
int baseline_restore(struct baseline *baseline, uint8_t **ret, size_t *ret_size);

/* Gives memory back that only an unusually large picture needed. */
void baseline_trim(struct baseline *baseline);
