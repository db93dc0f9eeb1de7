/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The permutation of a dataset version's samples 0 .. n-1: keyed by the version alone,
 * computed and never stored. Blocks are g consecutive positions of it. The algorithm is frozen by
 * known answers: tokens and caches of all versions of the product depend on it.
 */

#include <stdint.h>

struct permutation {
	uint64_t n;      /* samples; 0 is allowed (no blocks) */
	uint32_t block;  /* g */
	uint64_t blocks; /* ceil(n / g) */
	unsigned half_bits;
	uint64_t key[2];
};

/* g = 2^ceil(log2(n / 2^19)), clamped to 1 .. 32: a function of n alone (DESIGN.md section 2). */
uint32_t permutation_block_of(uint64_t n);
void permutation_init(struct permutation *permutation, uint64_t n, const uint8_t version[32]);
uint64_t permutation_sample(const struct permutation *permutation,
			    uint64_t position); /* position < n */
uint64_t permutation_position(const struct permutation *permutation,
			      uint64_t sample); /* its inverse; sample < n */
/* The same of count samples: each of them takes a third of the time. */
void permutation_positions(const struct permutation *permutation, const int64_t *samples,
			   uint32_t count, uint64_t *ret);
/* Samples of a block (the permutation's last may be short): first position and number of them. */
uint64_t permutation_block_first(const struct permutation *permutation, uint64_t block);
uint32_t permutation_block_size(const struct permutation *permutation, uint64_t block);

/* Writes the samples of the blocks whose position is in members (NULL: all) to ret_ids (room for n_blocks *
 * g), in the order of their positions. Returns their number. */
uint32_t permutation_list(const struct permutation *permutation, const uint64_t *members,
			  const uint32_t *blocks, uint32_t n_blocks, int64_t *ret_ids);
/* Order inside a chunk: writes the samples of the blocks whose position is in members (NULL: all),
 * permuted by (seed, nonce) alone, to ret_ids (room for n_blocks * g). Returns their number. */
uint32_t permutation_members(const struct permutation *permutation, const uint64_t *members,
			     uint64_t seed, uint64_t nonce, const uint32_t *blocks,
			     uint32_t n_blocks, int64_t *ret_ids);
/* The same for an explicit list of samples (a tail): permutes ids in place. */
void permutation_shuffle(uint64_t seed, uint64_t nonce, int64_t *ids, uint32_t count);
