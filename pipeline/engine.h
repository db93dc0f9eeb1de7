/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_ENGINE_H
#define PIPELINE_ENGINE_H

/*
 * The seam between a pipeline and what runs it.
 *
 * An engine looks at the whole list of ops, says whether it can run it, compiles it to a program of
 * its own (immutable, shared), and runs programs with scratch of its own (one a run, not shared).
 * pipeline.c takes the first engine of its table that can; the plain one is last and can run
 * everything. Engines with the same `pixels` give the same bytes for every input, errors included,
 * so which of them ran is no part of a pipeline's name; the tests hold each against the plain one.
 */

#include "pipeline/op.h"
#include "pipeline/shape.h"

#define ENGINE_PIXELS "exact-1" /* Pillow's and torchvision's; a new word where pixels change */

struct engine_program; /* each engine's own; it begins as it likes */
struct engine_scratch;

struct engine {
	const char *name;
	const char *pixels;
	bool (*can_run)(const struct op_list *ops);
	/* ops and shape outlive the program. 0 or -ENOMEM; the caller owns *ret. */
	int (*compile)(const struct op_list *ops, const struct shape *shape,
		       struct engine_program **ret);
	void (*program_free)(struct engine_program *program);
	int (*scratch_new)(const struct engine_program *program, struct engine_scratch **ret);
	void (*scratch_free)(struct engine_scratch *scratch);
	/* As pipeline_run_sample; out is the image's field. Allocates nothing once it has met
	 * pictures of these sizes; makes no system call but for memory. */
	int (*run)(const struct engine_program *program, struct engine_scratch *scratch,
		   const void *data, size_t size, const struct pipeline_key *key, void *out,
		   struct pipeline_error *ret_error);
};

extern const struct engine engine_plain; /* engine_plain.c: op after op on whole pictures */
extern const struct engine engine_crop;  /* engine_crop.c: decodes only what the first crop takes */

#endif
