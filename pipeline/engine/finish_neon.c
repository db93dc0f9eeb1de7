/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last step's kernels for AArch64 machines, all of which have NEON: finish_avx2.c's five
 * operations a value, and as there finish.c compares all values before they are taken. Stores are
 * plain ones, which need no fence.
 */

#include "pipeline/engine/finish.h"

#ifdef __aarch64__

#include <arm_neon.h>

#define FINISH_NEON_IN static inline __attribute__((always_inline))

struct finish_neon_line {
	float32x4_t scale, scale_rest, mean, inverse, inverse_rest;
};

/* The lines of four values of channels in turn, the first one's is c; step 0: all are of c. */
static struct finish_neon_line finish_neon_line(const struct finish *finish, unsigned c,
						unsigned step)
{
	float of[5][4];

	for (unsigned i = 0; i < 4; i++) {
		const struct finish_line *line = &finish->line[(c + i * step) % 3];

		of[0][i] = line->scale;
		of[1][i] = line->scale_rest;
		of[2][i] = line->mean;
		of[3][i] = line->inverse;
		of[4][i] = line->inverse_rest;
	}
	return (struct finish_neon_line){vld1q_f32(of[0]), vld1q_f32(of[1]), vld1q_f32(of[2]),
					 vld1q_f32(of[3]), vld1q_f32(of[4])};
}

FINISH_NEON_IN float32x4_t finish_neon_value(const struct finish_neon_line *line, uint16x4_t from)
{
	float32x4_t value = vcvtq_f32_u32(vmovl_u16(from));

	value = vfmaq_f32(vmulq_f32(value, line->scale_rest), value, line->scale);
	value = vsubq_f32(value, line->mean);
	return vfmaq_f32(vmulq_f32(value, line->inverse_rest), value, line->inverse);
}

/* Four float32 to float16, or to bfloat16 as half_bf16 does. */
FINISH_NEON_IN uint16x4_t finish_neon_half(float32x4_t value, bool brain)
{
	uint32x4_t bits = vreinterpretq_u32_f32(value), odd;

	if (!brain)
		return vreinterpret_u16_f16(vcvt_f16_f32(value));
	odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
	bits = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
	return vshrn_n_u32(bits, 16);
}

/* Eight values, four of a line each, to out, which holds at least that many. */
FINISH_NEON_IN void finish_neon_eight(const struct finish_neon_line *a,
				      const struct finish_neon_line *b, const uint8_t *from,
				      enum pipeline_dtype dtype, uint8_t *out)
{
	uint16x8_t words = vmovl_u8(vld1_u8(from));
	float32x4_t low = finish_neon_value(a, vget_low_u16(words));
	float32x4_t high = finish_neon_value(b, vget_high_u16(words));

	if (dtype == PIPELINE_F32) {
		vst1q_u8(out, vreinterpretq_u8_f32(low));
		vst1q_u8(out + 16, vreinterpretq_u8_f32(high));
	} else {
		uint16x8_t halves = vcombine_u16(finish_neon_half(low, dtype == PIPELINE_BF16),
						 finish_neon_half(high, dtype == PIPELINE_BF16));

		vst1q_u8(out, vreinterpretq_u8_u16(halves));
	}
}

/* Values, 24 at a time, their lines in turn. How many were done. */
FINISH_NEON_IN size_t finish_neon_values(const struct finish_neon_line line[3], const uint8_t *from,
					 size_t n, enum pipeline_dtype dtype, uint8_t *out)
{
	const size_t size = dtype == PIPELINE_F32 ? 4 : 2;
	size_t i = 0;

	for (; i + 24 <= n; i += 24, out += 24 * size) {
		finish_neon_eight(&line[0], &line[1], from + i, dtype, out);
		finish_neon_eight(&line[2], &line[0], from + i + 8, dtype, out + 8 * size);
		finish_neon_eight(&line[1], &line[2], from + i + 16, dtype, out + 16 * size);
	}
	return i;
}

static size_t finish_neon_any(const struct finish_neon_line line[3], const uint8_t *from, size_t n,
			      enum pipeline_dtype dtype, uint8_t *out)
{
	switch (dtype) {
	case PIPELINE_F16:
		return finish_neon_values(line, from, n, PIPELINE_F16, out);
	case PIPELINE_BF16:
		return finish_neon_values(line, from, n, PIPELINE_BF16, out);
	default:
		return finish_neon_values(line, from, n, PIPELINE_F32, out);
	}
}

static void finish_neon_plane(const struct finish *finish, unsigned c, const uint8_t *from,
			      size_t n, void *out)
{
	size_t i = 0;

	if (finish->dtype != PIPELINE_U8 && n >= 24) {
		struct finish_neon_line one = finish_neon_line(finish, c, 0);
		const struct finish_neon_line line[3] = {one, one, one};

		i = finish_neon_any(line, from, n, finish->dtype, out);
	}
	finish_plain.plane(finish, c, from + i, n - i,
			   (uint8_t *)out + i * finish_value_bytes(finish->dtype));
}

static void finish_neon_pixels(const struct finish *finish, const uint8_t *from, size_t n,
			       void *out)
{
	size_t i = 0;

	if (finish->dtype != PIPELINE_U8 && n >= 24) {
		/* four values on, the channel is the next one */
		const struct finish_neon_line line[3] = {finish_neon_line(finish, 0, 1),
							 finish_neon_line(finish, 1, 1),
							 finish_neon_line(finish, 2, 1)};

		i = finish_neon_any(line, from, n, finish->dtype, out);
	}
	finish_plain.pixels(finish, from + i, n - i,
			    (uint8_t *)out + i * finish_value_bytes(finish->dtype));
}

/* ---- planes to pixels ---- */

static void finish_neon_zip(const uint8_t *const from[3], size_t n, uint8_t *to)
{
	const uint8_t *rest[3];
	size_t i = 0;

	for (; i + 16 <= n; i += 16, to += 48)
		vst3q_u8(to, ((uint8x16x3_t){{vld1q_u8(from[0] + i), vld1q_u8(from[1] + i),
					      vld1q_u8(from[2] + i)}}));
	for (unsigned c = 0; c < 3; c++)
		rest[c] = from[c] + i;
	finish_plain.zip(rest, n - i, to);
}

static void finish_neon_join(const uint8_t *const from[3], size_t n, uint8_t *to)
{
	const uint8x16_t opaque = vdupq_n_u8(255);
	const uint8_t *rest[3];
	size_t i = 0;

	for (; i + 16 <= n; i += 16, to += 64)
		vst4q_u8(to, ((uint8x16x4_t){{vld1q_u8(from[0] + i), vld1q_u8(from[1] + i),
					      vld1q_u8(from[2] + i), opaque}}));
	for (unsigned c = 0; c < 3; c++)
		rest[c] = from[c] + i;
	finish_plain.join(rest, n - i, to);
}

static void finish_neon_fence(void)
{
}

static const struct finish_kernels finish_neon_kernels = {
    .plane = finish_neon_plane,
    .pixels = finish_neon_pixels,
    .zip = finish_neon_zip,
    .join = finish_neon_join,
    .fence = finish_neon_fence,
};

const struct finish_kernels *finish_neon(void)
{
	return &finish_neon_kernels;
}

#else

const struct finish_kernels *finish_neon(void)
{
	return NULL;
}

#endif
