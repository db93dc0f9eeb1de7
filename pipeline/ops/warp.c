/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Affine transforms and perspectives, as Pillow 13.0.0's libImaging/Geometry.c computes them.
 *
 * Without a filter there are three ways of an affine transform, chosen as there: a matrix that only scales and shifts adds
 * up coordinates along each axis; one whose corners stay within 32768 works in 16.16 fixed point,
 * adding up along rows; any other adds up in floating point. The rounding of each shows in the
 * pixels, so all three are kept. Bilinear and bicubic compute each coordinate anew in double and
 * cut the result to a whole number (bicubic also to 0 ... 255), and so do perspectives with each filter
 * and without one. A pixel whose coordinate is outside the picture keeps the fill; neighbours outside
 * are those of the edge.
 */

#include <math.h>
#include "pipeline/ops/warp.h"
#include "pipeline/ops/warp_loops.h"

#define WARP_OUTSIDE UINT32_MAX

static void warp_fill(uint8_t *row, uint32_t width, const uint8_t fill[3])
{
	const uint8_t pixel[4] = {fill[0], fill[1], fill[2], 0};

	for (size_t x = 0; x < width; x++)
		memcpy(row + 4 * x, pixel, 4);
}

/* ---- nearest ---- */

/* Coordinates of one axis, added up as Pillow does. */
static void warp_scale_table(double at, double step, uint32_t size, uint32_t n, uint32_t *table)
{
	for (uint32_t i = 0; i < n; i++, at += step)
		table[i] = warp_inside(at, size) ? (uint32_t)at : WARP_OUTSIDE;
}

static void warp_scale(const struct picture *from, const struct picture *to, const double m[6],
		       uint32_t *table)
{
	double at = m[5] + m[4] * 0.5;

	warp_scale_table(m[2] + m[0] * 0.5, m[0], from->width, to->width, table);
	for (uint32_t y = 0; y < to->height; y++, at += m[4]) {
		const uint8_t *in;
		uint8_t *out = picture_row(to, y);

		if (!warp_inside(at, from->height))
			continue;
		in = picture_row(from, (uint32_t)at);
		for (size_t x = 0; x < to->width; x++) {
			if (table[x] != WARP_OUTSIDE)
				memcpy(out + 4 * x, in + 4 * (size_t)table[x], 4);
		}
	}
}

static bool warp_is_near(const double m[6], uint32_t x, uint32_t y)
{
	return fabs(x * m[0] + y * m[1] + m[2]) < 32768.0 &&
	       fabs(x * m[3] + y * m[4] + m[5]) < 32768.0;
}

/* 16.16; wraps as additions do. */
static uint32_t warp_fixed_number(double value)
{
	return (uint32_t)(int64_t)floor(value * 65536.0 + 0.5);
}

static void warp_fixed(const struct picture *from, const struct picture *to, const double m[6])
{
	const uint32_t across_x = warp_fixed_number(m[0]), down_x = warp_fixed_number(m[1]);
	const uint32_t across_y = warp_fixed_number(m[3]), down_y = warp_fixed_number(m[4]);
	uint32_t row_x = warp_fixed_number(m[2] + m[0] * 0.5 + m[1] * 0.5);
	uint32_t row_y = warp_fixed_number(m[5] + m[3] * 0.5 + m[4] * 0.5);

	for (uint32_t y = 0; y < to->height; y++, row_x += down_x, row_y += down_y) {
		uint8_t *out = picture_row(to, y);
		uint32_t at_x = row_x, at_y = row_y;

		for (size_t x = 0; x < to->width; x++, at_x += across_x, at_y += across_y) {
			/* below 0 is far beyond every width */
			uint32_t in_x = (uint32_t)((int32_t)at_x >> 16);
			uint32_t in_y = (uint32_t)((int32_t)at_y >> 16);

			if (in_x < from->width && in_y < from->height)
				memcpy(out + 4 * x, picture_row(from, in_y) + 4 * (size_t)in_x, 4);
		}
	}
}

static void warp_far(const struct picture *from, const struct picture *to, const double m[6])
{
	double row_x = m[2] + m[1] * 0.5 + m[0] * 0.5, row_y = m[5] + m[4] * 0.5 + m[3] * 0.5;

	for (uint32_t y = 0; y < to->height; y++, row_x += m[1], row_y += m[4]) {
		uint8_t *out = picture_row(to, y);
		double at_x = row_x, at_y = row_y;

		for (size_t x = 0; x < to->width; x++, at_x += m[0], at_y += m[3]) {
			if (warp_inside(at_x, from->width) && warp_inside(at_y, from->height))
				memcpy(out + 4 * x,
				       picture_row(from, (uint32_t)at_y) + 4 * (size_t)at_x, 4);
		}
	}
}

static void warp_nearest(const struct picture *from, const struct picture *to, const double m[6],
			 uint32_t *table)
{
	if (m[1] == 0 && m[3] == 0)
		warp_scale(from, to, m, table);
	else if (warp_is_near(m, 0, 0) && warp_is_near(m, to->width, to->height) &&
		 warp_is_near(m, 0, to->height) && warp_is_near(m, to->width, 0))
		warp_fixed(from, to, m);
	else
		warp_far(from, to, m);
}

/* ---- with a filter ---- */

WARP_LOOP(warp_bilinear_plain, warp_flat, warp_bilinear_pixel, )
WARP_LOOP(warp_bicubic_plain, warp_flat, warp_bicubic_pixel, )
WARP_LOOP(warp_deep_nearest, warp_deep, warp_nearest_pixel, )
WARP_LOOP(warp_deep_bilinear, warp_deep, warp_bilinear_pixel, )
WARP_LOOP(warp_deep_bicubic, warp_deep, warp_bicubic_pixel, )

const struct warp_kernels warp_plain = {
    .bilinear = warp_bilinear_plain,
    .bicubic = warp_bicubic_plain,
    .perspective = {warp_deep_nearest, warp_deep_bilinear, warp_deep_bicubic},
};

/* The fastest kernels of this machine, for a result that is fill so far. */
static const struct warp_kernels *warp_begin(const struct picture *to, const uint8_t fill[3])
{
	const struct warp_kernels *fast = warp_avx2();

	for (uint32_t y = 0; y < to->height; y++)
		warp_fill(picture_row(to, y), to->width, fill);
	return fast ? fast : &warp_plain;
}

void warp_run(const struct picture *from, const struct picture *to, const double matrix[6],
	      enum warp_filter filter, const uint8_t fill[3], uint32_t *table)
{
	const struct warp_kernels *kernels = warp_begin(to, fill);

	if (filter == WARP_BILINEAR)
		kernels->bilinear(from, to, matrix);
	else if (filter == WARP_BICUBIC)
		kernels->bicubic(from, to, matrix);
	else
		warp_nearest(from, to, matrix, table);
}

void warp_perspective(const struct picture *from, const struct picture *to, const double matrix[8],
		      enum warp_filter filter, const uint8_t fill[3])
{
	warp_begin(to, fill)->perspective[filter](from, to, matrix);
}
