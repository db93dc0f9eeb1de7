/* SPDX-License-Identifier: Apache-2.0 */

/* A task's way step by step, hostile numbers, and the doorbell. */

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shmring/queue.h"
#include "tests/shmring/suite.h"
#include "tests/invariants/invariants.h"

enum { BLOCKS = 3, CHUNK = 8, READER = 7, WORKER = 21 };
#define ARENA UINT64_C(65536)

static struct queue queue;
static int queue_fd, arena_fd;

static void setup(void)
{
	ck_assert_int_eq(queue_new(5, BLOCKS, CHUNK, ARENA, &queue, &queue_fd, &arena_fd), 0);
	assert_fine(queue_check(&queue));
}

static void teardown(void)
{
	assert_fine(queue_check(&queue));
	queue_detach(&queue);
	close(queue_fd);
	close(arena_fd);
}

static uint32_t begin(uint64_t order, uint32_t count)
{
	uint32_t row = UINT32_MAX;

	ck_assert_int_eq(queue_row_begin(&queue, order, 100 + order, 9, 3, 1, count, &row), 0);
	assert_fine(queue_check(&queue));
	return row;
}

static void put_task(uint32_t row, uint32_t index)
{
	queue_task_put(&queue, row, index, 1000 + index, 2000 + index, index, 30 + index,
		       index * UINT64_C(512), 512, 1);
	assert_fine(queue_check(&queue));
}

static struct queue_task claim_read(uint32_t owner)
{
	struct queue_task task;

	ck_assert_int_eq(queue_claim_read(&queue, owner, &task), 0);
	assert_fine(queue_check(&queue));
	return task;
}

static struct queue_task claim_run(uint32_t owner)
{
	struct queue_task task;

	ck_assert_int_eq(queue_claim_run(&queue, owner, 1, &task), 0);
	assert_fine(queue_check(&queue));
	return task;
}

static bool read_well(const struct queue_task *task)
{
	return queue_read_done(&queue, task, LAYOUT_FAIL_NONE, 0, NULL, 5000, 0);
}

static bool run_well(const struct queue_task *task)
{
	return queue_run_done(&queue, task, LAYOUT_FAIL_NONE, 0, NULL, 77);
}

/* ---- the way ---- */

START_TEST(task_goes_its_way)
{
	uint32_t row = begin(1, 2), owner, work_us;
	struct queue_task task, none;
	enum layout_fail stage;
	char text[48];
	int code;

	ck_assert_int_eq(queue_task_state(&queue, row, 0, NULL), LAYOUT_TASK_HELD);
	ck_assert_int_eq(queue_claim_read(&queue, READER, &none), QUEUE_E_NONE);
	put_task(row, 1);
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, 1, &none), QUEUE_E_NONE);
	task = claim_read(READER);
	ck_assert_uint_eq(task.row, row);
	ck_assert_uint_eq(task.index, 1);
	ck_assert_uint_eq(task.sample, 1001);
	ck_assert_uint_eq(task.random_id, 2001);
	ck_assert_uint_eq(task.arena_offset, 512);
	ck_assert_uint_eq(task.bytes, 512);
	ck_assert_uint_eq(task.nonce, 101);
	ck_assert_uint_eq(task.seed, 9);
	ck_assert_uint_eq(task.slot, 3);
	ck_assert_uint_eq(task.position, 1);
	ck_assert_uint_eq(task.label, 31);
	ck_assert_uint_eq(task.attempt, 1);
	ck_assert_uint_eq(task.owner, READER);
	ck_assert_int_eq(queue_task_state(&queue, row, 1, &owner), LAYOUT_TASK_READING);
	ck_assert_uint_eq(owner, READER);
	ck_assert(!read_well(&task));
	ck_assert_int_eq(queue_task_state(&queue, row, 1, &owner), LAYOUT_TASK_READY);
	ck_assert_uint_eq(owner, 0);
	task = claim_run(WORKER);
	ck_assert_uint_eq(task.index, 1);
	ck_assert(!run_well(&task));
	ck_assert_int_eq(queue_task_state(&queue, row, 1, NULL), LAYOUT_TASK_DONE);
	queue_task_outcome(&queue, row, 1, &stage, &code, text, &work_us);
	ck_assert_int_eq(stage, LAYOUT_FAIL_NONE);
	ck_assert_uint_eq(work_us, 77);
	ck_assert_uint_eq(queue_ended(&queue, row), 1);
	queue_row_end(&queue, row);
	ck_assert_int_eq(queue_task_state(&queue, row, 1, NULL), LAYOUT_TASK_FREE);
}
END_TEST

START_TEST(every_code_has_an_opposite)
{
	uint32_t row = begin(1, 1), work_us;
	struct queue_task task;
	enum layout_fail stage;
	char text[48];
	int code;

	put_task(row, 0);
	task = claim_read(READER);
	queue_read_done(&queue, &task, LAYOUT_FAIL_OPEN, INT_MIN, "", 0, 0);
	queue_task_outcome(&queue, row, 0, &stage, &code, text, &work_us);
	ck_assert_int_eq(code, -INT_MAX);
}
END_TEST

START_TEST(failure_is_told_and_can_be_tried_again)
{
	uint32_t row = begin(1, 1), work_us;
	struct queue_task task;
	enum layout_fail stage;
	char text[48], expected[48] = {0};
	int code;

	memset(expected, 'x', 47);
	put_task(row, 0);
	task = claim_read(READER);
	queue_read_done(&queue, &task, LAYOUT_FAIL_OPEN, ENOENT,
			"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 9000, 0);
	queue_task_outcome(&queue, row, 0, &stage, &code, text, &work_us);
	ck_assert_int_eq(stage, LAYOUT_FAIL_OPEN);
	ck_assert_int_eq(code, ENOENT);
	ck_assert_str_eq(text, expected);
	ck_assert_uint_eq(work_us, 9);
	ck_assert_uint_eq(queue_ended(&queue, row), 1);
	put_task(row, 0);
	task = claim_read(READER);
	read_well(&task);
	task = claim_run(WORKER);
	queue_run_done(&queue, &task, LAYOUT_FAIL_DECODE, -3, "no picture", 4);
	queue_task_outcome(&queue, row, 0, &stage, &code, text, &work_us);
	ck_assert_int_eq(stage, LAYOUT_FAIL_DECODE);
	ck_assert_int_eq(code, -3);
	ck_assert_str_eq(text, "no picture");
	ck_assert_uint_eq(queue_ended(&queue, row), 2);
}
END_TEST

START_TEST(oldest_chunk_is_served_first)
{
	uint32_t young = begin(9, 2), old = begin(4, 2), middle = begin(6, 2);
	const uint32_t expected[] = {old, old, middle, middle, young, young};
	struct queue_task task;
	uint32_t row;

	ck_assert_int_eq(queue_row_begin(&queue, 10, 0, 0, 0, 1, 1, &row), QUEUE_E_FULL);
	for (uint32_t i = 0; i < 2; i++) {
		put_task(young, i);
		put_task(middle, i);
		put_task(old, i);
	}
	for (unsigned i = 0; i < 6; i++) {
		task = claim_read(READER);
		ck_assert_uint_eq(task.row, expected[i]);
		ck_assert_uint_eq(task.index, i % 2);
		read_well(&task);
	}
	for (unsigned i = 0; i < 6; i++)
		ck_assert_uint_eq(claim_run(WORKER).row, expected[i]);
}
END_TEST

START_TEST(wrong_hint_hides_no_task)
{
	uint32_t row = begin(1, CHUNK);
	bool seen[CHUNK] = {false};

	for (uint32_t i = 0; i < CHUNK; i++)
		put_task(row, i);
	for (int i = 0; i < CHUNK; i++) {
		struct queue_task task;

		atomic_store(&queue.row[row].s_read_hint,
			     _i == 0 ? UINT32_MAX : (unsigned)i * 5 % CHUNK);
		ck_assert_int_eq(queue_claim_read(&queue, READER, &task), 0);
		ck_assert(!seen[task.index]);
		seen[task.index] = true;
		atomic_store(&queue.row[row].s_run_hint, CHUNK);
		read_well(&task);
		ck_assert_uint_eq(claim_run(WORKER).index, task.index);
	}
}
END_TEST

/* Also where others have tasks: one claim of 32 looks for what a hint hides in the oldest chunk. */
START_TEST(wrong_hint_hides_no_task_behind_others)
{
	const uint32_t old = begin(1, CHUNK);
	uint32_t young = 0, claims = 0;

	put_task(old, 0);
	ck_assert_uint_eq(claim_read(READER).row, old);
	put_task(old, 1);
	atomic_store(&queue.row[old].s_read_hint, CHUNK);
	do {
		const uint32_t index = claims % CHUNK;

		if (index == 0 && claims > 0)
			queue_row_end(&queue, young);
		if (index == 0)
			young = begin(2 + claims, CHUNK);
		put_task(young, index);
		ck_assert_uint_le(++claims, 33);
	} while (claim_read(READER).row != old);
}
END_TEST

START_TEST(accessd_is_rung_once_an_arm)
{
	uint32_t row = begin(1, 5);
	struct queue_task task[5];

	for (uint32_t i = 0; i < 5; i++) {
		put_task(row, i);
		task[i] = claim_read(READER);
	}
	queue_ring_at(&queue, row, 2);
	ck_assert(!queue_read_done(&queue, &task[0], LAYOUT_FAIL_READ, EIO, "", 0, 0));
	ck_assert(!read_well(&task[1]));
	ck_assert(queue_read_done(&queue, &task[2], LAYOUT_FAIL_READ, EIO, "", 0, 0));
	ck_assert(!queue_read_done(&queue, &task[3], LAYOUT_FAIL_READ, EIO, "", 0, 0));
	queue_ring_at(&queue, row, 4);
	ck_assert_uint_eq(queue_ended(&queue, row), 3);
	ck_assert(queue_read_done(&queue, &task[4], LAYOUT_FAIL_READ, EIO, "", 0, 0));
}
END_TEST

/* In whatever order they end: once, by the last of those that are needed; those behind it do not ring, however many they are. */
START_TEST(accessd_is_rung_when_all_up_to_one_have_ended)
{
	static const uint32_t orders[][5] = {
	    {0, 1, 2, 3, 4}, {2, 1, 0, 3, 4}, {4, 3, 2, 0, 1}, {3, 1, 4, 2, 0}, {1, 0, 4, 3, 2}};
	const uint32_t last = 2;

	for (unsigned n = 0; n < BASE_ARRAY_LEN(orders); n++) {
		uint32_t row = begin(1 + n, 5), left = last + 1;
		struct queue_task task[5];

		for (uint32_t i = 0; i < 5; i++) {
			put_task(row, i);
			task[i] = claim_read(READER);
		}
		queue_ring_upto(&queue, row, last);
		for (uint32_t i = 0; i < 5; i++) {
			const uint32_t index = orders[n][i];

			left -= index <= last;
			ck_assert_int_eq(
			    queue_read_done(&queue, &task[index], LAYOUT_FAIL_READ, EIO, "", 0, 0),
			    index <= last && left == 0);
			ck_assert_int_eq(queue_have_ended(&queue, row, last), left == 0);
		}
		queue_row_end(&queue, row);
	}
}
END_TEST

/* Who does not know all of a chunk's variants leaves it to others, and takes a later one. */
START_TEST(strange_chunk_is_left_to_others)
{
	struct queue_task task;
	uint32_t first, second;

	ck_assert_int_eq(queue_row_begin(&queue, 1, 7, 7, 2, 0x85, 2, &first), 0);
	ck_assert_int_eq(queue_row_begin(&queue, 2, 7, 7, 1, 0x04, 1, &second), 0);
	put_task(first, 0);
	put_task(first, 1);
	put_task(second, 0);
	for (unsigned i = 0; i < 3; i++) {
		task = claim_read(READER); /* a reader knows nothing of variants */
		read_well(&task);
	}
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, 0x81, &task), QUEUE_E_NONE);
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, 0x7f, &task), 0);
	ck_assert_uint_eq(task.row, second);
	ck_assert_uint_eq(task.variants, 0x04);
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, 0x7f, &task), QUEUE_E_NONE);
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, 0xff, &task), 0);
	ck_assert_uint_eq(task.row, first);
	ck_assert_uint_eq(task.variants, 0x85);
	/* the owner dies: whoever takes it next must know them, too */
	ck_assert(queue_task_take_over(&queue, first, task.index, WORKER, LAYOUT_TASK_RUNNING,
				       LAYOUT_TASK_READY, LAYOUT_FAIL_CRASH, 0));
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, 0x05, &task), QUEUE_E_NONE);
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, 0x85, &task), 0);
	ck_assert_uint_eq(task.variants, 0x85);
}
END_TEST

START_TEST(closed_queue_gives_nothing)
{
	struct queue_task task;

	put_task(begin(1, 1), 0);
	queue_close(&queue);
	ck_assert_int_eq(queue_claim_read(&queue, READER, &task), QUEUE_E_NONE);
}
END_TEST

START_TEST(block_is_not_begun_with_bad_numbers)
{
	uint32_t row;

	ck_assert_int_eq(queue_row_begin(&queue, 0, 0, 0, 0, 1, 1, &row), QUEUE_E_BAD);
	ck_assert_int_eq(queue_row_begin(&queue, 1, 0, 0, 0, 1, 0, &row), QUEUE_E_BAD);
	ck_assert_int_eq(queue_row_begin(&queue, 1, 0, 0, 0, 1, CHUNK + 1, &row), QUEUE_E_BAD);
	ck_assert_int_eq(queue_row_begin(&queue, 1, 0, 0, 0, 0, 1, &row), QUEUE_E_BAD);
	ck_assert_int_eq(queue_row_begin(&queue, 1, 0, 0, 0, 0x100, 1, &row), QUEUE_E_BAD);
}
END_TEST

/* ---- the dead ---- */

START_TEST(task_of_the_dead_is_taken_over)
{
	uint32_t row = begin(1, 2), work_us;
	struct queue_task dead, task;
	enum layout_fail stage;
	char text[48];
	int code;

	put_task(row, 0);
	put_task(row, 1);
	dead = claim_read(READER);
	ck_assert(!queue_task_take_over(&queue, row, 0, READER + 1, LAYOUT_TASK_READING,
					LAYOUT_TASK_QUEUED, LAYOUT_FAIL_NONE, 0));
	ck_assert(!queue_task_take_over(&queue, row, 0, READER, LAYOUT_TASK_RUNNING,
					LAYOUT_TASK_QUEUED, LAYOUT_FAIL_NONE, 0));
	ck_assert(queue_task_take_over(&queue, row, 0, READER, LAYOUT_TASK_READING,
				       LAYOUT_TASK_QUEUED, LAYOUT_FAIL_NONE, 0));
	read_well(&dead); /* it lives after all: changes nothing */
	ck_assert_int_eq(queue_task_state(&queue, row, 0, NULL), LAYOUT_TASK_QUEUED);
	task = claim_read(READER);
	ck_assert_uint_eq(task.index, 0);
	read_well(&task);
	dead = claim_run(WORKER);
	ck_assert(queue_task_take_over(&queue, row, 0, WORKER, LAYOUT_TASK_RUNNING,
				       LAYOUT_TASK_READY, LAYOUT_FAIL_NONE, 0));
	task = claim_run(WORKER + 1);
	ck_assert(!run_well(&dead));
	ck_assert(queue_task_take_over(&queue, row, 0, WORKER + 1, LAYOUT_TASK_RUNNING,
				       LAYOUT_TASK_FAILED, LAYOUT_FAIL_CRASH, 139));
	ck_assert(!queue_task_take_over(&queue, row, 0, WORKER + 1, LAYOUT_TASK_RUNNING,
					LAYOUT_TASK_FAILED, LAYOUT_FAIL_CRASH, 139));
	queue_task_outcome(&queue, row, 0, &stage, &code, text, &work_us);
	ck_assert_int_eq(stage, LAYOUT_FAIL_CRASH);
	ck_assert_int_eq(code, 139);
	ck_assert_str_eq(text, "");
	ck_assert_uint_eq(queue_ended(&queue, row), 1);
}
END_TEST

START_TEST(recount_mends_a_count_that_is_short)
{
	uint32_t row = begin(1, 3);
	struct queue_task task;

	for (uint32_t i = 0; i < 3; i++) {
		put_task(row, i);
		task = claim_read(READER);
		queue_read_done(&queue, &task, LAYOUT_FAIL_READ, EIO, "", 0, 0);
	}
	atomic_fetch_sub(&queue.row[row].s_ended, 1);
	queue_recount(&queue, row);
	ck_assert_uint_eq(queue_ended(&queue, row), 3);
	queue_recount(&queue, row);
	ck_assert_uint_eq(queue_ended(&queue, row), 3);
}
END_TEST

/* ---- hostile numbers ---- */

static const struct {
	uint64_t arena_offset;
	uint32_t bytes, position, slot;
} hostile[] = {
    {ARENA - 511, 512, 0, 0}, {UINT64_MAX, 1, 0, 0},   {UINT64_MAX - 511, 512, 0, 0},
    {ARENA + 1, 0, 0, 0},     {0, UINT32_MAX, 0, 0},   {0, (uint32_t)ARENA + 1, 0, 0},
    {0, 512, CHUNK, 0},       {0, 512, UINT32_MAX, 0}, {0, 512, 0, LAYOUT_MAX_SLOTS},
    {0, 512, 0, UINT32_MAX},
};

START_TEST(task_out_of_bounds_fails)
{
	struct queue_task task;
	enum layout_fail stage;
	uint32_t row = begin(1, 2), work_us;
	struct layout_task *shared = &queue.task[(uint64_t)row * queue.chunk];
	char text[48];
	int code;

	put_task(row, 0);
	put_task(row, 1);
	shared->d_arena_offset = hostile[_i].arena_offset;
	shared->d_bytes = hostile[_i].bytes;
	shared->d_position = hostile[_i].position;
	queue.row[row].d_slot = hostile[_i].slot;
	ck_assert_int_eq(queue_claim_read(&queue, READER, &task), QUEUE_E_BAD);
	ck_assert_int_eq(queue_task_state(&queue, row, 0, NULL), LAYOUT_TASK_FAILED);
	queue_task_outcome(&queue, row, 0, &stage, &code, text, &work_us);
	ck_assert_int_eq(stage, LAYOUT_FAIL_READ);
	ck_assert_int_eq(code, -EBADMSG);
	ck_assert_uint_eq(queue_ended(&queue, row), 1);
	queue.row[row].d_slot = 3;
	ck_assert_int_eq(queue_claim_read(&queue, READER, &task), 0);
	ck_assert_uint_eq(task.index, 1);
	queue_row_end(&queue, row);
}
END_TEST

/* A row of no slot is of tasks that make stored forms, and it comes after all chunks. */
START_TEST(a_task_of_no_slot_makes_a_form)
{
	const struct queue_keep keep = {.room = 512, .want = 2, .make = 2};
	uint32_t row, chunk;
	struct queue_task task;

	ck_assert_int_eq(queue_row_begin(&queue, UINT64_MAX, 0, 0, LAYOUT_NO_SLOT, 1, 2, &row), 0);
	queue_task_keep(&queue, row, 0, &keep);
	put_task(row, 0);
	put_task(row, 1);
	chunk = begin(7, 1);
	put_task(chunk, 0);
	task = claim_read(READER);
	ck_assert_uint_eq(task.row, chunk);
	task = claim_read(READER);
	ck_assert_uint_eq(task.row, row);
	ck_assert_uint_eq(task.slot, LAYOUT_NO_SLOT);
	ck_assert_int_eq(queue_claim_read(&queue, READER, &task), QUEUE_E_BAD);
}
END_TEST

START_TEST(hostile_words_stay_in_their_place)
{
	uint32_t row = begin(1, CHUNK), work_us, owner;
	struct layout_task *shared = &queue.task[(uint64_t)row * queue.chunk];
	struct queue_task task;
	enum layout_fail stage;
	char text[48];
	int code;

	put_task(row, CHUNK - 1);
	queue.row[row].d_count = UINT32_MAX;
	atomic_store(&queue.row[row].s_read_hint, UINT32_MAX - 1);
	ck_assert_int_eq(queue_claim_read(&queue, READER, &task), 0);
	ck_assert_uint_eq(task.index, CHUNK - 1);
	ck_assert_int_eq(queue_claim_read(&queue, READER, &task), QUEUE_E_NONE);
	queue_recount(&queue, row);
	shared->s_stage = 99;
	memset(shared->s_text, 'y', sizeof(shared->s_text));
	queue_task_outcome(&queue, row, 0, &stage, &code, text, &work_us);
	ck_assert_int_le(stage, LAYOUT_FAIL_FILTERED);
	ck_assert_uint_eq(strlen(text), 47);
	atomic_store(&shared->s_state, 0xabcdefff);
	ck_assert_int_eq(queue_task_state(&queue, row, 0, &owner), LAYOUT_TASK_FAILED);
	ck_assert_ptr_nonnull(queue_check(&queue));
	queue_row_end(&queue, row);
}
END_TEST

/* ---- memory ---- */

static const struct {
	uint32_t n_rows, chunk;
	uint64_t arena_bytes;
} bad_sizes[] = {
    {0, 1, 1}, {LAYOUT_MAX_ROWS + 1, 1, 1}, {1, 0, 1}, {1, LAYOUT_MAX_CHUNK + 1, 1},
    {1, 1, 0}, {1, 1, UINT64_MAX},
};

START_TEST(queue_is_not_made_with_bad_numbers)
{
	struct queue other;
	int a, b;

	ck_assert_int_eq(queue_new(1, bad_sizes[_i].n_rows, bad_sizes[_i].chunk,
				   bad_sizes[_i].arena_bytes, &other, &a, &b),
			 QUEUE_E_BAD);
}
END_TEST

START_TEST(attach_gives_the_same_queue)
{
	struct queue other;
	uint8_t *writer, *reader;
	uint32_t row = begin(1, 1);

	put_task(row, 0);
	ck_assert_int_eq(queue_attach(queue_fd, &other), 0);
	ck_assert_uint_eq(other.number, 5);
	ck_assert_uint_eq(other.arena_bytes, ARENA);
	ck_assert_uint_eq(other.chunk, CHUNK);
	ck_assert_int_eq(queue_task_state(&other, row, 0, NULL), LAYOUT_TASK_QUEUED);
	ck_assert_int_eq(queue_arena_attach(arena_fd, &other, true, &writer), 0);
	ck_assert_int_eq(queue_arena_attach(arena_fd, &other, false, &reader), 0);
	writer[ARENA - 1] = 42;
	ck_assert_uint_eq(reader[ARENA - 1], 42);
	queue_arena_detach(&other, writer);
	queue_arena_detach(&other, reader);
	ck_assert_int_eq(queue_arena_attach(queue_fd, &other, false, &reader), QUEUE_E_BAD);
	ck_assert_int_eq(queue_attach(arena_fd, &other), QUEUE_E_BAD);
	queue_detach(&other);
}
END_TEST

/* Who makes it serves everybody, and has no time to clear it. */
START_TEST(an_arena_is_reserved_by_its_writer)
{
	uint8_t *arena;
	struct stat st;

	ck_assert_int_eq(queue_arena_attach(arena_fd, &queue, false, &arena), 0);
	ck_assert_int_eq(fstat(arena_fd, &st), 0);
	ck_assert_int_eq(st.st_blocks, 0);
	queue_arena_detach(&queue, arena);
	ck_assert_int_eq(queue_arena_attach(arena_fd, &queue, true, &arena), 0);
	ck_assert_int_eq(fstat(arena_fd, &st), 0);
	ck_assert_uint_ge((uint64_t)st.st_blocks * 512, ARENA);
	queue_arena_detach(&queue, arena);
}
END_TEST

START_TEST(attach_refuses_each_changed_byte_that_matters)
{
	unsigned refused = 0;

	for (size_t i = 0; i < sizeof(struct layout_queue); i++) {
		uint8_t *byte = (uint8_t *)queue.head + i;
		struct queue other;
		int r;

		*byte ^= 0x40;
		r = queue_attach(queue_fd, &other);
		ck_assert_msg(r == 0 || r == QUEUE_E_BAD, "byte %zu: %d", i, r);
		refused += r != 0;
		if (r == 0)
			queue_detach(&other);
		*byte ^= 0x40;
	}
	ck_assert_uint_gt(refused, 40);
}
END_TEST

/* ---- the doorbell ---- */

static struct layout_doorbell *doorbell;
static int doorbell_fd;

static void doorbell_setup(void)
{
	ck_assert_int_eq(doorbell_new(&doorbell, &doorbell_fd), 0);
}

static void doorbell_teardown(void)
{
	doorbell_detach(doorbell);
	close(doorbell_fd);
}

START_TEST(doorbell_is_attached)
{
	struct layout_doorbell *other;

	ck_assert_int_eq(doorbell_attach(doorbell_fd, &other), 0);
	doorbell_detach(other);
	doorbell->version++;
	ck_assert_int_eq(doorbell_attach(doorbell_fd, &other), QUEUE_E_BAD);
	ck_assert_int_lt(doorbell_attach(-1, &other), 0);
}
END_TEST

START_TEST(moved_sequence_does_not_sleep)
{
	uint32_t work = doorbell_work_seq(doorbell), reading = doorbell_read_seq(doorbell);

	doorbell_ring_workers(doorbell);
	doorbell_ring_readers(doorbell);
	doorbell_sleep_worker(doorbell, work, UINT64_MAX);
	doorbell_sleep_reader(doorbell, reading, UINT64_MAX);
	ck_assert_uint_ne(doorbell_work_seq(doorbell), work);
	ck_assert_uint_ne(doorbell_read_seq(doorbell), reading);
}
END_TEST

START_TEST(sleep_ends_by_its_limit)
{
	doorbell_sleep_worker(doorbell, doorbell_work_seq(doorbell), 1000);
	doorbell_sleep_reader(doorbell, doorbell_read_seq(doorbell), 1000000);
	ck_assert_uint_eq(doorbell->s_work_armed, 1);
	doorbell_ring_workers(doorbell); /* nobody sleeps: the flag is cleared */
	ck_assert_uint_eq(doorbell->s_work_armed, 0);
}
END_TEST

START_TEST(event_arm_is_taken_once)
{
	ck_assert(!doorbell_take_event_arm(doorbell));
	doorbell_arm_event(doorbell);
	ck_assert(doorbell_take_event_arm(doorbell));
	ck_assert(!doorbell_take_event_arm(doorbell));
}
END_TEST

enum { TURNS = 3000 };
static _Atomic int ball;

static void *player(void *number)
{
	int me = number != NULL;

	for (int turn = 0; turn < TURNS; turn++) {
		uint32_t seen = me ? doorbell_work_seq(doorbell) : doorbell_read_seq(doorbell);

		while (atomic_load(&ball) % 2 != me) {
			if (me)
				doorbell_sleep_worker(doorbell, seen, UINT64_MAX);
			else
				doorbell_sleep_reader(doorbell, seen, UINT64_MAX);
			seen = me ? doorbell_work_seq(doorbell) : doorbell_read_seq(doorbell);
		}
		atomic_fetch_add(&ball, 1);
		if (me)
			doorbell_ring_readers(doorbell);
		else
			doorbell_ring_workers(doorbell);
	}
	return NULL;
}

/* Two threads that sleep without limit until the other rings: one lost wake and this never ends. */
START_TEST(no_wake_is_lost)
{
	pthread_t a, b;

	atomic_store(&ball, 0);
	ck_assert_int_eq(pthread_create(&a, NULL, player, NULL), 0);
	ck_assert_int_eq(pthread_create(&b, NULL, player, &ball), 0);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	ck_assert_int_eq(atomic_load(&ball), 2 * TURNS);
}
END_TEST

static void *sleeper(void *unused)
{
	uint32_t seen = doorbell_work_seq(doorbell);

	atomic_fetch_add(&ball, 1);
	doorbell_sleep_worker(doorbell, seen, UINT64_MAX);
	return unused;
}

START_TEST(ring_all_wakes_without_the_flag)
{
	pthread_t thread[4];

	atomic_store(&ball, 0);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&thread[i], NULL, sleeper, NULL), 0);
	while (atomic_load(&ball) < 4)
		usleep(100);
	usleep(2000);
	atomic_store(&doorbell->s_work_armed, 0); /* as a ringer that was killed leaves it */
	doorbell_ring_all(doorbell);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}
END_TEST

static void add_doorbell(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, doorbell_setup, doorbell_teardown);
	tcase_add_test(tcase, doorbell_is_attached);
	tcase_add_test(tcase, moved_sequence_does_not_sleep);
	tcase_add_test(tcase, sleep_ends_by_its_limit);
	tcase_add_test(tcase, event_arm_is_taken_once);
	tcase_add_test(tcase, no_wake_is_lost);
	tcase_add_test(tcase, ring_all_wakes_without_the_flag);
}

/* What is said of stored forms goes both ways, and holds for one chunk. */
START_TEST(stored_forms)
{
	uint32_t row = begin(1, 2);
	struct queue_keep keep = {.room = 4096, .want = 2, .make = 3, .probe = 1};
	struct queue_made made = {.made = LAYOUT_MADE_YES, .make_us = 5, .form_us = 6, .bytes = 7};
	struct queue_kept kept;
	struct queue_task task;

	keep.timed = LAYOUT_TIMED_WORK;
	queue_task_keep(&queue, row, 1, &keep);
	put_task(row, 1);
	task = claim_read(READER);
	ck_assert_uint_eq(task.room, 4096);
	ck_assert_uint_eq(task.want * 100 + task.make * 10 + task.probe, 231);
	ck_assert_uint_eq(task.timed, LAYOUT_TIMED_WORK);
	queue_read_came(&queue, &task, 2, LAYOUT_FROM_STORE, 4000, 0);
	queue_read_done(&queue, &task, LAYOUT_FAIL_NONE, 0, NULL, 9000, 8000);
	task = claim_run(WORKER);
	ck_assert_uint_eq(task.form, 2);
	ck_assert_uint_eq(task.came, 4000);
	queue_run_made(&queue, &task, &made);
	run_well(&task);
	queue_task_kept(&queue, row, 1, &kept);
	ck_assert_uint_eq(kept.read_us, 9);
	ck_assert_uint_eq(kept.read_cpu_us, 8);
	ck_assert_uint_eq(kept.form, 2);
	ck_assert_uint_eq(kept.came, 4000);
	ck_assert_int_eq(kept.made, LAYOUT_MADE_YES);
	ck_assert_uint_eq(kept.make_us * 100 + kept.form_us * 10 + kept.form_bytes, 567);
	put_task(row, 0);
	task = claim_read(READER);
	ck_assert_uint_eq(task.room, 512);
	ck_assert_uint_eq(task.came, 512);
	ck_assert_uint_eq(task.form + task.want + task.make + task.probe, 0);
	ck_assert_uint_eq(task.timed, LAYOUT_TIMED_NOT);
	read_well(&task);
	task = claim_run(WORKER);
	ck_assert_uint_eq(task.came, 512);
	run_well(&task);
	queue_row_end(&queue, row);
}
END_TEST

/* What lies elsewhere needs no room in the arena; but a file never lies elsewhere. */
START_TEST(resident_forms)
{
	uint32_t row = begin(1, 3);
	struct queue_keep keep = {.room = 512, .want = 2};
	struct queue_task task;

	queue_task_keep(&queue, row, 0, &keep);
	put_task(row, 0);
	task = claim_read(READER);
	ck_assert_uint_eq(task.resident, 0);
	queue_read_came(&queue, &task, 2, LAYOUT_FROM_STORE, 100000, UINT64_C(1) << 40 | 1);
	read_well(&task);
	task = claim_run(WORKER);
	ck_assert_uint_eq(task.came, 100000);
	ck_assert_uint_eq(task.resident, UINT64_C(1) << 40 | 1);
	run_well(&task);
	put_task(row, 0);
	task = claim_read(READER);
	ck_assert_uint_eq(task.resident, 0);
	queue_read_came(&queue, &task, 0, LAYOUT_FROM_STORE, 100000, 1);
	read_well(&task);
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, UINT32_MAX, &task), QUEUE_E_BAD);
	put_task(row, 0);
	task = claim_read(READER);
	queue_read_came(&queue, &task, 2, LAYOUT_FROM_STORE, 100000, 0);
	read_well(&task);
	ck_assert_int_eq(queue_claim_run(&queue, WORKER, UINT32_MAX, &task), QUEUE_E_BAD);
	queue_row_end(&queue, row);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, stored_forms);
	tcase_add_test(tcase, resident_forms);
	tcase_add_test(tcase, task_goes_its_way);
	tcase_add_test(tcase, every_code_has_an_opposite);
	tcase_add_test(tcase, failure_is_told_and_can_be_tried_again);
	tcase_add_test(tcase, oldest_chunk_is_served_first);
	tcase_add_loop_test(tcase, wrong_hint_hides_no_task, 0, 2);
	tcase_add_test(tcase, wrong_hint_hides_no_task_behind_others);
	tcase_add_test(tcase, accessd_is_rung_once_an_arm);
	tcase_add_test(tcase, accessd_is_rung_when_all_up_to_one_have_ended);
	tcase_add_test(tcase, strange_chunk_is_left_to_others);
	tcase_add_test(tcase, closed_queue_gives_nothing);
	tcase_add_test(tcase, block_is_not_begun_with_bad_numbers);
	tcase_add_test(tcase, task_of_the_dead_is_taken_over);
	tcase_add_test(tcase, recount_mends_a_count_that_is_short);
	tcase_add_loop_test(tcase, task_out_of_bounds_fails, 0, BASE_ARRAY_LEN(hostile));
	tcase_add_test(tcase, a_task_of_no_slot_makes_a_form);
	tcase_add_test(tcase, hostile_words_stay_in_their_place);
	tcase_add_loop_test(tcase, queue_is_not_made_with_bad_numbers, 0,
			    BASE_ARRAY_LEN(bad_sizes));
	tcase_add_test(tcase, attach_gives_the_same_queue);
	tcase_add_test(tcase, an_arena_is_reserved_by_its_writer);
	tcase_add_test(tcase, attach_refuses_each_changed_byte_that_matters);
}

int main(void)
{
	return suite_run("queue", add) | suite_run("doorbell", add_doorbell);
}
