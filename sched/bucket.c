/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A token bucket with debts. A piece is begun when there is anything in the bucket, and is paid for when its size is known, which
 * may leave less than nothing: so pieces larger than the bucket pass, and the mean is the rate all the same. Between any two
 * moments no more is taken than the rate allows, what the bucket holds, and the pieces under way.
 */
#include "sched/bucket.h"

#include <stdbool.h>

#define HOLDS_S 0.1

static double most_of(const struct bucket *bucket)
{
	return bucket->rate * HOLDS_S;
}

void bucket_look(struct bucket *bucket, double rate, uint64_t now_ns)
{
	const bool is_first = bucket->rate <= 0;

	if (!is_first && now_ns > bucket->at_ns)
		bucket->level += bucket->rate * (double)(now_ns - bucket->at_ns) / 1e9;
	if (is_first || now_ns > bucket->at_ns)
		bucket->at_ns = now_ns;
	if (rate < bucket->rate && bucket->level < 0)
		bucket->level *= rate / bucket->rate;
	bucket->rate = rate;
	if (is_first || bucket->level > most_of(bucket))
		bucket->level = most_of(bucket);
}

void bucket_take(struct bucket *bucket, double amount, double most)
{
	if (bucket->level - amount >= -most)
		bucket->level -= amount;
	else if (bucket->level > -most)
		bucket->level = -most;
}

uint32_t bucket_room(const struct bucket *bucket, double size, uint32_t under_way)
{
	const double pieces = bucket->level / size - under_way;

	if (bucket->level <= 0)
		return 0;
	if (pieces < 1)
		return under_way == 0;
	return pieces < UINT32_MAX ? (uint32_t)pieces : UINT32_MAX;
}

uint64_t bucket_wait_ns(const struct bucket *bucket)
{
	return bucket->level > 0 ? 0 : (uint64_t)(-bucket->level / bucket->rate * 1e9) + 1;
}
