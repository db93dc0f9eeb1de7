/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/invariants/invariants.h"

#include "daemon/serve/arena.h"

const char *arena_check(const struct arena *arena)
{
	uint64_t end = 0, used = 0;

	for (uint32_t i = arena->extent[arena->room].next; i != arena->room;
	     i = arena->extent[i].next) {
		const struct arena_extent *extent = &arena->extent[i];

		if (extent->offset + extent->bytes > arena->bytes || extent->offset % arena->align)
			return "an extent lies outside the arena";
		if (extent->offset < end)
			return "two extents overlap";
		end = extent->offset + extent->bytes;
		used += extent->bytes;
	}
	return used == arena->used ? NULL : "the bytes in use are not those of the extents";
}
