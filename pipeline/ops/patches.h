/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The op patches: what size it gives, and what its patches are. */

#include "pipeline/ops/op_run.h"

/* The size that a picture of this size gets, sides of whole patches; 0 x 0: it is too long and narrow. */
void patches_size(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		  uint64_t *ret_width);
/* Values of a patch. */
size_t patches_values(const struct shape *shape);
/* Of a picture behind that op: how many rows and columns of patches there are, no more in all than there is room for. */
void patches_grid(const struct shape_patches *patches, uint32_t height, uint32_t width,
		  uint32_t *ret_rows, uint32_t *ret_columns);
