/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Populations are computed once an open, by the job, in time proportional to the dataset (a walk
 * through the deal costs some 40 ns a sample), so that accessd has nothing to do for a subset but to
 * copy n / 8 bytes.
 *
 * The permutation of a split is the deal's network under another key, over grains instead of
 * samples. A boundary x lies behind round(x * grains) places, computed the same for both parts that
 * touch there.
 */

#include "sched/population.h"

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"

/* Apart from every other use of a seed. */
#define POPULATION_STREAM UINT64_C(0x73706c6974000000) /* "split" */

/* ---- splits ---- */

static uint64_t boundary(const struct deal *deal, double x)
{
	return (uint64_t)(x * (double)deal->grains + 0.5);
}

struct part {
	struct deal order; /* of grains */
	uint64_t first, end;
};

static struct part part_of(const struct deal *deal, const uint8_t version[32],
			   const struct population_split *split)
{
	struct philox block = philox_block(split->seed, 0, POPULATION_STREAM);
	struct part part;

	deal_init(&part.order, deal->grains, version);
	part.order.key[0] ^= (uint64_t)block.word[1] << 32 | block.word[0];
	part.order.key[1] ^= (uint64_t)block.word[3] << 32 | block.word[2];
	part.first = boundary(deal, split->from);
	part.end = boundary(deal, split->to);
	return part;
}

static bool has(const struct part *part, uint64_t grain)
{
	uint64_t place = deal_position(&part->order, grain);

	return place >= part->first && place < part->end;
}

bool population_has_grain(const struct deal *deal, const uint8_t version[32],
			  const struct population_split *split, uint64_t grain)
{
	struct part part = part_of(deal, version, split);

	return has(&part, grain);
}

static uint64_t mask_of(const struct deal *deal, uint64_t grain)
{
	uint64_t ones = UINT64_MAX >> (64 - deal->grain);

	return ones << (grain * deal->grain % 64);
}

static uint64_t word_of(const struct deal *deal, uint64_t grain)
{
	return grain * deal->grain / 64;
}

void population_keep_split(const struct deal *deal, const uint8_t version[32],
			   const struct population_split *split, uint64_t *bits)
{
	struct part part = part_of(deal, version, split);

	for (uint64_t grain = 0; grain < deal->grains; grain++)
		if (!has(&part, grain))
			bits[word_of(deal, grain)] &= ~mask_of(deal, grain);
}

/* ---- ids and classes ---- */

uint64_t population_add_ids(const struct deal *deal, const int64_t *ids, uint64_t n_ids,
			    uint64_t *bits)
{
	for (uint64_t i = 0; i < n_ids; i++) {
		uint64_t position;

		if (ids[i] < 0 || (uint64_t)ids[i] >= deal->n)
			return i + 1;
		position = deal_position(deal, (uint64_t)ids[i]);
		if (bits_test(bits, position))
			return i + 1;
		bits_set(bits, position);
	}
	return 0;
}

void population_keep_classes(const struct deal *deal, const uint32_t *labels, const bool *wanted,
			     uint64_t *bits)
{
	for (uint64_t id = 0; id < deal->n; id++)
		if (!wanted[labels[id]])
			bits_clear(bits, deal_position(deal, id));
}

/* ---- members ---- */

uint32_t population_of_grain(const struct deal *deal, const uint64_t *bits, uint64_t grain)
{
	return (uint32_t)__builtin_popcountll(bits[word_of(deal, grain)] & mask_of(deal, grain));
}

uint64_t population_need(const struct deal *deal, const uint64_t *bits, uint64_t from, uint64_t end,
			 uint64_t *need)
{
	uint64_t grains = 0;

	for (uint64_t grain = from; grain < end; grain++) {
		if (!(bits[word_of(deal, grain)] & mask_of(deal, grain))) {
			bits_clear(need, grain);
			continue;
		}
		bits_set(need, grain);
		grains++;
	}
	return grains;
}

/* All samples of the grains in so many words of need. */
static uint64_t all_samples(const struct deal *deal, const uint64_t *need, uint64_t from,
			    uint64_t end)
{
	const uint64_t grains = BASE_MIN(64 * end, deal->grains);
	uint64_t count;

	if (64 * from >= grains)
		return 0;
	count = bits_count(need + from, grains - 64 * from) * deal->grain;
	if (grains == deal->grains && bits_test(need, grains - 1))
		count -= deal->grain - deal_grain_size(deal, grains - 1);
	return count;
}

uint64_t population_samples_in(const struct deal *deal, const uint64_t *bits, const uint64_t *need,
			       uint64_t from, uint64_t end)
{
	uint64_t count = 0;

	if (!bits || deal->grain == 1)
		return all_samples(deal, need, from, end);
	for (uint64_t i = from; i < end; i++) {
		const uint64_t first = i * 64 * deal->grain;

		if (need[i] == UINT64_MAX) { /* most are, and 64 grains are whole words */
			count += bits_count(bits + first / 64,
					    BASE_MIN(UINT64_C(64) * deal->grain, deal->n - first));
			continue;
		}
		for (uint64_t word = need[i]; word; word &= word - 1)
			count += population_of_grain(deal, bits,
						     i * 64 + (unsigned)__builtin_ctzll(word));
	}
	return count;
}

uint64_t population_samples(const struct deal *deal, const uint64_t *bits, const uint64_t *need)
{
	return population_samples_in(deal, bits, need, 0, bits_words(deal->grains));
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
