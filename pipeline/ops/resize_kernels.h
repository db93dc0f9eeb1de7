/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The two passes of a resize, in as many makes as there are kinds of machines. All give the same
 * bytes; resize_plain is the reference. */

#include "pipeline/ops/filter.h"
#include "pipeline/picture.h"

typedef void resize_pass_fn(const struct filter_table *table, const struct picture *from,
			    const struct picture *to);

struct resize_kernels {
	resize_pass_fn *across; /* rows of to->height; table->out = to->width */
	resize_pass_fn *down;   /* table->out = to->height; the widths are equal */
};

extern const struct resize_kernels resize_plain;
/* NULL where the machine lacks AVX2. */
const struct resize_kernels *resize_avx2(void);
