/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The permutation is a Feistel network on the smallest power of two that holds n, walked until the value
 * falls below n again (cycle walking). The network permutes a domain of fewer than 2 n values, so
 * a walk takes less than two steps on average; and since the network is a permutation of the
 * domain, the walk is one of 0 .. n-1. With an odd number of bits the halves differ by one bit and
 * keep their places: each round changes one half by a function of the other, in turn.
 *
 * The domain has 64 - clz(n - 1) bits, not 64 - clz(n): the latter is right as well but walks twice
 * as far when n is a power of two; a width computed in floating point is how other loaders came to
 * lose an index at 65,537.
 *
 * It is no cipher and need not be one: nobody gains by guessing it. It must look random in every
 * cut (blocks are consecutive positions), and never change: a token holds a bitmap over blocks.
 * tests/plan/permutation_test.c freezes its values.
 *
 * The order inside a chunk is a Fisher-Yates shuffle by philox, keyed by (seed, nonce): frozen too,
 * since an instance must come out the same whenever and wherever it is produced again.
 */

#include "base/base.h"
#include "base/bits.h"
#include "base/little.h"
#include "base/philox.h"
#include "plan/permutation.h"

#define PERMUTATION_ROUNDS 8
#define PERMUTATION_WAYS 8
#define PERMUTATION_MAX_BLOCK 32
/* "chunk": apart from every other use of (seed, nonce) */
#define PERMUTATION_STREAM_ORDER UINT32_C(0x68616e64)

static unsigned bits_of(uint64_t n)
{
	return n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;
}

static uint64_t low_mask(unsigned bits)
{
	return bits ? UINT64_MAX >> (64 - bits) : 0;
}

static uint64_t round_value(const struct permutation *permutation, unsigned round, uint64_t half)
{
	uint64_t tweak = (round + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return bits_mix(bits_mix(half + permutation->key[0] + tweak) ^ permutation->key[1]);
}

/* One application of the network, forwards or backwards, to a value of the domain. */
static uint64_t permute(const struct permutation *permutation, uint64_t value, bool backwards)
{
	unsigned high_bits = permutation->half_bits, low_bits = bits_of(permutation->n) - high_bits;
	uint64_t low = value & low_mask(low_bits);
	uint64_t high = low_bits < 64 ? value >> low_bits : 0;

	for (unsigned i = 0; i < PERMUTATION_ROUNDS; i++) {
		unsigned round = backwards ? PERMUTATION_ROUNDS - 1 - i : i;

		if (round % 2 == 0)
			high ^= round_value(permutation, round, low) & low_mask(high_bits);
		else
			low ^= round_value(permutation, round, high) & low_mask(low_bits);
	}
	return high << low_bits | low;
}

uint32_t permutation_block_of(uint64_t n)
{
	uint32_t block = 1;

	while (block < PERMUTATION_MAX_BLOCK && n > (uint64_t)block << 19)
		block *= 2;
	return block;
}

void permutation_init(struct permutation *permutation, uint64_t n, const uint8_t version[32])
{
	*permutation = (struct permutation){
	    .n = n, .block = permutation_block_of(n), .half_bits = bits_of(n) / 2};
	permutation->blocks = n / permutation->block + (n % permutation->block != 0);
	for (unsigned i = 0; i < 2; i++)
		permutation->key[i] = bits_mix(little_get(version + 16 * i, 8) +
					       bits_mix(little_get(version + 16 * i + 8, 8)));
}

uint64_t permutation_sample(const struct permutation *permutation, uint64_t position)
{
	do
		position = permute(permutation, position, false);
	while (position >= permutation->n);
	return position;
}

uint64_t permutation_position(const struct permutation *permutation, uint64_t sample)
{
	do
		sample = permute(permutation, sample, true);
	while (sample >= permutation->n);
	return sample;
}

/* The network backwards for each value: what one waits for is worked at meanwhile for the others. */
static void permute_back(const struct permutation *permutation, uint64_t value[PERMUTATION_WAYS])
{
	unsigned high_bits = permutation->half_bits, low_bits = bits_of(permutation->n) - high_bits;
	uint64_t low[PERMUTATION_WAYS], high[PERMUTATION_WAYS];

	for (unsigned i = 0; i < PERMUTATION_WAYS; i++) {
		low[i] = value[i] & low_mask(low_bits);
		high[i] = value[i] >> low_bits;
	}
	for (unsigned round = PERMUTATION_ROUNDS; round;) {
		round--;
		for (unsigned i = 0; i < PERMUTATION_WAYS && round % 2 == 0; i++)
			high[i] ^= round_value(permutation, round, low[i]) & low_mask(high_bits);
		for (unsigned i = 0; i < PERMUTATION_WAYS && round % 2 == 1; i++)
			low[i] ^= round_value(permutation, round, high[i]) & low_mask(low_bits);
	}
	for (unsigned i = 0; i < PERMUTATION_WAYS; i++)
		value[i] = high[i] << low_bits | low[i];
}

void permutation_positions(const struct permutation *permutation, const int64_t *samples,
			   uint32_t count, uint64_t *ret)
{
	uint64_t value[PERMUTATION_WAYS] = {0};
	uint32_t of[PERMUTATION_WAYS], n = 0, next = 0;

	while (n || next < count) {
		uint32_t left = 0;

		for (; n < PERMUTATION_WAYS && next < count; n++) {
			value[n] = (uint64_t)samples[next];
			of[n] = next++;
		}
		permute_back(permutation, value);
		for (uint32_t i = 0; i < n; i++) {
			if (value[i] < permutation->n) {
				ret[of[i]] = value[i];
				continue;
			}
			value[left] = value[i]; /* it walks on */
			of[left++] = of[i];
		}
		n = left;
	}
}

uint64_t permutation_block_first(const struct permutation *permutation, uint64_t block)
{
	return block * permutation->block;
}

uint32_t permutation_block_size(const struct permutation *permutation, uint64_t block)
{
	return (uint32_t)BASE_MIN(permutation->n - permutation_block_first(permutation, block),
				  (uint64_t)permutation->block);
}

void permutation_shuffle(uint64_t seed, uint64_t nonce, int64_t *ids, uint32_t count)
{
	struct philox_seq seq;

	philox_seq_init(&seq, seed, nonce, PERMUTATION_STREAM_ORDER);
	for (uint32_t left = count; left > 1; left--) {
		uint64_t chosen = philox_below(&seq, left);
		int64_t id = ids[chosen];

		ids[chosen] = ids[left - 1];
		ids[left - 1] = id;
	}
}

uint32_t permutation_list(const struct permutation *permutation, const uint64_t *members,
			  const uint32_t *blocks, uint32_t n_blocks, int64_t *ret_ids)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n_blocks; i++) {
		uint64_t first = permutation_block_first(permutation, blocks[i]);
		uint32_t size = permutation_block_size(permutation, blocks[i]);

		for (uint32_t k = 0; k < size; k++)
			if (!members || bits_test(members, first + k))
				ret_ids[count++] =
				    (int64_t)permutation_sample(permutation, first + k);
	}
	return count;
}

uint32_t permutation_members(const struct permutation *permutation, const uint64_t *members,
			     uint64_t seed, uint64_t nonce, const uint32_t *blocks,
			     uint32_t n_blocks, int64_t *ret_ids)
{
	uint32_t count = permutation_list(permutation, members, blocks, n_blocks, ret_ids);

	permutation_shuffle(seed, nonce, ret_ids, count);
	return count;
}
