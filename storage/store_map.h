/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The store's file as memory: values in it are looked at as bytes that anything may have happened to. */

#include "base/base.h"

struct store_map {
	uintptr_t at;         /* where the file is */
	uint64_t page, pages; /* bytes of a page, pages of the map */
};

/* Is there address space for so much? */
bool store_map_fits(uint64_t bytes);
/* Lies the value in the map, and has its page the head that it should? One in memory that was written just
 * now is sound. */
bool store_map_is_sound(const struct store_map *map, const void *value, uint64_t size);
/* Brings the pages of a value in the map; whether it ends there, and all of them can be read. */
bool store_map_bring(const struct store_map *map, const void *value, uint64_t size);
