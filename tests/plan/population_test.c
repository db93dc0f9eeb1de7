/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parts of a dataset: what is in them, and that they do not make the orders of others crooked.
 */

#include "plan/population.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/bits.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "sched/carousel_state.h"
#include "tests/invariants/invariants.h"
#include "tests/suite.h"

static const uint8_t version[32] = {7, 1, 4};

static uint64_t *all_of(const struct permutation *permutation)
{
	uint64_t *bits = calloc(bits_words(permutation->n) + 1, sizeof(*bits));

	ck_assert_ptr_nonnull(bits);
	bits_fill(bits, permutation->n);
	return bits;
}

static uint64_t *part_of(const struct permutation *permutation, double from, double to,
			 uint64_t seed)
{
	struct population_split split = {.from = from, .to = to, .seed = seed};
	uint64_t *bits = all_of(permutation);

	population_keep_split(permutation, version, &split, bits);
	return bits;
}

/* ---- counting ---- */

/* A need of every third block, and of all of some words. */
static uint64_t *some_need(const struct permutation *permutation)
{
	uint64_t *need = calloc(bits_words(permutation->blocks) + 1, sizeof(*need));

	for (uint64_t block = 0; block < permutation->blocks; block++)
		if (block % 3 == 0 || block / 64 % 4 == 1)
			bits_set(need, block);
	return need;
}

START_TEST(a_count_in_parts_is_that_of_the_whole)
{
	static const uint64_t ns[] = {1, 1000, 65537, (1 << 20) - 1, 5000011};
	struct permutation permutation;
	uint64_t *bits, *need;

	permutation_init(&permutation, ns[_i], version);
	bits = part_of(&permutation, 0, .5, 5);
	need = some_need(&permutation);
	for (int is_part = 0; is_part < 2; is_part++) {
		const uint64_t *of = is_part ? bits : NULL;
		uint64_t sum = 0, all = 0;

		for (uint64_t block = 0; block < permutation.blocks; block++)
			if (bits_test(need, block))
				all += of ? population_of_block(&permutation, of, block)
					  : permutation_block_size(&permutation, block);
		for (uint64_t at = 0, end; at < bits_words(permutation.blocks); at = end) {
			end = BASE_MIN(at + 1 + at % 7, bits_words(permutation.blocks));
			sum += population_samples_in(&permutation, of, need, at, end);
		}
		ck_assert_uint_eq(
		    sum, permutation.block == 1 && of ? bits_count(need, permutation.n) : all);
		ck_assert_uint_eq(sum, population_samples(&permutation, of, need));
	}
	free(bits);
	free(need);
}
END_TEST

/* Of 10^8 samples that takes some milliseconds: who joins in one turn of a loop has counted before, in several. */
START_TEST(a_join_counts_nothing_that_was_counted)
{
	struct carousel_config config = {
	    .n = 5000011, .chunk = 64, .slots = 2, .max_slots = 2, .producing = 1, .seed = 1};
	struct carousel_join join = {.batch = 1, .ranks = 1, .is_counted = true};
	struct carousel *carousel;
	uint64_t *bits, *need, words;
	uint32_t job;

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	bits = part_of(carousel_permutation(carousel), 0, .5, 5);
	words = bits_words(carousel_permutation(carousel)->blocks);
	need = calloc(words + 1, sizeof(*need));
	population_need(carousel_permutation(carousel), bits, 0,
			carousel_permutation(carousel)->blocks, need);
	join.population = bits;
	join.need = need;
	join.need_samples = population_samples(carousel_permutation(carousel), bits, need);
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), 0);
	ck_assert_ptr_null(carousel_check(carousel));
	carousel_leave(carousel, job, 1);
	join.need_samples--;
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), 0);
	ck_assert_ptr_nonnull(carousel_check(carousel)); /* it was believed */
	carousel_free(carousel);
	free(bits);
	free(need);
}
END_TEST

/* ---- splits ---- */

static const uint64_t sizes[] = {1, 2, 3, 10, 1000, 65537, (1 << 19) + 1, 1281167};

START_TEST(folds_have_each_sample_once)
{
	const double cuts[] = {0, .1, .35, .8, .9, 1};
	struct permutation permutation;
	uint64_t *seen, sum = 0;

	permutation_init(&permutation, sizes[_i], version);
	seen = calloc(bits_words(permutation.n) + 1, sizeof(*seen));
	for (unsigned fold = 0; fold + 1 < BASE_ARRAY_LEN(cuts); fold++) {
		uint64_t *bits = part_of(&permutation, cuts[fold], cuts[fold + 1], 5);
		double wanted = (cuts[fold + 1] - cuts[fold]) * (double)permutation.n;
		uint64_t count = bits_count(bits, permutation.n);

		ck_assert_double_le(fabs((double)count - wanted), permutation.block + .5);
		for (size_t i = 0; i < bits_words(permutation.n); i++) {
			ck_assert_uint_eq(seen[i] & bits[i], 0);
			seen[i] |= bits[i];
		}
		sum += count;
		if (fold > 0 && fold + 2 < BASE_ARRAY_LEN(cuts)) { /* what it leaves */
			uint64_t *rest = part_of(&permutation, cuts[fold + 1], cuts[fold], 5);

			ck_assert_uint_eq(bits_count(rest, permutation.n), permutation.n - count);
			for (size_t i = 0; i < bits_words(permutation.n); i++)
				ck_assert_uint_eq(rest[i] & bits[i], 0);
			free(rest);
		}
		free(bits);
	}
	ck_assert_uint_eq(sum, permutation.n);
	free(seen);
}
END_TEST

START_TEST(splits_are_whole_blocks)
{
	struct population_split split = {.from = .25, .to = .5, .seed = 9};
	uint64_t *bits, *need;
	struct permutation permutation;

	permutation_init(&permutation, sizes[_i], version);
	bits = part_of(&permutation, split.from, split.to, split.seed);
	need = calloc(bits_words(permutation.blocks) + 1, sizeof(*need));
	population_need(&permutation, bits, 0, permutation.blocks, need);
	for (uint64_t block = 0; block < permutation.blocks; block++) {
		bool is_in = population_has_block(&permutation, version, &split, block);

		ck_assert_uint_eq(population_of_block(&permutation, bits, block),
				  is_in ? permutation_block_size(&permutation, block) : 0);
		ck_assert(bits_test(need, block) == is_in);
	}
	ck_assert_uint_eq(population_samples(&permutation, bits, need),
			  bits_count(bits, permutation.n));
	ck_assert_uint_eq(population_samples(&permutation, NULL, need),
			  bits_count(bits, permutation.n));
	free(bits);
	free(need);
}
END_TEST

/* Seeds and versions have parts of their own, as different as chance makes them. */
START_TEST(seeds_split_anew)
{
	struct permutation permutation;
	uint64_t *a, *b, both = 0;

	permutation_init(&permutation, 20000, version);
	a = part_of(&permutation, 0, .5, 1);
	b = part_of(&permutation, 0, .5, 2);
	for (size_t i = 0; i < bits_words(permutation.n); i++)
		both += (unsigned)__builtin_popcountll(a[i] & b[i]);
	ck_assert_uint_ge(both, 4800); /* 5000 +- 35 */
	ck_assert_uint_le(both, 5200);
	free(a);
	free(b);
}
END_TEST

/* The members' ids, ascending. */
static void list_members(const struct permutation *permutation, const uint64_t *bits,
			 int64_t *ret_ids)
{
	uint64_t count = 0;

	for (uint64_t id = 0; id < permutation->n; id++)
		if (bits_test(bits, permutation_position(permutation, id)))
			ret_ids[count++] = (int64_t)id;
}

/* Tokens name splits, so what is in them may never change. */
START_TEST(splits_are_frozen)
{
	static const int64_t frozen[] = {12, 34, 43, 58, 78, 79, 85, 87, 89, 97};
	struct permutation permutation;
	uint64_t *bits;
	int64_t ids[10];

	permutation_init(&permutation, 100, version);
	bits = part_of(&permutation, .9, 1, 42);
	ck_assert_uint_eq(bits_count(bits, 100), 10);
	list_members(&permutation, bits, ids);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_int_eq(ids[i], frozen[i]);
	free(bits);
}
END_TEST

/* ---- ids and classes ---- */

START_TEST(ids_are_a_set)
{
	const int64_t good[] = {3, 0, 99, 41}, twice[] = {3, 5, 3}, far[] = {1, 2, 100};
	const int64_t below[] = {-1};
	uint64_t bits[2] = {0, 0};
	struct permutation permutation;
	int64_t ids[4];

	permutation_init(&permutation, 100, version);
	ck_assert_uint_eq(population_add_ids(&permutation, good, 4, bits), 0);
	ck_assert_uint_eq(bits_count(bits, 100), 4);
	list_members(&permutation, bits, ids);
	ck_assert_int_eq(ids[0], 0);
	ck_assert_int_eq(ids[1], 3);
	ck_assert_int_eq(ids[2], 41);
	ck_assert_int_eq(ids[3], 99);
	memset(bits, 0, sizeof(bits));
	ck_assert_uint_eq(population_add_ids(&permutation, twice, 3, bits), 3);
	memset(bits, 0, sizeof(bits));
	ck_assert_uint_eq(population_add_ids(&permutation, far, 3, bits), 3);
	memset(bits, 0, sizeof(bits));
	ck_assert_uint_eq(population_add_ids(&permutation, below, 1, bits), 1);
}
END_TEST

START_TEST(classes_are_filtered)
{
	const bool wanted[3] = {false, true, false};
	uint32_t labels[300];
	struct permutation permutation;
	uint64_t *bits;

	permutation_init(&permutation, BASE_ARRAY_LEN(labels), version);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(labels); i++)
		labels[i] = i % 3;
	bits = part_of(&permutation, 0, .5, 1);
	population_keep_classes(&permutation, labels, wanted, bits);
	for (unsigned id = 0; id < BASE_ARRAY_LEN(labels); id++)
		if (bits_test(bits, permutation_position(&permutation, id)))
			ck_assert_uint_eq(labels[id], 1);
	ck_assert_uint_ge(bits_count(bits, permutation.n), 30);
	ck_assert_uint_le(bits_count(bits, permutation.n), 70);
	free(bits);
}
END_TEST

START_TEST(sets_lie_within_each_other)
{
	struct permutation permutation;
	uint64_t *all, *part, *other;

	permutation_init(&permutation, 1000, version);
	all = all_of(&permutation);
	part = part_of(&permutation, .2, .6, 3);
	other = part_of(&permutation, .5, .9, 3);
	ck_assert_uint_eq(population_differ(part, all, bits_words(1000)), POPULATION_B);
	ck_assert_uint_eq(population_differ(part, part, bits_words(1000)), 0);
	ck_assert_uint_eq(population_differ(all, part, bits_words(1000)), POPULATION_A);
	ck_assert_uint_eq(population_differ(part, other, bits_words(1000)),
			  POPULATION_A | POPULATION_B);
	free(all);
	free(part);
	free(other);
}
END_TEST

/* ---- made in steps ---- */

#define LARGE (UINT64_C(3) << 22) /* samples: three steps of a bitmap */

static struct carousel *carousel_of(uint64_t n)
{
	struct carousel_config config = {
	    .n = n, .chunk = 64, .slots = 4, .max_slots = 4, .producing = 1, .seed = 5};
	struct carousel *carousel;

	memcpy(config.version, version, sizeof(version));
	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	return carousel;
}

/* The samples at the first places; of what is not a part, many a block is begun. */
static uint64_t *first_of(uint64_t n, uint64_t count)
{
	uint64_t *bits = calloc(bits_words(n), sizeof(*bits));

	ck_assert_ptr_nonnull(bits);
	bits_fill(bits, count);
	return bits;
}

static struct carousel_population *make(struct carousel *carousel, uint64_t *bits)
{
	struct carousel_population *made = carousel_population_new(carousel, bits, false);

	ck_assert_ptr_nonnull(made);
	return made;
}

static unsigned steps_of(struct carousel *carousel, struct carousel_population *made)
{
	unsigned steps = 1;

	while (!carousel_population_step(carousel, made))
		steps++;
	ck_assert(carousel_population_is_ready(carousel, made));
	return steps;
}

static uint32_t join_made(struct carousel *carousel, const uint64_t *bits,
			  struct carousel_population *made)
{
	const struct carousel_join join = {
	    .batch = 1, .ranks = 1, .population = bits, .made = made};
	uint32_t job;

	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), 0);
	return carousel->jobs[job].population;
}

/* Whose work is as much as it has samples, and as much again for each other one that it is like. */
START_TEST(one_is_made_in_steps)
{
	struct carousel *carousel = carousel_of(LARGE);
	uint64_t *large = first_of(LARGE, LARGE - 1), *small = first_of(LARGE, LARGE / 2 + 1);
	uint64_t *same = first_of(LARGE, LARGE / 2 + 1);
	struct carousel_population *a = make(carousel, large), *b = make(carousel, small);
	struct carousel_population *c = make(carousel, same);
	uint32_t outer, inner;

	ck_assert_uint_eq(steps_of(carousel, a), 3 + 1);
	ck_assert_uint_eq(steps_of(carousel, b), 3 + 1);
	ck_assert_uint_eq(steps_of(carousel, c), 3 + 1);
	outer = join_made(carousel, large, a);
	ck_assert(!carousel_population_is_ready(carousel, b));
	ck_assert_uint_eq(steps_of(carousel, b), 3 + 1);
	inner = join_made(carousel, small, b);
	ck_assert_uint_eq(join_made(carousel, small, b), inner); /* a group, then its rank */
	ck_assert_uint_eq(steps_of(carousel, c), 3 + 3 + 1);
	ck_assert_uint_eq(join_made(carousel, same, c), inner);
	ck_assert(carousel_population_is_within(carousel, inner, outer));
	ck_assert(!carousel_population_is_within(carousel, outer, inner));
	carousel_population_end(a); /* its job keeps it */
	carousel_population_end(c);
	ck_assert_ptr_null(carousel_check(carousel));
	carousel_population_end(b);
	carousel_free(carousel);
}
END_TEST

/* Whatever comes and goes while it is made, it is known which lies within which. */
START_TEST(it_is_known_what_lies_within)
{
	enum { SIZE = 200, MOST = 24 };
	struct carousel *carousel = carousel_of(SIZE);
	struct {
		uint64_t count;
		uint32_t job, index;
		bool is_there;
	} jobs[MOST] = {{0}};
	struct philox_seq random;

	philox_seq_init(&random, 11, 4, 0);
	for (unsigned i = 0; i < 2000; i++) {
		unsigned at = (unsigned)philox_below(&random, MOST);
		uint64_t *bits;
		struct carousel_join join = {.batch = 1, .ranks = 1};

		if (jobs[at].is_there) {
			carousel_leave(carousel, jobs[at].job, 1);
			jobs[at].is_there = false;
			continue;
		}
		jobs[at].count = 1 + philox_below(&random, 12);
		jobs[at].is_there = true;
		bits = first_of(SIZE, jobs[at].count);
		join.population = bits;
		if (philox_below(&random, 2))
			join.made = make(carousel, bits);
		ck_assert_int_eq(carousel_join(carousel, &join, 1, &jobs[at].job), 0);
		jobs[at].index = carousel->jobs[jobs[at].job].population;
		if (join.made)
			carousel_population_end(join.made);
		else
			free(bits);
		for (unsigned k = 0; k < MOST; k++) {
			if (!jobs[k].is_there)
				continue;
			ck_assert(carousel_population_is_within(carousel, jobs[at].index,
								jobs[k].index) ==
				  (jobs[at].count <= jobs[k].count));
			ck_assert(carousel_population_is_within(carousel, jobs[k].index,
								jobs[at].index) ==
				  (jobs[k].count <= jobs[at].count));
			ck_assert((jobs[k].index == jobs[at].index) ==
				  (jobs[k].count == jobs[at].count));
		}
	}
	carousel_free(carousel);
}
END_TEST

/* ---- orders beside a class filter ---- */

/*
 * Two jobs at random speeds, one of everything, one of the first CLASS ids, few slots, so that chunks
 * are given up as well. Counted is what the job of everything gets: how many of the class are in
 * each batch, by the batch's place in the epoch.
 */
enum { N = 600, CLASS = 120, BATCH = 30, BATCHES = N / BATCH, EPOCHS = 1500, SLOTS = 5 };

struct reader {
	uint32_t number, slots[SLOTS], n_slots;
	unsigned speed;
};

struct tally {
	uint64_t of[BATCHES];      /* the class's samples, by place */
	uint64_t with[BATCH + 1];  /* batches, by how many they have */
	uint64_t epochs, at, mine; /* samples of this epoch; of the class in this batch */
};

static void tally_add(struct tally *tally, int64_t id)
{
	tally->mine += id < CLASS;
	if (++tally->at % BATCH)
		return;
	tally->of[tally->at / BATCH - 1] += tally->mine;
	tally->with[tally->mine]++;
	tally->mine = 0;
	if (tally->at < N)
		return;
	tally->at = 0;
	tally->epochs++;
}

static void settle(struct carousel *carousel, struct reader *readers, uint64_t now_ns)
{
	struct carousel_action action;

	for (;;) {
		struct reader *reader = &readers[0];

		carousel_step(carousel, now_ns, &action);
		if (action.kind == CAROUSEL_NONE)
			return;
		while (reader->number != action.job)
			reader++;
		if (action.kind == CAROUSEL_PRODUCE) {
			carousel_produced(carousel, action.slot);
		} else if (action.kind == CAROUSEL_GRANT) {
			reader->slots[reader->n_slots++] = action.slot;
		} else if (action.kind == CAROUSEL_REVOKE) {
			uint32_t at = 0;

			while (reader->slots[at] != action.slot)
				at++;
			memmove(reader->slots + at, reader->slots + at + 1,
				(--reader->n_slots - at) * sizeof(reader->slots[0]));
			carousel_reclaimed(carousel, action.job, action.slot, now_ns);
		}
	}
}

static void read_one(struct carousel *carousel, struct reader *reader, struct tally *tally,
		     uint64_t now_ns)
{
	uint32_t slot = reader->slots[0];
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, slot);

	memmove(reader->slots, reader->slots + 1, --reader->n_slots * sizeof(reader->slots[0]));
	carousel_taken(carousel, reader->number, slot, now_ns);
	for (uint32_t i = 0; i < chunk->count && tally; i++)
		tally_add(tally, chunk->ids[i]);
	carousel_done(carousel, reader->number, slot, now_ns);
}

/* lies: the class is said to be a random part. */
static void run(unsigned speed, bool lies, struct tally *ret)
{
	struct carousel_config config = {.n = N,
					 .chunk = 2 * BATCH,
					 .slots = SLOTS,
					 .max_slots = SLOTS,
					 .producing = 1,
					 .seed = 5};
	struct carousel_join whole = {.batch = BATCH, .ranks = 1}, part = whole;
	struct reader readers[2] = {{.speed = 10}, {.speed = speed}};
	uint64_t bits[N / 64 + 1] = {0}, now_ns = 1;
	struct carousel *carousel;
	struct philox_seq random;

	memcpy(config.version, version, sizeof(version));
	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	for (uint64_t id = 0; id < CLASS; id++)
		bits_set(bits, permutation_position(carousel_permutation(carousel), id));
	part.population = bits;
	part.is_random = lies;
	ck_assert_int_eq(carousel_join(carousel, &whole, 1, &readers[0].number), 0);
	ck_assert_int_eq(carousel_join(carousel, &part, 1, &readers[1].number), 0);
	philox_seq_init(&random, speed, 3, 0);
	*ret = (struct tally){0};
	while (ret->epochs < EPOCHS) {
		bool second = philox_below(&random, 10 + speed) >= 10;

		now_ns += 1000000;
		settle(carousel, readers, now_ns);
		carousel_waiting(carousel, readers[second].number, !readers[second].n_slots);
		if (readers[second].n_slots)
			read_one(carousel, &readers[second], second ? NULL : ret, now_ns);
	}
	ck_assert_ptr_null(carousel_check(carousel));
	carousel_free(carousel);
}

static double log_choose(double n, double k)
{
	return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1);
}

/* How far the tally is from what chance gives, in standard deviations: the worst of the means by
 * place, and the chi-square of the counts over all batches. */
static double distance(const struct tally *tally)
{
	double mean = (double)BATCH * CLASS / N, worst = 0, chi = 0;
	double variance = mean * (1 - (double)CLASS / N) * (N - BATCH) / (N - 1);
	double batches = (double)BATCHES * (double)tally->epochs;
	unsigned cells = 0;

	for (unsigned i = 0; i < BATCHES; i++) {
		double average = (double)tally->of[i] / (double)tally->epochs;

		worst = fmax(worst, fabs(average - mean) / sqrt(variance / (double)tally->epochs));
	}
	for (unsigned k = 0; k <= BATCH; k++) {
		double expected =
		    batches * exp(log_choose(CLASS, k) + log_choose(N - CLASS, BATCH - k) -
				  log_choose(N, BATCH));

		if (expected < 20)
			continue;
		chi += pow((double)tally->with[k] - expected, 2) / expected;
		cells++;
	}
	return fmax(worst, (chi - cells) / sqrt(2.0 * cells));
}

static const unsigned speeds[] = {1, 3, 10, 30};

START_TEST(a_class_beside_leaves_the_order_random)
{
	struct tally tally;

	run(speeds[_i], false, &tally);
	ck_assert_double_le(distance(&tally), 6);
}
END_TEST

/* What it would be if the class's need had a say: the test would see it. */
START_TEST(a_class_that_has_a_say_is_found)
{
	struct tally tally;

	run(10, true, &tally);
	ck_assert_double_ge(distance(&tally), 12);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, folds_have_each_sample_once, 0, BASE_ARRAY_LEN(sizes));
	tcase_add_loop_test(tcase, splits_are_whole_blocks, 0, BASE_ARRAY_LEN(sizes));
	tcase_add_loop_test(tcase, a_count_in_parts_is_that_of_the_whole, 0, 5);
	tcase_add_test(tcase, a_join_counts_nothing_that_was_counted);
	tcase_add_test(tcase, seeds_split_anew);
	tcase_add_test(tcase, splits_are_frozen);
	tcase_add_test(tcase, ids_are_a_set);
	tcase_add_test(tcase, classes_are_filtered);
	tcase_add_test(tcase, sets_lie_within_each_other);
	tcase_add_test(tcase, one_is_made_in_steps);
	tcase_add_test(tcase, it_is_known_what_lies_within);
	tcase_add_loop_test(tcase, a_class_beside_leaves_the_order_random, 0,
			    BASE_ARRAY_LEN(speeds));
	tcase_add_test(tcase, a_class_that_has_a_say_is_found);
}

int main(void)
{
	return suite_run("population", add);
}
