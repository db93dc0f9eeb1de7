/* SPDX-License-Identifier: Apache-2.0 */

/* Entries of a plan log that list their samples: a part of a chunk may end inside a block. */

#include "plan/entry.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "plan/population.h"
#include "tests/suite.h"

#define N ((UINT64_C(1) << 20) - 1) /* blocks of two, the last of one */

static struct permutation permutation;
static struct entry_set set;
static struct entry_rest rest;

static void begin(void)
{
	static const uint8_t version[32] = {7};

	permutation_init(&permutation, N, version);
	ck_assert_uint_eq(permutation.block, 2);
	set = (struct entry_set){.permutation = &permutation};
	rest = (struct entry_rest){.epoch = 3};
	ck_assert_int_eq(entry_rest_init(&set, NULL, NULL, 0, &rest), 0);
	ck_assert_uint_eq(entry_rest_count(&rest), N);
}

/* What goes along with the set says what is in it. */
static void assert_counted(void)
{
	ck_assert_uint_eq(rest.samples, population_samples(&permutation, set.bits, rest.need));
	for (uint32_t i = 0; i < rest.n_tail; i++)
		ck_assert_uint_eq(rest.positions[i],
				  permutation_position(&permutation, (uint64_t)rest.tail[i]));
}

static int64_t at_position(uint64_t position)
{
	return (int64_t)permutation_sample(&permutation, position);
}

static int pass(uint64_t place, const int64_t *ids, uint32_t count, uint32_t to)
{
	const struct entry entry = {.epoch = 3, .place = place, .count = count, .ids = ids};
	int r;

	ck_assert(entry_is_good(&set, &entry));
	r = entry_rest_pass(&set, &rest, &entry, place + to);
	assert_counted();
	return r;
}

static bool is_left(int64_t id)
{
	for (uint32_t i = 0; i < rest.n_tail; i++)
		if (rest.tail[i] == id)
			return true;
	return bits_test(rest.need,
			 permutation_position(&permutation, (uint64_t)id) / permutation.block);
}

/* Blocks 10 and 50, in a chunk's order, in parts of one, two and one. */
START_TEST(parts_break_blocks)
{
	int64_t ids[4];

	begin();
	ids[0] = at_position(21);
	ids[1] = at_position(100);
	ids[2] = at_position(20);
	ids[3] = at_position(101);
	ck_assert_int_eq(pass(0, ids, 1, 1), 0);
	ck_assert_uint_eq(entry_rest_count(&rest), N - 1);
	ck_assert(!is_left(ids[0]) && is_left(ids[2]) && is_left(ids[1]) && is_left(ids[3]));
	ck_assert_int_eq(pass(1, ids + 1, 2, 1), 0); /* to its middle */
	ck_assert(!is_left(ids[1]) && is_left(ids[2]) && is_left(ids[3]));
	ck_assert_int_eq(pass(1, ids + 1, 2, 2), 0);
	ck_assert(!is_left(ids[2]) && is_left(ids[3]));
	ck_assert_uint_eq(rest.n_tail, 1);
	ck_assert_int_eq(pass(3, ids + 3, 1, 1), 0);
	ck_assert_uint_eq(rest.n_tail, 0);
	ck_assert_uint_eq(entry_rest_count(&rest), N - 4);
	ck_assert_uint_eq(rest.place, 4);
	entry_rest_fini(&rest);
}
END_TEST

START_TEST(the_short_last_block_is_whole_with_one)
{
	int64_t id;

	begin();
	id = at_position(N - 1);
	ck_assert_int_eq(pass(0, &id, 1, 1), 0);
	ck_assert(!is_left(id));
	ck_assert_uint_eq(rest.n_tail, 0);
	ck_assert_uint_eq(entry_rest_count(&rest), N - 1);
	entry_rest_fini(&rest);
}
END_TEST

/* What was there before, or stands twice in it, does not count. */
START_TEST(samples_that_are_not_left_are_found)
{
	int64_t ids[2];

	begin();
	ids[0] = at_position(8);
	ids[1] = at_position(9);
	ck_assert_int_eq(pass(0, ids, 1, 1), 0);
	ck_assert_int_eq(pass(1, ids, 2, 2), ENTRY_E_BAD);
	entry_rest_fini(&rest);
	begin();
	ids[1] = ids[0];
	ck_assert_int_eq(pass(0, ids, 2, 2), ENTRY_E_BAD);
	entry_rest_fini(&rest);
}
END_TEST

/* Of block 10 the second sample alone, of block 50 both, of block 60 none. */
START_TEST(a_population_has_its_own_samples_alone)
{
	uint64_t *bits = calloc(bits_words(N) + 1, sizeof(*bits));
	uint32_t blocks[] = {10, 50};
	struct entry entry = {.epoch = 3, .count = 3, .n_blocks = 2, .blocks = blocks};
	int64_t ids[4];

	begin();
	entry_rest_fini(&rest);
	bits_set(bits, 21);
	bits_set(bits, 100);
	bits_set(bits, 101);
	bits_set(bits, 200);
	set.bits = bits;
	ck_assert_int_eq(entry_rest_init(&set, NULL, NULL, 0, &rest), 0);
	ck_assert_uint_eq(entry_rest_count(&rest), 4);
	ck_assert(entry_is_good(&set, &entry));
	entry_samples(&set, &entry, ids);
	for (int i = 0; i < 3; i++)
		ck_assert(bits_test(bits, permutation_position(&permutation, (uint64_t)ids[i])));
	ck_assert_int_eq(entry_rest_pass(&set, &rest, &entry, 1), 0); /* into it */
	ck_assert_uint_eq(entry_rest_count(&rest), 3);
	ck_assert(!is_left(ids[0]) && is_left(ids[1]) && is_left(ids[2]));
	ck_assert_int_eq(entry_rest_pass(&set, &rest, &entry, 3), 0);
	ck_assert_uint_eq(entry_rest_count(&rest), 1);
	ids[0] = at_position(200);
	ck_assert_int_eq(pass(3, ids, 1, 1), 0);
	entry_rest_next_epoch(&set, &rest);
	ck_assert_uint_eq(rest.epoch, 4);
	ck_assert_uint_eq(entry_rest_count(&rest), 4);
	entry.count = 4;
	ck_assert(!entry_is_good(&set, &entry)); /* that many it has not */
	blocks[1] = 60;
	entry.count = 1;
	ck_assert(!entry_is_good(&set, &entry)); /* nothing of 60 is in it */
	ids[0] = at_position(20);
	entry = (struct entry){.epoch = 4, .count = 1, .ids = ids};
	ck_assert(!entry_is_good(&set, &entry));
	entry_rest_fini(&rest);
	free(bits);
}
END_TEST

/* An epoch begins, and a rest is copied, without a look at each sample of what is known. */
START_TEST(what_is_known_is_not_counted)
{
	uint64_t *bits = calloc(bits_words(N) + 1, sizeof(*bits));
	uint64_t *blocks = calloc(bits_words(N) + 1, sizeof(*blocks));
	struct entry_rest from = {.need = blocks, .samples = 5};

	begin();
	entry_rest_fini(&rest);
	bits_set(bits, 100);
	population_need(&permutation, bits, 0, permutation.blocks, blocks);
	set.bits = bits;
	set.blocks = blocks;
	set.samples = 77; /* which it is not */
	ck_assert_int_eq(entry_rest_init(&set, NULL, NULL, 0, &rest), 0);
	ck_assert_uint_eq(entry_rest_count(&rest), 77);
	ck_assert(bits_test(rest.need, 50) && !bits_test(rest.need, 51));
	entry_rest_next_epoch(&set, &rest);
	ck_assert_uint_eq(entry_rest_count(&rest), 77);
	entry_rest_fini(&rest);
	ck_assert_int_eq(entry_rest_copy(&set, &from, &rest), 0);
	ck_assert_uint_eq(entry_rest_count(&rest), 5);
	entry_rest_fini(&rest);
	free(bits);
	free(blocks);
}
END_TEST

/* What lies in a job's hands goes back, in several parts: a block is whole again when all of it is there. */
START_TEST(samples_come_back_as_blocks)
{
	int64_t ids[5];

	begin();
	ids[0] = at_position(21);
	ids[1] = at_position(100);
	ids[2] = at_position(20);
	ids[3] = (int64_t)N;
	ids[4] = -1;
	ck_assert_int_eq(entry_rest_take(&set, &rest, ids, 5), 0);
	ck_assert_uint_eq(entry_rest_count(&rest), N - 3);
	ck_assert(!is_left(ids[0]) && !is_left(ids[1]) && is_left(at_position(101)));
	ck_assert_int_eq(entry_rest_take(&set, &rest, ids, 2), 0); /* once more */
	ck_assert_uint_eq(entry_rest_count(&rest), N - 3);
	ck_assert_int_eq(entry_rest_put(&set, &rest, ids, 2), 0);
	ck_assert_uint_eq(rest.n_tail, 1);
	ck_assert(rest.tail[0] == ids[0] && bits_test(rest.need, 50));
	ck_assert_int_eq(entry_rest_put(&set, &rest, ids, 5), 0);
	ck_assert_uint_eq(rest.n_tail, 0);
	ck_assert_uint_eq(entry_rest_count(&rest), N);
	assert_counted();
	entry_rest_take_block(&set, &rest, 50);
	entry_rest_take_block(&set, &rest, 50);
	entry_rest_take_block(&set, &rest, permutation.blocks);
	ck_assert_uint_eq(entry_rest_count(&rest), N - 2);
	assert_counted();
	entry_rest_clear(&set, &rest);
	ck_assert_uint_eq(entry_rest_count(&rest), 0);
	ck_assert_int_eq(entry_rest_put(&set, &rest, ids + 1, 1), 0);
	ck_assert(is_left(ids[1]) && entry_rest_count(&rest) == 1);
	assert_counted();
	entry_rest_fini(&rest);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, parts_break_blocks);
	tcase_add_test(tcase, the_short_last_block_is_whole_with_one);
	tcase_add_test(tcase, samples_that_are_not_left_are_found);
	tcase_add_test(tcase, a_population_has_its_own_samples_alone);
	tcase_add_test(tcase, what_is_known_is_not_counted);
	tcase_add_test(tcase, samples_come_back_as_blocks);
}

int main(void)
{
	return suite_run("entry", add);
}
