/* SPDX-License-Identifier: Apache-2.0 */

/* The permutation at every size, its inverse, and the values that tokens and caches of all
 * versions depend on. */

#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/philox.h"
#include "plan/permutation.h"
#include "tests/suite.h"

static const uint8_t zeros[32];
static const uint8_t counting[32] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				     11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				     22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static const uint64_t sizes[] = {1,     2,     3,      4,      5,      7,      8,      9,
				 15,    16,    17,     31,     33,     63,     64,     65,
				 100,   255,   256,    257,    1000,   4095,   4097,   65535,
				 65536, 65537, 131071, 131073, 524287, 524288, 524289, 1281167};

START_TEST(every_sample_has_one_position)
{
	uint64_t n = sizes[_i];
	uint8_t *met = calloc(n, 1);
	struct permutation permutation;

	ck_assert_ptr_nonnull(met);
	permutation_init(&permutation, n, counting);
	for (uint64_t position = 0; position < n; position++) {
		uint64_t sample = permutation_sample(&permutation, position);

		if (sample >= n || met[sample] ||
		    permutation_position(&permutation, sample) != position)
			ck_abort_msg("n %lu, position %lu", (unsigned long)n,
				     (unsigned long)position);
		met[sample] = 1;
	}
	free(met);
}
END_TEST

/* As many at once as there are: also fewer than are worked at together. */
START_TEST(positions_come_many_at_once)
{
	static int64_t samples[1000];
	static uint64_t positions[1000 + 1];
	struct philox_seq random;
	struct permutation permutation;

	permutation_init(&permutation, sizes[_i], counting);
	philox_seq_init(&random, sizes[_i], 0, 0);
	for (uint32_t n = 0; n <= BASE_ARRAY_LEN(samples); n += 1 + n) {
		for (uint32_t i = 0; i < n; i++)
			samples[i] = (int64_t)philox_below(&random, sizes[_i]);
		positions[n] = UINT64_MAX;
		permutation_positions(&permutation, samples, n, positions);
		for (uint32_t i = 0; i < n; i++)
			ck_assert_uint_eq(positions[i],
					  permutation_position(&permutation, (uint64_t)samples[i]));
		ck_assert_uint_eq(positions[n], UINT64_MAX);
	}
}
END_TEST

START_TEST(large_permutations_invert)
{
	static const uint64_t large[] = {1000000000,
					 UINT64_C(1) << 30,
					 (UINT64_C(1) << 30) + 1,
					 (UINT64_C(1) << 32) - 1,
					 UINT64_C(1) << 32,
					 (UINT64_C(1) << 40) + 1,
					 INT64_MAX};
	uint64_t n = large[_i];
	struct philox_seq random;
	struct permutation permutation;

	permutation_init(&permutation, n, counting);
	philox_seq_init(&random, n, 0, 0);
	for (int i = 0; i < 20000; i++) {
		uint64_t position = philox_below(&random, n);
		uint64_t sample = permutation_sample(&permutation, position);

		ck_assert_uint_lt(sample, n);
		ck_assert_uint_eq(permutation_position(&permutation, sample), position);
	}
	ck_assert_uint_eq(
	    permutation_position(&permutation, permutation_sample(&permutation, n - 1)), n - 1);
	ck_assert_uint_eq(permutation_position(&permutation, permutation_sample(&permutation, 0)),
			  0);
}
END_TEST

START_TEST(blocks_follow_from_n)
{
	static const struct {
		uint64_t n;
		uint32_t block;
	} known[] = {{0, 1},        {1, 1},        {524288, 1},    {524289, 2},
		     {1048576, 2},  {1048577, 4},  {1281167, 4},   {2097153, 8},
		     {8388608, 16}, {8388609, 32}, {16777217, 32}, {1000000000, 32}};
	struct permutation permutation;

	for (size_t i = 0; i < BASE_ARRAY_LEN(known); i++)
		ck_assert_uint_eq(permutation_block_of(known[i].n), known[i].block);
	permutation_init(&permutation, 1281167, zeros);
	ck_assert_uint_eq(permutation.blocks, 320292);
	ck_assert_uint_eq(permutation_block_first(&permutation, 320291), 1281164);
	ck_assert_uint_eq(permutation_block_size(&permutation, 320291), 3);
	ck_assert_uint_eq(permutation_block_size(&permutation, 0), 4);
}
END_TEST

/* Frozen: a change here makes every token and cache in the field worthless. */
START_TEST(the_permutation_is_frozen)
{
	static const struct {
		uint64_t n;
		const uint8_t *version;
		uint64_t sample[4]; /* of positions 0, 1, 2, n - 1 */
	} known[] = {
	    {10, counting, {8, 7, 3, 6}},
	    {65537, counting, {38925, 5305, 5465, 45753}},
	    {1281167, zeros, {147870, 965595, 1028396, 337527}},
	    {1281167, counting, {815975, 1231912, 323878, 563651}},
	    {1000000000, counting, {544023588, 385561378, 363473711, 15535273}},
	};
	struct permutation permutation;

	permutation_init(&permutation, known[_i].n, known[_i].version);
	ck_assert_uint_eq(permutation_sample(&permutation, 0), known[_i].sample[0]);
	ck_assert_uint_eq(permutation_sample(&permutation, 1), known[_i].sample[1]);
	ck_assert_uint_eq(permutation_sample(&permutation, 2), known[_i].sample[2]);
	ck_assert_uint_eq(permutation_sample(&permutation, known[_i].n - 1), known[_i].sample[3]);
}
END_TEST

START_TEST(the_order_inside_a_chunk_is_frozen)
{
	static const uint32_t blocks[] = {2, 3, 5, 7};
	static const int64_t known[] = {131148, 290519, 115070, 477056,
					141876, 524212, 62445,  89687};
	static const int64_t known_permuted[] = {11, 12, 15, 14, 13, 10};
	int64_t ids[8], list[6] = {10, 11, 12, 13, 14, 15};
	struct permutation permutation;

	permutation_init(&permutation, 524289, counting);
	ck_assert_uint_eq(permutation_members(&permutation, NULL, 5, 6, blocks, 4, ids), 8);
	ck_assert_mem_eq(ids, known, sizeof(known));
	permutation_shuffle(5, 6, list, 6);
	ck_assert_mem_eq(list, known_permuted, sizeof(known_permuted));
}
END_TEST

START_TEST(a_chunk_holds_the_samples_of_its_blocks)
{
	static const uint32_t blocks[] = {0, 9, 262144}; /* the last is short */
	int64_t ids[6];
	struct permutation permutation;

	permutation_init(&permutation, 524289, counting);
	ck_assert_uint_eq(permutation_members(&permutation, NULL, 1, 2, blocks, 3, ids), 5);
	for (int i = 0; i < 5; i++) {
		uint64_t block = permutation_position(&permutation, (uint64_t)ids[i]) / 2;

		ck_assert(block == 0 || block == 9 || block == 262144);
		for (int k = 0; k < i; k++)
			ck_assert_int_ne(ids[i], ids[k]);
	}
	ck_assert_uint_eq(permutation_members(&permutation, NULL, 1, 2, blocks, 0, ids), 0);
}
END_TEST

START_TEST(permutations_of_other_versions_differ)
{
	uint8_t version[32] = {0};
	struct permutation permutation, other;

	permutation_init(&permutation, 100000, zeros);
	for (int i = 0; i < 32; i++) {
		unsigned same = 0;

		version[i] = 1;
		permutation_init(&other, 100000, version);
		version[i] = 0;
		for (uint64_t k = 0; k < 1000; k++)
			same +=
			    permutation_sample(&permutation, k) == permutation_sample(&other, k);
		ck_assert_uint_lt(same, 5); /* 0.01 expected */
	}
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, every_sample_has_one_position, 0, BASE_ARRAY_LEN(sizes));
	tcase_add_loop_test(t, positions_come_many_at_once, 0, BASE_ARRAY_LEN(sizes));
	tcase_add_loop_test(t, large_permutations_invert, 0, 7);
	tcase_add_test(t, blocks_follow_from_n);
	tcase_add_loop_test(t, the_permutation_is_frozen, 0, 5);
	tcase_add_test(t, the_order_inside_a_chunk_is_frozen);
	tcase_add_test(t, a_chunk_holds_the_samples_of_its_blocks);
	tcase_add_test(t, permutations_of_other_versions_differ);
}

int main(void)
{
	return suite_run("permutation", add);
}
