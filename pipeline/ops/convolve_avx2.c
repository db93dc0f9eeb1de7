/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of convolve.h for machines with AVX2 and FMA: two pixels, or a median's eight, at a time. */

#include "pipeline/ops/convolve.h"

#ifdef __x86_64__

#include <immintrin.h>

#define CONVOLVE_AVX2 __attribute__((target("avx2,fma")))

CONVOLVE_AVX2 static void convolve_avx2_taps(const struct convolve_taps *taps,
					     const uint8_t *const *row, uint8_t *out, size_t n)
{
	for (size_t x = 0; x < n; x += 8) {
		__m256 sum = _mm256_setzero_ps();
		__m256i whole;
		__m128i words;

		for (unsigned i = 0; i < taps->n; i++) {
			const struct convolve_tap *tap = &taps->tap[i];
			const __m128i bytes =
			    _mm_loadl_epi64((const __m128i *)(row[tap->row] + tap->offset + x));

			sum = _mm256_fmadd_ps(_mm256_set1_ps(tap->weight),
					      _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), sum);
		}
		whole = _mm256_cvtps_epi32(sum);
		words = _mm_packs_epi32(_mm256_castsi256_si128(whole),
					_mm256_extracti128_si256(whole, 1));
		_mm_storel_epi64((__m128i *)(out + x), _mm_packus_epi16(words, words));
	}
}

CONVOLVE_MEDIAN(convolve_avx2_median, CONVOLVE_AVX2)

static const struct convolve_kernels convolve_avx2_kernels = {
    .taps = convolve_avx2_taps,
    .median = convolve_avx2_median,
};

const struct convolve_kernels *convolve_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
		   ? &convolve_avx2_kernels
		   : NULL;
}

#else

const struct convolve_kernels *convolve_avx2(void)
{
	return NULL;
}

#endif
