/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for x86-64 machines with AVX2 and BMI2, found out when they run: bytes and colours
 * here, the inverse DCT in baseline_idct_avx2.c, what AVX-512 does better in baseline_avx512.c. The arithmetic is baseline_plain.c's.
 */

#include "pipeline/jpeg/baseline_inner.h"

#ifdef __x86_64__

#include <immintrin.h>
#include "pipeline/jpeg/baseline_avx2.h"

#define AVX2_INLINE BASELINE_AVX2 static inline __attribute__((always_inline))
#define AVX2_SUMS 512 /* columns at once: a multiple of 32 */

/* ---- bytes ---- */

AVX2_INLINE unsigned avx2_find_ff(__m256i bytes)
{
	return (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(-1)));
}

/* Blocks of 32 bytes up to the first FF; all that is near the end by the plain kernel. */
BASELINE_AVX2 static size_t avx2_unstuff(const uint8_t **at, const uint8_t *stop, uint8_t *to,
					 size_t room)
{
	const uint8_t *from = *at;
	size_t n = 0;

	while (n + 32 <= room && stop - from > 32) {
		__m256i bytes = _mm256_loadu_si256((const __m256i *)from);
		unsigned found = avx2_find_ff(bytes), before;

		_mm256_storeu_si256((__m256i *)(to + n), bytes);
		if (found == 0) {
			from += 32;
			n += 32;
			continue;
		}
		before = (unsigned)__builtin_ctz(found);
		from += before;
		n += before;
		if (from[1] != 0) {
			*at = from;
			return n;
		}
		to[n++] = 0xff;
		from += 2;
	}
	*at = from;
	return n + baseline_kernels_plain.unstuff(at, stop, to + n, room - n);
}

BASELINE_AVX2 static const uint8_t *avx2_find(const uint8_t *at, const uint8_t *stop)
{
	for (; stop - at >= 64; at += 32) {
		__m256i bytes = _mm256_loadu_si256((const __m256i *)at);
		__m256i next = _mm256_loadu_si256((const __m256i *)(at + 1));
		unsigned stuffed =
		    (unsigned)_mm256_movemask_epi8(_mm256_cmpeq_epi8(next, _mm256_setzero_si256()));
		unsigned found = avx2_find_ff(bytes) & ~stuffed;

		if (found != 0)
			return at + __builtin_ctz(found);
	}
	return baseline_kernels_plain.find(at, stop);
}

/* ---- colour ---- */

struct avx2_colour { /* what Cb and Cr add to the luma of 16 pixels */
	__m256i red, green, blue;
};

/* Red and blue are one rounded product each, of 15 bits: 2 * 0.701 and 2 * 0.886. With these two
 * constants all 256 values of Cr and Cb give what jdcolor.c's 16 bits do. Green, which has two
 * products, takes 32 bits: -0.71414 = 0.28586 - 1. */
/* cb and cr: less 128. */
AVX2_INLINE struct avx2_colour avx2_colour(__m256i cb, __m256i cr)
{
	const __m256i half = _mm256_set1_epi32(32768);
	const __m256i green = _mm256_set1_epi32((int)(18734u << 16 | (uint16_t)-22554));
	struct avx2_colour ret;
	__m256i low, high;

	ret.red = _mm256_mulhrs_epi16(_mm256_add_epi16(cr, cr), _mm256_set1_epi16(22971));
	ret.blue = _mm256_mulhrs_epi16(_mm256_add_epi16(cb, cb), _mm256_set1_epi16(29033));
	low = _mm256_madd_epi16(_mm256_unpacklo_epi16(cb, cr), green);
	high = _mm256_madd_epi16(_mm256_unpackhi_epi16(cb, cr), green);
	low = _mm256_srai_epi32(_mm256_add_epi32(low, half), 16);
	high = _mm256_srai_epi32(_mm256_add_epi32(high, half), 16);
	ret.green = _mm256_sub_epi16(_mm256_packs_epi32(low, high), cr);
	return ret;
}

/* 32 values of a colour: what is added, to the even and the odd pixels. */
AVX2_INLINE void avx2_store(__m256i y_even, __m256i y_odd, __m256i even, __m256i odd, uint8_t *to)
{
	const __m256i order =
	    _mm256_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15, 0, 8, 1, 9, 2,
			     10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15);
	__m256i bytes =
	    _mm256_packus_epi16(_mm256_add_epi16(y_even, even), _mm256_add_epi16(y_odd, odd));

	_mm256_storeu_si256((__m256i *)to, _mm256_shuffle_epi8(bytes, order));
}

AVX2_INLINE void avx2_pixels(const uint8_t *y, const struct avx2_colour *even,
			     const struct avx2_colour *odd, uint8_t *const to[3], size_t x)
{
	__m256i bytes = _mm256_loadu_si256((const __m256i *)y);
	__m256i y_even = _mm256_and_si256(bytes, _mm256_set1_epi16(255));
	__m256i y_odd = _mm256_srli_epi16(bytes, 8);

	avx2_store(y_even, y_odd, even->red, odd->red, to[0] + x);
	avx2_store(y_even, y_odd, even->green, odd->green, to[1] + x);
	avx2_store(y_even, y_odd, even->blue, odd->blue, to[2] + x);
}

AVX2_INLINE __m256i avx2_words(const uint8_t *bytes)
{
	return _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)bytes));
}

struct avx2_across {    /* 16 columns of a component, and those beside them */
	__m256i here;   /* columns x ... x + 15 */
	__m256i before; /* x - 8 ... x + 7 */
};

AVX2_INLINE struct avx2_across avx2_begin(const uint8_t *near)
{
	struct avx2_across ret;

	ret.here = avx2_words(near);
	ret.before = _mm256_permute2x128_si256(avx2_words(near - 16), ret.here, 0x21);
	return ret;
}

/* The even and the odd ones of 32 samples, less 128; then *across is 16 columns on, at near. */
AVX2_INLINE void avx2_smooth(struct avx2_across *across, const uint8_t *near, __m256i *ret_even,
			     __m256i *ret_odd)
{
	const __m256i bias_even = _mm256_set1_epi16(1 - (128 << 2));
	const __m256i bias_odd = _mm256_set1_epi16(2 - (128 << 2));
	__m256i following = avx2_words(near), here = across->here;
	__m256i between = _mm256_permute2x128_si256(here, following, 0x21);
	__m256i last = _mm256_alignr_epi8(here, across->before, 14);
	__m256i next = _mm256_alignr_epi8(between, here, 2);
	__m256i three = _mm256_add_epi16(here, _mm256_slli_epi16(here, 1));

	last = _mm256_add_epi16(_mm256_add_epi16(three, bias_even), last);
	next = _mm256_add_epi16(_mm256_add_epi16(three, bias_odd), next);
	*ret_even = _mm256_srai_epi16(last, 2);
	*ret_odd = _mm256_srai_epi16(next, 2);
	across->here = following;
	across->before = between;
}

/* Both of two rows and both of two columns: sums of the rows first, in memory, from where those of the
 * columns beside are loaded: there is more room for loads than for what shifts registers. */
struct avx2_sums {
	uint16_t before[16]; /* the last one is looked at */
	uint16_t sum[AVX2_SUMS + 16];
} __attribute__((aligned(32)));

/* near * 3 + far of count columns, at most AVX2_SUMS, and of those beside them. */
AVX2_INLINE void avx2_sum_rows(const uint8_t *near, const uint8_t *far, size_t count,
			       struct avx2_sums *ret)
{
	const __m256i weights = _mm256_set1_epi16(1 << 8 | 3);

	for (size_t x = 0; x < count; x += 32) {
		__m256i a = _mm256_loadu_si256((const __m256i *)(near + x));
		__m256i b = _mm256_loadu_si256((const __m256i *)(far + x));
		__m256i low = _mm256_maddubs_epi16(_mm256_unpacklo_epi8(a, b), weights);
		__m256i high = _mm256_maddubs_epi16(_mm256_unpackhi_epi8(a, b), weights);
		__m256i *to = (__m256i *)(ret->sum + x);

		_mm256_store_si256(to, _mm256_permute2x128_si256(low, high, 0x20));
		_mm256_store_si256(to + 1, _mm256_permute2x128_si256(low, high, 0x31));
	}
	ret->before[15] = (uint16_t)(near[-1] * 3 + far[-1]);
	ret->sum[count] = (uint16_t)(near[count] * 3 + far[count]);
}

/* avx2_smooth of sums. */
AVX2_INLINE void avx2_smooth_sums(const struct avx2_sums *sums, size_t x, __m256i *ret_even,
				  __m256i *ret_odd)
{
	const uint8_t *at = (const uint8_t *)(sums->sum + x);
	__m256i here = _mm256_load_si256((const __m256i *)at);
	__m256i last = _mm256_loadu_si256((const __m256i *)(at - 2));
	__m256i next = _mm256_loadu_si256((const __m256i *)(at + 2));
	__m256i three = _mm256_add_epi16(here, _mm256_add_epi16(here, here));

	three = _mm256_add_epi16(three, _mm256_set1_epi16(8 - (128 << 4)));
	next = _mm256_add_epi16(next, _mm256_set1_epi16(-1));
	*ret_even = _mm256_srai_epi16(_mm256_add_epi16(three, last), 4);
	*ret_odd = _mm256_srai_epi16(_mm256_add_epi16(three, next), 4);
}

/* count columns, at most AVX2_SUMS, to place `place` of the row on. */
AVX2_INLINE void avx2_h2v2_sums(const uint8_t *y, const struct avx2_sums sums[2],
				uint8_t *const to[3], size_t count, size_t place)
{
	__m256i cb_even, cb_odd, cr_even, cr_odd;

	for (size_t x = 0; x < count; x += 16) {
		struct avx2_colour even, odd;

		avx2_smooth_sums(&sums[0], x, &cb_even, &cb_odd);
		avx2_smooth_sums(&sums[1], x, &cr_even, &cr_odd);
		even = avx2_colour(cb_even, cr_even);
		odd = avx2_colour(cb_odd, cr_odd);
		avx2_pixels(y + 2 * x, &even, &odd, to, place + 2 * x);
	}
}

BASELINE_AVX2 static void avx2_h2v2(const uint8_t *y, const uint8_t *const near[2],
				    const uint8_t *const far[2], uint8_t *const to[3], size_t count)
{
	struct avx2_sums sums[2];
	uint8_t *const at[3] = {to[0], to[1], to[2]};

	for (size_t x = 0, n; x < count; x += n) {
		n = count - x < AVX2_SUMS ? count - x : AVX2_SUMS;
		for (unsigned c = 0; c < 2; c++)
			avx2_sum_rows(near[c] + x, far[c] + x, n, &sums[c]);
		avx2_h2v2_sums(y + 2 * x, sums, at, n, 2 * x);
	}
}

BASELINE_AVX2 static void avx2_h2v1(const uint8_t *y, const uint8_t *const near[2],
				    uint8_t *const to[3], size_t count)
{
	const uint8_t *cb = near[0], *cr = near[1];
	struct avx2_across blue = avx2_begin(cb), red = avx2_begin(cr);
	__m256i cb_even, cb_odd, cr_even, cr_odd;

	for (size_t x = 0; x < count; x += 16) {
		struct avx2_colour even, odd;

		avx2_smooth(&blue, cb + x + 16, &cb_even, &cb_odd);
		avx2_smooth(&red, cr + x + 16, &cr_even, &cr_odd);
		even = avx2_colour(cb_even, cr_even);
		odd = avx2_colour(cb_odd, cr_odd);
		avx2_pixels(y + 2 * x, &even, &odd, to, 2 * x);
	}
}

BASELINE_AVX2 static void avx2_h1v1(const uint8_t *y, const uint8_t *const near[2],
				    uint8_t *const to[3], size_t count)
{
	const __m256i half = _mm256_set1_epi8(-128);

	for (size_t x = 0; x < count; x += 32) {
		__m256i cb = _mm256_loadu_si256((const __m256i *)(near[0] + x));
		__m256i cr = _mm256_loadu_si256((const __m256i *)(near[1] + x));
		struct avx2_colour even, odd;

		/* Bytes less 128 have signs. */
		cb = _mm256_xor_si256(cb, half);
		cr = _mm256_xor_si256(cr, half);
		even = avx2_colour(_mm256_srai_epi16(_mm256_slli_epi16(cb, 8), 8),
				   _mm256_srai_epi16(_mm256_slli_epi16(cr, 8), 8));
		odd = avx2_colour(_mm256_srai_epi16(cb, 8), _mm256_srai_epi16(cr, 8));
		avx2_pixels(y + x, &even, &odd, to, x);
	}
}

#define AVX2_KERNELS(of_h2v2)                                                                 \
	{                                                                                     \
		.unstuff = avx2_unstuff, .find = avx2_find, .mcu = baseline_entropy_mcu_bmi2, \
		.skip = baseline_entropy_skip_bmi2, .packed_unit = baseline_packed_unit_avx2, \
		.idct = baseline_idct_avx2, .idct4 = baseline_idct4_avx2,                     \
		.idct2 = baseline_idct2_avx2, .h2v2 = of_h2v2, .h2v1 = avx2_h2v1,             \
		.h1v1 = avx2_h1v1,                                                            \
	}

static const struct baseline_kernels avx2_kernels = AVX2_KERNELS(avx2_h2v2);
static const struct baseline_kernels avx512_kernels = AVX2_KERNELS(baseline_h2v2_avx512);

const struct baseline_kernels *baseline_kernels_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") ? &avx2_kernels
										: NULL;
}

const struct baseline_kernels *baseline_kernels_avx512(void)
{
	return baseline_kernels_avx2() && __builtin_cpu_supports("avx512bw") &&
		       __builtin_cpu_supports("avx512vnni")
		   ? &avx512_kernels
		   : NULL;
}

#else

const struct baseline_kernels *baseline_kernels_avx2(void)
{
	return NULL;
}

const struct baseline_kernels *baseline_kernels_avx512(void)
{
	return NULL;
}

#endif
