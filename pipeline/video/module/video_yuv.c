/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each pixel by whole numbers, rounded once, so that every machine and compiler makes the same bits; colours are those of the
 * sample that the pixel lies in, as FFmpeg has it by default (libswscale's own code for this differs from processor to
 * processor, and what it does the same everywhere takes four times as long). The loops are such that compilers make vectors
 * of them, and are there twice on x86-64.
 */

#include "pipeline/video/module/video_yuv.h"

#ifndef __clang__
#pragma GCC optimize("O3") /* at -O2 it makes vectors of the simplest loops alone */
#endif

#define YUV_BITS 13 /* of factors behind the point: such a factor has 16 bits */
#define YUV_CHUNK 256

struct yuv_factors {
	int16_t luma, red_v, green_u, green_v, blue_u;
	int32_t red, green, blue; /* what is added */
	unsigned shift;
};

static void yuv_factors(const struct video_yuv *yuv, struct yuv_factors *ret)
{
	const unsigned more = yuv->bits - 8;
	const int32_t half = 1 << (YUV_BITS + more - 1), middle = 128 << more;
	const int32_t black = yuv->is_full ? 0 : 16 << more;
	int16_t of[4];

	for (unsigned i = 0; i < 4; i++) {
		const int64_t factor =
		    yuv->is_full ? ((int64_t)yuv->matrix[i] * 224 + 127) / 255 : yuv->matrix[i];

		of[i] = (int16_t)((factor + (1 << (15 - YUV_BITS))) >> (16 - YUV_BITS));
	}
	ret->luma = (int16_t)(yuv->is_full ? 1 << YUV_BITS : ((255 << YUV_BITS) + 109) / 219);
	ret->red_v = of[0];
	ret->blue_u = of[1];
	ret->green_u = (int16_t)-of[2];
	ret->green_v = (int16_t)-of[3];
	ret->red = half - black * ret->luma - middle * ret->red_v;
	ret->green = half - black * ret->luma - middle * (ret->green_u + ret->green_v);
	ret->blue = half - black * ret->luma - middle * ret->blue_u;
	ret->shift = YUV_BITS + more;
}

#define YUV_INLINE __attribute__((always_inline)) static inline

YUV_INLINE uint8_t yuv_clip(int32_t value)
{
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

YUV_INLINE void yuv_chunk(const struct yuv_factors *by, const int16_t *y, const int16_t *u,
			  const int16_t *v, uint32_t n, uint8_t *to)
{
	uint8_t red[YUV_CHUNK], green[YUV_CHUNK], blue[YUV_CHUNK];
	const struct yuv_factors f = *by;

	for (uint32_t i = 0; i < n; i++) {
		const int32_t luma = y[i] * f.luma;

		red[i] = yuv_clip((luma + v[i] * f.red_v + f.red) >> f.shift);
		green[i] =
		    yuv_clip((luma + u[i] * f.green_u + v[i] * f.green_v + f.green) >> f.shift);
		blue[i] = yuv_clip((luma + u[i] * f.blue_u + f.blue) >> f.shift);
	}
	for (uint32_t i = 0; i < n; i++) {
		to[3 * i] = red[i];
		to[3 * i + 1] = green[i];
		to[3 * i + 2] = blue[i];
	}
}

/* n samples, of one or two bytes, each twice if it is one of half as many. A width that is odd makes one too many. */
YUV_INLINE void yuv_widen(const uint8_t *from, uint32_t at, uint32_t n, bool is_twice, bool is_deep,
			  int16_t *to)
{
	const uint8_t *one = from + (at >> is_twice);
	const uint16_t *two = (const uint16_t *)(const void *)from + (at >> is_twice);

	if (is_twice) {
		for (uint32_t i = 0; i < (n + 1) / 2; i++)
			to[2 * i] = to[2 * i + 1] = (int16_t)(is_deep ? two[i] : one[i]);
	} else {
		for (uint32_t i = 0; i < n; i++)
			to[i] = (int16_t)(is_deep ? two[i] : one[i]);
	}
}

YUV_INLINE void yuv_row_of(const struct yuv_factors *by, const uint8_t *const plane[3],
			   uint32_t width, bool is_twice, bool is_deep, uint8_t *to)
{
	int16_t y[YUV_CHUNK], u[YUV_CHUNK], v[YUV_CHUNK];

	for (uint32_t x = 0; x < width; x += YUV_CHUNK) {
		const uint32_t n = BASE_MIN(width - x, YUV_CHUNK);

		yuv_widen(plane[0], x, n, false, is_deep, y);
		yuv_widen(plane[1], x, n, is_twice, is_deep, u);
		yuv_widen(plane[2], x, n, is_twice, is_deep, v);
		yuv_chunk(by, y, u, v, n, to + (size_t)3 * x);
	}
}

typedef void yuv_row_fn(const struct yuv_factors *by, const uint8_t *const plane[3], uint32_t width,
			bool is_twice, bool is_deep, uint8_t *to);

YUV_INLINE void yuv_row_any(const struct yuv_factors *by, const uint8_t *const plane[3],
			    uint32_t width, bool is_twice, bool is_deep, uint8_t *to)
{
	if (is_deep)
		yuv_row_of(by, plane, width, is_twice, true, to);
	else if (is_twice)
		yuv_row_of(by, plane, width, true, false, to);
	else
		yuv_row_of(by, plane, width, false, false, to);
}

static void yuv_row_plain(const struct yuv_factors *by, const uint8_t *const plane[3],
			  uint32_t width, bool is_twice, bool is_deep, uint8_t *to)
{
	yuv_row_any(by, plane, width, is_twice, is_deep, to);
}

#ifdef __x86_64__
__attribute__((target("avx2"))) static void yuv_row_avx2(const struct yuv_factors *by,
							 const uint8_t *const plane[3],
							 uint32_t width, bool is_twice,
							 bool is_deep, uint8_t *to)
{
	yuv_row_any(by, plane, width, is_twice, is_deep, to);
}

static yuv_row_fn *yuv_row_best(void)
{
	return __builtin_cpu_supports("avx2") ? yuv_row_avx2 : yuv_row_plain;
}
#else
static yuv_row_fn *yuv_row_best(void)
{
	return yuv_row_plain;
}
#endif

void video_yuv_to_rgb(const struct video_yuv *yuv, const uint8_t *const plane[3],
		      const int stride[3], uint32_t height, uint32_t width, uint8_t *to)
{
	yuv_row_fn *row = yuv_row_best();
	struct yuv_factors factors;

	yuv_factors(yuv, &factors);
	for (uint32_t y = 0; y < height; y++, to += (size_t)3 * width) {
		const ptrdiff_t colour = (ptrdiff_t)(y >> yuv->below);
		const uint8_t *const at[3] = {plane[0] + (ptrdiff_t)y * stride[0],
					      plane[1] + colour * stride[1],
					      plane[2] + colour * stride[2]};

		row(&factors, at, width, yuv->right, yuv->bits > 8, to);
	}
}
