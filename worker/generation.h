/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which workers are out of date. A worker knows the queues that its parent had mapped when it was
 * forked; when that set changes, the parent moves the generation on, and workers of an older one
 * finish their task and exit. So do those whose place is not among the first N, which the parent keeps
 * when accessd wants fewer. Two words on a page of their own; workers map it read-only.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct generation_word {
	_Atomic uint64_t p_current; /* both written by the parent alone */
	_Atomic uint32_t p_places;  /* workers of a place from this one on are too many */
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

static inline void generation_keep_places(struct generation_word *word, uint32_t places)
{
	/* G3: release, pairs with G4. The parent rings the doorbell after it, as after G1. */
	atomic_store_explicit(&word->p_places, places, memory_order_release);
}

static inline bool generation_has_place(const struct generation_word *word, uint32_t place)
{
	/* G4: acquire, pairs with G3. */
	return place < atomic_load_explicit(&word->p_places, memory_order_acquire);
}
