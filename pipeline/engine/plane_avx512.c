/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pass along rows for x86-64 machines with AVX-512's BW, VL, VBMI and VNNI, found out when they run.
 *
 * One instruction (vpdpbusd) adds four products of a byte without a sign and one with it to a 32-bit sum. So a weight
 * of 24 bits is three signed digits, sixteen outputs of four taps are three multiplications, and sums are whole
 * numbers, whatever the weights. One shuffle brings all their inputs from 64 bytes.
 *
 * Two rows go together: the upper halves of one's results stand beside the other's, which is in turn, and a rounding
 * multiplication takes the last bits of fraction away. What was cut off before never decides how that
 * rounds.
 *
 * All else is AVX2's, and so is what shrinks so much that a shuffle does not reach all inputs of
 * sixteen outputs.
 */

#include "pipeline/engine/plane.h"

#ifdef __x86_64__

#include <immintrin.h>
#include "pipeline/engine/plane_avx2.h"

#define PLANE_AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))
#define PLANE_AVX512_IN PLANE_AVX512 static inline __attribute__((always_inline))

struct plane_avx512_quad { /* of weights or of sums, each kind of digit */
	__m512i high, middle, low;
};

PLANE_AVX512_IN struct plane_avx512_quad plane_avx512_load(const int8_t *digits)
{
	return (struct plane_avx512_quad){_mm512_load_si512(digits), _mm512_load_si512(digits + 64),
					  _mm512_load_si512(digits + 128)};
}

/* The four inputs from `from` on of each output, times their weights. */
PLANE_AVX512_IN void plane_avx512_add(struct plane_avx512_quad *sums, const uint8_t *from,
				      __m512i shuffle, const struct plane_avx512_quad *quad)
{
	const __m512i inputs = _mm512_permutexvar_epi8(shuffle, _mm512_loadu_si512(from));

	sums->high = _mm512_dpbusd_epi32(sums->high, inputs, quad->high);
	sums->middle = _mm512_dpbusd_epi32(sums->middle, inputs, quad->middle);
	sums->low = _mm512_dpbusd_epi32(sums->low, inputs, quad->low);
}

/* Outputs of one row with FILTER_BITS bits of fraction. */
PLANE_AVX512_IN __m512i plane_avx512_row(const uint8_t *row, __m512i shuffle, uint32_t quads,
					 const struct plane_avx512_quad quad[2],
					 const int8_t *digits)
{
	const __m512i zero = _mm512_setzero_si512();
	struct plane_avx512_quad sums = {zero, zero, zero};
	__m512i value;

	plane_avx512_add(&sums, row, shuffle, &quad[0]);
	if (quads > 1)
		plane_avx512_add(&sums, row + 4, shuffle, &quad[1]);
	for (uint32_t i = 2; i < quads; i++) {
		const struct plane_avx512_quad more = plane_avx512_load(digits + (size_t)i * 192);

		plane_avx512_add(&sums, row + (size_t)4 * i, shuffle, &more);
	}
	value = _mm512_add_epi32(_mm512_slli_epi32(sums.high, 8), sums.middle);
	return _mm512_add_epi32(_mm512_slli_epi32(value, 8), sums.low);
}

PLANE_AVX512_IN void plane_avx512_blocks(const struct plane_table *table, uint32_t quads,
					 const uint8_t *a, const uint8_t *b, uint8_t *to)
{
	const __m512i round = _mm512_set1_epi16(1 << (15 - (FILTER_BITS - 16)));

	for (uint32_t i = 0; i < table->blocks; i++, to += 32) {
		const int8_t *digits = table->digits + (size_t)i * quads * 192;
		const struct plane_avx512_quad quad[2] = {
		    plane_avx512_load(digits), plane_avx512_load(digits + (quads > 1 ? 192 : 0))};
		const __m512i shuffle = _mm512_load_si512(table->shuffle + (size_t)i * 64);
		const uint32_t at = table->at[i];
		__m512i of_a = plane_avx512_row(a + at, shuffle, quads, quad, digits);
		__m512i of_b = plane_avx512_row(b + at, shuffle, quads, quad, digits);
		__m512i both = _mm512_mask_mov_epi16(_mm512_srli_epi32(of_a, 16), 0xaaaaaaaa, of_b);

		both = _mm512_mulhrs_epi16(both, round);
		both = _mm512_max_epi16(both, _mm512_setzero_si512());
		_mm256_storeu_si256((__m256i *)to, _mm512_cvtusepi16_epi8(both));
	}
}

PLANE_AVX512 static void plane_avx512_across(const struct plane_table *table, const uint8_t *a,
					     const uint8_t *b, uint8_t *to)
{
	if (table->form != PLANE_QUADS)
		plane_avx2_across(table, a, b, to);
	else if (table->quads == 1)
		plane_avx512_blocks(table, 1, a, b, to);
	else if (table->quads == 2)
		plane_avx512_blocks(table, 2, a, b, to);
	else
		plane_avx512_blocks(table, table->quads, a, b, to);
}

static const struct plane_kernels plane_avx512_kernels = {
    .across_form = PLANE_QUADS,
    .across = plane_avx512_across,
    .zip = plane_avx2_zip,
    .unzip = plane_avx2_unzip,
    .down = plane_avx2_down,
    .mirror = plane_avx2_mirror,
};

const struct plane_kernels *plane_avx512(void)
{
	return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
		       __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni")
		   ? &plane_avx512_kernels
		   : NULL;
}

#else

const struct plane_kernels *plane_avx512(void)
{
	return NULL;
}

#endif
