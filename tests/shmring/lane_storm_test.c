/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One accessd, three reader threads and four workers at full speed through one lane. Arena and
 * slots are plain memory: a task that two claim, or whose bytes are used before they are there,
 * shows as a wrong sum (and as a race under ThreadSanitizer). Everybody sleeps on the bell without
 * limit, so a lost wake shows as a test that never ends.
 *
 * Every 16 hands another variant comes, and workers that know it, after the first hand of it.
 */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "shmring/lane.h"
#include "tests/shmring/suite.h"

#ifdef __SANITIZE_THREAD__
enum { N_HANDS = 120 };
#else
enum { N_HANDS = 1200 };
#endif
enum { HANDS_EACH = 16 }; /* of a variant */
enum { BLOCKS = 2, HAND = 24, N_READERS = 3, N_WORKERS = 4, SAMPLE_BYTES = 64, FAILS_EACH = 11 };

static struct {
	struct lane lane;
	struct layout_bell *bell;
	uint8_t arena[BLOCKS * HAND * SAMPLE_BYTES];
	uint64_t slot[BLOCKS][HAND];
	sem_t event; /* stands for accessd's eventfd */
	_Atomic bool closed;
	_Atomic uint64_t
	    generation; /* of workers: the variant that they know, and the one before */
	_Atomic uint64_t claims, wrong;
} storm;

static void ring_accessd(bool due)
{
	if (due && bell_take_event_arm(storm.bell))
		sem_post(&storm.event);
}

/* ---- readers and workers ---- */

static void read_task(const struct lane_task *task)
{
	bool fails = task->sample % FAILS_EACH == 0 && task->attempt == 0;

	memset(storm.arena + task->arena_offset, (int)(task->sample & 0xff), task->bytes);
	ring_accessd(lane_read_done(&storm.lane, task, fails ? LAYOUT_FAIL_READ : LAYOUT_FAIL_NONE,
				    fails ? EIO : 0, fails ? "fails once" : NULL, 10, 0));
	if (!fails)
		bell_ring_workers(storm.bell);
}

static void *reader(void *owner)
{
	struct lane_task task;

	while (!atomic_load(&storm.closed)) {
		uint32_t seen = bell_read_seq(storm.bell);

		if (lane_claim_read(&storm.lane, (uint32_t)(uintptr_t)owner, &task) == 0)
			read_task(&task);
		else if (!atomic_load(&storm.closed))
			bell_sleep_reader(storm.bell, seen, UINT64_MAX);
	}
	return NULL;
}

static void run_task(const struct lane_task *task)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < task->bytes; i++)
		sum += storm.arena[task->arena_offset + i];
	if (sum != (task->sample & 0xff) * task->bytes)
		atomic_fetch_add(&storm.wrong, 1);
	storm.slot[task->slot][task->position] = task->sample + task->lap;
	atomic_fetch_add(&storm.claims, 1);
	ring_accessd(lane_run_done(&storm.lane, task, LAYOUT_FAIL_NONE, 0, NULL, 1));
}

static uint32_t variant_of(uint64_t generation)
{
	return UINT32_C(1) << generation % LAYOUT_MAX_VARIANTS;
}

static uint32_t known_to(uint64_t generation)
{
	return variant_of(generation) | variant_of(generation - 1);
}

/* One look. false: nothing to do. */
static bool work(uint32_t owner, uint32_t known)
{
	struct lane_task task;

	switch (lane_claim_run(&storm.lane, owner, known, &task)) {
	case 0:
		if (task.variants & ~known)
			atomic_fetch_add(&storm.wrong, 1);
		run_task(&task);
		return true;
	case LANE_E_STRANGE:
		bell_ring_workers(storm.bell);
		return true;
	default:
		return false;
	}
}

/* A life for each generation. */
static void *worker(void *owner)
{
	uint64_t generation = atomic_load(&storm.generation);

	while (!atomic_load(&storm.closed)) {
		uint32_t seen = bell_work_seq(storm.bell);

		if (generation != atomic_load(&storm.generation))
			generation = atomic_load(&storm.generation);
		else if (!work((uint32_t)(uintptr_t)owner, known_to(generation)) &&
			 !atomic_load(&storm.closed))
			bell_sleep_worker(storm.bell, seen, UINT64_MAX);
	}
	return NULL;
}

/* ---- accessd ---- */

struct hand {
	uint64_t order;
	uint32_t block;
	bool in_use;
};

static void queue(const struct hand *hand, uint32_t i, uint32_t attempt)
{
	lane_task_queue(&storm.lane, hand->block, i, hand->order * HAND + i, i, i, 0,
			((uint64_t)hand->block * HAND + i) * SAMPLE_BYTES, SAMPLE_BYTES, attempt);
}

static void begin(struct hand *hand, uint64_t order, uint32_t slot)
{
	uint64_t generation = order / HANDS_EACH;

	hand->order = order;
	hand->in_use = true;
	ck_assert_int_eq(lane_block_begin(&storm.lane, order, order * 1000, 0, slot,
					  variant_of(generation), HAND, &hand->block),
			 0);
	memset(storm.slot[slot], 0, sizeof(storm.slot[slot]));
	for (uint32_t i = 0; i < HAND; i++)
		queue(hand, HAND - 1 - i, 0);
	bell_ring_readers(storm.bell);
	if (atomic_exchange(&storm.generation, generation) != generation)
		bell_ring_all(storm.bell);
}

/* Queues failed tasks again; true when the whole hand is there and right. */
static bool look_after(struct hand *hand, uint32_t slot)
{
	uint32_t done = 0;

	lane_ring_at(&storm.lane, hand->block, lane_ended(&storm.lane, hand->block) + 1);
	for (uint32_t i = 0; i < HAND; i++) {
		switch (lane_task_state(&storm.lane, hand->block, i, NULL)) {
		case LAYOUT_TASK_DONE:
			ck_assert_uint_eq(storm.slot[slot][i],
					  hand->order * HAND + i + hand->order * 1000);
			done++;
			break;
		case LAYOUT_TASK_FAILED:
			queue(hand, i, 1);
			bell_ring_readers(storm.bell);
			break;
		default:
			break;
		}
	}
	if (done < HAND)
		return false;
	lane_block_end(&storm.lane, hand->block);
	hand->in_use = false;
	return true;
}

static void accessd(void)
{
	struct hand hand[BLOCKS] = {{.in_use = false}};
	uint64_t begun = 0, finished = 0;

	while (finished < N_HANDS) {
		bool progress = false;

		bell_arm_event(storm.bell);
		for (uint32_t slot = 0; slot < BLOCKS; slot++) {
			if (hand[slot].in_use && look_after(&hand[slot], slot))
				progress = ++finished;
			if (hand[slot].in_use || begun == N_HANDS)
				continue;
			begin(&hand[slot], ++begun, slot);
			progress = true;
		}
		if (!progress)
			sem_wait(&storm.event);
	}
}

START_TEST(each_task_is_done_once)
{
	pthread_t thread[N_READERS + N_WORKERS];
	int lane_fd, arena_fd, bell_fd;

	ck_assert_int_eq(
	    lane_new(1, BLOCKS, HAND, sizeof(storm.arena), &storm.lane, &lane_fd, &arena_fd), 0);
	ck_assert_int_eq(bell_new(&storm.bell, &bell_fd), 0);
	ck_assert_int_eq(sem_init(&storm.event, 0, 0), 0);
	for (uintptr_t i = 0; i < N_READERS + N_WORKERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, i < N_READERS ? reader : worker,
						(void *)(i + 1)),
				 0);
	accessd();
	atomic_store(&storm.closed, true);
	bell_ring_all(storm.bell);
	for (int i = 0; i < N_READERS + N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(atomic_load(&storm.wrong), 0);
	ck_assert_uint_eq(atomic_load(&storm.claims), (uint64_t)N_HANDS * HAND);
	assert_fine(lane_check(&storm.lane));
	lane_detach(&storm.lane);
	bell_detach(storm.bell);
	close(lane_fd);
	close(arena_fd);
	close(bell_fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_task_is_done_once);
	tcase_set_timeout(tcase, 600);
}

int main(void)
{
	return suite_run("lane_storm", add);
}
