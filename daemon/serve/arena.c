/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena: extents in the order of their offsets, and the one behind which room is looked for first, the cursor. As a
 * rule it goes round: what is behind the cursor was given back long ago, and the arena is a ring. What is not
 * given back in its turn, of a sample that takes long, is passed, so that it holds back nothing but its own bytes. An
 * arena that is simply full is asked often, so more than a few are passed only where a part of it is free, and not again
 * before something was given back.
 *
 * An extent never wraps. That one which is too large for every gap finds room in the end: nothing else is reserved before
 * it, and what is under way ends.
 */
#include "daemon/serve/arena.h"

#define MOST_PASSED 16
#define FREE_PART 8 /* where one part of so many is free, all are passed */

/* The last element of extent[] is none: it is before the first one and behind the last one. */
static struct arena_extent *edge_of(const struct arena *arena)
{
	return &arena->extent[arena->room];
}

int arena_init(struct arena *arena, uint64_t bytes, uint32_t extents, uint32_t align)
{
	*arena = (struct arena){.bytes = bytes - bytes % align,
				.refused = UINT64_MAX,
				.align = align,
				.room = extents,
				.cursor = extents};
	arena->extent = calloc((size_t)extents + 1, sizeof(*arena->extent));
	if (!arena->extent)
		return -ENOMEM;
	for (uint32_t i = 0; i < extents; i++)
		arena->extent[i].next = i + 1;
	edge_of(arena)->next = edge_of(arena)->before = extents;
	return 0;
}

void arena_fini(struct arena *arena)
{
	free(arena->extent);
	*arena = (struct arena){0};
}

/* Where the gap behind an extent begins; its bytes. */
static uint64_t gap_behind(const struct arena *arena, uint32_t at, uint64_t *ret_begin)
{
	const struct arena_extent *extent = &arena->extent[at];
	uint64_t end = arena->bytes;

	if (extent->next != arena->room)
		end = arena->extent[extent->next].offset;
	*ret_begin = extent->offset + extent->bytes;
	return end - *ret_begin;
}

static uint32_t most_passed(const struct arena *arena, uint64_t bytes)
{
	const uint64_t worth = BASE_MAX(bytes, arena->bytes / FREE_PART);

	return arena->bytes - arena->used >= worth ? UINT32_MAX : MOST_PASSED;
}

/* The extent behind which there is room for so many bytes. false: not now. */
static bool find_gap(struct arena *arena, uint64_t bytes, uint32_t *ret_at, uint64_t *ret_offset)
{
	const uint32_t most = most_passed(arena, bytes);
	uint32_t at = arena->cursor;

	for (uint32_t passed = 0; passed < most; at = arena->extent[at].next) {
		if (gap_behind(arena, at, ret_offset) >= bytes) {
			*ret_at = at;
			return true;
		}
		passed += at != arena->room;
		if (arena->extent[at].next == arena->cursor) {
			arena->refused = BASE_MIN(arena->refused, bytes);
			return false;
		}
	}
	return false;
}

static void insert(struct arena *arena, uint32_t number, uint32_t at)
{
	struct arena_extent *extent = &arena->extent[number];

	extent->before = at;
	extent->next = arena->extent[at].next;
	arena->extent[extent->next].before = number;
	arena->extent[at].next = number;
}

bool arena_reserve(struct arena *arena, uint64_t bytes, uint64_t *ret_offset, uint32_t *ret_extent)
{
	uint64_t size = base_align_up(bytes ? bytes : 1, arena->align), offset;
	uint32_t number = arena->unused, at;

	if (number == arena->room || size >= arena->refused || !find_gap(arena, size, &at, &offset))
		return false;
	arena->unused = arena->extent[number].next;
	arena->extent[number].offset = offset;
	arena->extent[number].bytes = size;
	insert(arena, number, at);
	arena->cursor = number;
	arena->used += size;
	*ret_offset = offset;
	*ret_extent = number;
	return true;
}

void arena_release(struct arena *arena, uint32_t extent)
{
	struct arena_extent *gone = &arena->extent[extent];

	arena->extent[gone->before].next = gone->next;
	arena->extent[gone->next].before = gone->before;
	if (arena->cursor == extent)
		arena->cursor = gone->before;
	arena->used -= gone->bytes;
	arena->refused = UINT64_MAX;
	*gone = (struct arena_extent){.next = arena->unused};
	arena->unused = extent;
}
