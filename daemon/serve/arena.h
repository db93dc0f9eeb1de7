/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SERVE_ARENA_H
#define DAEMON_SERVE_ARENA_H

/*
 * Who owns which bytes of a stream's input arena: a ring of extents, reserved at the head, given
 * back in any order, reclaimed at the tail. Numbers only; the bytes belong to the reader and the
 * workers.
 */

#include "base/base.h"

#define ARENA_ALIGN 64 /* of extents, at least */

struct arena_extent {
	uint64_t offset, bytes;
	bool free;
};

struct arena {
	uint64_t bytes;
	uint32_t align;              /* of extents */
	struct arena_extent *extent; /* ring of `room` extents, oldest at `first` */
	uint32_t room, first, count;
	uint64_t head; /* where the next extent would begin */
};

/* align: of extents, a power of two; the bytes behind the last multiple are not used. 0 or -ENOMEM. */
int arena_init(struct arena *arena, uint64_t bytes, uint32_t extents, uint32_t align);
void arena_fini(struct arena *arena);
/* Finds bytes (0 counts as 1). true and the extent's offset and number, or false: no room now. */
bool arena_reserve(struct arena *arena, uint64_t bytes, uint64_t *ret_offset, uint32_t *ret_extent);
void arena_release(struct arena *arena, uint32_t extent);
const char *arena_check(const struct arena *arena); /* first broken rule, or NULL */

#endif
