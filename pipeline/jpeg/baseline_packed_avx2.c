/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A packed pair of blocks to samples, without its coefficients in memory in between, for x86-64 machines
 * with AVX2: one block in each half of the registers, as the inverse DCT has them.
 *
 * Each of a group's eight numbers lies within two bytes: a shuffle brings those to its word, a multiplication
 * moves the number to the word's top, and the high half of another one to its place, which keeps the sign.
 * Tables have all that for every width, so that there is no branch, not even for groups that are not
 * there.
 *
 * The groups are such (baseline_packed_order) that most numbers come to lie in their columns, and a row is
 * put together of what two or three of them have in its columns. Of the first two nothing is beyond row and
 * column 4: so they do for the short transform. The first four leave rows 6 and 7 empty.
 *
 * Nothing is looked for that is too large: who packs has looked (baseline_pack.c).
 */

#include "pipeline/jpeg/baseline_inner.h"

#ifdef __x86_64__

#include "pipeline/jpeg/baseline_idct_avx2.h"
#include "pipeline/jpeg/baseline_packed.h"

/* Number i of width w: its first byte, and what moves its last bit to the word's. */
#define PACKED_BYTE(w, i) ((w) ? (i) * (w) / 8 : 0x80), ((w) ? (i) * (w) / 8 + 1 : 0x80)
#define PACKED_TIMES(w, i) ((w) ? 1u << ((16 - (w) - (i) * (w) % 8) & 15) : 0)
#define PACKED_UP(w, i) (1u << (w))
#define PACKED_EIGHT(what, w)                                                               \
	what(w, 0), what(w, 1), what(w, 2), what(w, 3), what(w, 4), what(w, 5), what(w, 6), \
	    what(w, 7)
/* For both halves. */
#define PACKED_BOTH(what, w)                                 \
	{                                                    \
		PACKED_EIGHT(what, w), PACKED_EIGHT(what, w) \
	}
#define PACKED_WIDTH(w)                                                    \
	{                                                                  \
		PACKED_BOTH(PACKED_BYTE, w), PACKED_BOTH(PACKED_TIMES, w), \
		    PACKED_BOTH(PACKED_UP, w),                             \
		{                                                          \
			0                                                  \
		}                                                          \
	}

/* Widths that there are not are as 0. */
static const struct packed_width {
	uint8_t bytes[32];
	uint16_t times[16], up[16], unused[16];
} packed_widths[16] __attribute__((aligned(64))) = {
    PACKED_WIDTH(0),  PACKED_WIDTH(1), PACKED_WIDTH(2),  PACKED_WIDTH(3),
    PACKED_WIDTH(4),  PACKED_WIDTH(5), PACKED_WIDTH(6),  PACKED_WIDTH(7),
    PACKED_WIDTH(8),  PACKED_WIDTH(9), PACKED_WIDTH(10), PACKED_WIDTH(0),
    PACKED_WIDTH(12), PACKED_WIDTH(0), PACKED_WIDTH(0),  PACKED_WIDTH(0),
};

IDCT_INLINE __m256i packed_group(const struct baseline_packed_pair *pair, unsigned g)
{
	const struct packed_width *width = &packed_widths[pair->width[g]];
	const uint8_t *from = pair->at + 2 * (size_t)pair->before[g];
	__m128i low = _mm_loadu_si128((const __m128i *)from);
	__m128i high = _mm_loadu_si128((const __m128i *)(from + pair->width[g]));
	__m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);

	v = _mm256_shuffle_epi8(v, _mm256_load_si256((const __m256i *)width->bytes));
	v = _mm256_mullo_epi16(v, _mm256_load_si256((const __m256i *)width->times));
	return _mm256_mulhi_epi16(v, _mm256_load_si256((const __m256i *)width->up));
}

/* ---- coefficients in rows ---- */

/* Columns of the bits of which from b, the others from a. */
#define PACKED_BLEND(a, b, which) _mm256_blend_epi16(a, b, which)

/* DC in the first column, beside zeros: brought to a word's top, and back with its sign. */
#define PACKED_PLACES(low, high) low, high, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1

IDCT_INLINE __m256i packed_dc(const uint8_t *dc, const unsigned dc_bytes)
{
	const __m256i times = _mm256_setr_epi16(16, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0);
	const __m256i shorts = _mm256_setr_epi8(PACKED_PLACES(-1, 0), PACKED_PLACES(-1, 1));
	const __m256i longs = _mm256_setr_epi8(PACKED_PLACES(0, 1), PACKED_PLACES(1, 2));
	__m256i both;
	int bytes;

	__builtin_memcpy(&bytes, dc, sizeof(bytes));
	both = _mm256_set1_epi32(bytes);
	if (dc_bytes == 2)
		return _mm256_srai_epi16(_mm256_shuffle_epi8(both, shorts), 8);
	return _mm256_srai_epi16(_mm256_mullo_epi16(_mm256_shuffle_epi8(both, longs), times), 4);
}

/* What groups 0 and 1 have; 2 and 3 may be missing in rows 1 and 4. */
IDCT_INLINE void packed_rows_first(__m256i dc, __m256i g0, __m256i g1, __m256i row[8])
{
	row[0] = PACKED_BLEND(PACKED_BLEND(dc, g0, 0x06), g1, 0x18);
	row[1] = _mm256_srli_si256(g0, 6); /* and two that are not of it */
	row[2] = PACKED_BLEND(_mm256_srli_si256(g0, 12), g1, 0x04);
	row[3] = PACKED_BLEND(_mm256_srli_si256(g1, 8), g0, 0x01);
	row[4] = PACKED_BLEND(_mm256_setzero_si256(), g1, 0x03);
}

/* Groups 0 and 1 are all that there are. */
IDCT_INLINE void packed_rows_few(__m256i dc, __m256i g0, __m256i g1, __m256i row[8])
{
	packed_rows_first(dc, g0, g1, row);
	row[1] = PACKED_BLEND(row[1], _mm256_setzero_si256(), 0x18);
}

/* Of the first four. */
IDCT_INLINE void packed_rows_low(__m256i dc, const __m256i g[8], __m256i row[8])
{
	const __m256i zero = _mm256_setzero_si256();

	packed_rows_first(dc, g[0], g[1], row);
	row[0] = PACKED_BLEND(row[0], g[3], 0x60);
	row[1] = PACKED_BLEND(row[1], g[3], 0x18);
	row[2] = PACKED_BLEND(row[2], g[2], 0xe0);
	row[2] = PACKED_BLEND(row[2], IDCT_PICK(g[3], 8, 8, 8, 2, 7, 8, 8, 8), 0x18);
	row[3] = PACKED_BLEND(row[3], g[2], 0x10);
	row[4] = PACKED_BLEND(row[4], g[2], 0x0c);
	row[5] = PACKED_BLEND(zero, g[3], 0x03);
	row[6] = PACKED_BLEND(zero, g[2], 0x03);
	row[7] = zero;
}

/* And of the last four. */
IDCT_INLINE void packed_rows_high(const __m256i g[8], __m256i row[8])
{
	row[0] = PACKED_BLEND(row[0], _mm256_slli_si256(g[6], 6), 0x80);
	row[1] = PACKED_BLEND(row[1], g[5], 0xe0);
	row[3] = PACKED_BLEND(row[3], g[6], 0xe0);
	row[4] = PACKED_BLEND(row[4], _mm256_slli_si256(g[4], 10), 0x60);
	row[4] = PACKED_BLEND(row[4], IDCT_PICK(g[5], 8, 8, 8, 8, 0, 8, 8, 1), 0x90);
	row[5] = PACKED_BLEND(row[5], g[5], 0x1c);
	row[5] = PACKED_BLEND(row[5], _mm256_slli_si256(g[7], 10), 0xe0);
	row[6] = PACKED_BLEND(row[6], g[4], 0xfc);
	row[7] = PACKED_BLEND(g[6], g[7], 0xf0);
}

/* ---- samples ---- */

/* Times the steps, without a look at how large that is. */
IDCT_INLINE void packed_scale(__m256i row[8], const uint16_t *quant, const bool is_few)
{
	const __m256i *steps = (const __m256i *)(const void *)quant;

	row[0] = _mm256_mullo_epi16(row[0], _mm256_load_si256(steps));
	row[1] = _mm256_mullo_epi16(row[1], _mm256_load_si256(steps + 1));
	row[2] = _mm256_mullo_epi16(row[2], _mm256_load_si256(steps + 2));
	row[3] = _mm256_mullo_epi16(row[3], _mm256_load_si256(steps + 3));
	row[4] = _mm256_mullo_epi16(row[4], _mm256_load_si256(steps + 4));
	if (is_few)
		return;
	row[5] = _mm256_mullo_epi16(row[5], _mm256_load_si256(steps + 5));
	row[6] = _mm256_mullo_epi16(row[6], _mm256_load_si256(steps + 6));
	row[7] = _mm256_mullo_epi16(row[7], _mm256_load_si256(steps + 7));
}

IDCT_INLINE void packed_passes(__m256i v[8], const uint16_t *quant, const bool is_few)
{
	packed_scale(v, quant, is_few);
	idct_pass(v, IDCT_BITS - 2, is_few);
	idct_transpose(v);
	idct_pass(v, IDCT_BITS + 5, is_few);
}

IDCT_INLINE void packed_store_block(__m128i rows, uint8_t *to, size_t stride)
{
	_mm_storel_epi64((__m128i *)to, rows);
	_mm_storeh_pd((double *)(void *)(to + stride), _mm_castsi128_pd(rows));
}

/* Blocks of DC alone. */
BASELINE_AVX2 static void packed_flat(const struct baseline_packed_pair *pair,
				      const uint16_t *quant, uint8_t *const to[2], size_t stride)
{
	for (unsigned i = 0; i < 2; i++) {
		const char value = idct_flat_value(baseline_packed_dc(pair, i), quant[8 * i]);
		const __m128i rows = _mm_set1_epi8(value);

		for (unsigned y = 0; y < 8; y += 2)
			packed_store_block(rows, to[i] + y * stride, stride);
	}
}

/* Two rows of both blocks. */
IDCT_INLINE void packed_store_two(__m256i rows, uint8_t *const to[2], size_t at, size_t stride)
{
	packed_store_block(_mm256_castsi256_si128(rows), to[0] + at, stride);
	packed_store_block(_mm256_extracti128_si256(rows, 1), to[1] + at, stride);
}

IDCT_INLINE void packed_store(const __m256i v[8], uint8_t *const to[2], size_t stride)
{
	__m256i rows[4];

	if (to[1] == to[0] + 8) {
		idct_store(v, to[0], stride);
		return;
	}
	idct_byte_rows(v, rows);
	packed_store_two(rows[0], to, 0, stride);
	packed_store_two(rows[1], to, 2 * stride, stride);
	packed_store_two(rows[2], to, 4 * stride, stride);
	packed_store_two(rows[3], to, 6 * stride, stride);
}

/* A pair to samples. */
IDCT_INLINE void packed_pair(const struct baseline_packed_pair *pair, const unsigned dc_bytes,
			     const uint16_t *quant, uint8_t *const to[2], size_t stride)
{
	const __m256i dc = packed_dc(pair->dc, dc_bytes);
	__m256i g[8], v[8];

	if (pair->widths == 0) {
		packed_flat(pair, quant, to, stride);
		return;
	}
	g[0] = packed_group(pair, 0);
	g[1] = packed_group(pair, 1);
	if (pair->widths >> 8 == 0) {
		packed_rows_few(dc, g[0], g[1], v);
		packed_passes(v, quant, true);
	} else {
		g[2] = packed_group(pair, 2);
		g[3] = packed_group(pair, 3);
		packed_rows_low(dc, g, v);
		if (pair->widths >> 16 != 0) {
			g[4] = packed_group(pair, 4);
			g[5] = packed_group(pair, 5);
			g[6] = packed_group(pair, 6);
			g[7] = packed_group(pair, 7);
			packed_rows_high(g, v);
		}
		packed_passes(v, quant, false);
	}
	packed_store(v, to, stride);
}

/* Compiled for each length of DCs. */
IDCT_INLINE const uint8_t *packed_unit(const struct baseline_packed *packed, const uint8_t *at,
				       size_t n, unsigned wanted, const unsigned dc_bytes)
{
	struct baseline_packed_cursor cursor = baseline_packed_begin(at, packed->n_pairs, dc_bytes);

	for (unsigned p = 0; p < packed->n_pairs; p++) {
		const struct baseline_packed_target *target = &packed->target[p];
		uint8_t *const to[2] = {target->to[0] + n * target->step,
					target->to[1] + n * target->step};
		struct baseline_packed_pair pair;

		baseline_packed_next(&cursor, &pair);
		if (wanted >> p & 1)
			packed_pair(&pair, dc_bytes, packed->quant[p][0], to, target->stride);
	}
	return cursor.at;
}

BASELINE_AVX2 __attribute__((noinline)) static const uint8_t *
packed_unit_short(const struct baseline_packed *packed, const uint8_t *at, size_t n,
		  unsigned wanted)
{
	return packed_unit(packed, at, n, wanted, 2);
}

BASELINE_AVX2 const uint8_t *baseline_packed_unit_avx2(const struct baseline_packed *packed,
						       const uint8_t *at, size_t n, unsigned wanted)
{
	if (packed->dc_bytes == 2)
		return packed_unit_short(packed, at, n, wanted);
	return packed_unit(packed, at, n, wanted, 3);
}

#endif
