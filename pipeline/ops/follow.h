/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Boxes that go where the picture's ops put what is in them: [left, top, right, bottom] in pixels, as
 * torchvision's v2 transforms move them. Each op that changes places has a function in its struct op_impl
 * that moves them by the same draws; these are its means. Key points, [x, y, whether it is seen], do as the corners of boxes
 * do, but keep their places outside of the picture, where they are seen no more: the third is 0 then.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/spec/shape.h"

struct follow {               /* boxes and key points on a picture */
	double height, width; /* of the picture as it is by now */
	float (*box)[4];      /* borrowed */
	uint64_t n;
	float (*point)[3]; /* borrowed; so many rows of n_points */
	uint64_t n_rows, n_points;
	const int32_t
	    *flip; /* of a row: which point each one is in a mirror; NULL: the same; borrowed */
	bool is_mirrored;
	/* What a step across and one down the first picture are now: x of both, then y of both. Not of perspective and elastic_transform,
	 * of which that differs from place to place. */
	double step[4];
	struct draw_choice *choices; /* of each op; what was chosen comes there; borrowed */
};

/* The picture is now that window of it, which may reach beyond it; boxes are cut off at its edges. */
void follow_window(struct follow *follow, double top, double left, double height, double width);
void follow_scale(struct follow *follow, double height, double width); /* it has now that size */
void follow_mirror(struct follow *follow);                             /* left and right */
void follow_turn_over(struct follow *follow);                          /* top and bottom */
/* The picture has now that size, and pixel (x, y) of it is what stood at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]),
 * both divided by m[6] x + m[7] y + 1. A box is what is around its four corners, cut off at the edges. */
void follow_turn(struct follow *follow, const double m[8], double height, double width);

/* The first op that boxes cannot follow, from 0; ops->count: they can follow all of them. */
unsigned follow_stop(const struct op_list *ops, const struct shape *shape);
/* Through all ops on pictures, with these draws. */
void follow_ops(const struct op_list *ops, const struct shape *shape, const struct draw *draw,
		struct follow *follow);
/* Has the box a side of less than a pixel? */
bool follow_is_gone(const float box[4]);
