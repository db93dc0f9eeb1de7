/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two packed blocks to samples, without their coefficients in memory in between, for x86-64 machines with
 * AVX2.
 *
 * Groups are unpacked as in baseline_packed_avx2.c, but one of each block at a time, in the halves of a
 * register: that is how the inverse DCT wants them. The tables are of pairs of widths then, so that all is
 * loaded at once; of the 16 KB that they have a picture uses a few.
 *
 * Group g has coefficients 1 + 8 g to 8 + 8 g in zigzag order. Most blocks have the first four only, and
 * then each row picks of those; the first two may do for the short transform, whose rows and columns from the
 * sixth on are zeros.
 */

#include "pipeline/baseline_inner.h"

#ifdef __x86_64__

#include "pipeline/baseline_idct_avx2.h"

#define PAIR_WIDTHS 13 /* 0 to 12 */

/* Number i of width w: its first byte, and what moves its last bit to the word's. */
#define PAIR_BYTE(w, i) ((w) ? (i) * (w) / 8 : 0x80), ((w) ? (i) * (w) / 8 + 1 : 0x80)
#define PAIR_TIMES(w, i) ((w) ? 1u << ((16 - (w) - (i) * (w) % 8) & 15) : 0)
#define PAIR_PLACE(w, i) (1u << (w))
#define PAIR_EIGHT(what, w)                                                                 \
	what(w, 0), what(w, 1), what(w, 2), what(w, 3), what(w, 4), what(w, 5), what(w, 6), \
	    what(w, 7)
#define PAIR(a, b)                                                           \
	{                                                                    \
		{PAIR_EIGHT(PAIR_BYTE, a), PAIR_EIGHT(PAIR_BYTE, b)},        \
		    {PAIR_EIGHT(PAIR_TIMES, a), PAIR_EIGHT(PAIR_TIMES, b)},  \
		{                                                            \
			PAIR_EIGHT(PAIR_PLACE, a), PAIR_EIGHT(PAIR_PLACE, b) \
		}                                                            \
	}
/* Width 11 there is not. */
#define PAIR_ROW(a)                                                                          \
	{                                                                                    \
		PAIR(a, 0), PAIR(a, 1), PAIR(a, 2), PAIR(a, 3), PAIR(a, 4), PAIR(a, 5),      \
		    PAIR(a, 6), PAIR(a, 7), PAIR(a, 8), PAIR(a, 9), PAIR(a, 10), PAIR(a, 0), \
		    PAIR(a, 12)                                                              \
	}

static const struct pair_widths {
	uint8_t bytes[32];
	uint16_t times[16], place[16];
} pair_widths[PAIR_WIDTHS][PAIR_WIDTHS] __attribute__((aligned(64))) = {
    PAIR_ROW(0), PAIR_ROW(1), PAIR_ROW(2), PAIR_ROW(3),  PAIR_ROW(4), PAIR_ROW(5),  PAIR_ROW(6),
    PAIR_ROW(7), PAIR_ROW(8), PAIR_ROW(9), PAIR_ROW(10), PAIR_ROW(0), PAIR_ROW(12),
};

/* Group g of each block's shape; from: where the shape's groups begin. */
IDCT_INLINE __m256i pair_group(const struct baseline_shape *a, const uint8_t *from_a,
			       const struct baseline_shape *b, const uint8_t *from_b, unsigned g)
{
	const struct pair_widths *widths = &pair_widths[a->width[g]][b->width[g]];
	__m128i low = _mm_loadu_si128((const __m128i *)(from_a + a->before[g]));
	__m256i v =
	    _mm256_inserti128_si256(_mm256_castsi128_si256(low),
				    _mm_loadu_si128((const __m128i *)(from_b + b->before[g])), 1);

	v = _mm256_shuffle_epi8(v, _mm256_load_si256((const __m256i *)widths->bytes));
	v = _mm256_mullo_epi16(v, _mm256_load_si256((const __m256i *)widths->times));
	return _mm256_mulhi_epi16(v, _mm256_load_si256((const __m256i *)widths->place));
}

/* ---- coefficients in rows ---- */

IDCT_INLINE __m256i pair_or3(__m256i a, __m256i b, __m256i c)
{
	return idct_or(idct_or(a, b), c);
}

/* Those of groups 0 and 1, which are all that there are. */
IDCT_INLINE void pair_rows_few(__m256i dc, __m256i g0, __m256i g1, __m256i row[8])
{
	row[0] = pair_or3(dc, IDCT_PICK(g0, 8, 0, 4, 5, 8, 8, 8, 8),
			  IDCT_PICK(g1, 8, 8, 8, 8, 5, 8, 8, 8));
	row[1] =
	    idct_or(IDCT_PICK(g0, 1, 3, 6, 8, 8, 8, 8, 8), IDCT_PICK(g1, 8, 8, 8, 4, 8, 8, 8, 8));
	row[2] =
	    idct_or(IDCT_PICK(g0, 2, 7, 8, 8, 8, 8, 8, 8), IDCT_PICK(g1, 8, 8, 3, 8, 8, 8, 8, 8));
	row[3] = IDCT_PICK(g1, 0, 2, 8, 8, 8, 8, 8, 8);
	row[4] = IDCT_PICK(g1, 1, 8, 8, 8, 8, 8, 8, 8);
}

/* Of the first four. */
IDCT_INLINE void pair_rows_low(__m256i dc, const __m256i g[8], __m256i row[8])
{
	row[0] = idct_or(pair_or3(dc, IDCT_PICK(g[0], 8, 0, 4, 5, 8, 8, 8, 8),
				  IDCT_PICK(g[1], 8, 8, 8, 8, 5, 6, 8, 8)),
			 IDCT_PICK(g[3], 8, 8, 8, 8, 8, 8, 2, 3));
	row[1] = pair_or3(IDCT_PICK(g[0], 1, 3, 6, 8, 8, 8, 8, 8),
			  IDCT_PICK(g[1], 8, 8, 8, 4, 7, 8, 8, 8),
			  IDCT_PICK(g[3], 8, 8, 8, 8, 8, 1, 4, 8));
	row[2] = idct_or(pair_or3(IDCT_PICK(g[0], 2, 7, 8, 8, 8, 8, 8, 8),
				  IDCT_PICK(g[1], 8, 8, 3, 8, 8, 8, 8, 8),
				  IDCT_PICK(g[2], 8, 8, 8, 0, 8, 8, 8, 8)),
			 IDCT_PICK(g[3], 8, 8, 8, 8, 0, 5, 8, 8));
	row[3] = pair_or3(IDCT_PICK(g[1], 0, 2, 8, 8, 8, 8, 8, 8),
			  IDCT_PICK(g[2], 8, 8, 1, 7, 8, 8, 8, 8),
			  IDCT_PICK(g[3], 8, 8, 8, 8, 6, 8, 8, 8));
	row[4] = pair_or3(IDCT_PICK(g[1], 1, 8, 8, 8, 8, 8, 8, 8),
			  IDCT_PICK(g[2], 8, 2, 6, 8, 8, 8, 8, 8),
			  IDCT_PICK(g[3], 8, 8, 8, 7, 8, 8, 8, 8));
	row[5] = IDCT_PICK(g[2], 3, 5, 8, 8, 8, 8, 8, 8);
	row[6] = IDCT_PICK(g[2], 4, 8, 8, 8, 8, 8, 8, 8);
	row[7] = _mm256_setzero_si256();
}

/* And of the last four. */
IDCT_INLINE void pair_rows_high(const __m256i g[8], __m256i row[8])
{
	row[1] = idct_or(row[1], IDCT_PICK(g[5], 8, 8, 8, 8, 8, 8, 8, 1));
	row[2] = idct_or(row[2], IDCT_PICK(g[5], 8, 8, 8, 8, 8, 8, 0, 2));
	row[3] = idct_or(row[3], pair_or3(IDCT_PICK(g[4], 8, 8, 8, 8, 8, 7, 8, 8),
					  IDCT_PICK(g[5], 8, 8, 8, 8, 8, 8, 3, 8),
					  IDCT_PICK(g[6], 8, 8, 8, 8, 8, 8, 8, 4)));
	row[4] = idct_or(row[4], pair_or3(IDCT_PICK(g[4], 8, 8, 8, 8, 6, 8, 8, 8),
					  IDCT_PICK(g[5], 8, 8, 8, 8, 8, 4, 8, 8),
					  IDCT_PICK(g[6], 8, 8, 8, 8, 8, 8, 3, 5)));
	row[5] = pair_or3(row[5],
			  idct_or(IDCT_PICK(g[4], 8, 8, 0, 5, 8, 8, 8, 8),
				  IDCT_PICK(g[5], 8, 8, 8, 8, 5, 8, 8, 8)),
			  idct_or(IDCT_PICK(g[6], 8, 8, 8, 8, 8, 2, 6, 8),
				  IDCT_PICK(g[7], 8, 8, 8, 8, 8, 8, 8, 3)));
	row[6] = pair_or3(row[6],
			  idct_or(IDCT_PICK(g[4], 8, 1, 4, 8, 8, 8, 8, 8),
				  IDCT_PICK(g[5], 8, 8, 8, 6, 8, 8, 8, 8)),
			  idct_or(IDCT_PICK(g[6], 8, 8, 8, 8, 1, 7, 8, 8),
				  IDCT_PICK(g[7], 8, 8, 8, 8, 8, 8, 2, 4)));
	row[7] = idct_or(idct_or(IDCT_PICK(g[4], 2, 3, 8, 8, 8, 8, 8, 8),
				 IDCT_PICK(g[5], 8, 8, 7, 8, 8, 8, 8, 8)),
			 idct_or(IDCT_PICK(g[6], 8, 8, 8, 0, 8, 8, 8, 8),
				 IDCT_PICK(g[7], 8, 8, 8, 8, 0, 1, 5, 6)));
}

/* ---- blocks ---- */

/* In group 1, coefficients that the short transform does not know. */
IDCT_INLINE bool pair_is_few(__m256i g1)
{
	const __m256i more = _mm256_set1_epi64x((int64_t)0xffffffff00000000);

	return _mm256_testz_si256(g1, _mm256_unpackhi_epi64(_mm256_setzero_si256(), more));
}

IDCT_INLINE __m256i pair_dc(int16_t a, int16_t b)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_cvtsi32_si128((uint16_t)a)),
				       _mm_cvtsi32_si128((uint16_t)b), 1);
}

BASELINE_AVX2 int baseline_packed_idct_avx2(const struct baseline_packed_block *a,
					    const struct baseline_packed_block *b,
					    const uint16_t *quant, uint8_t *to, size_t stride)
{
	const struct baseline_shape *low_a = a->low, *low_b = b->low;
	const unsigned low = low_a->widths | low_b->widths, high = a->high->bytes | b->high->bytes;
	__m256i g[8], v[8];
	int r;

	if ((low | high) == 0) {
		idct_flat(a->dc, b->dc, quant, to, stride);
		return 0;
	}
	g[0] = pair_group(low_a, a->at, low_b, b->at, 0);
	g[1] = pair_group(low_a, a->at, low_b, b->at, 1);
	if ((low >> 8 | high) == 0 && pair_is_few(g[1])) {
		pair_rows_few(pair_dc(a->dc, b->dc), g[0], g[1], v);
		r = idct_blocks(v, quant, true);
	} else {
		g[2] = pair_group(low_a, a->at, low_b, b->at, 2);
		g[3] = pair_group(low_a, a->at, low_b, b->at, 3);
		pair_rows_low(pair_dc(a->dc, b->dc), g, v);
		if (high != 0) {
			const uint8_t *from_a = a->at + low_a->bytes;
			const uint8_t *from_b = b->at + low_b->bytes;

			g[4] = pair_group(a->high, from_a, b->high, from_b, 0);
			g[5] = pair_group(a->high, from_a, b->high, from_b, 1);
			g[6] = pair_group(a->high, from_a, b->high, from_b, 2);
			g[7] = pair_group(a->high, from_a, b->high, from_b, 3);
			pair_rows_high(g, v);
		}
		r = idct_blocks(v, quant, false);
	}
	idct_store(v, to, stride);
	return r;
}

#endif
