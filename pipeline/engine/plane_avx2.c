/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over planes for x86-64 machines with AVX2, found out when they run.
 *
 * Eight sums a register, exact: pmaddwd adds two products of 16-bit numbers, a pair of taps, and as
 * weights have 24 bits there are two sums, of the weights' high parts and of their low ones
 * (plane_table.c), with sum = high * 65536 + low. So the upper half of a low sum plus the high sum is
 * the result with six bits of fraction, and what was cut off never decides how it is rounded.
 *
 * Along a row a shuffle brings the eight first inputs of a pair beside their second ones; two rows
 * go together, so that weights and shuffles are loaded once for both, and are stored in turn, which
 * is how the column pass wants its pairs. One row's results are made in the lower halves of sums, the
 * other's in the upper ones: one blend puts them together.
 *
 * Where the taps are few, weights' high parts fit bytes: then one multiplication of bytes (pmaddubsw)
 * makes sixteen outputs' high sums, of 16 bits: along a row eight of each row (PLANE_BYTES), along a
 * column, where the weights are the same for all outputs, sixteen that stand side by side.
 *
 * Rows in turn stand in groups of sixteen pairs, in the order that packing leaves: 0-3 and 8-11, then
 * 4-7 and 12-15, as unpacking to 16 bits brings each eight together again.
 *
 * Loops over pairs are written out for the counts that photographs have (1 to 3: down to about
 * half the size with a bilinear filter): the functions that are always put in take them as
 * constants.
 */

#include "pipeline/engine/plane.h"

#ifdef __x86_64__

#include "pipeline/engine/plane_avx2.h"

/* ---- along rows ---- */

/* The two inputs of pair number i for each of eight outputs. */
PLANE_AVX2_IN __m256i plane_avx2_inputs(const uint8_t *row, const uint32_t *at, __m256i shuffle,
					uint32_t i, bool narrow)
{
	__m128i first = _mm_loadu_si128((const __m128i *)(row + at[0] + 2 * i));
	__m256i bytes;

	if (narrow)
		bytes = _mm256_broadcastsi128_si256(first);
	else
		bytes = _mm256_inserti128_si256(
		    _mm256_castsi128_si256(first),
		    _mm_loadu_si128((const __m128i *)(row + at[1] + 2 * i)), 1);
	return _mm256_shuffle_epi8(bytes, shuffle);
}

struct plane_avx2_rows { /* two, and their sums */
	const uint8_t *a, *b;
	struct plane_avx2_sum of_a, of_b;
};

PLANE_AVX2_IN void plane_avx2_add_two(struct plane_avx2_rows *rows, const int16_t *split,
				      __m256i shuffle, const uint32_t *at, uint32_t i, bool narrow)
{
	__m256i high = _mm256_load_si256((const __m256i *)(split + (size_t)i * 32));
	__m256i low = _mm256_load_si256((const __m256i *)(split + (size_t)i * 32 + 16));

	/* in registers: loads are what there are most of */
	__asm__("" : "+x"(high), "+x"(low));
	plane_avx2_add(&rows->of_a, plane_avx2_inputs(rows->a, at, shuffle, i, narrow), high, low);
	plane_avx2_add(&rows->of_b, plane_avx2_inputs(rows->b, at, shuffle, i, narrow), high, low);
}

/* A pair of each of eight outputs of two rows. */
PLANE_AVX2_IN void plane_avx2_add_bytes(struct plane_avx2_group *sums, const int16_t *split,
					__m256i of_a, __m256i of_b)
{
	__m256i high = _mm256_load_si256((const __m256i *)split);
	__m256i low = _mm256_load_si256((const __m256i *)(split + 16));
	__m256i bytes = _mm256_packus_epi16(of_a, of_b);

	sums->high = _mm256_add_epi16(sums->high, _mm256_maddubs_epi16(bytes, high));
	sums->low = _mm256_add_epi32(sums->low, _mm256_madd_epi16(of_a, low));
	sums->low_rest = _mm256_add_epi32(sums->low_rest, _mm256_madd_epi16(of_b, low));
}

/* Eight outputs of each of two rows, in turn, as 16-bit numbers. Written out for the pairs that are
 * constants, as compilers do not unroll at this level. */
PLANE_AVX2_IN __m256i plane_avx2_block(const int16_t *split, const uint8_t *shuffles,
				       const uint32_t *at, uint32_t pairs, bool narrow,
				       const uint8_t *a, const uint8_t *b)
{
	struct plane_avx2_rows rows = {a, b, plane_avx2_zero(), plane_avx2_zero()};
	const __m256i shuffle = _mm256_load_si256((const __m256i *)shuffles);
	__m256i even, odd;

	plane_avx2_add_two(&rows, split, shuffle, at, 0, narrow);
	if (pairs > 1)
		plane_avx2_add_two(&rows, split, shuffle, at, 1, narrow);
	if (pairs > 2)
		plane_avx2_add_two(&rows, split, shuffle, at, 2, narrow);
	for (uint32_t i = 3; i < pairs; i++)
		plane_avx2_add_two(&rows, split, shuffle, at, i, narrow);
	even = plane_avx2_value(rows.of_a);
	odd = plane_avx2_value_above(rows.of_b);
	return plane_avx2_round(_mm256_blend_epi16(even, odd, 0xaa));
}

/* The same in 16-bit sums of high parts, as bytes: four outputs of one row, four of the other. */
PLANE_AVX2_IN __m256i plane_avx2_block_small(const int16_t *split, const uint8_t *shuffles,
					     const uint32_t *at, uint32_t pairs, bool narrow,
					     const uint8_t *a, const uint8_t *b)
{
	const __m256i zero = _mm256_setzero_si256();
	const __m256i shuffle = _mm256_load_si256((const __m256i *)shuffles);
	struct plane_avx2_group sums = {zero, zero, zero};

	plane_avx2_add_bytes(&sums, split, plane_avx2_inputs(a, at, shuffle, 0, narrow),
			     plane_avx2_inputs(b, at, shuffle, 0, narrow));
	if (pairs > 1)
		plane_avx2_add_bytes(&sums, split + 32,
				     plane_avx2_inputs(a, at, shuffle, 1, narrow),
				     plane_avx2_inputs(b, at, shuffle, 1, narrow));
	if (pairs > 2)
		plane_avx2_add_bytes(&sums, split + 64,
				     plane_avx2_inputs(a, at, shuffle, 2, narrow),
				     plane_avx2_inputs(b, at, shuffle, 2, narrow));
	return plane_avx2_group_value(&sums);
}

/* PLANE_BYTES: at most three pairs. */
PLANE_AVX2_IN void plane_avx2_blocks_small(const struct plane_table *table, uint32_t pairs,
					   bool narrow, const uint8_t *a, const uint8_t *b,
					   uint8_t *to)
{
	const __m256i order = _mm256_broadcastsi128_si256(
	    _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
	const int16_t *split = table->split;
	const uint8_t *shuffle = table->shuffle, *end = to + (size_t)table->blocks * 16;
	const uint32_t *at = table->at;

	for (; to != end; to += 32, split += (size_t)pairs * 64, shuffle += 64, at += 4) {
		__m256i first = plane_avx2_block_small(split, shuffle, at, pairs, narrow, a, b);
		__m256i second = plane_avx2_block_small(split + (size_t)pairs * 32, shuffle + 32,
							at + 2, pairs, narrow, a, b);
		__m256i bytes = _mm256_packus_epi16(first, second);

		_mm256_storeu_si256((__m256i *)to, _mm256_shuffle_epi8(bytes, order));
	}
}

PLANE_AVX2_IN void plane_avx2_blocks_two(const struct plane_table *table, uint32_t pairs,
					 bool narrow, const uint8_t *a, const uint8_t *b,
					 uint8_t *to)
{
	const int16_t *split = table->split;
	const uint8_t *shuffle = table->shuffle, *end = to + (size_t)table->blocks * 16;
	const uint32_t *at = table->at;

	for (; to != end; to += 32, split += (size_t)pairs * 64, shuffle += 64, at += 4) {
		__m256i first = plane_avx2_block(split, shuffle, at, pairs, narrow, a, b);
		__m256i second = plane_avx2_block(split + (size_t)pairs * 32, shuffle + 32, at + 2,
						  pairs, narrow, a, b);

		_mm256_storeu_si256((__m256i *)to, _mm256_packus_epi16(first, second));
	}
}

/* Pictures that shrink a lot: eight taps of one output at a time. */
PLANE_AVX2 static uint8_t plane_avx2_output(const struct plane_table *table, const uint8_t *row,
					    uint32_t x)
{
	const int32_t *weight = table->weight + (size_t)x * table->taps;
	const uint8_t *from = row + table->first[x];
	__m256i sums = _mm256_setzero_si256();
	__m128i sum;
	int32_t value;

	for (uint32_t t = 0; t < table->count[x]; t += 8) {
		__m128i bytes = _mm_loadl_epi64((const __m128i *)(from + t));
		__m256i weights = _mm256_loadu_si256((const __m256i *)(weight + t));

		sums = _mm256_add_epi32(sums,
					_mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), weights));
	}
	sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
	sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0x4e));
	sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, 0xb1));
	sum = _mm_add_epi32(sum, _mm_set1_epi32(PLANE_AVX2_HALF));
	value = _mm_cvtsi128_si32(sum) >> FILTER_BITS;
	value = value < 0 ? 0 : value;
	return (uint8_t)(value > 255 ? 255 : value);
}

PLANE_AVX2_IN void plane_avx2_blocks_any(const struct plane_table *table, uint32_t pairs,
					 bool narrow, const uint8_t *a, const uint8_t *b,
					 uint8_t *to)
{
	if (table->form == PLANE_BYTES)
		plane_avx2_blocks_small(table, pairs, narrow, a, b, to);
	else
		plane_avx2_blocks_two(table, pairs, narrow, a, b, to);
}

PLANE_AVX2 static void plane_avx2_blocks(const struct plane_table *table, const uint8_t *a,
					 const uint8_t *b, uint8_t *to)
{
	switch (table->pairs * 2 + table->narrow) {
	case 3:
		plane_avx2_blocks_any(table, 1, true, a, b, to);
		break;
	case 5:
		plane_avx2_blocks_any(table, 2, true, a, b, to);
		break;
	case 6:
		plane_avx2_blocks_any(table, 3, false, a, b, to);
		break;
	case 7:
		plane_avx2_blocks_any(table, 3, true, a, b, to);
		break;
	default:
		plane_avx2_blocks_any(table, table->pairs, table->narrow, a, b, to);
		break;
	}
}

/* Sixteen values of each of two rows, in turn, in a group's order. */
PLANE_AVX2_IN void plane_avx2_group(const uint8_t *a, const uint8_t *b, uint8_t *to)
{
	__m128i of_a = _mm_loadu_si128((const __m128i *)a);
	__m128i of_b = _mm_loadu_si128((const __m128i *)b);
	__m128i low = _mm_unpacklo_epi8(of_a, of_b), high = _mm_unpackhi_epi8(of_a, of_b);

	_mm_storeu_si128((__m128i *)to, _mm_unpacklo_epi64(low, high));
	_mm_storeu_si128((__m128i *)(to + 16), _mm_unpackhi_epi64(low, high));
}

PLANE_AVX2 void plane_avx2_zip(const uint8_t *a, const uint8_t *b, uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x += 16)
		plane_avx2_group(a + x, b + x, to + 2 * (size_t)x);
}

PLANE_AVX2 static void plane_avx2_outputs(const struct plane_table *table, const uint8_t *a,
					  const uint8_t *b, uint8_t *to)
{
	for (uint32_t x = 0; x < table->want.count; x += 16) {
		uint8_t of_a[16] = {0}, of_b[16] = {0};

		for (uint32_t i = 0; i < 16 && x + i < table->want.count; i++) {
			of_a[i] = plane_avx2_output(table, a, x + i);
			of_b[i] = plane_avx2_output(table, b, x + i);
		}
		plane_avx2_group(of_a, of_b, to + 2 * (size_t)x);
	}
}

PLANE_AVX2 void plane_avx2_across(const struct plane_table *table, const uint8_t *a,
				  const uint8_t *b, uint8_t *to)
{
	if (table->form == PLANE_BYTES || table->form == PLANE_BLOCKS)
		plane_avx2_blocks(table, a, b, to);
	else
		plane_avx2_outputs(table, a, b, to);
}

PLANE_AVX2 void plane_avx2_unzip(const uint8_t *from, uint32_t n, uint8_t *a, uint8_t *b)
{
	const __m128i order = _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);

	for (uint32_t x = 0; x < n; x += 16) {
		const __m128i *at = (const __m128i *)(from + 2 * (size_t)x);
		__m128i low = _mm_shuffle_epi8(_mm_loadu_si128(at), order);
		__m128i high = _mm_shuffle_epi8(_mm_loadu_si128(at + 1), order);

		_mm_storeu_si128((__m128i *)(a + x), _mm_unpacklo_epi32(low, high));
		_mm_storeu_si128((__m128i *)(b + x), _mm_unpackhi_epi32(low, high));
	}
}

/* ---- along columns ---- */

/* 32 outputs, clipped. Packing works within halves of registers; the last shuffle mends that. */
PLANE_AVX2_IN void plane_avx2_store(__m256i low, __m256i high, uint8_t *to)
{
	const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
	__m256i bytes = _mm256_packus_epi16(low, high);

	_mm256_storeu_si256((__m256i *)to, _mm256_permutevar8x32_epi32(bytes, order));
}

PLANE_AVX2_IN void plane_avx2_down_few(const uint8_t *const rows[], uint32_t pairs,
				       const int16_t *split, uint32_t n, uint8_t *to)
{
	const struct plane_avx2_pair pair[3] = {
	    plane_avx2_pair_small(rows[0], split),
	    plane_avx2_pair_small(rows[pairs > 1 ? 1 : 0], split + (pairs > 1 ? 4 : 0)),
	    plane_avx2_pair_small(rows[pairs > 2 ? 2 : 0], split + (pairs > 2 ? 8 : 0)),
	};

	for (uint32_t x = 0; x < n; x += 32)
		plane_avx2_store(plane_avx2_few(pair, pairs, x),
				 plane_avx2_few(pair, pairs, x + 16), to + x);
}

PLANE_AVX2 static void plane_avx2_down_many(const uint8_t *const rows[], uint32_t pairs,
					    const int16_t *split, uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x += 32)
		plane_avx2_store(plane_avx2_many(rows, pairs, split, x),
				 plane_avx2_many(rows, pairs, split, x + 16), to + x);
}

PLANE_AVX2 void plane_avx2_down(const uint8_t *const rows[], uint32_t pairs, const int16_t *split,
				uint32_t n, uint8_t *to)
{
	switch (pairs <= 3 && plane_avx2_is_small(split, pairs) ? pairs : 0) {
	case 1:
		plane_avx2_down_few(rows, 1, split, n, to);
		break;
	case 2:
		plane_avx2_down_few(rows, 2, split, n, to);
		break;
	case 3:
		plane_avx2_down_few(rows, 3, split, n, to);
		break;
	default:
		plane_avx2_down_many(rows, pairs, split, n, to);
		break;
	}
}

PLANE_AVX2 void plane_avx2_mirror(const uint8_t *from, uint32_t n, uint8_t *to)
{
	const __m128i order = _mm_setr_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
	uint32_t x = 0;

	for (; x + 16 <= n; x += 16) {
		__m128i bytes = _mm_loadu_si128((const __m128i *)(from + n - 16 - x));

		_mm_storeu_si128((__m128i *)(to + x), _mm_shuffle_epi8(bytes, order));
	}
	for (; x < n; x++)
		to[x] = from[n - 1 - x];
}

static const struct plane_kernels plane_avx2_kernels = {
    .across_form = PLANE_BYTES,
    .across = plane_avx2_across,
    .zip = plane_avx2_zip,
    .unzip = plane_avx2_unzip,
    .down = plane_avx2_down,
    .mirror = plane_avx2_mirror,
};

const struct plane_kernels *plane_avx2(void)
{
	return __builtin_cpu_supports("avx2") ? &plane_avx2_kernels : NULL;
}

#else

const struct plane_kernels *plane_avx2(void)
{
	return NULL;
}

#endif
