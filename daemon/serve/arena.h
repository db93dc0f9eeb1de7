/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Who owns which bytes of a stream's input arena: extents, reserved one behind the other, round and round, and given back
 * in any order. Numbers only; the bytes belong to the reader and the workers.
 */

#include "base/base.h"

#define ARENA_ALIGN 64 /* of extents, at least */

struct arena_extent {
	uint64_t offset, bytes;
	uint32_t before, next; /* by offset; of one that is not used, next: another one */
};

struct arena {
	uint64_t bytes, used;        /* in all; of extents */
	uint64_t refused;            /* so many and more have no room until something is released */
	uint32_t align;              /* of extents */
	struct arena_extent *extent; /* owned; `room` of them, and the edge */
	uint32_t room, cursor, unused;
};

/* align: of extents, a power of two; the bytes behind the last multiple are not used. 0 or -ENOMEM. */
int arena_init(struct arena *arena, uint64_t bytes, uint32_t extents, uint32_t align);
void arena_fini(struct arena *arena);
/* Finds bytes (0 counts as 1). true and the extent's offset and number, or false: no room now. */
bool arena_reserve(struct arena *arena, uint64_t bytes, uint64_t *ret_offset, uint32_t *ret_extent);
void arena_release(struct arena *arena, uint32_t extent);
