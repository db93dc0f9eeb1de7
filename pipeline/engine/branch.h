/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ops one after another on a picture, for several programs that begin alike: each op is run once for
 * all that have it in common. */

#include "pipeline/engine/steps.h"

struct branch { /* one of them; all is borrowed */
	const struct steps *steps;
	struct steps_scratch *scratch;
	const struct draw *draw;
	struct picture picture; /* of who begins: in the scratch's buffers; else branch_run's own */
	void *out;              /* the image's field */
	uint32_t height, width; /* set by branch_run: of the picture that was finished */
	const uint32_t *alike;  /* as in struct engine_part */
	struct pipeline_work *work;
};

/* The ops from number `from` (from 0) on, then normalize, cast and layout, for all whose bit is set in
 * `who`: their ops before that are the same. The one of the lowest number has the picture. Where an op
 * refuses it for one whose number is below *failed, that becomes *failed, and its error *ret_error;
 * what only those from *failed on want is left out. */
void branch_run(struct branch *const branch[], uint32_t who, unsigned from, unsigned *failed,
		struct pipeline_error *ret_error);
