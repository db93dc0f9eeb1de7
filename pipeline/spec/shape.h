/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a list of ops means as a whole: is its order sensible, and what comes out of it. */

#include "pipeline/spec/op.h"

/* What the op patches makes of pictures, whose size is known only then. */
struct shape_patches {
	uint32_t most;  /* that a picture has; 0: there is no such op */
	unsigned size;  /* pixels, of their sides */
	unsigned block; /* patches, of the sides of the squares in which they are told */
	unsigned times; /* that a patch has the picture's values */
	bool is_timed;  /* the grid says so, before rows and columns */
};

struct shape { /* of the image that comes out */
	uint32_t height, width;
	unsigned channels; /* 3, or 1: the first of three that are equal (colour.h); or of bands */
	enum pipeline_dtype dtype;
	enum op_order order;
	unsigned views; /* pictures that are made of one, each of that size; 0: one, and the
			     * field has no dimension for it */
	unsigned
	    frames; /* of a clip, each a picture of that size; 0: no video, and no dimension for it */
	struct shape_patches patches;
	unsigned bands; /* numbers of so many channels, which are no 8-bit pictures; 0: they are */
	bool is_volume;
	uint32_t depth;     /* slices of it, each a picture of that size; 0: as height */
	unsigned pixel_ops; /* ops that work on 8-bit pictures: the first so many, decode too */
	bool is_size;       /* it is the picture's height and width, and no pixels */
	bool by_exif;       /* pictures are turned as their EXIF says */
	bool by_record;     /* they come in records */
	bool by_members;    /* or beside the other files of their samples */
	const struct op *normalize; /* borrowed from the list, or NULL */
	unsigned draws; /* the number of the first op, where others of the sample draw before it */
	/* The number (from 1) of the op that makes what comes out of bytes, which finish.c leaves as they are, as
	 * numbers of dtype; 0: none. */
	unsigned raw;
	uint32_t finished; /* bit i: op number i (from 0) works on what finish.c made */
};

/* How samples come to a list's first op, one with an intake: by_record and by_members. */
void shape_intake(const struct op *first, struct shape *shape);
/* 0, or PIPELINE_E_BAD with diag. */
int shape_infer(const struct op_list *ops, struct shape *ret, struct diag *diag);
/* Values of a patch. */
size_t shape_patch_values(const struct shape *shape);
/* Of a picture behind that op: how many rows and columns of patches there are, no more in all than there is room for. */
void shape_patch_grid(const struct shape_patches *patches, uint32_t height, uint32_t width,
		      uint32_t *ret_rows, uint32_t *ret_columns);
