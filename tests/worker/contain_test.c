/* SPDX-License-Identifier: Apache-2.0 */

/* Workers that die, hang and eat memory: one task is lost, everything else goes on. */

#include "tests/worker/rig.h"
#include "tests/suite.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "worker/backoff.h"
#include "base/sandbox.h"
#include "worker/worker.h"
#include "tests/invariants/invariants.h"

#define MEMORY "64M"
#define FAULTY 5      /* sample 105: the sixth of queue 1 */
#define EXIT_STATUS 3 /* of faulty_worker.c's "exit" */

/* ---- faults ---- */

enum ending { ENDING_SEGV, ENDING_EXIT, ENDING_SPENT, ENDING_HUNG };

static const struct {
	const char *fault;
	enum ending ending;
	bool only_strict; /* needs the memory limit */
} fault_table[] = {
    {"segv:105", ENDING_SEGV, false}, {"exit:105", ENDING_EXIT, false},
    {"hog:105", ENDING_SPENT, true},  {"loop:105", ENDING_HUNG, false},
    {"stop:105", ENDING_HUNG, false},
};

static bool others_are_done(struct rig *rig, void *closure)
{
	(void)rig;
	return rig_queue_count(closure, 0, LAYOUT_TASK_DONE) == RIG_CHUNK - 1;
}

static bool is_faulty_over(struct rig *rig, void *closure)
{
	struct rig_queue *queue = closure;
	uint32_t owner;
	enum layout_task_state state = queue_task_state(&queue->queue, 0, FAULTY, &owner);

	return state == LAYOUT_TASK_FAILED || rig->worker[owner].has_exited;
}

/* It is taken, and the doorbell's entry of who took it says so. */
static bool is_faulty_begun(struct rig *rig, void *closure)
{
	const uint64_t word = UINT64_C(1) << 48 | FAULTY << 8 | 1;
	struct rig_queue *queue = closure;
	uint32_t owner;

	return queue_task_state(&queue->queue, 0, FAULTY, &owner) == LAYOUT_TASK_RUNNING &&
	       owner <= rig->last_owner &&
	       atomic_load(&rig->doorbell->worker[rig->worker[owner].index].w_task) == word;
}

/* As accessd does: by the doorbell's entry, then by its number. */
static void kill_hung(struct rig *rig, struct rig_queue *queue)
{
	uint32_t owner;
	struct layout_worker *entry;

	rig_await(rig, is_faulty_begun, queue);
	queue_task_state(&queue->queue, 0, FAULTY, &owner);
	entry = &rig->doorbell->worker[rig->worker[owner].index];
	ck_assert_uint_le(atomic_load(&entry->w_started_ns), base_now_ns());
	rig_send_kill(rig, owner);
}

static void check_end(int status, enum ending ending)
{
	switch (ending) {
	case ENDING_SEGV: /* a sanitizer turns it into an exit */
		ck_assert(WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV : status != 0);
		break;
	case ENDING_EXIT:
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STATUS);
		break;
	case ENDING_HUNG:
		ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		break;
	case ENDING_SPENT:
		ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == WORKER_EXIT_SPENT);
		break;
	}
}

START_TEST(test_fault_is_contained)
{
	struct rig *rig;
	struct rig_queue *queue;
	uint32_t owner, row;

	if (fault_table[_i].only_strict && !sandbox_is_strict())
		return;
	rig = rig_new(2, MEMORY, fault_table[_i].fault);
	queue = rig_queue_new(1);
	rig_queue_open(rig, queue);
	rig_queue_fill(rig, queue, 0, RIG_CHUNK);
	rig_await(rig, others_are_done, queue);
	if (fault_table[_i].ending == ENDING_HUNG)
		kill_hung(rig, queue);
	rig_await(rig, is_faulty_over, queue);
	queue_task_state(&queue->queue, 0, FAULTY, &owner);
	check_end(rig->worker[owner].status, fault_table[_i].ending);
	ck_assert_uint_eq(rig_queue_take_over(rig, queue, 0, LAYOUT_TASK_FAILED), 1);
	ck_assert_uint_eq(rig_queue_count(queue, 0, LAYOUT_TASK_FAILED), 1);
	rig_queue_check(queue, 0, 0, RIG_CHUNK);
	/* replaced: two live, and the next chunk (without the sample) is whole */
	rig_await_workers(rig, 2);
	row = rig_queue_fill(rig, queue, 1, FAULTY);
	rig_queue_await(rig, queue, row);
	ck_assert_uint_eq(rig_queue_count(queue, row, LAYOUT_TASK_DONE), FAULTY);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* ---- deaths at any moment ---- */

/* Who was killed; 0: so many do not live. */
static uint32_t kill_one(struct rig *rig, uint64_t draw)
{
	for (uint32_t owner = rig->last_owner; owner > 0; owner--)
		if (!rig->worker[owner].has_exited && draw-- == 0) {
			kill(rig->worker[owner].pid, SIGKILL);
			return owner;
		}
	return 0;
}

START_TEST(test_killed_at_random)
{
	struct rig *rig = rig_new(3, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);
	uint64_t until_ns = base_now_ns() + PATIENCE_NS;
	uint32_t rounds = 30;

	rig_queue_open(rig, queue);
	rig_await_workers(rig, 3);
	for (uint32_t round = 0; round < rounds; round++) {
		uint32_t row = rig_queue_fill(rig, queue, round % RIG_SLOTS, RIG_CHUNK);
		uint32_t killed = kill_one(rig, round % 3);

		while (rig_queue_count(queue, row, LAYOUT_TASK_DONE) < RIG_CHUNK ||
		       (killed && !rig->worker[killed].has_exited)) {
			ck_assert_msg(base_now_ns() < until_ns, "waited in vain");
			rig_pump(rig, 1);
			rig_queue_take_over(rig, queue, row, LAYOUT_TASK_READY);
		}
		ck_assert_ptr_null(queue_check(&queue->queue));
		rig_queue_check(queue, row, round % RIG_SLOTS, RIG_CHUNK);
		queue_row_end(&queue->queue, row);
	}
	rig_await_workers(rig, 3);
	ck_assert_uint_ge(rig->last_owner, rounds / 2);
	ck_assert_uint_eq(rig->most_alive, 3);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* A stopped worker is killed like a hung one. */
START_TEST(test_stopped)
{
	struct rig *rig = rig_new(1, MEMORY, NULL);
	struct rig_queue *queue = rig_queue_new(1);
	uint32_t row;

	rig_queue_open(rig, queue);
	rig_await_workers(rig, 1);
	ck_assert_int_eq(kill(rig->worker[1].pid, SIGSTOP), 0);
	rig_send_kill(rig, 1);
	while (!rig->worker[1].has_exited)
		rig_pump(rig, 1);
	ck_assert_int_eq(WTERMSIG(rig->worker[1].status), SIGKILL);
	row = rig_queue_fill(rig, queue, 0, RIG_CHUNK);
	while (rig_queue_count(queue, row, LAYOUT_TASK_DONE) < RIG_CHUNK) {
		rig_pump(rig, 1);
		rig_queue_take_over(rig, queue, row, LAYOUT_TASK_READY);
	}
	rig_send_kill(rig, 1); /* long gone: nothing happens */
	rig_send_kill(rig, 4711);
	rig_await_workers(rig, 1);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

/* ---- a loop of crashes ---- */

START_TEST(test_no_fork_storm)
{
	static const char *const faults[] = {"segv", "leave"};
	struct rig *rig = rig_new(2, MEMORY, faults[_i]);
	struct rig_queue *queue = rig_queue_new(1);
	uint64_t started_ns = base_now_ns(), took_ns;
	uint32_t row;

	rig_queue_open(rig, queue);
	row = rig_queue_fill(rig, queue, 0, RIG_CHUNK);
	while (rig_queue_count(queue, row, LAYOUT_TASK_FAILED) < 26) {
		rig_pump(rig, 10);
		rig_queue_take_over(rig, queue, row, LAYOUT_TASK_FAILED);
	}
	took_ns = base_now_ns() - started_ns;
	/* 26 deaths are 10 free ones and 8 rounds of two: waits of 10 + 20 + ... + 640 ms at least,
	 * less the round in which the tenth fell. A slow machine can only make it longer. */
	ck_assert_uint_ge(took_ns, UINT64_C(600000000));
	ck_assert_uint_ge(rig->last_owner, 26);
	ck_assert_uint_le(rig->last_owner, RIG_CHUNK + 2);
	rig_free(rig);
	rig_queue_free(queue);
}
END_TEST

START_TEST(test_backoff)
{
	struct backoff backoff = {.next = 0};
	const uint64_t ms = 1000000;
	uint64_t now_ns = 5000 * ms, expected_ns = BACKOFF_FIRST_NS;

	for (unsigned i = 0; i < BACKOFF_BURST; i++) {
		backoff_death(&backoff, now_ns += ms, 1);
		ck_assert_uint_eq(backoff_wait_ns(&backoff, now_ns), 0);
	}
	for (unsigned i = 0; i < 20; i++) {
		backoff_death(&backoff, now_ns += ms, 1);
		ck_assert_uint_eq(backoff_wait_ns(&backoff, now_ns), expected_ns);
		backoff_death(&backoff, now_ns, 1); /* the same round: no longer wait */
		ck_assert_uint_eq(backoff_wait_ns(&backoff, now_ns), expected_ns);
		now_ns += expected_ns;
		ck_assert_uint_eq(backoff_wait_ns(&backoff, now_ns), 0);
		expected_ns = BASE_MIN(2 * expected_ns, BACKOFF_LONGEST_NS);
	}
	/* one that lived long ends it */
	now_ns += 3000 * ms;
	backoff_death(&backoff, now_ns, 3000 * ms);
	ck_assert_uint_eq(backoff_wait_ns(&backoff, now_ns), 0);
	/* now and then a death: no wait, ever */
	for (unsigned i = 0; i < 100; i++) {
		backoff_death(&backoff, now_ns += 200 * ms, 150 * ms);
		ck_assert_uint_eq(backoff_wait_ns(&backoff, now_ns), 0);
	}
}
END_TEST

static void add_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, test_fault_is_contained, 0, BASE_ARRAY_LEN(fault_table));
	tcase_add_test(tcase, test_killed_at_random);
	tcase_add_test(tcase, test_stopped);
	tcase_add_loop_test(tcase, test_no_fork_storm, 0, 2);
	tcase_add_test(tcase, test_backoff);
}

int main(void)
{
	return suite_run("contain", add_tests);
}
