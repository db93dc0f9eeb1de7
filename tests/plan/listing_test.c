/* SPDX-License-Identifier: Apache-2.0 */

/* Lists: what is in them, how often, and how jobs of the carousel live by them. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "plan/listing.h"
#include "plan/plan.h"
#include "tests/invariants/invariants.h"
#include "tests/suite.h"

static struct listing_draft build(const struct listing_spec *spec, uint64_t epoch)
{
	struct listing_draft draft = {0};

	ck_assert_int_eq(listing_build(spec, epoch, &draft), 0);
	return draft;
}

static uint64_t id_at(const struct listing_draft *draft, uint64_t place)
{
	return listing_id(draft->entries[place]);
}

/* ---- orders ---- */

START_TEST(given_orders_stay)
{
	static const int64_t ids[] = {7, 7, 0, 3, 7, 0};
	static const uint32_t repeats[] = {0, 1, 0, 0, 2, 1};
	struct listing_spec spec = {.n = 8, .seed = 9, .ids = ids, .n_ids = 6};

	for (uint64_t epoch = 0; epoch < 3; epoch++) {
		struct listing_draft draft = build(&spec, epoch);
		struct plan plan;

		plan_init(&plan, PLAN_SEEDED, 8, 9, spec.version, false);
		ck_assert_uint_eq(draft.places, 6);
		ck_assert_uint_eq(draft.n_keys, 3);
		ck_assert_uint_eq(draft.keys[0].nonce, plan_nonce(&plan, epoch));
		for (int i = 0; i < 6; i++) {
			ck_assert_uint_eq(id_at(&draft, i), (uint64_t)ids[i]);
			ck_assert_uint_eq(listing_key_number(draft.entries[i]), repeats[i]);
		}
		for (uint32_t k = 0; k < 3; k++) {
			ck_assert_uint_eq(draft.keys[k].seed, 9);
			ck_assert_uint_ne(draft.keys[k].nonce, draft.keys[(k + 1) % 3].nonce);
		}
		listing_fini(&draft);
	}
}
END_TEST

/* The list of all is the plan of all; a list of ids is permuted as a plan of so many. */
START_TEST(seeded_lists_are_plans)
{
	static const uint64_t sizes[] = {1, 2, 63, 64, 65, 1000, 4097};

	for (size_t s = 0; s < BASE_ARRAY_LEN(sizes); s++) {
		uint64_t n = sizes[s];
		int64_t *ids = malloc(n * sizeof(*ids)), *order = malloc(n * sizeof(*order));
		struct listing_spec spec = {.n = n, .seed = 4, .is_seeded = true, .version = {1}};
		struct listing_draft all = build(&spec, 2), some;
		struct plan plan;

		plan_init(&plan, PLAN_SEEDED, n, 4, spec.version, false);
		plan_samples(&plan, 2, 0, (uint32_t)n, order);
		for (uint64_t i = 0; i < n; i++)
			ids[i] = (int64_t)(3 * i);
		spec.n = 3 * n;
		spec.ids = ids;
		spec.n_ids = n;
		some = build(&spec, 2);
		for (uint64_t i = 0; i < n; i++) {
			ck_assert_uint_eq(id_at(&all, i), (uint64_t)order[i]);
			ck_assert_uint_eq(id_at(&some, i), 3 * (uint64_t)order[i]);
		}
		listing_fini(&all);
		listing_fini(&some);
		free(ids);
		free(order);
	}
}
END_TEST

/* ---- blocks ---- */

#define BLOCKED 1000
#define BLOCKS 37
#define WINDOW 5

static const int64_t *unequal_blocks(void)
{
	static int64_t blocks[BLOCKS];

	for (int64_t i = 0; i < BLOCKS; i++)
		blocks[i] = i * i * (BLOCKED - 1) / (BLOCKS * BLOCKS) + (i > 0 && i < 7 ? i : 0);
	for (int64_t i = 1; i < BLOCKS; i++)
		blocks[i] = BASE_MAX(blocks[i], blocks[i - 1] + 1);
	return blocks;
}

static unsigned block_of(const int64_t *blocks, uint64_t id)
{
	unsigned block = 0;

	while (block + 1 < BLOCKS && (uint64_t)blocks[block + 1] <= id)
		block++;
	return block;
}

/* Each sample once; no more than a window of blocks at a time, and no block in two windows; the windows, and what is in
 * them, are others in the next epoch. */
START_TEST(blocks_come_by_windows)
{
	const int64_t *blocks = unequal_blocks();
	struct listing_spec spec = {.n = BLOCKED,
				    .seed = 4,
				    .is_seeded = true,
				    .blocks = blocks,
				    .n_blocks = BLOCKS,
				    .window = WINDOW};
	uint64_t first[2][BLOCKED];

	for (uint64_t epoch = 0; epoch < 2; epoch++) {
		struct listing_draft draft = build(&spec, epoch);
		bool met[BLOCKED] = {false}, done[BLOCKS] = {false}, now[BLOCKS] = {false};
		unsigned open = 0, ascents = 0;

		ck_assert_uint_eq(draft.places, BLOCKED);
		for (uint64_t i = 0; i < BLOCKED; i++) {
			const uint64_t id = first[epoch][i] = id_at(&draft, i);
			const unsigned block = block_of(blocks, id);

			ck_assert(!met[id] && !done[block]);
			met[id] = true;
			if (!now[block] && open == WINDOW) { /* a new window */
				for (unsigned b = 0; b < BLOCKS; b++)
					done[b] |= now[b];
				memset(now, 0, sizeof(now));
				open = 0;
				ck_assert(!done[block]);
			}
			open += !now[block];
			now[block] = true;
			ascents += i > 0 && id == first[epoch][i - 1] + 1;
		}
		ck_assert_uint_lt(ascents, BLOCKED / 10);
		listing_fini(&draft);
	}
	ck_assert_mem_ne(first[0], first[1], sizeof(first[0]));
}
END_TEST

/* With a window of all it is the plan of all; of ids, repeats and draws it is what they are without blocks, otherwise
 * ordered. */
START_TEST(blocks_change_the_order_alone)
{
	static const int64_t ids[] = {999, 7, 7, 0, 500, 3, 7, 0, 501};
	static const double weights[] = {1, 2, 3, 0, 4, 0.5, 7, 1e-3, 3};
	struct listing_spec spec = {.n = BLOCKED, .seed = 4, .is_seeded = true}, with;
	struct listing_draft plain = build(&spec, 2), blocked;
	uint64_t sums[2] = {0};

	with = spec;
	with.blocks = unequal_blocks();
	with.n_blocks = BLOCKS;
	with.window = BLOCKS;
	blocked = build(&with, 2);
	for (uint64_t i = 0; i < BLOCKED; i++)
		ck_assert_uint_eq(id_at(&plain, i), id_at(&blocked, i));
	listing_fini(&plain);
	listing_fini(&blocked);
	spec.ids = ids;
	spec.n_ids = BASE_ARRAY_LEN(ids);
	for (int drawn = 0; drawn < 2; drawn++) {
		spec.weights = drawn ? weights : NULL;
		spec.samples = drawn ? 40 : 0;
		spec.with_replacement = drawn;
		with = spec;
		with.blocks = unequal_blocks();
		with.n_blocks = BLOCKS;
		with.window = 1;
		plain = build(&spec, 2);
		blocked = build(&with, 2);
		ck_assert_uint_eq(plain.places, blocked.places);
		ck_assert_uint_eq(plain.n_keys, blocked.n_keys);
		sums[0] = sums[1] = 0;
		for (uint64_t i = 0; i < plain.places; i++) {
			sums[0] += plain.entries[i] * plain.entries[i];
			sums[1] += blocked.entries[i] * blocked.entries[i];
		}
		ck_assert_uint_eq(sums[0], sums[1]);
		listing_fini(&plain);
		listing_fini(&blocked);
	}
}
END_TEST

/* Frozen: tokens name places of these. */
START_TEST(windows_are_frozen)
{
	static const int64_t blocks[] = {0, 3, 6, 9};
	static const uint64_t want[] = {10, 5, 11, 3, 9, 4, 0, 6, 8, 2, 7, 1};
	struct listing_spec spec = {
	    .n = 12, .seed = 42, .is_seeded = true, .blocks = blocks, .n_blocks = 4, .window = 2};
	struct listing_draft draft = build(&spec, 3);

	for (uint64_t i = 0; i < 12; i++)
		ck_assert_uint_eq(id_at(&draft, i), want[i]);
	listing_fini(&draft);
}
END_TEST

/* ---- weights ---- */

/* Frozen: tokens name places of these. */
START_TEST(draws_are_frozen)
{
	static const double weights[] = {1, 2, 3, 0, 4, 0.5, 7, 1e-3};
	static const uint64_t with[] = {6, 6, 6, 6, 2, 6, 6, 6, 6, 4, 4, 2},
			      without[] = {5, 1, 6, 4, 2};
	struct listing_spec spec = {.n = 8,
				    .seed = 42,
				    .is_seeded = true,
				    .weights = weights,
				    .samples = 12,
				    .with_replacement = true};
	struct listing_draft draft = build(&spec, 3);

	for (uint64_t i = 0; i < 12; i++)
		ck_assert_uint_eq(id_at(&draft, i), with[i]);
	listing_fini(&draft);
	spec.with_replacement = false;
	spec.samples = 5;
	draft = build(&spec, 3);
	for (uint64_t i = 0; i < 5; i++)
		ck_assert_uint_eq(id_at(&draft, i), without[i]);
	listing_fini(&draft);
}
END_TEST

/* Pearson's statistic of the draws; those without weight must not come. */
static double chi_square(const double *weights, uint64_t n, uint64_t draws, uint64_t seed)
{
	struct listing_spec spec = {.n = n,
				    .seed = seed,
				    .is_seeded = true,
				    .weights = weights,
				    .samples = draws,
				    .with_replacement = true};
	struct listing_draft draft = build(&spec, 0);
	uint64_t *count = calloc(n, sizeof(*count));
	double sum = 0, chi = 0;

	for (uint64_t i = 0; i < draft.places; i++)
		count[id_at(&draft, i)]++;
	for (uint64_t i = 0; i < n; i++)
		sum += weights[i];
	for (uint64_t i = 0; i < n; i++) {
		double expected = weights[i] / sum * (double)draws;

		ck_assert(weights[i] > 0 || !count[i]);
		if (weights[i] > 0)
			chi += ((double)count[i] - expected) * ((double)count[i] - expected) /
			       expected;
	}
	free(count);
	listing_fini(&draft);
	return chi;
}

/* With the seeds given, so nothing is left to chance: 6 deviations of the chi-square distribution. */
START_TEST(draws_with_replacement_follow_the_weights)
{
	double weights[200];

	for (uint64_t n = 2; n <= 200; n += 33)
		for (uint64_t seed = 1; seed <= 4; seed++) {
			uint64_t positive;

			for (uint64_t i = 0; i < n; i++)
				weights[i] = seed == 1   ? 1
					     : seed == 2 ? (double)(i % 5)
					     : seed == 3 ? 1.0 / (double)(i + 1)
							 : 1 + (double)(i == n / 2) * 100;
			positive = listing_drawable(weights, n);
			ck_assert_double_lt(chi_square(weights, n, 200000, seed),
					    (double)positive + 6 * sqrt(2 * (double)positive));
		}
}
END_TEST

START_TEST(extreme_weights_are_drawn)
{
	static const double lists[][3] = {
	    {1e308, 1e308, 1e308}, {5e-324, 0, 5e-324}, {0, 0, 1}, {1e-300, 1e300, 0}};

	for (size_t i = 0; i < BASE_ARRAY_LEN(lists); i++) {
		chi_square(lists[i], 3, 3000, 5); /* nothing comes that has no weight */
		struct listing_spec spec = {
		    .n = 3, .seed = 1, .is_seeded = true, .weights = lists[i]};
		struct listing_draft draft = build(&spec, 0);

		ck_assert_uint_eq(draft.places, listing_drawable(lists[i], 3));
		for (uint64_t k = 0; k < draft.places; k++)
			ck_assert(lists[i][id_at(&draft, k)] > 0);
		listing_fini(&draft);
	}
}
END_TEST

/* Two of four without replacement: how often each is in, and how often it comes first. */
START_TEST(more_than_have_weight_are_not_drawn)
{
	static const double weights[] = {0, 2, 0, 1};
	static const struct {
		uint64_t n_ids, samples;
		int r;
	} rows[] = {{4, 2, 0},       {4, 3, -EINVAL}, {4, 400, -EINVAL},
		    {2, 2, -EINVAL}, {1, 1, -EINVAL}, {1, 0, -EINVAL}};

	for (size_t i = 0; i < BASE_ARRAY_LEN(rows); i++) {
		static const int64_t ids[] = {0, 1, 2, 3};
		struct listing_spec spec = {.n = 4,
					    .ids = ids,
					    .n_ids = rows[i].n_ids,
					    .is_seeded = true,
					    .weights = weights,
					    .samples = rows[i].samples};
		struct listing_draft draft = {0};

		ck_assert_int_eq(listing_build(&spec, 0, &draft), rows[i].r);
		listing_fini(&draft);
	}
}
END_TEST

START_TEST(draws_without_replacement_follow_the_weights)
{
	static const double weights[] = {1, 2, 4, 8};
	enum { EPOCHS = 40000 };
	struct listing_spec spec = {
	    .n = 4, .seed = 11, .is_seeded = true, .weights = weights, .samples = 2};
	double in[4] = {0}, first[4] = {0};

	for (uint64_t epoch = 0; epoch < EPOCHS; epoch++) {
		struct listing_draft draft = build(&spec, epoch);

		ck_assert_uint_eq(draft.places, 2);
		ck_assert_uint_ne(id_at(&draft, 0), id_at(&draft, 1));
		in[id_at(&draft, 0)]++;
		in[id_at(&draft, 1)]++;
		first[id_at(&draft, 0)]++;
		listing_fini(&draft);
	}
	for (int i = 0; i < 4; i++) {
		double p = weights[i] / 15;

		for (int k = 0; k < 4; k++)
			p += k == i ? 0 : weights[k] / 15 * weights[i] / (15 - weights[k]);
		ck_assert_double_lt(fabs(in[i] - p * EPOCHS), 5 * sqrt(EPOCHS * p * (1 - p)));
		ck_assert_double_lt(fabs(first[i] - in[i] / 2), 5 * sqrt(in[i] / 4));
	}
}
END_TEST

/* A place's draw does not depend on how many there are, and no epoch is another. */
START_TEST(a_draw_is_a_function_of_its_place)
{
	static const double weights[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
	struct listing_spec spec = {.n = 11,
				    .seed = 8,
				    .is_seeded = true,
				    .weights = weights,
				    .samples = 10000,
				    .with_replacement = true};
	struct listing_draft many = build(&spec, 1), few, other;
	uint64_t same = 0;

	spec.samples = 40;
	few = build(&spec, 1);
	other = build(&spec, 2);
	for (uint64_t i = 0; i < 40; i++) {
		ck_assert_uint_eq(few.entries[i], many.entries[i]);
		same += id_at(&few, i) == id_at(&other, i);
	}
	ck_assert_uint_lt(same, 25);
	listing_fini(&many);
	listing_fini(&few);
	listing_fini(&other);
}
END_TEST

static void time_one(const char *what, const struct listing_spec *spec)
{
	clock_t start = clock();
	struct listing_draft draft = build(spec, 1);

	printf("%s: %llu places in %.3f s of CPU time\n", what, (unsigned long long)draft.places,
	       (double)(clock() - start) / CLOCKS_PER_SEC);
	ck_assert_uint_gt(draft.places, 0);
	listing_fini(&draft);
}

/* The figures are printed; they decide nothing. */
START_TEST(a_million_places)
{
	enum { N = 1000000 };
	double *weights = malloc(N * sizeof(*weights));
	int64_t *ids = malloc(N * sizeof(*ids));
	struct listing_spec spec = {.n = N, .seed = 1, .is_seeded = true, .ids = ids, .n_ids = N};

	for (int i = 0; i < N; i++) {
		weights[i] = 1 + i % 10;
		ids[i] = i / 2;
	}
	time_one("ids, seeded", &spec);
	spec.weights = weights;
	spec.with_replacement = true;
	time_one("weights, with replacement", &spec);
	spec.with_replacement = false;
	spec.samples = N / 2;
	time_one("weights, half without replacement", &spec);
	free(weights);
	free(ids);
}
END_TEST

/* ---- bytes ---- */

START_TEST(bytes_come_back)
{
	static const int64_t ids[] = {1, 1, 2};
	struct listing_spec spec = {.n = 3, .seed = 1, .ids = ids, .n_ids = 3};
	struct listing_draft draft = build(&spec, 0);
	uint64_t bytes[32], size = listing_bytes(&draft);
	struct listing listing;
	struct diag diag = {""};

	ck_assert_uint_eq(size, 64 + 3 * 8 + 2 * 16);
	listing_write(&draft, bytes);
	ck_assert_int_eq(listing_attach(bytes, size, &listing, &diag), 0);
	ck_assert_uint_eq(listing.places, 3);
	ck_assert_mem_eq(listing.entries, draft.entries, 3 * 8);
	ck_assert_mem_eq(listing.keys, draft.keys, 2 * 16);
	ck_assert(listing_is_good(&listing, 0, 3, 3));
	ck_assert(!listing_is_good(&listing, 0, 3, 2));
	ck_assert(listing_is_good(&listing, 0, 2, 2));
	for (uint64_t cut = 0; cut < size; cut++)
		ck_assert_int_eq(listing_attach(bytes, cut, &listing, &diag), LISTING_E_BAD);
	for (int at = 0; at < 32; at++) {
		((uint8_t *)bytes)[at] ^= 0x80;
		ck_assert_int_eq(listing_attach(bytes, size, &listing, &diag),
				 at < 28 ? LISTING_E_BAD : 0);
		((uint8_t *)bytes)[at] ^= 0x80;
	}
	listing_fini(&draft);
}
END_TEST

/* ---- the carousel ---- */

static struct carousel *carousel;
static struct listing_draft drafts[8];
static uint32_t job;

static void join(uint64_t place, uint64_t epochs)
{
	struct carousel_config config = {.n = 20,
					 .chunk = 4,
					 .slots = 4,
					 .max_slots = 4,
					 .producing = 1,
					 .seed = 1,
					 .first_nonce = 1};
	struct carousel_join join = {
	    .batch = 2, .ranks = 1, .epochs = epochs, .order = PLAN_LIST, .place = place};

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), 0);
}

static struct listing list_of(uint64_t epoch, uint64_t n)
{
	struct listing_spec spec = {.n = n, .seed = 3, .is_seeded = true};
	struct listing_draft *draft = &drafts[epoch];

	listing_fini(draft);
	*draft = build(&spec, epoch);
	return (struct listing){draft->entries, draft->keys, draft->places, draft->n_keys};
}

static struct carousel_action next_action(void)
{
	struct carousel_action action;

	carousel_step(carousel, 1, &action);
	ck_assert_ptr_null(carousel_check(carousel));
	return action;
}

static void end(void)
{
	carousel_free(carousel);
	for (size_t i = 0; i < BASE_ARRAY_LEN(drafts); i++)
		listing_fini(&drafts[i]);
}

#define CROWD 64
#define LARGE 65536

static struct listing odd_list(uint64_t *entries, const struct listing *list)
{
	memcpy(entries, list->entries, LARGE * sizeof(*entries));
	entries[LARGE - 1] = listing_entry(listing_id(entries[LARGE - 2]), 0);
	return (struct listing){entries, list->keys, LARGE, list->n_keys};
}

/* Many whose lists are as the first one's but for the last sample: each has to be compared, and no step compares with all. */
START_TEST(lists_that_are_nearly_the_same_make_no_step_long)
{
	struct carousel_config config = {.n = LARGE,
					 .chunk = LARGE,
					 .slots = 4,
					 .max_slots = 4,
					 .producing = 1,
					 .seed = 1,
					 .first_nonce = 1};
	struct carousel_join join = {.batch = 2, .ranks = 1, .epochs = 1, .order = PLAN_LIST};
	uint64_t *entries = calloc(LARGE, sizeof(*entries));
	struct listing list = list_of(0, LARGE), odd = odd_list(entries, &list);
	struct carousel_action action = {.kind = CAROUSEL_NONE};
	unsigned steps = 0;

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	for (unsigned i = 0; i < CROWD; i++) {
		ck_assert_int_eq(carousel_join(carousel, &join, 1, &job), 0);
		ck_assert_int_eq(carousel_list(carousel, job, 0, i ? &odd : &list), 0);
	}
	do
		carousel_step(carousel, 1, &action);
	while (action.kind != CAROUSEL_PRODUCE);
	do { /* one is granted the chunk, and all are looked at */
		carousel_step(carousel, 1, &action);
		steps += action.kind == CAROUSEL_NONE && action.wake_ns == 1;
	} while (action.kind != CAROUSEL_NONE || action.wake_ns == 1);
	ck_assert_uint_ge(steps, CROWD / 8);
	ck_assert_ptr_null(carousel_check(carousel));
	free(entries);
	end();
}
END_TEST

/* Takes grants to the end and looks at what they bring. */
START_TEST(a_job_waits_for_each_list)
{
	struct listing list;
	uint64_t epoch = 0, place = 3;

	join(place, 3);
	ck_assert_int_eq(next_action().kind, CAROUSEL_NONE);
	for (; epoch < 3; epoch++, place = 0) {
		list = list_of(epoch, 10 + epoch);
		ck_assert_int_eq(carousel_list(carousel, job, epoch, &list), 0);
		ck_assert_int_eq(carousel_list(carousel, job, epoch, &list), CAROUSEL_E_BAD);
		while (place < 10 + epoch) {
			struct carousel_action action = next_action();
			const struct carousel_chunk *chunk;

			if (action.kind == CAROUSEL_PRODUCE)
				carousel_produced(carousel, action.slot);
			if (action.kind != CAROUSEL_GRANT)
				continue;
			ck_assert_uint_eq(action.epoch, epoch);
			chunk = carousel_chunk_of(carousel, action.slot);
			for (uint32_t i = action.first; i < chunk->count; i++, place++)
				ck_assert_uint_eq((uint64_t)chunk->ids[i],
						  listing_id(list.entries[place]));
			ck_assert_int_eq(action.last, place == 10 + epoch);
			carousel_taken(carousel, job, action.slot, 1);
			carousel_done(carousel, job, action.slot, 1);
		}
		ck_assert_int_eq(next_action().kind, CAROUSEL_NONE);
		ck_assert_uint_eq(carousel_lists_over(carousel, job), epoch + 1);
	}
	end();
}
END_TEST

START_TEST(bad_lists_are_told)
{
	struct listing list = list_of(0, 10);
	struct carousel_action action;

	join(11, 0);
	ck_assert_int_eq(carousel_list(carousel, job, 0, &list), CAROUSEL_E_BAD);
	carousel_free(carousel);
	join(0, 0);
	for (uint64_t epoch = 1; epoch <= CAROUSEL_MAX_LISTS; epoch++)
		ck_assert_int_eq(carousel_list(carousel, job, epoch, &list), 0);
	ck_assert_int_eq(carousel_list(carousel, job, 0, &list), CAROUSEL_E_FULL);
	carousel_free(carousel);
	join(0, 0);
	drafts[0].entries[6] = listing_entry(20, 0);
	ck_assert_int_eq(carousel_list(carousel, job, 0, &list), 0);
	action = next_action();
	ck_assert_int_eq(action.kind, CAROUSEL_PRODUCE);
	carousel_produced(carousel, action.slot);
	ck_assert_int_eq(next_action().kind, CAROUSEL_GRANT);
	action = next_action(); /* the second chunk has the bad entry */
	ck_assert_int_eq(action.kind, CAROUSEL_FAIL);
	ck_assert_uint_eq(action.job, job);
	carousel_leave(carousel, job, 1);
	ck_assert_int_eq(next_action().kind, CAROUSEL_NONE);
	end();
}
END_TEST

/* A list that says the same is served by the same chunk; one that differs in a key is not, nor is a
 * seeded plan by a list that pretends to be it. */
START_TEST(chunks_are_shared_by_what_they_hold)
{
	struct carousel_join other = {.batch = 2, .ranks = 1, .order = PLAN_LIST};
	struct listing list = list_of(0, 20), same = list_of(0, 20), third;
	struct carousel_action action;
	uint32_t second;

	join(0, 0);
	list = list_of(0, 20);
	same = list_of(1, 20);
	memcpy(drafts[1].entries, drafts[0].entries, 20 * 8);
	memcpy(drafts[1].keys, drafts[0].keys, sizeof(*drafts[0].keys));
	third = list_of(2, 20);
	memcpy(drafts[2].entries, drafts[0].entries, 20 * 8);
	ck_assert_int_eq(carousel_list(carousel, job, 0, &list), 0);
	action = next_action();
	ck_assert_int_eq(action.kind, CAROUSEL_PRODUCE);
	ck_assert_int_eq(next_action().kind, CAROUSEL_GRANT);
	ck_assert_int_eq(carousel_join(carousel, &other, 1, &second), 0);
	ck_assert_int_eq(carousel_list(carousel, second, 0, &same), 0);
	action = next_action();
	ck_assert_int_eq(action.kind, CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, second);
	ck_assert_int_eq(carousel_join(carousel, &other, 1, &second), 0);
	ck_assert_int_eq(carousel_list(carousel, second, 0, &third), 0);
	ck_assert_int_eq(next_action().kind, CAROUSEL_NONE); /* one chunk is in production */
	other.order = PLAN_SEEDED;
	other.seed = 3;
	ck_assert_int_eq(carousel_join(carousel, &other, 1, &second), 0);
	ck_assert_int_eq(next_action().kind, CAROUSEL_NONE);
	end();
}
END_TEST

static void add(TCase *t)
{
	tcase_add_test(t, given_orders_stay);
	tcase_add_test(t, seeded_lists_are_plans);
	tcase_add_test(t, blocks_come_by_windows);
	tcase_add_test(t, blocks_change_the_order_alone);
	tcase_add_test(t, windows_are_frozen);
	tcase_add_test(t, draws_are_frozen);
	tcase_add_test(t, draws_with_replacement_follow_the_weights);
	tcase_add_test(t, extreme_weights_are_drawn);
	tcase_add_test(t, more_than_have_weight_are_not_drawn);
	tcase_add_test(t, draws_without_replacement_follow_the_weights);
	tcase_add_test(t, a_draw_is_a_function_of_its_place);
	tcase_add_test(t, a_million_places);
	tcase_add_test(t, bytes_come_back);
	tcase_add_test(t, a_job_waits_for_each_list);
	tcase_add_test(t, lists_that_are_nearly_the_same_make_no_step_long);
	tcase_add_test(t, bad_lists_are_told);
	tcase_add_test(t, chunks_are_shared_by_what_they_hold);
}

int main(void)
{
	return suite_run("listing", add);
}
