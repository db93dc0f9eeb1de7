/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Memory as it is found by who comes to it late: in none of the processor's caches. What is timed on what was just
 * written looks quicker than it is where it comes from memory.
 */

#include <stddef.h>

/* Nothing happens on machines whose processors leave that to the kernel. */
void evict(const void *data, size_t size);
