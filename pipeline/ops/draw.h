/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What random ops draw: functions of (seed, nonce, sample, number of the op) and of nothing else. */

#include "base/philox.h"
#include "pipeline/picture.h"
#include "pipeline/spec/op.h"

#define DRAW_CHOSEN 4
/* An op's first numbers that its picture's boxes have a part in (follow.h). */
struct draw_choice {
	double number[DRAW_CHOSEN];
};

/* Everything that the ops of one sample draw comes from here. */
struct draw {
	uint64_t key, counter;
	unsigned first; /* the number of op 0; 0 but for views (shape.draws) */
	const struct draw_choice
	    *choices; /* of each op that chooses; NULL: none does yet; borrowed */
};
void draw_init(struct draw *draw, const struct pipeline_key *key);

/* The numbers of op number index (from 0) of the pipeline, from their beginning. */
void draw_seq(const struct draw *draw, unsigned index, struct philox_seq *ret);

/* Of an op that needs many numbers: where they begin, for other programs (philox.h): of the key and of the counter's first half the
 * lower and the upper 32 bits each, the stream, and how many numbers are used. */
void draw_tell(const struct philox_seq *seq, double ret[6]);

/* One draw each, from a sequence. */
bool draw_chance(struct philox_seq *seq, double p);                   /* true in p of all draws */
double draw_between(struct philox_seq *seq, double low, double high); /* uniform in [low, high) */
/* Sides, in whole pixels, of a rectangle of that area and of a width over height that is uniform in its logarithm, 0 < ratio[0] <=
 * ratio[1]. */
void draw_sides(struct philox_seq *seq, double area, const double ratio[2], double *ret_height,
		double *ret_width);
/* Whole, uniform, both ends among them; low <= high. */
int64_t draw_integer(struct philox_seq *seq, int64_t low, int64_t high);
/* Of mean 0 and deviation 1: the first of the two that two words give, or both. */
double draw_normal(struct philox_seq *seq);
void draw_normal_floats(struct philox_seq *seq, float ret[2]);
/* The same of one word, quicker, for pictures of it: 32 bits of a word, so at most 6.4. */
float draw_normal_float(struct philox_seq *seq);

/* The part of a picture of height x width that random_resized_crop takes: at least one pixel, within
 * the picture. */
void draw_crop(struct philox_seq *seq, const struct op *op, uint32_t height, uint32_t width,
	       struct picture_box *ret);
