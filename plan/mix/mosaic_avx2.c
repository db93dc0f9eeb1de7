/* SPDX-License-Identifier: Apache-2.0 */

/* The loops of mosaic_picture.c, eight values at a time. Only what is no number may differ, in bits that no number has. */

#include "plan/mix/mosaic_loops.h"

#ifdef __x86_64__

#include <immintrin.h>

#define MOSAIC_AVX2 __attribute__((target("avx2,f16c")))

MOSAIC_AVX2 size_t mosaic_read_avx2(enum mosaic_type type, const uint8_t *from, size_t n, float *to)
{
	const uint16_t *half = (const uint16_t *)(const void *)from;
	size_t at = 0;

	if (type == MOSAIC_U8)
		for (; at + 8 <= n; at += 8) {
			__m128i bytes = _mm_loadl_epi64((const __m128i *)(const void *)(from + at));

			_mm256_storeu_ps(to + at, _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)));
		}
	else if (type == MOSAIC_F16)
		for (; at + 8 <= n; at += 8)
			_mm256_storeu_ps(to + at, _mm256_cvtph_ps(_mm_loadu_si128(
						      (const __m128i *)(const void *)(half + at))));
	return at;
}

MOSAIC_AVX2 size_t mosaic_write_avx2(enum mosaic_type type, const float *from, size_t n,
				     uint8_t *to)
{
	uint16_t *half = (uint16_t *)(void *)to;
	size_t at = 0;

	if (type == MOSAIC_U8)
		for (; at + 8 <= n; at += 8) {
			__m256 value =
			    _mm256_add_ps(_mm256_loadu_ps(from + at), _mm256_set1_ps(0.5f));
			__m256i whole = _mm256_cvttps_epi32(value);
			__m128i words = _mm_packus_epi32(_mm256_castsi256_si128(whole),
							 _mm256_extracti128_si256(whole, 1));

			_mm_storel_epi64((__m128i *)(void *)(to + at),
					 _mm_packus_epi16(words, words));
		}
	else if (type == MOSAIC_F16)
		for (; at + 8 <= n; at += 8)
			_mm_storeu_si128(
			    (__m128i *)(void *)(half + at),
			    _mm256_cvtps_ph(_mm256_loadu_ps(from + at), _MM_FROUND_TO_NEAREST_INT));
	return at;
}

static MOSAIC_AVX2 __m256 mosaic_between(__m256 one, __m256 other, __m256 share)
{
	return _mm256_add_ps(one, _mm256_mul_ps(_mm256_sub_ps(other, one), share));
}

MOSAIC_AVX2 size_t mosaic_down_avx2(const float *above, const float *below, float share, size_t n,
				    float *to)
{
	size_t at = 0;

	for (; at + 8 <= n; at += 8)
		_mm256_storeu_ps(to + at, mosaic_between(_mm256_loadu_ps(above + at),
							 _mm256_loadu_ps(below + at),
							 _mm256_set1_ps(share)));
	return at;
}

MOSAIC_AVX2 size_t mosaic_across_avx2(const float *values, size_t next, const int32_t *place,
				      const float *share, size_t n, float *to)
{
	size_t at = 0;

	for (; at + 8 <= n; at += 8) {
		__m256i where = _mm256_loadu_si256((const __m256i *)(const void *)(place + at));

		_mm256_storeu_ps(to + at,
				 mosaic_between(_mm256_i32gather_ps(values, where, 4),
						_mm256_i32gather_ps(values + next, where, 4),
						_mm256_loadu_ps(share + at)));
	}
	return at;
}

#else

size_t mosaic_read_avx2(enum mosaic_type type, const uint8_t *from, size_t n, float *to)
{
	(void)type, (void)from, (void)n, (void)to;
	return 0;
}

size_t mosaic_write_avx2(enum mosaic_type type, const float *from, size_t n, uint8_t *to)
{
	(void)type, (void)from, (void)n, (void)to;
	return 0;
}

size_t mosaic_down_avx2(const float *above, const float *below, float share, size_t n, float *to)
{
	(void)above, (void)below, (void)share, (void)n, (void)to;
	return 0;
}

size_t mosaic_across_avx2(const float *values, size_t next, const int32_t *place,
			  const float *share, size_t n, float *to)
{
	(void)values, (void)next, (void)place, (void)share, (void)n, (void)to;
	return 0;
}

#endif
