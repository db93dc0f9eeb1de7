/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The insides of batch_mix_sums.c: sums of the small floats by vectors. */

#include "base/base.h"

bool batch_mix_has_avx2(void);
/* As many as make whole vectors; returns how many that were. */
size_t batch_mix_f16_avx2(uint16_t *restrict out, const uint16_t *own, const uint16_t *other,
			  size_t n, float own_share, float other_share);
size_t batch_mix_bf16_avx2(uint16_t *restrict out, const uint16_t *own, const uint16_t *other,
			   size_t n, float own_share, float other_share);
