/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCHED_POPULATION_H
#define SCHED_POPULATION_H

/*
 * A population: which samples a job's epochs have, as a bitmap over positions of the deal (n bits;
 * bits past n are 0), so that the members of a grain lie in one word. Computed by the client, from a
 * list of ids, from classes, from a part of a random split; accessd takes the bitmap as it is.
 *
 * A split is one of grains: grain q is in the part from .. to if its place in a permutation of all
 * grains, keyed by (dataset version, split seed), is. Grains are cut from the deal, which knows
 * nothing of contents, so a split is as random as one of samples, and shares whole grains with
 * everybody. Up to 524,288 samples a grain is a sample; above, the size of a part is right to within
 * half a grain. Parts that touch have no sample in common and leave none out. Frozen by known
 * answers: tokens name splits.
 */

#include <stdbool.h>
#include <stdint.h>

#include "sched/deal.h"

struct population_split {
	double from, to; /* 0 <= from < to <= 1 */
	uint64_t seed;
};
static inline bool population_is_split(const struct population_split *split)
{
	return split->from < split->to;
}

/* Is the grain in the part? version: the deal's. */
bool population_has_grain(const struct deal *deal, const uint8_t version[32],
			  const struct population_split *split, uint64_t grain);
/* Takes the grains out of bits that are not in the part. */
void population_keep_split(const struct deal *deal, const uint8_t version[32],
			   const struct population_split *split, uint64_t *bits);
/* Sets the positions of the ids in bits. 0; or, of the first id that is out of range or in there
 * already, its index + 1. */
uint64_t population_add_ids(const struct deal *deal, const int64_t *ids, uint64_t n_ids,
			    uint64_t *bits);
/* Takes the samples out of bits whose class is not wanted: label of each id, wanted by label. */
void population_keep_classes(const struct deal *deal, const uint32_t *labels, const bool *wanted,
			     uint64_t *bits);

/* Members that a grain has. */
uint32_t population_of_grain(const struct deal *deal, const uint64_t *bits, uint64_t grain);
/* Of the grains from .. end: sets the bits of need, over grains, that have a member; the others are cleared. Number
 * of them. */
uint64_t population_need(const struct deal *deal, const uint64_t *bits, uint64_t from, uint64_t end,
			 uint64_t *need);
/* Members of the grains in need. bits NULL: all samples. */
uint64_t population_samples(const struct deal *deal, const uint64_t *bits, const uint64_t *need);
/* The same of those in need's words from `from` to `end`, for who may not count for long at once: POPULATION_STEP
 * words take a tenth of a millisecond or two. */
#define POPULATION_STEP 1024
uint64_t population_samples_in(const struct deal *deal, const uint64_t *bits, const uint64_t *need,
			       uint64_t from, uint64_t end);
/* Which of so many words of a and b have members that the other one has not: these, ORed. */
enum { POPULATION_A = 1, POPULATION_B = 2 };
unsigned population_differ(const uint64_t *a, const uint64_t *b, uint64_t words);

#endif
