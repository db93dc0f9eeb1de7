/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Real decoders crash, hang and eat memory on pictures that nobody has at hand when the tests run.
 * This is access-worker of the same objects, whose calls between them are wrapped by the linker, so
 * that a worker does the same: the environment's FAULT=NAME:ID on sample ID, FAULT=NAME on each. All
 * of it happens inside the sandbox and with its system calls only: a worker cannot send itself a
 * signal, so "stop" sleeps on a futex that nobody wakes, which looks the same from outside.
 */

#include <errno.h>
#include <inttypes.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pipeline/pipeline.h"
#include "base/sandbox.h"
#include "worker/worker.h"

#define FAULTY_HOG_STEP (UINT64_C(1) << 20)
#define FAULTY_EXIT_STATUS 3 /* contain_test.c knows it */

static struct {
	const struct worker_setup *setup;
	char name[8];
	bool is_all, has_hogged;
	uint64_t sample;
} faulty;

static bool faulty_is(const char *name, uint64_t sample)
{
	return strcmp(faulty.name, name) == 0 && (faulty.is_all || faulty.sample == sample);
}

_Noreturn void __real_worker_main(const struct worker_setup *setup);
_Noreturn void __wrap_worker_main(const struct worker_setup *setup);
_Noreturn void __wrap_worker_main(const struct worker_setup *setup)
{
	const char *fault = getenv("FAULT");

	faulty.setup = setup;
	if (fault)
		faulty.is_all = sscanf(fault, "%7[a-z]:%" SCNu64, faulty.name, &faulty.sample) == 1;
	__real_worker_main(setup);
}

/* "shut": it cannot enter the sandbox. */
int __real_sandbox_enter(const struct sandbox_limits *limits);
int __wrap_sandbox_enter(const struct sandbox_limits *limits);
int __wrap_sandbox_enter(const struct sandbox_limits *limits)
{
	return faulty_is("shut", 0) ? -EPERM : __real_sandbox_enter(limits);
}

/* ---- before a sample is run ---- */

static void faulty_segv(void)
{
	char *volatile nowhere = NULL;

	*(volatile char *)nowhere = 1;
}

static void faulty_loop(void)
{
	for (volatile uint64_t turns = 0;; turns = turns + 1)
		;
}

/* Computes for ever, and says in the doorbell that it is idle. */
static void faulty_hide(void)
{
	atomic_store(&faulty.setup->doorbell->worker[faulty.setup->index].w_task, 0);
	faulty_loop();
}

/* Ends when nothing is left, as after a leak. */
static void faulty_hog(void)
{
	faulty.has_hogged = true;
	for (size_t step = FAULTY_HOG_STEP; step >= sizeof(void *); step /= 2) {
		char *more;

		while ((more = malloc(step)) != NULL)
			for (size_t i = 0; i < step; i += 4096)
				((volatile char *)more)[i] = 1;
	}
}

static void faulty_stop(void)
{
	uint32_t word = 0;

	for (;;)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

static void faulty_exit(void)
{
	_exit(FAULTY_EXIT_STATUS);
}

/* As if its generation were over. */
static void faulty_leave(void)
{
	_exit(WORKER_EXIT_DONE);
}

static const struct {
	const char *name;
	void (*strike)(void);
} faulty_table[] = {
    {"segv", faulty_segv}, {"loop", faulty_loop}, {"hide", faulty_hide},   {"hog", faulty_hog},
    {"stop", faulty_stop}, {"exit", faulty_exit}, {"leave", faulty_leave},
};

void __real_workset_touch(const struct workset_queue *queue, const struct queue_task *task,
			  const struct pipeline_out out[LAYOUT_MAX_VARIANTS]);
void __wrap_workset_touch(const struct workset_queue *queue, const struct queue_task *task,
			  const struct pipeline_out out[LAYOUT_MAX_VARIANTS]);
void __wrap_workset_touch(const struct workset_queue *queue, const struct queue_task *task,
			  const struct pipeline_out out[LAYOUT_MAX_VARIANTS])
{
	__real_workset_touch(queue, task, out);
	for (size_t i = 0; i < BASE_ARRAY_LEN(faulty_table); i++)
		if (faulty_is(faulty_table[i].name, task->sample))
			faulty_table[i].strike();
}

/* ---- behind it ---- */

int __real_pipeline_run_sample(struct pipeline_run *run, uint32_t variants, const void *data,
			       size_t size, uint32_t label, const struct pipeline_key *key,
			       const struct pipeline_out out[], struct pipeline_error *ret_error);
int __wrap_pipeline_run_sample(struct pipeline_run *run, uint32_t variants, const void *data,
			       size_t size, uint32_t label, const struct pipeline_key *key,
			       const struct pipeline_out out[], struct pipeline_error *ret_error);
int __wrap_pipeline_run_sample(struct pipeline_run *run, uint32_t variants, const void *data,
			       size_t size, uint32_t label, const struct pipeline_key *key,
			       const struct pipeline_out out[], struct pipeline_error *ret_error)
{
	if (!faulty.has_hogged)
		return __real_pipeline_run_sample(run, variants, data, size, label, key, out,
						  ret_error);
	*ret_error = (struct pipeline_error){.stage = PIPELINE_FAIL_MEMORY};
	return PIPELINE_E_BAD;
}

/* "lie": it says that its file has changed, which is the reader's to say. */
bool __real_queue_run_done(struct queue *queue, const struct queue_task *task,
			   enum layout_fail stage, int code, const char *text, uint32_t work_us);
bool __wrap_queue_run_done(struct queue *queue, const struct queue_task *task,
			   enum layout_fail stage, int code, const char *text, uint32_t work_us);
bool __wrap_queue_run_done(struct queue *queue, const struct queue_task *task,
			   enum layout_fail stage, int code, const char *text, uint32_t work_us)
{
	if (faulty_is("lie", task->sample))
		stage = LAYOUT_FAIL_CHANGED;
	return __real_queue_run_done(queue, task, stage, code, text, work_us);
}
