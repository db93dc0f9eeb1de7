/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DECODE_PNG_H
#define PIPELINE_DECODE_PNG_H

/* PNG: its rows, as decode_png.c finds them in chunks and inflates them. */

#include "pipeline/picture.h"

struct decode_png_kind {           /* of pixels */
	unsigned depth;            /* bits a channel: 1, 2, 4, 8, 16 */
	unsigned channels;         /* 1 (also of a palette), 2, 3, 4 */
	const uint8_t (*color)[3]; /* 256 of a palette, or NULL */
};

static inline unsigned decode_png_bits(const struct decode_png_kind *kind)
{
	return kind->depth * kind->channels;
}

/* decode_png_rows.c */
/* Takes the filter back: row and the one before it, both size bytes behind `filter`'s byte; step is
 * the bytes of a pixel, at least 1. False: there is no such filter. */
bool decode_png_unfilter(unsigned filter, uint8_t *row, const uint8_t *before, size_t size,
			 size_t step);
/* A row's pixels, `gap` pixels from each other, to to. */
void decode_png_spread(const struct decode_png_kind *kind, const uint8_t *row, uint32_t width,
		       unsigned gap, uint8_t *to);

#endif
