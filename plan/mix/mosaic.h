/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The arithmetic of mosaic, as detectors of the YOLO family train with it: four pictures of a batch, each of height x
 * width, meet at a drawn point of a canvas of twice the size, and what is seen is as much of it as a picture has, around
 * its middle, larger or smaller by a drawn scale.
 *
 * The canvas has 2 height rows and 2 width columns. Pictures 0 to 3 lie left above, right above, left below and right
 * below of the centre, each with a corner at it, and are cut off at the canvas's edges. Where the canvas has x, the
 * result has (x - width) scale + floor(width / 2): so it is for y. That is Ultralytics' Mosaic and the middle part of
 * its RandomPerspective, of whose numbers of degrees, shear and translate are 0.
 *
 * Draws are a function of the key of the batch and of the picture's number in it. Frozen by known answers.
 */

#include "plan/mix/batch_mix.h"

#define MOSAIC_TILES 4
#define MOSAIC_LEAST_SCALE 0.1
#define MOSAIC_MOST_SCALE 10
#define MOSAIC_MOST_ROWS (1u << 28) /* of a picture */
#define MOSAIC_MAX_PIXEL 12         /* bytes */

struct mosaic_ask {
	double p;              /* the probability for a picture */
	double center[2];      /* least and most, of the picture's sides; within 0 and 2 */
	double scale[2];       /* least and most */
	double min_size;       /* pixels: a box with a shorter side is removed */
	double min_visibility; /* and one of which a smaller share of its area is left */
	uint64_t epochs;       /* the first so many have it; 0: all */
};

struct mosaic { /* of one picture */
	bool is_done;
	uint32_t from[MOSAIC_TILES]; /* numbers in the batch; the first is its own */
	uint32_t height, width;      /* of each, and of the result */
	uint32_t center_y,
	    center_x; /* the first row, and column, of the lower, and right, pictures */
	double scale;
};

/* Numbers in their ranges. */
bool mosaic_is_good(const struct mosaic_ask *ask);
/* For a good ask, picture `number` of `count`. */
struct mosaic mosaic_draw(const struct mosaic_ask *ask, const struct batch_mix_key *key,
			  uint32_t number, uint32_t count, uint32_t height, uint32_t width);

/* ---- boxes and points; all with is_done ---- */
/* A box of picture `tile`, cut off where that is; false: too little is left of it. */
bool mosaic_box(const struct mosaic_ask *ask, const struct mosaic *mosaic, unsigned tile,
		const float box[4], float ret[4]);
/* x, y and visibility; 0 where it is not seen. */
void mosaic_point(const struct mosaic *mosaic, unsigned tile, const float point[3], float ret[3]);

/* ---- mosaic_picture.c ---- */
enum mosaic_type { /* of values; as layout_dtype has them */
		   MOSAIC_U8 = 1,
		   MOSAIC_F16 = 2,
		   MOSAIC_F32 = 3,
		   MOSAIC_BF16 = 5,
};
struct mosaic_picture {
	uint32_t height, width;
	uint32_t planes;                /* each of height x width pixels */
	uint32_t channels;              /* values of a pixel */
	uint32_t value_bytes;           /* 1, 2, 4 or 8 */
	enum mosaic_type type;          /* of a mask: any */
	uint8_t fill[MOSAIC_MAX_PIXEL]; /* values, of each channel of each plane */
};
/* What mosaic_picture() and mosaic_mask() work with, 64-byte aligned. */
size_t mosaic_scratch_bytes(const struct mosaic_picture *picture);
/* Whole pixels where scale is 1, else between four of the canvas, in float32. */
void mosaic_picture(const struct mosaic_picture *picture, const struct mosaic *mosaic,
		    const uint8_t *const tile[MOSAIC_TILES], void *scratch, uint8_t *out);
/* The nearest of the canvas. numbers: [tile][MOSAIC_NUMBERS], what a value becomes, or NULL: what it is; the fill and
 * what is above are as they are. */
#define MOSAIC_NUMBERS 65536
void mosaic_mask(const struct mosaic_picture *picture, const struct mosaic *mosaic,
		 const uint8_t *const tile[MOSAIC_TILES], const uint16_t *numbers, void *scratch,
		 uint8_t *out);
