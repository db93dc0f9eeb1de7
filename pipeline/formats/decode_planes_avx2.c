/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pixels to planes for x86-64 machines with AVX2: 32 pixels a step, the last step over pixels that
 * the step before took, too.
 */

#include "pipeline/formats/decode_planes.h"

#ifdef __x86_64__

#include <immintrin.h>

#define PLANES_STEP 32
#define PLANES_AVX2 __attribute__((target("avx2")))

/* Pixels 0 to 3 and 16 to 19 of `from`, as four dwords of one colour each: R0-3 G0-3 B0-3 X0-3, R16-19 ...
 * So halves of registers never meet, which would take more than all the rest. */
PLANES_AVX2 static inline __m256i decode_planes_load(const uint8_t *from)
{
	const __m256i sort = _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
					      0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
	__m256i pixels = _mm256_castsi128_si256(_mm_loadu_si128((const __m128i *)from));

	pixels = _mm256_inserti128_si256(pixels, _mm_loadu_si128((const __m128i *)(from + 64)), 1);
	return _mm256_shuffle_epi8(pixels, sort);
}

PLANES_AVX2 static inline void decode_planes_step(const uint8_t *from, uint8_t *red, uint8_t *green,
						  uint8_t *blue)
{
	__m256i a = decode_planes_load(from), b = decode_planes_load(from + 16);
	__m256i c = decode_planes_load(from + 32), d = decode_planes_load(from + 48);
	__m256i red_green_ab = _mm256_unpacklo_epi32(a, b);
	__m256i red_green_cd = _mm256_unpacklo_epi32(c, d);
	__m256i blue_ab = _mm256_unpackhi_epi32(a, b);
	__m256i blue_cd = _mm256_unpackhi_epi32(c, d);

	_mm256_storeu_si256((__m256i *)red, _mm256_unpacklo_epi64(red_green_ab, red_green_cd));
	_mm256_storeu_si256((__m256i *)green, _mm256_unpackhi_epi64(red_green_ab, red_green_cd));
	_mm256_storeu_si256((__m256i *)blue, _mm256_unpacklo_epi64(blue_ab, blue_cd));
}

PLANES_AVX2 static void decode_planes_wide(const uint8_t *from, uint32_t width, uint8_t *red,
					   uint8_t *green, uint8_t *blue)
{
	uint32_t x = 0;

	if (width < PLANES_STEP) {
		decode_planes_plain(from, width, red, green, blue);
		return;
	}
	for (; x + PLANES_STEP <= width; x += PLANES_STEP)
		decode_planes_step(from + (size_t)x * 4, red + x, green + x, blue + x);
	x = width - PLANES_STEP;
	decode_planes_step(from + (size_t)x * 4, red + x, green + x, blue + x);
}

decode_planes_fn *decode_planes_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? decode_planes_wide : NULL;
}

#else

decode_planes_fn *decode_planes_avx2(void)
{
	return NULL;
}

#endif
