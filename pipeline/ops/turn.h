/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* torchvision's rotate and affine on a picture, for the ops of that name and for those that choose
 * among several (the augmentation policies). */

#include "pipeline/ops/pad.h"
#include "pipeline/ops/warp.h"
#include "pipeline/picture.h"

struct steps_scratch;

struct turn {             /* what to do */
	double angle;     /* degrees; counter-clockwise for rotate, clockwise for affine */
	double shift[2];  /* pixels to the right and down; whole numbers; affine */
	double scale;     /* above 0; affine */
	double scale_y;   /* of heights, where that is another one; or 0 */
	double shear[2];  /* degrees; affine */
	bool has_center;  /* or the picture's middle */
	double center[2]; /* pixels from the left and from the top */
	bool expand;      /* rotate: the picture becomes as large as the turned one needs */
	enum warp_filter filter;
	enum pad_mode border; /* of what is outside */
	uint8_t fill[3];      /* of PAD_CONSTANT */
};

/* The picture through the inverse matrix (warp.h), with turn's filter and border, in another size. 0,
 * PIPELINE_FAIL_REFUSED, PIPELINE_FAIL_MEMORY. */
int turn_warp(struct steps_scratch *scratch, const struct turn *turn, const double matrix[6],
	      uint64_t height, uint64_t width, struct picture *picture);
/* torchvision.transforms.v2.functional.rotate and .affine of a Pillow image. The picture is one of the
 * scratch's, as is the result. 0, PIPELINE_FAIL_REFUSED, PIPELINE_FAIL_MEMORY. */
int turn_rotate(struct steps_scratch *scratch, const struct turn *turn, struct picture *picture);
int turn_affine(struct steps_scratch *scratch, const struct turn *turn, struct picture *picture);
