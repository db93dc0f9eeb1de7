/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What the two AugMix have in common, torchvision's (augment.c) and timm's (augment_timm.c): chains of changes of one picture, whose
 * results are added up with drawn weights. What a change is, is theirs.
 *
 * Drawn: a number of the op's, the weight of each chain, then of each chain so many changes, each of so many numbers, of which the
 * first is 0 where there is none.
 */

#include "pipeline/engine/steps.h"

struct augment_mix {            /* a plan */
	unsigned chains, depth; /* the most changes of a chain */
	unsigned numbers;       /* of a change */
	bool is_deep;           /* each chain has `depth`; else 1 to that, drawn */
};
/* chain_depth: below 1 for drawn ones, 1 to 3. */
struct augment_mix augment_mix_plan(double chains, double chain_depth, unsigned numbers);
/* Have all numbers room? A sentence, or NULL. */
const char *augment_mix_check(const struct augment_mix *mix);

/* n shares of 1, of Dirichlet(alpha, ..., alpha), as float32. */
void augment_mix_shares(struct philox_seq *seq, double alpha, unsigned n, float *ret);
/* How many changes the next chain has. */
unsigned augment_mix_depth(const struct augment_mix *mix, struct philox_seq *seq);
/* Where change number i of that chain is in what is drawn. */
unsigned augment_mix_at(const struct augment_mix *mix, unsigned chain, unsigned i);

/* One change of a picture of the scratch. */
typedef int augment_mix_fn(struct steps_scratch *scratch, const struct op *op, const double *number,
			   struct picture *picture);
/* Adds up: first x the picture, and each chain's result by its weight; in float32, one after the other, cut to whole numbers. With
 * last, Pillow's blend of the picture and that. */
int augment_mix_run(const struct augment_mix *mix, struct steps_scratch *scratch,
		    const struct op *op, const struct op_drawn *drawn, augment_mix_fn *change,
		    float first, const float *last, struct picture *picture);
