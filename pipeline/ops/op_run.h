/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What ops do: one struct op_impl for each, in the file named after the op or its family, found
 * through op_tbl.h. The rest of the room knows ops only through this table.
 *
 * An op works in two steps. `draw` turns the sample's numbers into what the op will do to a picture
 * of this size: a place, an angle, yes or no. `run` does that, without drawing again. So tests can
 * tell the draws to another program (tests/pipeline/parity.py) and look at their distribution
 * without any pixel.
 */

#include "base/philox.h"
#include "pipeline/picture.h"
#include "pipeline/spec/op.h"
#include "pipeline/spec/shape.h"

struct steps_scratch;
struct wave_part;
struct cloud_boxes;
struct cloud_part;
struct volume_part;
struct draw;
struct follow;

enum op_stage {
	OP_STAGE_DECODE,  /* the first op, and only it */
	OP_STAGE_PICTURE, /* works on 8-bit pictures */
	OP_STAGE_WAVE,    /* works on waveforms (wave.h) */
	OP_STAGE_SOUND,   /* makes spectrograms, or works on them (mel.h) */
	OP_STAGE_CLOUD,   /* works on points (cloud.h) */
	OP_STAGE_FINISH,  /* normalize, cast, layout (shape.c, finish.c) */
	/* behind all of these, in this order (tail.c): */
	OP_STAGE_FILTER, /* leaves samples out */
	OP_STAGE_LABEL,  /* works on the label */
	OP_STAGE_BATCH,  /* works on whole batches, in libaccess */
};

#define OP_MAX_DRAWN 64

struct op_drawn {
	double number[OP_MAX_DRAWN]; /* each op's own; zero at the start */
	struct philox_seq seq;       /* more of the op's numbers, for those who need many */
};

struct op_impl {
	enum op_stage stage;
	/* What comes out of shape's size (0: not known); NULL: the same. Also says what is wrong
	 * with parameters that are right one by one: a sentence of what and how to mend it, else
	 * NULL. */
	const char *(*shape)(const struct op *op, struct shape *shape);
	/* Draws for a picture of that size from drawn->seq. NULL: nothing is random. */
	void (*draw)(const struct op *op, uint32_t height, uint32_t width, struct op_drawn *drawn);
	/* In draw's place, where the boxes on the picture have a part in it; at most DRAW_CHOSEN numbers, and zeros
	 * where there are no boxes. */
	void (*choose)(const struct op *op, const struct follow *follow, struct op_drawn *drawn);
	/* Does the op change from nonce to nonce with these values? NULL: if it draws. */
	bool (*is_random)(const struct op *op);
	/* Changes *picture, which stands in the scratch's buffers, in place or for another one
	 * (steps_begin, steps_end). 0, PIPELINE_FAIL_REFUSED, _MEMORY; _OP from steps_refuse. */
	int (*run)(struct steps_scratch *scratch, const struct op *op, const struct op_drawn *drawn,
		   struct picture *picture);
	/* Moves boxes on the picture as run moves what is in them (follow.h). NULL: they cannot follow, but
	 * where all stays in its place. */
	void (*follow)(const struct op *op, const struct op_drawn *drawn, struct follow *follow);
	bool stays;
	/* It works on floats alone: by `finished`, and in front of the finishing ops on value / 255 (shape.raw). */
	bool floats;
	/* Writes over what finish.c has made of a picture, for ops that may stand behind
	 * normalize; NULL: may not. out has shape's size, type and order. */
	void (*finished)(const struct shape *shape, const struct op *op,
			 const struct op_drawn *drawn, void *out);
	/* Of OP_STAGE_WAVE in place of run: changes the waveform. Noise goes on in drawn->seq from channel to channel. NULL:
	 * done elsewhere. */
	void (*wave)(const struct op *op, struct op_drawn *drawn, const struct wave_part *part);
	/* The same of OP_STAGE_CLOUD and points. */
	void (*cloud)(const struct op *op, struct op_drawn *drawn, struct cloud_part *part);
	/* Moves boxes as cloud, before it, moved the points in them (cloud_boxes.c). NULL: they stay. */
	void (*cloud_boxes)(const struct op *op, const struct op_drawn *drawn,
			    const struct cloud_boxes *boxes);
	/* Of volumes, in place of draw and run: draws from drawn->seq, and says what is taken, or done to the numbers. NULL: it
	 * is of pictures. */
	void (*volume)(const struct op *op, struct op_drawn *drawn, struct volume_part *part);
};

/* op_run.c */
const struct op_impl *op_impl(enum op_id id);
bool op_is_random(const struct op *op);
/* What op number index (from 0) of the pipeline draws for a picture of that size. */
void op_draw(const struct op *op, unsigned index, const struct draw *draw, uint32_t height,
	     uint32_t width, struct op_drawn *ret);
/* Of an op whose parameters are p and then spans, up to `last`: the first number says whether it is done, those behind it are drawn
 * from each span, in its place. And does that change? */
void op_draw_spans(const struct op *op, unsigned last, struct op_drawn *drawn);
bool op_spans_vary(const struct op *op, unsigned last);
extern const struct op_impl op_run_decode, op_run_finish;
