/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_FUSE_KERNELS_H
#define PIPELINE_FUSE_KERNELS_H

/* Steps of plane.h and finish.h that some machines can do as one, without the bytes between them. */

#include "pipeline/finish.h"
#include "pipeline/plane.h"

struct fuse_kernels {
	/* plane_kernels.down, for row y of a PLANE_DOWN table and n columns, and
	 * finish_kernels.plane of what it gives, channel c, to out, which holds exactly that. The
	 * rows in turn are those of plane_best(). Not for PIPELINE_U8. */
	void (*down)(const struct plane_table *table, uint32_t y, const uint8_t *const rows[],
		     const struct finish *finish, unsigned c, size_t n, void *out);
};
/* For what `finish` does; NULL: take the two steps. */
const struct fuse_kernels *fuse_avx2(const struct finish *finish);

#endif
