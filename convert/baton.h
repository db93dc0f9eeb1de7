/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How a lane tells its maker that there is something to do. A maker in its sandbox may neither read
 * nor poll; it may wait on a futex. One word that the lane writes and the maker can only read: the number
 * of the file, and in the lowest bit the room that holds it. What a maker has to say goes through its
 * pipe.
 */

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct baton {
	_Atomic uint32_t l_word; /* of the lane alone: number of the file << 1 | room */
};

/* For the next file, in that room; whatever was written for it before is seen. */
static inline void baton_pass(struct baton *baton, unsigned room)
{
	const uint32_t word = atomic_load_explicit(&baton->l_word, memory_order_relaxed);

	/* B1: release, pairs with B2. */
	atomic_store_explicit(&baton->l_word, (((word >> 1) + 1) << 1) | (room & 1),
			      memory_order_release);
	syscall(SYS_futex, &baton->l_word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static inline uint32_t baton_look(struct baton *baton)
{
	/* B2: acquire, pairs with B1. */
	return atomic_load_explicit(&baton->l_word, memory_order_acquire);
}

/* Waits until it is another one than seen, and returns it. */
static inline uint32_t baton_wait(struct baton *baton, uint32_t seen)
{
	uint32_t word;

	while ((word = baton_look(baton)) == seen)
		syscall(SYS_futex, &baton->l_word, FUTEX_WAIT, seen, NULL, NULL, 0);
	return word;
}
