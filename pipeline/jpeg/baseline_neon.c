/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quick JPEG decoder's kernels for AArch64 machines, all of which have NEON: bytes, the inverse
 * DCT and colours, with baseline_plain.c's arithmetic. The DCT keeps 32 bits, as there, and refuses
 * what that one refuses. Entropy decoding and smaller blocks are the plain ones.
 */

#include "pipeline/jpeg/baseline_inner.h"

#ifdef __aarch64__

#include <arm_neon.h>

#define NEON_IN static inline __attribute__((always_inline))
#define NEON_DCT_BITS 13
#define NEON_MOST 8191
#define NEON_OUT 511

/* ---- bytes ---- */

/* Four bits a byte: all set where same has all bits set. */
NEON_IN uint64_t neon_mask(uint8x16_t same)
{
	return vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(same), 4)), 0);
}

/* Blocks of 16 bytes up to the first FF; all that is near the end by the plain kernel. */
static size_t neon_unstuff(const uint8_t **at, const uint8_t *stop, uint8_t *to, size_t room)
{
	const uint8_t *from = *at;
	size_t n = 0;

	while (n + 16 <= room && stop - from >= 32) {
		uint8x16_t bytes = vld1q_u8(from);
		uint64_t found = neon_mask(vceqq_u8(bytes, vdupq_n_u8(255)));
		unsigned before = found ? (unsigned)__builtin_ctzll(found) / 4 : 16;

		vst1q_u8(to + n, bytes);
		from += before;
		n += before;
		if (!found)
			continue;
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

static const uint8_t *neon_find(const uint8_t *at, const uint8_t *stop)
{
	for (; stop - at >= 32; at += 16) {
		uint8x16_t marks = vceqq_u8(vld1q_u8(at), vdupq_n_u8(255));
		uint64_t found = neon_mask(vbicq_u8(marks, vceqzq_u8(vld1q_u8(at + 1))));

		if (found != 0)
			return at + __builtin_ctzll(found) / 4;
	}
	return baseline_kernels_plain.find(at, stop);
}

/* ---- the inverse DCT ---- */

/* Whether all are within most = 2^n - 1 and -2^n. */
NEON_IN bool neon_is_within(const int32x4_t v[8], uint32_t most)
{
	int32x4_t any = vdupq_n_s32(0);

	for (unsigned i = 0; i < 8; i++)
		any = vorrq_s32(any, veorq_s32(v[i], vshrq_n_s32(v[i], 31)));
	return vmaxvq_u32(vreinterpretq_u32_s32(any)) <= most;
}

/* plain_dct(), four at a time. */
NEON_IN void neon_dct(int32x4_t v[8], int shift)
{
	const int32x4_t half = vdupq_n_s32(1 << (shift - 1)), down = vdupq_n_s32(-shift);
	int32x4_t sum73 = vaddq_s32(v[7], v[3]), sum51 = vaddq_s32(v[5], v[1]);
	int32x4_t t0 = vaddq_s32(vshlq_n_s32(vaddq_s32(v[0], v[4]), NEON_DCT_BITS), half);
	int32x4_t t1 = vaddq_s32(vshlq_n_s32(vsubq_s32(v[0], v[4]), NEON_DCT_BITS), half);
	int32x4_t t2 = vmlaq_n_s32(vmulq_n_s32(v[2], 4433), v[6], 4433 - 15137);
	int32x4_t t3 = vmlaq_n_s32(vmulq_n_s32(v[2], 4433 + 6270), v[6], 4433);
	int32x4_t z3 = vmlaq_n_s32(vmulq_n_s32(sum73, 9633 - 16069), sum51, 9633);
	int32x4_t z4 = vmlaq_n_s32(vmulq_n_s32(sum73, 9633), sum51, 9633 - 3196);
	int32x4_t o0 = vmlaq_n_s32(vmlaq_n_s32(z3, v[7], 2446 - 7373), v[1], -7373);
	int32x4_t o1 = vmlaq_n_s32(vmlaq_n_s32(z4, v[5], 16819 - 20995), v[3], -20995);
	int32x4_t o2 = vmlaq_n_s32(vmlaq_n_s32(z3, v[3], 25172 - 20995), v[5], -20995);
	int32x4_t o3 = vmlaq_n_s32(vmlaq_n_s32(z4, v[1], 12299 - 7373), v[7], -7373);
	int32x4_t e0 = vaddq_s32(t0, t3), e1 = vaddq_s32(t1, t2);
	int32x4_t e2 = vsubq_s32(t1, t2), e3 = vsubq_s32(t0, t3);

	v[0] = vshlq_s32(vaddq_s32(e0, o3), down);
	v[7] = vshlq_s32(vsubq_s32(e0, o3), down);
	v[1] = vshlq_s32(vaddq_s32(e1, o2), down);
	v[6] = vshlq_s32(vsubq_s32(e1, o2), down);
	v[2] = vshlq_s32(vaddq_s32(e2, o1), down);
	v[5] = vshlq_s32(vsubq_s32(e2, o1), down);
	v[3] = vshlq_s32(vaddq_s32(e3, o0), down);
	v[4] = vshlq_s32(vsubq_s32(e3, o0), down);
}

/* Four columns or rows of a block, to two quarters of it in memory; what were columns are rows there.
 * False: numbers so large that decoders differ. */
NEON_IN bool neon_pass(int32x4_t v[8], int shift, uint32_t most, int32_t *low, int32_t *high)
{
	if (!neon_is_within(v, NEON_MOST))
		return false;
	neon_dct(v, shift);
	vst4q_s32(low, ((int32x4x4_t){{v[0], v[1], v[2], v[3]}}));
	vst4q_s32(high, ((int32x4x4_t){{v[4], v[5], v[6], v[7]}}));
	return neon_is_within(v, most);
}

static bool neon_block(const int16_t *zigzag, const uint16_t *quant, unsigned end, uint8_t *to,
		       size_t stride)
{
	int32_t in[64] = {0}, middle[2][2][16], out[2][2][16]; /* by columns' half and rows' */
	int32x4_t v[8];

	for (unsigned i = 0; i < end; i++)
		in[baseline_natural[i]] = zigzag[i] * (int32_t)quant[baseline_natural[i]];
	for (unsigned half = 0; half < 2; half++) {
		for (unsigned i = 0; i < 8; i++)
			v[i] = vld1q_s32(in + (size_t)8 * i + (size_t)4 * half);
		if (!neon_pass(v, NEON_DCT_BITS - 2, NEON_MOST, middle[half][0], middle[half][1]))
			return false;
	}
	for (unsigned half = 0; half < 2; half++) {
		for (unsigned i = 0; i < 8; i++)
			v[i] = vld1q_s32(middle[i / 4][half] + (size_t)4 * (i % 4));
		if (!neon_pass(v, NEON_DCT_BITS + 5, NEON_OUT, out[0][half], out[1][half]))
			return false;
	}
	for (unsigned y = 0; y < 8; y++, to += stride) {
		int16x4_t low = vqmovn_s32(vld1q_s32(out[0][y / 4] + (size_t)4 * (y % 4)));
		int16x4_t high = vqmovn_s32(vld1q_s32(out[1][y / 4] + (size_t)4 * (y % 4)));
		uint8x8_t bytes = vreinterpret_u8_s8(vqmovn_s16(vcombine_s16(low, high)));

		vst1_u8(to, veor_u8(bytes, vdup_n_u8(128)));
	}
	return true;
}

static int neon_idct(const int16_t *a, const int16_t *b, unsigned end, const uint16_t *quant,
		     uint8_t *to, size_t stride)
{
	return !neon_block(a, quant, end, to, stride) || !neon_block(b, quant, end, to + 8, stride);
}

/* ---- colour ---- */

struct neon_pixels { /* eight: red, green, blue */
	uint8x8_t of[3];
};

/* As avx2_colour() makes them: red and blue by one rounded product of 15 bits each. */
NEON_IN struct neon_pixels neon_pixels(uint8x8_t y, uint16x8_t cb, uint16x8_t cr)
{
	const int16x8_t luma = vreinterpretq_s16_u16(vmovl_u8(y)), middle = vdupq_n_s16(128);
	int16x8_t b = vsubq_s16(vreinterpretq_s16_u16(cb), middle);
	int16x8_t r = vsubq_s16(vreinterpretq_s16_u16(cr), middle);
	int32x4_t low = vmull_n_s16(vget_low_s16(b), -22554);
	int32x4_t high = vmull_n_s16(vget_high_s16(b), -22554);
	int16x8_t green;

	low = vmlal_n_s16(low, vget_low_s16(r), 18734);
	high = vmlal_n_s16(high, vget_high_s16(r), 18734);
	green = vcombine_s16(vrshrn_n_s32(low, 16), vrshrn_n_s32(high, 16));
	return (struct neon_pixels){
	    {vqmovun_s16(vaddq_s16(luma, vqrdmulhq_n_s16(vshlq_n_s16(r, 1), 22971))),
	     vqmovun_s16(vaddq_s16(luma, vsubq_s16(green, r))),
	     vqmovun_s16(vaddq_s16(luma, vqrdmulhq_n_s16(vshlq_n_s16(b, 1), 29033)))}};
}

/* near * 3 + far, or near alone where there is no far. */
NEON_IN uint16x8_t neon_column(const uint8_t *near, const uint8_t *far)
{
	return far ? vmlal_u8(vmovl_u8(vld1_u8(far)), vld1_u8(near), vdup_n_u8(3))
		   : vmovl_u8(vld1_u8(near));
}

/* The even and the odd ones of 16 samples. */
NEON_IN uint16x8x2_t neon_smooth(const uint8_t *near, const uint8_t *far)
{
	uint16x8_t three = vmulq_n_u16(neon_column(near, far), 3);
	uint16x8_t last = vaddq_u16(three, neon_column(near - 1, far ? far - 1 : NULL));
	uint16x8_t next = vaddq_u16(three, neon_column(near + 1, far ? far + 1 : NULL));

	if (far)
		return (uint16x8x2_t){
		    {vrshrq_n_u16(last, 4), vshrq_n_u16(vaddq_u16(next, vdupq_n_u16(7)), 4)}};
	return (uint16x8x2_t){
	    {vshrq_n_u16(vaddq_u16(last, vdupq_n_u16(1)), 2), vrshrq_n_u16(next, 2)}};
}

/* 16 pixels of eight samples of Cb and Cr. */
NEON_IN void neon_wide(const uint8_t *y, uint16x8x2_t cb, uint16x8x2_t cr, uint8_t *const to[3],
		       size_t x)
{
	uint8x8x2_t luma = vld2_u8(y);
	struct neon_pixels even = neon_pixels(luma.val[0], cb.val[0], cr.val[0]);
	struct neon_pixels odd = neon_pixels(luma.val[1], cb.val[1], cr.val[1]);

	for (unsigned c = 0; c < 3; c++)
		vst2_u8(to[c] + x, ((uint8x8x2_t){{even.of[c], odd.of[c]}}));
}

static void neon_h2v2(const uint8_t *y, const uint8_t *const near[2], const uint8_t *const far[2],
		      uint8_t *const to[3], size_t count)
{
	for (size_t x = 0; x < count; x += 8)
		neon_wide(y + 2 * x, neon_smooth(near[0] + x, far[0] + x),
			  neon_smooth(near[1] + x, far[1] + x), to, 2 * x);
}

static void neon_h2v1(const uint8_t *y, const uint8_t *const near[2], uint8_t *const to[3],
		      size_t count)
{
	for (size_t x = 0; x < count; x += 8)
		neon_wide(y + 2 * x, neon_smooth(near[0] + x, NULL), neon_smooth(near[1] + x, NULL),
			  to, 2 * x);
}

static void neon_h1v1(const uint8_t *y, const uint8_t *const near[2], uint8_t *const to[3],
		      size_t count)
{
	for (size_t x = 0; x < count; x += 8) {
		struct neon_pixels pixels = neon_pixels(
		    vld1_u8(y + x), neon_column(near[0] + x, NULL), neon_column(near[1] + x, NULL));

		for (unsigned c = 0; c < 3; c++)
			vst1_u8(to[c] + x, pixels.of[c]);
	}
}

static const struct baseline_kernels neon_kernels = {
    .unstuff = neon_unstuff,
    .find = neon_find,
    .mcu = baseline_entropy_mcu,
    .skip = baseline_entropy_skip,
    .idct = neon_idct,
    .idct4 = baseline_idct4_plain,
    .idct2 = baseline_idct2_plain,
    .h2v2 = neon_h2v2,
    .h2v1 = neon_h2v1,
    .h1v1 = neon_h1v1,
};

const struct baseline_kernels *baseline_kernels_neon(void)
{
	return &neon_kernels;
}

#else

const struct baseline_kernels *baseline_kernels_neon(void)
{
	return NULL;
}

#endif
