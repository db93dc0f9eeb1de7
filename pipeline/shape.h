/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_SHAPE_H
#define PIPELINE_SHAPE_H

/* What a list of ops means as a whole: is its order sensible, and what comes out of it. */

#include "pipeline/op.h"

struct shape { /* of the image that comes out */
	uint32_t height, width;
	enum pipeline_dtype dtype;
	enum op_order order;
	unsigned pixel_ops; /* ops that work on 8-bit pictures: the first so many, decode too */
	const struct op *normalize; /* borrowed from the list, or NULL */
};

/* 0, or PIPELINE_E_BAD with diag. */
int shape_infer(const struct op_list *ops, struct shape *ret, struct diag *diag);

/* The size that resize with one number gives a picture of this size, as torchvision computes it;
 * with two numbers, those. Not checked against any limit. */
void shape_resized(const struct op *op, uint32_t height, uint32_t width, uint64_t *ret_height,
		   uint64_t *ret_width);

#endif
