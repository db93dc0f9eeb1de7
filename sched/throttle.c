/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token bucket with debts. A piece is begun when there is anything in the bucket, and is paid for when its size is known, which
 * may leave less than nothing: so pieces larger than the bucket pass, and the mean is the rate all the same. Between any two
 * moments no more is taken than the rate allows, what the bucket holds, and the pieces under way.
 */
#include "sched/throttle.h"

#include <stdbool.h>

#define HOLDS_S 0.1

static double most_of(const struct throttle *throttle)
{
	return throttle->rate * HOLDS_S;
}

void throttle_look(struct throttle *throttle, double rate, uint64_t now_ns)
{
	const bool is_first = throttle->rate <= 0;

	if (!is_first && now_ns > throttle->at_ns)
		throttle->level += throttle->rate * (double)(now_ns - throttle->at_ns) / 1e9;
	if (is_first || now_ns > throttle->at_ns)
		throttle->at_ns = now_ns;
	if (rate < throttle->rate && throttle->level < 0)
		throttle->level *= rate / throttle->rate;
	throttle->rate = rate;
	if (is_first || throttle->level > most_of(throttle))
		throttle->level = most_of(throttle);
}

void throttle_take(struct throttle *throttle, double amount, double most)
{
	if (throttle->level - amount >= -most)
		throttle->level -= amount;
	else if (throttle->level > -most)
		throttle->level = -most;
}

uint32_t throttle_room(const struct throttle *throttle, double size, uint32_t under_way)
{
	const double pieces = throttle->level / size - under_way;

	if (throttle->level <= 0)
		return 0;
	if (pieces < 1)
		return under_way == 0;
	return pieces < UINT32_MAX ? (uint32_t)pieces : UINT32_MAX;
}

uint64_t throttle_wait_ns(const struct throttle *throttle)
{
	return throttle->level > 0 ? 0 : (uint64_t)(-throttle->level / throttle->rate * 1e9) + 1;
}
