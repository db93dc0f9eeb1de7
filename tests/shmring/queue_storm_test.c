/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One accessd, three reader threads and four workers at full speed through one queue. Arena and
 * slots are plain memory: a task that two claim, or whose bytes are used before they are there,
 * shows as a wrong sum (and as a race under ThreadSanitizer). Everybody sleeps on the doorbell without
 * limit, so a lost wake shows as a test that never ends.
 *
 * Every 16 chunks another variant comes, and workers that know it, after the first chunk of it.
 */

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <unistd.h>

#include "shmring/queue.h"
#include "tests/shmring/suite.h"
#include "tests/invariants/invariants.h"

#ifdef __SANITIZE_THREAD__
enum { N_CHUNKS = 120 };
#else
enum { N_CHUNKS = 1200 };
#endif
enum { CHUNKS_EACH = 16 }; /* of a variant */
enum { BLOCKS = 2, CHUNK = 24, N_READERS = 3, N_WORKERS = 4, SAMPLE_BYTES = 64, FAILS_EACH = 11 };

static struct {
	struct queue queue;
	struct layout_doorbell *doorbell;
	uint8_t arena[BLOCKS * CHUNK * SAMPLE_BYTES];
	uint64_t slot[BLOCKS][CHUNK];
	sem_t event; /* stands for accessd's eventfd */
	_Atomic bool closed;
	_Atomic uint64_t
	    generation; /* of workers: the variant that they know, and the one before */
	_Atomic uint64_t claims, wrong;
} storm;

static void ring_accessd(bool due)
{
	if (due && doorbell_take_event_arm(storm.doorbell))
		sem_post(&storm.event);
}

/* ---- readers and workers ---- */

static void read_task(const struct queue_task *task)
{
	bool fails = task->sample % FAILS_EACH == 0 && task->attempt == 0;

	memset(storm.arena + task->arena_offset, (int)(task->sample & 0xff), task->bytes);
	ring_accessd(queue_read_done(&storm.queue, task,
				     fails ? LAYOUT_FAIL_READ : LAYOUT_FAIL_NONE, fails ? EIO : 0,
				     fails ? "fails once" : NULL, 10, 0));
	if (!fails)
		doorbell_ring_workers(storm.doorbell);
}

static void *reader(void *owner)
{
	struct queue_task task;

	while (!atomic_load(&storm.closed)) {
		uint32_t seen = doorbell_read_seq(storm.doorbell);

		if (queue_claim_read(&storm.queue, (uint32_t)(uintptr_t)owner, &task) == 0)
			read_task(&task);
		else if (!atomic_load(&storm.closed))
			doorbell_sleep_reader(storm.doorbell, seen, UINT64_MAX);
	}
	return NULL;
}

static void run_task(const struct queue_task *task)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < task->bytes; i++)
		sum += storm.arena[task->arena_offset + i];
	if (sum != (task->sample & 0xff) * task->bytes)
		atomic_fetch_add(&storm.wrong, 1);
	storm.slot[task->slot][task->position] = task->sample + task->nonce;
	atomic_fetch_add(&storm.claims, 1);
	ring_accessd(queue_run_done(&storm.queue, task, LAYOUT_FAIL_NONE, 0, NULL, 1));
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
	struct queue_task task;

	switch (queue_claim_run(&storm.queue, owner, known, &task)) {
	case 0:
		if (task.variants & ~known)
			atomic_fetch_add(&storm.wrong, 1);
		run_task(&task);
		return true;
	case QUEUE_E_STRANGE:
		doorbell_ring_workers(storm.doorbell);
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
		uint32_t seen = doorbell_work_seq(storm.doorbell);

		if (generation != atomic_load(&storm.generation))
			generation = atomic_load(&storm.generation);
		else if (!work((uint32_t)(uintptr_t)owner, known_to(generation)) &&
			 !atomic_load(&storm.closed))
			doorbell_sleep_worker(storm.doorbell, seen, UINT64_MAX);
	}
	return NULL;
}

/* ---- accessd ---- */

struct chunk {
	uint64_t order;
	uint32_t row;
	bool in_use;
};

static void queue(const struct chunk *chunk, uint32_t i, uint32_t attempt)
{
	queue_task_put(&storm.queue, chunk->row, i, chunk->order * CHUNK + i, i, i, 0,
		       ((uint64_t)chunk->row * CHUNK + i) * SAMPLE_BYTES, SAMPLE_BYTES, attempt);
}

static void begin(struct chunk *chunk, uint64_t order, uint32_t slot)
{
	uint64_t generation = order / CHUNKS_EACH;

	chunk->order = order;
	chunk->in_use = true;
	ck_assert_int_eq(queue_row_begin(&storm.queue, order, order * 1000, 0, slot,
					 variant_of(generation), CHUNK, &chunk->row),
			 0);
	memset(storm.slot[slot], 0, sizeof(storm.slot[slot]));
	for (uint32_t i = 0; i < CHUNK; i++)
		queue(chunk, CHUNK - 1 - i, 0);
	doorbell_ring_readers(storm.doorbell);
	if (atomic_exchange(&storm.generation, generation) != generation)
		doorbell_ring_all(storm.doorbell);
}

/* Queues failed tasks again; true when the whole chunk is there and right. */
static bool look_after(struct chunk *chunk, uint32_t slot)
{
	uint32_t done = 0;

	queue_ring_at(&storm.queue, chunk->row, queue_ended(&storm.queue, chunk->row) + 1);
	for (uint32_t i = 0; i < CHUNK; i++) {
		switch (queue_task_state(&storm.queue, chunk->row, i, NULL)) {
		case LAYOUT_TASK_DONE:
			ck_assert_uint_eq(storm.slot[slot][i],
					  chunk->order * CHUNK + i + chunk->order * 1000);
			done++;
			break;
		case LAYOUT_TASK_FAILED:
			queue(chunk, i, 1);
			doorbell_ring_readers(storm.doorbell);
			break;
		default:
			break;
		}
	}
	if (done < CHUNK)
		return false;
	queue_row_end(&storm.queue, chunk->row);
	chunk->in_use = false;
	return true;
}

static void accessd(void)
{
	struct chunk chunk[BLOCKS] = {{.in_use = false}};
	uint64_t begun = 0, finished = 0;

	while (finished < N_CHUNKS) {
		bool progress = false;

		doorbell_arm_event(storm.doorbell);
		for (uint32_t slot = 0; slot < BLOCKS; slot++) {
			if (chunk[slot].in_use && look_after(&chunk[slot], slot))
				progress = ++finished;
			if (chunk[slot].in_use || begun == N_CHUNKS)
				continue;
			begin(&chunk[slot], ++begun, slot);
			progress = true;
		}
		if (!progress)
			sem_wait(&storm.event);
	}
}

START_TEST(each_task_is_done_once)
{
	pthread_t thread[N_READERS + N_WORKERS];
	int queue_fd, arena_fd, doorbell_fd;

	ck_assert_int_eq(
	    queue_new(1, BLOCKS, CHUNK, sizeof(storm.arena), &storm.queue, &queue_fd, &arena_fd),
	    0);
	ck_assert_int_eq(doorbell_new(&storm.doorbell, &doorbell_fd), 0);
	ck_assert_int_eq(sem_init(&storm.event, 0, 0), 0);
	for (uintptr_t i = 0; i < N_READERS + N_WORKERS; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, i < N_READERS ? reader : worker,
						(void *)(i + 1)),
				 0);
	accessd();
	atomic_store(&storm.closed, true);
	doorbell_ring_all(storm.doorbell);
	for (int i = 0; i < N_READERS + N_WORKERS; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(atomic_load(&storm.wrong), 0);
	ck_assert_uint_eq(atomic_load(&storm.claims), (uint64_t)N_CHUNKS * CHUNK);
	assert_fine(queue_check(&storm.queue));
	queue_detach(&storm.queue);
	doorbell_detach(storm.doorbell);
	close(queue_fd);
	close(arena_fd);
	close(doorbell_fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_task_is_done_once);
}

int main(void)
{
	return suite_run("queue_storm", add);
}
