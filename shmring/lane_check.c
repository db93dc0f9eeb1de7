/* SPDX-License-Identifier: Apache-2.0 */

/* The checker of a lane. Tests call it after every step, when nobody is at work in it. */

#include "shmring/lane.h"

static bool is_claimed(uint32_t state)
{
	return state == LAYOUT_TASK_READING || state == LAYOUT_TASK_RUNNING;
}

static const char *check_task(const struct lane *lane, const struct layout_task *task)
{
	uint32_t word = atomic_load_explicit(&task->s_state, memory_order_acquire);
	uint32_t state = word & 0xff, owner = word >> 8;

	if (state == LAYOUT_TASK_FREE || state > LAYOUT_TASK_FAILED)
		return "a task of a chunk in production has no state";
	if (is_claimed(state) != (owner != 0))
		return "a task is claimed by nobody, or unclaimed by somebody";
	if (state == LAYOUT_TASK_HELD)
		return NULL;
	if (task->d_bytes > lane->arena_bytes ||
	    task->d_arena_offset > lane->arena_bytes - task->d_bytes)
		return "a task's bytes are outside the arena";
	if (task->d_room > lane->arena_bytes ||
	    task->d_arena_offset > lane->arena_bytes - task->d_room)
		return "a task's room is outside the arena";
	if (task->d_position >= lane->chunk)
		return "a task's position is outside the chunk";
	return NULL;
}

static const char *check_block(const struct lane *lane, uint32_t block)
{
	const struct layout_block *b = &lane->block[block];
	uint64_t order = atomic_load_explicit(&b->d_order, memory_order_acquire);
	const struct layout_task *task = &lane->task[(uint64_t)block * lane->chunk];

	if (order && (b->d_count == 0 || b->d_count > lane->chunk))
		return "a block's count is out of bounds";
	for (uint32_t i = 0; i < (order ? b->d_count : 0); i++) {
		const char *broken = check_task(lane, &task[i]);

		if (broken)
			return broken;
	}
	for (uint32_t i = order ? b->d_count : 0; i < lane->chunk; i++)
		if (atomic_load_explicit(&task[i].s_state, memory_order_relaxed))
			return "a task outside the chunks in production is not free";
	for (uint32_t other = 0; order && other < block; other++)
		if (atomic_load_explicit(&lane->block[other].d_order, memory_order_relaxed) ==
		    order)
			return "two blocks have the same order";
	if (atomic_load_explicit(&b->s_read_hint, memory_order_relaxed) > lane->chunk ||
	    atomic_load_explicit(&b->s_run_hint, memory_order_relaxed) > lane->chunk)
		return "a hint is outside the block";
	return NULL;
}

const char *lane_check(const struct lane *lane)
{
	if (atomic_load_explicit(&lane->head->d_closed, memory_order_relaxed) > 1)
		return "the closed flag is neither 0 nor 1";
	for (uint32_t block = 0; block < lane->n_blocks; block++) {
		const char *broken = check_block(lane, block);

		if (broken)
			return broken;
	}
	return NULL;
}
