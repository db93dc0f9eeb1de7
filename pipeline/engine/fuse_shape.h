/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One step from a picture to another: a part of it, resized, a part of that, flipped, black around. */

#include "pipeline/ops/resize.h"
#include "pipeline/picture.h"

struct fuse_size {
	uint32_t height, width;
};

struct fuse_plan {
	unsigned next;             /* the first op that is not in it */
	unsigned shift;            /* the picture's sides are halved so often (reduce.h) */
	struct picture_box source; /* of the picture; where it is not resized, all that is shown */
	struct resize_cut cut;     /* of it */
	bool resized;
	enum filter_id filter;
	struct fuse_size to;       /* what source becomes */
	struct picture_box window; /* of that: what is shown */
	bool mirrored, turned;     /* left and right, top and bottom exchanged */
	struct fuse_size frame;    /* the picture that comes out */
	uint32_t top, left;        /* of the window (flipped already) in the frame, black around */
};
