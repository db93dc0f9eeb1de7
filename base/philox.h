/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Counter-based randomness: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as
 * 1, 2, 3", SC'11). A value is a pure function of (key, counter); nothing has state, so any process
 * computes the same value for the same (seed, nonce, sample, op). Frozen by known-answer tests.
 */

#include <stdint.h>

struct philox {
	uint32_t word[4];
};

/* Two of its words as one: half 0 or 1. */
static inline uint64_t philox_half(const struct philox *block, unsigned half)
{
	return (uint64_t)block->word[2 * half + 1] << 32 | block->word[2 * half];
}
/* The block for key (seed) and 128-bit counter (a, b). */
struct philox philox_block(uint64_t key, uint64_t a, uint64_t b);

/* Sequence of draws from one (key, a): used where an op or a shuffle needs many values. */
struct philox_seq {
	uint64_t key, a, b;
	struct philox block;
	unsigned used;
};
void philox_seq_init(struct philox_seq *seq, uint64_t key, uint64_t a, uint32_t stream);
uint32_t philox_u32(struct philox_seq *seq);
uint64_t philox_u64(struct philox_seq *seq);
/* Uniform in 0 .. bound-1 without bias (rejection); bound >= 1. */
uint64_t philox_below(struct philox_seq *seq, uint64_t bound);
/* Uniform in [0, 1): 53 bits / 2^53. */
double philox_unit(struct philox_seq *seq);
/* The logarithm of a draw of Gamma(shape), shape above 0. */
double philox_log_gamma(struct philox_seq *seq, double shape);
