/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Further pictures of a sample: fields of role PIPELINE_IMAGE. */

#include "pipeline/forms/packed.h"
#include "pipeline/spec/views.h"

struct companion; /* what is done to one of these fields; immutable */
struct pipeline;
struct pipeline_run;

struct companion_ends { /* normalize of some of them, in place of the first picture's */
	unsigned n;
	struct op op[PIPELINE_MAX_OPS];
};

/* ---- compiling; 0, PIPELINE_E_BAD with diag, -ENOMEM ---- */

/* Takes those out of the list. */
int companion_take_ends(struct op_list *ops, struct companion_ends *ret, struct diag *diag);
/* Field number f has the name of that view: it has its ops, the first of which draws by that number. */
int companion_set_view(struct pipeline *pipeline, unsigned f, const struct op_list *whole,
		       const struct views_one *one, unsigned draws, struct diag *diag);
/* All others of the pipeline's fields, which follow its first picture. */
int companion_set_all(struct pipeline *pipeline, struct diag *diag);
void companion_free(struct companion *companion);
/* Has it random ops of its own? */
bool companion_is_random(const struct companion *companion);

/* ---- one sample ---- */

/* Room for those of that pipeline: 0 or -ENOMEM. */
int companion_run_add(struct pipeline_run *run, const struct pipeline *pipeline);
/* From the sample's record into their fields. The first picture has height x width pixels; nothing is open. 0, or PIPELINE_E_BAD with *ret_error. */
int companion_run_all(struct pipeline_run *run, const struct pipeline *pipeline,
		      const struct packed *record, uint32_t height, uint32_t width,
		      const struct pipeline_key *key, const struct pipeline_out *out,
		      struct pipeline_error *ret_error);
