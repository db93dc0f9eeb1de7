/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels for planes, all makes, against the sums that filter.c's tables say: every filter,
 * many sizes, windows, mirrored or not; and the cache of their tables.
 */

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "base/philox.h"
#include "pipeline/engine/plane.h"
#include "pipeline/formats/decode_planes.h"
#include "tests/suite.h"

#define PLANE_MOST 1100 /* inputs */

static uint8_t *plane_row_memory[2];
static uint8_t *plane_row[2];

static void plane_setup(void)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 8, 0, 0);
	for (unsigned i = 0; i < 2; i++) {
		/* exactly what may be read: the sanitizer sees a byte too many */
		plane_row_memory[i] = malloc(PLANE_MOST + 2 * PLANE_PAD);
		ck_assert_ptr_nonnull(plane_row_memory[i]);
		plane_row[i] = plane_row_memory[i] + PLANE_PAD;
		for (unsigned x = 0; x < PLANE_MOST + 2 * PLANE_PAD; x++) {
			uint32_t value = philox_u32(&seq);

			/* many extremes, so that clipping is met */
			plane_row_memory[i][x] =
			    (uint8_t)(value & 0x300 ? value : (value & 0x80 ? 255 : 0));
		}
	}
}

static void plane_teardown(void)
{
	free(plane_row_memory[0]);
	free(plane_row_memory[1]);
}

static const struct plane_kernels *const *plane_all(void)
{
	static const struct plane_kernels *all[5];
	const struct plane_kernels *const some[] = {&plane_plain, plane_avx2(), plane_avx512(),
						    plane_neon()};
	unsigned n = 0;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(some); i++) {
		if (some[i])
			all[n++] = some[i];
	}
	return all;
}

static uint8_t plane_reference(const struct filter_table *filter, const struct plane_want *want,
			       uint32_t x, const uint8_t *from, size_t step)
{
	uint32_t i = want->first + (want->mirrored ? want->count - 1 - x : x);
	int64_t sum = 1 << (FILTER_BITS - 1);

	for (uint32_t t = 0; t < filter->count[i]; t++)
		sum += (int64_t)from[(filter->first[i] + t) * step] *
		       filter->weight[(size_t)i * filter->taps + t];
	sum >>= FILTER_BITS;
	return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static const uint32_t plane_sizes[][2] = {
    {1, 1},    {1, 5},     {5, 1},     {2, 3},     {7, 8},    {8, 7},     {9, 31},
    {33, 32},  {64, 17},   {100, 41},  {257, 64},  {40, 224}, {97, 97},   {300, 96},
    {500, 97}, {468, 224}, {395, 224}, {700, 224}, {90, 33},  {1000, 48}, {1099, 7}};

/* The window of a size: all, or a part. */
static struct plane_want plane_window(enum filter_id id, unsigned size, unsigned number)
{
	uint32_t out = plane_sizes[size][1];
	struct plane_want want = {
	    .id = id, .in = plane_sizes[size][0], .out = out, .count = out, .mirrored = number & 1};

	if (number >= 2) {
		want.first = out * number / 11;
		want.count = BASE_MAX((out - want.first) * 2 / 3, 1);
	}
	return want;
}

static void plane_check_across(const struct plane_kernels *kernels, struct plane_want want,
			       const struct filter_table *filter)
{
	struct filter_table scratch = {0};
	struct plane_table table = {0};
	uint8_t *to = malloc(want.count * 2 + PLANE_PAD);
	uint8_t *row[2] = {malloc(want.count + PLANE_PAD), malloc(want.count + PLANE_PAD)};

	want.form = kernels->across_form;
	ck_assert(to && row[0] && row[1] && plane_table_make(&table, &scratch, &want));
	ck_assert_uint_le(table.high, want.in);
	kernels->across(&table, plane_row[0] + table.low, plane_row[1] + table.low, to);
	kernels->unzip(to, want.count, row[0], row[1]);
	for (uint32_t x = 0; x < 2 * want.count; x++) {
		if (row[x % 2][x / 2] != plane_reference(filter, &want, x / 2, plane_row[x % 2], 1))
			ck_abort_msg("filter %d, %u to %u, output %u", want.id, want.in, want.out,
				     x);
	}
	plane_table_fini(&table);
	filter_fini(&scratch);
	free(row[0]);
	free(row[1]);
	free(to);
}

START_TEST(across)
{
	struct filter_table filter = {0};

	for (unsigned size = 0; size < BASE_ARRAY_LEN(plane_sizes); size++) {
		for (unsigned number = 0; number < 8; number++) {
			struct plane_want want = plane_window((enum filter_id)_i, size, number);

			ck_assert(filter_make(&filter, want.id, want.in, want.out,
					      (struct filter_cut){0, 0}));
			for (unsigned i = 0; plane_all()[i]; i++)
				plane_check_across(plane_all()[i], want, &filter);
		}
	}
	filter_fini(&filter);
}
END_TEST

/* The widest picture whose rows are taken in blocks, and what its loads reach beyond the end. */
START_TEST(across_reach)
{
	struct filter_table filter = {0};

	for (uint32_t in = 1; in < PLANE_MOST; in += in / 16 + 1) {
		struct plane_want want = {
		    .id = (enum filter_id)_i, .in = in, .out = 37, .count = 37, .mirrored = in & 1};

		/* as close to the end of what may be read as a row can lie */
		memmove(plane_row[0] + PLANE_MOST - in, plane_row[0], in);
		plane_row[0] += PLANE_MOST - in;
		plane_row[1] += PLANE_MOST - in;
		ck_assert(
		    filter_make(&filter, want.id, want.in, want.out, (struct filter_cut){0, 0}));
		for (unsigned i = 0; plane_all()[i]; i++)
			plane_check_across(plane_all()[i], want, &filter);
		plane_row[0] -= PLANE_MOST - in;
		plane_row[1] -= PLANE_MOST - in;
	}
	filter_fini(&filter);
}
END_TEST

/* ---- along columns ---- */

#define PLANE_WIDE 97

static void plane_check_output(const struct plane_kernels *kernels, const struct plane_table *table,
			       const struct filter_table *filter, uint32_t y, const uint8_t *column,
			       uint8_t *zipped)
{
	const uint32_t first = table->first[y], pairs = table->count[y] / 2;
	const uint8_t *pair[PLANE_MOST];
	uint8_t to[PLANE_WIDE + PLANE_PAD];

	ck_assert_uint_eq(first % 2, 0);
	ck_assert_uint_le(table->low + first + table->count[y], table->high + 1);
	for (uint32_t i = 0; i < pairs; i++) {
		uint8_t *at = zipped + (size_t)i * (2 * PLANE_WIDE + PLANE_PAD);
		const uint8_t *a =
		    column + (size_t)(table->low + first + 2 * i) * (PLANE_WIDE + PLANE_PAD);

		kernels->zip(a, a + PLANE_WIDE + PLANE_PAD, PLANE_WIDE, at);
		pair[i] = at;
	}
	for (uint32_t n = 1; n <= PLANE_WIDE; n += 48) {
		kernels->down(pair, pairs, table->split + 2 * (size_t)y * table->taps, n, to);
		for (uint32_t x = 0; x < n; x++) {
			if (to[x] != plane_reference(filter, &table->want, y, column + x,
						     PLANE_WIDE + PLANE_PAD))
				ck_abort_msg("filter %d, %u to %u, row %u, column %u",
					     table->want.id, table->want.in, table->want.out, y, x);
		}
	}
}

static void plane_check_down(const struct plane_kernels *kernels, struct plane_want want,
			     const struct filter_table *filter, const uint8_t *column)
{
	struct filter_table scratch = {0};
	struct plane_table table = {0};
	uint8_t *zipped = malloc((size_t)PLANE_MOST / 2 * (2 * PLANE_WIDE + PLANE_PAD) + PLANE_PAD);

	want.form = PLANE_DOWN;
	ck_assert(zipped && plane_table_make(&table, &scratch, &want));
	for (uint32_t y = 0; y < want.count; y += 1 + want.count / 16)
		plane_check_output(kernels, &table, filter, y, column, zipped);
	plane_table_fini(&table);
	filter_fini(&scratch);
	free(zipped);
}

START_TEST(down)
{
	struct filter_table filter = {0};
	size_t size = (size_t)(PLANE_MOST + 1) * (PLANE_WIDE + PLANE_PAD);
	uint8_t *column = malloc(size);

	ck_assert_ptr_nonnull(column);
	for (size_t x = 0; x < size; x++)
		column[x] = plane_row[x / PLANE_MOST % 2][x % PLANE_MOST];
	for (unsigned s = 0; s < BASE_ARRAY_LEN(plane_sizes); s++) {
		for (unsigned number = 0; number < 8; number += 3) {
			struct plane_want want = plane_window((enum filter_id)_i, s, number);

			ck_assert(filter_make(&filter, want.id, want.in, want.out,
					      (struct filter_cut){0, 0}));
			for (unsigned i = 0; plane_all()[i]; i++)
				plane_check_down(plane_all()[i], want, &filter, column);
		}
	}
	filter_fini(&filter);
	free(column);
}
END_TEST

START_TEST(unzip)
{
	uint8_t zipped[2 * 200 + PLANE_PAD], a[200 + PLANE_PAD], b[200 + PLANE_PAD];

	for (unsigned i = 0; plane_all()[i]; i++) {
		for (uint32_t n = 1; n < 200; n++) {
			memset(zipped, 0, sizeof(zipped));
			plane_all()[i]->zip(plane_row[0], plane_row[1], n, zipped);
			plane_all()[i]->unzip(zipped, n, a, b);
			ck_assert_mem_eq(a, plane_row[0], n);
			ck_assert_mem_eq(b, plane_row[1], n);
		}
	}
}
END_TEST

START_TEST(mirror)
{
	uint8_t to[200 + PLANE_PAD];

	for (unsigned i = 0; plane_all()[i]; i++) {
		for (uint32_t n = 1; n < 200; n++) {
			plane_all()[i]->mirror(plane_row[0], n, to);
			for (uint32_t x = 0; x < n; x++)
				ck_assert_uint_eq(to[x], plane_row[0][n - 1 - x]);
		}
	}
}
END_TEST

START_TEST(split)
{
	uint8_t from[4 * 300], want[3 * 300], got[3 * 300];

	memcpy(from, plane_row[0], PLANE_MOST);
	memcpy(from + PLANE_MOST, plane_row[1], sizeof(from) - PLANE_MOST);
	for (uint32_t n = 1; n <= 300; n++) {
		decode_planes_plain(from, n, want, want + n, want + 2 * (size_t)n);
		decode_planes_best()(from, n, got, got + n, got + 2 * (size_t)n);
		ck_assert_mem_eq(want, got, 3 * (size_t)n);
	}
}
END_TEST

/* ---- the cache ---- */

static size_t plane_kept(const struct plane_cache *cache)
{
	size_t kept = 0;

	for (unsigned i = 0; i < PLANE_SETS * PLANE_WAYS; i++)
		kept += cache->slot[i / PLANE_WAYS][i % PLANE_WAYS].size;
	return kept;
}

/* Tables are those asked for, whatever was asked before; the last one asked for is still there. */
START_TEST(cached)
{
	struct plane_cache *cache = calloc(1, sizeof(*cache));
	struct filter_table scratch = {0};
	struct plane_table fresh = {0};

	ck_assert_ptr_nonnull(cache);
	for (uint32_t i = 0; i < 6000; i++) {
		const uint32_t in = 1 + i * 7919 % 1009;
		struct plane_want want = {.form = (enum plane_form)(i % 5),
					  .id = FILTER_BILINEAR,
					  .in = in,
					  .out = 224,
					  .first = i % 5,
					  .count = 219,
					  .mirrored = i % 7 < 3};
		const struct plane_table *table = plane_cache_get(cache, &want);

		ck_assert_ptr_nonnull(table);
		ck_assert_ptr_eq(plane_cache_get(cache, &want), table);
		ck_assert(plane_table_make(&fresh, &scratch, &want));
		ck_assert_uint_eq(fresh.low, table->low);
		ck_assert_uint_eq(fresh.high, table->high);
		ck_assert_uint_eq(fresh.form, table->form);
		if (fresh.form == PLANE_BLOCKS || fresh.form == PLANE_BYTES)
			ck_assert_mem_eq(fresh.memory, table->memory,
					 (size_t)fresh.blocks * (64 * fresh.pairs + 40));
		else if (fresh.form == PLANE_QUADS)
			ck_assert_mem_eq(fresh.memory, table->memory,
					 (size_t)fresh.blocks * (192 * fresh.quads + 68));
		else
			ck_assert_mem_eq(fresh.memory, table->memory,
					 (size_t)219 * (fresh.taps * 4 + 8));
	}
	ck_assert_uint_le(plane_kept(cache), (size_t)PLANE_SETS * PLANE_WAYS * (20 << 10));
	plane_table_fini(&fresh);
	filter_fini(&scratch);
	plane_cache_fini(cache);
	free(cache);
}
END_TEST

/* A huge table does not stay among the others, nor at all. */
START_TEST(cached_huge)
{
	struct plane_cache *cache = calloc(1, sizeof(*cache));
	struct plane_want want = {
	    .form = PLANE_BLOCKS, .id = FILTER_LANCZOS, .in = 65500, .out = 4000, .count = 4000};

	ck_assert_ptr_nonnull(cache);
	ck_assert_ptr_eq(plane_cache_get(cache, &want), &cache->large);
	ck_assert_uint_eq(plane_kept(cache), 0);
	ck_assert_uint_gt(cache->large.size, 1 << 20);
	want.in = 1000000;
	ck_assert_ptr_eq(plane_cache_get(cache, &want), &cache->large);
	plane_cache_trim(cache);
	ck_assert_uint_eq(cache->large.size + cache->filter.size, 0);
	plane_cache_fini(cache);
	free(cache);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, plane_setup, plane_teardown);
	tcase_add_loop_test(tcase, across, FILTER_NEAREST, FILTER_LANCZOS + 1);
	tcase_add_loop_test(tcase, across_reach, FILTER_NEAREST, FILTER_LANCZOS + 1);
	tcase_add_loop_test(tcase, down, FILTER_NEAREST, FILTER_LANCZOS + 1);
	tcase_add_test(tcase, unzip);
	tcase_add_test(tcase, mirror);
	tcase_add_test(tcase, split);
	tcase_add_test(tcase, cached);
	tcase_add_test(tcase, cached_huge);
}

int main(void)
{
	return suite_run("plane", add);
}
