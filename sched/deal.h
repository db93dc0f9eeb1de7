/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHED_DEAL_H
#define SCHED_DEAL_H

/*
 * The deal: a permutation of a dataset version's samples 0 .. n-1, keyed by the version alone,
 * computed and never stored. Grains are g consecutive positions of it. The algorithm is frozen by
 * known answers: tokens and caches of all versions of the product depend on it.
 */

#include <stdint.h>

struct deal {
	uint64_t n;      /* samples; 0 is allowed (no grains) */
	uint32_t grain;  /* g */
	uint64_t grains; /* ceil(n / g) */
	unsigned half_bits;
	uint64_t key[2];
};

/* g = 2^ceil(log2(n / 2^19)), clamped to 1 .. 32: a function of n alone (DESIGN.md section 2). */
uint32_t deal_grain_of(uint64_t n);
void deal_init(struct deal *deal, uint64_t n, const uint8_t version[32]);
uint64_t deal_sample(const struct deal *deal, uint64_t position); /* position < n */
uint64_t deal_position(const struct deal *deal, uint64_t sample); /* its inverse; sample < n */
/* The same of count samples: each of them takes a third of the time. */
void deal_positions(const struct deal *deal, const int64_t *samples, uint32_t count, uint64_t *ret);
/* Samples of a grain (the deal's last may be short): first position and number of them. */
uint64_t deal_grain_first(const struct deal *deal, uint64_t grain);
uint32_t deal_grain_size(const struct deal *deal, uint64_t grain);

/* Writes the samples of the grains whose position is in members (NULL: all) to ret_ids (room for n_grains *
 * g), in the order of their positions. Returns their number. */
uint32_t deal_list(const struct deal *deal, const uint64_t *members, const uint32_t *grains,
		   uint32_t n_grains, int64_t *ret_ids);
/* Order inside a chunk: writes the samples of the grains whose position is in members (NULL: all),
 * permuted by (seed, lap) alone, to ret_ids (room for n_grains * g). Returns their number. */
uint32_t deal_members(const struct deal *deal, const uint64_t *members, uint64_t seed, uint64_t lap,
		      const uint32_t *grains, uint32_t n_grains, int64_t *ret_ids);
/* The same for an explicit list of samples (a tail): permutes ids in place. */
void deal_permute(uint64_t seed, uint64_t lap, int64_t *ids, uint32_t count);

#endif
