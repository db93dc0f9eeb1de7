/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One pass of rows, for one or for several who want the same part of a picture resized alike. */

#include "pipeline/engine/finish.h"
#include "pipeline/engine/fuse_shape.h"
#include "pipeline/engine/plane.h"

struct fuse_sink { /* where what a plan gives goes; all is borrowed */
	const struct fuse_plan *plan;
	const struct finish *finish; /* into out, a field of the plan's frame, or else: */
	void *out;
	const struct picture *picture; /* of that size */
};

struct fuse_fan { /* of one run; all zero at the start */
	/* of one picture */
	unsigned n;
	struct fuse_sink sink[PIPELINE_MAX_PARTS];
	struct fuse_plan plan; /* the pass: the window around those of all, and nothing behind it */
	bool has_planes;       /* all sinks are fields of planes */
	const struct plane_kernels *kernels;
	struct picture_buffer room;
	uint8_t *row[3], *scratch; /* in room */
};

void fuse_fan_fini(struct fuse_fan *fan);

/* The first sink. */
void fuse_fan_start(struct fuse_fan *fan, const struct fuse_sink *sink);
/* One more, if one pass for all is not more work than one more pass. */
bool fuse_fan_add(struct fuse_fan *fan, const struct fuse_sink *sink);

/* Once for a picture, with all sinks there. 0 or PIPELINE_FAIL_MEMORY. */
int fuse_fan_begin(struct fuse_fan *fan);
/* Row y of the plan's window is row *ret_y of the sink's frame. False: it is not shown there. */
bool fuse_fan_place(const struct fuse_fan *fan, const struct fuse_sink *sink, uint32_t y,
		    uint32_t *ret_y);
/* n rows of channel c from row y of the plan's window on, to where they belong, if fan->has_planes. */
void fuse_fan_plane(const struct fuse_fan *fan, unsigned c, const uint8_t *const from[], uint32_t y,
		    uint32_t n);
/* n rows of all three. */
void fuse_fan_rows(const struct fuse_fan *fan, const uint8_t *const *const from[3], uint32_t y,
		   uint32_t n);
