/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Masks: pictures of labels that go where the ops of the picture beside them put what they are labels of. */

#include "pipeline/engine/steps.h"

struct mask; /* what is done to one field of masks; immutable */

/* What is wrong with the table of colours, else NULL. */
const char *mask_check_colors(const struct op_list *ops);
/* field, a mask, gets the shape and the bytes that the picture's ops leave it. The caller owns *ret. 0 or
 * -ENOMEM. Boxes can follow all of the ops (follow_stop()), and so can masks. */
int mask_new(const struct op_list *ops, const struct shape *shape, struct pipeline_field *field,
	     struct mask **ret);
void mask_free(struct mask *mask);
/* A mask's file (hostile bytes) through these ops into out. The picture has height x width pixels, and so
 * must the mask. 0, or PIPELINE_E_BAD with *ret_error. */
int mask_run(const struct mask *mask, struct steps_scratch *scratch, const void *data, size_t size,
	     uint32_t height, uint32_t width, const struct draw *draw, void *out,
	     struct pipeline_error *ret_error);
