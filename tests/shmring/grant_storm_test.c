/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Takes against revokes at full speed: one thread is accessd, one the rank. Slots are plain memory
 * without atomics, which accessd fills before it posts and overwrites as soon as it knows the end
 * of a grant: if the handshake ever let both have a slot, the rank would read another instance's
 * bytes (and ThreadSanitizer would report the race). The rank keeps some grants for long, so that
 * numbers are left out. At the end both sides must tell the same story of each grant.
 */

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shmring/grant.h"
#include "tests/shmring/suite.h"
#include "tests/invariants/invariants.h"

#ifdef __SANITIZE_THREAD__
enum { N_GRANTS = 20000 };
#else
enum { N_GRANTS = 150000 };
#endif
enum { N_SLOTS = 6, SLOT_WORDS = 32 };
enum { MOST = N_GRANTS + LAYOUT_MAX_PINS + 1 };

static struct {
	struct layout_inbox *inbox;
	const struct layout_outbox *server_outbox;
	const struct layout_inbox *rank_inbox;
	struct layout_outbox *rank_outbox;
	uint64_t slot[N_SLOTS][SLOT_WORDS];
	/* what each side says of a grant; read after both threads have ended */
	uint8_t fate[MOST], delivered[MOST];
	uint64_t posted, left_out, reclaimed, returned, done, spoiled, nonsense, wakes;
	const char *broken;
	_Atomic bool closed;
} storm;

/* ---- accessd ---- */

struct dealer {
	struct grant_server server;
	uint64_t holder[N_SLOTS]; /* number of the grant that has the slot, 0: free */
	uint64_t seed;
};

static void slot_ends(struct dealer *dealer, const struct grant *grant, enum grant_fate fate)
{
	storm.fate[grant->number] = (uint8_t)fate;
	storm.reclaimed += fate == GRANT_RECLAIMED;
	storm.returned += fate == GRANT_RETURNED;
	storm.done += fate == GRANT_DONE;
	memset(storm.slot[grant->slot], 0xff, sizeof(storm.slot[0]));
	dealer->holder[grant->slot] = 0;
}

static void deal_one(struct dealer *dealer, uint32_t slot)
{
	struct grant grant = {.instance = dealer->server.posted + 1, .slot = slot};
	uint64_t number;

	for (int i = 0; i < SLOT_WORDS; i++)
		storm.slot[slot][i] = grant.instance;
	if (grant_post(&dealer->server, &grant, &number) == 0) {
		storm.left_out += number - dealer->server.settled > LAYOUT_GRANT_RING;
		storm.posted++;
		dealer->holder[slot] = number;
	}
	if (grant_wants_wake(&dealer->server))
		storm.wakes++;
}

/* The grant that the rank will take next, or has just taken: there the two meet. */
static uint32_t most_contended(const struct dealer *dealer)
{
	uint64_t next = atomic_load(&storm.rank_outbox->c_next);
	uint32_t slot = 0;

	while (slot < N_SLOTS - 1 && dealer->holder[slot] != next)
		slot++;
	return slot;
}

static void take_back_one(struct dealer *dealer, uint32_t slot)
{
	struct grant grant = {.number = dealer->holder[slot], .slot = slot};

	if (grant.number && grant_revoke(&dealer->server, grant.number) == 0)
		slot_ends(dealer, &grant, GRANT_RECLAIMED);
}

static void collect(struct dealer *dealer)
{
	struct grant grant;
	enum grant_fate fate;

	while (grant_poll(&dealer->server, &grant, &fate, &storm.nonsense) == 0)
		if (fate != GRANT_TAKEN)
			slot_ends(dealer, &grant, fate);
}

static void *accessd(void *unused)
{
	struct dealer dealer = {.seed = 7};

	grant_server_init(&dealer.server, storm.inbox, storm.server_outbox);
	while (dealer.server.settled < N_GRANTS && !storm.broken) {
		uint64_t dice = suite_random(&dealer.seed);
		uint32_t slot = (uint32_t)(dice / 8 % N_SLOTS);

		if (dealer.holder[slot] == 0 && dealer.server.posted < N_GRANTS)
			deal_one(&dealer, slot);
		else if (dice % 8 < 3)
			take_back_one(&dealer, most_contended(&dealer));
		else
			collect(&dealer);
		storm.broken = grant_check(&dealer.server);
		if (dice % 16 == 0)
			sched_yield();
	}
	atomic_store(&storm.closed, true);
	return unused;
}

/* ---- the rank ---- */

static void consume(struct grant_rank *rank, const struct grant *grant)
{
	for (int i = 0; i < SLOT_WORDS; i++)
		storm.spoiled += storm.slot[grant->slot][i] != grant->instance;
	storm.delivered[grant->number]++;
	grant_release(rank, grant->number);
}

static void *rank(void *unused)
{
	struct grant held[LAYOUT_MAX_PINS];
	struct grant_rank self;
	uint64_t seed = 99;
	int n = 0;

	grant_rank_init(&self, storm.rank_inbox, storm.rank_outbox);
	while (!atomic_load(&storm.closed)) {
		uint64_t dice = suite_random(&seed);
		int r = n < LAYOUT_MAX_PINS ? grant_take(&self, &held[n]) : GRANT_E_PINS;

		n += r == 0;
		if (n == LAYOUT_MAX_PINS && dice % 3) /* the newer one */
			consume(&self, &held[--n]);
		else if (n > 0 && dice % 512 == 0) {
			consume(&self, &held[0]);
			held[0] = held[--n];
		}
		if (r == GRANT_E_NONE) {
			grant_arm(&self);
			sched_yield();
			grant_disarm(&self);
		}
	}
	return unused;
}

START_TEST(both_sides_agree_about_each_grant)
{
	int inbox_fd, outbox_fd;
	pthread_t a, b;

	ck_assert_int_eq(
	    grant_memory_new(&storm.inbox, &inbox_fd, &storm.server_outbox, &outbox_fd), 0);
	/* One mapping for both threads: ThreadSanitizer pairs accesses by address. */
	ck_assert_int_eq(
	    grant_memory_attach(inbox_fd, outbox_fd, &storm.rank_inbox, &storm.rank_outbox), 0);
	grant_memory_detach(storm.rank_inbox, NULL);
	storm.rank_inbox = storm.inbox;
	grant_memory_free(NULL, storm.server_outbox);
	storm.server_outbox = storm.rank_outbox;
	ck_assert_int_eq(pthread_create(&a, NULL, accessd, NULL), 0);
	ck_assert_int_eq(pthread_create(&b, NULL, rank, NULL), 0);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	assert_fine(storm.broken);
	ck_assert_uint_eq(storm.spoiled, 0);
	ck_assert_uint_eq(storm.nonsense, 0);
	for (int k = 1; k < MOST; k++)
		ck_assert_msg(storm.delivered[k] == (storm.fate[k] == GRANT_DONE),
			      "grant %d: delivered %u times, fate %u", k, storm.delivered[k],
			      storm.fate[k]);
	ck_assert_uint_eq(storm.done + storm.returned + storm.reclaimed, storm.posted);
	ck_assert_uint_gt(storm.left_out, 0);
	ck_assert_uint_gt(storm.done, 0);
	ck_assert_uint_gt(storm.reclaimed, 0);
	printf("storm: %lu done, %lu reclaimed, %lu returned, %lu beyond the ring, %lu wakes\n",
	       storm.done, storm.reclaimed, storm.returned, storm.left_out, storm.wakes);
	grant_memory_free(storm.inbox, storm.rank_outbox);
	close(inbox_fd);
	close(outbox_fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, both_sides_agree_about_each_grant);
}

int main(void)
{
	return suite_run("grant_storm", add);
}
