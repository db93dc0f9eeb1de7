/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The op patches: what size it gives. */

#include "pipeline/ops/op_run.h"

/* The size that a picture of this size gets, sides of whole patches; 0 x 0: it is too long and narrow. */
void patches_size(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		  uint64_t *ret_width);
