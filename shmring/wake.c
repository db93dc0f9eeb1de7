/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sleeping on a sequence number in shared memory without losing a wake.
 *
 * A sleeper notes the sequence, looks for work, finds none, arms (E1) and lets the kernel compare
 * the sequence again as it goes to sleep (E2). A ringer has put the work where it is found, moves
 * the sequence (E3) and enters the kernel only if the flag is armed (E4). Store before load on both
 * sides: either the sleeper's comparison fails or the ringer sees the flag.
 *
 * The flag says "somebody may sleep", for all of them together, so a ringer does not clear it when
 * it wakes one. It clears it when the kernel says that nobody slept, and then moves the sequence
 * and wakes once more, for one who armed just before and is about to sleep. So ringing costs
 * nothing while all are at work, and each READY task wakes one worker, not all.
 *
 * The futexes are of shared memory (no FUTEX_PRIVATE_FLAG).
 */

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shmring/wake.h"

/* An error (no such futex: nobody slept) counts as none. */
long wake_some(_Atomic uint32_t *seq, int n)
{
	return BASE_MAX(syscall(SYS_futex, seq, FUTEX_WAKE, n, NULL, NULL, 0), 0);
}

void wake_ring(_Atomic uint32_t *seq, _Atomic uint32_t *armed, int n)
{
	/* E3: seq_cst, pairs with E2. */
	atomic_fetch_add_explicit(seq, 1, memory_order_seq_cst);
	/* E4: seq_cst load after E3, pairs with E1. */
	if (!atomic_load_explicit(armed, memory_order_seq_cst) || wake_some(seq, n) > 0)
		return;
	atomic_store_explicit(armed, 0, memory_order_seq_cst);
	atomic_fetch_add_explicit(seq, 1, memory_order_seq_cst);
	wake_some(seq, INT32_MAX);
}

void wake_sleep(_Atomic uint32_t *seq, _Atomic uint32_t *armed, uint32_t seen, uint64_t timeout_ns)
{
	const struct timespec timeout = base_timespec(timeout_ns);

	/* E1: seq_cst store, then E2; pairs with E4. */
	atomic_store_explicit(armed, 1, memory_order_seq_cst);
	/* E2: the kernel compares under its own lock, a full barrier; pairs with E3. */
	syscall(SYS_futex, seq, FUTEX_WAIT, seen, timeout_ns == UINT64_MAX ? NULL : &timeout, NULL,
		0);
}
