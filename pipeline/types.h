/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What pipelines, ops, formats and engines all speak of: fields, outcomes, the key of draws. */

#include "base/base.h"

#define PIPELINE_MAX_OPS 32
#define PIPELINE_MAX_FIELDS 23  /* one less than LAYOUT_MAX_FIELDS: ids are a field, too */
#define PIPELINE_MAX_VARIANTS 8 /* pipelines on one sample */
#define PIPELINE_MAX_PARTS 23   /* pictures of one sample: of those, and 15 views of one of them */
#define PIPELINE_MAX_TEXT 16384 /* bytes of a spec */

enum {
	PIPELINE_E_BAD = 1,  /* diag names the op and the parameter */
	PIPELINE_E_ROOM = 3, /* of pipeline_cut_make */
};

/* numbers as in shmring/layout.h's layout_dtype and layout_fail (asserted where both are seen) */
enum pipeline_dtype {
	PIPELINE_U8 = 1,
	PIPELINE_F16 = 2,
	PIPELINE_F32 = 3,
	PIPELINE_I64 = 4,
	PIPELINE_BF16 = 5,
	PIPELINE_I8 = 6,
	PIPELINE_I16 = 7,
	PIPELINE_I32 = 8,
	PIPELINE_U16 = 9,
	PIPELINE_U32 = 10,
	PIPELINE_U64 = 11,
	PIPELINE_F64 = 12,
	PIPELINE_BOOL = 13
};
/* numbers as in shmring/layout.h's layout_kind */
enum pipeline_kind {
	PIPELINE_DENSE = 0,
	/* shape[0] is the most that a sample has; zeros stand behind what it has */
	PIPELINE_RAGGED = 1,
	PIPELINE_TEXT = 2, /* the same of UTF-8 */
};
/* What a field has to do with the picture beside it. */
enum pipeline_role {
	PIPELINE_ALONE,
	PIPELINE_BOXES,
	PIPELINE_ROWS /* one for each box */,
	PIPELINE_MASK,
	PIPELINE_IMAGE /* another picture, which goes where the first one goes */,
	PIPELINE_POINTS /* x, y and whether it is seen, of each; with boxes a row for each of these */
	,
	PIPELINE_FILE,     /* a file of a medium of its own, which a view is of */
	PIPELINE_BOXES_3D, /* of point clouds: in place of PIPELINE_BOXES */
	PIPELINE_MEASURE /* a file of what was measured of each pixel, which goes where the picture goes */
};
/* What that is, as specs have it. */
enum pipeline_measure {
	PIPELINE_DEPTH = 1,
	PIPELINE_DISPARITY = 2,
	PIPELINE_FLOW = 3,
	PIPELINE_NORMALS = 4
};
enum pipeline_fail {
	PIPELINE_FAIL_DECODE = 4,
	PIPELINE_FAIL_REFUSED = 5,
	PIPELINE_FAIL_MEMORY = 8,
	PIPELINE_FAIL_OP = 9,
	PIPELINE_FAIL_FILTERED = 10 /* no fault: the pipeline's filter leaves the sample out */
};

struct pipeline_measured { /* of a field of that role */
	enum pipeline_measure what;
	uint32_t divisor; /* of the file's numbers; 0: as its format has them */
	uint32_t valid;   /* the field that says of each pixel whether it was measured */
	bool by_nearest;  /* no number is made of two, whatever the ops' filters */
};

struct pipeline_field { /* of one sample */
	char name[32];
	enum pipeline_dtype dtype;
	uint32_t ndim;
	uint64_t shape[4];
	uint64_t bytes;
	enum pipeline_kind kind;
	enum pipeline_role role;
	uint32_t lengths; /* not dense: the field that says how long the sample is */
	uint32_t fill;    /* of a mask: the label of what is outside of the picture */
	bool by_middle;   /* of a mask: nearest is Pillow's, else PyTorch's */
	uint32_t times;   /* of another picture: each side, of the first one's */
	bool no_colors;   /* and ops that move nothing are not done to it */
	struct pipeline_measured measured;
};

/* An op on whole batches, which jobs do to their own. */
enum pipeline_batch_kind { PIPELINE_MIXUP = 1, PIPELINE_CUTMIX = 2, PIPELINE_MOSAIC = 3 };
struct pipeline_batch_op {
	enum pipeline_batch_kind kind;
	double alpha, p;
};
struct pipeline_mosaic {
	double center[2], scale[2], min_size, min_visibility;
	uint64_t epochs;  /* the first so many have it; 0: all */
	uint8_t fill[12]; /* a value of each channel, as the image has them */
};
struct pipeline_batch {
	unsigned n; /* of op; 0: none */
	struct pipeline_batch_op op[2];
	struct pipeline_mosaic mosaic; /* where op[0] is that: the only one */
	bool is_planar;                /* the image is CHW */
	uint32_t classes;              /* of the label, afterwards */
};

/* Which seconds of a sound's or a video's file are the sample. */
struct pipeline_part {
	bool is_there; /* else all of it is */
	double start,
	    seconds;      /* start is 0 or more, and seconds above 0; infinite: to the file's end */
	unsigned channel; /* of a sound the one that is taken, from 1 on; 0: all */
};

struct pipeline_key { /* every random op is a function of this and its index */
	uint64_t seed, nonce, sample;
};
struct pipeline_error {
	enum pipeline_fail stage;
	int code;
	char text[48];
};
struct pipeline_work {   /* that a run has done so far, for all pipelines together */
	uint64_t passes; /* of rows through the fused ops */
	uint64_t ops;    /* others, one picture each */
	uint64_t copies; /* of pictures, for pipelines that go different ways from there */
};
/* Where one variant's fields go, each fields[f].bytes long, 64-byte aligned at field starts only. */
struct pipeline_out {
	void *field[PIPELINE_MAX_FIELDS];
};
