/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The deal is a Feistel network on the smallest power of two that holds n, walked until the value
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
 * cut (grains are consecutive positions), and never change: a token holds a bitmap over grains.
 * tests/sched/deal_test.c freezes its values.
 *
 * The order inside a chunk is a Fisher-Yates shuffle by philox, keyed by (seed, lap): frozen too,
 * since an instance must come out the same whenever and wherever it is produced again.
 */

#include "base/base.h"
#include "base/bits.h"
#include "base/little.h"
#include "base/philox.h"
#include "sched/deal.h"

#define DEAL_ROUNDS 8
#define DEAL_LANES 8
#define DEAL_MAX_GRAIN 32
#define DEAL_STREAM_ORDER \
	UINT32_C(0x68616e64) /* "chunk": apart from every other use of (seed, lap) */

static unsigned bits_of(uint64_t n)
{
	return n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 0;
}

static uint64_t low_mask(unsigned bits)
{
	return bits ? UINT64_MAX >> (64 - bits) : 0;
}

static uint64_t round_value(const struct deal *deal, unsigned round, uint64_t half)
{
	uint64_t tweak = (round + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return bits_mix(bits_mix(half + deal->key[0] + tweak) ^ deal->key[1]);
}

/* One application of the network, forwards or backwards, to a value of the domain. */
static uint64_t permute(const struct deal *deal, uint64_t value, bool backwards)
{
	unsigned high_bits = deal->half_bits, low_bits = bits_of(deal->n) - high_bits;
	uint64_t low = value & low_mask(low_bits);
	uint64_t high = low_bits < 64 ? value >> low_bits : 0;

	for (unsigned i = 0; i < DEAL_ROUNDS; i++) {
		unsigned round = backwards ? DEAL_ROUNDS - 1 - i : i;

		if (round % 2 == 0)
			high ^= round_value(deal, round, low) & low_mask(high_bits);
		else
			low ^= round_value(deal, round, high) & low_mask(low_bits);
	}
	return high << low_bits | low;
}

uint32_t deal_grain_of(uint64_t n)
{
	uint32_t grain = 1;

	while (grain < DEAL_MAX_GRAIN && n > (uint64_t)grain << 19)
		grain *= 2;
	return grain;
}

void deal_init(struct deal *deal, uint64_t n, const uint8_t version[32])
{
	*deal = (struct deal){.n = n, .grain = deal_grain_of(n), .half_bits = bits_of(n) / 2};
	deal->grains = n / deal->grain + (n % deal->grain != 0);
	for (unsigned i = 0; i < 2; i++)
		deal->key[i] = bits_mix(little_get(version + 16 * i, 8) +
					bits_mix(little_get(version + 16 * i + 8, 8)));
}

uint64_t deal_sample(const struct deal *deal, uint64_t position)
{
	do
		position = permute(deal, position, false);
	while (position >= deal->n);
	return position;
}

uint64_t deal_position(const struct deal *deal, uint64_t sample)
{
	do
		sample = permute(deal, sample, true);
	while (sample >= deal->n);
	return sample;
}

/* The network backwards for each value: what one waits for is worked at meanwhile for the others. */
static void permute_back(const struct deal *deal, uint64_t value[DEAL_LANES])
{
	unsigned high_bits = deal->half_bits, low_bits = bits_of(deal->n) - high_bits;
	uint64_t low[DEAL_LANES], high[DEAL_LANES];

	for (unsigned i = 0; i < DEAL_LANES; i++) {
		low[i] = value[i] & low_mask(low_bits);
		high[i] = value[i] >> low_bits;
	}
	for (unsigned round = DEAL_ROUNDS; round;) {
		round--;
		for (unsigned i = 0; i < DEAL_LANES && round % 2 == 0; i++)
			high[i] ^= round_value(deal, round, low[i]) & low_mask(high_bits);
		for (unsigned i = 0; i < DEAL_LANES && round % 2 == 1; i++)
			low[i] ^= round_value(deal, round, high[i]) & low_mask(low_bits);
	}
	for (unsigned i = 0; i < DEAL_LANES; i++)
		value[i] = high[i] << low_bits | low[i];
}

void deal_positions(const struct deal *deal, const int64_t *samples, uint32_t count, uint64_t *ret)
{
	uint64_t value[DEAL_LANES] = {0};
	uint32_t of[DEAL_LANES], n = 0, next = 0;

	while (n || next < count) {
		uint32_t left = 0;

		for (; n < DEAL_LANES && next < count; n++) {
			value[n] = (uint64_t)samples[next];
			of[n] = next++;
		}
		permute_back(deal, value);
		for (uint32_t i = 0; i < n; i++) {
			if (value[i] < deal->n) {
				ret[of[i]] = value[i];
				continue;
			}
			value[left] = value[i]; /* it walks on */
			of[left++] = of[i];
		}
		n = left;
	}
}

uint64_t deal_grain_first(const struct deal *deal, uint64_t grain)
{
	return grain * deal->grain;
}

uint32_t deal_grain_size(const struct deal *deal, uint64_t grain)
{
	return (uint32_t)BASE_MIN(deal->n - deal_grain_first(deal, grain), (uint64_t)deal->grain);
}

void deal_permute(uint64_t seed, uint64_t lap, int64_t *ids, uint32_t count)
{
	struct philox_seq seq;

	philox_seq_init(&seq, seed, lap, DEAL_STREAM_ORDER);
	for (uint32_t left = count; left > 1; left--) {
		uint64_t chosen = philox_below(&seq, left);
		int64_t id = ids[chosen];

		ids[chosen] = ids[left - 1];
		ids[left - 1] = id;
	}
}

uint32_t deal_list(const struct deal *deal, const uint64_t *members, const uint32_t *grains,
		   uint32_t n_grains, int64_t *ret_ids)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < n_grains; i++) {
		uint64_t first = deal_grain_first(deal, grains[i]);
		uint32_t size = deal_grain_size(deal, grains[i]);

		for (uint32_t k = 0; k < size; k++)
			if (!members || bits_test(members, first + k))
				ret_ids[count++] = (int64_t)deal_sample(deal, first + k);
	}
	return count;
}

uint32_t deal_members(const struct deal *deal, const uint64_t *members, uint64_t seed, uint64_t lap,
		      const uint32_t *grains, uint32_t n_grains, int64_t *ret_ids)
{
	uint32_t count = deal_list(deal, members, grains, n_grains, ret_ids);

	deal_permute(seed, lap, ret_ids, count);
	return count;
}
