/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Real decoders crash, hang and eat memory on pictures that nobody has at hand when the tests run.
 * A fault makes a worker do the same on one chosen sample. All of them happen inside the sandbox
 * and with its system calls only: a worker cannot send itself a signal, so "stop" sleeps on a
 * futex that nobody wakes, which looks the same from outside. Honoured only where the environment
 * says ACCESS_FAULTS=1 (main.c).
 */

#include "worker/fault.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.h"

#define FAULT_HOG_STEP (UINT64_C(1) << 20)

static const struct {
	const char *name;
	enum fault_kind kind;
	bool has_sample;
} fault_table[] = {
    {"segv", FAULT_SEGV, true},
    {"loop", FAULT_LOOP, true},
    {"hog", FAULT_HOG, true},
    {"exit", FAULT_EXIT, true},
    {"stop", FAULT_STOP, true},
    {"lie", FAULT_LIE, true},
    {"hide", FAULT_HIDE, true},
    {"all-segv", FAULT_ALL_SEGV, false},
    {"all-shut", FAULT_ALL_SHUT, false},
    {"all-leave", FAULT_ALL_LEAVE, false},
};

static int fault_parse_sample(const char *text, uint64_t *ret)
{
	char *end = NULL;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	return errno != 0 || *end != '\0' ? -EINVAL : 0;
}

int fault_parse(const char *name, struct fault *ret)
{
	size_t length = strcspn(name, ":");
	struct fault fault = {FAULT_NONE, 0};

	for (size_t i = 0; i < BASE_ARRAY_LEN(fault_table); i++) {
		if (strlen(fault_table[i].name) != length ||
		    memcmp(fault_table[i].name, name, length) != 0)
			continue;
		if (fault_table[i].has_sample != (name[length] == ':'))
			return -EINVAL;
		if (fault_table[i].has_sample &&
		    fault_parse_sample(name + length + 1, &fault.sample) < 0)
			return -EINVAL;
		fault.kind = fault_table[i].kind;
		*ret = fault;
		return 0;
	}
	return -EINVAL;
}

static void fault_segv(void)
{
	char *volatile nowhere = NULL;

	*(volatile char *)nowhere = 1;
}

static void fault_loop(void)
{
	for (volatile uint64_t turns = 0;; turns = turns + 1)
		;
}

/* Ends when nothing is left, as after a leak. */
static void fault_hog(void)
{
	for (size_t step = FAULT_HOG_STEP; step >= sizeof(void *); step /= 2) {
		char *more;

		while ((more = malloc(step)) != NULL)
			for (size_t i = 0; i < step; i += 4096)
				((volatile char *)more)[i] = 1;
	}
}

static void fault_stop(void)
{
	uint32_t word = 0;

	for (;;)
		syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
}

bool fault_is(const struct fault *fault, enum fault_kind kind, uint64_t sample)
{
	return fault->kind == kind && fault->sample == sample;
}

void fault_strike(const struct fault *fault, uint64_t sample)
{
	const bool is_all = fault->kind == FAULT_ALL_SEGV || fault->kind == FAULT_ALL_LEAVE;

	if (fault->kind == FAULT_NONE || (!is_all && fault->sample != sample))
		return;
	switch (fault->kind) {
	case FAULT_NONE:
	case FAULT_LIE:
	case FAULT_ALL_SHUT:
		break;
	case FAULT_SEGV:
	case FAULT_ALL_SEGV:
		fault_segv();
		break;
	case FAULT_LOOP:
	case FAULT_HIDE:
		fault_loop();
		break;
	case FAULT_HOG:
		fault_hog();
		break;
	case FAULT_EXIT:
		_exit(FAULT_EXIT_STATUS);
	case FAULT_STOP:
		fault_stop();
		break;
	case FAULT_ALL_LEAVE: /* as if its generation were over */
		_exit(0);
	}
}
