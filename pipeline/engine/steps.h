/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ops one after another, each on a whole picture: the reference, shared by the engines that
 * differ only in how the first picture comes about. */

#include "pipeline/engine/finish.h"
#include "pipeline/engine/reduce.h"
#include "pipeline/engine/rescale.h"
#include "pipeline/formats/decode.h"
#include "pipeline/ops/draw.h"
#include "pipeline/ops/op_run.h"

struct steps {                     /* immutable */
	const struct op_list *ops; /* borrowed */
	struct shape shape;
	struct finish finish;
};

#define STEPS_MAX_VIEWS 10

struct steps_scratch {
	struct decode *decode;
	struct rescale rescale;
	struct picture_buffer buffer[2];
	unsigned at; /* which of them the picture stands in; the next op writes into the other */
	struct picture_buffer work;               /* of the op that runs */
	struct picture_buffer kept;               /* of one that runs others */
	struct picture_box view[STEPS_MAX_VIEWS]; /* shape.views parts of the picture */
	const char *why;                          /* the last op that refused */
};

/* For ops. A picture of that size in the buffer where the op's picture is not; 0 or the error. */
int steps_begin(struct steps_scratch *scratch, uint64_t height, uint64_t width,
		struct picture *ret);
/* made, which stands there, is what the op gives: *picture. */
void steps_end(struct steps_scratch *scratch, const struct picture *made, struct picture *picture);
/* The picture resized. 0 or the error. */
int steps_scale(struct steps_scratch *scratch, enum filter_id filter, uint64_t height,
		uint64_t width, struct picture *picture);
/* size bytes of scratch memory for one op, aligned to 32; NULL: no memory. */
void *steps_work(struct steps_scratch *scratch, size_t size);
/* The same for one that runs others, which have steps_work. */
void *steps_keep(struct steps_scratch *scratch, size_t size);
/* The op cannot be done to this picture; why is constant, at most 32 bytes. The error to return. */
int steps_refuse(struct steps_scratch *scratch, const char *why);

int steps_new(const struct op_list *ops, const struct shape *shape, struct steps **ret);
void steps_free(struct steps *steps);
int steps_scratch_new(struct steps_scratch **ret);
void steps_scratch_free(struct steps_scratch *scratch);

/* One op that works on pictures. 0, or PIPELINE_E_BAD with *ret_error. */
int steps_op(struct steps_scratch *scratch, const struct op *op, const struct op_drawn *drawn,
	     struct picture *picture, struct pipeline_error *ret_error);

/* Op number i (from 0) on the picture. As steps_op. */
int steps_one(const struct steps *steps, struct steps_scratch *scratch, unsigned i,
	      struct picture *picture, const struct draw *draw, struct pipeline_error *ret_error);
/* normalize, cast and layout of a picture, or of its views, into out, and what follows. The picture
 * stays. */
void steps_finish(const struct steps *steps, const struct steps_scratch *scratch,
		  const struct picture *picture, const struct draw *draw, void *out);
/* What ops behind normalize write over one finished picture. */
void steps_finished(const struct steps *steps, const struct draw *draw, void *out);

/* After every sample, good or bad: gives back what only an unusual picture needed, so that the
 * outcome of the next one does not depend on it. */
void steps_trim(struct steps_scratch *scratch);

/* The error of an op that returned r (enum pipeline_fail). Returns PIPELINE_E_BAD. */
int steps_fail(struct pipeline_error *ret_error, const struct op *op, int r);
