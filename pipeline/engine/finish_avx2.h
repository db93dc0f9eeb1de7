/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Values of finish_avx2.c, for what makes them of something else than bytes (fuse_avx2.c). Only for
 * x86-64. */

#include <immintrin.h>
#include "pipeline/engine/finish.h"

#define FINISH_AVX2 __attribute__((target("avx2,fma,f16c")))
#define FINISH_AVX2_IN FINISH_AVX2 static inline __attribute__((always_inline))

struct finish_avx2_line {
	__m256 scale, scale_rest, mean, inverse, inverse_rest;
};

/* The line of channel c for all of eight values. */
FINISH_AVX2_IN struct finish_avx2_line finish_avx2_line(const struct finish *finish, unsigned c)
{
	const struct finish_line *line = &finish->line[c];

	return (struct finish_avx2_line){
	    _mm256_broadcast_ss(&line->scale), _mm256_broadcast_ss(&line->scale_rest),
	    _mm256_broadcast_ss(&line->mean), _mm256_broadcast_ss(&line->inverse),
	    _mm256_broadcast_ss(&line->inverse_rest)};
}

FINISH_AVX2_IN __m256 finish_avx2_normalize(const struct finish_avx2_line *line, __m256 value)
{
	value = _mm256_fmadd_ps(value, line->scale, _mm256_mul_ps(value, line->scale_rest));
	value = _mm256_sub_ps(value, line->mean);
	return _mm256_fmadd_ps(value, line->inverse, _mm256_mul_ps(value, line->inverse_rest));
}

/* Eight float32 to float16, or to bfloat16 as half_bf16 does. */
FINISH_AVX2_IN __m128i finish_avx2_half(__m256 value, bool brain)
{
	__m256i bits = _mm256_castps_si256(value), odd;

	if (!brain)
		return _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT);
	odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
	bits = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
	bits = _mm256_srli_epi32(bits, 16);
	return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

/* Eight values to out, which holds at least that many. */
FINISH_AVX2_IN void finish_avx2_put(__m256 value, enum pipeline_dtype dtype, bool past,
				    uint8_t *out)
{
	if (dtype == PIPELINE_F32 && past)
		_mm256_stream_ps((float *)out, value);
	else if (dtype == PIPELINE_F32)
		_mm256_storeu_ps((float *)out, value);
	else if (past)
		_mm_stream_si128((__m128i *)out, finish_avx2_half(value, dtype == PIPELINE_BF16));
	else
		_mm_storeu_si128((__m128i *)out, finish_avx2_half(value, dtype == PIPELINE_BF16));
}
