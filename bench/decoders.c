/* SPDX-License-Identifier: Apache-2.0 */

#include "bench/decoders.h"

#include "base/base.h"
#include "pipeline/pipeline.h"

#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define AHEAD 512 /* photographs that are given and not decoded, at most */
#define SLOTS 64  /* outputs that are written in turn */
#define SLOT_BYTES ((size_t)3 * 224 * 224 * 4)
#define HUGE_PAGE ((size_t)2 << 20)
#define PAUSE_NS 1000000

struct given {
	uint64_t at;
	uint32_t bytes;
};

struct decoders { /* shared */
	sem_t waiting;
	_Atomic uint64_t taken, done;
	struct given given[AHEAD];
	/* of who made it */
	uint64_t n_given;
	unsigned n;
};

static _Noreturn void decoders_die(const char *what)
{
	fprintf(stderr, "decoders: %s\n", what);
	_exit(1);
}

static uint8_t *slots_new(void)
{
	const size_t bytes = base_align_up(SLOTS * SLOT_BYTES, HUGE_PAGE);
	uint8_t *slots = aligned_alloc(HUGE_PAGE, bytes);

	if (!slots)
		decoders_die("no memory");
	(void)madvise(slots, bytes, MADV_HUGEPAGE); /* where there are none, small pages do */
	memset(slots, 1, bytes);
	return slots;
}

static struct pipeline_run *run_new(void)
{
	const char *text = pipeline_named("imagenet-train");
	const struct pipeline *pipeline;
	struct pipeline *compiled;
	struct pipeline_run *run;
	struct diag diag;

	if (pipeline_compile(text, strlen(text), &compiled, &diag))
		decoders_die(diag.text);
	pipeline = compiled;
	if (pipeline_run_new(&pipeline, 1, &run))
		decoders_die("no memory");
	return run;
}

/* What is no photograph would cost less, and who gives it would be measured beside nobody. */
static _Noreturn void decode(struct decoders *decoders, const uint8_t *memory)
{
	struct pipeline_run *run = run_new();
	uint8_t *slots = slots_new();

	for (;;) {
		struct pipeline_error error;
		struct pipeline_key key = {1, 1, 0};
		int64_t label;
		struct pipeline_out out = {.field = {NULL, &label}};
		const struct given *given;

		while (sem_wait(&decoders->waiting) < 0)
			;
		key.sample = atomic_fetch_add(&decoders->taken, 1);
		given = &decoders->given[key.sample % AHEAD];
		out.field[0] = slots + key.sample % SLOTS * SLOT_BYTES;
		if (pipeline_run_sample(run, 1, memory + given->at, given->bytes, 0, &key, &out,
					&error))
			decoders_die(error.text);
		atomic_fetch_add(&decoders->done, 1);
	}
}

struct decoders *decoders_new(unsigned n, const uint8_t *memory)
{
	struct decoders *decoders = mmap(NULL, sizeof(*decoders), PROT_READ | PROT_WRITE,
					 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (decoders == MAP_FAILED || sem_init(&decoders->waiting, 1, 0) < 0)
		decoders_die("no memory");
	for (; decoders->n < n; decoders->n++) {
		const pid_t parent = getpid(), child = fork();

		if (child < 0)
			decoders_die("no process");
		if (child > 0)
			continue;
		if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
			_exit(1);
		decode(decoders, memory);
	}
	return decoders;
}

static void await(struct decoders *decoders, uint64_t left)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	while (decoders->n_given - atomic_load(&decoders->done) > left) {
		if (waitpid(-1, NULL, WNOHANG) > 0)
			decoders_die("one of them is dead");
		nanosleep(&pause, NULL);
	}
}

void decoders_await(struct decoders *decoders)
{
	await(decoders, AHEAD - DECODERS_BURST);
}

void decoders_settle(struct decoders *decoders)
{
	await(decoders, 0);
}

void decoders_give(struct decoders *decoders, uint64_t at, uint32_t bytes)
{
	decoders->given[decoders->n_given++ % AHEAD] = (struct given){at, bytes};
	sem_post(&decoders->waiting);
}
