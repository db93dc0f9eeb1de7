/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The seam between a pipeline and what runs it.
 *
 * An engine compiles a list of ops to a program (immutable, shared) and runs programs with scratch
 * (one a run, not shared). The fused engine is driven: it is told of a picture's size, says what
 * part of it it needs, is fed the rows of that part as they are decoded, and is done with the last
 * one. So several programs share one decode (drive.h), and what ops they have in common behind it.
 * The tests' plain engine, whole pictures and op after op (tests/pipeline/engine_plain.c), is the oracle
 * that it is held against: both give the same bytes for every input, errors included.
 */

#include "pipeline/formats/decode.h"
#include "pipeline/spec/op.h"
#include "pipeline/spec/shape.h"

#define ENGINE_PIXELS "exact-1" /* Pillow's and torchvision's; a new word where pixels change */

struct engine_program; /* each engine's own; it begins as it likes */
struct engine_scratch;

struct engine_need {            /* of a picture */
	unsigned shift;         /* its sides halved so often (decode_reduce) */
	struct picture_box box; /* rows and columns of that; no rows: nothing */
};

/* One of several programs on one picture. With zeros behind `out` it is alone. */
struct engine_part {
	const struct engine_program *program;
	struct engine_scratch *scratch;
	void *out; /* the image's field; for each picture */
	const struct draw_choice
	    *choices; /* of its ops, where boxes had a part in them; borrowed */
	/* bit i of [k]: the first k ops of part number i are this one's, too; k: up to the number of
	 * its ops on pictures */
	uint32_t alike[PIPELINE_MAX_OPS + 1];
	struct engine_need need; /* set by begin: what is to be fed */
	uint32_t fed;            /* whoever feeds: rows of it so far */
	struct pipeline_work work;
	uint32_t height, width; /* set by end: of the picture that was finished */
};

struct engine {
	const char *name;
	const char *pixels;
	/* ops and shape outlive the program. 0 or -ENOMEM; the caller owns *ret. */
	int (*compile)(const struct op_list *ops, const struct shape *shape,
		       struct engine_program **ret);
	void (*program_free)(struct engine_program *program);
	int (*scratch_new)(const struct engine_program *program, struct engine_scratch **ret);
	void (*scratch_free)(struct engine_scratch *scratch);

	/* One picture, in three steps, for the parts whose bit is set in `who`; NULL where an engine
	 * only does whole samples (run). Nothing is allocated once pictures of these sizes were
	 * met. What is known of a picture and draws come first; each part's need is then what it is
	 * to be fed. begin may be called again in place of going on. 0, or PIPELINE_E_BAD with
	 * *ret_error. */
	int (*begin)(struct engine_part part[], uint32_t who, const struct pipeline_key *key,
		     const struct decode_about *about, struct pipeline_error *ret_error);
	/* The next rows of what it needs. */
	void (*feed)(struct engine_part *part, const struct decode_band *band);
	/* After its last row: what is left to do. 0, or PIPELINE_E_BAD with *ret_error: that of the
	 * first part that fails. */
	int (*end)(struct engine_part part[], uint32_t who, struct pipeline_error *ret_error);
	/* After every sample, good or bad: gives memory back that only an unusual picture needed.
	 */
	void (*trim)(struct engine_part *part);

	/* As pipeline_run_sample, of one program alone. */
	int (*run)(const struct engine_program *program, struct engine_scratch *scratch,
		   const void *data, size_t size, const struct pipeline_key *key, void *out,
		   struct pipeline_error *ret_error);
};

extern const struct engine engine_fused; /* engine_fused.c: one pass over rows in the cache */
