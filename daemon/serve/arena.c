/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena's ring. An extent never wraps: when the space up to the end is too small the head jumps
 * to 0, and the gap belongs to nobody until the tail has passed it. A sample that is slow to finish
 * holds back the space behind it; the arena is a stream's own, so that is the stream's own affair.
 */
#include "daemon/serve/arena.h"

#include <errno.h>
#include <stdlib.h>

int arena_init(struct arena *arena, uint64_t bytes, uint32_t extents, uint32_t align)
{
	*arena = (struct arena){.bytes = bytes - bytes % align, .align = align, .room = extents};
	arena->extent = calloc(extents, sizeof(*arena->extent));
	return arena->extent ? 0 : -ENOMEM;
}

void arena_fini(struct arena *arena)
{
	free(arena->extent);
	*arena = (struct arena){0};
}

/* Where `bytes` would fit: at the head, or at 0 when the end is too near. false: not now. */
static bool find_space(const struct arena *arena, uint64_t bytes, uint64_t *ret)
{
	uint64_t tail = arena->count ? arena->extent[arena->first].offset : 0;

	if (!arena->count) {
		*ret = 0;
		return bytes <= arena->bytes;
	}
	if (arena->head > tail) {
		if (arena->bytes - arena->head >= bytes) {
			*ret = arena->head;
			return true;
		}
		*ret = 0;
		return bytes <= tail;
	}
	*ret = arena->head;
	return tail - arena->head >= bytes;
}

bool arena_reserve(struct arena *arena, uint64_t bytes, uint64_t *ret_offset, uint32_t *ret_extent)
{
	uint64_t size = base_align_up(bytes ? bytes : 1, arena->align);
	uint32_t number = (arena->first + arena->count) % arena->room;

	if (arena->count == arena->room || !find_space(arena, size, ret_offset))
		return false;
	arena->extent[number] = (struct arena_extent){.offset = *ret_offset, .bytes = size};
	arena->count++;
	arena->head = *ret_offset + size;
	*ret_extent = number;
	return true;
}

void arena_release(struct arena *arena, uint32_t extent)
{
	arena->extent[extent].free = true;
	while (arena->count && arena->extent[arena->first].free) {
		arena->extent[arena->first] = (struct arena_extent){0};
		arena->first = (arena->first + 1) % arena->room;
		arena->count--;
	}
}

const char *arena_check(const struct arena *arena)
{
	for (uint32_t i = 0; i < arena->count; i++) {
		const struct arena_extent *a = &arena->extent[(arena->first + i) % arena->room];

		if (a->offset + a->bytes > arena->bytes || a->offset % arena->align)
			return "an extent lies outside the arena";
		for (uint32_t j = 0; j < i; j++) {
			const struct arena_extent *b =
			    &arena->extent[(arena->first + j) % arena->room];

			if (a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes)
				return "two extents overlap";
		}
	}
	if (arena->count && arena->extent[arena->first].free)
		return "the oldest extent is free but not reclaimed";
	return NULL;
}
