/* SPDX-License-Identifier: Apache-2.0 */

/* A lane of arbitrary bytes: attached, then used by a reader, a worker and accessd. Whatever the
 * words say, nobody leaves the memory and a claimed task is within the bounds. */

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "shmring/lane.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int memory_of(const uint8_t *data, size_t size)
{
	uint64_t bytes = size;
	int fd;

	if (size >= sizeof(struct layout_lane))
		bytes = BASE_MIN(((const struct layout_lane *)data)->bytes, UINT64_C(1) << 26);
	fd = base_memfd("fuzz", bytes);
	if (fd < 0 || pwrite(fd, data, BASE_MIN(size, bytes), 0) < 0)
		abort();
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
	return fd;
}

static void expect_bounds(const struct lane *lane, const struct lane_task *task)
{
	if (task->block >= lane->n_blocks || task->index >= lane->chunk ||
	    task->position >= lane->chunk || task->room < task->bytes ||
	    (task->resident ? !task->form : task->came > task->room) ||
	    task->room > lane->arena_bytes || task->arena_offset > lane->arena_bytes - task->room)
		abort();
}

static void work(struct lane *lane)
{
	struct lane_task task;

	for (int i = 0; i < 8; i++) {
		uint32_t known = i % 2 ? UINT32_MAX : 1;

		if (lane_claim_read(lane, 1, &task) == 0) {
			expect_bounds(lane, &task);
			lane_read_done(lane, &task, LAYOUT_FAIL_NONE, 0, NULL, 1, 0);
		}
		if (lane_claim_run(lane, 2, known, &task) == 0) {
			expect_bounds(lane, &task);
			if (task.variants & ~known)
				abort();
			lane_run_done(lane, &task, LAYOUT_FAIL_OP, 1, "fuzz", 1);
		}
	}
}

static void look_after(struct lane *lane)
{
	enum layout_fail stage;
	uint32_t owner, us;
	char text[48];
	int code;

	for (uint32_t block = 0; block < lane->n_blocks; block++) {
		uint32_t last = lane->chunk - 1;
		enum layout_task_state state = lane_task_state(lane, block, last, &owner);

		lane_task_take_over(lane, block, last, owner, state, LAYOUT_TASK_FAILED,
				    LAYOUT_FAIL_CRASH, 9);
		lane_task_outcome(lane, block, last, &stage, &code, text, &us);
		if (text[47] || stage > LAYOUT_FAIL_FILTERED)
			abort();
		lane_recount(lane, block);
		lane_block_end(lane, block);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lane lane;
	int fd, r;

	if (size == 0)
		return 0;
	fd = memory_of(data, size);
	r = lane_attach(fd, &lane);
	if (r == 0) {
		lane_check(&lane);
		work(&lane);
		look_after(&lane);
		lane_detach(&lane);
	} else if (r != LANE_E_BAD) {
		abort();
	}
	close(fd);
	return 0;
}
