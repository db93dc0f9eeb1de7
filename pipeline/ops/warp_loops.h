/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The loops of warp.c that interpolate, to be compiled for several kinds of machines: the same
 * operations in the same order, so the same pixels.
 *
 * The four bytes of a pixel are worked on as one vector of doubles; each lane does what Pillow does
 * for a band. The fourth lane is of no interest.
 */

#include "pipeline/picture.h"

/* m: six numbers, of perspectives eight */
typedef void warp_fn(const struct picture *from, const struct picture *to, const double *m);

struct warp_kernels { /* leave what is outside as it is */
	warp_fn *bilinear, *bicubic;
	warp_fn *perspective[3]; /* by enum warp_filter */
};

extern const struct warp_kernels warp_plain;
/* NULL where the machine lacks AVX2. */
const struct warp_kernels *warp_avx2(void);

typedef double warp_four __attribute__((vector_size(32)));
typedef int32_t warp_whole __attribute__((vector_size(16)));

/* Vectors go through pointers: by value they would need the wide registers that the machine may not
 * have. */
#define WARP_INLINE static inline __attribute__((always_inline))

WARP_INLINE bool warp_inside(double at, uint32_t size)
{
	return at >= 0 && at < size;
}

/* Green stands 2^8 and blue 2^16 times too high, which no sum or product minds. */
WARP_INLINE void warp_load(const uint8_t *pixel, warp_four *ret)
{
	const warp_whole mask = {0xff, 0xff00, 0xff0000, 0};
	const int32_t bytes = (int32_t)((uint32_t)pixel[0] | (uint32_t)pixel[1] << 8 |
					(uint32_t)pixel[2] << 16 | (uint32_t)pixel[3] << 24);

	*ret = __builtin_convertvector((warp_whole){bytes, bytes, bytes, bytes} & mask, warp_four);
}

/* Cut to whole numbers, and to 0 ... 255. */
WARP_INLINE void warp_store(uint8_t *pixel, const warp_four *value)
{
	const warp_four scale = {1, 0x1p-8, 0x1p-16, 0};
	warp_whole whole = __builtin_convertvector(*value * scale, warp_whole);
	int32_t lane[4];

	whole &= whole > 0;
	whole |= whole > 255;
	memcpy(lane, &whole, sizeof(lane));
	for (unsigned c = 0; c < 3; c++)
		pixel[c] = (uint8_t)lane[c];
}

/* Of a place that is at most half a pixel outside a picture. */
WARP_INLINE int32_t warp_floor(double at)
{
	const int32_t whole = (int32_t)at;

	return whole - (at < whole);
}

WARP_INLINE uint32_t warp_clip(int32_t at, uint32_t size)
{
	return at < 0 ? 0 : at < (int32_t)size ? (uint32_t)at : size - 1;
}

WARP_INLINE void warp_between(warp_four *a, const warp_four *b, double part)
{
	*a = *a + (*b - *a) * part;
}

WARP_INLINE void warp_nearest_pixel(const struct picture *from, double at_x, double at_y,
				    uint8_t *out)
{
	memcpy(out, picture_row(from, (uint32_t)at_y) + 4 * (size_t)at_x, 4);
}

WARP_INLINE void warp_bilinear_pixel(const struct picture *from, double at_x, double at_y,
				     uint8_t *out)
{
	const int32_t x = warp_floor(at_x - 0.5), y = warp_floor(at_y - 0.5);
	const double part_x = at_x - 0.5 - x, part_y = at_y - 0.5 - y;
	const size_t left = (size_t)warp_clip(x, from->width) * 4;
	const size_t right = (size_t)warp_clip(x + 1, from->width) * 4;
	const uint8_t *above = picture_row(from, warp_clip(y, from->height));
	const uint8_t *below = picture_row(from, warp_clip(y + 1, from->height));
	warp_four a, b, c, d;

	warp_load(above + left, &a);
	warp_load(above + right, &b);
	warp_load(below + left, &c);
	warp_load(below + right, &d);
	warp_between(&a, &b, part_x);
	warp_between(&c, &d, part_x);
	warp_between(&a, &c, part_y);
	warp_store(out, &a);
}

WARP_INLINE void warp_cubic(const warp_four v[4], double part, warp_four *ret)
{
	const warp_four p2 = -v[0] + v[2];
	const warp_four p3 = 2 * (v[0] - v[1]) + v[2] - v[3];
	const warp_four p4 = -v[0] + v[1] - v[2] + v[3];

	*ret = v[1] + part * (p2 + part * (p3 + part * p4));
}

WARP_INLINE void warp_bicubic_pixel(const struct picture *from, double at_x, double at_y,
				    uint8_t *out)
{
	const int32_t x = warp_floor(at_x - 0.5), y = warp_floor(at_y - 0.5);
	const double part_x = at_x - 0.5 - x, part_y = at_y - 0.5 - y;
	warp_four down[4], value;

	for (int i = 0; i < 4; i++) {
		const uint8_t *row = picture_row(from, warp_clip(y - 1 + i, from->height));
		warp_four across[4];

		for (int k = 0; k < 4; k++)
			warp_load(row + (size_t)warp_clip(x - 1 + k, from->width) * 4, &across[k]);
		warp_cubic(across, part_x, &down[i]);
	}
	warp_cubic(down, part_y, &value);
	warp_store(out, &value);
}

/* What both coordinates are divided by at (x, y): of an affine transform, of a perspective. */
WARP_INLINE double warp_flat(const double *m, double x, double y)
{
	(void)m, (void)x, (void)y;
	return 1;
}

WARP_INLINE double warp_deep(const double *m, double x, double y)
{
	return m[6] * x + m[7] * y + 1;
}

/* One loop for each transform (its depth), filter and kind of machine, which attribute says. */
#define WARP_LOOP(name, depth, pixel, attribute)                                             \
	attribute static void name(const struct picture *from, const struct picture *to,     \
				   const double *m)                                          \
	{                                                                                    \
		for (uint32_t y = 0; y < to->height; y++) {                                  \
			const double down_x = m[1] * (y + 0.5), down_y = m[4] * (y + 0.5);   \
			uint8_t *out = picture_row(to, y);                                   \
                                                                                             \
			for (uint32_t x = 0; x < to->width; x++) {                           \
				const double by = depth(m, x + 0.5, y + 0.5);                \
				const double at_x = (m[0] * (x + 0.5) + down_x + m[2]) / by; \
				const double at_y = (m[3] * (x + 0.5) + down_y + m[5]) / by; \
                                                                                             \
				if (warp_inside(at_x, from->width) &&                        \
				    warp_inside(at_y, from->height))                         \
					pixel(from, at_x, at_y, out + 4 * (size_t)x);        \
			}                                                                    \
		}                                                                            \
	}
