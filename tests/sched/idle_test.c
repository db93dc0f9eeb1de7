/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One job reads while others, with pipelines and orders of their own, stand: they computed an epoch and have
 * the next one's chunks granted, as loaders that a program keeps open. There are no more slots than
 * admission gives. Whoever reads gets its next chunk, however much the others were granted, and when
 * nobody does anything, nothing is made: those who stand do not take slots from each other in turns.
 * And where chunks are made too slowly for all, a slow reader is not passed by for the fast ones for ever.
 */

#include <check.h>
#include <string.h>

#include "base/base.h"
#include "base/philox.h"
#include "sched/carousel.h"
#include "tests/suite.h"
#include "tests/invariants/invariants.h"

#define WORLDS 600
#define MAX_JOBS 5
#define MAX_QUEUE 64
#define MAX_ACTIONS \
	5000 /* until nothing is left to do: each slot granted, revoked, made, some times over */
#define MAX_WAITS 20

struct reader {
	uint32_t number;
	uint32_t queue[MAX_QUEUE]; /* slots granted and not taken, oldest first */
	uint32_t n_queue;
	uint32_t held; /* slot + 1; 0: none */
	uint64_t left; /* chunks to read */
};

static struct carousel *carousel;
static struct reader readers[MAX_JOBS];
static uint32_t n_readers;
static struct philox_seq rng;
static uint64_t now_ns;

static uint64_t below(uint64_t n)
{
	return philox_below(&rng, n);
}

static struct reader *reader_of(uint32_t number)
{
	for (uint32_t i = 0; i < n_readers; i++)
		if (readers[i].number == number)
			return &readers[i];
	ck_abort_msg("a job that never joined");
}

static void on_revoke(const struct carousel_action *action)
{
	struct reader *reader = reader_of(action->job);
	uint32_t at = 0;

	while (at < reader->n_queue && reader->queue[at] != action->slot)
		at++;
	ck_assert_uint_lt(at, reader->n_queue);
	memmove(reader->queue + at, reader->queue + at + 1,
		(reader->n_queue - at - 1) * sizeof(reader->queue[0]));
	reader->n_queue--;
	carousel_reclaimed(carousel, action->job, action->slot, now_ns);
}

/* Until there is nothing to do. */
static void settle(void)
{
	struct carousel_action action;
	unsigned actions = 0;

	do {
		carousel_step(carousel, now_ns, &action);
		if (action.kind == CAROUSEL_GRANT) {
			struct reader *reader = reader_of(action.job);

			ck_assert_uint_lt(reader->n_queue, MAX_QUEUE);
			reader->queue[reader->n_queue++] = action.slot;
		} else if (action.kind == CAROUSEL_REVOKE) {
			on_revoke(&action);
		} else if (action.kind == CAROUSEL_PRODUCE) {
			carousel_produced(carousel, action.slot);
		}
		ck_assert_msg(++actions < MAX_ACTIONS, "slots go round for ever");
	} while (action.kind != CAROUSEL_NONE);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
}

static void let_go(struct reader *reader)
{
	if (reader->held)
		carousel_done(carousel, reader->number, reader->held - 1, now_ns);
	reader->held = 0;
}

/* The next chunk, for which it waits if it must. */
static void read_one(struct reader *reader)
{
	let_go(reader);
	for (unsigned waits = 0; !reader->n_queue; waits++) {
		ck_assert_msg(waits < MAX_WAITS, "a job waits for ever");
		carousel_waiting(carousel, reader->number, true);
		settle();
		carousel_waiting(carousel, reader->number, false);
		now_ns += 1000;
	}
	reader->held = reader->queue[0] + 1;
	memmove(reader->queue, reader->queue + 1, --reader->n_queue * sizeof(reader->queue[0]));
	carousel_taken(carousel, reader->number, reader->held - 1, now_ns);
	now_ns += 1000 + below(100000);
	settle();
}

static void join(struct reader *reader, uint32_t variant)
{
	static const uint32_t orders[] = {0, PLAN_SEQUENTIAL, PLAN_SEEDED};
	const struct carousel_join how = {
	    .variant = variant,
	    .batch = 1 + (uint32_t)below(32),
	    .ranks = 1,
	    .order = orders[below(BASE_ARRAY_LEN(orders))],
	    .seed = below(3),
	};

	*reader = (struct reader){.number = 0};
	ck_assert_int_eq(carousel_join(carousel, &how, now_ns, &reader->number), 0);
}

/* One after another they are opened and read, each for an epoch or a part of it, more than once. */
static void run_world(int world)
{
	const uint64_t n = 20 + below(200);
	const uint32_t chunk = 4 + (uint32_t)below(29);
	const struct carousel_config config = {
	    .n = n,
	    .chunk = chunk,
	    .slots = 4,
	    .max_slots = 2 * MAX_JOBS + 2,
	    .producing = 1 + (uint32_t)below(3),
	    .seed = (uint64_t)world,
	    .usable_again = (uint32_t)below(1 << MAX_JOBS),
	};
	const bool is_one_pipeline = !below(4);

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	n_readers = 0;
	for (unsigned turn = 0; turn < 3 * MAX_JOBS; turn++) {
		struct reader *reader = &readers[below(MAX_JOBS)];

		if (reader >= readers + n_readers) {
			reader = &readers[n_readers];
			if (n_readers > 1)
				ck_assert_int_eq(carousel_add_slots(carousel, 2), 0);
			join(reader, is_one_pipeline ? 0 : n_readers);
			n_readers++;
		}
		for (uint64_t left = 1 + below(2 * (n / chunk + 1)); left > 0; left--)
			read_one(reader);
	}
	carousel_free(carousel);
}

START_TEST(who_reads_gets_on_beside_those_who_stand)
{
	philox_seq_init(&rng, 16, 0, 0);
	now_ns = 1;
	for (int world = 0; world < WORLDS; world++)
		run_world(world);
}
END_TEST

/* ---- fast ones and a slow one, each with a plan of its own ---- */

#define FAST 4
#define MADE 200

static uint32_t in_work[8], n_in_work;

/* The fast ones take chunks while they are filled, so that nothing is coming to them ever. */
static unsigned decide(const struct reader *slow)
{
	struct carousel_action action;
	unsigned granted = 0;

	do {
		carousel_step(carousel, now_ns, &action);
		if (action.kind == CAROUSEL_PRODUCE)
			in_work[n_in_work++] = action.slot;
		ck_assert_int_ne(action.kind, CAROUSEL_REVOKE);
		if (action.kind != CAROUSEL_GRANT)
			continue;
		granted += action.job == slow->number;
		carousel_waiting(carousel, action.job, false);
		carousel_taken(carousel, action.job, action.slot, now_ns);
		reader_of(action.job)->held = action.slot + 1;
	} while (action.kind != CAROUSEL_NONE);
	return granted;
}

static void finish_oldest(void)
{
	const uint32_t slot = in_work[0];

	memmove(in_work, in_work + 1, --n_in_work * sizeof(in_work[0]));
	carousel_produced(carousel, slot);
	for (uint32_t i = 0; i < n_readers; i++)
		if (readers[i].held == slot + 1) {
			let_go(&readers[i]);
			carousel_waiting(carousel, readers[i].number, true);
		}
}

static void join_seeded(void)
{
	const struct carousel_join how = {
	    .batch = 10, .ranks = 1, .order = PLAN_SEEDED, .seed = n_readers + 1};
	struct reader *reader = &readers[n_readers++];

	*reader = (struct reader){0};
	ck_assert_int_eq(carousel_join(carousel, &how, now_ns, &reader->number), 0);
}

/* What the first reader is granted of so many chunks that are made. */
static unsigned make(unsigned chunks, uint64_t each_ns)
{
	unsigned granted = 0;

	for (unsigned i = 0; i < chunks; i++) {
		granted += decide(&readers[0]);
		now_ns += each_ns;
		finish_oldest();
	}
	return granted;
}

START_TEST(a_slow_one_gets_its_turn)
{
	const struct carousel_config config = {.n = 100000,
					       .chunk = 100,
					       .slots = 2 * (FAST + 1),
					       .max_slots = 2 * (FAST + 1),
					       .producing = 2,
					       .seed = 1};

	now_ns = 1;
	n_in_work = n_readers = 0;
	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	join_seeded();
	make(4, UINT64_C(30000000000));
	for (unsigned i = 0; i < FAST; i++)
		join_seeded();
	ck_assert_uint_ge(make(MADE, UINT64_C(2000000000)), MADE / 10);
	carousel_free(carousel);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, who_reads_gets_on_beside_those_who_stand);
	tcase_add_test(tcase, a_slow_one_gets_its_turn);
}

int main(void)
{
	return suite_run("idle", add);
}
