/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "base/philox.h"
#include "tests/suite.h"

#include <stdlib.h>

/* The known answers that the paper's authors publish with Random123 (philox4x32, 10 rounds). */
static const struct {
	uint64_t key, a, b;
	uint32_t word[4];
} known[] = {
    {0, 0, 0, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {UINT64_MAX, UINT64_MAX, UINT64_MAX, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {0x299f31d0a4093822,
     0x85a308d3243f6a88,
     0x0370734413198a2e,
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

START_TEST(block_gives_the_published_answers)
{
	struct philox x = philox_block(known[_i].key, known[_i].a, known[_i].b);

	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(x.word[i], known[_i].word[i]);
}
END_TEST

START_TEST(sequence_walks_blocks_word_by_word)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 7, 9, 3);
	for (uint64_t block = 0; block < 5; block++) {
		struct philox x = philox_block(7, 9, UINT64_C(3) << 32 | block);

		for (int i = 0; i < 4; i++)
			ck_assert_uint_eq(philox_u32(&seq), x.word[i]);
	}
}
END_TEST

START_TEST(sequence_never_leaves_its_stream)
{
	struct philox_seq seq;
	struct philox first = philox_block(1, 2, UINT64_C(5) << 32);

	philox_seq_init(&seq, 1, 2, 5);
	seq.b |= UINT32_MAX; /* the last block of the stream */
	for (int i = 0; i < 4; i++)
		philox_u32(&seq);
	ck_assert_uint_eq(philox_u32(&seq), first.word[0]);
}
END_TEST

START_TEST(u64_and_unit_are_made_of_words)
{
	struct philox_seq seq;
	struct philox x = philox_block(11, 0, 0);
	uint64_t second = x.word[2] | (uint64_t)x.word[3] << 32;

	philox_seq_init(&seq, 11, 0, 0);
	ck_assert_uint_eq(philox_u64(&seq), x.word[0] | (uint64_t)x.word[1] << 32);
	ck_assert_double_eq(philox_unit(&seq), (double)(second >> 11) / 9007199254740992.0);
}
END_TEST

static const uint64_t bounds[] = {
    1,
    2,
    3,
    10,
    1000,
    UINT32_MAX,
    UINT64_C(1) << 32,
    (UINT64_C(1) << 32) + 1,
    UINT64_C(3) << 62,
    UINT64_MAX,
};

START_TEST(below_stays_below)
{
	struct philox_seq seq;

	philox_seq_init(&seq, 42, 0, 0);
	for (int i = 0; i < 2000; i++)
		ck_assert_uint_lt(philox_below(&seq, bounds[_i]), bounds[_i]);
}
END_TEST

/* 3 x 2^62 needs a quarter of all draws again: without the rejection the values below 2^62 would
 * come as often as those of the two other thirds together. Fixed seed, so no error rate. */
START_TEST(below_has_no_bias)
{
	uint64_t thirds[3] = {0};
	struct philox_seq seq;

	philox_seq_init(&seq, 1, 1, 1);
	for (int i = 0; i < 30000; i++)
		thirds[philox_below(&seq, UINT64_C(3) << 62) >> 62]++;
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_gt(thirds[i], 9600);
		ck_assert_uint_lt(thirds[i], 10400);
	}
}
END_TEST

/* Recorded nonces and the permutation depend on these values: a change here is a new format. */
START_TEST(draws_are_frozen)
{
	static const uint64_t small[] = {39, 88, 73, 60};
	static const uint64_t large[] = {1033164991108, 566809194511};
	struct philox_seq seq;

	philox_seq_init(&seq, 0, 0, 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(small); i++)
		ck_assert_uint_eq(philox_below(&seq, 100), small[i]);
	for (size_t i = 0; i < BASE_ARRAY_LEN(large); i++)
		ck_assert_uint_eq(philox_below(&seq, UINT64_C(1) << 40), large[i]);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_loop_test(tests, block_gives_the_published_answers, 0, BASE_ARRAY_LEN(known));
	tcase_add_test(tests, sequence_walks_blocks_word_by_word);
	tcase_add_test(tests, sequence_never_leaves_its_stream);
	tcase_add_test(tests, u64_and_unit_are_made_of_words);
	tcase_add_loop_test(tests, below_stays_below, 0, BASE_ARRAY_LEN(bounds));
	tcase_add_test(tests, below_has_no_bias);
	tcase_add_test(tests, draws_are_frozen);
}

int main(void)
{
	return suite_run("philox", add);
}
