/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sums of plane_avx2.c, for what makes more of them at once (fuse_avx2.c). Only for x86-64. */

#include <immintrin.h>
#include "pipeline/engine/plane.h"

#define PLANE_AVX2_HALF (1 << (FILTER_BITS - 1))
#define PLANE_AVX2_REST (FILTER_BITS - PLANE_LOW_BITS) /* bits of fraction of 16-bit results */
#define PLANE_AVX2 __attribute__((target("avx2")))
#define PLANE_AVX2_IN PLANE_AVX2 static inline __attribute__((always_inline))

/* plane_avx2.c; as those of plane_kernels */
void plane_avx2_across(const struct plane_table *table, const uint8_t *a, const uint8_t *b,
		       uint8_t *to);
void plane_avx2_zip(const uint8_t *a, const uint8_t *b, uint32_t n, uint8_t *to);
void plane_avx2_unzip(const uint8_t *from, uint32_t n, uint8_t *a, uint8_t *b);
void plane_avx2_down(const uint8_t *const rows[], uint32_t pairs, const int16_t *split, uint32_t n,
		     uint8_t *to);
void plane_avx2_mirror(const uint8_t *from, uint32_t n, uint8_t *to);

struct plane_avx2_sum {
	__m256i high, low;
};

PLANE_AVX2_IN struct plane_avx2_sum plane_avx2_zero(void)
{
	return (struct plane_avx2_sum){_mm256_setzero_si256(), _mm256_setzero_si256()};
}

PLANE_AVX2_IN void plane_avx2_add(struct plane_avx2_sum *sum, __m256i inputs, __m256i high,
				  __m256i low)
{
	sum->high = _mm256_add_epi32(sum->high, _mm256_madd_epi16(inputs, high));
	sum->low = _mm256_add_epi32(sum->low, _mm256_madd_epi16(inputs, low));
}

/* The results, PLANE_AVX2_REST bits of them fraction, as 32-bit numbers. */
PLANE_AVX2_IN __m256i plane_avx2_value(struct plane_avx2_sum sum)
{
	return _mm256_add_epi32(sum.high, _mm256_srai_epi32(sum.low, PLANE_LOW_BITS));
}

/* The same, as the upper halves of 32-bit numbers; the lower ones are anything. */
PLANE_AVX2_IN __m256i plane_avx2_value_above(struct plane_avx2_sum sum)
{
	return _mm256_add_epi32(_mm256_slli_epi32(sum.high, PLANE_LOW_BITS), sum.low);
}

/* 16-bit numbers with PLANE_AVX2_REST bits of fraction, rounded. */
PLANE_AVX2_IN __m256i plane_avx2_round(__m256i values)
{
	return _mm256_mulhrs_epi16(values, _mm256_set1_epi16(1 << (15 - PLANE_AVX2_REST)));
}

/* ---- along columns ----
 *
 * Sixteen outputs at a time, as 16-bit numbers in a group's order, not clipped yet. */

struct plane_avx2_pair { /* of rows, and of weights, the same for all outputs */
	const uint8_t *rows;
	__m256i high, low;
};

/* May few pairs' high parts be multiplied as bytes? Then no sum of them leaves 16 bits. */
static inline bool plane_avx2_is_small(const int16_t *split, uint32_t pairs)
{
	int sum = 0;

	for (uint32_t i = 0; i < pairs; i++)
		sum += abs(split[4 * i]) + abs(split[4 * i + 1]);
	return sum <= 128;
}

/* For few pairs: high parts as bytes. */
PLANE_AVX2_IN struct plane_avx2_pair plane_avx2_pair_small(const uint8_t *rows,
							   const int16_t *split)
{
	int low;

	memcpy(&low, split + 2, 4);
	return (struct plane_avx2_pair){
	    rows, _mm256_set1_epi16((int16_t)((split[0] & 0xff) | split[1] * 256)),
	    _mm256_set1_epi32(low)};
}

struct plane_avx2_group { /* sums of high parts, 16 bits; of low parts, 32 bits, by halves */
	__m256i high, low, low_rest;
};

PLANE_AVX2_IN void plane_avx2_add_small(struct plane_avx2_group *sums,
					const struct plane_avx2_pair *pair, uint32_t x)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i bytes = _mm256_loadu_si256((const __m256i *)(pair->rows + 2 * (size_t)x));
	__m256i low = _mm256_madd_epi16(_mm256_unpacklo_epi8(bytes, zero), pair->low);
	__m256i rest = _mm256_madd_epi16(_mm256_unpackhi_epi8(bytes, zero), pair->low);

	sums->high = _mm256_add_epi16(sums->high, _mm256_maddubs_epi16(bytes, pair->high));
	sums->low = _mm256_add_epi32(sums->low, low);
	sums->low_rest = _mm256_add_epi32(sums->low_rest, rest);
}

/* The results, rounded. */
PLANE_AVX2_IN __m256i plane_avx2_group_value(const struct plane_avx2_group *sums)
{
	__m256i low = _mm256_packs_epi32(_mm256_srai_epi32(sums->low, PLANE_LOW_BITS),
					 _mm256_srai_epi32(sums->low_rest, PLANE_LOW_BITS));

	return plane_avx2_round(_mm256_add_epi16(sums->high, low));
}

/* Outputs x to x + 15 of one to three pairs. */
PLANE_AVX2_IN __m256i plane_avx2_few(const struct plane_avx2_pair pair[3], uint32_t pairs,
				     uint32_t x)
{
	const __m256i zero = _mm256_setzero_si256();
	struct plane_avx2_group sums = {zero, zero, zero};

	plane_avx2_add_small(&sums, &pair[0], x);
	if (pairs > 1)
		plane_avx2_add_small(&sums, &pair[1], x);
	if (pairs > 2)
		plane_avx2_add_small(&sums, &pair[2], x);
	return plane_avx2_group_value(&sums);
}

/* The same of any number of pairs. */
PLANE_AVX2_IN __m256i plane_avx2_many(const uint8_t *const rows[], uint32_t pairs,
				      const int16_t *split, uint32_t x)
{
	const __m256i zero = _mm256_setzero_si256();
	struct plane_avx2_sum low = plane_avx2_zero(), rest = low;

	for (uint32_t i = 0; i < pairs; i++, split += 4) {
		const __m256i *at = (const __m256i *)(rows[i] + 2 * (size_t)x);
		__m256i bytes = _mm256_loadu_si256(at), high_weight, low_weight;
		int weights[2];

		memcpy(weights, split, sizeof(weights));
		high_weight = _mm256_set1_epi32(weights[0]);
		low_weight = _mm256_set1_epi32(weights[1]);
		plane_avx2_add(&low, _mm256_unpacklo_epi8(bytes, zero), high_weight, low_weight);
		plane_avx2_add(&rest, _mm256_unpackhi_epi8(bytes, zero), high_weight, low_weight);
	}
	return plane_avx2_round(_mm256_packs_epi32(plane_avx2_value(low), plane_avx2_value(rest)));
}
