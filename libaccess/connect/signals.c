/* SPDX-License-Identifier: Apache-2.0 */

/* The signals of a program are its own; for moments we hold them back (dial.h), or keep them from a
 * thread of ours (prefault.c). */

#include "libaccess/connect/signals.h"

#include "base/base.h"

void signals_block(sigset_t *ret_before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t blocked;

	sigfillset(&blocked);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, ret_before);
}
