/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What stands behind a picture's ops in a spec: the filter, the label's ops, those on whole batches. */

#include "pipeline/spec/label.h"
#include "pipeline/spec/shape.h"
#include "pipeline/spec/label_filter.h"

struct tail {
	unsigned first; /* number of ops before it */
	struct label_filter label_filter;
	struct label label;
	struct pipeline_batch batch;
};

/* 0, or PIPELINE_E_BAD with diag. */
int tail_infer(const struct op_list *ops, const struct shape *shape, struct tail *ret,
	       struct diag *diag);
/* Takes out of ops what is each job's own and makes no other samples: the ops on batches, the classes
 * that a filter names. They stay in the tail, and lists in the
 * pool. */
void tail_strip(const struct tail *tail, struct op_list *ops);
