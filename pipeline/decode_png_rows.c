/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of PNG: filters taken back, samples to RGB as Pillow's convert("RGB") gives them.
 *
 * Of 16 bits Pillow keeps the upper 8, but of grey without alpha it keeps all 16 and convert makes
 * everything above 255 white. Alpha is dropped.
 */

#include <stdlib.h>
#include <string.h>
#include "pipeline/decode_format.h"
#include "pipeline/decode_png.h"

/* ---- filters ---- */

static inline uint8_t decode_png_paeth(int left, int up, int corner)
{
	int by_left = abs(up - corner), by_up = abs(left - corner);
	int by_corner = abs(left + up - 2 * corner);

	if (by_left <= by_up && by_left <= by_corner)
		return (uint8_t)left;
	return (uint8_t)(by_up <= by_corner ? up : corner);
}

static inline void decode_png_unpaeth(uint8_t *row, const uint8_t *before, size_t size, size_t step)
{
	for (size_t i = step; i < size; i++)
		row[i] = (uint8_t)(row[i] +
				   decode_png_paeth(row[i - step], before[i], before[i - step]));
}

static inline void decode_png_unaverage(uint8_t *row, const uint8_t *before, size_t size,
					size_t step)
{
	for (size_t i = step; i < size; i++)
		row[i] = (uint8_t)(row[i] + (row[i - step] + before[i]) / 2);
}

static inline void decode_png_unsub(uint8_t *row, size_t size, size_t step)
{
	for (size_t i = step; i < size; i++)
		row[i] = (uint8_t)(row[i] + row[i - step]);
}

static inline bool decode_png_unfilter_by(unsigned filter, uint8_t *row, const uint8_t *before,
					  size_t size, size_t step)
{
	size_t first = BASE_MIN(step, size); /* bytes that have none to their left */

	switch (filter) {
	case 0:
		return true;
	case 1:
		decode_png_unsub(row, size, step);
		return true;
	case 2:
		for (size_t i = 0; i < size; i++)
			row[i] = (uint8_t)(row[i] + before[i]);
		return true;
	case 3:
		for (size_t i = 0; i < first; i++)
			row[i] = (uint8_t)(row[i] + before[i] / 2);
		decode_png_unaverage(row, before, size, step);
		return true;
	case 4:
		for (size_t i = 0; i < first; i++)
			row[i] = (uint8_t)(row[i] + before[i]);
		decode_png_unpaeth(row, before, size, step);
		return true;
	default:
		return false;
	}
}

/* Twice by name: with a step that the compiler knows the loops keep the left pixel at hand. */
bool decode_png_unfilter(unsigned filter, uint8_t *row, const uint8_t *before, size_t size,
			 size_t step)
{
	if (step == 3)
		return decode_png_unfilter_by(filter, row, before, size, 3);
	if (step == 4)
		return decode_png_unfilter_by(filter, row, before, size, 4);
	return decode_png_unfilter_by(filter, row, before, size, step);
}

/* ---- samples ---- */

static void decode_png_indexed(const struct decode_png_kind *kind, const uint8_t *row,
			       uint32_t width, unsigned gap, uint8_t *to)
{
	unsigned depth = kind->depth, mask = (1U << depth) - 1;

	for (uint32_t x = 0; x < width; x++, to += 4 * (size_t)gap) {
		size_t bit = (size_t)x * depth;
		unsigned value = row[bit / 8] >> (8 - depth - bit % 8) & mask;
		uint8_t gray = (uint8_t)(value * 255 / mask);

		if (kind->color)
			decode_put(to, kind->color[value][0], kind->color[value][1],
				   kind->color[value][2]);
		else
			decode_put(to, gray, gray, gray);
	}
}

void decode_png_spread(const struct decode_png_kind *kind, const uint8_t *row, uint32_t width,
		       unsigned gap, uint8_t *to)
{
	unsigned bytes = kind->depth / 8, step = kind->channels * bytes;
	unsigned green = kind->channels > 2 ? bytes : 0, blue = 2 * green;

	if (kind->channels == 1 && kind->depth <= 8) {
		decode_png_indexed(kind, row, width, gap, to);
		return;
	}
	for (uint32_t x = 0; x < width; x++, row += step, to += 4 * (size_t)gap) {
		uint8_t gray = row[0] ? 255 : row[1];

		if (kind->channels == 1)
			decode_put(to, gray, gray, gray);
		else
			decode_put(to, row[0], row[green], row[blue]);
	}
}
