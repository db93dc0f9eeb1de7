/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The inverse DCT's steps behind the first (baseline_idct_avx2.c), for those who have coefficients in rows
 * already. Only for x86-64. */

#include <immintrin.h>
#include "pipeline/jpeg/baseline_avx2.h"
#include "pipeline/jpeg/baseline_inner.h"

#define IDCT_BITS 13
#define IDCT_ROUND 1024 /* divides what is added before numbers are cut off */
#define IDCT_INLINE BASELINE_AVX2 static inline __attribute__((always_inline))

#define IDCT_WORD(n) (n) < 8 ? 2 * (n) : -1, (n) < 8 ? 2 * (n) + 1 : -1
#define IDCT_WORDS(a, b, c, d, e, f, g, h)                                                  \
	IDCT_WORD(a), IDCT_WORD(b), IDCT_WORD(c), IDCT_WORD(d), IDCT_WORD(e), IDCT_WORD(f), \
	    IDCT_WORD(g), IDCT_WORD(h)

/* Words of both halves in that order; 8: a zero. */
#define IDCT_PICK(from, ...)      \
	_mm256_shuffle_epi8(from, \
			    _mm256_setr_epi8(IDCT_WORDS(__VA_ARGS__), IDCT_WORDS(__VA_ARGS__)))

IDCT_INLINE __m256i idct_or(__m256i a, __m256i b)
{
	return _mm256_or_si256(a, b);
}

IDCT_INLINE __m256i idct_steps(const uint16_t *quant, unsigned row)
{
	return _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(quant + 8 * row)));
}

/* Whether the products of a row have more than 14 bits. */
IDCT_INLINE int idct_is_large(__m256i row, __m256i steps)
{
	__m256i low = _mm256_mullo_epi16(row, steps), high = _mm256_mulhi_epi16(row, steps);
	__m256i wide = _mm256_srai_epi16(_mm256_slli_epi16(low, 2), 2);

	wide = idct_or(_mm256_xor_si256(wide, low),
		       _mm256_xor_si256(high, _mm256_srai_epi16(low, 15)));
	return !_mm256_testz_si256(wide, wide);
}

/* Times the steps. Returns not 0 if the first row gets numbers of more than 14 bits. */
IDCT_INLINE int idct_scale(__m256i row[8], const uint16_t *quant, const bool is_few)
{
	int r = idct_is_large(row[0], idct_steps(quant, 0));

	row[0] = _mm256_mullo_epi16(row[0], idct_steps(quant, 0));
	row[1] = _mm256_mullo_epi16(row[1], idct_steps(quant, 1));
	row[2] = _mm256_mullo_epi16(row[2], idct_steps(quant, 2));
	row[3] = _mm256_mullo_epi16(row[3], idct_steps(quant, 3));
	row[4] = _mm256_mullo_epi16(row[4], idct_steps(quant, 4));
	if (is_few)
		return r;
	row[5] = _mm256_mullo_epi16(row[5], idct_steps(quant, 5));
	row[6] = _mm256_mullo_epi16(row[6], idct_steps(quant, 6));
	row[7] = _mm256_mullo_epi16(row[7], idct_steps(quant, 7));
	return r;
}

/* ---- a pass ---- */

struct idct_half { /* 32-bit numbers of columns 0 ... 3 or 4 ... 7 of both blocks */
	__m256i even[4], odd[4];
};

/* a * x + b * y of pairs of words */
IDCT_INLINE __m256i idct_times(__m256i pairs, const int a, const int b)
{
	return _mm256_madd_epi16(pairs, _mm256_set1_epi32((int)((uint32_t)b << 16 | (uint16_t)a)));
}

/* What comes from inputs 0, 4 (sum and difference, beside each a number that makes the rounding) and 2,
 * 6. */
IDCT_INLINE void idct_even(struct idct_half *half, __m256i sum, __m256i difference, __m256i pair26)
{
	__m256i t0 = idct_times(sum, 1 << IDCT_BITS, IDCT_ROUND);
	__m256i t1 = idct_times(difference, 1 << IDCT_BITS, IDCT_ROUND);
	__m256i t2 = idct_times(pair26, 4433, 4433 - 15137);
	__m256i t3 = idct_times(pair26, 4433 + 6270, 4433);

	half->even[0] = _mm256_add_epi32(t0, t3);
	half->even[1] = _mm256_add_epi32(t1, t2);
	half->even[2] = _mm256_sub_epi32(t1, t2);
	half->even[3] = _mm256_sub_epi32(t0, t3);
}

IDCT_INLINE void idct_odd(struct idct_half *half, __m256i pair71, __m256i pair53, __m256i sums)
{
	__m256i z3 = idct_times(sums, 9633 - 16069, 9633);
	__m256i z4 = idct_times(sums, 9633, 9633 - 3196);

	half->odd[3] = _mm256_add_epi32(idct_times(pair71, 2446 - 7373, -7373), z3);
	half->odd[2] = _mm256_add_epi32(idct_times(pair53, 16819 - 20995, -20995), z4);
	half->odd[1] = _mm256_add_epi32(idct_times(pair53, -20995, 25172 - 20995), z3);
	half->odd[0] = _mm256_add_epi32(idct_times(pair71, -7373, 12299 - 7373), z4);
}

/* The same for inputs 5 and 7 of 0. */
IDCT_INLINE void idct_odd_few(struct idct_half *half, __m256i pair13)
{
	half->odd[3] = idct_times(pair13, 9633 - 7373, 9633 - 16069);
	half->odd[2] = idct_times(pair13, 9633 - 3196, 9633 - 20995);
	half->odd[1] = idct_times(pair13, 9633, 9633 - 16069 + 25172 - 20995);
	half->odd[0] = idct_times(pair13, 9633 - 3196 + 12299 - 7373, 9633);
}

/* Outputs i and 7 - i. */
IDCT_INLINE void idct_ends(const struct idct_half *low, const struct idct_half *high,
			   const unsigned i, __m256i v[8], const int shift)
{
	__m256i a = _mm256_add_epi32(low->even[i], low->odd[i]);
	__m256i b = _mm256_add_epi32(high->even[i], high->odd[i]);
	__m256i c = _mm256_sub_epi32(low->even[i], low->odd[i]);
	__m256i d = _mm256_sub_epi32(high->even[i], high->odd[i]);

	v[i] = _mm256_packs_epi32(_mm256_srai_epi32(a, shift), _mm256_srai_epi32(b, shift));
	v[7 - i] = _mm256_packs_epi32(_mm256_srai_epi32(c, shift), _mm256_srai_epi32(d, shift));
}

/* One dimension, of eight columns of two blocks. is_few: v[5], v[6] and v[7] are 0. */
IDCT_INLINE void idct_pass(__m256i v[8], const int shift, const bool is_few)
{
	const __m256i round = _mm256_set1_epi16((int16_t)((1 << (shift - 1)) / IDCT_ROUND));
	__m256i six = is_few ? _mm256_setzero_si256() : v[6], sum = _mm256_add_epi16(v[0], v[4]);
	__m256i difference = _mm256_sub_epi16(v[0], v[4]);
	struct idct_half low, high;

	idct_even(&low, _mm256_unpacklo_epi16(sum, round), _mm256_unpacklo_epi16(difference, round),
		  _mm256_unpacklo_epi16(v[2], six));
	idct_even(&high, _mm256_unpackhi_epi16(sum, round),
		  _mm256_unpackhi_epi16(difference, round), _mm256_unpackhi_epi16(v[2], six));
	if (is_few) {
		idct_odd_few(&low, _mm256_unpacklo_epi16(v[1], v[3]));
		idct_odd_few(&high, _mm256_unpackhi_epi16(v[1], v[3]));
	} else {
		__m256i z3 = _mm256_add_epi16(v[7], v[3]), z4 = _mm256_add_epi16(v[5], v[1]);

		idct_odd(&low, _mm256_unpacklo_epi16(v[7], v[1]), _mm256_unpacklo_epi16(v[5], v[3]),
			 _mm256_unpacklo_epi16(z3, z4));
		idct_odd(&high, _mm256_unpackhi_epi16(v[7], v[1]),
			 _mm256_unpackhi_epi16(v[5], v[3]), _mm256_unpackhi_epi16(z3, z4));
	}
	idct_ends(&low, &high, 0, v, shift);
	idct_ends(&low, &high, 1, v, shift);
	idct_ends(&low, &high, 2, v, shift);
	idct_ends(&low, &high, 3, v, shift);
}

/* ---- rows and columns ---- */

IDCT_INLINE void idct_transpose(__m256i v[8])
{
	/* of columns 0 ... 3 (l) or 4 ... 7 (h), pairs of rows */
	__m256i l01 = _mm256_unpacklo_epi16(v[0], v[1]), h01 = _mm256_unpackhi_epi16(v[0], v[1]);
	__m256i l23 = _mm256_unpacklo_epi16(v[2], v[3]), h23 = _mm256_unpackhi_epi16(v[2], v[3]);
	__m256i l45 = _mm256_unpacklo_epi16(v[4], v[5]), h45 = _mm256_unpackhi_epi16(v[4], v[5]);
	__m256i l67 = _mm256_unpacklo_epi16(v[6], v[7]), h67 = _mm256_unpackhi_epi16(v[6], v[7]);
	/* pairs of columns, of rows 0 ... 3 (a) or 4 ... 7 (b) */
	__m256i a01 = _mm256_unpacklo_epi32(l01, l23), a23 = _mm256_unpackhi_epi32(l01, l23);
	__m256i b01 = _mm256_unpacklo_epi32(l45, l67), b23 = _mm256_unpackhi_epi32(l45, l67);
	__m256i a45 = _mm256_unpacklo_epi32(h01, h23), a67 = _mm256_unpackhi_epi32(h01, h23);
	__m256i b45 = _mm256_unpacklo_epi32(h45, h67), b67 = _mm256_unpackhi_epi32(h45, h67);

	v[0] = _mm256_unpacklo_epi64(a01, b01);
	v[1] = _mm256_unpackhi_epi64(a01, b01);
	v[2] = _mm256_unpacklo_epi64(a23, b23);
	v[3] = _mm256_unpackhi_epi64(a23, b23);
	v[4] = _mm256_unpacklo_epi64(a45, b45);
	v[5] = _mm256_unpackhi_epi64(a45, b45);
	v[6] = _mm256_unpacklo_epi64(a67, b67);
	v[7] = _mm256_unpackhi_epi64(a67, b67);
}

IDCT_INLINE void idct_store_rows(__m256i bytes, uint8_t *to, size_t stride)
{
	bytes = _mm256_permute4x64_epi64(bytes, 0xd8);
	_mm_storeu_si128((__m128i *)to, _mm256_castsi256_si128(bytes));
	_mm_storeu_si128((__m128i *)(to + stride), _mm256_extracti128_si256(bytes, 1));
}

IDCT_INLINE __m256i idct_bytes(__m256i a, __m256i b)
{
	return _mm256_add_epi8(_mm256_packs_epi16(a, b), _mm256_set1_epi8(-128));
}

/* Columns of words to rows of bytes: rows 2 i and 2 i + 1 of one block in ret[i]'s lower half, and of the
 * other in the upper one. */
IDCT_INLINE void idct_byte_rows(const __m256i v[8], __m256i ret[4])
{
	__m256i c04 = idct_bytes(v[0], v[4]), c15 = idct_bytes(v[1], v[5]);
	__m256i c26 = idct_bytes(v[2], v[6]), c37 = idct_bytes(v[3], v[7]);
	__m256i c01 = _mm256_unpacklo_epi8(c04, c15), c45 = _mm256_unpackhi_epi8(c04, c15);
	__m256i c23 = _mm256_unpacklo_epi8(c26, c37), c67 = _mm256_unpackhi_epi8(c26, c37);
	/* columns 0 ... 3 (l) or 4 ... 7 (h) of rows 0 ... 3 (a) or 4 ... 7 (b) */
	__m256i la = _mm256_unpacklo_epi16(c01, c23), lb = _mm256_unpackhi_epi16(c01, c23);
	__m256i ha = _mm256_unpacklo_epi16(c45, c67), hb = _mm256_unpackhi_epi16(c45, c67);

	ret[0] = _mm256_unpacklo_epi32(la, ha);
	ret[1] = _mm256_unpackhi_epi32(la, ha);
	ret[2] = _mm256_unpacklo_epi32(lb, hb);
	ret[3] = _mm256_unpackhi_epi32(lb, hb);
}

/* The same, both blocks side by side. */
IDCT_INLINE void idct_store(const __m256i v[8], uint8_t *to, size_t stride)
{
	__m256i rows[4];

	idct_byte_rows(v, rows);
	idct_store_rows(rows[0], to, stride);
	idct_store_rows(rows[1], to + 2 * stride, stride);
	idct_store_rows(rows[2], to + 4 * stride, stride);
	idct_store_rows(rows[3], to + 6 * stride, stride);
}

/* Rows of coefficients to columns of samples. is_few: rows and columns from the sixth on are zeros. As
 * baseline_kernels.idct. */
IDCT_INLINE int idct_blocks(__m256i v[8], const uint16_t *quant, const bool is_few)
{
	int r = idct_scale(v, quant, is_few);

	idct_pass(v, IDCT_BITS - 2, is_few);
	idct_transpose(v);
	idct_pass(v, IDCT_BITS + 5, is_few);
	return r;
}

IDCT_INLINE char idct_flat_value(int16_t dc, uint16_t step)
{
	int32_t value = (int16_t)((uint32_t)dc * step << 2);

	value = (value + 16) >> 5;
	return (char)(BASE_MAX(BASE_MIN(value, 127), -128) + 128);
}

/* Blocks of DC alone. */
IDCT_INLINE void idct_flat(int16_t a, int16_t b, const uint16_t *quant, uint8_t *to, size_t stride)
{
	const __m128i row = _mm_unpacklo_epi64(_mm_set1_epi8(idct_flat_value(a, quant[0])),
					       _mm_set1_epi8(idct_flat_value(b, quant[0])));

	for (unsigned i = 0; i < 8; i += 4, to += 4 * stride) {
		_mm_storeu_si128((__m128i *)to, row);
		_mm_storeu_si128((__m128i *)(to + stride), row);
		_mm_storeu_si128((__m128i *)(to + 2 * stride), row);
		_mm_storeu_si128((__m128i *)(to + 3 * stride), row);
	}
}
