/* SPDX-License-Identifier: Apache-2.0 */

/* A queue of arbitrary bytes: attached, then used by a reader, a worker and accessd. Whatever the
 * words say, nobody leaves the memory and a claimed task is within the bounds. */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "shmring/queue.h"
#include "tests/invariants/invariants.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory_of(const uint8_t *data, size_t size)
{
	uint64_t bytes = size;
	int fd;

	if (size >= sizeof(struct layout_queue))
		bytes = BASE_MIN(((const struct layout_queue *)data)->bytes, UINT64_C(1) << 26);
	fd = base_memfd("fuzz", bytes);
	if (fd < 0 || pwrite(fd, data, BASE_MIN(size, bytes), 0) < 0)
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

static void expect_bounds(const struct queue *queue, const struct queue_task *task)
{
	if (task->row >= queue->n_rows || task->index >= queue->chunk ||
	    task->position >= queue->chunk || task->room < task->bytes ||
	    (task->resident ? !task->form : task->came > task->room) ||
	    task->room > queue->arena_bytes || task->arena_offset > queue->arena_bytes - task->room)
		abort();
}

static void work(struct queue *queue)
{
	struct queue_task task;

	for (int i = 0; i < 8; i++) {
		uint32_t known = i % 2 ? UINT32_MAX : 1;

		if (queue_claim_read(queue, 1, &task) == 0) {
			expect_bounds(queue, &task);
			queue_read_done(queue, &task, LAYOUT_FAIL_NONE, 0, NULL, 1, 0);
		}
		if (queue_claim_run(queue, 2, known, &task) == 0) {
			expect_bounds(queue, &task);
			if (task.variants & ~known)
				abort();
			queue_run_done(queue, &task, LAYOUT_FAIL_OP, 1, "fuzz", 1);
		}
	}
}

static void look_after(struct queue *queue)
{
	enum layout_fail stage;
	uint32_t owner, us;
	char text[48];
	int code;

	for (uint32_t row = 0; row < queue->n_rows; row++) {
		uint32_t last = queue->chunk - 1;
		enum layout_task_state state = queue_task_state(queue, row, last, &owner);

		queue_task_take_over(queue, row, last, owner, state, LAYOUT_TASK_FAILED,
				     LAYOUT_FAIL_CRASH, 9);
		queue_task_outcome(queue, row, last, &stage, &code, text, &us);
		if (text[47] || stage > LAYOUT_FAIL_FILTERED)
			abort();
		queue_recount(queue, row);
		queue_row_end(queue, row);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct queue queue;
	int fd, r;

	if (size == 0)
		return 0;
	fd = memory_of(data, size);
	r = queue_attach(fd, &queue);
	if (r == 0) {
		queue_check(&queue);
		work(&queue);
		look_after(&queue);
		queue_detach(&queue);
	} else if (r != QUEUE_E_BAD) {
		abort();
	}
	close(fd);
	return 0;
}
