/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Which node of a step gets which sample, where that follows the samples instead of their places. A
 * step is a set: gradients are summed, so which rank has which sample is free. Each sample has an
 * owner among the nodes, by the dataset version and its number (base/owner.h); in the order of the plan
 * it goes to its owner, as long as that has room in this step, and what is over goes, in the order of
 * the plan, where room is left. So nodes read mostly the same samples in each epoch, and find them
 * in their own stores, while every step is the set of samples that it is without.
 *
 * Nodes have equally many ranks. They are taken in cells, of so many that a cell has no more than
 * SPREAD_MOST places a step: a cell's places are a run of the step. A function of the plan,
 * the slice and the step, so nodes agree without a word, and no token knows of it.
 */

#include "base/owner.h"
#include "plan/plan.h"
#include "plan/ranks/slice.h"

/* Another one where another node gets a sample: who has the same agree. */
#define SPREAD_ARITHMETIC 2
#define SPREAD_CELL OWNER_SPREAD /* nodes at most */
#define SPREAD_MOST 4096         /* places of a cell in a step */

/* Has each node of the slice's job as many ranks as this one? */
bool spread_is_even(const struct slice *slice);
/* Which of the job's nodes this is, and how many there are: all in one cell, so that each sample has one owner among them in
 * every step. false: it is not so, or nothing is spread. */
bool spread_place(const struct slice *slice, uint32_t *ret_number, uint32_t *ret_nodes);
/* How many samples of the plan are computed for a chunk, at most. */
uint64_t spread_work(const struct slice *slice, uint32_t chunk);
/* The samples at count local places of the slice, which lie within the epoch. */
void spread_samples(const struct slice *slice, const struct plan *plan, uint64_t epoch,
		    uint64_t local, uint32_t count, int64_t *ret_ids);
