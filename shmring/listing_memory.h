/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The memory of a list of places: written by the client who makes it, then sealed against writing for
 * good, then mapped read-only by him and by accessd. */

#include "base/base.h"

enum { LISTING_MEMORY_E_BAD = 1 };

/* Writable memory of bytes; caller owns *ret_map and *ret_fd. 0 or negative errno. */
int listing_memory_new(uint64_t bytes, void **ret_map, int *ret_fd);
/* Seals it; *map, writable so far, is mapped read-only from now on. 0 or negative errno: *map is
 * NULL then. */
int listing_memory_seal(int fd, uint64_t bytes, void **map);
/* Maps hostile memory, at most `most` bytes. LISTING_MEMORY_E_BAD: it is not sealed, has holes, or is
 * none that cannot shrink; negative errno. */
int listing_memory_attach(int fd, uint64_t most, void **ret_map, uint64_t *ret_bytes);
void listing_memory_detach(void *map, uint64_t bytes); /* NULL is fine */
