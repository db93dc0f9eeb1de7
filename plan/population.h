/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A population: which samples a job's epochs have, as a bitmap over positions of the permutation (n bits;
 * bits past n are 0), so that the members of a block lie in one word. Computed by the client, from a
 * list of ids, from classes, from a part of a random split; accessd takes the bitmap as it is.
 *
 * A split is one of blocks: block q is in the part from .. to if its place in a permutation of all
 * blocks, keyed by (dataset version, split seed), is. Where from is above to, the part is all but to .. from. Blocks are cut from the permutation, which knows
 * nothing of contents, so a split is as random as one of samples, and shares whole blocks with
 * everybody. Up to 524,288 samples a block is a sample; above, the size of a part is right to within
 * half a block. Parts that touch have no sample in common and leave none out. Frozen by known
 * answers: tokens name splits.
 */

#include <stdbool.h>
#include <stdint.h>

#include "plan/permutation.h"

struct population_split {
	double from, to; /* 0 to 1; equal: none */
	uint64_t seed;
};
static inline bool population_is_split(const struct population_split *split)
{
	return split->from != split->to;
}

/* Is the block in the part? version: the permutation's. */
bool population_has_block(const struct permutation *permutation, const uint8_t version[32],
			  const struct population_split *split, uint64_t block);
/* Takes the blocks out of bits that are not in the part. */
void population_keep_split(const struct permutation *permutation, const uint8_t version[32],
			   const struct population_split *split, uint64_t *bits);
/* Sets the positions of the ids in bits. 0; or, of the first id that is out of range or in there
 * already, its index + 1. */
uint64_t population_add_ids(const struct permutation *permutation, const int64_t *ids,
			    uint64_t n_ids, uint64_t *bits);
/* Takes the samples out of bits whose class is not wanted: label of each id, wanted by label. */
void population_keep_classes(const struct permutation *permutation, const uint32_t *labels,
			     const bool *wanted, uint64_t *bits);

/* Members that a block has. */
uint32_t population_of_block(const struct permutation *permutation, const uint64_t *bits,
			     uint64_t block);
/* Of the blocks from .. end: sets the bits of need, over blocks, that have a member; the others are cleared. Number
 * of them. */
uint64_t population_need(const struct permutation *permutation, const uint64_t *bits, uint64_t from,
			 uint64_t end, uint64_t *need);
/* Members of the blocks in need. bits NULL: all samples. */
uint64_t population_samples(const struct permutation *permutation, const uint64_t *bits,
			    const uint64_t *need);
/* The same of those in need's words from `from` to `end`, for who may not count for long at once: POPULATION_STEP
 * words take a tenth of a millisecond or two. */
#define POPULATION_STEP 1024
uint64_t population_samples_in(const struct permutation *permutation, const uint64_t *bits,
			       const uint64_t *need, uint64_t from, uint64_t end);
/* Which of so many words of a and b have members that the other one has not: these, ORed. */
enum { POPULATION_A = 1, POPULATION_B = 2 };
unsigned population_differ(const uint64_t *a, const uint64_t *b, uint64_t words);
