/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_FAULT_H
#define WORKER_FAULT_H

/* Deliberate misbehaviour of workers, for tests: access-worker --fault NAME. */

#include <stdbool.h>
#include <stdint.h>

enum fault_kind {
	FAULT_NONE = 0,
	FAULT_SEGV,     /* "segv:ID": reads address 0 when it runs sample ID */
	FAULT_LOOP,     /* "loop:ID": computes for ever */
	FAULT_HOG,      /* "hog:ID": allocates memory without end */
	FAULT_EXIT,     /* "exit:ID": leaves with status FAULT_EXIT_STATUS */
	FAULT_STOP,     /* "stop:ID": sleeps for ever */
	FAULT_LIE,      /* "lie:ID": says that its file has changed, which is the reader's to say */
	FAULT_HIDE,     /* "hide:ID": computes for ever, and says in the bell that it is idle */
	FAULT_ALL_SEGV, /* "all-segv": reads address 0 on every sample */
	FAULT_ALL_SHUT, /* "all-shut": cannot enter the sandbox */
	FAULT_ALL_LEAVE, /* "all-leave": leaves on every sample as if its generation were over */
};
#define FAULT_EXIT_STATUS 3

struct fault {
	enum fault_kind kind;
	uint64_t sample;
};

/* 0 or -EINVAL and *ret untouched. */
int fault_parse(const char *name, struct fault *ret);
/* Is it this one's turn to have a fault that the worker must commit itself (LIE, HIDE)? */
bool fault_is(const struct fault *fault, enum fault_kind kind, uint64_t sample);
/* Called by a worker before it runs sample; does what the fault says, if it is this one's turn. */
void fault_strike(const struct fault *fault, uint64_t sample);

#endif
