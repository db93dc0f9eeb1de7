/* SPDX-License-Identifier: Apache-2.0 */

/* The carousel: single promises, one by one, and thousands of random histories (chaos.c). */

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "sched/carousel.h"
#include "plan/token.h"
#include "tests/histories.h"
#include "tests/sched/chaos.h"
#include "tests/invariants/invariants.h"

#define SECOND UINT64_C(1000000000)

static struct carousel *carousel;
static struct carousel_action action;

static void new_carousel(uint64_t n, uint32_t chunk, uint32_t slots, uint32_t usable_again)
{
	struct carousel_config config = {
	    .n = n,
	    .chunk = chunk,
	    .slots = slots,
	    .max_slots = slots + 2,
	    .producing = 1,
	    .seed = 11,
	    .first_nonce = 1000,
	    .usable_again = usable_again,
	};

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
}

static void free_carousel(void)
{
	carousel_free(carousel);
	carousel = NULL;
}

static uint32_t join(uint32_t batch, uint64_t epochs)
{
	struct carousel_join how = {.batch = batch, .ranks = 1, .epochs = epochs};
	uint32_t job;

	ck_assert_int_eq(carousel_join(carousel, &how, 1, &job), 0);
	return job;
}

static void step_at(uint64_t now_ns, enum carousel_kind kind)
{
	carousel_step(carousel, now_ns, &action);
	ck_assert_int_eq(action.kind, kind);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
}

static void step(enum carousel_kind kind)
{
	step_at(1, kind);
}

/* Produces a chunk and grants it to one job; returns its slot. */
static uint32_t deal_one(void)
{
	uint32_t slot;

	step(CAROUSEL_PRODUCE);
	slot = action.slot;
	carousel_produced(carousel, slot);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.slot, slot);
	return slot;
}

static void read_chunk(uint32_t job, uint32_t slot)
{
	carousel_taken(carousel, job, slot, 1);
	carousel_done(carousel, job, slot, 1);
}

static uint32_t join_plan(enum plan_order order, uint64_t seed, uint64_t place)
{
	struct carousel_join how = {
	    .batch = 4, .ranks = 1, .epochs = 2, .order = order, .seed = seed, .place = place};
	uint32_t job;

	ck_assert_int_eq(carousel_join(carousel, &how, 1, &job), 0);
	return job;
}

START_TEST(configurations_that_make_no_sense_are_refused)
{
	static const struct carousel_config bad[] = {
	    {.n = 10, .chunk = 0, .slots = 4, .max_slots = 4, .producing = 1},
	    {.n = 10, .chunk = 4, .slots = 5, .max_slots = 4, .producing = 1},
	    {.n = 10, .chunk = 4, .slots = 0, .max_slots = 0, .producing = 1},
	    {.n = 10, .chunk = 4, .slots = 4, .max_slots = 4, .producing = 0},
	    {.n = 10, .chunk = 4, .slots = 4, .max_slots = 4, .producing = 5},
	    {.n = 1 << 20, .chunk = 1, .slots = 4, .max_slots = 4, .producing = 1},
	};

	ck_assert_int_eq(carousel_new(&bad[_i], &carousel), CAROUSEL_E_BAD);
}
END_TEST

START_TEST(joins_that_make_no_sense_are_refused)
{
	static const uint64_t past = UINT64_C(1) << 20, some = 1;
	static const int64_t negative[] = {-1}, twice[] = {3, 3}, beyond[] = {20}, needed[] = {0};
	const struct carousel_join bad[] = {
	    {.batch = 0, .ranks = 1},
	    {.batch = 1, .ranks = 0},
	    {.batch = 1, .ranks = 1, .epoch = 3, .epochs = 2},
	    {.batch = 1, .ranks = 1, .need = &past},
	    {.batch = 1, .ranks = 1, .need = &some, .tail = negative, .n_tail = 1},
	    {.batch = 1, .ranks = 1, .need = &some, .tail = twice, .n_tail = 2},
	    {.batch = 1, .ranks = 1, .need = &some, .tail = beyond, .n_tail = 1},
	    {.batch = 1, .ranks = 1, .tail = needed, .n_tail = 1},
	};
	uint32_t job = 77;

	new_carousel(20, 4, 4, 0);
	ck_assert_int_eq(carousel_join(carousel, &bad[_i], 1, &job), CAROUSEL_E_BAD);
	ck_assert_uint_eq(job, 77);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	free_carousel();
}
END_TEST

START_TEST(jobs_past_the_most_are_refused_and_numbers_come_again)
{
	struct carousel_join how = {.batch = 1, .ranks = 1};
	uint32_t job;

	new_carousel(20, 4, 4, 0);
	for (uint32_t i = 0; i < CAROUSEL_MAX_JOBS; i++)
		ck_assert_uint_eq(join(1, 1), i);
	ck_assert_int_eq(carousel_join(carousel, &how, 1, &job), CAROUSEL_E_FULL);
	carousel_leave(carousel, 9, 1);
	ck_assert_uint_eq(join(1, 1), 9);
	free_carousel();
}
END_TEST

START_TEST(slots_are_added_up_to_the_most)
{
	struct carousel_totals totals;

	new_carousel(20, 4, 4, 0);
	ck_assert_int_eq(carousel_add_slots(carousel, 3), CAROUSEL_E_FULL);
	ck_assert_int_eq(carousel_add_slots(carousel, 2), 0);
	ck_assert_int_eq(carousel_add_slots(carousel, 1), CAROUSEL_E_FULL);
	carousel_totals(carousel, &totals);
	ck_assert_uint_eq(totals.slots, 6);
	free_carousel();
}
END_TEST

START_TEST(a_chunk_is_granted_while_it_is_filled)
{
	uint32_t job;

	new_carousel(20, 8, 4, 0);
	job = join(4, 1);
	step(CAROUSEL_PRODUCE);
	ck_assert_uint_eq(carousel_chunk_of(carousel, action.slot)->count, 8);
	ck_assert_uint_eq(carousel_chunk_of(carousel, action.slot)->nonce, 1000);
	ck_assert(!carousel_chunk_of(carousel, action.slot)->ready);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, job);
	ck_assert_uint_eq(action.instance, 1);
	step(CAROUSEL_NONE); /* one in production at once */
	free_carousel();
}
END_TEST

START_TEST(the_last_chunk_is_marked_and_the_next_epoch_follows_without_a_gap)
{
	struct carousel_job_view view;
	uint32_t job;

	new_carousel(10, 8, 4, 0);
	job = join(8, 2);
	read_chunk(job, deal_one());
	ck_assert(!action.last);
	deal_one();
	ck_assert(action.last);
	ck_assert_uint_eq(action.epoch, 0);
	deal_one();
	ck_assert(!action.last);
	ck_assert_uint_eq(action.epoch, 1);
	carousel_job(carousel, job, 1, &view);
	ck_assert_uint_eq(view.epoch, 1);
	ck_assert_uint_eq(view.coming, 10);
	ck_assert_uint_eq(view.need, 2);
	free_carousel();
}
END_TEST

START_TEST(a_joiner_is_granted_what_is_there)
{
	uint32_t slots[2], late;

	new_carousel(40, 8, 4, 0);
	join(8, 1);
	slots[0] = deal_one();
	slots[1] = deal_one();
	late = join(8, 1);
	for (int i = 0; i < 2; i++) {
		step(CAROUSEL_GRANT);
		ck_assert_uint_eq(action.job, late);
		ck_assert_uint_eq(action.slot, slots[i]);
	}
	free_carousel();
}
END_TEST

/* Who was granted it keeps it; its samples are made anew for who comes. */
START_TEST(a_forgotten_chunk_is_granted_to_nobody_else)
{
	uint32_t first, late, slots[2];
	bool is_again[8] = {false};

	new_carousel(16, 8, 4, 0);
	first = join(8, 1);
	slots[0] = deal_one();
	slots[1] = deal_one();
	carousel_forget(carousel, slots[0]);
	late = join(8, 1);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, late);
	ck_assert_uint_eq(action.slot, slots[1]);
	step(CAROUSEL_PRODUCE);
	ck_assert_uint_ne(action.slot, slots[0]);
	ck_assert_uint_ne(action.slot, slots[1]);
	for (uint32_t i = 0; i < 8; i++)
		for (uint32_t j = 0; j < 8; j++)
			is_again[i] |= carousel_chunk_of(carousel, action.slot)->ids[j] ==
				       carousel_chunk_of(carousel, slots[0])->ids[i];
	for (uint32_t i = 0; i < 8; i++)
		ck_assert(is_again[i]);
	carousel_produced(carousel, action.slot);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, late);
	read_chunk(first, slots[0]);
	carousel_forget(carousel, 77); /* no slot */
	step(CAROUSEL_NONE);
	free_carousel();
}
END_TEST

START_TEST(nonces_that_a_job_has_seen_are_not_granted_again)
{
	const uint64_t nonces[] = {5, 1000};
	struct carousel_join how = {.batch = 8, .ranks = 1, .nonces = nonces, .n_nonces = 2};
	uint32_t late;

	new_carousel(40, 8, 4, 0);
	join(8, 1);
	deal_one();
	deal_one();
	ck_assert_int_eq(carousel_join(carousel, &how, 1, &late), 0);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, late);
	ck_assert_uint_eq(action.instance, 2);
	free_carousel();
}
END_TEST

/* A full list of nonces may have left some out: with so many slots, any that is resident. */
START_TEST(nonces_that_a_token_had_no_room_for_are_not_granted_again)
{
	uint64_t nonces[TOKEN_MAX_NONCES];
	struct carousel_join how = {
	    .batch = 1, .ranks = 1, .epoch = 1, .epochs = 2, .nonces = nonces};
	uint32_t job;

	how.n_nonces = _i ? TOKEN_MAX_NONCES : TOKEN_MAX_NONCES - 1;
	new_carousel(TOKEN_MAX_NONCES + 2, 1, TOKEN_MAX_NONCES + 6, 0);
	job = join(1, 1);
	for (uint64_t i = 0; i < TOKEN_MAX_NONCES + 2; i++)
		read_chunk(job, deal_one());
	carousel_leave(carousel, job, 1);
	for (uint64_t i = 0; i < TOKEN_MAX_NONCES; i++)
		nonces[i] = 1000 + i;
	ck_assert_int_eq(carousel_join(carousel, &how, 1, &job), 0);
	step(_i ? CAROUSEL_PRODUCE : CAROUSEL_GRANT);
	free_carousel();
}
END_TEST

START_TEST(a_resident_chunk_serves_the_next_epoch_only_if_it_may)
{
	uint32_t job, slot;

	new_carousel(8, 8, 4, _i != 0);
	job = join(8, 2);
	slot = deal_one();
	ck_assert(action.last);
	if (_i) { /* what it holds now it is not granted a second time */
		step(CAROUSEL_PRODUCE);
		carousel_produced(carousel, action.slot);
		step(CAROUSEL_GRANT);
		ck_assert_uint_eq(action.epoch, 1);
		free_carousel();
		return;
	}
	read_chunk(job, slot);
	step(CAROUSEL_PRODUCE);
	free_carousel();
}
END_TEST

START_TEST(a_chunk_read_before_serves_a_later_epoch)
{
	uint32_t job, slots[2];

	new_carousel(16, 8, 4, 1);
	job = join(8, 2);
	slots[0] = deal_one();
	read_chunk(job, slots[0]);
	slots[1] = deal_one();
	ck_assert(action.last);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.slot, slots[0]);
	ck_assert_uint_eq(action.epoch, 1);
	read_chunk(job, slots[1]);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.slot, slots[1]);
	step(CAROUSEL_NONE);
	free_carousel();
}
END_TEST

START_TEST(a_tail_comes_first_for_its_job_alone)
{
	static const uint64_t none[1] = {0};
	static const int64_t tail[] = {7, 3, 5};
	struct carousel_join how = {
	    .batch = 8, .ranks = 1, .epochs = 1, .need = none, .tail = tail, .n_tail = 3};
	const struct carousel_chunk *chunk;
	uint32_t job;

	new_carousel(16, 8, 4, 0);
	ck_assert_int_eq(carousel_join(carousel, &how, 1, &job), 0);
	join(8, 1);
	step(CAROUSEL_PRODUCE);
	chunk = carousel_chunk_of(carousel, action.slot);
	ck_assert(chunk->is_private);
	ck_assert_uint_eq(chunk->count, 3);
	ck_assert_int_eq(chunk->ids[0] + chunk->ids[1] + chunk->ids[2], 15);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, job);
	ck_assert(action.last);
	step(CAROUSEL_NONE);
	free_carousel();
}
END_TEST

/* A slow job was granted both chunks of the only two slots; one in need gets the room of one. */
static void starve_one(uint32_t *ret_slow, uint32_t *ret_starved)
{
	struct carousel_join how = {.batch = 8, .ranks = 1, .need = (const uint64_t[]){0xff}};

	new_carousel(64, 8, 2, 0);
	*ret_slow = join(8, 1);
	deal_one();
	deal_one();
	step(CAROUSEL_NONE);
	ck_assert_int_eq(carousel_join(carousel, &how, 1, ret_starved), 0);
}

/* Chunk after chunk in the plan's order, aligned to multiples of C, wherever the job comes in. */
START_TEST(a_fixed_plan_is_granted_in_its_order)
{
	const struct carousel_chunk *chunk;
	uint32_t job;

	new_carousel(20, 8, 4, 0);
	job = join_plan(PLAN_SEQUENTIAL, 5, 11);
	for (uint32_t i = 0; i < 4; i++) {
		static const uint64_t place[] = {8, 16, 0, 8}, first[] = {3, 0, 0, 0};
		uint32_t slot;

		if (i == 0 || action.kind != CAROUSEL_PRODUCE)
			step(CAROUSEL_PRODUCE);
		slot = action.slot;
		chunk = carousel_chunk_of(carousel, slot);
		ck_assert_uint_eq(chunk->place, place[i]);
		ck_assert_uint_eq(chunk->seed, 5);
		ck_assert_int_eq(chunk->ids[0], (int64_t)place[i]);
		carousel_produced(carousel, slot);
		step(CAROUSEL_GRANT);
		ck_assert_uint_eq(action.slot, slot);
		ck_assert_uint_eq(action.first, first[i]);
		ck_assert_uint_eq(action.epoch, i / 2);
		ck_assert_int_eq(action.last, i == 1);
		read_chunk(job, slot);
	}
	free_carousel();
}
END_TEST

/* The same plan: one production. Another seed, or a job that is dealt to: nothing in common. */
START_TEST(jobs_with_the_same_plan_share)
{
	struct carousel_totals totals;
	uint32_t a, b;

	new_carousel(32, 8, 8, 0);
	a = join_plan(PLAN_SEEDED, 5, 0);
	b = join_plan(PLAN_SEEDED, 5, 0);
	for (uint32_t i = 0; i < 4; i++) {
		uint32_t slot;

		step(CAROUSEL_PRODUCE);
		slot = action.slot;
		carousel_produced(carousel, slot);
		step(CAROUSEL_GRANT);
		step(CAROUSEL_GRANT);
		ck_assert_uint_eq(action.slot, slot);
		read_chunk(a, slot);
		read_chunk(b, slot);
	}
	carousel_totals(carousel, &totals);
	ck_assert_uint_eq(totals.productions, 32);
	free_carousel();

	new_carousel(32, 8, 8, 0);
	a = join_plan(PLAN_SEEDED, 5, 0);
	b = join_plan(PLAN_SEEDED, 6, 0);
	deal_one();
	ck_assert_uint_eq(action.job, a);
	deal_one();
	ck_assert_uint_eq(action.job, b);
	join(8, 1);
	deal_one();
	free_carousel();
}
END_TEST

/* A follower on the same plan is granted what lies before it without a gap; what lies behind a gap
 * is not evicted while there is something that nobody comes to. */
START_TEST(a_chunk_is_kept_for_who_comes_to_it)
{
	uint32_t leader, follower, passer, slot[3];

	new_carousel(64, 8, 3, 0);
	leader = join_plan(PLAN_SEEDED, 5, 16);
	for (uint32_t i = 0; i < 2; i++) {
		slot[i] = deal_one();
		read_chunk(leader, slot[i]);
	}
	follower = join_plan(PLAN_SEEDED, 5, 24);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, follower);
	ck_assert_uint_eq(action.slot, slot[1]);
	carousel_leave(carousel, follower, 1);
	carousel_leave(carousel, leader, 1);
	passer = join(4, 1);
	slot[2] = deal_one();
	read_chunk(passer, slot[2]);
	carousel_leave(carousel, passer, 1);
	join_plan(PLAN_SEEDED, 5, 8);
	step(CAROUSEL_EMPTY);
	ck_assert_uint_eq(action.slot, slot[2]);
	free_carousel();
}
END_TEST

START_TEST(a_wanted_slot_is_evicted_for_the_starving)
{
	struct carousel_job_view view;
	uint32_t slow, starved, slot;

	starve_one(&slow, &starved);
	step(CAROUSEL_REVOKE);
	ck_assert_uint_eq(action.job, slow);
	slot = action.slot;
	carousel_reclaimed(carousel, slow, slot, 1);
	carousel_job(carousel, slow, 1, &view);
	ck_assert_uint_eq(view.need, 56);
	step(CAROUSEL_EMPTY);
	ck_assert_uint_eq(action.slot, slot);
	ck_assert_ptr_eq(carousel_chunk_of(carousel, slot), NULL);
	step(CAROUSEL_PRODUCE);
	ck_assert_uint_eq(action.slot, slot);
	free_carousel();
}
END_TEST

START_TEST(a_rank_that_was_quicker_keeps_its_chunk)
{
	struct carousel_job_view view;
	uint32_t slow, starved, slot;

	starve_one(&slow, &starved);
	step(CAROUSEL_REVOKE);
	slot = action.slot;
	if (_i)
		carousel_taken(carousel, slow, slot, 1);
	step(CAROUSEL_REVOKE); /* the other one, then */
	ck_assert_uint_ne(action.slot, slot);
	carousel_reclaimed(carousel, slow, action.slot, 1);
	carousel_done(carousel, slow, slot, 1);
	carousel_job(carousel, slow, 1, &view);
	ck_assert_uint_eq(view.consumed, 8);
	ck_assert_uint_eq(view.taken, 8);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	free_carousel();
}
END_TEST

START_TEST(a_rank_that_was_quicker_is_granted_more_at_once)
{
	struct carousel_job_view view;
	uint32_t slow, starved, slot, other;

	starve_one(&slow, &starved);
	step(CAROUSEL_REVOKE);
	slot = action.slot;
	step(CAROUSEL_REVOKE);
	other = action.slot;
	carousel_reclaimed(carousel, slow, other, 1);
	carousel_leave(carousel, starved, 1);
	carousel_taken(carousel, slow, slot, 1); /* and keeps it */
	carousel_reclaimed(carousel, slow, slot, 1);
	carousel_job(carousel, slow, 1, &view);
	ck_assert_uint_eq(view.taken, 8);
	ck_assert_uint_eq(view.pins, 1);
	step(CAROUSEL_EMPTY);
	ck_assert_uint_eq(action.slot, other);
	step(CAROUSEL_PRODUCE);
	step(CAROUSEL_GRANT);
	ck_assert_uint_eq(action.job, slow);
	ck_assert_uint_eq(action.slot, other);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	free_carousel();
}
END_TEST

START_TEST(a_rank_that_yields_needs_the_samples_again)
{
	struct carousel_job_view view;
	uint32_t slow, starved, slot;

	starve_one(&slow, &starved);
	step(CAROUSEL_REVOKE);
	slot = action.slot;
	carousel_step(carousel, 1, &action);
	carousel_reclaimed(carousel, slow, slot, 1);
	carousel_job(carousel, slow, 1, &view);
	ck_assert_uint_eq(view.taken, 0);
	ck_assert_uint_ge(view.need, 56);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	free_carousel();
}
END_TEST

START_TEST(the_end_of_an_epoch_is_taken_back)
{
	struct carousel_join how = {.batch = 8, .ranks = 1, .need = (const uint64_t[]){0xff}};
	struct carousel_job_view view;
	uint32_t job, starved;

	new_carousel(16, 8, 3, 0);
	job = join(12, 3); /* depth 3 */
	deal_one();
	deal_one();
	ck_assert(action.last);
	deal_one();
	ck_assert_uint_eq(action.epoch, 1);
	ck_assert_int_eq(carousel_join(carousel, &how, 1, &starved), 0);
	do { /* newest first, the chunk of the next epoch among them */
		carousel_step(carousel, 1, &action);
		if (action.kind == CAROUSEL_REVOKE)
			carousel_reclaimed(carousel, action.job, action.slot, 1);
		ck_assert_ptr_eq(carousel_check(carousel), NULL);
	} while (action.kind == CAROUSEL_REVOKE);
	carousel_job(carousel, job, 1, &view);
	ck_assert_uint_eq(view.coming + view.need, view.epoch ? 32 : 16);
	free_carousel();
}
END_TEST

START_TEST(pins_of_the_dead_stay_until_their_process_is_gone)
{
	struct carousel_totals totals;
	uint32_t job, slot;

	new_carousel(64, 8, 2, 0);
	job = join(8, 1);
	slot = deal_one();
	carousel_taken(carousel, job, slot, 1);
	carousel_leave_pinned(carousel, job, 1);
	carousel_totals(carousel, &totals);
	ck_assert_uint_eq(totals.pinned, 1);
	ck_assert_uint_eq(totals.jobs, 0);
	join(8, 1);
	for (int i = 0; i < 8; i++) {
		carousel_step(carousel, 1, &action);
		if (action.kind == CAROUSEL_PRODUCE)
			carousel_produced(carousel, action.slot);
		ck_assert(action.kind != CAROUSEL_EMPTY || action.slot != slot);
	}
	carousel_unpin(carousel, slot);
	carousel_unpin(carousel, slot);
	carousel_totals(carousel, &totals);
	ck_assert_uint_eq(totals.pinned, 0);
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	free_carousel();
}
END_TEST

START_TEST(a_job_that_leaves_its_grants_untaken_does_not_live)
{
	struct carousel_job_view view;
	uint64_t wake_ns;
	uint32_t job;

	new_carousel(64, 8, 4, 0);
	job = join(8, 1);
	deal_one();
	deal_one();
	step(CAROUSEL_NONE);
	wake_ns = action.wake_ns;
	ck_assert_uint_eq(wake_ns, 1 + 10 * SECOND);
	carousel_job(carousel, job, wake_ns - 1, &view);
	ck_assert(view.lives);
	carousel_job(carousel, job, wake_ns, &view);
	ck_assert(!view.lives && !view.hungry && !view.starving);
	step_at(wake_ns, CAROUSEL_NONE);
	ck_assert_uint_eq(action.wake_ns, 0);
	free_carousel();
}
END_TEST

/* The first chunk waits for a sample: all others of the epoch are begun, finished, granted and read beside it, no more
 * than two at once. */
START_TEST(a_chunk_that_is_overtaken_holds_up_no_other)
{
	struct carousel_config config = {
	    .n = 96, .chunk = 8, .slots = 4, .max_slots = 4, .producing = 2, .overtaken = 1};
	uint32_t job, late = CAROUSEL_NO_SLOT, making[4], n_making = 0, n_read = 0;

	ck_assert_int_eq(carousel_new(&config, &carousel), 0);
	job = join(8, 1);
	for (;;) {
		carousel_step(carousel, 1, &action);
		ck_assert_ptr_eq(carousel_check(carousel), NULL);
		if (action.kind == CAROUSEL_PRODUCE && late == CAROUSEL_NO_SLOT)
			late = action.slot;
		else if (action.kind == CAROUSEL_PRODUCE)
			making[n_making++] = action.slot;
		ck_assert_uint_le(n_making, 2);
		if (action.kind == CAROUSEL_GRANT && action.slot == late)
			carousel_taken(carousel, job, late, 1);
		if (action.kind != CAROUSEL_NONE)
			continue;
		if (!n_making)
			break;
		carousel_produced(carousel, making[0]);
		read_chunk(job, making[0]);
		making[0] = making[--n_making];
		n_read++;
	}
	ck_assert_uint_eq(n_read, 11);
	carousel_produced(carousel, late);
	carousel_done(carousel, job, late, 1);
	ck_assert(carousel_may_begin(carousel));
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	free_carousel();
}
END_TEST

START_TEST(nonsense_changes_nothing)
{
	struct carousel_job_view before, after;
	uint32_t job, slot;

	new_carousel(64, 8, 4, 0);
	job = join(8, 1);
	slot = deal_one();
	carousel_job(carousel, job, 1, &before);
	carousel_taken(carousel, job, slot + 1, 1);
	carousel_taken(carousel, job + 1, slot, 1);
	carousel_done(carousel, CAROUSEL_MAX_JOBS, slot, 1);
	carousel_reclaimed(carousel, job, CAROUSEL_NO_SLOT, 1);
	carousel_produced(carousel, slot);
	carousel_produced(carousel, CAROUSEL_NO_SLOT);
	carousel_unpin(carousel, slot);
	carousel_unpin(carousel, CAROUSEL_NO_SLOT);
	carousel_waiting(carousel, CAROUSEL_MAX_JOBS, true);
	carousel_leave(carousel, job + 1, 1);
	carousel_job(carousel, job, 1, &after);
	ck_assert_mem_eq(&before, &after, sizeof(before));
	ck_assert_ptr_eq(carousel_check(carousel), NULL);
	free_carousel();
}
END_TEST

START_TEST(an_empty_dataset_asks_for_nothing)
{
	new_carousel(0, 8, 4, 0);
	join(8, 0);
	step(CAROUSEL_NONE);
	free_carousel();
}
END_TEST

START_TEST(the_reference_is_summed_over_segments)
{
	struct carousel_totals totals;
	uint32_t first, second, slot;

	new_carousel(32, 8, 4, 0);
	first = join(8, 1);
	slot = deal_one();
	read_chunk(first, slot); /* 8 by one alone */
	second = join(8, 1);
	step(CAROUSEL_GRANT);
	read_chunk(second, slot);
	carousel_totals(carousel, &totals);
	ck_assert_uint_eq(totals.reference, 16);
	ck_assert_uint_eq(totals.productions, 8);
	carousel_leave(carousel, second, 1);
	carousel_totals(carousel, &totals);
	ck_assert_uint_eq(totals.reference, 16);
	free_carousel();
}
END_TEST

/* Same events, same decisions. */
START_TEST(decisions_are_a_function_of_the_events)
{
	uint64_t first[64];

	for (int again = 0; again < 2; again++) {
		unsigned n = 0;

		new_carousel(64, 8, 4, 0);
		join(8, 2);
		join(4, 1);
		while (n < 64) {
			const struct carousel_chunk *chunk;
			uint64_t seen;

			carousel_step(carousel, n, &action);
			if (action.kind == CAROUSEL_PRODUCE)
				carousel_produced(carousel, action.slot);
			if (action.kind == CAROUSEL_GRANT)
				read_chunk(action.job, action.slot);
			chunk = carousel_chunk_of(carousel, action.slot);
			seen = (uint64_t)action.kind << 48 | (uint64_t)action.job << 40 |
			       (uint64_t)action.slot << 32 | (chunk ? (uint64_t)chunk->ids[0] : 99);
			if (again)
				ck_assert_uint_eq(seen, first[n]);
			first[n++] = seen;
		}
		free_carousel();
	}
}
END_TEST

#define HISTORIES HISTORIES_OF(2000)
#define HISTORIES_A_TEST 100

START_TEST(random_histories)
{
	static const struct chaos_limits limits = {.max_n = 150, .events = 250};

	for (uint64_t seed = 0; seed < HISTORIES_A_TEST; seed++) {
		uint64_t number = (uint64_t)_i * HISTORIES_A_TEST + seed;
		const char *broken = chaos_run(number, &limits, NULL);

		ck_assert_msg(!broken, "history %u: %s", (unsigned)number, broken);
	}
}
END_TEST

START_TEST(random_histories_of_several_variants)
{
	for (uint64_t seed = 0; seed < HISTORIES_A_TEST; seed++) {
		uint64_t number = (uint64_t)_i * HISTORIES_A_TEST + seed;
		const struct chaos_limits limits = {
		    .max_n = 150,
		    .events = 250,
		    .variants = 2 + (unsigned)(number % (CAROUSEL_MAX_VARIANTS - 1)),
		};
		const char *broken = chaos_run(number, &limits, NULL);

		ck_assert_msg(!broken, "history %u: %s", (unsigned)number, broken);
	}
}
END_TEST

/* With instances that are kept and brought again: in one pipeline, or several that begin alike. */
START_TEST(random_histories_of_kept_instances)
{
	uint64_t all = 0;

	for (uint64_t seed = 0; seed < HISTORIES_A_TEST; seed++) {
		uint64_t number = (uint64_t)_i * HISTORIES_A_TEST + seed, brought;
		const struct chaos_limits limits = {
		    .max_n = 150,
		    .events = 400,
		    .variants = number % 4 ? 0 : 2,
		    .keeps = true,
		};
		const char *broken = chaos_run(number, &limits, &brought);

		ck_assert_msg(!broken, "history %u: %s", (unsigned)number, broken);
		all += brought;
	}
	ck_assert_uint_gt(all, 0);
}
END_TEST

/* Blocks of two samples, the last of one. */
START_TEST(random_histories_of_larger_blocks)
{
	static const struct chaos_limits limits = {
	    .n = (1 << 19) + 1, .max_need = 150, .events = 120};
	const char *broken = chaos_run((uint64_t)_i, &limits, NULL);

	ck_assert_msg(!broken, "history %d: %s", _i, broken);
}
END_TEST

static Suite *suite(void)
{
	Suite *all = suite_create("carousel");
	TCase *one = tcase_create("promises"), *many = tcase_create("histories");

	tcase_add_loop_test(one, configurations_that_make_no_sense_are_refused, 0, 6);
	tcase_add_loop_test(one, joins_that_make_no_sense_are_refused, 0, 8);
	tcase_add_test(one, jobs_past_the_most_are_refused_and_numbers_come_again);
	tcase_add_test(one, slots_are_added_up_to_the_most);
	tcase_add_test(one, a_chunk_is_granted_while_it_is_filled);
	tcase_add_test(one, the_last_chunk_is_marked_and_the_next_epoch_follows_without_a_gap);
	tcase_add_test(one, a_joiner_is_granted_what_is_there);
	tcase_add_test(one, a_forgotten_chunk_is_granted_to_nobody_else);
	tcase_add_test(one, nonces_that_a_job_has_seen_are_not_granted_again);
	tcase_add_loop_test(one, nonces_that_a_token_had_no_room_for_are_not_granted_again, 0, 2);
	tcase_add_loop_test(one, a_resident_chunk_serves_the_next_epoch_only_if_it_may, 0, 2);
	tcase_add_test(one, a_chunk_read_before_serves_a_later_epoch);
	tcase_add_test(one, a_tail_comes_first_for_its_job_alone);
	tcase_add_test(one, a_fixed_plan_is_granted_in_its_order);
	tcase_add_test(one, jobs_with_the_same_plan_share);
	tcase_add_test(one, a_chunk_is_kept_for_who_comes_to_it);
	tcase_add_test(one, a_wanted_slot_is_evicted_for_the_starving);
	tcase_add_loop_test(one, a_rank_that_was_quicker_keeps_its_chunk, 0, 2);
	tcase_add_test(one, a_rank_that_was_quicker_is_granted_more_at_once);
	tcase_add_test(one, a_rank_that_yields_needs_the_samples_again);
	tcase_add_test(one, the_end_of_an_epoch_is_taken_back);
	tcase_add_test(one, pins_of_the_dead_stay_until_their_process_is_gone);
	tcase_add_test(one, a_job_that_leaves_its_grants_untaken_does_not_live);
	tcase_add_test(one, nonsense_changes_nothing);
	tcase_add_test(one, a_chunk_that_is_overtaken_holds_up_no_other);
	tcase_add_test(one, an_empty_dataset_asks_for_nothing);
	tcase_add_test(one, the_reference_is_summed_over_segments);
	tcase_add_test(one, decisions_are_a_function_of_the_events);
	tcase_add_loop_test(many, random_histories, 0, HISTORIES / HISTORIES_A_TEST);
	tcase_add_loop_test(many, random_histories_of_several_variants, 0,
			    HISTORIES / HISTORIES_A_TEST / 2);
	tcase_add_loop_test(many, random_histories_of_kept_instances, 0,
			    HISTORIES / HISTORIES_A_TEST / 2);
	tcase_add_loop_test(many, random_histories_of_larger_blocks, 0, HISTORIES_OF(24));
	suite_add_tcase(all, one);
	suite_add_tcase(all, many);
	return all;
}

int main(void)
{
	SRunner *runner = srunner_create(suite());
	int failed;

	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
