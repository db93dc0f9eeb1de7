/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverse DCTs to 4 x 4 and 2 x 2 samples, of two blocks at once, one in each half of the
 * registers, for x86-64 machines with AVX2.
 *
 * The arithmetic is baseline_scaled.c's; so are the bounds beyond which numbers are refused, so that
 * it does not matter which version of libjpeg's the machine has. Coefficients are put in their places one by one, but for blocks of few, whose rows are
 * picked by shuffles and whose transform is shorter; blocks of nothing but DC are one number. Rows and columns that do not count are computed, where that is for free,
 * and then neither used nor looked at.
 */

#include "pipeline/jpeg/baseline_inner.h"

#ifdef __x86_64__

#include <immintrin.h>
#include "pipeline/jpeg/baseline_avx2.h"

#define SCALED_INLINE BASELINE_AVX2 static inline __attribute__((always_inline))
#define SCALED_BITS 13
#define SCALED_FEW 15  /* coefficients, 0 ... 14: nothing in rows and columns behind the fifth */
#define SCALED_SIZE 14 /* bits of numbers that are not refused */
#define SCALED_OUT_SIZE 10 /* at the end */

static const uint8_t scaled_places[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
};

/* ---- coefficients in rows ---- */

/* Words of each half: a byte shuffle of four of them, 8: a zero. */
#define SCALED_WORD(n) (n) < 8 ? 2 * (n) : -1, (n) < 8 ? 2 * (n) + 1 : -1
#define SCALED_PICK(from, a, b, c, d)                                                 \
	_mm256_shuffle_epi8(from, _mm256_broadcastsi128_si256(_mm_setr_epi8(          \
				      SCALED_WORD(a), SCALED_WORD(b), SCALED_WORD(c), \
				      SCALED_WORD(d), -1, -1, -1, -1, -1, -1, -1, -1)))

/* Eight numbers of each block. */
SCALED_INLINE __m256i scaled_load(const int16_t *a, const int16_t *b)
{
	__m256i low = _mm256_castsi128_si256(_mm_load_si128((const __m128i *)a));

	return _mm256_inserti128_si256(low, _mm_load_si128((const __m128i *)b), 1);
}

/* Of blocks with nothing behind coefficient SCALED_FEW - 1: the first four columns of rows 0 to 3. */
SCALED_INLINE void scaled_rows_few(const int16_t *a, const int16_t *b, __m256i row[8])
{
	__m256i z0 = scaled_load(a, b), z1 = scaled_load(a + 8, b + 8);

	row[0] = SCALED_PICK(z0, 0, 1, 5, 6);
	row[1] = _mm256_or_si256(SCALED_PICK(z0, 2, 4, 7, 8), SCALED_PICK(z1, 8, 8, 8, 5));
	row[2] = _mm256_or_si256(SCALED_PICK(z0, 3, 8, 8, 8), SCALED_PICK(z1, 8, 0, 4, 8));
	row[3] = SCALED_PICK(z1, 1, 3, 8, 8);
}

/* The coefficients that 2 x 2 samples need, and an end. */
static const uint8_t scaled_needed[] = {
    0,  1,  2,  4,  6,  9,  11, 13, 15, 20, 22, 24, 26,
    28, 35, 36, 38, 40, 42, 49, 51, 53, 58, 60, 63, 64,
};

struct scaled_blocks { /* row by row */
	int16_t coef[2][64] __attribute__((aligned(32)));
};

SCALED_INLINE void scaled_rows_all(const int16_t *a, const int16_t *b, unsigned end, __m256i row[8],
				   const bool is_two)
{
	struct scaled_blocks blocks;
	unsigned from;

	for (unsigned i = 0; i < 8; i++)
		((__m256i *)(void *)&blocks)[i] = _mm256_setzero_si256();
	for (unsigned i = 0; (from = is_two ? scaled_needed[i] : i) < end; i++) {
		blocks.coef[0][scaled_places[from]] = a[from];
		blocks.coef[1][scaled_places[from]] = b[from];
	}
	for (unsigned i = 0; i < 8; i++)
		row[i] = scaled_load(blocks.coef[0] + 8 * i, blocks.coef[1] + 8 * i);
}

/* Not 0 in words of more than that many bits. */
SCALED_INLINE __m256i scaled_far(__m256i v, const int size)
{
	return _mm256_xor_si256(v, _mm256_srai_epi16(_mm256_slli_epi16(v, 16 - size), 16 - size));
}

/* Row number `number` times its steps; what gets too large is marked in *far. */
SCALED_INLINE void scaled_row(__m256i row[8], unsigned number, const uint16_t *quant, __m256i *far)
{
	const __m256i steps =
	    _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)(quant + 8 * number)));
	__m256i low = _mm256_mullo_epi16(row[number], steps);
	__m256i high = _mm256_mulhi_epi16(row[number], steps);

	*far = _mm256_or_si256(*far, scaled_far(low, SCALED_SIZE));
	*far = _mm256_or_si256(*far, _mm256_xor_si256(high, _mm256_srai_epi16(low, 15)));
	row[number] = low;
}

/* ---- a pass ---- */

/* a * x + b * y of pairs of words */
SCALED_INLINE __m256i scaled_times(__m256i pairs, const int a, const int b)
{
	return _mm256_madd_epi16(pairs, _mm256_set1_epi32((int)((uint32_t)b << 16 | (uint16_t)a)));
}

/* Words in the upper halves of 32 bits, times a power of two, and what rounds. */
SCALED_INLINE __m256i scaled_even(__m256i words, const int bits, const int shift)
{
	return _mm256_add_epi32(_mm256_srai_epi32(words, 16 - bits),
				_mm256_set1_epi32(1 << (shift - 1)));
}

/* Four 32-bit numbers of both blocks, from inputs 0 (as above), and pairs of 1, 3, of 5, 7 and of 2, 6. */
SCALED_INLINE void scaled_pass4(__m256i in0, __m256i in13, __m256i in57, __m256i in26,
				const int shift, __m256i out[4])
{
	__m256i even = scaled_even(in0, SCALED_BITS + 1, shift);
	__m256i t2 = scaled_times(in26, 15137, -6270);
	__m256i o0 =
	    _mm256_add_epi32(scaled_times(in13, 8697, -17799), scaled_times(in57, 11893, -1730));
	__m256i o2 =
	    _mm256_add_epi32(scaled_times(in13, 20995, 7373), scaled_times(in57, -4926, -4176));
	__m256i sum = _mm256_add_epi32(even, t2), difference = _mm256_sub_epi32(even, t2);

	out[0] = _mm256_srai_epi32(_mm256_add_epi32(sum, o2), shift);
	out[1] = _mm256_srai_epi32(_mm256_add_epi32(difference, o0), shift);
	out[2] = _mm256_srai_epi32(_mm256_sub_epi32(difference, o0), shift);
	out[3] = _mm256_srai_epi32(_mm256_sub_epi32(sum, o2), shift);
}

SCALED_INLINE void scaled_pass2(__m256i in0, __m256i in13, __m256i in57, const int shift,
				__m256i out[2])
{
	__m256i even = scaled_even(in0, SCALED_BITS + 2, shift);
	__m256i odd =
	    _mm256_add_epi32(scaled_times(in13, 29692, -10426), scaled_times(in57, 6967, -5906));

	out[0] = _mm256_srai_epi32(_mm256_add_epi32(even, odd), shift);
	out[1] = _mm256_srai_epi32(_mm256_sub_epi32(even, odd), shift);
}

SCALED_INLINE __m256i scaled_bytes(__m256i words)
{
	return _mm256_add_epi8(_mm256_packs_epi16(words, words), _mm256_set1_epi8(-128));
}

/* Whether a block of DC alone is within the bounds, and its samples. */
static bool scaled_is_flat(int16_t dc, uint16_t step, uint8_t *ret)
{
	int32_t value = dc * (int32_t)step;

	*ret = (uint8_t)(BASE_MAX(BASE_MIN((value + 4) >> 3, 127), -128) + 128);
	return value >= -(1 << (SCALED_SIZE - 3)) && value < 1 << (SCALED_SIZE - 3);
}

/* ---- 4 x 4 ---- */

/* Columns of four rows of words to four rows of two blocks' columns. */
SCALED_INLINE void scaled_rows4(const __m256i w[4], __m256i out[4])
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i l01 = _mm256_unpacklo_epi16(w[0], w[1]), l23 = _mm256_unpacklo_epi16(w[2], w[3]);
	__m256i h01 = _mm256_unpackhi_epi16(w[0], w[1]), h23 = _mm256_unpackhi_epi16(w[2], w[3]);
	/* pairs of columns, of four rows each */
	__m256i c01 = _mm256_unpacklo_epi32(l01, l23), c23 = _mm256_unpackhi_epi32(l01, l23);
	__m256i c45 = _mm256_unpacklo_epi32(h01, h23), c67 = _mm256_unpackhi_epi32(h01, h23);

	scaled_pass4(_mm256_unpacklo_epi16(zero, c01), _mm256_unpackhi_epi16(c01, c23),
		     _mm256_unpackhi_epi16(c45, c67), _mm256_unpacklo_epi16(c23, c67),
		     SCALED_BITS + 6, out);
}

/* Columns of 32-bit numbers to rows of bytes. Returns not 0 if some are too large. */
SCALED_INLINE int scaled_store4(const __m256i out[4], uint8_t *to, size_t stride)
{
	__m256i even = _mm256_packs_epi32(out[0], out[2]), odd = _mm256_packs_epi32(out[1], out[3]);
	__m256i c01 = _mm256_unpacklo_epi16(even, odd), c23 = _mm256_unpackhi_epi16(even, odd);
	__m256i top = _mm256_unpacklo_epi32(c01, c23), bottom = _mm256_unpackhi_epi32(c01, c23);
	__m256i far =
	    _mm256_or_si256(scaled_far(top, SCALED_OUT_SIZE), scaled_far(bottom, SCALED_OUT_SIZE));
	__m256i bytes = _mm256_add_epi8(_mm256_packs_epi16(top, bottom), _mm256_set1_epi8(-128));
	__m128i a = _mm256_castsi256_si128(bytes), b = _mm256_extracti128_si256(bytes, 1);
	__m128i rows01 = _mm_unpacklo_epi32(a, b), rows23 = _mm_unpackhi_epi32(a, b);

	_mm_storel_epi64((__m128i *)to, rows01);
	_mm_storeh_pd((double *)(to + stride), _mm_castsi128_pd(rows01));
	_mm_storel_epi64((__m128i *)(to + 2 * stride), rows23);
	_mm_storeh_pd((double *)(to + 3 * stride), _mm_castsi128_pd(rows23));
	return !_mm256_testz_si256(far, far);
}

static int scaled_flat4(const int16_t *a, const int16_t *b, uint16_t step, uint8_t *to,
			size_t stride)
{
	uint8_t value[2];
	bool is_a = scaled_is_flat(a[0], step, &value[0]),
	     is_b = scaled_is_flat(b[0], step, &value[1]);
	const uint64_t row =
	    value[0] * UINT64_C(0x01010101) | value[1] * UINT64_C(0x0101010100000000);

	for (unsigned i = 0; i < 4; i++)
		memcpy(to + i * stride, &row, sizeof(row));
	return !is_a || !is_b;
}

BASELINE_AVX2 static int scaled_few4(const int16_t *a, const int16_t *b, const uint16_t *quant,
				     uint8_t *to, size_t stride)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i far = zero, row[8], low[4], w[4];

	scaled_rows_few(a, b, row);
	for (unsigned i = 0; i < 4; i++)
		scaled_row(row, i, quant, &far);
	scaled_pass4(_mm256_unpacklo_epi16(zero, row[0]), _mm256_unpacklo_epi16(row[1], row[3]),
		     zero, _mm256_unpacklo_epi16(row[2], zero), SCALED_BITS - 1, low);
	for (unsigned i = 0; i < 4; i++) {
		w[i] = _mm256_packs_epi32(low[i], zero);
		far = _mm256_or_si256(far, scaled_far(w[i], SCALED_SIZE));
	}
	scaled_rows4(w, low);
	return (_mm256_testz_si256(far, far) == 0) | scaled_store4(low, to, stride);
}

BASELINE_AVX2 int baseline_idct4_avx2(const int16_t *a, const int16_t *b, unsigned end,
				      const uint16_t *quant, uint8_t *to, size_t stride)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i used =
	    _mm256_broadcastsi128_si256(_mm_setr_epi16(-1, -1, -1, -1, 0, -1, -1, -1));
	__m256i far = zero, row[8], low[4], high[4], w[4];

	if (end <= 1)
		return scaled_flat4(a, b, quant[0], to, stride);
	if (end <= SCALED_FEW)
		return scaled_few4(a, b, quant, to, stride);
	scaled_rows_all(a, b, end, row, false);
	for (unsigned i = 0; i < 8; i += i == 3 ? 2 : 1)
		scaled_row(row, i, quant, &far);
	scaled_pass4(_mm256_unpacklo_epi16(zero, row[0]), _mm256_unpacklo_epi16(row[1], row[3]),
		     _mm256_unpacklo_epi16(row[5], row[7]), _mm256_unpacklo_epi16(row[2], row[6]),
		     SCALED_BITS - 1, low);
	scaled_pass4(_mm256_unpackhi_epi16(zero, row[0]), _mm256_unpackhi_epi16(row[1], row[3]),
		     _mm256_unpackhi_epi16(row[5], row[7]), _mm256_unpackhi_epi16(row[2], row[6]),
		     SCALED_BITS - 1, high);
	for (unsigned i = 0; i < 4; i++) {
		w[i] = _mm256_packs_epi32(low[i], high[i]);
		far = _mm256_or_si256(far, scaled_far(w[i], SCALED_SIZE));
	}
	scaled_rows4(w, low);
	return (_mm256_testz_si256(far, used) == 0) | scaled_store4(low, to, stride);
}

/* ---- 2 x 2 ---- */

SCALED_INLINE int scaled_store2(const __m256i out[2], uint8_t *to, size_t stride)
{
	__m256i words = SCALED_PICK(_mm256_packs_epi32(out[0], out[1]), 0, 4, 1, 5);
	__m256i far = scaled_far(words, SCALED_OUT_SIZE), bytes = scaled_bytes(words);
	uint32_t a = (uint32_t)_mm256_cvtsi256_si32(bytes);
	uint32_t b = (uint32_t)_mm_cvtsi128_si32(_mm256_extracti128_si256(bytes, 1));
	uint32_t rows[2] = {(a & 0xffff) | b << 16, a >> 16 | (b & 0xffff0000)};

	memcpy(to, &rows[0], 4);
	memcpy(to + stride, &rows[1], 4);
	return !_mm256_testz_si256(far, far);
}

static int scaled_flat2(const int16_t *a, const int16_t *b, uint16_t step, uint8_t *to,
			size_t stride)
{
	uint8_t value[2];
	bool is_a = scaled_is_flat(a[0], step, &value[0]),
	     is_b = scaled_is_flat(b[0], step, &value[1]);
	const uint32_t row = value[0] * UINT32_C(0x0101) | value[1] * UINT32_C(0x01010000);

	memcpy(to, &row, sizeof(row));
	memcpy(to + stride, &row, sizeof(row));
	return !is_a || !is_b;
}

/* The second pass, of two rows of words; in57: pairs of columns 5 and 7. */
SCALED_INLINE int scaled_rows2(__m256i columns, __m256i in57, uint8_t *to, size_t stride)
{
	__m256i out[2];

	scaled_pass2(SCALED_PICK(columns, 8, 0, 8, 1), SCALED_PICK(columns, 2, 6, 3, 7), in57,
		     SCALED_BITS + 7, out);
	return scaled_store2(out, to, stride);
}

BASELINE_AVX2 static int scaled_few2(const int16_t *a, const int16_t *b, const uint16_t *quant,
				     uint8_t *to, size_t stride)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i used = _mm256_broadcastsi128_si256(_mm_setr_epi16(-1, -1, 0, -1, 0, 0, 0, 0));
	__m256i far = zero, row[8], low[2], w[2];

	scaled_rows_few(a, b, row);
	scaled_row(row, 0, quant, &far);
	scaled_row(row, 1, quant, &far);
	scaled_row(row, 3, quant, &far);
	scaled_pass2(_mm256_unpacklo_epi16(zero, row[0]), _mm256_unpacklo_epi16(row[1], row[3]),
		     zero, SCALED_BITS, low);
	for (unsigned i = 0; i < 2; i++) {
		w[i] = _mm256_packs_epi32(low[i], zero);
		far = _mm256_or_si256(far, scaled_far(w[i], SCALED_SIZE));
	}
	return (_mm256_testz_si256(far, used) == 0) |
	       scaled_rows2(_mm256_unpacklo_epi16(w[0], w[1]), zero, to, stride);
}

BASELINE_AVX2 int baseline_idct2_avx2(const int16_t *a, const int16_t *b, unsigned end,
				      const uint16_t *quant, uint8_t *to, size_t stride)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i used =
	    _mm256_broadcastsi128_si256(_mm_setr_epi16(-1, -1, 0, -1, 0, -1, 0, -1));
	__m256i far = zero, row[8], low[2], high[2], w[2];

	if (end <= 1)
		return scaled_flat2(a, b, quant[0], to, stride);
	if (end <= SCALED_FEW)
		return scaled_few2(a, b, quant, to, stride);
	scaled_rows_all(a, b, end, row, true);
	scaled_row(row, 0, quant, &far);
	for (unsigned i = 1; i < 8; i += 2)
		scaled_row(row, i, quant, &far);
	scaled_pass2(_mm256_unpacklo_epi16(zero, row[0]), _mm256_unpacklo_epi16(row[1], row[3]),
		     _mm256_unpacklo_epi16(row[5], row[7]), SCALED_BITS, low);
	scaled_pass2(_mm256_unpackhi_epi16(zero, row[0]), _mm256_unpackhi_epi16(row[1], row[3]),
		     _mm256_unpackhi_epi16(row[5], row[7]), SCALED_BITS, high);
	for (unsigned i = 0; i < 2; i++) {
		w[i] = _mm256_packs_epi32(low[i], high[i]);
		far = _mm256_or_si256(far, scaled_far(w[i], SCALED_SIZE));
	}
	return (_mm256_testz_si256(far, used) == 0) |
	       scaled_rows2(_mm256_unpacklo_epi16(w[0], w[1]),
			    SCALED_PICK(_mm256_unpackhi_epi16(w[0], w[1]), 2, 6, 3, 7), to, stride);
}

#endif
