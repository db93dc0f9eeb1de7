/* SPDX-License-Identifier: Apache-2.0 */

/* The checker of a queue. Tests call it after every step, when nobody is at work in it. */

#include "tests/invariants/invariants.h"

#include "shmring/queue.h"

static bool is_claimed(uint32_t state)
{
	return state == LAYOUT_TASK_READING || state == LAYOUT_TASK_RUNNING;
}

static const char *check_task(const struct queue *queue, const struct layout_task *task)
{
	uint32_t word = atomic_load_explicit(&task->s_state, memory_order_acquire);
	uint32_t state = word & 0xff, owner = word >> 8;

	if (state == LAYOUT_TASK_FREE || state > LAYOUT_TASK_FAILED)
		return "a task of a chunk in production has no state";
	if (is_claimed(state) != (owner != 0))
		return "a task is claimed by nobody, or unclaimed by somebody";
	if (state == LAYOUT_TASK_HELD)
		return NULL;
	if (task->d_bytes > queue->arena_bytes ||
	    task->d_arena_offset > queue->arena_bytes - task->d_bytes)
		return "a task's bytes are outside the arena";
	if (task->d_room > queue->arena_bytes ||
	    task->d_arena_offset > queue->arena_bytes - task->d_room)
		return "a task's room is outside the arena";
	if (task->d_position >= queue->chunk)
		return "a task's position is outside the chunk";
	return NULL;
}

static const char *check_block(const struct queue *queue, uint32_t row)
{
	const struct layout_row *b = &queue->row[row];
	uint64_t order = atomic_load_explicit(&b->d_order, memory_order_acquire);
	const struct layout_task *task = &queue->task[(uint64_t)row * queue->chunk];

	if (order && (b->d_count == 0 || b->d_count > queue->chunk))
		return "a row's count is out of bounds";
	for (uint32_t i = 0; i < (order ? b->d_count : 0); i++) {
		const char *broken = check_task(queue, &task[i]);

		if (broken)
			return broken;
	}
	for (uint32_t i = order ? b->d_count : 0; i < queue->chunk; i++)
		if (atomic_load_explicit(&task[i].s_state, memory_order_relaxed))
			return "a task outside the chunks in production is not free";
	for (uint32_t other = 0; order && other < row; other++)
		if (atomic_load_explicit(&queue->row[other].d_order, memory_order_relaxed) == order)
			return "two rows have the same order";
	if (atomic_load_explicit(&b->s_read_hint, memory_order_relaxed) > queue->chunk ||
	    atomic_load_explicit(&b->s_run_hint, memory_order_relaxed) > queue->chunk)
		return "a hint is outside the row";
	return NULL;
}

const char *queue_check(const struct queue *queue)
{
	if (atomic_load_explicit(&queue->head->d_closed, memory_order_relaxed) > 1)
		return "the closed flag is neither 0 nor 1";
	for (uint32_t row = 0; row < queue->n_rows; row++) {
		const char *broken = check_block(queue, row);

		if (broken)
			return broken;
	}
	return NULL;
}
