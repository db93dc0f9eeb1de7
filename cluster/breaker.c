/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The outcomes of GETs that were under way when it opened come in while it is open, and say nothing that it does not
 * know: only the one that tries decides then.
 */

#include "cluster/breaker.h"

#include "base/base.h"

enum breaker_go breaker_may(struct breaker *breaker, uint64_t now_ns)
{
	if (breaker->state == BREAKER_ASKS)
		return BREAKER_GO_ASK;
	if (breaker->state == BREAKER_TRIES || now_ns < breaker->try_ns)
		return BREAKER_GO_NOT;
	breaker->state = BREAKER_TRIES;
	return BREAKER_GO_TRY;
}

void breaker_good(struct breaker *breaker, bool was_try)
{
	if (breaker->state == BREAKER_ASKS)
		breaker->bad = breaker->bad << 1 & ((UINT32_C(1) << BREAKER_OF) - 1);
	else if (was_try)
		*breaker = (struct breaker){.state = BREAKER_ASKS};
}

/* 1, 2, 4 ... 30 s, of which the upper half is left to chance; the first is 1 s and up to half of one more. */
static uint64_t wait_ns(unsigned opened, uint32_t chance)
{
	const uint64_t whole =
	    BASE_MIN(BREAKER_FIRST_NS << BASE_MIN(opened, 5U), BREAKER_LONGEST_NS);
	const uint64_t part = (whole >> 17) * chance >> 16; /* of a half */

	return opened == 0 ? whole + part : whole - part;
}

static void open_it(struct breaker *breaker, uint64_t now_ns, uint32_t chance)
{
	breaker->state = BREAKER_OPEN;
	breaker->try_ns = now_ns + wait_ns(breaker->opened, chance);
	breaker->opened++;
}

void breaker_bad(struct breaker *breaker, bool was_try, uint64_t now_ns, uint32_t chance)
{
	const uint32_t row = (UINT32_C(1) << BREAKER_ROW) - 1;

	if (breaker->state != BREAKER_ASKS) {
		if (was_try)
			open_it(breaker, now_ns, chance);
		return;
	}
	breaker->bad = (breaker->bad << 1 | 1) & ((UINT32_C(1) << BREAKER_OF) - 1);
	if ((breaker->bad & row) == row || __builtin_popcount(breaker->bad) >= BREAKER_MOST_BAD)
		open_it(breaker, now_ns, chance);
}
