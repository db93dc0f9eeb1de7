/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes in plain C.
 *
 * Sums wrap around as unsigned numbers, so that nothing a filter can do is undefined; with the
 * filters there are they stay within 31 bits. The fourth byte of a pixel is carried along: four
 * lanes are easier on the compiler than three, which makes vector code of these loops.
 */

#include "tests/pipeline/resize_plain.h"

#define RESIZE_HALF (UINT32_C(1) << (FILTER_BITS - 1))
#define RESIZE_BLOCK 32 /* bytes of a row that go down together */

static inline uint8_t resize_clip(uint32_t sum)
{
	int32_t value = (int32_t)sum >> FILTER_BITS;

	value = value < 0 ? 0 : value;
	return (uint8_t)(value > 255 ? 255 : value);
}

static void resize_row_across(const struct filter_table *table, const uint8_t *from,
			      uint8_t *restrict to)
{
	const uint32_t out = table->out, taps = table->taps;
	const uint32_t *first = table->first, *count = table->count;
	const int32_t *weight = table->weight;

	for (uint32_t x = 0; x < out; x++, to += 4, weight += taps) {
		const uint8_t *pixel = from + (size_t)first[x] * 4;
		uint32_t sum[4] = {RESIZE_HALF, RESIZE_HALF, RESIZE_HALF, RESIZE_HALF};

		for (uint32_t t = 0; t < count[x]; t++) {
			for (unsigned c = 0; c < 4; c++)
				sum[c] += pixel[4 * t + c] * (uint32_t)weight[t];
		}
		for (unsigned c = 0; c < 4; c++)
			to[c] = resize_clip(sum[c]);
	}
}

void resize_plain_across(const struct filter_table *table, const struct picture *from,
			 const struct picture *to)
{
	for (uint32_t y = 0; y < to->height; y++)
		resize_row_across(table, picture_row(from, y), picture_row(to, y));
}

/* n bytes, at most RESIZE_BLOCK, of one row. */
static inline void resize_block_down(const uint8_t *from, size_t stride, const int32_t *weight,
				     uint32_t count, unsigned n, uint8_t *to)
{
	uint32_t sum[RESIZE_BLOCK];

	for (unsigned i = 0; i < n; i++)
		sum[i] = RESIZE_HALF;
	for (uint32_t t = 0; t < count; t++) {
		for (unsigned i = 0; i < n; i++)
			sum[i] += from[t * stride + i] * (uint32_t)weight[t];
	}
	for (unsigned i = 0; i < n; i++)
		to[i] = resize_clip(sum[i]);
}

void resize_plain_down(const struct filter_table *table, const struct picture *from,
		       const struct picture *to)
{
	const size_t bytes = (size_t)to->width * 4;

	for (uint32_t y = 0; y < to->height; y++) {
		const uint8_t *first = picture_row(from, table->first[y]);
		const int32_t *weight = table->weight + (size_t)y * table->taps;
		const uint32_t count = table->count[y];
		uint8_t *row = picture_row(to, y);
		size_t i = 0;

		for (; i + RESIZE_BLOCK <= bytes; i += RESIZE_BLOCK)
			resize_block_down(first + i, from->stride, weight, count, RESIZE_BLOCK,
					  row + i);
		if (i < bytes)
			resize_block_down(first + i, from->stride, weight, count,
					  (unsigned)(bytes - i), row + i);
	}
}
