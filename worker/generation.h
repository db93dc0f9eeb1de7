/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_GENERATION_H
#define WORKER_GENERATION_H

/*
 * Which workers are out of date. A worker knows the lanes that its parent had mapped when it was
 * forked; when that set changes, the parent moves the generation on, and workers of an older one
 * finish their task and exit. One word on a page of its own; workers map it read-only.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct generation_word {
	_Atomic uint64_t p_current; /* written by the parent alone */
};

static inline void generation_move_to(struct generation_word *word, uint64_t generation)
{
	/* G1: release, pairs with G2. The parent rings the doorbell after it, so that a sleeper
	 * looks. */
	atomic_store_explicit(&word->p_current, generation, memory_order_release);
}

static inline bool generation_is_current(const struct generation_word *word, uint64_t mine)
{
	/* G2: acquire, pairs with G1. */
	return atomic_load_explicit(&word->p_current, memory_order_acquire) == mine;
}

#endif
