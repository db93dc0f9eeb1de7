/* SPDX-License-Identifier: Apache-2.0 */

/* Admission: what a plan promises holds for every size, and a refusal has all the numbers. */

#include "base/philox.h"
#include "daemon/tenant/admit.h"
#include "tests/suite.h"

#include <errno.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define GIB (KIB * MIB)

/* One field of so many bytes a sample, and the index. */
static struct slot_geometry geometry_of(uint64_t sample_bytes, uint64_t n)
{
	struct slot_geometry geometry = {.n_samples = n, .block = 1, .seed = 1, .n_fields = 2};
	struct layout_field *image = &geometry.field[0], *index = &geometry.field[1];

	strcpy(image->name, "image");
	image->dtype = LAYOUT_U8;
	image->where = LAYOUT_IN_SLOT;
	image->ndim = 1;
	image->shape[0] = image->sample_bytes = sample_bytes;
	strcpy(index->name, "index");
	index->dtype = LAYOUT_I64;
	index->where = LAYOUT_IN_TABLE;
	index->sample_bytes = 8;
	return geometry;
}

static struct admit_ask ask_of(uint64_t available, uint32_t batch)
{
	return (struct admit_ask){
	    .available = available,
	    .budget = available,
	    .source = "parameter `memory`",
	    .batch = batch,
	    .producing = 2,
	    .rows = 3,
	    .mean_bytes = 100 * KIB,
	    .largest_bytes = MIB,
	};
}

START_TEST(slots_of_so_many_ranks)
{
	static const struct {
		unsigned ranks;
		uint32_t least, wanted;
	} table[] = {{1, 4, 4}, {2, 4, 6}, {3, 6, 8}, {64, 128, 130}, {256, 512, 512}};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		ck_assert_uint_eq(admit_least_slots(table[i].ranks), table[i].least);
		ck_assert_uint_eq(admit_wanted_slots(table[i].ranks, 0), table[i].wanted);
		ck_assert_uint_eq(admit_wanted_slots(table[i].ranks, 9), 9);
	}
}
END_TEST

/* For all that open together, but at most twice what there is; for the next one in any case, and never more than there may be. */
START_TEST(slots_for_those_that_open_together)
{
	static const struct {
		const char *what;
		struct admit_crowd crowd;
		uint32_t wanted;
	} table[] = {
	    {"one alone", {0, 1, 4, 512, 0}, 4},
	    {"two have what is there", {0, 2, 4, 512, 0}, 6},
	    {"eight at once: twice what is there", {0, 8, 4, 512, 0}, 8},
	    {"the next turn", {3, 8, 8, 512, 0}, 16},
	    {"the last turn", {7, 8, 16, 512, 0}, 18},
	    {"those that were there first are counted", {6, 7, 14, 512, 0}, 16},
	    {"nobody is connected any more", {1, 0, 4, 512, 0}, 6},
	    {"nothing is reserved yet", {0, 8, 0, 512, 0}, 4},
	    {"the next one alone takes more than twice", {9, 10, 4, 512, 0}, 22},
	    {"no more than there may be", {7, 8, 16, 12, 0}, 12},
	    {"the rule's most", {300, 400, 500, 1000, 0}, 512},
	    {"as configured", {3, 8, 9, 512, 9}, 9},
	    {"configured, and there may be fewer", {0, 8, 4, 5, 9}, 5},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++)
		ck_assert_msg(admit_slots_for_next(&table[i].crowd) == table[i].wanted, "%s: %u",
			      table[i].what, admit_slots_for_next(&table[i].crowd));
}
END_TEST

/* C = B * max(1, floor(256 / B)) when there is memory enough. */
START_TEST(chunks_are_whole_batches)
{
	static const uint32_t table[][2] = {
	    {1, 256},   {2, 256},   {3, 255},   {64, 256},    {100, 200},
	    {128, 256}, {129, 129}, {256, 256}, {1000, 1000}, {65536, 65536},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		struct slot_geometry geometry = geometry_of(3 * KIB, 100000);
		struct admit_ask ask = ask_of(64 * GIB, table[i][0]);
		struct diag diag = {""};
		struct admit_plan plan;

		ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), 0);
		ck_assert_uint_eq(geometry.chunk, table[i][1]);
		ck_assert_uint_eq(plan.slots, 4);
		ck_assert_uint_ge(geometry.max_slots, plan.slots);
	}
}
END_TEST

/* A few samples have no slots of hundreds. */
START_TEST(chunks_hold_no_more_than_there_is)
{
	static const uint32_t table[][3] = {
	    {16, 8, 16}, {15, 8, 16}, {17, 8, 24},   {16, 1, 16},
	    {1, 1, 1},   {3, 32, 32}, {255, 1, 255}, {300, 7, 252},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		struct slot_geometry geometry = geometry_of(588 * KIB, table[i][0]);
		struct admit_ask ask = ask_of(64 * GIB, table[i][1]);
		struct diag diag = {""};
		struct admit_plan plan;

		ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), 0);
		ck_assert_uint_eq(geometry.chunk, table[i][2]);
	}
}
END_TEST

/* The first chunk that fits, from the largest: one batch more would not have. */
START_TEST(chunks_are_lowered_until_they_fit)
{
	uint32_t last = UINT32_MAX;

	for (uint64_t available = 4 * GIB; available > 32 * MIB; available -= 4 * MIB) {
		struct slot_geometry geometry = geometry_of(588 * KIB, 100000);
		struct admit_ask ask = ask_of(available, 32);
		struct diag diag = {""};
		struct admit_plan plan;
		int r = admit_stream(&ask, &geometry, &plan, &diag);

		if (r) {
			ck_assert_int_eq(r, ADMIT_E_MEMORY);
			ck_assert_uint_eq(geometry.chunk, 32); /* the least was tried last */
			ck_assert_uint_eq(last, 32);
			return;
		}
		ck_assert_uint_eq(geometry.chunk % 32, 0);
		ck_assert_uint_le(geometry.chunk, last);
		ck_assert_uint_le(plan.fixed_bytes + plan.slots * geometry.slot_stride, available);
		last = geometry.chunk;
	}
	ck_abort_msg("nothing was ever refused");
}
END_TEST

START_TEST(what_was_asked_for_is_kept)
{
	struct slot_geometry geometry = geometry_of(3 * KIB, 100000);
	struct admit_ask ask = ask_of(GIB, 10);
	struct diag diag = {""};
	struct admit_plan plan;

	ask.chunk = 77;
	ask.slots = 5;
	ask.arena = 3 * MIB;
	ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), 0);
	ck_assert_uint_eq(geometry.chunk, 77);
	ck_assert_uint_eq(plan.slots, 5);
	ck_assert_uint_eq(geometry.max_slots, 5);
	ck_assert_uint_eq(plan.arena_bytes, 3 * MIB);
}
END_TEST

START_TEST(arenas_hold_what_is_read)
{
	static const struct {
		uint64_t mean, largest, arena;
	} table[] = {
	    {0, 0, 16 * MIB},                /* at least */
	    {100 * KIB, MIB, 100 * MIB},     /* 2 * 2 chunks * 256 samples */
	    {10 * MIB, 11 * MIB, 256 * MIB}, /* at most */
	    {1 * KIB, 50 * MIB, 100 * MIB},  /* twice the largest file */
	    {1 * KIB, 4 * GIB, 256 * MIB},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		struct slot_geometry geometry = geometry_of(3 * KIB, 100000);
		struct admit_ask ask = ask_of(64 * GIB, 256);
		struct diag diag = {""};
		struct admit_plan plan;

		ask.mean_bytes = table[i].mean;
		ask.largest_bytes = table[i].largest;
		ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), 0);
		ck_assert_uint_eq(plan.arena_bytes, table[i].arena);
	}
}
END_TEST

START_TEST(an_arena_has_large_files_for_all_workers)
{
	static const struct {
		uint64_t mean, available, arena;
		uint32_t workers;
	} table[] = {
	    {100 * KIB, 64 * GIB, 100 * MIB, 64}, /* as of so many pictures */
	    {100 * MIB, 64 * GIB, 256 * MIB, 1},  {100 * MIB, 64 * GIB, 1600 * MIB, 8},
	    {100 * MIB, 64 * GIB, 8 * GIB, 64}, /* at most an eighth of what is free */
	    {100 * MIB, 4 * GIB, 512 * MIB, 8},   {100 * MIB, GIB, 256 * MIB, 8},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(table); i++) {
		struct slot_geometry geometry = geometry_of(3 * KIB, 100000);
		struct admit_ask ask = ask_of(table[i].available, 256);
		struct diag diag = {""};
		struct admit_plan plan;

		ask.mean_bytes = table[i].mean;
		ask.largest_bytes = 2 * table[i].mean;
		ask.workers = table[i].workers;
		ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), 0);
		ck_assert_uint_eq(plan.arena_bytes, table[i].arena);
	}
}
END_TEST

START_TEST(a_refusal_has_the_numbers)
{
	struct slot_geometry geometry = geometry_of(588 * KIB, 100000);
	struct admit_ask ask = ask_of(100 * MIB, 256);
	struct diag diag = {""};
	struct admit_plan plan;

	ask.budget = 2 * GIB;
	ask.source = "half of the cgroup's memory limit";
	ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), ADMIT_E_MEMORY);
	ck_assert_str_eq(
	    diag.text,
	    "the stream needs 692.2 MiB (4 slots of 256 samples, 148 MiB each, and 100.2 MiB for "
	    "tables and reading), but 100 MiB of the budget of 2 GiB (half of the cgroup's "
	    "memory limit) is free: raise `memory`, use a smaller batch, uint8 output, or close "
	    "another stream");
}
END_TEST

START_TEST(a_chunk_smaller_than_a_block)
{
	struct slot_geometry geometry = geometry_of(3 * KIB, 10000000);
	struct admit_ask ask = ask_of(GIB, 1);
	struct diag diag = {""};
	struct admit_plan plan;

	geometry.block = 32;
	ask.chunk = 31;
	ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), ADMIT_E_BAD);
	ck_assert_str_eq(diag.text,
			 "a chunk of 31 samples is smaller than a block of this dataset (32)");
	ask.chunk = 0; /* by rule a chunk is never smaller than a block */
	ask.available = 17 * MIB;
	ask.mean_bytes = 0;
	geometry = geometry_of(3 * KIB, 10000000);
	geometry.block = 32;
	ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), 0);
	ck_assert_uint_ge(geometry.chunk, 32);
	ask.available = 16 * MIB + 428 * KIB; /* 4 slots of 32 samples, no more */
	ck_assert_int_eq(admit_stream(&ask, &geometry, &plan, &diag), 0);
	ck_assert_uint_eq(geometry.chunk, 32);
}
END_TEST

/* Random sizes up to the largest: nothing wraps, and what is admitted fits. */
START_TEST(no_size_overflows)
{
	unsigned admitted = 0, refused = 0;
	struct philox_seq seq;

	philox_seq_init(&seq, 3, 4, 5);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t bytes = UINT64_C(1) << philox_below(&seq, 63);
		uint64_t available = UINT64_C(1) << philox_below(&seq, 51);
		struct slot_geometry geometry = geometry_of(bytes, UINT64_C(1) << 40);
		struct admit_ask ask = ask_of(available, 1 + (uint32_t)philox_below(&seq, 65536));
		struct diag diag = {""};
		struct admit_plan plan;
		int r;

		ask.producing = 1 + (uint32_t)philox_below(&seq, 4);
		ask.mean_bytes = UINT64_C(1) << philox_below(&seq, 33);
		ask.largest_bytes = UINT32_MAX;
		ask.slots = philox_below(&seq, 2) ? (uint32_t)philox_below(&seq, 513) : 0;
		r = admit_stream(&ask, &geometry, &plan, &diag);
		if (r) {
			ck_assert(r == ADMIT_E_MEMORY || r == ADMIT_E_BAD);
			ck_assert_uint_gt(strlen(diag.text), 20);
			refused++;
			continue;
		}
		admitted++;
		ck_assert_uint_ge(plan.slots, 1);
		ck_assert_uint_le(plan.slots, geometry.max_slots);
		ck_assert_uint_ge(geometry.slot_stride / bytes, geometry.chunk);
		ck_assert_uint_le(plan.fixed_bytes, available);
		ck_assert_uint_le(plan.slots * geometry.slot_stride, available - plan.fixed_bytes);
		ck_assert_uint_le(geometry.slots_bytes / geometry.max_slots, geometry.slot_stride);
	}
	ck_assert_uint_gt(admitted, 100);
	ck_assert_uint_gt(refused, 100);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, slots_of_so_many_ranks);
	tcase_add_test(tcase, slots_for_those_that_open_together);
	tcase_add_test(tcase, chunks_are_whole_batches);
	tcase_add_test(tcase, chunks_hold_no_more_than_there_is);
	tcase_add_test(tcase, chunks_are_lowered_until_they_fit);
	tcase_add_test(tcase, what_was_asked_for_is_kept);
	tcase_add_test(tcase, arenas_hold_what_is_read);
	tcase_add_test(tcase, an_arena_has_large_files_for_all_workers);
	tcase_add_test(tcase, a_refusal_has_the_numbers);
	tcase_add_test(tcase, a_chunk_smaller_than_a_block);
	tcase_add_test(tcase, no_size_overflows);
}

int main(void)
{
	return suite_run("admit", add);
}
