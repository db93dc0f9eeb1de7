/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inverse DCT of two blocks at once, one in each half of the registers, for x86-64 machines with
 * AVX2.
 *
 * It is libjpeg-turbo's own SIMD arithmetic step by step (jidctint-avx2.asm; its SSE2 twin is the
 * same): 16-bit products of dequantisation that wrap, 16-bit sums of inputs that wrap, saturation
 * between the passes and at the end. So it is exact for any numbers, but for one case: where all
 * rows but the first are zeros libjpeg-turbo takes a shortcut that wraps where the long way
 * saturates. Numbers that large in the first row are refused, zeros or not.
 *
 * Coefficients come in zigzag order: eight registers of eight, from which each row picks its own
 * with byte shuffles. Blocks with nothing behind coefficient IDCT_FEW need two of those registers
 * and a shorter transform: nothing but zeros is in rows and columns from the sixth on. A block of
 * nothing but DC is one number 64 times.
 */

#include "pipeline/jpeg/baseline_inner.h"

#ifdef __x86_64__

#include "pipeline/jpeg/baseline_idct_avx2.h"

#define IDCT_FEW 15 /* coefficients, 0 ... 14: the top left triangle of five rows */

/* ---- coefficients in rows ---- */

/* Eight coefficients of each block, from the first-th on. */
IDCT_INLINE __m256i idct_load(const int16_t *a, const int16_t *b, unsigned first)
{
	__m256i low = _mm256_castsi128_si256(_mm_load_si128((const __m128i *)(a + first)));

	return _mm256_inserti128_si256(low, _mm_load_si128((const __m128i *)(b + first)), 1);
}

IDCT_INLINE void idct_rows_few(const int16_t *a, const int16_t *b, __m256i row[8])
{
	__m256i z0 = idct_load(a, b, 0), z1 = idct_load(a, b, 8);

	row[0] =
	    idct_or(IDCT_PICK(z0, 0, 1, 5, 6, 8, 8, 8, 8), IDCT_PICK(z1, 8, 8, 8, 8, 6, 8, 8, 8));
	row[1] =
	    idct_or(IDCT_PICK(z0, 2, 4, 7, 8, 8, 8, 8, 8), IDCT_PICK(z1, 8, 8, 8, 5, 8, 8, 8, 8));
	row[2] =
	    idct_or(IDCT_PICK(z0, 3, 8, 8, 8, 8, 8, 8, 8), IDCT_PICK(z1, 8, 0, 4, 8, 8, 8, 8, 8));
	row[3] = IDCT_PICK(z1, 1, 3, 8, 8, 8, 8, 8, 8);
	row[4] = IDCT_PICK(z1, 2, 8, 8, 8, 8, 8, 8, 8);
}

IDCT_INLINE void idct_rows_all(const int16_t *a, const int16_t *b, __m256i row[8])
{
	__m256i z0 = idct_load(a, b, 0), z1 = idct_load(a, b, 8), z2 = idct_load(a, b, 16);
	__m256i z3 = idct_load(a, b, 24), z4 = idct_load(a, b, 32), z5 = idct_load(a, b, 40);
	__m256i z6 = idct_load(a, b, 48), z7 = idct_load(a, b, 56);

	row[0] = idct_or(
	    IDCT_PICK(z0, 0, 1, 5, 6, 8, 8, 8, 8),
	    idct_or(IDCT_PICK(z1, 8, 8, 8, 8, 6, 7, 8, 8), IDCT_PICK(z3, 8, 8, 8, 8, 8, 8, 3, 4)));
	row[1] = idct_or(
	    idct_or(IDCT_PICK(z0, 2, 4, 7, 8, 8, 8, 8, 8), IDCT_PICK(z1, 8, 8, 8, 5, 8, 8, 8, 8)),
	    idct_or(idct_or(IDCT_PICK(z2, 8, 8, 8, 8, 0, 8, 8, 8),
			    IDCT_PICK(z3, 8, 8, 8, 8, 8, 2, 5, 8)),
		    IDCT_PICK(z5, 8, 8, 8, 8, 8, 8, 8, 2)));
	row[2] = idct_or(
	    idct_or(IDCT_PICK(z0, 3, 8, 8, 8, 8, 8, 8, 8), IDCT_PICK(z1, 8, 0, 4, 8, 8, 8, 8, 8)),
	    idct_or(idct_or(IDCT_PICK(z2, 8, 8, 8, 1, 8, 8, 8, 8),
			    IDCT_PICK(z3, 8, 8, 8, 8, 1, 6, 8, 8)),
		    IDCT_PICK(z5, 8, 8, 8, 8, 8, 8, 1, 3)));
	row[3] = idct_or(
	    idct_or(IDCT_PICK(z1, 1, 3, 8, 8, 8, 8, 8, 8), IDCT_PICK(z2, 8, 8, 2, 8, 8, 8, 8, 8)),
	    idct_or(idct_or(IDCT_PICK(z3, 8, 8, 8, 0, 7, 8, 8, 8),
			    IDCT_PICK(z5, 8, 8, 8, 8, 8, 0, 4, 8)),
		    IDCT_PICK(z6, 8, 8, 8, 8, 8, 8, 8, 5)));
	row[4] = idct_or(
	    idct_or(IDCT_PICK(z1, 2, 8, 8, 8, 8, 8, 8, 8), IDCT_PICK(z2, 8, 3, 7, 8, 8, 8, 8, 8)),
	    idct_or(idct_or(IDCT_PICK(z4, 8, 8, 8, 0, 7, 8, 8, 8),
			    IDCT_PICK(z5, 8, 8, 8, 8, 8, 5, 8, 8)),
		    IDCT_PICK(z6, 8, 8, 8, 8, 8, 8, 4, 6)));
	row[5] = idct_or(
	    idct_or(IDCT_PICK(z2, 4, 6, 8, 8, 8, 8, 8, 8), IDCT_PICK(z4, 8, 8, 1, 6, 8, 8, 8, 8)),
	    idct_or(idct_or(IDCT_PICK(z5, 8, 8, 8, 8, 6, 8, 8, 8),
			    IDCT_PICK(z6, 8, 8, 8, 8, 8, 3, 7, 8)),
		    IDCT_PICK(z7, 8, 8, 8, 8, 8, 8, 8, 4)));
	row[6] = idct_or(
	    idct_or(IDCT_PICK(z2, 5, 8, 8, 8, 8, 8, 8, 8), IDCT_PICK(z4, 8, 2, 5, 8, 8, 8, 8, 8)),
	    idct_or(idct_or(IDCT_PICK(z5, 8, 8, 8, 7, 8, 8, 8, 8),
			    IDCT_PICK(z6, 8, 8, 8, 8, 2, 8, 8, 8)),
		    IDCT_PICK(z7, 8, 8, 8, 8, 8, 0, 3, 5)));
	row[7] = idct_or(
	    IDCT_PICK(z4, 3, 4, 8, 8, 8, 8, 8, 8),
	    idct_or(IDCT_PICK(z6, 8, 8, 0, 1, 8, 8, 8, 8), IDCT_PICK(z7, 8, 8, 8, 8, 1, 2, 6, 7)));
}

/* ---- blocks ---- */

BASELINE_AVX2 int baseline_idct_avx2(const int16_t *a, const int16_t *b, unsigned end,
				     const uint16_t *quant, uint8_t *to, size_t stride)
{
	__m256i v[8];
	int r;

	if (end <= 1) {
		idct_flat(a[0], b[0], quant, to, stride);
		return 0;
	}
	if (end <= IDCT_FEW) {
		idct_rows_few(a, b, v);
		r = idct_blocks(v, quant, true);
	} else {
		idct_rows_all(a, b, v);
		r = idct_blocks(v, quant, false);
	}
	idct_store(v, to, stride);
	return r;
}

#endif
