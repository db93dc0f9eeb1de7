/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The part of a dataset that a job's epochs have: the set that its sampler's ids, classes and split
 * leave. Computed once, when the stream is opened; a later session is told the same.
 */

#include "base/bits.h"
#include "libaccess/sampler.h"
#include "plan/population.h"
#include "shmring/catalog.h"

struct part {              /* owned; all zero but fd -1: all samples */
	uint64_t n, count; /* of the dataset, in the part */
	uint8_t version[32];
	uint64_t *bits;    /* over positions of the permutation, as OPEN sends it */
	uint64_t *members; /* over ids; NULL: no chunk that is granted has others */
	struct population_split split;
	bool is_random; /* a split and nothing else */
	int fd;         /* sealed memfd with bits */
};

void part_init(struct part *part);
void part_fini(struct part *part);
/* All but which dataset version it was of. */
void part_forget(struct part *part);
/* Does the sampler leave samples out? with_ids: also by its ids (a fixed plan takes them as a list). */
bool part_is_asked(const struct sampler *sampler, bool with_ids);
/* Computes it into an initialised part. 0; OA_E_INVALID with diag: a class that is not there, an id out
 * of range or twice, nobody in it; negative errno. part_fini() in any case. */
int part_make(struct part *part, const struct sampler *sampler, bool with_ids,
	      const struct catalog *catalog, struct diag *diag);
/* After a part_make(): makes the descriptor for OPEN. 0 or negative errno. */
int part_seal(struct part *part);
/* For a fixed plan: of the sampler's ids and weights those that are in the part (all of a part's, if it
 * has no ids), in their order; classes and split are spent. 0, OA_E_INVALID with diag: none, or fewer
 * with weight than are drawn, or -ENOMEM. */
int part_filter(const struct part *part, struct sampler *sampler, struct diag *diag);
/* Its ids, ascending: part->count of them (heap, caller owns). 0 or -ENOMEM. */
int part_list(const struct part *part, int64_t **ret_ids);
/* After part_make(), for any id. */
static inline bool part_has(const struct part *part, int64_t id)
{
	return (uint64_t)id < part->n && bits_test(part->members, (uint64_t)id);
}
