/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of one worker, from the fork on. */

#include "shmring/queue.h"
#include "shmring/resident.h"
#include "worker/generation.h"
#include "worker/workset.h"

#define WORKER_EVENT_FD 4 /* accessd's eventfd, the one descriptor that a worker keeps */

enum worker_exit {
	WORKER_EXIT_DONE = 0,     /* its generation is over, or its place */
	WORKER_EXIT_SETUP = 69,   /* could not set itself up (or its parent died meanwhile) */
	WORKER_EXIT_SANDBOX = 70, /* could not enter the sandbox: it ran nothing */
	WORKER_EXIT_SPENT = 71,   /* a sample ran out of memory, and its heap stayed full */
};

struct worker_setup {   /* filled before the fork; everything borrowed, for the worker's life */
	uint32_t owner; /* its number in task words */
	unsigned index; /* its entry in the doorbell */
	uint64_t generation;
	uint64_t memory; /* bytes of heap */
	int nice;
	pid_t parent;
	const struct generation_word *current;
	struct layout_doorbell *doorbell;
	const struct rings *rings;       /* NULL: no stored forms are made */
	const struct resident *resident; /* read-only; empty where there is none */
	const struct workset *workset;
};

/* Runs in the child. Leaves by _exit() only. */
_Noreturn void worker_main(const struct worker_setup *setup);
