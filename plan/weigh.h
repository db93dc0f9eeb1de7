/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Draws of items 0 .. n - 1 by weight, functions of their arguments alone, the same on every
 * machine. */

#include <stdint.h>

struct weigh {
	const double *weights; /* finite, not negative, one at least is not 0 */
	uint64_t n, seed, epoch;
};

/* places draws, each for itself: ret[i] is a function of (weights, seed, epoch, i). 0 or -ENOMEM. */
int weigh_with(const struct weigh *weigh, uint64_t places, uint64_t *ret);
/* places different items, in ascending order. 0, -EINVAL: none, or fewer have weight, or -ENOMEM. */
int weigh_without(const struct weigh *weigh, uint64_t places, uint64_t *ret);
