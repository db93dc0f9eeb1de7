/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The arena against a model that knows every byte: what is reserved belongs to one extent alone,
 * releases in any order bring everything back, and what is not given back holds back nothing else.
 */

#include "base/philox.h"
#include "daemon/serve/arena.h"
#include "tests/histories.h"
#include "tests/suite.h"
#include "tests/invariants/invariants.h"

#include <stdlib.h>
#include <string.h>

#define MODEL_BYTES 65536
#define MODEL_UNITS (MODEL_BYTES / ARENA_ALIGN)
#define MODEL_EXTENTS 37

struct model {
	struct arena arena;
	bool owned[MODEL_UNITS];
	struct {
		bool used;
		uint64_t offset, bytes;
	} live[MODEL_EXTENTS];
	unsigned n_live;
};

static void model_mark(struct model *model, uint64_t offset, uint64_t bytes, bool owned)
{
	uint64_t last = (offset + BASE_MAX(bytes, UINT64_C(1)) - 1) / ARENA_ALIGN;

	ck_assert_uint_eq(offset % ARENA_ALIGN, 0);
	ck_assert_uint_lt(last, MODEL_UNITS);
	for (uint64_t i = offset / ARENA_ALIGN; i <= last; i++) {
		ck_assert(model->owned[i] != owned);
		model->owned[i] = owned;
	}
}

static bool model_reserve(struct model *model, uint64_t bytes)
{
	uint64_t offset;
	uint32_t extent;

	if (!arena_reserve(&model->arena, bytes, &offset, &extent))
		return false;
	ck_assert_uint_lt(extent, MODEL_EXTENTS);
	ck_assert(!model->live[extent].used);
	model_mark(model, offset, bytes, true);
	model->live[extent].used = true;
	model->live[extent].offset = offset;
	model->live[extent].bytes = bytes;
	model->n_live++;
	return true;
}

static void model_release(struct model *model, uint32_t extent)
{
	ck_assert(model->live[extent].used);
	model_mark(model, model->live[extent].offset, model->live[extent].bytes, false);
	model->live[extent].used = false;
	model->n_live--;
	arena_release(&model->arena, extent);
}

static uint32_t model_any(const struct model *model, struct philox_seq *seq)
{
	uint32_t extent = (uint32_t)philox_below(seq, MODEL_EXTENTS);

	while (!model->live[extent].used)
		extent = (extent + 1) % MODEL_EXTENTS;
	return extent;
}

START_TEST(random_histories)
{
	struct model *model = calloc(1, sizeof(*model));
	unsigned reserved = 0, refused = 0;
	struct philox_seq seq;

	philox_seq_init(&seq, 1, (uint64_t)_i, 0);
	ck_assert_int_eq(arena_init(&model->arena, MODEL_BYTES, MODEL_EXTENTS, ARENA_ALIGN), 0);
	for (unsigned step = 0; step < 20000; step++) {
		uint64_t most = UINT64_C(1) << philox_below(&seq, 17);

		if (model->n_live == 0 || philox_below(&seq, 100) < 55) {
			if (model_reserve(model, philox_below(&seq, most + 1)))
				reserved++;
			else
				refused++;
		} else {
			model_release(model, model_any(model, &seq));
		}
		ck_assert_ptr_null(arena_check(&model->arena));
	}
	ck_assert_uint_gt(reserved, 1000);
	ck_assert_uint_gt(refused, 100);
	while (model->n_live)
		model_release(model, model_any(model, &seq));
	ck_assert(model_reserve(model, MODEL_BYTES)); /* all of it is free again */
	ck_assert(!model_reserve(model, 1));
	arena_fini(&model->arena);
	free(model);
}
END_TEST

/* What lies between extents that are not given back is used again, all of it, for as long as they are there. */
START_TEST(late_extents_hold_back_nothing)
{
	struct model *model = calloc(1, sizeof(*model));
	uint64_t offset;
	uint32_t late[3], extent;

	ck_assert_int_eq(arena_init(&model->arena, MODEL_BYTES, MODEL_EXTENTS, ARENA_ALIGN), 0);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert(arena_reserve(&model->arena, ARENA_ALIGN, &offset, &late[i]));
		ck_assert(arena_reserve(&model->arena, MODEL_BYTES / 4, &offset, &extent));
		arena_release(&model->arena, extent);
		ck_assert(arena_reserve(&model->arena, MODEL_BYTES / 8, &offset, &extent));
	}
	for (uint32_t i = 0; i < MODEL_EXTENTS; i++) /* all but the late ones */
		if (model->arena.extent[i].bytes == MODEL_BYTES / 8)
			arena_release(&model->arena, i);
	for (unsigned round = 0; round < 100; round++) {
		ck_assert(arena_reserve(&model->arena, MODEL_BYTES / 2, &offset, &extent));
		ck_assert_ptr_null(arena_check(&model->arena));
		arena_release(&model->arena, extent);
	}
	arena_fini(&model->arena);
	free(model);
}
END_TEST

/* However many lie behind each other between two that come and go. */
START_TEST(many_late_extents_are_passed)
{
	const uint64_t before = MODEL_BYTES / 4, behind = MODEL_BYTES / 2;
	uint32_t first, last, extent;
	struct arena arena;
	uint64_t offset;

	ck_assert_int_eq(arena_init(&arena, MODEL_BYTES, MODEL_EXTENTS, ARENA_ALIGN), 0);
	ck_assert(arena_reserve(&arena, before, &offset, &first));
	for (unsigned i = 0; i < MODEL_EXTENTS - 2; i++)
		ck_assert(arena_reserve(&arena, ARENA_ALIGN, &offset, &extent));
	ck_assert(arena_reserve(&arena, behind, &offset, &last));
	for (unsigned round = 0; round < 100; round++) {
		arena_release(&arena, first);
		ck_assert(!arena_reserve(&arena, behind, &offset, &extent));
		ck_assert(arena_reserve(&arena, before, &offset, &first));
		ck_assert_uint_eq(offset, 0);
		arena_release(&arena, last);
		ck_assert(arena_reserve(&arena, behind, &offset, &last));
		ck_assert_uint_eq(offset, before + (MODEL_EXTENTS - 2) * ARENA_ALIGN);
		ck_assert_ptr_null(arena_check(&arena));
	}
	arena_fini(&arena);
}
END_TEST

START_TEST(order_of_release_is_free)
{
	struct model *model = calloc(1, sizeof(*model));

	ck_assert_int_eq(arena_init(&model->arena, MODEL_BYTES, MODEL_EXTENTS, ARENA_ALIGN), 0);
	for (unsigned i = 0; i < 4; i++)
		ck_assert(model_reserve(model, MODEL_BYTES / 4));
	ck_assert(!model_reserve(model, 0)); /* none counts as one byte, and there is none */
	model_release(model, 1);
	model_release(model, 2);
	ck_assert(!model_reserve(model, MODEL_BYTES / 4 * 3));
	ck_assert(model_reserve(model, MODEL_BYTES / 2)); /* the oldest holds nothing back */
	model_release(model, 0);
	ck_assert(model_reserve(model, MODEL_BYTES / 4));
	ck_assert_ptr_null(arena_check(&model->arena));
	arena_fini(&model->arena);
	free(model);
}
END_TEST

START_TEST(limits_are_kept)
{
	struct arena arena;
	uint64_t offset = 7;
	uint32_t extent = 7;

	ck_assert_int_eq(arena_init(&arena, MODEL_BYTES, 2, ARENA_ALIGN), 0);
	ck_assert(!arena_reserve(&arena, MODEL_BYTES + 1, &offset, &extent));
	ck_assert(!arena_reserve(&arena, UINT32_MAX, &offset, &extent));
	ck_assert(arena_reserve(&arena, 1, &offset, &extent));
	ck_assert(arena_reserve(&arena, 1, &offset, &extent));
	ck_assert_uint_eq(offset, ARENA_ALIGN);
	ck_assert(!arena_reserve(&arena, 1, &offset, &extent)); /* two extents and no more */
	arena_release(&arena, 0);
	ck_assert(arena_reserve(&arena, MODEL_BYTES - 2 * ARENA_ALIGN, &offset, &extent));
	ck_assert_ptr_null(arena_check(&arena));
	arena_fini(&arena);
	ck_assert_ptr_null(arena.extent);
}
END_TEST

START_TEST(the_checker_sees_what_is_broken)
{
	struct arena arena;
	uint64_t offset;
	uint32_t first, second;

	ck_assert_int_eq(arena_init(&arena, MODEL_BYTES, 8, ARENA_ALIGN), 0);
	ck_assert(arena_reserve(&arena, 128, &offset, &first));
	ck_assert(arena_reserve(&arena, 128, &offset, &second));
	arena.extent[second].offset = 64;
	ck_assert_str_eq(arena_check(&arena), "two extents overlap");
	arena.extent[second].offset = MODEL_BYTES;
	ck_assert_str_eq(arena_check(&arena), "an extent lies outside the arena");
	arena.extent[second].offset = 129;
	ck_assert_str_eq(arena_check(&arena), "an extent lies outside the arena");
	arena.extent[second].offset = 128;
	arena.extent[second].bytes = 64;
	ck_assert_str_eq(arena_check(&arena), "the bytes in use are not those of the extents");
	arena_fini(&arena);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, random_histories, 0, HISTORIES_OF(8));
	tcase_add_test(tcase, late_extents_hold_back_nothing);
	tcase_add_test(tcase, many_late_extents_are_passed);
	tcase_add_test(tcase, order_of_release_is_free);
	tcase_add_test(tcase, limits_are_kept);
	tcase_add_test(tcase, the_checker_sees_what_is_broken);
}

int main(void)
{
	return suite_run("arena", add);
}
