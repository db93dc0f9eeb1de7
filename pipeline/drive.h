/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DRIVE_H
#define PIPELINE_DRIVE_H

/* One sample through several programs with one decode. */

#include "pipeline/engine.h"

struct drive_part {
	const struct engine *engine; /* one that can be driven */
	const struct engine_program *program;
	struct engine_scratch *scratch;
	void *out; /* the image's field */
	/* drive_sample's own */
	struct engine_need need;
	uint32_t fed; /* rows of that */
};

/* As pipeline_run_sample, for n >= 1 parts: bad for one is bad for all. */
int drive_sample(struct decode *decode, struct drive_part *part, unsigned n, const void *data,
		 size_t size, const struct pipeline_key *key, struct pipeline_error *ret_error);

#endif
