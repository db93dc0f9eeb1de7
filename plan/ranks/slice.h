/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A node's slice of a fixed plan: the places that the ranks of one node read, where a job has ranks on
 * several. The node has the ranks first .. first + count - 1 of R; of each step (ranks.h) these read
 * one run of places, so
 *
 *   place  phase + s R B + first B + i   of the epoch is
 *   local place    s count B + i         of the slice, i < count B
 *
 * and the last step's share, which may be shorter, or empty, follows. With drop_last it is left out.
 * The phase is where the ranks begin, modulo a step: 0 but in an epoch that a job resumed in. A
 * slice is arithmetic: nodes agree on it without a word, and together they have each place once.
 *
 * With a spread the node has as many places of each step, and they are numbered in the same way, but which of the
 * step's samples lie at them is said by spread.h.
 *
 * The slice of all ranks is whole: its places are the plan's, whatever phase and drop_last say.
 */

#include "plan/ranks/ranks.h"

struct slice {
	struct ranks ranks;    /* of the epoch; base: the phase */
	uint32_t first, count; /* ranks of the node; count 0: all of them */
	bool is_spread;        /* which of a step's samples are the node's: spread.h */
};

/* ranks->base: where the ranks begin. 1 <= count, first + count <= R. */
void slice_init(struct slice *ret, const struct ranks *ranks, uint32_t first, uint32_t count);
static inline bool slice_is_whole(const struct slice *slice)
{
	return !slice->count;
}
/* Local places of the epoch. */
uint64_t slice_places(const struct slice *slice);
/* Of a step, not of a whole slice; maybe 0. *ret_place: the place of the first. */
uint64_t slice_share(const struct slice *slice, uint64_t step, uint64_t *ret_place);
/* Of those, how many lie below a place of the plan: the local place of one that is the node's. */
uint64_t slice_local(const struct slice *slice, uint64_t place);
/* The place of a local one < slice_places(). Returns how many local places from there on lie side by
 * side in the plan, too. */
uint64_t slice_run(const struct slice *slice, uint64_t local, uint64_t *ret_place);
/* Are the same local places the same places of one plan? */
bool slice_is_same(const struct slice *a, const struct slice *b);
