/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels by themselves: resizing in all makes, the order of passes, pictures. */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/engine/finish.h"
#include "pipeline/ops/resize.h"
#include "pipeline/ops/resize_kernels.h"

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

/* Every kind of kernels gives the plain ones' bytes, for each filter, size and axis. */
static const struct filter_cut none;

START_TEST(kernels_agree)
{
	const struct resize_kernels *fast = resize_avx2();
	struct filter_cache cache = {0};
	struct picture_buffer buffers[3] = {0};

	if (!fast)
		return;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(kernel_sizes); i++) {
		for (uint32_t other = 1; other < 50; other += 11) {
			uint32_t in = kernel_sizes[i][0], out = kernel_sizes[i][1];
			const struct filter_table *table =
			    filter_get(&cache, (enum filter_id)_i, in, out, none);
			struct picture from, plain, quick;

			ck_assert_ptr_nonnull(table);
			ck_assert_int_eq(picture_make(&buffers[0], other, in, &from), 0);
			ck_assert_int_eq(picture_make(&buffers[1], other, out, &plain), 0);
			ck_assert_int_eq(picture_make(&buffers[2], other, out, &quick), 0);
			kernel_fill(&from, in * 1000 + other);
			resize_plain.across(table, &from, &plain);
			fast->across(table, &from, &quick);
			kernel_assert_same(&plain, &quick);
			ck_assert_int_eq(picture_make(&buffers[0], in, other, &from), 0);
			ck_assert_int_eq(picture_make(&buffers[1], out, other, &plain), 0);
			ck_assert_int_eq(picture_make(&buffers[2], out, other, &quick), 0);
			kernel_fill(&from, in * 1000 + other);
			resize_plain.down(table, &from, &plain);
			fast->down(table, &from, &quick);
			kernel_assert_same(&plain, &quick);
		}
	}
	filter_cache_fini(&cache);
	for (unsigned i = 0; i < 3; i++)
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
	struct filter_cache cache = {0};

	for (uint32_t in = 1; in < 400; in += 7) {
		for (uint32_t out = 1; out < 300; out += 13) {
			const struct filter_table *table =
			    filter_get(&cache, (enum filter_id)_i, in, out, none);

			ck_assert_msg(table && kernel_weights_fit(table), "%u to %u", in, out);
		}
	}
	filter_cache_fini(&cache);
}
END_TEST

/* A table that another one threw out comes back the same; a huge one does not stay in the slots. */
START_TEST(cached)
{
	struct filter_cache cache = {0};
	const struct filter_table *table = filter_get(&cache, FILTER_BILINEAR, 500, 224, none);
	int32_t weights[32];
	size_t kept = 0;

	ck_assert_uint_ge(table->count[0], 2);
	memcpy(weights, table->weight, table->count[0] * sizeof(weights[0]));
	for (uint32_t in = 1; in < 3000; in++)
		ck_assert_ptr_nonnull(filter_get(&cache, FILTER_BILINEAR, in, 224, none));
	table = filter_get(&cache, FILTER_BILINEAR, 500, 224, none);
	ck_assert_mem_eq(weights, table->weight, table->count[0] * sizeof(weights[0]));
	ck_assert_ptr_eq(filter_get(&cache, FILTER_LANCZOS, 65500, 224, none), &cache.large);
	for (unsigned i = 0; i < FILTER_SLOTS; i++)
		kept += cache.slot[i].size;
	ck_assert_uint_le(kept, (size_t)FILTER_SLOTS * (80 << 10));
	filter_cache_fini(&cache);
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
	struct resize resize = {0};
	struct picture_buffer buffers[2] = {0};
	struct picture from, to;

	ck_assert_int_eq(picture_make(&buffers[0], 19, 23, &from), 0);
	kernel_fill(&from, 3);
	ck_assert_int_eq(resize_run(&resize, &from, FILTER_LANCZOS, 19, 23, &buffers[1], &to), 0);
	ck_assert_ptr_ne(from.data, to.data);
	kernel_assert_same(&from, &to);
	resize_fini(&resize);
	picture_buffer_fini(&buffers[0]);
	picture_buffer_fini(&buffers[1]);
}
END_TEST

START_TEST(too_large)
{
	struct resize resize = {0};
	struct picture_buffer buffers[2] = {0};
	struct picture from, to;

	ck_assert_int_eq(picture_make(&buffers[0], 1, 8, &from), 0);
	kernel_fill(&from, 3);
	ck_assert_int_eq(resize_run(&resize, &from, FILTER_BOX, 1ull << 32, 1, &buffers[1], &to),
			 PIPELINE_FAIL_REFUSED);
	ck_assert_int_eq(resize_run(&resize, &from, FILTER_BOX, 20000, 20000, &buffers[1], &to),
			 PIPELINE_FAIL_REFUSED);
	ck_assert_int_eq(picture_make(&buffers[1], UINT64_MAX, 2, &to), PIPELINE_FAIL_REFUSED);
	resize_fini(&resize);
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

int main(void)
{
	Suite *suite = suite_create("kernel");
	TCase *tcase = tcase_create("kernel");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_loop_test(tcase, kernels_agree, FILTER_NEAREST, FILTER_LANCZOS + 1);
	tcase_add_loop_test(tcase, weights_sum, FILTER_NEAREST, FILTER_LANCZOS + 1);
	tcase_add_test(tcase, cached);
	tcase_add_loop_test(tcase, pass_order, 0, BASE_ARRAY_LEN(kernel_orders));
	tcase_add_test(tcase, same_size_is_a_copy);
	tcase_add_test(tcase, too_large);
	tcase_add_test(tcase, buffer_use);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
