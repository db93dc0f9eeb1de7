/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Slices: whatever n, B, R, the nodes' ranks, drop_last and the place to begin at are, the slices of
 * all nodes have each place of the steps once, local places follow each other without a gap, and what
 * a rank reads is where the arithmetic says. And the carousel makes a slice's chunks and no others.
 */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "plan/ranks/spread.h"
#include "tests/histories.h"
#include "tests/suite.h"
#include "tests/invariants/invariants.h"

#define CASES_A_TEST 10000
#define TESTS HISTORIES_OF(8)
#define MAX_N 600
#define MOST_RANKS 16

/* The first broken promise of a case. ck_assert() for each sample would take minutes. */
static const char *broken;

static void claim(bool holds, const char *otherwise)
{
	if (!holds && !broken)
		broken = otherwise;
}

static void draw(struct philox_seq *random, uint64_t n, uint64_t base, struct ranks *ret)
{
	*ret = (struct ranks){
	    .n = n,
	    .base = base,
	    .batch = 1 + (uint32_t)philox_below(random, philox_below(random, 2) ? 8 : 80),
	    .ranks = 1 + (uint32_t)philox_below(random, MOST_RANKS),
	    .drop_last = philox_below(random, 4) == 0,
	};
}

/* Each place that a local one stands for is counted; from where the ranks begin on, those below are others'. */
static void count_places(const struct slice *slice, uint64_t from, uint8_t *seen)
{
	uint64_t places = slice_places(slice), place, run, last = 0;

	claim(slice_local(slice, slice->ranks.n) == places, "there are local places past the end");
	for (uint64_t local = slice_local(slice, from); local < places && !broken; local += run) {
		run = slice_run(slice, local, &place);
		claim(run > 0 && local + run <= places && place + run <= slice->ranks.n,
		      "a run is none");
		claim(place >= from && place >= last,
		      "a place came that was delivered, or out of order");
		for (uint64_t i = 0; i < run && !broken; i++) {
			seen[place + i]++;
			claim(slice_local(slice, place + i) == local + i,
			      "there and back is another place");
		}
		last = place + run;
	}
}

/* What a rank reads lies side by side in its node's slice, right behind what it read before. */
static void check_rank(const struct slice *slice, const struct ranks *ranks, uint32_t rank)
{
	uint64_t first, place, at = slice_local(slice, ranks->base);

	for (uint64_t step = 0; step < ranks_steps(ranks) && !broken; step++) {
		uint32_t count = ranks_part(ranks, rank, step, &first);
		uint64_t local = slice_local(slice, first);

		claim(local >= at, "a batch lies before the one before");
		claim(!count || (slice_run(slice, local, &place) >= count && place == first),
		      "a batch is no run of local places");
		at = local + count;
	}
}

/* The slices of nodes of any sizes, from a place on; then again from where some steps end. */
static void run_case(struct philox_seq *random)
{
	uint64_t n = philox_below(random, MAX_N), place = 0;
	uint8_t seen[MAX_N] = {0};

	for (int part = 0; place < n && !broken; part++) {
		struct ranks ranks;
		uint64_t steps, end;

		draw(random, n, place, &ranks);
		steps = ranks_steps(&ranks);
		if (part < 4)
			steps = philox_below(random, steps + 1);
		end = ranks_place(&ranks, steps);
		memset(seen + place, 0, MAX_N - place);
		for (uint32_t first = 0, count; first < ranks.ranks && !broken; first += count) {
			struct slice slice;

			count = 1 + (uint32_t)philox_below(random, ranks.ranks - first);
			slice_init(&slice, &ranks, first, count);
			claim(slice_is_whole(&slice) == (count == ranks.ranks), "whole or not?");
			count_places(&slice, place, seen);
			for (uint32_t rank = first; rank < first + count; rank++)
				check_rank(&slice, &ranks, rank);
		}
		for (uint64_t i = place; i < n; i++)
			claim(seen[i] == 1 || ranks.drop_last, "a place is not in one slice");
		for (uint64_t i = place;
		     i < place + ranks_steps(&ranks) * ranks.batch * ranks.ranks; i++)
			claim(i >= n || seen[i] == 1, "a place of a step is not in one slice");
		place = end;
	}
}

START_TEST(slices_partition_each_step)
{
	struct philox_seq random;
	int i;

	philox_seq_init(&random, 79, (uint64_t)_i, 0);
	for (i = 0; i < CASES_A_TEST && !broken; i++)
		run_case(&random);
	ck_assert_msg(!broken, "case %d: %s", i, broken);
}
END_TEST

/* 22 places, B = 2, R = 5, ranks 1 to 3: 2 .. 7, 12 .. 17, and of the last two places the second. */
START_TEST(a_slice_by_hand)
{
	static const uint64_t places[] = {2, 3, 4, 5, 6, 7, 12, 13, 14, 15, 16, 17, 21};
	struct ranks ranks = {.n = 22, .batch = 2, .ranks = 5};
	struct slice slice, other;
	uint64_t place;

	slice_init(&slice, &ranks, 1, 3);
	ck_assert_uint_eq(slice_places(&slice), 13);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(places); i++) {
		slice_run(&slice, i, &place);
		ck_assert_uint_eq(place, places[i]);
		ck_assert_uint_eq(slice_local(&slice, place), i);
	}
	ck_assert_uint_eq(slice_run(&slice, 1, &place), 5);
	ranks.base = 10; /* a whole step on: the same chunks */
	slice_init(&other, &ranks, 1, 3);
	ck_assert(slice_is_same(&slice, &other));
	ranks.base = 11;
	slice_init(&other, &ranks, 1, 3);
	ck_assert(!slice_is_same(&slice, &other));
	ranks.base = 0;
	slice_init(&other, &ranks, 0, 3);
	ck_assert(!slice_is_same(&slice, &other));
	slice_init(&other, &ranks, 0, 5);
	ck_assert(!slice_is_same(&slice, &other) && slice_is_whole(&other));
	ranks.drop_last = true;
	slice_init(&other, &ranks, 1, 3);
	ck_assert(!slice_is_same(&slice, &other));
	ck_assert_uint_eq(slice_places(&other), 12);
}
END_TEST

/* ---- with a spread ---- */

static void draw_even(struct philox_seq *random, uint64_t n, uint32_t *ret_nodes, struct slice *ret)
{
	struct ranks ranks = {.n = n, .batch = 1 + (uint32_t)philox_below(random, 9)};

	*ret_nodes = 2 + (uint32_t)philox_below(random, 38);
	*ret = (struct slice){.count = 1 + (uint32_t)philox_below(random, 4), .is_spread = true};
	ranks.ranks = *ret_nodes * ret->count;
	ranks.base = philox_below(random, BASE_MIN(n + 1, (uint64_t)ranks.batch * ranks.ranks));
	ranks.drop_last = philox_below(random, 4) == 0;
	ret->ranks = ranks;
}

/* Each step is the set that it is without a spread, whatever n, B, R, L and the place to begin at are; chunks
 * of any size have the same samples at the same local places. */
START_TEST(a_spread_keeps_each_step)
{
	struct philox_seq random;
	struct plan plan;
	int i;

	philox_seq_init(&random, 80, (uint64_t)_i, 0);
	for (i = 0; i < CASES_A_TEST / 10 && !broken; i++) {
		uint64_t n = 1 + philox_below(&random, MAX_N), share, place;
		uint8_t seen[MAX_N] = {0};
		int64_t ids[MAX_N], all[MAX_N], some[MAX_N];
		struct slice slice;
		uint32_t nodes;

		plan_init(&plan, philox_below(&random, 4) ? PLAN_SEEDED : PLAN_SEQUENTIAL, n,
			  philox_u64(&random), (const uint8_t[32]){(uint8_t)n}, false);
		draw_even(&random, n, &nodes, &slice);
		claim(spread_is_even(&slice), "even nodes are not");
		plan_samples(&plan, 2, 0, (uint32_t)n, all);
		for (uint32_t node = 0; node < nodes; node++) {
			uint64_t places, at = 0, first, count;

			slice.first = node * slice.count;
			places = slice_places(&slice);
			spread_samples(&slice, &plan, 2, 0, (uint32_t)places, ids);
			first = philox_below(&random, places + 1);
			count = philox_below(&random, places - first + 1);
			spread_samples(&slice, &plan, 2, first, (uint32_t)count, some);
			claim(memcmp(some, ids + first, count * sizeof(*ids)) == 0,
			      "a chunk has others at its places");
			for (uint64_t step = 0; step < ranks_steps(&slice.ranks); step++) {
				share = slice_share(&slice, step, &place);
				for (uint64_t k = 0; k < share; k++, at++)
					seen[ids[at]] +=
					    seen[ids[at]] == 0 ? (uint8_t)(1 + step % 200) : 255;
			}
			claim(at == places, "the steps are not the slice");
		}
		for (uint64_t step = 0, at = slice.ranks.base; step < ranks_steps(&slice.ranks);
		     step++)
			for (uint64_t k = 0; k < slice.ranks.batch * slice.ranks.ranks && at < n;
			     k++, at++)
				claim(seen[all[at]] == 1 + step % 200, "a step is another set");
	}
	ck_assert_msg(!broken, "case %d: %s", i, broken);
}
END_TEST

/* Nodes reckon it each for itself: who gives another node a sample gives SPREAD_ARITHMETIC another number, too. */
START_TEST(a_spread_is_frozen)
{
	struct slice slice = {
	    .ranks = {.n = MAX_N, .batch = 5, .ranks = 14}, .count = 2, .is_spread = true};
	uint64_t sum = SPREAD_ARITHMETIC;
	int64_t ids[MAX_N];
	struct plan plan;

	plan_init(&plan, PLAN_SEEDED, MAX_N, 3, (const uint8_t[32]){1, 2, 3}, false);
	for (slice.first = 0; slice.first < 14; slice.first += 2) {
		const uint32_t places = (uint32_t)slice_places(&slice);

		spread_samples(&slice, &plan, 4, 0, places, ids);
		for (uint32_t i = 0; i < places; i++)
			sum = sum * 31 + (uint64_t)ids[i];
	}
	ck_assert_uint_eq(sum, UINT64_C(1259953485421592358));
}
END_TEST

/* 16 nodes, 256 samples a node and step: of what a node gets in each epoch it owns 97.7 %, so that with other nodes, who give
 * it what it owns, it has that from the second on. Alone, of what it gets in the second epoch it has had 95 % before, which is
 * that twice; of what it gets in the third, whatever went elsewhere once, 97 %. */
START_TEST(most_samples_go_to_their_owner)
{
	enum { NODES = 16, BATCH = 256, STEPS = 6, MANY = NODES * BATCH * STEPS, TIMES = 3 };
	static int64_t ids[BATCH * STEPS];
	unsigned owned[TIMES] = {0};
	struct slice slice = {
	    .ranks = {.n = MANY, .batch = BATCH, .ranks = NODES}, .count = 1, .is_spread = true};
	double share[2][TIMES];
	struct plan plan;

	plan_init(&plan, PLAN_SEEDED, MANY, 3, (const uint8_t[32]){1}, false);
	for (int is_spread = 0; is_spread < 2; is_spread++) {
		uint16_t had[MANY] = {0}; /* a bit a node */

		for (uint64_t epoch = 0; epoch < TIMES; epoch++) {
			unsigned known = 0;

			for (slice.first = 0; slice.first < NODES; slice.first++) {
				uint64_t place;

				if (is_spread)
					spread_samples(&slice, &plan, epoch, 0, BATCH * STEPS, ids);
				for (uint32_t i = 0; i < BATCH * STEPS && !is_spread; i++) {
					slice_run(&slice, i, &place);
					plan_samples(&plan, epoch, place, 1, &ids[i]);
				}
				for (uint32_t i = 0; i < BATCH * STEPS; i++) {
					owned[epoch] +=
					    is_spread && owner_of_spread(1, (uint64_t)ids[i],
									 NODES) == slice.first;
					known += had[ids[i]] >> slice.first & 1;
					had[ids[i]] |= (uint16_t)(1 << slice.first);
				}
			}
			share[is_spread][epoch] = 1. * known / MANY;
		}
	}
	printf("had before in the second epoch: %.3f, in the third: %.3f; without a spread %.3f, "
	       "%.3f\n",
	       share[1][1], share[1][2], share[0][1], share[0][2]);
	for (unsigned epoch = 0; epoch < TIMES; epoch++)
		ck_assert_msg(owned[epoch] > .97 * MANY, "owned: %.3f", 1. * owned[epoch] / MANY);
	ck_assert(share[0][1] < .1);
	ck_assert(share[1][1] > .95);
	ck_assert(share[1][2] > .97);
}
END_TEST

/* Where the nodes are one cell their numbers say whose a sample is in every step. */
START_TEST(places_are_those_of_one_cell)
{
	static const struct {
		uint32_t batch, ranks, first, count;
		bool is_spread, has_place;
	} cases[] = {
	    {256, 16, 5, 1, true, true},  {256, 17, 5, 1, true, false},
	    {257, 16, 5, 1, true, false}, {128, 8, 6, 2, true, true},
	    {128, 8, 5, 2, true, false},  {2048, 2, 1, 1, true, true},
	    {2049, 2, 1, 1, true, false}, {256, 16, 5, 1, false, false},
	};
	uint32_t number, nodes;

	for (unsigned i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		const struct ranks ranks = {
		    .n = 10000, .batch = cases[i].batch, .ranks = cases[i].ranks};
		struct slice slice;

		slice_init(&slice, &ranks, cases[i].first, cases[i].count);
		slice.is_spread = cases[i].is_spread;
		ck_assert_msg(spread_place(&slice, &number, &nodes) == cases[i].has_place,
			      "case %u", i);
		if (!cases[i].has_place)
			continue;
		ck_assert_uint_eq(number, cases[i].first / cases[i].count);
		ck_assert_uint_eq(nodes, cases[i].ranks / cases[i].count);
	}
}
END_TEST

/* ---- in the carousel ---- */

#define N 1000
#define CHUNK 24
#define EPOCHS 3

struct reader { /* a rank that takes at once what it is granted, and gives it back */
	uint32_t job;
	uint64_t taken;
	uint8_t seen[EPOCHS][N];
	bool has_ended;
};

static struct carousel *node(void)
{
	struct carousel_config config = {.n = N,
					 .chunk = CHUNK,
					 .slots = 8,
					 .max_slots = 8,
					 .producing = 2,
					 .seed = 5,
					 .first_nonce = 1};
	struct carousel *carousel;

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	return carousel;
}

static void join(struct carousel *carousel, const struct ranks *ranks, uint32_t first,
		 uint32_t count, uint64_t place, bool is_spread, struct reader *reader)
{
	struct carousel_join join = {.batch = ranks->batch,
				     .ranks = count,
				     .epochs = EPOCHS,
				     .order = PLAN_SEEDED,
				     .seed = 9,
				     .place = place};

	slice_init(&join.slice, ranks, first, count);
	join.slice.is_spread = is_spread;
	*reader = (struct reader){.taken = 0};
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &reader->job), 0);
}

static void read_chunk(struct carousel *carousel, const struct carousel_action *action,
		       struct reader *reader, uint64_t now_ns)
{
	const struct carousel_chunk *chunk = carousel_chunk_of(carousel, action->slot);

	for (uint32_t i = action->first; i < chunk->count; i++)
		reader->seen[action->epoch][chunk->ids[i]]++;
	reader->taken += chunk->count - action->first;
	carousel_taken(carousel, reader->job, action->slot, now_ns);
	carousel_done(carousel, reader->job, action->slot, now_ns);
}

/* Until nothing happens any more. */
static void drive(struct carousel *carousel, struct reader *reader, uint32_t readers)
{
	struct carousel_action action;

	for (uint64_t now_ns = 2; now_ns < 100000; now_ns++) {
		carousel_step(carousel, now_ns, &action);
		if (action.kind == CAROUSEL_NONE)
			return;
		ck_assert_msg(!carousel_check(carousel), "%s", carousel_check(carousel));
		if (action.kind == CAROUSEL_PRODUCE)
			carousel_produced(carousel, action.slot);
		for (uint32_t i = 0; i < readers && action.kind == CAROUSEL_GRANT; i++)
			if (reader[i].job == action.job)
				read_chunk(carousel, &action, &reader[i], now_ns);
	}
	ck_abort_msg("it does not end");
}

static uint64_t productions(const struct carousel *carousel)
{
	struct carousel_totals totals;

	carousel_totals(carousel, &totals);
	return totals.productions;
}

/* Two jobs of the same slice share each chunk, and the nodes together make each sample once an epoch. */
START_TEST(a_node_makes_its_slice_once)
{
	const bool is_spread = _i;
	const struct ranks ranks = {.batch = 7, .ranks = is_spread ? 6 : 5};
	uint8_t seen[EPOCHS][N] = {{0}};
	uint64_t made = 0;

	for (uint32_t first = 0; first < ranks.ranks; first += 2) {
		uint32_t count = BASE_MIN(2u, ranks.ranks - first);
		struct carousel *carousel = node();
		struct reader reader[2];

		join(carousel, &ranks, first, count, 0, is_spread, &reader[0]);
		join(carousel, &ranks, first, count, 0, is_spread, &reader[1]);
		drive(carousel, reader, 2);
		ck_assert_uint_eq(reader[0].taken, reader[1].taken);
		ck_assert_uint_eq(productions(carousel), reader[0].taken);
		made += productions(carousel);
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
			for (unsigned i = 0; i < N; i++)
				seen[epoch][i] += reader[0].seen[epoch][i];
		carousel_free(carousel);
	}
	ck_assert_uint_eq(made, (uint64_t)EPOCHS * N);
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned i = 0; i < N; i++)
			ck_assert_uint_eq(seen[epoch][i], 1);
}
END_TEST

/* Beside each other on one node: each gets its own, whatever phase, ranks and drop_last the others have. */
START_TEST(different_slices_do_not_mix)
{
	static const struct {
		struct ranks ranks;
		uint32_t first, count;
		uint64_t place;
		bool is_spread;
	} jobs[] = {
	    {{.batch = 7, .ranks = 5}, 0, 2, 0, false},
	    {{.batch = 7, .ranks = 5}, 2, 2, 0, false},
	    {{.batch = 7, .ranks = 5, .drop_last = true}, 0, 2, 0, false},
	    {{.batch = 7, .ranks = 5}, 0, 2, 13, false},
	    {{.batch = 14, .ranks = 5}, 0, 1, 0, false},
	    {{.batch = 7, .ranks = 5}, 0, 5, 0, false},
	    {{.batch = 7, .ranks = 6}, 0, 2, 0, false},
	    {{.batch = 7, .ranks = 6}, 0, 2, 0, true},
	    {{.batch = 7, .ranks = 5}, 4, 1, 999, false}, /* nothing of this epoch is left to it */
	};
	struct reader reader[BASE_ARRAY_LEN(jobs)];
	struct carousel *carousel = node();

	for (unsigned i = 0; i < BASE_ARRAY_LEN(jobs); i++)
		join(carousel, &jobs[i].ranks, jobs[i].first, jobs[i].count, jobs[i].place,
		     jobs[i].is_spread, &reader[i]);
	drive(carousel, reader, BASE_ARRAY_LEN(jobs));
	for (unsigned i = 0; i < BASE_ARRAY_LEN(jobs); i++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
			struct ranks ranks = jobs[i].ranks;
			uint64_t got = 0, from = epoch ? 0 : jobs[i].place;
			struct slice slice;

			ranks.n = N;
			ranks.base = from;
			slice_init(&slice, &ranks, jobs[i].first, jobs[i].count);
			for (unsigned k = 0; k < N; k++) {
				ck_assert_uint_le(reader[i].seen[epoch][k], 1);
				got += reader[i].seen[epoch][k];
			}
			ck_assert_uint_eq(got, slice_places(&slice) - slice_local(&slice, from));
		}
	carousel_free(carousel);
}
END_TEST

START_TEST(a_slice_that_is_none_is_refused)
{
	struct carousel *carousel = node();
	struct carousel_join join = {.batch = 7, .ranks = 2, .order = PLAN_SEEDED};
	uint32_t job;

	join.slice = (struct slice){.ranks = {.batch = 7, .ranks = 5}, .first = 4, .count = 2};
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), CAROUSEL_E_BAD);
	join.slice.first = 3;
	join.order = 0; /* each node would deal for itself */
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), CAROUSEL_E_BAD);
	join.order = PLAN_SEEDED;
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), 0);
	join.slice.is_spread = true; /* 2 of 5 ranks */
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), CAROUSEL_E_BAD);
	carousel_free(carousel);
}
END_TEST

static void add(TCase *t)
{
	tcase_add_loop_test(t, slices_partition_each_step, 0, TESTS);
	tcase_add_test(t, a_slice_by_hand);
	tcase_add_loop_test(t, a_spread_keeps_each_step, 0, TESTS);
	tcase_add_test(t, a_spread_is_frozen);
	tcase_add_test(t, most_samples_go_to_their_owner);
	tcase_add_test(t, places_are_those_of_one_cell);
	tcase_add_loop_test(t, a_node_makes_its_slice_once, 0, 2);
	tcase_add_test(t, different_slices_do_not_mix);
	tcase_add_test(t, a_slice_that_is_none_is_refused);
}

int main(void)
{
	return suite_run("slice", add);
}
