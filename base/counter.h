/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A word that one process (or thread) writes and others read at any time: counters, stages, "this
 * is whole now". A plain value in shared memory. Every set is a release and every get an acquire,
 * so that whoever sees a value sees everything that was written before it; for words on the path of
 * a batch, where that costs, see shmring/.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct counter {
	_Atomic uint64_t word;
};

static inline void counter_set(struct counter *counter, uint64_t value)
{
	atomic_store_explicit(&counter->word, value, memory_order_release);
}
static inline uint64_t counter_get(const struct counter *counter)
{
	return atomic_load_explicit(&counter->word, memory_order_acquire);
}
/* 0 becomes 1: true for the one caller, among any, who made it so. */
static inline bool counter_claim(struct counter *counter)
{
	uint64_t unclaimed = 0;

	return atomic_compare_exchange_strong(&counter->word, &unclaimed, 1);
}

/* One of many in a table, 32 bits: each is told by itself, and nothing is ordered by it. */
struct counter_cell {
	_Atomic uint32_t word;
};

static inline void counter_cell_set(struct counter_cell *cell, uint32_t value)
{
	atomic_store_explicit(&cell->word, value, memory_order_relaxed);
}
static inline uint32_t counter_cell_get(const struct counter_cell *cell)
{
	return atomic_load_explicit(&cell->word, memory_order_relaxed);
}
