/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Batches are mapped read-only, and PyTorch has no read-only tensors: images.div_(255) is a
 * segmentation fault. That is right, since other jobs see the same pages, but a fault says nothing.
 * So a handler looks whether the address is a batch's, says what happened and how to mend it, and puts
 * back what was there before, which then sees the same fault again: faulthandler's, or the default.
 *
 * Everything here is atomic, as a fault may come at any time in any thread. Ranges live in a small
 * table; a batch that finds no place in it is not watched.
 */

#include "python/core/pyguard.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#define PYGUARD_RANGES 256

static struct {
	atomic_uintptr_t start, end; /* 0, 0: free; start is set last and cleared first */
} pyguard_range[PYGUARD_RANGES];
static struct sigaction pyguard_before;
static atomic_flag pyguard_has_begun = ATOMIC_FLAG_INIT;

static const char pyguard_text[] = "oneaccess: this program wrote to a batch, which other jobs "
				   "read, too: batches are read-only. Open the "
				   "Loader with copy=True for batches of your own, or write to a "
				   "new tensor (images = images / 255, not "
				   "images /= 255).\n";

static void pyguard_handle(int signal, siginfo_t *info, void *context)
{
	const uintptr_t at = (uintptr_t)info->si_addr;

	(void)context;
	for (int i = 0; i < PYGUARD_RANGES; i++) {
		uintptr_t start = atomic_load(&pyguard_range[i].start);

		if (start != 0 && at >= start && at < atomic_load(&pyguard_range[i].end)) {
			ssize_t told = write(STDERR_FILENO, pyguard_text, sizeof(pyguard_text) - 1);

			(void)told; /* there is nobody else to tell */
			break;
		}
	}
	sigaction(signal, &pyguard_before, NULL);
	if (info->si_code <= 0) /* sent by a process: it does not come again by itself */
		raise(signal);
}

void pyguard_begin(void)
{
	struct sigaction action = {.sa_sigaction = pyguard_handle,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (atomic_flag_test_and_set(&pyguard_has_begun))
		return;
	sigemptyset(&action.sa_mask);
	sigaction(SIGSEGV, &action, &pyguard_before);
}

int pyguard_watch(const void *start, size_t size)
{
	for (int i = 0; i < PYGUARD_RANGES; i++) {
		uintptr_t nothing = 0;

		if (!atomic_compare_exchange_strong(&pyguard_range[i].end, &nothing,
						    (uintptr_t)start + size))
			continue;
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
