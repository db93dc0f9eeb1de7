/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packed coefficients (baseline_packed.c) for x86-64 machines with AVX2.
 *
 * Each of a group's eight numbers lies within two bytes: a shuffle brings those to its word, a multiplication
 * moves the number to the word's top, and the high half of another one to its place, which keeps the sign.
 * Tables have all that for every width, so that there is no branch, not even for groups that are not
 * there. Two groups go at once. The numbers of a block begin behind DC; stores are of whole registers,
 * each with the last number of the group before.
 */

#include "pipeline/baseline_inner.h"

#ifdef __x86_64__

#include <immintrin.h>
#include "pipeline/baseline_avx2.h"

#define PACKED_INLINE BASELINE_AVX2 static inline __attribute__((always_inline))

/* Number i of width w: its first byte, and what moves its last bit to the word's. */
#define PACKED_BYTE(w, i) ((w) ? (i) * (w) / 8 : 0x80), ((w) ? (i) * (w) / 8 + 1 : 0x80)
#define PACKED_BYTES(w)                                                                        \
	{                                                                                      \
		PACKED_BYTE(w, 0), PACKED_BYTE(w, 1), PACKED_BYTE(w, 2), PACKED_BYTE(w, 3),    \
		    PACKED_BYTE(w, 4), PACKED_BYTE(w, 5), PACKED_BYTE(w, 6), PACKED_BYTE(w, 7) \
	}
#define PACKED_TIMES(w, i) ((w) ? 1u << ((16 - (w) - (i) * (w) % 8) & 15) : 0)
#define PACKED_EIGHT(what, w)                                                           \
	{                                                                               \
		what(w, 0), what(w, 1), what(w, 2), what(w, 3), what(w, 4), what(w, 5), \
		    what(w, 6), what(w, 7)                                              \
	}
#define PACKED_PLACE(w, i) (1u << (w))
#define PACKED_WIDTH(w)                                                      \
	{                                                                    \
		PACKED_EIGHT(PACKED_BYTE, w), PACKED_EIGHT(PACKED_TIMES, w), \
		    PACKED_EIGHT(PACKED_PLACE, w),                           \
		{                                                            \
			0                                                    \
		}                                                            \
	}

static const struct packed_width {
	uint8_t bytes[16];
	uint16_t times[8], place[8], unused[8];
} packed_widths[16] __attribute__((aligned(64))) = {
    PACKED_WIDTH(0),  PACKED_WIDTH(1), PACKED_WIDTH(2),  PACKED_WIDTH(3), PACKED_WIDTH(4),
    PACKED_WIDTH(5),  PACKED_WIDTH(6), PACKED_WIDTH(7),  PACKED_WIDTH(8), PACKED_WIDTH(9),
    PACKED_WIDTH(10), PACKED_WIDTH(0), PACKED_WIDTH(12),
};

PACKED_INLINE __m256i packed_pair(const void *a, const void *b)
{
	return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(a)),
				       _mm_loadu_si128(b), 1);
}

/* The next two groups, of the lowest bits of widths. */
PACKED_INLINE __m256i packed_groups(const uint8_t *at, uint32_t widths)
{
	const struct packed_width *a = &packed_widths[widths & 15];
	const struct packed_width *b = &packed_widths[widths >> 4 & 15];
	__m256i v = packed_pair(at, at + (widths & 15));

	v = _mm256_shuffle_epi8(v, packed_pair(a->bytes, b->bytes));
	v = _mm256_mullo_epi16(v, packed_pair(a->times, b->times));
	return _mm256_mulhi_epi16(v, packed_pair(a->place, b->place));
}

/* Stores v one word on: behind the last word of before. */
PACKED_INLINE void packed_store(int16_t *to, __m256i before, __m256i v)
{
	__m256i low = _mm256_permute2x128_si256(before, v, 0x21);

	_mm256_store_si256((__m256i *)(void *)to, _mm256_alignr_epi8(v, low, 14));
}

/* Four groups, behind the last word of before. Returns the last two. */
PACKED_INLINE __m256i packed_half(const uint8_t *at, uint32_t widths, __m256i before, int16_t *to)
{
	__m256i a = packed_groups(at, widths);
	__m256i b = packed_groups(at + (widths & 15) + (widths >> 4 & 15), widths >> 8);

	packed_store(to, before, a);
	packed_store(to + 16, a, b);
	return b;
}

PACKED_INLINE int16_t packed_dc(const uint8_t *from, unsigned number)
{
	uint32_t two;

	__builtin_memcpy(&two, from + number * 3 / 2, sizeof(two));
	return (int16_t)((int32_t)(two << (number & 1 ? 16 : 20)) >> 20);
}

/* Where the coefficients end, as precisely as the inverse DCT cares. */
PACKED_INLINE unsigned packed_end(uint32_t widths, const int16_t *coef)
{
	if (widths >> 8 != 0)
		return 33;
	if (widths == 0)
		return 1;
	return coef[15] == 0 && coef[16] == 0 ? 15 : 17;
}

PACKED_INLINE uint8_t packed_block(const struct baseline_shape *low,
				   const struct baseline_shape *high, const uint8_t *at, int16_t dc,
				   int16_t *coef)
{
	const __m256i zero = _mm256_setzero_si256();
	__m256i before = _mm256_insert_epi16(zero, dc, 15);

	before = packed_half(at, low->widths, before, coef);
	if (high) {
		packed_half(at + low->bytes, high->widths, before, coef + 32);
		return 64;
	}
	packed_store(coef + 32, before, zero);
	_mm256_store_si256((__m256i *)(void *)(coef + 48), zero);
	return (uint8_t)packed_end(low->widths, coef);
}

BASELINE_AVX2 const uint8_t *baseline_packed_mcu_avx2(const struct baseline_packed *packed,
						      const uint8_t *at, unsigned n_blocks,
						      unsigned wanted, struct baseline_mcu *mcu)
{
	const uint8_t *dc = at, *low = at + (n_blocks * 3 + 1) / 2, *high = low + n_blocks;

	at = high;
	for (unsigned i = 0; i < n_blocks; i++)
		at += low[i] >= packed->plain;
	for (unsigned i = 0; i < n_blocks; i++) {
		const struct baseline_shape *first = &packed->low[low[i]], *second = NULL;
		unsigned bytes = first->bytes;

		if (low[i] >= packed->plain) {
			second = &packed->high[*high++];
			bytes += second->bytes;
		}
		mcu->coef[i][0] = packed_dc(dc, i);
		mcu->end[i] = wanted >> i & 1
				  ? packed_block(first, second, at, mcu->coef[i][0], mcu->coef[i])
				  : 0;
		at += bytes;
	}
	return at;
}

#endif
