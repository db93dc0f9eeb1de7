/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The op resize: what size it gives. */

#include "pipeline/spec/op.h"

/* The size that resize gives a picture of this size, as torchvision computes it. Not checked against
 * any limit; may be 0. */
void scale_size(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		uint64_t *ret_width);
