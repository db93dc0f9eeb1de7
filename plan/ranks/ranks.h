/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A fixed plan shared out among R ranks (DESIGN.md section 3). Counted from `base`, the place at
 * which the ranks begin in this epoch, batch k is the places base + kB .. base + kB + B - 1, and goes
 * to rank k mod R at step k / R. What is left after the last full step, fewer than BR places, is one
 * more step, split as evenly as can be, the first ranks one more; with drop_last it is left out. So
 * every rank has the same number of batches, the last of which may be short or, where fewer places
 * than ranks are left, empty.
 */

#include <stdbool.h>
#include <stdint.h>

struct ranks {
	uint64_t n, base; /* base <= n */
	uint32_t batch, ranks;
	bool drop_last;
};

/* Batches that each rank has, from base to the end of the epoch. */
uint64_t ranks_steps(const struct ranks *ranks);
/* The rank's batch at a step < ranks_steps(): its first place; returns its places, maybe 0. */
uint32_t ranks_part(const struct ranks *ranks, uint32_t rank, uint64_t step, uint64_t *ret_first);
/* The place at which all go on when `steps` steps are over: n at the end, also with drop_last. */
uint64_t ranks_place(const struct ranks *ranks, uint64_t steps);
