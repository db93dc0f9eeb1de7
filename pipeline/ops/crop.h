/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "pipeline/picture.h"
#include "pipeline/spec/op.h"

/* The part of a picture of that size that center_crop takes; its fill is around it where it is smaller
 * than the op's size. */
void crop_middle(const struct op *op, uint32_t height, uint32_t width, struct picture_box *ret);
/* Is center_crop's fill black? */
bool crop_fills_black(const struct op *op);
