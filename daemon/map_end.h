/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Letting go of shared memory (an index, a table of the cache, a plan log, a list), a little at a time. */

#include "base/base.h"

struct endings;

/* Owns the mapping from now on; NULL is fine. Whoever has a descriptor of the memory closes it after this call. */
void map_end(struct endings *endings, void *map, uint64_t bytes);
