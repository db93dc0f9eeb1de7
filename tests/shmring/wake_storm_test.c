/* SPDX-License-Identifier: Apache-2.0 */

/*
 * No wake is lost: a rank arms and then looks at a watermark, accessd moves the watermark and then
 * looks for an arm. Whichever way the two run into each other, one of them must see. Two threads do
 * it a great many times (fewer where both share a processor), each round from the same start; a
 * round that neither saw is a sleep for ever. (With plain release and acquire this fails on x86: the
 * store waits in the buffer while the load goes ahead.)
 */

#include <pthread.h>
#include <sched.h>

#include "shmring/slot_table.h"
#include "shmring/grant.h"
#include "tests/shmring/suite.h"

enum { ROUNDS = 500000, PATIENCE = 2000, SECONDS = 10 };

static struct {
	struct slot_table writer, reader;
	struct grant_server server;
	struct grant_rank rank;
	_Atomic uint32_t arrived; /* at barriers, both together */
	_Atomic unsigned last;    /* round */
	bool accessd_saw;
	unsigned lost;
} storm;

/* Both threads come here as often; nobody goes on alone. */
static void meet(uint32_t *meetings)
{
	uint32_t both = 2 * ++*meetings;

	atomic_fetch_add(&storm.arrived, 1);
	for (unsigned spins = 0; (int32_t)(atomic_load(&storm.arrived) - both) < 0; spins++)
		if (spins > PATIENCE) /* the other one has no processor */
			sched_yield();
}

/* A few steps, so that the two meet in all ways. */
static void dawdle(uint64_t *random)
{
	for (volatile uint64_t i = suite_random(random) % 32; i > 0; i--)
		continue;
}

static void *be_accessd(void *argument)
{
	uint64_t random = 2;
	uint32_t meetings = 0;

	for (unsigned round = 0; round <= storm.last; round++) {
		slot_table_watermark(&storm.writer, 0, 0);
		meet(&meetings);
		dawdle(&random);
		slot_table_watermark(&storm.writer, 0, 1);
		storm.accessd_saw = grant_wants_wake(&storm.server);
		meet(&meetings);
	}
	return argument;
}

static void be_rank(void)
{
	const uint64_t end_ns = base_now_ns() + SECONDS * UINT64_C(1000000000);
	uint64_t random = 1;
	uint32_t meetings = 0;

	for (unsigned round = 0; round <= storm.last; round++) {
		bool saw;

		/* Before the round's first meeting: so the other one knows it after the second. */
		if (round % 1024 == 0 && base_now_ns() > end_ns)
			storm.last = round;
		grant_disarm(&storm.rank);
		meet(&meetings);
		dawdle(&random);
		grant_arm(&storm.rank);
		saw = slot_table_read_watermark(&storm.reader, 0) > 0;
		meet(&meetings);
		storm.lost += !saw && !storm.accessd_saw;
	}
}

static void make(void)
{
	struct slot_geometry g = {
	    .max_slots = 4, .chunk = 8, .block = 1, .n_fields = 1, .n_samples = 10};
	const struct layout_outbox *outbox;
	const struct layout_inbox *rank_inbox;
	struct layout_inbox *inbox;
	struct layout_outbox *rank_outbox;
	int fd, inbox_fd, outbox_fd;

	g.field[0] = (struct layout_field){
	    .name = "x", .dtype = LAYOUT_U8, .where = LAYOUT_IN_SLOT, .ndim = 1, .shape = {10}};
	ck_assert_int_eq(slot_table_plan(&g), 0);
	ck_assert_int_eq(slot_table_new(&g, &storm.writer, &fd), 0);
	ck_assert_int_eq(slot_table_attach(fd, &storm.reader), 0);
	ck_assert_int_eq(grant_memory_new(&inbox, &inbox_fd, &outbox, &outbox_fd), 0);
	ck_assert_int_eq(grant_memory_attach(inbox_fd, outbox_fd, &rank_inbox, &rank_outbox), 0);
	grant_server_init(&storm.server, inbox, outbox);
	grant_rank_init(&storm.rank, rank_inbox, rank_outbox);
	base_close(&fd);
	base_close(&inbox_fd);
	base_close(&outbox_fd);
}

START_TEST(no_wake_is_lost)
{
	pthread_t accessd;

	make();
	storm.last = ROUNDS - 1;
	ck_assert_int_eq(pthread_create(&accessd, NULL, be_accessd, NULL), 0);
	be_rank();
	pthread_join(accessd, NULL);
	ck_assert_msg(storm.lost == 0, "%u of %u wakes were lost", storm.lost, storm.last + 1);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, no_wake_is_lost);
}

int main(void)
{
	return suite_run("wake storm", add);
}
