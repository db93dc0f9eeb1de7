/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Point clouds: what the op "cloud" asks for, a file's bytes to its points, what ops do to these, and what fills the
 * output behind them. Points are rows of `channels` float32, of which the first three are x, y and z.
 */

#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"
#include "pipeline/spec/op.h"

#define CLOUD_MOST_CHANNELS 32              /* that come out */
#define CLOUD_MOST_COLUMNS 64               /* that a file may have */
#define CLOUD_MOST_READ (UINT64_C(1) << 26) /* numbers that are taken of one file */

enum cloud_pick { CLOUD_RANDOM = 0, CLOUD_EVEN = 1, CLOUD_FIRST = 2 };     /* as op_pick_words */
enum cloud_padding { CLOUD_REPEAT = 0, CLOUD_ZERO = 1, CLOUD_RAGGED = 2 }; /* as op_padding_words */

enum cloud_axis { CLOUD_X = 0, CLOUD_Y = 1, CLOUD_Z = 2, CLOUD_ANY = 3 }; /* as op_axis_words */

struct cloud {
	uint32_t points; /* the most that are taken of a file */
	uint32_t most;   /* that come out, behind the ops */
	unsigned channels;
	unsigned raw; /* columns of a file that is nothing but float32; 0: such are refused */
	unsigned
	    read;     /* numbers of each point that are taken of a file: channels, or of a mesh 3 */
	bool surface; /* points are drawn on faces */
	unsigned normals; /* the channel where a normal's x is; 0: there are none */
	unsigned end;     /* ops from number 1 up to this one are on its points */
	enum cloud_pick pick;
	enum cloud_padding padding;
	unsigned n_properties; /* 0: the first channels of the file */
	char property[CLOUD_MOST_CHANNELS][OP_MAX_TEXT + 1];
};

/* Of the points' objects: x, y, z, dx, dy, dz, yaw, perhaps vx and vy, and what comes with them. */
struct cloud_boxes {
	float *at; /* n rows */
	size_t n;
	unsigned columns;
};
#define CLOUD_BOX_NUMBERS 7       /* numbers of one that it must have */
#define CLOUD_BOX_WITH_VELOCITY 9 /* from so many on, the two behind these are vx and vy */

struct cloud_part { /* what an op works on */
	const struct cloud *cloud;
	float *at;                /* n rows */
	size_t n;                 /* an op may lower it: the first so many stay */
	struct cloud_boxes boxes; /* none: n is 0 */
};

/* ---- cloud.c ---- */

/* Of the list whose first op that is, and the ops up to number `end`. 0, or PIPELINE_E_BAD with diag. */
int cloud_init(const struct op_list *ops, unsigned end, struct cloud *ret, struct diag *diag);
/* The part's points are those that stay, in their order. */
void cloud_keep(struct cloud_part *part, bool (*stays)(void *arg, const float *point), void *arg);
/* The first `count` are drawn of all. */
void cloud_shuffle_first(struct philox_seq *seq, size_t count, struct cloud_part *part);
/* At most so many of the part's points; those are its first ones then. */
void cloud_choose(enum cloud_pick pick, uint32_t points, struct philox_seq *seq,
		  struct cloud_part *part);
/* All ops on points behind the first. */
void cloud_ops(const struct op_list *ops, const struct pipeline_key *key, struct cloud_part *part);
/* The part's points to out, which has cloud->most rows, and what is behind them. */
void cloud_fill(const struct cloud_part *part, float *out);

/* ---- cloud_boxes.c ---- */

/* Can they follow all of the list's ops? 0, or PIPELINE_E_BAD with diag. */
int cloud_boxes_check(const struct op_list *ops, const struct cloud *cloud, struct diag *diag);
/* As ops move points by what they drew. */
void cloud_boxes_range(const struct op *op, const struct op_drawn *drawn,
		       const struct cloud_boxes *boxes);
void cloud_boxes_rotate(const struct op *op, const struct op_drawn *drawn,
			const struct cloud_boxes *boxes);
void cloud_boxes_flip(const struct op *op, const struct op_drawn *drawn,
		      const struct cloud_boxes *boxes);
void cloud_boxes_scale(const struct op *op, const struct op_drawn *drawn,
		       const struct cloud_boxes *boxes);
void cloud_boxes_translate(const struct op *op, const struct op_drawn *drawn,
			   const struct cloud_boxes *boxes);
void cloud_boxes_to_middle(const struct op *op, const struct op_drawn *drawn,
			   const struct cloud_boxes *boxes);
/* Behind all ops: yaw becomes -pi to pi. */
void cloud_boxes_end(const struct cloud_boxes *boxes);
/* It left the range, or never was anywhere. */
bool cloud_boxes_is_gone(const float *box);

/* ---- cloud_ops.c ---- */

/* What rotation draws: whether it is done, its matrix, and about an axis of the three its angle. */
enum { CLOUD_DRAWN_MATRIX = 1, CLOUD_DRAWN_ANGLE = 10 };
/* x, y and z by a matrix of 3 x 3. */
void cloud_turn(const double *matrix, float *at);
bool cloud_is_in_range(void *range, const float *point); /* six doubles */

/* The op "normalize", of each channel. */
void cloud_normalize(const struct op_list *ops, const struct op *op, struct cloud_part *part);

/* ---- cloud_read.c ---- */

struct cloud_room;                           /* memory that is kept from sample to sample */
int cloud_room_new(struct cloud_room **ret); /* 0 or -ENOMEM */
void cloud_room_free(struct cloud_room *room);
/* The points of a file (hostile bytes), without those that are nowhere: in the room, until the next one. watch is told how
 * many there are before they are read. 0, or PIPELINE_E_BAD with *ret_error. */
int cloud_read(const struct cloud *cloud, struct cloud_room *room,
	       void (*watch)(void *arg, uint32_t points, uint32_t channels), void *watch_arg,
	       const void *data, size_t size, struct cloud_part *ret,
	       struct pipeline_error *ret_error);
/* Those that the pipeline begins with: a part of the read ones, or drawn on the faces between them; in the room, too. 0, or
 * PIPELINE_E_BAD with *ret_error. */
int cloud_take(struct cloud_room *room, struct philox_seq *seq, struct cloud_part *part,
	       struct pipeline_error *ret_error);
