/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes for x86-64 machines with AVX2, found out when they run. Eight sums a register: across,
 * two pixels of four bytes; down, eight neighbouring bytes. The arithmetic is resize_plain.c's,
 * lane by lane, so are its results.
 */

#include "pipeline/ops/resize_kernels.h"

#ifdef __x86_64__

#include <immintrin.h>

#define RESIZE_HALF (1 << (FILTER_BITS - 1))
#define RESIZE_AVX2 __attribute__((target("avx2")))

/* Four sums to four bytes: rounded already, shifted and clipped here. */
RESIZE_AVX2 static inline void resize_store4(__m128i sum, uint8_t *to)
{
	__m128i value = _mm_srai_epi32(sum, FILTER_BITS);
	int bytes;

	value = _mm_packs_epi32(value, value);
	bytes = _mm_cvtsi128_si32(_mm_packus_epi16(value, value));
	memcpy(to, &bytes, 4);
}

/* The sum of one output pixel: pairs of taps in the halves of a register, then an odd one. */
RESIZE_AVX2 static inline __m128i resize_sum_across(const uint8_t *pixel, const int32_t *weight,
						    uint32_t count)
{
	const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
	__m256i pairs = _mm256_setzero_si256();
	__m128i sum = _mm_set1_epi32(RESIZE_HALF);
	uint32_t t = 0;

	for (; t + 2 <= count; t += 2) {
		__m128i two = _mm_loadl_epi64((const __m128i *)(weight + t));
		__m256i weights = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(two), spread);
		__m128i bytes = _mm_loadl_epi64((const __m128i *)(pixel + 4 * (size_t)t));

		pairs = _mm256_add_epi32(pairs,
					 _mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), weights));
	}
	if (t < count) {
		int one;

		memcpy(&one, pixel + 4 * (size_t)t, 4);
		sum = _mm_add_epi32(sum, _mm_mullo_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(one)),
							 _mm_set1_epi32(weight[t])));
	}
	sum = _mm_add_epi32(sum, _mm256_castsi256_si128(pairs));
	return _mm_add_epi32(sum, _mm256_extracti128_si256(pairs, 1));
}

RESIZE_AVX2 static void resize_avx2_across(const struct filter_table *table,
					   const struct picture *from, const struct picture *to)
{
	const uint32_t out = table->out, taps = table->taps, height = to->height;
	const uint32_t *first = table->first, *count = table->count;

	for (uint32_t y = 0; y < height; y++) {
		const uint8_t *row = picture_row(from, y);
		const int32_t *weight = table->weight;
		uint8_t *pixel = picture_row(to, y);

		for (uint32_t x = 0; x < out; x++, weight += taps, pixel += 4)
			resize_store4(
			    resize_sum_across(row + (size_t)first[x] * 4, weight, count[x]), pixel);
	}
}

RESIZE_AVX2 static inline __m256i resize_sum_down(__m256i sum, const uint8_t *from, __m256i weight)
{
	__m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)from));

	return _mm256_add_epi32(sum, _mm256_mullo_epi32(bytes, weight));
}

/* 32 sums to 32 bytes. Packing works within halves of registers; the last shuffle mends that. */
RESIZE_AVX2 static inline void resize_store32(__m256i a, __m256i b, __m256i c, __m256i d,
					      uint8_t *to)
{
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i low = _mm256_packs_epi32(_mm256_srai_epi32(a, FILTER_BITS),
					 _mm256_srai_epi32(b, FILTER_BITS));
	__m256i high = _mm256_packs_epi32(_mm256_srai_epi32(c, FILTER_BITS),
					  _mm256_srai_epi32(d, FILTER_BITS));
	__m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order);

	_mm256_storeu_si256((__m256i *)to, bytes);
}

/* One row; a row shorter than a block, or the rest of one, pixel by pixel. */
RESIZE_AVX2 static void resize_row_down(const uint8_t *from, size_t stride, const int32_t *weight,
					uint32_t count, size_t bytes, uint8_t *to)
{
	const __m256i half = _mm256_set1_epi32(RESIZE_HALF);
	size_t i = 0;

	for (; i + 32 <= bytes; i += 32) {
		__m256i a = half, b = half, c = half, d = half;
		const uint8_t *at = from + i;

		for (uint32_t t = 0; t < count; t++, at += stride) {
			__m256i w = _mm256_set1_epi32(weight[t]);

			a = resize_sum_down(a, at, w);
			b = resize_sum_down(b, at + 8, w);
			c = resize_sum_down(c, at + 16, w);
			d = resize_sum_down(d, at + 24, w);
		}
		resize_store32(a, b, c, d, to + i);
	}
	for (; i < bytes; i += 4) {
		__m128i sum = _mm_set1_epi32(RESIZE_HALF);

		for (uint32_t t = 0; t < count; t++) {
			int one;

			memcpy(&one, from + i + t * stride, 4);
			sum = _mm_add_epi32(
			    sum, _mm_mullo_epi32(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(one)),
						 _mm_set1_epi32(weight[t])));
		}
		resize_store4(sum, to + i);
	}
}

RESIZE_AVX2 static void resize_avx2_down(const struct filter_table *table,
					 const struct picture *from, const struct picture *to)
{
	for (uint32_t y = 0; y < to->height; y++)
		resize_row_down(picture_row(from, table->first[y]), from->stride,
				table->weight + (size_t)y * table->taps, table->count[y],
				(size_t)to->width * 4, picture_row(to, y));
}

static const struct resize_kernels resize_avx2_kernels = {
    .across = resize_avx2_across,
    .down = resize_avx2_down,
};

const struct resize_kernels *resize_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? &resize_avx2_kernels : NULL;
}

#else

const struct resize_kernels *resize_avx2(void)
{
	return NULL;
}

#endif
