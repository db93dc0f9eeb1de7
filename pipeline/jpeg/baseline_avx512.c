/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours of 4:2:0 for x86-64 machines with AVX-512's BW and VNNI, found out when they run: 64 pixels at once. Sums of rows
 * stay in registers, as one shuffle of two registers brings the columns beside. All else is AVX2's, and the arithmetic
 * is baseline_plain.c's.
 *
 * Rejected: packed coefficients in registers of 512 bits, four pairs of inputs in each (1 %).
 */

#include "pipeline/jpeg/baseline_inner.h"

#ifdef __x86_64__

#include <immintrin.h>
#include "pipeline/jpeg/baseline_avx2.h"

#define AVX512_INLINE BASELINE_AVX512 static inline __attribute__((always_inline))

/* Sums of two rows, near * 3 + far, of 32 columns from one on. */
AVX512_INLINE __m512i avx512_sums(const uint8_t *near, const uint8_t *far)
{
	__m512i a = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)near));
	__m512i b = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const __m256i *)far));

	return _mm512_add_epi16(_mm512_add_epi16(a, b), _mm512_add_epi16(a, a));
}

struct avx512_across { /* sums of the columns before, and of those that come */
	__m512i before, here;
};

AVX512_INLINE struct avx512_across avx512_begin(const uint8_t *near, const uint8_t *far)
{
	return (struct avx512_across){_mm512_set1_epi16((int16_t)(near[-1] * 3 + far[-1])),
				      avx512_sums(near, far)};
}

/* The even and the odd ones of 64 samples, less 128; then *across is 32 columns on, at near and far. */
AVX512_INLINE void avx512_smooth(struct avx512_across *across, const uint8_t *near,
				 const uint8_t *far, __m512i *ret_even, __m512i *ret_odd)
{
	const __m512i step =
	    _mm512_set_epi16(30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14, 13,
			     12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 63);
	const __m512i back =
	    _mm512_set_epi16(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15,
			     14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
	const __m512i here = across->here, following = avx512_sums(near, far);
	__m512i last = _mm512_permutex2var_epi16(here, step, across->before);
	__m512i next = _mm512_permutex2var_epi16(here, back, following);
	__m512i three = _mm512_add_epi16(here, _mm512_add_epi16(here, here));

	three = _mm512_add_epi16(three, _mm512_set1_epi16(8 - (128 << 4)));
	next = _mm512_add_epi16(next, _mm512_set1_epi16(-1));
	*ret_even = _mm512_srai_epi16(_mm512_add_epi16(three, last), 4);
	*ret_odd = _mm512_srai_epi16(_mm512_add_epi16(three, next), 4);
	across->before = here;
	across->here = following;
}

struct avx512_colour { /* what Cb and Cr add to the luma of 32 pixels */
	__m512i red, green, blue;
};

/* As avx2_colour: cb and cr less 128. */
AVX512_INLINE struct avx512_colour avx512_colour(__m512i cb, __m512i cr)
{
	const __m512i half = _mm512_set1_epi32(32768);
	const __m512i green = _mm512_set1_epi32((int)(18734u << 16 | (uint16_t)-22554));
	__m512i low = _mm512_dpwssd_epi32(half, _mm512_unpacklo_epi16(cb, cr), green);
	__m512i high = _mm512_dpwssd_epi32(half, _mm512_unpackhi_epi16(cb, cr), green);

	low = _mm512_packs_epi32(_mm512_srai_epi32(low, 16), _mm512_srai_epi32(high, 16));
	return (struct avx512_colour){
	    .red = _mm512_mulhrs_epi16(_mm512_add_epi16(cr, cr), _mm512_set1_epi16(22971)),
	    .green = _mm512_sub_epi16(low, cr),
	    .blue = _mm512_mulhrs_epi16(_mm512_add_epi16(cb, cb), _mm512_set1_epi16(29033)),
	};
}

/* 64 values of a colour: what is added, to the even and the odd pixels. */
AVX512_INLINE void avx512_store(__m512i y_even, __m512i y_odd, __m512i even, __m512i odd,
				uint8_t *to)
{
	const __m512i order = _mm512_broadcast_i32x4(
	    _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
	__m512i bytes =
	    _mm512_packus_epi16(_mm512_add_epi16(y_even, even), _mm512_add_epi16(y_odd, odd));

	_mm512_storeu_si512(to, _mm512_shuffle_epi8(bytes, order));
}

BASELINE_AVX512 void baseline_h2v2_avx512(const uint8_t *y, const uint8_t *const near[2],
					  const uint8_t *const far[2], uint8_t *const to[3],
					  size_t count)
{
	struct avx512_across blue = avx512_begin(near[0], far[0]);
	struct avx512_across red = avx512_begin(near[1], far[1]);

	for (size_t x = 0; x < count; x += 32) {
		const size_t next = x + 32;
		const __m512i bytes = _mm512_loadu_si512(y + 2 * x);
		const __m512i y_even = _mm512_and_si512(bytes, _mm512_set1_epi16(255));
		const __m512i y_odd = _mm512_srli_epi16(bytes, 8);
		__m512i cb_even, cb_odd, cr_even, cr_odd;
		struct avx512_colour even, odd;

		avx512_smooth(&blue, near[0] + next, far[0] + next, &cb_even, &cb_odd);
		avx512_smooth(&red, near[1] + next, far[1] + next, &cr_even, &cr_odd);
		even = avx512_colour(cb_even, cr_even);
		odd = avx512_colour(cb_odd, cr_odd);
		avx512_store(y_even, y_odd, even.red, odd.red, to[0] + 2 * x);
		avx512_store(y_even, y_odd, even.green, odd.green, to[1] + 2 * x);
		avx512_store(y_even, y_odd, even.blue, odd.blue, to[2] + 2 * x);
	}
}

#endif
