/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Tables for resizing along one axis: which pixels make which, with what weights. */

#include "base/base.h"

/* As the words of op.c, parameter "interpolation". */
enum filter_id {
	FILTER_NEAREST = 0,
	FILTER_BOX = 1,
	FILTER_BILINEAR = 2,
	FILTER_HAMMING = 3,
	FILTER_BICUBIC = 4,
	FILTER_LANCZOS = 5,
	/* no word: nearest by the pixels' corners, as PyTorch and OpenCV have it; of masks */
	FILTER_CORNER = 6,
};

#define FILTER_BITS 22 /* of a weight's fraction */

/* Of a part that begins and ends within pixels: the eighths (0 to 7) of its first and of its last pixel
 * that are not in it. Such a pixel is known only as a whole; weights go by where the part lies. */
struct filter_cut {
	uint8_t front, back;
};

static inline bool filter_is_cut(struct filter_cut cut)
{
	return cut.front > 0 || cut.back > 0;
}

struct filter_table { /* out[x] = sum over t < count[x] of in[first[x] + t] * weight[x * taps + t]
		       */
	enum filter_id id;
	uint32_t in, out; /* 0: empty */
	struct filter_cut cut;
	uint32_t taps; /* weights from one output's first to the next output's first */
	uint32_t *first, *count;
	int32_t *weight;
	double *scratch; /* of taps numbers */
	void *memory;    /* owns the four arrays */
	size_t size;     /* of memory */
};

/* The most taps that an output of in pixels to out pixels may have. */
uint32_t filter_taps(enum filter_id id, uint32_t in, uint32_t out);

/* The table for in pixels, less the cut, to out pixels, both >= 1, into *table, which is all zero or was made
 * before; its memory is used again. No cut for nearest, nor of one pixel. False: out of memory, and the table is empty. */
bool filter_make(struct filter_table *table, enum filter_id id, uint32_t in, uint32_t out,
		 struct filter_cut cut);
void filter_fini(struct filter_table *table);
