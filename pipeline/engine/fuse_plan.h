/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the first ops of a pipeline do to one picture, as one step: a part of it, resized, a part of
 * that, flipped, black around. */

#include "pipeline/engine/reduce.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/filter.h"
#include "pipeline/picture.h"
#include "pipeline/spec/op.h"

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

/* The plan for a picture of this size: ops from number `from` on, below `end`, as many as one step can
 * do. What would be refused is not in it, but left to the op. */
void fuse_plan_make(const struct op_list *ops, unsigned from, unsigned end, const struct draw *draw,
		    uint32_t height, uint32_t width, struct fuse_plan *ret);
/* The same plan, of a picture that is decoded smaller. */
void fuse_plan_reduce(struct fuse_plan *plan, const struct reduce *reduce);
