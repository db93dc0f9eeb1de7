/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last step's kernels for x86-64 machines with AVX2, FMA and F16C, found out when they run.
 *
 * ((v / 255) - mean) / std, each operation rounded, without dividing: the factors 1 / 255 and 1 /
 * std stand in two parts, each, and x * part + x * rest, the first with its sum rounded once, is
 * almost always the quotient rounded. Almost: finish.c compares all values before these kernels are
 * taken.
 *
 * Floats are most of all bytes that a pipeline writes, and nobody here reads them again: rows that
 * begin at a multiple of 32 bytes are stored past the cache, so that the rows being worked on stay
 * in it. The fence at the end keeps these stores in front of the word that hands the slot over.
 */

#include "pipeline/engine/finish.h"

#ifdef __x86_64__

#include <cpuid.h>
#include "pipeline/engine/finish_avx2.h"

/* The lines of eight values of channels in turn, the first one's is c. */
FINISH_AVX2_IN struct finish_avx2_line finish_avx2_lines(const struct finish *finish, unsigned c)
{
	float of[5][8];

	for (unsigned i = 0; i < 8; i++) {
		const struct finish_line *line = &finish->line[(c + i) % 3];

		of[0][i] = line->scale;
		of[1][i] = line->scale_rest;
		of[2][i] = line->mean;
		of[3][i] = line->inverse;
		of[4][i] = line->inverse_rest;
	}
	return (struct finish_avx2_line){_mm256_loadu_ps(of[0]), _mm256_loadu_ps(of[1]),
					 _mm256_loadu_ps(of[2]), _mm256_loadu_ps(of[3]),
					 _mm256_loadu_ps(of[4])};
}

FINISH_AVX2_IN void finish_avx2_eight(const struct finish_avx2_line *line, const uint8_t *from,
				      enum pipeline_dtype dtype, bool past, uint8_t *out)
{
	__m128i bytes = _mm_loadl_epi64((const __m128i *)from);
	__m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));

	finish_avx2_put(finish_avx2_normalize(line, value), dtype, past, out);
}

/* Values in eights, three eights with a line each. */
FINISH_AVX2_IN size_t finish_avx2_values(const struct finish_avx2_line *a,
					 const struct finish_avx2_line *b,
					 const struct finish_avx2_line *c, const uint8_t *from,
					 size_t n, enum pipeline_dtype dtype, bool past,
					 uint8_t *out)
{
	const size_t size = dtype == PIPELINE_F32 ? 4 : 2;
	size_t i = 0;

	for (; i + 24 <= n; i += 24) {
		finish_avx2_eight(a, from + i, dtype, past, out + i * size);
		finish_avx2_eight(b, from + i + 8, dtype, past, out + (i + 8) * size);
		finish_avx2_eight(c, from + i + 16, dtype, past, out + (i + 16) * size);
	}
	if (i + 8 <= n) {
		finish_avx2_eight(a, from + i, dtype, past, out + i * size);
		i += 8;
	}
	if (i + 8 <= n) {
		finish_avx2_eight(b, from + i, dtype, past, out + i * size);
		i += 8;
	}
	return i;
}

/* The same, with what is known of the values made constant. How many were done: all but a few. */
FINISH_AVX2_IN size_t finish_avx2_any(const struct finish_avx2_line *a,
				      const struct finish_avx2_line *b,
				      const struct finish_avx2_line *c, const uint8_t *from,
				      size_t n, enum pipeline_dtype dtype, uint8_t *out)
{
	const bool past = (uintptr_t)out % 32 == 0;

	switch (dtype) {
	case PIPELINE_F16:
		return finish_avx2_values(a, b, c, from, n, PIPELINE_F16, past, out);
	case PIPELINE_BF16:
		return finish_avx2_values(a, b, c, from, n, PIPELINE_BF16, past, out);
	default:
		if (past)
			return finish_avx2_values(a, b, c, from, n, PIPELINE_F32, true, out);
		return finish_avx2_values(a, b, c, from, n, PIPELINE_F32, false, out);
	}
}

FINISH_AVX2 static void finish_avx2_plane(const struct finish *finish, unsigned c,
					  const uint8_t *from, size_t n, void *out)
{
	struct finish_avx2_line line;
	size_t i = 0;

	if (finish->dtype != PIPELINE_U8 && n >= 8) {
		line = finish_avx2_line(finish, c);
		i = finish_avx2_any(&line, &line, &line, from, n, finish->dtype, out);
	}
	if (i < n)
		finish_plain.plane(finish, c, from + i, n - i,
				   (uint8_t *)out + i * finish_value_bytes(finish->dtype));
}

FINISH_AVX2 static void finish_avx2_pixels(const struct finish *finish, const uint8_t *from,
					   size_t n, void *out)
{
	struct finish_avx2_line a, b, c;
	const size_t most = n - n % 24;

	if (finish->dtype != PIPELINE_U8 && most > 0) {
		a = finish_avx2_lines(finish, 0);
		b = finish_avx2_lines(finish, 2);
		c = finish_avx2_lines(finish, 1);
		finish_avx2_any(&a, &b, &c, from, most, finish->dtype, out);
		from += most;
		out = (uint8_t *)out + most * finish_value_bytes(finish->dtype);
		n -= most;
	}
	finish_plain.pixels(finish, from, n, out);
}

/* ---- planes to pixels ---- */

/* Where byte i of 16 pixels' 48 stands: in byte i / 3 of plane i % 3. Of each of the three thirds,
 * what comes of plane c. */
FINISH_AVX2_IN __m128i finish_avx2_order(unsigned third, unsigned c)
{
	uint8_t order[16];

	for (unsigned i = 0; i < 16; i++)
		order[i] = (16 * third + i) % 3 == c ? (uint8_t)((16 * third + i) / 3) : 0x80;
	return _mm_loadu_si128((const __m128i *)order);
}

FINISH_AVX2 static void finish_avx2_zip(const uint8_t *const from[3], size_t n, uint8_t *to)
{
	const uint8_t *rest[3];
	__m128i order[3][3];
	size_t i = 0;

	for (unsigned third = 0; third < 3; third++) {
		for (unsigned c = 0; c < 3; c++)
			order[third][c] = finish_avx2_order(third, c);
	}
	for (; i + 16 <= n; i += 16, to += 48) {
		__m128i red = _mm_loadu_si128((const __m128i *)(from[0] + i));
		__m128i green = _mm_loadu_si128((const __m128i *)(from[1] + i));
		__m128i blue = _mm_loadu_si128((const __m128i *)(from[2] + i));

		for (unsigned third = 0; third < 3; third++) {
			__m128i bytes = _mm_or_si128(_mm_shuffle_epi8(red, order[third][0]),
						     _mm_shuffle_epi8(green, order[third][1]));

			bytes = _mm_or_si128(bytes, _mm_shuffle_epi8(blue, order[third][2]));
			_mm_storeu_si128((__m128i *)(to + 16 * (size_t)third), bytes);
		}
	}
	for (unsigned c = 0; c < 3; c++)
		rest[c] = from[c] + i;
	finish_plain.zip(rest, n - i, to);
}

FINISH_AVX2 static void finish_avx2_join(const uint8_t *const from[3], size_t n, uint8_t *to)
{
	const __m128i opaque = _mm_set1_epi8(-1);
	const uint8_t *rest[3];
	size_t i = 0;

	for (; i + 16 <= n; i += 16, to += 64) {
		__m128i red = _mm_loadu_si128((const __m128i *)(from[0] + i));
		__m128i green = _mm_loadu_si128((const __m128i *)(from[1] + i));
		__m128i blue = _mm_loadu_si128((const __m128i *)(from[2] + i));
		__m128i low = _mm_unpacklo_epi8(red, green), high = _mm_unpackhi_epi8(red, green);
		__m128i low_rest = _mm_unpacklo_epi8(blue, opaque);
		__m128i high_rest = _mm_unpackhi_epi8(blue, opaque);
		__m128i *at = (__m128i *)to;

		_mm_storeu_si128(at, _mm_unpacklo_epi16(low, low_rest));
		_mm_storeu_si128(at + 1, _mm_unpackhi_epi16(low, low_rest));
		_mm_storeu_si128(at + 2, _mm_unpacklo_epi16(high, high_rest));
		_mm_storeu_si128(at + 3, _mm_unpackhi_epi16(high, high_rest));
	}
	for (unsigned c = 0; c < 3; c++)
		rest[c] = from[c] + i;
	finish_plain.join(rest, n - i, to);
}

static void finish_avx2_fence(void)
{
	_mm_sfence();
}

static const struct finish_kernels finish_avx2_kernels = {
    .plane = finish_avx2_plane,
    .pixels = finish_avx2_pixels,
    .zip = finish_avx2_zip,
    .join = finish_avx2_join,
    .fence = finish_avx2_fence,
};

static bool finish_has_f16c;

/* clang 14's __builtin_cpu_supports() has no word for it. Asked once, for the question leaves a
 * virtual machine, and kernels are chosen row by row. */
__attribute__((constructor)) static void finish_ask_for_f16c(void)
{
	unsigned a, b, c, d;

	finish_has_f16c = __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

const struct finish_kernels *finish_avx2(void)
{
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && finish_has_f16c)
		return &finish_avx2_kernels;
	return NULL;
}

#else

const struct finish_kernels *finish_avx2(void)
{
	return NULL;
}

#endif
