/* SPDX-License-Identifier: Apache-2.0 */

/* The handshake step by step, and what accessd makes of an outbox that lies. */

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "shmring/grant.h"
#include "shmring/inbox.h"
#include "tests/shmring/suite.h"
#include "tests/invariants/invariants.h"

#define RING LAYOUT_GRANT_RING
#define DONE(k) ((uint64_t)(k) << 8 | LAYOUT_RESULT_DONE)
#define RETURNED(k) ((uint64_t)(k) << 8 | LAYOUT_RESULT_RETURNED)
#define HELD(k) ((uint64_t)(k) << 8 | LAYOUT_TAKE_HELD)
#define KEPT(k) ((uint64_t)(k) << 8 | LAYOUT_TAKE_KEPT)

static struct layout_inbox *inbox;
static struct layout_outbox *outbox; /* as the rank maps it */
static const struct layout_inbox *rank_inbox;
static const struct layout_outbox *server_outbox;
static struct grant_server server;
static struct grant_rank rank;
static int inbox_fd, outbox_fd;
static uint64_t nonsense;

static void setup(void)
{
	ck_assert_int_eq(grant_memory_new(&inbox, &inbox_fd, &server_outbox, &outbox_fd), 0);
	ck_assert_int_eq(grant_memory_attach(inbox_fd, outbox_fd, &rank_inbox, &outbox), 0);
	grant_server_init(&server, inbox, server_outbox);
	grant_rank_init(&rank, rank_inbox, outbox);
	nonsense = 0;
	assert_fine(grant_check(&server));
}

static void teardown(void)
{
	grant_memory_detach(rank_inbox, outbox);
	grant_memory_free(inbox, server_outbox);
	close(inbox_fd);
	close(outbox_fd);
}

static uint64_t post(uint32_t slot)
{
	struct grant grant = {
	    .instance = 100 + slot, .epoch = 3, .slot = slot, .first = 1, .count = 9, .flags = 1};
	uint64_t number = 0;

	ck_assert_int_eq(grant_post(&server, &grant, &number), 0);
	assert_fine(grant_check(&server));
	return number;
}

static int take_back(uint64_t number)
{
	int r = grant_revoke(&server, number);

	assert_fine(grant_check(&server));
	return r;
}

static void expect_change(uint64_t number, enum grant_fate expected)
{
	struct grant grant;
	enum grant_fate fate;

	ck_assert_int_eq(grant_poll(&server, &grant, &fate, &nonsense), 0);
	ck_assert_uint_eq(grant.number, number);
	ck_assert_int_eq(fate, expected);
	assert_fine(grant_check(&server));
}

static void expect_quiet(uint64_t total_nonsense)
{
	struct grant grant;
	enum grant_fate fate;

	ck_assert_int_eq(grant_poll(&server, &grant, &fate, &nonsense), GRANT_E_NONE);
	ck_assert_uint_eq(nonsense, total_nonsense);
	assert_fine(grant_check(&server));
}

static uint64_t take(void)
{
	struct grant grant;

	ck_assert_int_eq(grant_take(&rank, &grant), 0);
	return grant.number;
}

static int try_take(void)
{
	struct grant grant;

	return grant_take(&rank, &grant);
}

/* ---- an honest rank ---- */

START_TEST(grant_is_taken_and_given_back)
{
	struct grant grant;

	ck_assert(!grant_is_posted(&rank));
	ck_assert_int_eq(try_take(), GRANT_E_NONE);
	ck_assert_uint_eq(post(5), 1);
	ck_assert(grant_is_posted(&rank));
	ck_assert_int_eq(grant_take(&rank, &grant), 0);
	ck_assert_uint_eq(grant.number, 1);
	ck_assert_uint_eq(grant.instance, 105);
	ck_assert_uint_eq(grant.epoch, 3);
	ck_assert_uint_eq(grant.slot, 5);
	ck_assert_uint_eq(grant.first, 1);
	ck_assert_uint_eq(grant.count, 9);
	ck_assert_uint_eq(grant.flags, LAYOUT_GRANT_LAST);
	ck_assert(!grant_is_posted(&rank));
	expect_change(1, GRANT_TAKEN);
	expect_quiet(0);
	grant_release(&rank, 1);
	expect_change(1, GRANT_DONE);
	expect_quiet(0);
	ck_assert_uint_eq(server.settled, 1);
}
END_TEST

START_TEST(done_between_two_polls_is_taken_then_done)
{
	post(0);
	post(1);
	grant_release(&rank, take());
	take();
	expect_change(1, GRANT_TAKEN);
	expect_change(1, GRANT_DONE);
	expect_change(2, GRANT_TAKEN);
	expect_quiet(0);
}
END_TEST

START_TEST(pins_are_two)
{
	for (uint32_t slot = 0; slot < 3; slot++)
		post(slot);
	ck_assert_uint_eq(take(), 1);
	ck_assert_uint_eq(take(), 2);
	ck_assert_int_eq(try_take(), GRANT_E_PINS);
	ck_assert(grant_is_posted(&rank));
	grant_release(&rank, 2);
	ck_assert_uint_eq(take(), 3);
	ck_assert_int_eq(try_take(), GRANT_E_PINS);
	grant_release(&rank, 7); /* not held: nothing happens */
	grant_release(&rank, 0);
	ck_assert_int_eq(try_take(), GRANT_E_PINS);
	expect_change(1, GRANT_TAKEN);
	expect_change(2, GRANT_TAKEN);
	expect_change(2, GRANT_DONE);
	expect_change(3, GRANT_TAKEN);
	expect_quiet(0);
	ck_assert_uint_eq(server.settled, 0);
	grant_release(&rank, 1);
	expect_change(1, GRANT_DONE);
	ck_assert_uint_eq(server.settled, 2);
}
END_TEST

START_TEST(revoked_grants_are_passed_over)
{
	for (uint32_t slot = 0; slot < 4; slot++)
		post(slot);
	ck_assert_int_eq(take_back(1), 0);
	ck_assert_int_eq(take_back(3), 0);
	ck_assert_int_eq(take_back(3), 0);
	ck_assert(grant_is_posted(&rank));
	ck_assert_uint_eq(take(), 2);
	ck_assert_uint_eq(take(), 4);
	ck_assert_int_eq(take_back(2), GRANT_E_HELD);
	grant_release(&rank, 2);
	grant_release(&rank, 4);
	expect_change(2, GRANT_TAKEN);
	expect_change(2, GRANT_DONE);
	expect_change(4, GRANT_TAKEN);
	expect_change(4, GRANT_DONE);
	expect_quiet(0);
	ck_assert_int_eq(take_back(2), GRANT_E_NONE);
	ck_assert_int_eq(take_back(0), GRANT_E_NONE);
	ck_assert_int_eq(take_back(5), GRANT_E_NONE);
}
END_TEST

/* accessd takes back what was peeked at, before it is taken: what is behind it is left alone. */
START_TEST(one_that_was_peeked_at_is_taken_or_none)
{
	struct grant seen, taken;

	post(0);
	post(1);
	ck_assert(grant_peek(&rank, &seen));
	ck_assert_uint_eq(seen.number, 1);
	ck_assert_int_eq(take_back(1), 0);
	ck_assert_int_eq(grant_take_one(&rank, seen.number, &taken), GRANT_E_NONE);
	expect_quiet(0);
	ck_assert(grant_peek(&rank, &seen));
	ck_assert_uint_eq(seen.number, 2);
	post(2);
	ck_assert_int_eq(grant_take_one(&rank, seen.number, &taken), 0);
	ck_assert_uint_eq(taken.number, 2);
	ck_assert_uint_eq(taken.instance, 101);
	expect_change(2, GRANT_TAKEN);
	expect_quiet(0);
	ck_assert_uint_eq(take(), 3);
}
END_TEST

/* The rank stands between R1 and R2 when the revoke comes: both see each other. */
START_TEST(both_see_each_other)
{
	bool polled_between = _i;

	post(0);
	atomic_store(&outbox->c_take[0], HELD(1));
	if (polled_between)
		expect_quiet(0);
	ck_assert_int_eq(take_back(1), GRANT_E_HELD);
	ck_assert_int_eq(take_back(1), GRANT_E_HELD);
	expect_quiet(0);
	atomic_store(&outbox->c_result[1], RETURNED(1));
	atomic_store(&outbox->c_take[0], 1 << 8);
	expect_change(1, GRANT_RETURNED);
	expect_quiet(0);
	ck_assert_uint_eq(server.settled, 1);
	ck_assert_int_eq(take_back(1), GRANT_E_NONE);
}
END_TEST

/* The revoke comes behind R2: accessd learns that it was too late long before the rank is through. */
START_TEST(late_revoke_is_told_at_once)
{
	bool at_the_edge = _i; /* between R2 and R6 */

	post(0);
	post(1);
	ck_assert_uint_eq(take(), 1);
	if (at_the_edge)
		atomic_store(&outbox->c_take[0], HELD(1));
	ck_assert_int_eq(take_back(1), GRANT_E_HELD);
	if (at_the_edge) {
		expect_quiet(0);
		atomic_store(&outbox->c_take[0], KEPT(1));
	}
	expect_change(1, GRANT_TAKEN);
	expect_quiet(0);
	ck_assert_int_eq(take_back(1), GRANT_E_HELD);
	grant_release(&rank, 1);
	expect_change(1, GRANT_DONE);
	expect_quiet(0);
}
END_TEST

/* The revoke comes before R1: the late take and RETURNED of a reclaimed grant are no offence. */
START_TEST(late_take_of_a_reclaimed_grant_is_fine)
{
	post(0);
	ck_assert_int_eq(take_back(1), 0);
	atomic_store(&outbox->c_take[1], HELD(1));
	expect_quiet(0);
	atomic_store(&outbox->c_result[1], RETURNED(1));
	expect_quiet(0);
	atomic_store(&outbox->c_take[1], 1 << 8);
	expect_quiet(0);
	ck_assert_int_eq(take_back(1), 0);
}
END_TEST

START_TEST(ring_is_full_until_ends_are_known)
{
	struct grant grant = {.instance = 1};
	uint64_t number;

	for (uint32_t i = 0; i < RING; i++)
		post(i);
	ck_assert_int_eq(grant_post(&server, &grant, &number), GRANT_E_FULL);
	ck_assert_int_eq(take_back(2), 0);
	ck_assert_int_eq(grant_post(&server, &grant, &number), GRANT_E_FULL);
	grant_release(&rank, take());
	ck_assert_int_eq(grant_post(&server, &grant, &number), GRANT_E_FULL);
	expect_change(1, GRANT_TAKEN);
	expect_change(1, GRANT_DONE);
	ck_assert_uint_eq(post(9), RING + 1);
	ck_assert_uint_eq(post(9), RING + 2);
	ck_assert_int_eq(grant_post(&server, &grant, &number), GRANT_E_FULL);
}
END_TEST

/* A rank that slept through several rounds of the ring finds the first grant that stands. */
START_TEST(rank_that_slept_finds_its_place)
{
	uint64_t slept = 1 + (uint64_t)_i * 29, last;

	for (uint64_t k = 1; k <= slept; k++)
		ck_assert_int_eq(take_back(post(0)), 0);
	last = post(1);
	post(2);
	ck_assert(grant_is_posted(&rank));
	ck_assert_uint_eq(take(), last);
	ck_assert_uint_eq(take(), last + 1);
	ck_assert_int_eq(try_take(), GRANT_E_PINS);
	expect_change(last, GRANT_TAKEN);
	expect_change(last + 1, GRANT_TAKEN);
	expect_quiet(0);
}
END_TEST

/* Both taken words are known only from revokes, while an older grant was taken and done between. */
START_TEST(seen_by_revoke_alone_leaves_room_for_what_is_done)
{
	for (uint32_t slot = 0; slot < 3; slot++)
		post(slot);
	grant_release(&rank, take());
	take();
	take();
	ck_assert_int_eq(take_back(2), GRANT_E_HELD);
	ck_assert_int_eq(take_back(3), GRANT_E_HELD);
	expect_change(1, GRANT_TAKEN);
	expect_change(1, GRANT_DONE);
	expect_change(2, GRANT_TAKEN);
	expect_change(3, GRANT_TAKEN);
	expect_quiet(0);
	grant_release(&rank, 3);
	expect_change(3, GRANT_DONE);
	expect_quiet(0);
}
END_TEST

/* A job keeps a batch while all that it is granted is withdrawn, time and again. */
START_TEST(a_grant_kept_for_long_keeps_nothing_else_up)
{
	struct grant grant = {.instance = 1};
	uint64_t kept, number;

	kept = post(0);
	ck_assert_uint_eq(take(), kept);
	expect_change(kept, GRANT_TAKEN);
	if (_i) { /* another one, that comes and goes */
		number = post(1);
		ck_assert_uint_eq(take(), number);
		expect_change(number, GRANT_TAKEN);
	}
	for (uint32_t i = 0; i < 5 * RING; i++) {
		number = post(1);
		ck_assert_uint_ne(number % RING, kept % RING);
		ck_assert_int_eq(take_back(number), 0);
	}
	ck_assert_uint_eq(server.settled, 0);
	number = post(2);
	ck_assert(grant_is_posted(&rank));
	if (_i)
		grant_release(&rank, 2);
	ck_assert_uint_eq(take(), number);
	if (_i)
		expect_change(2, GRANT_DONE);
	expect_change(number, GRANT_TAKEN);
	expect_quiet(0);
	grant_release(&rank, number);
	expect_change(number, GRANT_DONE);
	for (uint32_t i = 1; i < RING; i++)
		post(i); /* untaken ones wait for their turn */
	ck_assert_int_eq(grant_post(&server, &grant, &number), GRANT_E_FULL);
	grant_release(&rank, kept);
	expect_change(kept, GRANT_DONE);
	expect_quiet(0);
	ck_assert_uint_eq(server.settled, number);
}
END_TEST

START_TEST(one_wake_an_arm)
{
	ck_assert(!grant_wants_wake(&server));
	ck_assert(!grant_is_waiting(&server));
	grant_arm(&rank);
	ck_assert(grant_is_waiting(&server));
	ck_assert(grant_is_asleep(&server));
	ck_assert(grant_wants_wake(&server));
	ck_assert(!grant_wants_wake(&server));
	ck_assert(grant_is_waiting(&server));
	ck_assert(!grant_is_asleep(&server)); /* a wake is on its way */
	grant_disarm(&rank);
	ck_assert(!grant_is_waiting(&server));
	grant_arm(&rank);
	ck_assert(grant_wants_wake(&server));
	grant_disarm(&rank);
	ck_assert(!grant_wants_wake(&server));
}
END_TEST

START_TEST(kick_is_asked_for)
{
	ck_assert(!grant_wants_kick(&rank));
	inbox_show(inbox, LAYOUT_STAGE_READ, LAYOUT_KICK_ENDS, 1);
	ck_assert(grant_wants_kick(&rank));
	ck_assert(grant_wants_sleep(&rank));
	inbox_show(inbox, LAYOUT_STAGE_NONE, LAYOUT_KICK_NO_SLEEP, 2);
	ck_assert(!grant_wants_sleep(&rank));
	ck_assert(!grant_wants_kick(&rank));
}
END_TEST

/* ---- a rank that lies ---- */

/* Grants 1 .. 4 are posted, 2 is reclaimed, 3 is taken. One word of the outbox is then changed. */
static void stage(void)
{
	for (uint32_t slot = 0; slot < 4; slot++)
		post(slot);
	take_back(2);
	atomic_store(&outbox->c_take[0], KEPT(3));
	expect_change(3, GRANT_TAKEN);
	expect_quiet(0);
}

static const struct {
	enum { RESULT, TAKE, NEXT } kind;
	unsigned index;
	uint64_t word;
} lies[] = {
    {RESULT, 5, DONE(5)},                /* never granted */
    {RESULT, 4, DONE(RING + 4)},         /* not yet granted */
    {RESULT, 5, DONE(1)},                /* in another's place */
    {RESULT, 0, DONE(0)},                /* there is no grant 0 */
    {RESULT, 1, UINT64_C(1) << 8 | 3},   /* no such result */
    {RESULT, 1, UINT64_C(1) << 8},       /* no such result */
    {RESULT, 1, UINT64_MAX},             /* all ones */
    {RESULT, 1, RETURNED(1)},            /* was never revoked */
    {RESULT, 3, RETURNED(3)},            /* taken, but was never revoked */
    {RESULT, 2, DONE(2)},                /* was reclaimed */
    {RESULT, 63, UINT64_C(1) << 63 | 1}, /* far away */
    {TAKE, 1, HELD(0)},                  /* there is no grant 0 */
    {TAKE, 1, HELD(5)},                  /* never granted */
    {TAKE, 1, UINT64_MAX},               /* all ones */
    {TAKE, 0, UINT64_C(3) << 8 | 3},     /* no such state */
    {TAKE, 1, KEPT(2)},                  /* was reclaimed */
    {TAKE, 1, KEPT(5)},                  /* never granted */
    {TAKE, 1, UINT64_C(9) << 8},         /* free of a grant that never was */
    {NEXT, 0, 0},                        /* counts from 1 */
    {NEXT, 0, 2},                        /* passes over 1, which stands */
    {NEXT, 0, 6},                        /* beyond all that was posted */
    {NEXT, 0, UINT64_MAX},
};

static void tell(unsigned i)
{
	if (lies[i].kind == RESULT)
		atomic_store(&outbox->c_result[lies[i].index], lies[i].word);
	else if (lies[i].kind == TAKE)
		atomic_store(&outbox->c_take[lies[i].index], lies[i].word);
	else
		atomic_store(&outbox->c_next, lies[i].word);
}

START_TEST(lie_is_counted_once_and_changes_nothing)
{
	struct grant_server before;

	stage();
	before = server;
	tell((unsigned)_i);
	expect_quiet(1);
	expect_quiet(1);
	ck_assert_uint_eq(server.settled, before.settled);
	ck_assert_int_eq(memcmp(server.fate, before.fate, sizeof(before.fate)), 0);
	/* The rank mends its ways: all goes on. */
	atomic_store(&outbox->c_result[3], DONE(3));
	expect_change(3, GRANT_DONE);
	ck_assert_int_eq(take_back(4), 0);
}
END_TEST

START_TEST(takes_beyond_the_pins_are_not_believed)
{
	for (uint32_t slot = 0; slot < 6; slot++)
		post(slot);
	atomic_store(&outbox->c_take[0], KEPT(1));
	atomic_store(&outbox->c_take[1], KEPT(2));
	expect_change(1, GRANT_TAKEN);
	expect_change(2, GRANT_TAKEN);
	atomic_store(&outbox->c_take[0], HELD(3));
	atomic_store(&outbox->c_take[1], KEPT(4));
	expect_quiet(2);
	ck_assert_int_eq(take_back(3), 0); /* the slot comes back all the same */
	ck_assert_int_eq(take_back(4), 0);
	atomic_store(&outbox->c_result[1], DONE(1));
	expect_change(1, GRANT_DONE);
	expect_quiet(2);
}
END_TEST

START_TEST(takes_seen_by_revoke_are_bounded_too)
{
	unsigned held = 0;

	for (uint32_t slot = 0; slot < 10; slot++)
		post(slot);
	for (uint64_t k = 1; k <= 10; k++) {
		atomic_store(&outbox->c_take[k % 2], HELD(k));
		held += take_back(k) == GRANT_E_HELD;
	}
	ck_assert_uint_eq(held, LAYOUT_MAX_PINS);
}
END_TEST

/* What was seen once stays so, whatever the word says later. */
START_TEST(words_taken_back_do_not_take_back_what_was_seen)
{
	post(0);
	post(1);
	atomic_store(&outbox->c_result[1], DONE(1));
	expect_change(1, GRANT_TAKEN);
	atomic_store(&outbox->c_result[1], 0);
	expect_change(1, GRANT_DONE);
	atomic_store(&outbox->c_result[1], RETURNED(1));
	expect_quiet(1);
	atomic_store(&outbox->c_take[0], HELD(2));
	ck_assert_int_eq(take_back(2), GRANT_E_HELD);
	atomic_store(&outbox->c_take[0], 0);
	ck_assert_int_eq(take_back(2), GRANT_E_HELD);
	expect_quiet(1);
	atomic_store(&outbox->c_result[2], RETURNED(2));
	expect_change(2, GRANT_RETURNED);
	expect_quiet(1);
}
END_TEST

START_TEST(returned_before_the_revoke_counts_from_the_revoke_on)
{
	post(0);
	atomic_store(&outbox->c_result[1], RETURNED(1));
	expect_quiet(1);
	ck_assert_int_eq(take_back(1), GRANT_E_HELD);
	expect_change(1, GRANT_RETURNED);
	expect_quiet(1);
}
END_TEST

START_TEST(what_is_kept_cannot_be_returned)
{
	bool revoked_first = _i;

	post(0);
	if (revoked_first) {
		atomic_store(&outbox->c_take[0], HELD(1));
		ck_assert_int_eq(take_back(1), GRANT_E_HELD);
	}
	atomic_store(&outbox->c_take[0], KEPT(1));
	expect_change(1, GRANT_TAKEN);
	ck_assert_int_eq(take_back(1), GRANT_E_HELD);
	atomic_store(&outbox->c_result[1], RETURNED(1));
	expect_quiet(1);
	atomic_store(&outbox->c_result[1], DONE(1));
	expect_change(1, GRANT_DONE);
	expect_quiet(1);
}
END_TEST

START_TEST(random_words_never_break_the_ledger)
{
	uint64_t seed = 1 + (uint64_t)_i, number = 0;
	struct grant grant = {.instance = 1};
	enum grant_fate fate;

	for (int step = 0; step < 20000; step++) {
		uint64_t dice = suite_random(&seed);
		uint64_t near = dice >> 61 ? server.posted + 4 - dice / 16 % (RING + 8)
					   : server.settled + 1; /* maybe a very old one */
		uint64_t word = (dice >> 20) % 8 ? near << 8 | (dice >> 24) % 4 : dice * dice;

		switch (dice % 8) {
		case 0:
		case 1:
			grant_post(&server, &grant, &number);
			break;
		case 2:
			grant_revoke(&server, near);
			break;
		case 3:
			atomic_store(&outbox->c_take[(dice >> 40) % 2], word);
			break;
		case 4:
		case 5:
			atomic_store(&outbox->c_result[near % RING], word);
			break;
		case 6:
			atomic_store(&outbox->c_next, near);
			break;
		default:
			while (grant_poll(&server, &grant, &fate, &nonsense) == 0)
				assert_fine(grant_check(&server));
		}
		assert_fine(grant_check(&server));
	}
	ck_assert_uint_gt(nonsense, 0);
	ck_assert_uint_gt(server.settled, RING);
}
END_TEST

/* ---- memory ---- */

START_TEST(attach_refuses_other_memory)
{
	const struct layout_inbox *in;
	struct layout_outbox *out;
	int bare = base_memfd("bare", base_page_size());

	ck_assert_int_eq(grant_memory_attach(outbox_fd, inbox_fd, &in, &out), GRANT_E_BAD);
	ck_assert_int_eq(grant_memory_attach(inbox_fd, inbox_fd, &in, &out), GRANT_E_BAD);
	ck_assert_int_eq(grant_memory_attach(inbox_fd, bare, &in, &out), GRANT_E_BAD);
	ck_assert_int_lt(grant_memory_attach(-1, outbox_fd, &in, &out), 0);
	inbox->version++;
	ck_assert_int_eq(grant_memory_attach(inbox_fd, outbox_fd, &in, &out), GRANT_E_BAD);
	inbox->version--;
	outbox->magic++;
	ck_assert_int_eq(grant_memory_attach(inbox_fd, outbox_fd, &in, &out), GRANT_E_BAD);
	outbox->magic--;
	ck_assert_int_eq(grant_memory_attach(inbox_fd, outbox_fd, &in, &out), 0);
	grant_memory_detach(in, out);
	close(bare);
}
END_TEST

START_TEST(each_side_maps_what_it_may)
{
	ck_assert_int_ne(mprotect((void *)(uintptr_t)rank_inbox, 4096, PROT_READ | PROT_WRITE), 0);
	ck_assert_int_eq(fcntl(inbox_fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE, F_SEAL_FUTURE_WRITE);
	ck_assert_int_eq(fcntl(outbox_fd, F_GET_SEALS) &
			     (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			 F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	ck_assert_uint_eq(outbox->c_next, 1);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, grant_is_taken_and_given_back);
	tcase_add_test(tcase, done_between_two_polls_is_taken_then_done);
	tcase_add_test(tcase, pins_are_two);
	tcase_add_test(tcase, revoked_grants_are_passed_over);
	tcase_add_test(tcase, one_that_was_peeked_at_is_taken_or_none);
	tcase_add_loop_test(tcase, both_see_each_other, 0, 2);
	tcase_add_loop_test(tcase, late_revoke_is_told_at_once, 0, 2);
	tcase_add_test(tcase, late_take_of_a_reclaimed_grant_is_fine);
	tcase_add_test(tcase, ring_is_full_until_ends_are_known);
	tcase_add_loop_test(tcase, rank_that_slept_finds_its_place, 0, 10);
	tcase_add_test(tcase, seen_by_revoke_alone_leaves_room_for_what_is_done);
	tcase_add_loop_test(tcase, a_grant_kept_for_long_keeps_nothing_else_up, 0, 2);
	tcase_add_test(tcase, one_wake_an_arm);
	tcase_add_test(tcase, kick_is_asked_for);
	tcase_add_loop_test(tcase, lie_is_counted_once_and_changes_nothing, 0,
			    BASE_ARRAY_LEN(lies));
	tcase_add_test(tcase, takes_beyond_the_pins_are_not_believed);
	tcase_add_test(tcase, takes_seen_by_revoke_are_bounded_too);
	tcase_add_test(tcase, words_taken_back_do_not_take_back_what_was_seen);
	tcase_add_test(tcase, returned_before_the_revoke_counts_from_the_revoke_on);
	tcase_add_loop_test(tcase, what_is_kept_cannot_be_returned, 0, 2);
	tcase_add_loop_test(tcase, random_words_never_break_the_ledger, 0, 5);
	tcase_add_test(tcase, attach_refuses_other_memory);
	tcase_add_test(tcase, each_side_maps_what_it_may);
}

int main(void)
{
	return suite_run("grant", add);
}
