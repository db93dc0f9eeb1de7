/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A worker that dies is replaced at once: one bad picture must not cost a core. But when every
 * picture kills its worker, replacing at once is a fork storm. So BACKOFF_BURST deaths within a
 * window are free; after that all starts wait, and the wait doubles each time that the workers it
 * let through die young again, up to BACKOFF_LONGEST_NS. A worker that lived for a whole window
 * ends the loop.
 *
 * At most BACKOFF_BURST + N starts come before the first wait and N starts after each wait, for a
 * pool of N; a pool that crashes for ever forks N times a second.
 *
 * Rejected: a wait per worker. A bad data set kills all of them in turn, and N times a small rate
 * is what hurts.
 */

#include "worker/backoff.h"

#include "base/base.h"

static bool backoff_is_burst(const struct backoff *backoff, uint64_t now_ns)
{
	uint64_t oldest_ns = backoff->death_ns[backoff->next];

	return oldest_ns != 0 && now_ns - oldest_ns < BACKOFF_WINDOW_NS;
}

void backoff_death(struct backoff *backoff, uint64_t now_ns, uint64_t lived_ns)
{
	bool is_burst = backoff_is_burst(backoff, now_ns);

	backoff->death_ns[backoff->next] = now_ns;
	backoff->next = (backoff->next + 1) % BACKOFF_BURST;
	if (now_ns < backoff->ready_ns)
		return; /* of the round that the present wait already answers */
	if (!is_burst && (backoff->delay_ns == 0 || lived_ns >= BACKOFF_WINDOW_NS)) {
		backoff->delay_ns = 0;
		return;
	}
	backoff->delay_ns = backoff->delay_ns == 0
				? BACKOFF_FIRST_NS
				: BASE_MIN(2 * backoff->delay_ns, BACKOFF_LONGEST_NS);
	backoff->ready_ns = now_ns + backoff->delay_ns;
}

uint64_t backoff_wait_ns(const struct backoff *backoff, uint64_t now_ns)
{
	return now_ns < backoff->ready_ns ? backoff->ready_ns - now_ns : 0;
}
