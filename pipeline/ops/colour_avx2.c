/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows for x86-64 machines with AVX2, found out when they run: eight pixels a step, what is left
 * of a row by colour_plain.c. The arithmetic is that file's, lane by lane, so are its results; where
 * whole numbers are divided here in float, every quotient that can occur has been tried
 * (tests/pipeline/colour_test.c).
 */

#include "pipeline/ops/colour_kernels.h"

#ifdef __x86_64__

#include <immintrin.h>

#define COLOUR_AVX2 __attribute__((target("avx2")))
#define COLOUR_STEP 8 /* pixels */

COLOUR_AVX2 static inline __m256i colour_load(const uint8_t *pixel)
{
	return _mm256_loadu_si256((const __m256i *)pixel);
}

COLOUR_AVX2 static inline void colour_store(uint8_t *pixel, __m256i value)
{
	_mm256_storeu_si256((__m256i *)pixel, value);
}

/* Channel c of eight pixels. */
COLOUR_AVX2 static inline __m256i colour_channel(__m256i pixel, int c)
{
	return _mm256_and_si256(_mm256_srli_epi32(pixel, 8 * c), _mm256_set1_epi32(255));
}

/* Eight numbers from 0 to 255 blended, as such. */
COLOUR_AVX2 static inline __m256i colour_blend8(__m256i ground, __m256i value, __m256 factor)
{
	__m256 more = _mm256_cvtepi32_ps(_mm256_sub_epi32(value, ground));
	__m256 sum = _mm256_add_ps(_mm256_cvtepi32_ps(ground), _mm256_mul_ps(factor, more));

	sum = _mm256_max_ps(sum, _mm256_setzero_ps());
	return _mm256_cvttps_epi32(_mm256_min_ps(sum, _mm256_set1_ps(255)));
}

/* The lumas of eight pixels. */
COLOUR_AVX2 static inline __m256i colour_luma8(__m256i pixel)
{
	const __m256i even = _mm256_set1_epi32(0xff00ff);
	const __m256i red_blue = _mm256_set1_epi32(7471 << 16 | 19595);
	const __m256i half_green = _mm256_set1_epi32(38470 / 2);
	__m256i sum = _mm256_madd_epi16(_mm256_and_si256(pixel, even), red_blue);
	__m256i green = _mm256_madd_epi16(colour_channel(pixel, 1), half_green);

	sum = _mm256_add_epi32(sum, _mm256_slli_epi32(green, 1));
	return _mm256_srli_epi32(_mm256_add_epi32(sum, _mm256_set1_epi32(0x8000)), 16);
}

/* One number a pixel in all three channels. */
COLOUR_AVX2 static inline __m256i colour_spread(__m256i value)
{
	return _mm256_or_si256(_mm256_or_si256(value, _mm256_slli_epi32(value, 8)),
			       _mm256_slli_epi32(value, 16));
}

/* 32 bytes blended. Unpacking and packing both work within halves of registers. */
COLOUR_AVX2 static inline __m256i colour_blend32(__m256i ground, __m256i pixel, __m256 factor)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i g0 = _mm256_unpacklo_epi8(ground, zero), g1 = _mm256_unpackhi_epi8(ground, zero);
	__m256i p0 = _mm256_unpacklo_epi8(pixel, zero), p1 = _mm256_unpackhi_epi8(pixel, zero);
	__m256i a =
	    colour_blend8(_mm256_unpacklo_epi16(g0, zero), _mm256_unpacklo_epi16(p0, zero), factor);
	__m256i b =
	    colour_blend8(_mm256_unpackhi_epi16(g0, zero), _mm256_unpackhi_epi16(p0, zero), factor);
	__m256i c =
	    colour_blend8(_mm256_unpacklo_epi16(g1, zero), _mm256_unpacklo_epi16(p1, zero), factor);
	__m256i d =
	    colour_blend8(_mm256_unpackhi_epi16(g1, zero), _mm256_unpackhi_epi16(p1, zero), factor);

	return _mm256_packus_epi16(_mm256_packus_epi32(a, b), _mm256_packus_epi32(c, d));
}

COLOUR_AVX2 static void colour_avx2_blend_flat(uint8_t *pixel, uint32_t width, uint8_t ground,
					       float factor)
{
	const __m256i flat = _mm256_set1_epi8((char)ground);
	const __m256 by = _mm256_set1_ps(factor);

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, pixel += 32)
		colour_store(pixel, colour_blend32(flat, colour_load(pixel), by));
	colour_plain.blend_flat(pixel, width, ground, factor);
}

COLOUR_AVX2 static void colour_avx2_blend_luma(uint8_t *pixel, uint32_t width, float factor)
{
	const __m256 by = _mm256_set1_ps(factor);

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, pixel += 32) {
		__m256i from = colour_load(pixel), luma = colour_luma8(from);
		__m256i red = colour_blend8(luma, colour_channel(from, 0), by);
		__m256i green = colour_blend8(luma, colour_channel(from, 1), by);
		__m256i blue = colour_blend8(luma, colour_channel(from, 2), by);

		green = _mm256_slli_epi32(green, 8);
		blue = _mm256_slli_epi32(blue, 16);
		colour_store(pixel, _mm256_or_si256(_mm256_or_si256(red, green), blue));
	}
	colour_plain.blend_luma(pixel, width, factor);
}

COLOUR_AVX2 static void colour_avx2_blend_row(const uint8_t *ground, const uint8_t *pixel,
					      uint32_t width, float factor, uint8_t *to)
{
	const __m256 by = _mm256_set1_ps(factor);

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, ground += 32, pixel += 32, to += 32)
		colour_store(to, colour_blend32(colour_load(ground), colour_load(pixel), by));
	colour_plain.blend_row(ground, pixel, width, factor, to);
}

COLOUR_AVX2 static void colour_avx2_gray(uint8_t *pixel, uint32_t width)
{
	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, pixel += 32)
		colour_store(pixel, colour_spread(colour_luma8(colour_load(pixel))));
	colour_plain.gray(pixel, width);
}

COLOUR_AVX2 static uint64_t colour_avx2_luma_sum(const uint8_t *pixel, uint32_t width)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i sums = zero;
	uint64_t lanes[4];

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, pixel += 32)
		sums =
		    _mm256_add_epi64(sums, _mm256_sad_epu8(colour_luma8(colour_load(pixel)), zero));
	colour_store((uint8_t *)lanes, sums);
	return lanes[0] + lanes[1] + lanes[2] + lanes[3] + colour_plain.luma_sum(pixel, width);
}

/* ---- hue ---- */

/* Four times what is left of Pillow's way to a whole hue: hue to be turned into 0 .. 255. */
COLOUR_AVX2 static inline __m128i colour_hue4(__m128 hue)
{
	const __m256d one = _mm256_set1_pd(1);
	__m256d turned = _mm256_div_pd(_mm256_cvtps_pd(hue), _mm256_set1_pd(6));

	turned = _mm256_add_pd(turned, one);
	turned = _mm256_sub_pd(turned, _mm256_and_pd(_mm256_cmp_pd(turned, one, _CMP_GE_OQ), one));
	turned = _mm256_cvtps_pd(_mm256_cvtpd_ps(turned));
	return _mm256_cvttpd_epi32(_mm256_mul_pd(turned, _mm256_set1_pd(255)));
}

/* (base + plus) - minus in double, rounded to float. */
COLOUR_AVX2 static inline __m128 colour_hue_sum(__m128 base, __m128 plus, __m128 minus)
{
	__m256d sum = _mm256_add_pd(_mm256_cvtps_pd(base), _mm256_cvtps_pd(plus));

	return _mm256_cvtpd_ps(_mm256_sub_pd(sum, _mm256_cvtps_pd(minus)));
}

/* Hues of eight pixels; anything where most is least (range 0). */
COLOUR_AVX2 static inline __m256i colour_hue8(__m256i red, __m256i green, __m256i blue,
					      __m256i most, __m256i range)
{
	__m256i is_red = _mm256_cmpeq_epi32(red, most), is_green = _mm256_cmpeq_epi32(green, most);
	/* sector's start, what is added, what is taken away */
	__m256i base = _mm256_blendv_epi8(_mm256_set1_epi32(4), _mm256_set1_epi32(2), is_green);
	__m256i plus = _mm256_blendv_epi8(_mm256_blendv_epi8(green, red, is_green), blue, is_red);
	__m256i minus = _mm256_blendv_epi8(_mm256_blendv_epi8(red, blue, is_green), green, is_red);
	__m256 by = _mm256_cvtepi32_ps(range);
	__m256 start = _mm256_cvtepi32_ps(_mm256_andnot_si256(is_red, base));
	__m256 up = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(most, plus)), by);
	__m256 down = _mm256_div_ps(_mm256_cvtepi32_ps(_mm256_sub_epi32(most, minus)), by);
	__m128 low = colour_hue_sum(_mm256_castps256_ps128(start), _mm256_castps256_ps128(up),
				    _mm256_castps256_ps128(down));
	__m128 high = colour_hue_sum(_mm256_extractf128_ps(start, 1), _mm256_extractf128_ps(up, 1),
				     _mm256_extractf128_ps(down, 1));

	return _mm256_inserti128_si256(_mm256_castsi128_si256(colour_hue4(low)), colour_hue4(high),
				       1);
}

/* Numbers up to 65535 divided by 255. */
COLOUR_AVX2 static inline __m256i colour_by_255(__m256i value)
{
	return _mm256_srli_epi32(_mm256_mullo_epi32(value, _mm256_set1_epi32(0x8081)), 23);
}

/* Pixels from hue (0 .. 255), strength and value. */
COLOUR_AVX2 static inline __m256i colour_from_hsv(__m256i hue, __m256i strength, __m256i value)
{
	const __m256i value_at = _mm256_setr_epi32(0, 8, 8, 16, 16, 0, 0, 0);
	const __m256i middle_at = _mm256_setr_epi32(8, 0, 16, 8, 0, 16, 8, 0);
	const __m256i lowest_at = _mm256_setr_epi32(16, 16, 0, 0, 8, 8, 16, 0);
	const __m256i full = _mm256_set1_epi32(255);
	__m256i six = _mm256_add_epi32(_mm256_slli_epi32(hue, 2), _mm256_slli_epi32(hue, 1));
	__m256i sector = colour_by_255(six);
	__m256i rest = _mm256_sub_epi32(six, _mm256_mullo_epi32(sector, full));
	__m256i odd = _mm256_slli_epi32(sector, 31);
	__m256i lowest = _mm256_mullo_epi32(value, _mm256_sub_epi32(full, strength));
	__m256i middle;

	rest = _mm256_castps_si256(
	    _mm256_blendv_ps(_mm256_castsi256_ps(_mm256_sub_epi32(full, rest)),
			     _mm256_castsi256_ps(rest), _mm256_castsi256_ps(odd)));
	lowest = colour_by_255(_mm256_add_epi32(lowest, _mm256_set1_epi32(127)));
	middle = _mm256_sub_epi32(_mm256_set1_epi32(65025), _mm256_mullo_epi32(strength, rest));
	middle = _mm256_add_epi32(_mm256_mullo_epi32(value, middle), _mm256_set1_epi32(32512));
	middle = _mm256_cvttps_epi32(
	    _mm256_mul_ps(_mm256_cvtepi32_ps(middle), _mm256_set1_ps(1.0f / 65025.0f)));
	value = _mm256_sllv_epi32(value, _mm256_permutevar8x32_epi32(value_at, sector));
	middle = _mm256_sllv_epi32(middle, _mm256_permutevar8x32_epi32(middle_at, sector));
	lowest = _mm256_sllv_epi32(lowest, _mm256_permutevar8x32_epi32(lowest_at, sector));
	return _mm256_or_si256(_mm256_or_si256(value, middle), lowest);
}

COLOUR_AVX2 static inline __m256i colour_turn8(__m256i pixel, __m256i turn)
{
	__m256i red = colour_channel(pixel, 0), green = colour_channel(pixel, 1);
	__m256i blue = colour_channel(pixel, 2);
	__m256i most = _mm256_max_epi32(red, _mm256_max_epi32(green, blue));
	__m256i least = _mm256_min_epi32(red, _mm256_min_epi32(green, blue));
	__m256i range = _mm256_sub_epi32(most, least);
	__m256i gray = _mm256_cmpeq_epi32(range, _mm256_setzero_si256());
	__m256i hue = colour_hue8(red, green, blue, most, range);
	__m256 share = _mm256_div_ps(_mm256_cvtepi32_ps(range), _mm256_cvtepi32_ps(most));
	__m256i strength = _mm256_cvttps_epi32(_mm256_mul_ps(share, _mm256_set1_ps(255)));

	/* without colour both came of 0 / 0; any hue will do then */
	strength = _mm256_andnot_si256(gray, strength);
	hue = _mm256_and_si256(_mm256_add_epi32(hue, turn), _mm256_set1_epi32(255));
	return colour_from_hsv(hue, strength, most);
}

COLOUR_AVX2 static void colour_avx2_turn(uint8_t *pixel, uint32_t width, uint8_t turn)
{
	const __m256i by = _mm256_set1_epi32(turn);

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, pixel += 32)
		colour_store(pixel, colour_turn8(colour_load(pixel), by));
	colour_plain.turn(pixel, width, turn);
}

/* ---- the rest ---- */

COLOUR_AVX2 static void colour_avx2_invert(uint8_t *pixel, uint32_t width, unsigned threshold,
					   uint8_t mask)
{
	const __m256i from = _mm256_set1_epi8((char)threshold), keep = _mm256_set1_epi8((char)mask);
	const __m256i ever = _mm256_set1_epi8(threshold <= 255 ? -1 : 0);

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, pixel += 32) {
		__m256i value = colour_load(pixel);
		__m256i above = _mm256_cmpeq_epi8(_mm256_max_epu8(value, from), value);

		above = _mm256_and_si256(above, ever);
		colour_store(pixel, _mm256_and_si256(_mm256_xor_si256(value, above), keep));
	}
	colour_plain.invert(pixel, width, threshold, mask);
}

COLOUR_AVX2 static inline __m256i colour_wide(const uint8_t *from)
{
	return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)from));
}

COLOUR_AVX2 static inline __m256i colour_three(const uint8_t *from)
{
	return _mm256_add_epi16(_mm256_add_epi16(colour_wide(from - 4), colour_wide(from)),
				colour_wide(from + 4));
}

/* Sixteen bytes in words: (sum + 6) / 13. */
COLOUR_AVX2 static inline __m256i colour_smooth16(const uint8_t *above, const uint8_t *pixel,
						  const uint8_t *below)
{
	__m256i sum = _mm256_add_epi16(colour_three(above), colour_three(below));

	sum = _mm256_add_epi16(sum, colour_three(pixel));
	sum = _mm256_add_epi16(sum, _mm256_slli_epi16(colour_wide(pixel), 2));
	sum = _mm256_add_epi16(sum, _mm256_set1_epi16(6));
	return _mm256_mulhi_epu16(sum, _mm256_set1_epi16(5042));
}

COLOUR_AVX2 static void colour_avx2_smooth(const uint8_t *above, const uint8_t *pixel,
					   const uint8_t *below, uint32_t width, uint8_t *to)
{
	size_t at = 0;

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, at += 32) {
		__m256i low = colour_smooth16(above + at, pixel + at, below + at);
		__m256i high = colour_smooth16(above + at + 16, pixel + at + 16, below + at + 16);

		colour_store(to + at,
			     _mm256_permute4x64_epi64(_mm256_packus_epi16(low, high), 0xd8));
	}
	colour_plain.smooth(above + at, pixel + at, below + at, width, to + at);
}

COLOUR_AVX2 static void colour_avx2_extremes(const uint8_t *pixel, uint32_t width, uint8_t least[4],
					     uint8_t most[4])
{
	__m256i low = _mm256_set1_epi8(-1), high = _mm256_setzero_si256();
	uint8_t lows[32], highs[32];

	for (; width >= COLOUR_STEP; width -= COLOUR_STEP, pixel += 32) {
		low = _mm256_min_epu8(low, colour_load(pixel));
		high = _mm256_max_epu8(high, colour_load(pixel));
	}
	colour_store(lows, low);
	colour_store(highs, high);
	for (unsigned i = 0; i < 32; i++) {
		least[i % 4] = BASE_MIN(least[i % 4], lows[i]);
		most[i % 4] = BASE_MAX(most[i % 4], highs[i]);
	}
	colour_plain.extremes(pixel, width, least, most);
}

static const struct colour_kernels colour_avx2_kernels = {
    .blend_flat = colour_avx2_blend_flat,
    .blend_luma = colour_avx2_blend_luma,
    .blend_row = colour_avx2_blend_row,
    .gray = colour_avx2_gray,
    .luma_sum = colour_avx2_luma_sum,
    .turn = colour_avx2_turn,
    .invert = colour_avx2_invert,
    .smooth = colour_avx2_smooth,
    .extremes = colour_avx2_extremes,
};

const struct colour_kernels *colour_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? &colour_avx2_kernels : NULL;
}

#else

const struct colour_kernels *colour_avx2(void)
{
	return NULL;
}

#endif
