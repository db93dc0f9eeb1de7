/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_DRAW_H
#define PIPELINE_DRAW_H

/* What random ops draw: functions of (seed, lap, sample, number of the op) and of nothing else. */

#include "pipeline/op.h"
#include "pipeline/picture.h"

/* Everything that the ops of one sample draw comes from here. */
struct draw {
	uint64_t key, counter;
};
void draw_init(struct draw *draw, const struct pipeline_key *key);

/* The part of a picture of height x width that random_resized_crop, op number index (from 0) of the
 * pipeline, takes: at least one pixel, within the picture. */
void draw_crop(const struct draw *draw, unsigned index, const struct op *op, uint32_t height,
	       uint32_t width, struct picture_box *ret);
/* Does hflip flip? */
bool draw_flip(const struct draw *draw, unsigned index, const struct op *op);

#endif
