/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sums of mixup, in the order in which torch computes other.mul(1 - lambda).add(own.mul(lambda)): each
 * operation is rounded to the type of the values, and the two factors to float32, so that nothing differs
 * from torch's by a bit. (The build forbids fused multiplications, which round once for two operations.)
 *
 * Float32s are gone through in blocks of a fixed size, which compilers make vectors of at -O2, too; for the small
 * floats batch_mix_avx2.c does, where the CPU can.
 */

#include "base/half.h"
#include "plan/mix/batch_mix.h"
#include "plan/mix/batch_mix_sums.h"

#define BATCH_MIX_BLOCK 16

static inline float batch_mix_one_f32(float own, float other, float own_share, float other_share)
{
	float a = other * other_share, b = own * own_share;

	return a + b;
}

static inline uint16_t batch_mix_one_f16(uint16_t own, uint16_t other, float own_share,
					 float other_share)
{
	float a = half_f16_value(half_f16(half_f16_value(other) * other_share));
	float b = half_f16_value(half_f16(half_f16_value(own) * own_share));

	return half_f16(a + b);
}

static inline uint16_t batch_mix_one_bf16(uint16_t own, uint16_t other, float own_share,
					  float other_share)
{
	float a = half_bf16_value(half_bf16(half_bf16_value(other) * other_share));
	float b = half_bf16_value(half_bf16(half_bf16_value(own) * own_share));

	return half_bf16(a + b);
}

void batch_mix_f32(float *restrict out, const float *own, const float *other, size_t n,
		   double lambda)
{
	const float own_share = (float)lambda, other_share = (float)(1 - lambda);
	size_t at = 0;

	for (; at + BATCH_MIX_BLOCK <= n; at += BATCH_MIX_BLOCK)
		for (unsigned i = 0; i < BATCH_MIX_BLOCK; i++)
			out[at + i] =
			    batch_mix_one_f32(own[at + i], other[at + i], own_share, other_share);
	for (; at < n; at++)
		out[at] = batch_mix_one_f32(own[at], other[at], own_share, other_share);
}

void batch_mix_f16(uint16_t *restrict out, const uint16_t *own, const uint16_t *other, size_t n,
		   double lambda)
{
	const float own_share = (float)lambda, other_share = (float)(1 - lambda);
	size_t at = 0;

	if (batch_mix_has_avx2())
		at = batch_mix_f16_avx2(out, own, other, n, own_share, other_share);
	for (; at < n; at++)
		out[at] = batch_mix_one_f16(own[at], other[at], own_share, other_share);
}

void batch_mix_bf16(uint16_t *restrict out, const uint16_t *own, const uint16_t *other, size_t n,
		    double lambda)
{
	const float own_share = (float)lambda, other_share = (float)(1 - lambda);
	size_t at = 0;

	if (batch_mix_has_avx2())
		at = batch_mix_bf16_avx2(out, own, other, n, own_share, other_share);
	for (; at < n; at++)
		out[at] = batch_mix_one_bf16(own[at], other[at], own_share, other_share);
}

void batch_mix_classes(float *restrict out, uint64_t own, uint64_t other, size_t n, double lambda)
{
	memset(out, 0, n * sizeof(*out));
	out[other] = (float)(1 - lambda);
	out[own] += (float)lambda;
}
