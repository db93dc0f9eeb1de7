/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Several parts mixed in exact ratios: which part the h-th unit (a sample, or a batch) of an epoch is
 * of. With whole weights w_i and S their sum, after any number h of units part i was chosen c_i times
 * with
 *
 *	|c_i - h w_i / S| < 1
 *
 * so also after every batch, whatever its size, and exactly w_i times in each S units. Unit number
 * j of part i (from 0) has the window of places floor(j S / w_i) .. ceil((j + 1) S / w_i) - 1; the
 * unit whose window is open and ends first comes next. Such windows can always be kept, and choosing
 * by the end keeps them (Baruah, Cohen, Plaxton, Varvel, "Proportionate progress: a notion of fairness
 * in resource allocation", Algorithmica 15, 1996).
 *
 * Everything is a function of the weights and h alone. Frozen by known answers, as tokens of mixes name
 * places.
 */

#include "base/base.h"

#define BLEND_MAX_PARTS 64
#define BLEND_MAX_PERIOD 1000000            /* sum of the weights in lowest terms */
#define BLEND_MAX_UNITS (UINT64_C(1) << 42) /* of a part in an epoch */

/* When an epoch ends. Frozen: in tokens and the public header. */
enum blend_end {
	BLEND_FIRST = 0,   /* before the first part would begin again */
	BLEND_ALL = 1,     /* when each part was at its end at least once */
	BLEND_LONGEST = 2, /* when the part with the most units was */
};

struct blend {
	uint32_t n, period;
	uint32_t weight[BLEND_MAX_PARTS]; /* in lowest terms */
};

struct blend_place {
	uint64_t units; /* so many have been chosen in this epoch */
	uint64_t count[BLEND_MAX_PARTS];
};

enum { BLEND_E_BAD = 1 };

/* BLEND_E_BAD: no parts or too many, a weight of 0, a sum that is too large. */
int blend_init(struct blend *blend, const uint32_t *weights, uint32_t n);
/* The place after so many units of an epoch: at most a period of steps. */
void blend_seek(const struct blend *blend, uint64_t units, struct blend_place *ret);
/* The part of the next unit. */
uint32_t blend_peek(const struct blend *blend, const struct blend_place *place);
uint32_t blend_next(const struct blend *blend, struct blend_place *place);
/* Units of an epoch of parts with so many units each, 1 .. BLEND_MAX_UNITS. */
uint64_t blend_length(const struct blend *blend, const uint64_t *units, enum blend_end end);
/* Puts the parts of a batch's samples, chosen in a row, into the order in which they lie in it:
 * a random permutation, keyed by (seed, epoch, place of the batch's first unit). */
void blend_scatter(uint64_t seed, uint64_t epoch, uint64_t units, uint32_t *parts, uint32_t count);
