/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of a picture: numbers alone, which what finishes samples needs, too, without what reads specs. */
#include "pipeline/spec/shape.h"

size_t shape_patch_values(const struct shape *shape)
{
	const struct shape_patches *patches = &shape->patches;

	return (size_t)patches->size * patches->size * shape->channels * patches->times;
}

void shape_patch_grid(const struct shape_patches *patches, uint32_t height, uint32_t width,
		      uint32_t *ret_rows, uint32_t *ret_columns)
{
	const uint32_t step = patches->size * patches->block;
	const uint32_t columns =
	    BASE_MIN(width / step * patches->block, patches->most / patches->block);
	const uint32_t rows =
	    columns ? BASE_MIN(height / step * patches->block,
			       patches->most / columns / patches->block * patches->block)
		    : 0;

	*ret_columns = columns;
	*ret_rows = rows;
}
