/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the first ops of a pipeline do to one picture, as one step (fuse_shape.h). */

#include "pipeline/engine/fuse_shape.h"
#include "pipeline/engine/reduce.h"

/* The plan for a picture of this size: ops from number `from` on, below `end`, as many as one step can
 * do. What would be refused is not in it, but left to the op. */
void fuse_plan_make(const struct op_list *ops, unsigned from, unsigned end, const struct draw *draw,
		    uint32_t height, uint32_t width, struct fuse_plan *ret);
/* The same plan, of a picture that is decoded smaller. */
void fuse_plan_reduce(struct fuse_plan *plan, const struct reduce *reduce);
