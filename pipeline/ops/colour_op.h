/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_OPS_COLOUR_OP_H
#define PIPELINE_OPS_COLOUR_OP_H

/* What colour ops and the augmentation policies have in common beside colour.h. */

#include "pipeline/picture.h"

struct steps_scratch;

/* colour_sharpness on one of the scratch's pictures; so is the result. 0 or PIPELINE_FAIL_.... */
int colour_op_sharpen(struct steps_scratch *scratch, float factor, struct picture *picture);

#endif
