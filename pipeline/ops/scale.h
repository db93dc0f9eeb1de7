/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The op resize, and those that draw the size: what size they give. */

#include "pipeline/ops/op_run.h"

/* The size that resize gives a picture of this size, as torchvision computes it. Not checked against
 * any limit; may be 0. */
void scale_size(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		uint64_t *ret_width);
/* Is it resize, or one of those? */
bool scale_is_op(enum op_id id);
/* The size that one of them gives a picture of this size, of which it drew. As scale_size. */
void scale_to(const struct op *op, const struct op_drawn *drawn, uint32_t height, uint32_t width,
	      uint64_t *ret_height, uint64_t *ret_width);
