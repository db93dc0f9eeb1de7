/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Populations are computed once an open, by the job, in time proportional to the dataset (a walk
 * through the permutation costs some 40 ns a sample), so that accessd has nothing to do for a subset but to
 * copy n / 8 bytes.
 *
 * The permutation of a split is the network of permutation.c under another key, over blocks instead of
 * samples. A boundary x lies behind round(x * blocks) places, computed the same for both parts that
 * touch there.
 */

#include "plan/population.h"

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"

/* Apart from every other use of a seed. */
#define POPULATION_STREAM UINT64_C(0x73706c6974000000) /* "split" */

/* ---- splits ---- */

static uint64_t boundary(const struct permutation *permutation, double x)
{
	return (uint64_t)(x * (double)permutation->blocks + 0.5);
}

struct part {
	struct permutation order; /* of blocks */
	uint64_t first, end;
	bool is_rest; /* all but end .. first */
};

static struct part part_of(const struct permutation *permutation, const uint8_t version[32],
			   const struct population_split *split)
{
	struct philox block = philox_block(split->seed, 0, POPULATION_STREAM);
	struct part part;

	permutation_init(&part.order, permutation->blocks, version);
	part.order.key[0] ^= philox_half(&block, 0);
	part.order.key[1] ^= philox_half(&block, 1);
	part.first = boundary(permutation, split->from);
	part.end = boundary(permutation, split->to);
	part.is_rest = split->from > split->to;
	return part;
}

static bool has(const struct part *part, uint64_t block)
{
	uint64_t place = permutation_position(&part->order, block);

	if (part->is_rest)
		return place >= part->first || place < part->end;
	return place >= part->first && place < part->end;
}

bool population_has_block(const struct permutation *permutation, const uint8_t version[32],
			  const struct population_split *split, uint64_t block)
{
	struct part part = part_of(permutation, version, split);

	return has(&part, block);
}

static uint64_t mask_of(const struct permutation *permutation, uint64_t block)
{
	uint64_t ones = UINT64_MAX >> (64 - permutation->block);

	return ones << (block * permutation->block % 64);
}

static uint64_t word_of(const struct permutation *permutation, uint64_t block)
{
	return block * permutation->block / 64;
}

void population_keep_split(const struct permutation *permutation, const uint8_t version[32],
			   const struct population_split *split, uint64_t *bits)
{
	struct part part = part_of(permutation, version, split);

	for (uint64_t block = 0; block < permutation->blocks; block++)
		if (!has(&part, block))
			bits[word_of(permutation, block)] &= ~mask_of(permutation, block);
}

/* ---- ids and classes ---- */

uint64_t population_add_ids(const struct permutation *permutation, const int64_t *ids,
			    uint64_t n_ids, uint64_t *bits)
{
	for (uint64_t i = 0; i < n_ids; i++) {
		uint64_t position;

		if (ids[i] < 0 || (uint64_t)ids[i] >= permutation->n)
			return i + 1;
		position = permutation_position(permutation, (uint64_t)ids[i]);
		if (bits_test(bits, position))
			return i + 1;
		bits_set(bits, position);
	}
	return 0;
}

void population_keep_classes(const struct permutation *permutation, const uint32_t *labels,
			     const bool *wanted, uint64_t *bits)
{
	for (uint64_t id = 0; id < permutation->n; id++)
		if (!wanted[labels[id]])
			bits_clear(bits, permutation_position(permutation, id));
}

/* ---- members ---- */

uint32_t population_of_block(const struct permutation *permutation, const uint64_t *bits,
			     uint64_t block)
{
	return (uint32_t)__builtin_popcountll(bits[word_of(permutation, block)] &
					      mask_of(permutation, block));
}

uint64_t population_need(const struct permutation *permutation, const uint64_t *bits, uint64_t from,
			 uint64_t end, uint64_t *need)
{
	uint64_t blocks = 0;

	for (uint64_t block = from; block < end; block++) {
		if (!(bits[word_of(permutation, block)] & mask_of(permutation, block))) {
			bits_clear(need, block);
			continue;
		}
		bits_set(need, block);
		blocks++;
	}
	return blocks;
}

uint64_t population_samples_in(const struct permutation *permutation, const uint64_t *bits,
			       const uint64_t *need, uint64_t from, uint64_t end)
{
	uint64_t count = 0;

	if (!bits || permutation->block == 1) {
		const uint64_t blocks = BASE_MIN(64 * end, permutation->blocks);

		/* All samples of the blocks in so many words of need. */
		if (64 * from >= blocks)
			return 0;
		count = bits_count(need + from, blocks - 64 * from) * permutation->block;
		if (blocks == permutation->blocks && bits_test(need, blocks - 1))
			count -=
			    permutation->block - permutation_block_size(permutation, blocks - 1);
		return count;
	}
	for (uint64_t i = from; i < end; i++) {
		const uint64_t first = i * 64 * permutation->block;

		if (need[i] == UINT64_MAX) { /* most are, and 64 blocks are whole words */
			count += bits_count(
			    bits + first / 64,
			    BASE_MIN(UINT64_C(64) * permutation->block, permutation->n - first));
			continue;
		}
		for (uint64_t word = need[i]; word; word &= word - 1)
			count += population_of_block(permutation, bits,
						     i * 64 + (unsigned)__builtin_ctzll(word));
	}
	return count;
}

uint64_t population_samples(const struct permutation *permutation, const uint64_t *bits,
			    const uint64_t *need)
{
	return population_samples_in(permutation, bits, need, 0, bits_words(permutation->blocks));
}

unsigned population_differ(const uint64_t *a, const uint64_t *b, uint64_t words)
{
	uint64_t more = 0, less = 0;

	for (uint64_t i = 0; i < words; i++) {
		more |= a[i] & ~b[i];
		less |= b[i] & ~a[i];
	}
	return (more ? POPULATION_A : 0) | (less ? POPULATION_B : 0);
}
