/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Steps of plane.h and finish.h that some machines can do as one, without the bytes between them. */

#include "pipeline/engine/finish.h"
#include "pipeline/engine/plane.h"

struct fuse_down {                       /* rows y to end - 1, of one channel */
	const struct plane_table *table; /* PLANE_DOWN */
	uint32_t y, end;
	/* Rows 2 i and 2 i + 1, in turn as those of plane_best(), are pair[i & mask], and where an
	 * output has more pairs they follow that. */
	const uint8_t *const *pair;
	uint32_t mask;
	const struct finish *finish; /* not to PIPELINE_U8 */
	unsigned c;
	size_t width;   /* in columns */
	uint8_t *out;   /* the first row's place, which holds exactly that */
	ptrdiff_t step; /* to the next one's, in bytes */
};

struct fuse_kernels {
	/* plane_kernels.down of each row, and finish_kernels.plane of what it gives. */
	void (*down)(const struct fuse_down *down);
};
/* For what `finish` does; NULL: take the two steps. */
const struct fuse_kernels *fuse_avx2(const struct finish *finish);
