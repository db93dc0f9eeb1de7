/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_FINISH_H
#define PIPELINE_FINISH_H

/* The last step of a pipeline: normalize, cast and layout of an 8-bit picture into the slot. */

#include "pipeline/picture.h"
#include "pipeline/shape.h"

struct finish { /* immutable once made */
	enum pipeline_dtype dtype;
	enum op_order order;
	union { /* what a value of a channel becomes */
		float f32[3][256];
		uint16_t half[3][256]; /* float16 or bfloat16 */
	} table;
};

void finish_init(struct finish *finish, const struct shape *shape);
/* A picture of shape's size to out, which holds exactly the field. */
void finish_run(const struct finish *finish, const struct picture *picture, void *out);

/* Bytes of one value. */
unsigned finish_value_bytes(enum pipeline_dtype dtype);

#endif
