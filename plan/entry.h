/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The plan of a job of several ranks, as far as it is known: a log of chunks, one entry each, in the
 * order in which their samples have places in the epochs. An entry says all there is to know: which
 * samples are at these places, and by which seed and nonce they are made.
 *
 * And what such a log leaves: the set of samples of an epoch that lie above some place of it, as
 * a token says it (plan/token.h): whole blocks, and single samples of begun ones.
 */

#include "base/base.h"
#include "base/plan_entry.h"
#include "plan/permutation.h"

struct entry_set { /* which samples the epochs of the log have; borrowed */
	const struct permutation *permutation;
	const uint64_t *bits; /* a population (plan/population.h), NULL: all */
	/* What is known of it, so that an epoch begins without a look at each sample: its blocks, NULL: nothing; its
	 * samples. */
	const uint64_t *blocks;
	uint64_t samples;
};

/* Does it end at or before the place of that epoch? */
static inline bool entry_ends_by(const struct entry *entry, uint64_t epoch, uint64_t place)
{
	return entry->epoch < epoch ||
	       (entry->epoch == epoch && entry->place + entry->count <= place);
}

/* Writes the samples at the entry's places in order (room for count). */
void entry_samples(const struct entry_set *set, const struct entry *entry, int64_t *ret_ids);
/* Does the entry agree with itself and with the set? For one that came from elsewhere. */
bool entry_is_good(const struct entry_set *set, const struct entry *entry);

struct entry_rest { /* of an epoch, what is at `place` and above */
	uint64_t epoch, place;
	uint64_t *need;      /* owned; whole blocks */
	uint64_t samples;    /* of the set, in those */
	int64_t *tail;       /* owned; samples of others */
	uint64_t *positions; /* owned; of the tail in the permutation */
	uint32_t n_tail;
};

enum { ENTRY_E_BAD = 1 };

/* A copy of need and tail (NULL: all that have a sample of the set, no tail). 0 or -ENOMEM. */
int entry_rest_init(const struct entry_set *set, const uint64_t *need, const int64_t *tail,
		    uint32_t n_tail, struct entry_rest *ret);
/* The same of one whose samples are known; its positions need not be. */
int entry_rest_copy(const struct entry_set *set, const struct entry_rest *from,
		    struct entry_rest *ret);
void entry_rest_fini(struct entry_rest *rest);
uint64_t entry_rest_count(const struct entry_rest *rest);
void entry_rest_clear(const struct entry_set *set, struct entry_rest *rest); /* nothing is left */
/* The block is not left as a whole, if it was. */
void entry_rest_take_block(const struct entry_set *set, struct entry_rest *rest, uint64_t block);
/*
 * These samples are left no longer; are left, too: a block of which all samples are is a whole one. What is no sample
 * of the set is passed over, and what is so already stays. 0 or -ENOMEM: nothing has changed.
 */
int entry_rest_take(const struct entry_set *set, struct entry_rest *rest, const int64_t *ids,
		    uint32_t count);
int entry_rest_put(const struct entry_set *set, struct entry_rest *rest, const int64_t *ids,
		   uint32_t count);
/* All samples of the next epoch. */
void entry_rest_next_epoch(const struct entry_set *set, struct entry_rest *rest);
/*
 * Goes on to the place `to` inside the entry or at its end: what lies between is no longer in the
 * rest. An empty rest goes on with all samples of the next epoch; an entry below the place changes
 * nothing. 0; ENTRY_E_BAD: it does not follow, or names samples that are not in the rest; -ENOMEM. The
 * rest is of no use any more then. Takes time by what is in the entry and in the tail, not by what is in
 * the set.
 */
int entry_rest_pass(const struct entry_set *set, struct entry_rest *rest, const struct entry *entry,
		    uint64_t to);
