/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Death at any instruction. Processes claim and end tasks and are killed by SIGKILL at random
 * moments. Then once more for each single instruction of a claim and an end: a traced child is
 * stepped through them, and after each step the shared memory is what a death at this instant would
 * leave, so it is mended as after a death, checked, and put back. What must hold: the tasks of the
 * dead bear their number and can be taken over, no task is lost, none is run by two at once or
 * twice, and the living are never held up.
 */

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shmring/queue.h"
#include "tests/shmring/suite.h"
#include "tests/invariants/invariants.h"

enum { CHUNK = 2048, N_PROCESSES = 3, N_KILLS = 400, SPIN = 300 };

/* Shared with the children; each word is set by who runs the task, cleared by accessd after
 * death. */
struct log {
	_Atomic uint32_t runner[CHUNK], finished[CHUNK];
	_Atomic uint32_t doubled, runs;
};

static struct queue queue;
static struct log *log_;
static int queue_fd, arena_fd;
static uint32_t row;
static int spin; /* so that a kill often finds a task in hand */

static void setup(void)
{
	ck_assert_int_eq(queue_new(1, 1, CHUNK, 4096, &queue, &queue_fd, &arena_fd), 0);
	log_ = mmap(NULL, sizeof(*log_), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(log_, MAP_FAILED);
}

static void teardown(void)
{
	assert_fine(queue_check(&queue));
	queue_detach(&queue);
	munmap(log_, sizeof(*log_));
	close(queue_fd);
	close(arena_fd);
}

static void begin(uint32_t count)
{
	static uint64_t order;

	memset(log_, 0, sizeof(*log_));
	ck_assert_int_eq(queue_row_begin(&queue, ++order, 1, 1, 0, 1, count, &row), 0);
	for (uint32_t i = 0; i < count; i++)
		queue_task_put(&queue, row, i, i, i, i, 0, 0, 64, 0);
}

/* ---- a process ---- */

static void log_start(const struct queue_task *task)
{
	uint32_t nobody = 0;

	if (!atomic_compare_exchange_strong(&log_->runner[task->index], &nobody, task->owner) ||
	    atomic_load(&log_->finished[task->index]))
		atomic_fetch_add(&log_->doubled, 1);
}

static void log_end(const struct queue_task *task)
{
	atomic_store(&log_->finished[task->index], 1);
	atomic_store(&log_->runner[task->index], 0);
	atomic_fetch_add(&log_->runs, 1);
}

/* Reads and runs one task, whatever comes first. false: nothing to do. */
static bool work_once(uint32_t owner)
{
	struct queue_task task;

	if (queue_claim_run(&queue, owner, 1, &task) == 0) {
		log_start(&task);
		for (volatile int i = 0; i < spin; i++)
			;
		log_end(&task);
		queue_run_done(&queue, &task, LAYOUT_FAIL_NONE, 0, NULL, 1);
		return true;
	}
	if (queue_claim_read(&queue, owner, &task) == 0) {
		queue_read_done(&queue, &task, LAYOUT_FAIL_NONE, 0, NULL, 1, 0);
		return true;
	}
	return false;
}

static pid_t spawn(uint32_t owner)
{
	pid_t parent = getpid(), pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return pid;
	while (getppid() == parent)
		if (!work_once(owner))
			usleep(50);
	_exit(0);
}

/* ---- accessd ---- */

/* After the death of owner: its tasks go back to where they were. Returns how many it had. */
static unsigned take_over(uint32_t owner, uint32_t count)
{
	unsigned had = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint32_t by;
		enum layout_task_state state = queue_task_state(&queue, row, i, &by);

		if (by != owner)
			continue;
		if (state == LAYOUT_TASK_RUNNING) {
			atomic_store(&log_->runner[i], 0);
			atomic_store(&log_->finished[i], 0);
		}
		ck_assert(queue_task_take_over(&queue, row, i, owner, state, state - 1,
					       LAYOUT_FAIL_NONE, 0));
		had++;
	}
	queue_recount(&queue, row);
	return had;
}

static bool all_done(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (queue_task_state(&queue, row, i, NULL) != LAYOUT_TASK_DONE)
			return false;
	return true;
}

/* A task ends before it is counted: a living process may be between the two. Of the dead, all ends
 * are counted already. */
static void await_count(uint32_t count)
{
	while (queue_ended(&queue, row) < count)
		usleep(50);
}

START_TEST(random_kills_lose_and_double_nothing)
{
	pid_t pid[N_PROCESSES];
	uint32_t owner[N_PROCESSES], next_owner = 1;
	uint64_t seed = 5;
	unsigned chunks = 0, interrupted = 0;

	spin = SPIN;
	begin(CHUNK);
	for (int p = 0; p < N_PROCESSES; p++) {
		owner[p] = next_owner++;
		pid[p] = spawn(owner[p]);
	}
	for (int kill_number = 0; kill_number < N_KILLS; kill_number++) {
		unsigned victim = (unsigned)(suite_random(&seed) % N_PROCESSES);

		usleep((useconds_t)(suite_random(&seed) % 1000));
		kill(pid[victim], SIGKILL);
		ck_assert_int_eq(waitpid(pid[victim], NULL, 0), pid[victim]);
		interrupted += take_over(owner[victim], CHUNK) > 0;
		owner[victim] = next_owner++;
		pid[victim] = spawn(owner[victim]);
		if (all_done(CHUNK)) {
			ck_assert_uint_eq(atomic_load(&log_->doubled), 0);
			await_count(CHUNK);
			queue_row_end(&queue, row);
			begin(CHUNK);
			chunks++;
		}
	}
	while (!all_done(CHUNK)) /* the last processes bring it to an end */
		usleep(100);
	for (int p = 0; p < N_PROCESSES; p++) {
		kill(pid[p], SIGKILL);
		waitpid(pid[p], NULL, 0);
	}
	ck_assert_uint_eq(atomic_load(&log_->doubled), 0);
	printf("%d kills, %u with a task in hand, %u chunks\n", N_KILLS, interrupted, chunks);
}
END_TEST

/* ---- every instruction ---- */

enum { FEW = 3, DOOMED = 77, HEIR = 78 };

/* A child that waits to be stepped, then works off one task's read and run. -1: no tracing here. */
static pid_t spawn_traced(void)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		raise(SIGSTOP);
		work_once(DOOMED);
		work_once(DOOMED);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSTOPPED(status) ? pid : -1;
}

/* One instruction; false when the child has come to its end. */
static bool step(pid_t pid)
{
	int status;

	ck_assert_int_eq((int)ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL), 0);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFSTOPPED(status);
}

/* As after the death of the doomed: its task is taken over and an heir does the rest. */
static void mend(long instructions, unsigned *interrupted)
{
	unsigned had = take_over(DOOMED, FEW), runs = 0;

	*interrupted += had;
	ck_assert_uint_le(had, 1);
	assert_fine(queue_check(&queue));
	while (work_once(HEIR))
		ck_assert_uint_le(++runs, 2 * FEW);
	ck_assert_msg(all_done(FEW), "a task is lost after %ld instructions", instructions);
	ck_assert_uint_eq(atomic_load(&log_->doubled), 0);
	ck_assert_uint_ge(queue_ended(&queue, row), FEW);
}

START_TEST(death_after_each_instruction_loses_and_doubles_nothing)
{
	static uint8_t queue_now[1 << 20];
	static struct log log_now;
	unsigned interrupted = 0;
	long instructions = 0;
	pid_t pid;

	ck_assert_uint_le(queue.bytes, sizeof(queue_now));
	begin(FEW);
	pid = spawn_traced();
	if (pid < 0) {
		printf("no tracing here: death after each instruction is not tested\n");
		return;
	}
	do {
		memcpy(queue_now, queue.head, queue.bytes);
		log_now = *log_;
		mend(instructions++, &interrupted);
		memcpy(queue.head, queue_now, queue.bytes);
		*log_ = log_now;
	} while (step(pid));
	ck_assert_int_eq(queue_task_state(&queue, row, 0, NULL), LAYOUT_TASK_DONE);
	ck_assert_uint_gt(interrupted, 10);
	printf("died after each of %ld instructions, %u of them with a task in hand\n",
	       instructions, interrupted);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, random_kills_lose_and_double_nothing);
	tcase_add_test(tcase, death_after_each_instruction_loses_and_doubles_nothing);
}

int main(void)
{
	return suite_run("queue_kill", add);
}
