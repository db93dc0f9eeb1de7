/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by themselves: resizing, the order of passes, pictures. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/engine/finish.h"
#include "pipeline/engine/rescale.h"
#include "pipeline/ops/resize.h"
#include "tests/pipeline/resize_plain.h"
#include "tests/suite.h"

static void kernel_fill(const struct picture *picture, uint64_t seed)
{
	struct philox_seq seq;

	philox_seq_init(&seq, seed, 0, 0);
	for (uint32_t y = 0; y < picture->height; y++) {
		for (uint32_t x = 0; x < picture->width * 4; x++) {
			uint32_t value = philox_u32(&seq);

			/* many extremes, so that clipping is met */
			picture_row(picture, y)[x] =
			    (uint8_t)(value & 0x300 ? value : (value & 0x80 ? 255 : 0));
		}
	}
}

static void kernel_assert_same(const struct picture *a, const struct picture *b)
{
	ck_assert_uint_eq(a->height, b->height);
	ck_assert_uint_eq(a->width, b->width);
	for (uint32_t y = 0; y < a->height; y++)
		ck_assert_mem_eq(picture_row(a, y), picture_row(b, y), (size_t)a->width * 4);
}

static const uint32_t kernel_sizes[][2] = {
    {1, 1},  {1, 5},   {5, 1},   {2, 3},    {7, 8},    {8, 7},
    {9, 31}, {33, 32}, {64, 17}, {100, 41}, {257, 64},
};

static const struct resize_cut none;

/* Red, green and blue are; the fourth byte is anything. */
static void kernel_assert_pixels(const struct picture *a, const struct picture *b)
{
	ck_assert_uint_eq(a->height, b->height);
	ck_assert_uint_eq(a->width, b->width);
	for (uint32_t y = 0; y < a->height; y++)
		for (uint32_t x = 0; x < a->width; x++)
			ck_assert_mem_eq(picture_row(a, y) + 4 * (size_t)x,
					 picture_row(b, y) + 4 * (size_t)x, 3);
}

static void kernel_plain(enum filter_id filter, bool down, const struct picture *from,
			 uint32_t size, struct picture_buffer *buffer, struct picture *ret)
{
	struct filter_table table = {.in = 0};

	ck_assert(filter_make(&table, filter, down ? from->height : from->width, size, none.down));
	ck_assert_int_eq(
	    picture_make(buffer, down ? size : from->height, down ? from->width : size, ret), 0);
	(down ? resize_plain_down : resize_plain_across)(&table, from, ret);
	filter_fini(&table);
}

/* Resizing gives the plain passes' bytes, for each filter and size, along one axis, the other one, and both. */
START_TEST(kernels_agree)
{
	struct rescale *rescale = calloc(1, sizeof(*rescale));
	struct picture_buffer buffers[4] = {0};
	const enum filter_id filter = (enum filter_id)_i;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(kernel_sizes); i++) {
		for (uint32_t other = 1; other < 50; other += 11) {
			uint32_t in = kernel_sizes[i][0], out = kernel_sizes[i][1];
			struct picture from, plain, both, quick;

			ck_assert_int_eq(picture_make(&buffers[0], other, in, &from), 0);
			kernel_fill(&from, in * 1000 + other);
			kernel_plain(filter, false, &from, out, &buffers[1], &plain);
			ck_assert_int_eq(rescale_run(rescale, &from, filter, &none, other, out,
						     &buffers[2], &quick),
					 0);
			kernel_assert_pixels(&plain, &quick);
			ck_assert_int_eq(picture_make(&buffers[0], in, other, &from), 0);
			kernel_fill(&from, in * 1000 + other);
			kernel_plain(filter, true, &from, out, &buffers[1], &plain);
			ck_assert_int_eq(rescale_run(rescale, &from, filter, &none, out, other,
						     &buffers[2], &quick),
					 0);
			kernel_assert_pixels(&plain, &quick);
			if (resize_down_first(in, other, out, in)) {
				kernel_plain(filter, false, &plain, in, &buffers[3], &both);
			} else {
				kernel_plain(filter, false, &from, in, &buffers[1], &plain);
				kernel_plain(filter, true, &plain, out, &buffers[3], &both);
			}
			ck_assert_int_eq(rescale_run(rescale, &from, filter, &none, out, in,
						     &buffers[2], &quick),
					 0);
			kernel_assert_pixels(&both, &quick);
		}
	}
	rescale_fini(rescale);
	free(rescale);
	for (unsigned i = 0; i < 4; i++)
		picture_buffer_fini(&buffers[i]);
}
END_TEST

static bool kernel_weights_fit(const struct filter_table *table)
{
	for (uint32_t x = 0; x < table->out; x++) {
		int64_t sum = -(1 << FILTER_BITS);

		if (table->count[x] < 1 || table->count[x] > table->taps ||
		    table->first[x] + table->count[x] > table->in)
			return false;
		for (uint32_t t = 0; t < table->count[x]; t++)
			sum += table->weight[(size_t)x * table->taps + t];
		if (llabs(sum) > table->count[x])
			return false;
	}
	return true;
}

/* Weights lie within the picture and add up to one. */
START_TEST(weights_sum)
{
	struct filter_table table = {.in = 0};

	for (uint32_t in = 1; in < 400; in += 7)
		for (uint32_t out = 1; out < 300; out += 13)
			ck_assert_msg(filter_make(&table, (enum filter_id)_i, in, out, none.down) &&
					  kernel_weights_fit(&table),
				      "%u to %u", in, out);
	filter_fini(&table);
}
END_TEST

/* Pillow 13.0.0's order of passes, probed with it: height first when that drops more rows than
 * twice the columns that the other pass drops. */
static const struct {
	uint32_t height, width, new_height, new_width;
	bool down_first;
} kernel_orders[] = {
    {300, 300, 224, 224, false}, {300, 224, 224, 224, true},  {300, 200, 224, 224, true},
    {224, 300, 224, 224, false}, {200, 200, 224, 224, false}, {424, 324, 224, 224, false},
    {425, 324, 224, 224, true},  {225, 10, 224, 224, true},   {100, 10, 224, 224, false},
};

START_TEST(pass_order)
{
	ck_assert(resize_down_first(kernel_orders[_i].height, kernel_orders[_i].width,
				    kernel_orders[_i].new_height,
				    kernel_orders[_i].new_width) == kernel_orders[_i].down_first);
}
END_TEST

START_TEST(same_size_is_a_copy)
{
	struct rescale *rescale = calloc(1, sizeof(*rescale));
	struct picture_buffer buffers[2] = {0};
	struct picture from, to;

	ck_assert_int_eq(picture_make(&buffers[0], 19, 23, &from), 0);
	kernel_fill(&from, 3);
	ck_assert_int_eq(
	    rescale_run(rescale, &from, FILTER_LANCZOS, &none, 19, 23, &buffers[1], &to), 0);
	ck_assert_ptr_ne(from.data, to.data);
	kernel_assert_same(&from, &to);
	rescale_fini(rescale);
	free(rescale);
	picture_buffer_fini(&buffers[0]);
	picture_buffer_fini(&buffers[1]);
}
END_TEST

START_TEST(too_large)
{
	struct rescale *rescale = calloc(1, sizeof(*rescale));
	struct picture_buffer buffers[2] = {0};
	struct picture from, to;

	ck_assert_int_eq(picture_make(&buffers[0], 1, 8, &from), 0);
	kernel_fill(&from, 3);
	ck_assert_int_eq(
	    rescale_run(rescale, &from, FILTER_BOX, &none, 1ull << 32, 1, &buffers[1], &to),
	    PIPELINE_FAIL_REFUSED);
	ck_assert_int_eq(
	    rescale_run(rescale, &from, FILTER_BOX, &none, 20000, 20000, &buffers[1], &to),
	    PIPELINE_FAIL_REFUSED);
	ck_assert_int_eq(picture_make(&buffers[1], UINT64_MAX, 2, &to), PIPELINE_FAIL_REFUSED);
	rescale_fini(rescale);
	free(rescale);
	picture_buffer_fini(&buffers[0]);
	picture_buffer_fini(&buffers[1]);
}
END_TEST

START_TEST(buffer_use)
{
	struct picture_buffer buffer = {0};
	struct picture picture;
	const uint8_t *memory;

	ck_assert_int_eq(picture_make(&buffer, 100, 100, &picture), 0);
	memory = buffer.memory;
	for (uint32_t side = 1; side <= 100; side++) {
		ck_assert_int_eq(picture_make(&buffer, side, side, &picture), 0);
		ck_assert_ptr_eq(buffer.memory, memory);
		ck_assert_uint_eq((uintptr_t)picture.data % 32, 16);
		ck_assert_uint_eq(picture.stride % 32, 0);
	}
	picture_buffer_trim(&buffer);
	ck_assert_ptr_eq(buffer.memory, memory);
	ck_assert_int_eq(picture_make(&buffer, 8000, 8000, &picture), 0);
	picture_buffer_trim(&buffer);
	ck_assert_ptr_null(buffer.memory);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, kernels_agree, FILTER_NEAREST, FILTER_LANCZOS + 1);
	tcase_add_loop_test(tcase, weights_sum, FILTER_NEAREST, FILTER_LANCZOS + 1);
	tcase_add_loop_test(tcase, pass_order, 0, BASE_ARRAY_LEN(kernel_orders));
	tcase_add_test(tcase, same_size_is_a_copy);
	tcase_add_test(tcase, too_large);
	tcase_add_test(tcase, buffer_use);
}

int main(void)
{
	return suite_run("kernel", add);
}
