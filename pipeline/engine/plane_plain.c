/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The passes over planes in plain C: Pillow's loops, for any machine, and the reference for the
 * others. Sums wrap around as unsigned numbers, so that nothing a filter can do is undefined; with
 * the filters there are they stay within 31 bits.
 */

#include "pipeline/engine/plane.h"

#define PLANE_PLAIN_HALF (UINT32_C(1) << (FILTER_BITS - 1))

static inline uint8_t plane_plain_clip(uint32_t sum)
{
	int32_t value = (int32_t)sum >> FILTER_BITS;

	value = value < 0 ? 0 : value;
	return (uint8_t)(value > 255 ? 255 : value);
}

static inline uint8_t plane_plain_output(const struct plane_table *table, const uint8_t *row,
					 uint32_t x)
{
	const int32_t *weight = table->weight + (size_t)x * table->taps;
	const uint8_t *from = row + table->first[x];
	uint32_t sum = PLANE_PLAIN_HALF;

	for (uint32_t t = 0; t < table->count[x]; t++)
		sum += from[t] * (uint32_t)weight[t];
	return plane_plain_clip(sum);
}

static void plane_plain_across(const struct plane_table *table, const uint8_t *a, const uint8_t *b,
			       uint8_t *to)
{
	for (uint32_t x = 0; x < table->want.count; x++) {
		to[2 * (size_t)x] = plane_plain_output(table, a, x);
		to[2 * (size_t)x + 1] = plane_plain_output(table, b, x);
	}
}

static void plane_plain_zip(const uint8_t *a, const uint8_t *b, uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x++) {
		to[2 * (size_t)x] = a[x];
		to[2 * (size_t)x + 1] = b[x];
	}
}

static void plane_plain_unzip(const uint8_t *from, uint32_t n, uint8_t *a, uint8_t *b)
{
	for (uint32_t x = 0; x < n; x++) {
		a[x] = from[2 * (size_t)x];
		b[x] = from[2 * (size_t)x + 1];
	}
}

#define PLANE_PLAIN_BLOCK 32

static inline uint32_t plane_plain_weight(const int16_t *high)
{
	return ((uint32_t)high[0] << PLANE_LOW_BITS) + (uint32_t)(int32_t)high[2];
}

static inline void plane_plain_block_down(const uint8_t *const rows[], uint32_t pairs,
					  const int16_t *split, uint32_t at, uint32_t n,
					  uint8_t *to)
{
	uint32_t sum[PLANE_PLAIN_BLOCK];

	for (uint32_t x = 0; x < n; x++)
		sum[x] = PLANE_PLAIN_HALF;
	for (uint32_t i = 0; i < pairs; i++) {
		const uint8_t *from = rows[i] + 2 * (size_t)at;
		uint32_t a = plane_plain_weight(split + 4 * (size_t)i);
		uint32_t b = plane_plain_weight(split + 4 * (size_t)i + 1);

		for (uint32_t x = 0; x < n; x++)
			sum[x] += from[2 * x] * a + from[2 * x + 1] * b;
	}
	for (uint32_t x = 0; x < n; x++)
		to[at + x] = plane_plain_clip(sum[x]);
}

static void plane_plain_down(const uint8_t *const rows[], uint32_t pairs, const int16_t *split,
			     uint32_t n, uint8_t *to)
{
	uint32_t x = 0;

	for (; x + PLANE_PLAIN_BLOCK <= n; x += PLANE_PLAIN_BLOCK)
		plane_plain_block_down(rows, pairs, split, x, PLANE_PLAIN_BLOCK, to);
	if (x < n)
		plane_plain_block_down(rows, pairs, split, x, n - x, to);
}

static void plane_plain_mirror(const uint8_t *from, uint32_t n, uint8_t *to)
{
	for (uint32_t x = 0; x < n; x++)
		to[x] = from[n - 1 - x];
}

const struct plane_kernels plane_plain = {
    .across_form = PLANE_TAPS,
    .across = plane_plain_across,
    .zip = plane_plain_zip,
    .unzip = plane_plain_unzip,
    .down = plane_plain_down,
    .mirror = plane_plain_mirror,
};
