/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Ops on a picture that shows the same as another one, so many times as high and wide (super-resolution): each
 * takes the part that it takes of the other one, to the pixel. */

#include "pipeline/engine/steps.h"

/* Can the op be done so? Those that turn cannot, nor what draws a place of its own in each picture. */
bool enlarge_can(const struct op *op);
/* Op number i of the list, which draws for the other picture. As steps_one. */
int enlarge_one(const struct op_list *ops, struct steps_scratch *scratch, unsigned i,
		unsigned times, struct picture *picture, const struct draw *draw,
		struct pipeline_error *ret_error);
