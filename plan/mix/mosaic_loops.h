/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The insides of mosaic_picture.c by vectors, where batch_mix_has_avx2(). Each does as many as make whole vectors, and
 * returns how many that were. */

#include "plan/mix/batch_mix_sums.h"
#include "plan/mix/mosaic.h"

size_t mosaic_read_avx2(enum mosaic_type type, const uint8_t *from, size_t n, float *to);
size_t mosaic_write_avx2(enum mosaic_type type, const float *from, size_t n, uint8_t *to);
/* above + (below - above) share */
size_t mosaic_down_avx2(const float *above, const float *below, float share, size_t n, float *to);
/* The same of values[place] and values[place + next]. */
size_t mosaic_across_avx2(const float *values, size_t next, const int32_t *place,
			  const float *share, size_t n, float *to);
