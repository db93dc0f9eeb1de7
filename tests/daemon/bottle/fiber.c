/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/daemon/bottle/fiber.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#define STACK (1 << 20) /* pages that are not touched cost nothing */

struct fiber {
	ucontext_t here, there; /* where it stands; who made it go */
	void (*fn)(void *arg);
	void *arg;
	void *stack;
	bool has_ended;
};

static struct fiber *now;
#ifdef __SANITIZE_ADDRESS__
static const void *outer; /* the stack of who makes fibers go */
static size_t outer_bytes;
#endif

/* A sanitizer is told which stack it is on. */
static void leave(void **fake, const void *stack, size_t bytes)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_start_switch_fiber(fake, stack, bytes);
#else
	(void)fake;
	(void)stack;
	(void)bytes;
#endif
}

static void arrive(void *fake, bool is_in)
{
#ifdef __SANITIZE_ADDRESS__
	__sanitizer_finish_switch_fiber(fake, is_in ? &outer : NULL, is_in ? &outer_bytes : NULL);
#else
	(void)fake;
	(void)is_in;
#endif
}

static void back(void **fake)
{
#ifdef __SANITIZE_ADDRESS__
	leave(fake, outer, outer_bytes);
#else
	leave(fake, NULL, 0);
#endif
}

static void begin(void)
{
	struct fiber *fiber = now;

	arrive(NULL, true);
	fiber->fn(fiber->arg);
	fiber->has_ended = true;
	back(NULL);
	setcontext(&fiber->there);
}

struct fiber *fiber_new(void (*fn)(void *arg), void *arg)
{
	struct fiber *fiber = calloc(1, sizeof(*fiber));

	if (!fiber || getcontext(&fiber->here))
		abort();
	fiber->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
	if (fiber->stack == MAP_FAILED)
		abort();
	fiber->fn = fn;
	fiber->arg = arg;
	fiber->here.uc_stack.ss_sp = fiber->stack;
	fiber->here.uc_stack.ss_size = STACK;
	fiber->here.uc_link = NULL;
	makecontext(&fiber->here, begin, 0);
	/* With each switch a sanitizer would forget what it knows of the stack that it is told here. */
	fiber->here.uc_stack = (stack_t){.ss_sp = NULL};
	return fiber;
}

void fiber_free(struct fiber *fiber)
{
	if (!fiber)
		return;
#ifdef __SANITIZE_ADDRESS__
	__asan_unpoison_memory_region(fiber->stack, STACK); /* begin() never returned */
#endif
	munmap(fiber->stack, STACK);
	free(fiber);
}

bool fiber_go(struct fiber *fiber)
{
	void *fake = NULL;

	now = fiber;
	leave(&fake, fiber->stack, STACK);
	swapcontext(&fiber->there, &fiber->here);
	arrive(fake, false);
	now = NULL;
	return fiber->has_ended;
}

void fiber_wait(void)
{
	struct fiber *fiber = now;
	void *fake = NULL;

	back(&fake);
	swapcontext(&fiber->here, &fiber->there);
	arrive(fake, true);
}

struct fiber *fiber_now(void)
{
	return now;
}
