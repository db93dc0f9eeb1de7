/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes, one an axis, each of which multiplies with 22-bit weights, rounds and clips to 8
 * bits. A pass whose axis keeps its size is left out (it would change nothing).
 *
 * Sums wrap around as unsigned numbers, so nothing a filter can do is undefined; with Pillow's
 * filters they stay within 31 bits. The loops are plain C over blocks of fixed size, which gcc and
 * clang turn into vector code; they are compiled a second time for AVX2 where the machine has it.
 * These loops are the reference for every faster kernel to come.
 */

#include <string.h>
#include "pipeline/resize.h"

#define RESIZE_HALF (UINT32_C(1) << (FILTER_BITS - 1))
#define RESIZE_BLOCK 32 /* bytes of a row that the vertical pass works on at a time */
#define RESIZE_INLINE static inline __attribute__((always_inline))

RESIZE_INLINE uint8_t resize_clip(uint32_t sum)
{
	int32_t value = (int32_t)sum >> FILTER_BITS;

	value = value < 0 ? 0 : value;
	return (uint8_t)(value > 255 ? 255 : value);
}

/* ---- across: each row by itself ---- */

RESIZE_INLINE void resize_row_across(const struct filter_table *table, const uint8_t *from,
				     uint8_t *to)
{
	for (uint32_t x = 0; x < table->out; x++, to += 4) {
		const uint8_t *pixel = from + (size_t)table->first[x] * 4;
		const int32_t *weight = table->weight + (size_t)x * table->taps;
		uint32_t sum[4] = {RESIZE_HALF, RESIZE_HALF, RESIZE_HALF, RESIZE_HALF};

		for (uint32_t t = 0; t < table->count[x]; t++) {
			for (unsigned c = 0; c < 4; c++)
				sum[c] += pixel[4 * t + c] * (uint32_t)weight[t];
		}
		for (unsigned c = 0; c < 4; c++)
			to[c] = resize_clip(sum[c]);
	}
}

/* ---- down: each row is a weighted sum of rows ---- */

RESIZE_INLINE void resize_block_down(const uint8_t *from, size_t stride, const int32_t *weight,
				     uint32_t count, uint8_t *to)
{
	uint32_t sum[RESIZE_BLOCK];

	for (unsigned i = 0; i < RESIZE_BLOCK; i++)
		sum[i] = RESIZE_HALF;
	for (uint32_t t = 0; t < count; t++) {
		for (unsigned i = 0; i < RESIZE_BLOCK; i++)
			sum[i] += from[t * stride + i] * (uint32_t)weight[t];
	}
	for (unsigned i = 0; i < RESIZE_BLOCK; i++)
		to[i] = resize_clip(sum[i]);
}

RESIZE_INLINE void resize_row_down(const struct filter_table *table, uint32_t y,
				   const struct picture *from, uint8_t *to)
{
	const uint8_t *first = picture_row(from, table->first[y]);
	const int32_t *weight = table->weight + (size_t)y * table->taps;
	size_t bytes = (size_t)from->width * 4, i = 0;

	for (; i + RESIZE_BLOCK <= bytes; i += RESIZE_BLOCK)
		resize_block_down(first + i, from->stride, weight, table->count[y], to + i);
	for (; i < bytes; i++) {
		uint32_t sum = RESIZE_HALF;

		for (uint32_t t = 0; t < table->count[y]; t++)
			sum += first[t * from->stride + i] * (uint32_t)weight[t];
		to[i] = resize_clip(sum);
	}
}

/* ---- the same for the machine at hand ---- */

#define RESIZE_KERNELS(name, attribute)                                                     \
	attribute static void resize_across_##name(const struct filter_table *table,        \
						   const struct picture *from,              \
						   const struct picture *to)                \
	{                                                                                   \
		for (uint32_t y = 0; y < to->height; y++)                                   \
			resize_row_across(table, picture_row(from, y), picture_row(to, y)); \
	}                                                                                   \
	attribute static void resize_down_##name(const struct filter_table *table,          \
						 const struct picture *from,                \
						 const struct picture *to)                  \
	{                                                                                   \
		for (uint32_t y = 0; y < to->height; y++)                                   \
			resize_row_down(table, y, from, picture_row(to, y));                \
	}

typedef void resize_pass_fn(const struct filter_table *table, const struct picture *from,
			    const struct picture *to);

RESIZE_KERNELS(any, )
#ifdef __x86_64__
RESIZE_KERNELS(avx2, __attribute__((target("avx2"))))
#endif

static resize_pass_fn *resize_pass(bool down)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return down ? resize_down_avx2 : resize_across_avx2;
#endif
	return down ? resize_down_any : resize_across_any;
}

/* ---- the two passes ---- */

bool resize_down_first(uint32_t height, uint32_t width, uint32_t new_height, uint32_t new_width)
{
	int64_t fewer_rows = (int64_t)height - new_height;
	int64_t fewer_columns = (int64_t)width - new_width;

	return fewer_rows > 2 * BASE_MAX(fewer_columns, 0);
}

static int resize_one(struct resize *resize, bool down, enum filter_id filter,
		      const struct picture *from, uint64_t size, struct picture_buffer *buffer,
		      struct picture *ret)
{
	const struct filter_table *table;
	int r = picture_make(buffer, down ? size : from->height, down ? from->width : size, ret);

	if (r != 0)
		return r;
	table = down ? filter_get(&resize->down, filter, from->height, ret->height)
		     : filter_get(&resize->across, filter, from->width, ret->width);
	if (!table)
		return PIPELINE_FAIL_MEMORY;
	resize_pass(down)(table, from, ret);
	return 0;
}

static int resize_copy(const struct picture *from, struct picture_buffer *buffer,
		       struct picture *ret)
{
	int r = picture_make(buffer, from->height, from->width, ret);

	if (r == 0)
		picture_pad(from, ret, 0, 0);
	return r;
}

int resize_run(struct resize *resize, const struct picture *from, enum filter_id filter,
	       uint64_t height, uint64_t width, struct picture_buffer *buffer, struct picture *ret)
{
	bool down = height != from->height, across = width != from->width, down_first;
	struct picture between;
	int r;

	if (height > UINT32_MAX || width > UINT32_MAX)
		return PIPELINE_FAIL_REFUSED;
	if (!down && !across)
		return resize_copy(from, buffer, ret);
	if (!down || !across)
		return resize_one(resize, down, filter, from, down ? height : width, buffer, ret);
	down_first =
	    resize_down_first(from->height, from->width, (uint32_t)height, (uint32_t)width);
	r = resize_one(resize, down_first, filter, from, down_first ? height : width,
		       &resize->between, &between);
	if (r != 0)
		return r;
	return resize_one(resize, !down_first, filter, &between, down_first ? width : height,
			  buffer, ret);
}

void resize_fini(struct resize *resize)
{
	filter_cache_fini(&resize->across);
	filter_cache_fini(&resize->down);
	picture_buffer_fini(&resize->between);
}
