/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The sums of batch_mix_sums.c for the small floats, eight at a time: compilers do not make vectors of their
 * conversions. Only what is no number may differ, in bits that no number has.
 */

#include "plan/mix/batch_mix_sums.h"

#ifdef __x86_64__

#include <immintrin.h>

#define BATCH_MIX_AVX2 __attribute__((target("avx2,f16c")))

bool batch_mix_has_avx2(void)
{
	return __builtin_cpu_supports("avx2"); /* every CPU that has it has F16C */
}

static BATCH_MIX_AVX2 __m256 batch_mix_round_f16(__m256 value)
{
	return _mm256_cvtph_ps(_mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}

BATCH_MIX_AVX2 size_t batch_mix_f16_avx2(uint16_t *restrict out, const uint16_t *own,
					 const uint16_t *other, size_t n, float own_share,
					 float other_share)
{
	const __m256 shares[2] = {_mm256_set1_ps(own_share), _mm256_set1_ps(other_share)};
	size_t at = 0;

	for (; at + 8 <= n; at += 8) {
		__m256 a =
		    _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(other + at)));
		__m256 b =
		    _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(own + at)));
		__m256 sum = _mm256_add_ps(batch_mix_round_f16(_mm256_mul_ps(a, shares[1])),
					   batch_mix_round_f16(_mm256_mul_ps(b, shares[0])));

		_mm_storeu_si128((__m128i *)(void *)(out + at),
				 _mm256_cvtps_ph(sum, _MM_FROUND_TO_NEAREST_INT));
	}
	return at;
}

static BATCH_MIX_AVX2 __m256 batch_mix_load_bf16(const uint16_t *from)
{
	__m128i half = _mm_loadu_si128((const __m128i *)(const void *)from);

	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* The bits of the nearest bfloat16 in the upper halves, zeros below. */
static BATCH_MIX_AVX2 __m256i batch_mix_round_bf16(__m256 value)
{
	const __m256i upper = _mm256_set1_epi32((int)0xffff0000);
	__m256i bits = _mm256_castps_si256(value);
	__m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
	__m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
	__m256i none = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
	__m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));

	return _mm256_and_si256(_mm256_blendv_epi8(rounded, quiet, none), upper);
}

BATCH_MIX_AVX2 size_t batch_mix_bf16_avx2(uint16_t *restrict out, const uint16_t *own,
					  const uint16_t *other, size_t n, float own_share,
					  float other_share)
{
	const __m256 shares[2] = {_mm256_set1_ps(own_share), _mm256_set1_ps(other_share)};
	size_t at = 0;

	for (; at + 8 <= n; at += 8) {
		__m256i a =
		    batch_mix_round_bf16(_mm256_mul_ps(batch_mix_load_bf16(other + at), shares[1]));
		__m256i b =
		    batch_mix_round_bf16(_mm256_mul_ps(batch_mix_load_bf16(own + at), shares[0]));
		__m256i sum = batch_mix_round_bf16(
		    _mm256_add_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)));
		__m256i packed =
		    _mm256_packus_epi32(_mm256_srli_epi32(sum, 16), _mm256_setzero_si256());

		packed = _mm256_permute4x64_epi64(packed, 0x08);
		_mm_storeu_si128((__m128i *)(void *)(out + at), _mm256_castsi256_si128(packed));
	}
	return at;
}

#else

bool batch_mix_has_avx2(void)
{
	return false;
}

size_t batch_mix_f16_avx2(uint16_t *restrict out, const uint16_t *own, const uint16_t *other,
			  size_t n, float own_share, float other_share)
{
	(void)out, (void)own, (void)other, (void)n, (void)own_share, (void)other_share;
	return 0;
}

size_t batch_mix_bf16_avx2(uint16_t *restrict out, const uint16_t *own, const uint16_t *other,
			   size_t n, float own_share, float other_share)
{
	return batch_mix_f16_avx2(out, own, other, n, own_share, other_share);
}

#endif
