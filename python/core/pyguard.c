/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Batches are mapped read-only, and PyTorch has no read-only tensors: images.div_(255) is a
 * segmentation fault. So a handler looks whether the address is a batch's, makes that batch writable
 * (oa_make_writable(3): pages that are written to become private), and the write is done again. Who never
 * writes pays nothing, and whatever writes is noticed: an operation in place, a kernel of one's own through
 * data_ptr(), an array of tensor.numpy(). System calls that write (file.readinto()) fail with EFAULT.
 *
 * Where that cannot be, as in a batch that a device reads directly, it says what happened and how to mend it,
 * and puts back what was there before, which then sees the same fault again: faulthandler's, or the default.
 * One that has put this one back, as faulthandler does, is not asked a second time.
 *
 * Everything here is atomic, as a fault may come at any time in any thread. Ranges live in a small
 * table. A range's batch is read when a fault is in the range: who writes there has a view of that batch,
 * so it lives. A batch that finds no place in the table is made writable at once.
 */

#include "python/core/pyguard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#define PYGUARD_RANGES 1024
#define PYGUARD_TRIES 1000 /* a write that still fails is something else */

static struct {
	atomic_uintptr_t start, end; /* 0, 0: free; start is set last and cleared first */
	_Atomic(struct oa_batch *) batch;
	atomic_uint tries;
} pyguard_range[PYGUARD_RANGES];
static struct sigaction pyguard_before;
static atomic_bool pyguard_has_ended;

static const char pyguard_text[] = "oneaccess: this program wrote to a batch, which a device or "
				   "other jobs read, too: here it is read-only. Open the "
				   "Loader with copy=True for batches of your own, or write to a "
				   "new tensor (images = images / 255, not "
				   "images /= 255).\n";

static int pyguard_find(uintptr_t at)
{
	for (int i = 0; i < PYGUARD_RANGES; i++) {
		uintptr_t start = atomic_load(&pyguard_range[i].start);

		if (start != 0 && at >= start && at < atomic_load(&pyguard_range[i].end) &&
		    start == atomic_load(&pyguard_range[i].start)) /* both were of one batch */
			return i;
	}
	return -1;
}

static void pyguard_tell(void)
{
	ssize_t told = write(STDERR_FILENO, pyguard_text, sizeof(pyguard_text) - 1);

	(void)told; /* there is nobody else to tell */
}

static void pyguard_give_up(int signal)
{
	const struct sigaction ending = {.sa_handler = SIG_DFL};

	sigaction(signal, atomic_exchange(&pyguard_has_ended, true) ? &ending : &pyguard_before,
		  NULL);
}

static void pyguard_handle(int signal, siginfo_t *info, void *context)
{
	const int i = info->si_code == SEGV_ACCERR ? pyguard_find((uintptr_t)info->si_addr) : -1;

	(void)context;
	if (i >= 0 && atomic_fetch_add(&pyguard_range[i].tries, 1) < PYGUARD_TRIES &&
	    oa_make_writable(atomic_load(&pyguard_range[i].batch)) == 0)
		return;
	if (i >= 0)
		pyguard_tell();
	pyguard_give_up(signal);
	if (info->si_code <= 0) /* sent by a process: it does not come again by itself */
		raise(signal);
}

void pyguard_begin(void)
{
	struct sigaction action = {.sa_sigaction = pyguard_handle,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction now;

	if (sigaction(SIGSEGV, NULL, &now) != 0 ||
	    ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == pyguard_handle))
		return;
	pyguard_before = now;
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, NULL);
}

int pyguard_watch(struct oa_batch *batch, const void *start, size_t size)
{
	for (int i = 0; i < PYGUARD_RANGES; i++) {
		uintptr_t nothing = 0;

		if (!atomic_compare_exchange_strong(&pyguard_range[i].end, &nothing,
						    (uintptr_t)start + size))
			continue;
		atomic_store(&pyguard_range[i].batch, batch);
		atomic_store(&pyguard_range[i].tries, 0);
		atomic_store(&pyguard_range[i].start, (uintptr_t)start);
		return i;
	}
	return -1;
}

void pyguard_forget(int number)
{
	if (number < 0)
		return;
	atomic_store(&pyguard_range[number].start, 0);
	atomic_store(&pyguard_range[number].end, 0);
}
