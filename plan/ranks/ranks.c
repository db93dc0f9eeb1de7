/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "plan/ranks/ranks.h"

static uint64_t a_step(const struct ranks *ranks)
{
	return (uint64_t)ranks->batch * ranks->ranks;
}

static uint64_t full_steps(const struct ranks *ranks)
{
	return (ranks->n - ranks->base) / a_step(ranks);
}

static uint64_t rest_of(const struct ranks *ranks)
{
	return (ranks->n - ranks->base) % a_step(ranks);
}

uint64_t ranks_steps(const struct ranks *ranks)
{
	return full_steps(ranks) + (rest_of(ranks) && !ranks->drop_last);
}

uint32_t ranks_part(const struct ranks *ranks, uint32_t rank, uint64_t step, uint64_t *ret_first)
{
	uint64_t share = rest_of(ranks) / ranks->ranks, more = rest_of(ranks) % ranks->ranks;

	*ret_first = ranks->base + step * a_step(ranks);
	if (step < full_steps(ranks)) {
		*ret_first += (uint64_t)rank * ranks->batch;
		return ranks->batch;
	}
	*ret_first += rank * share + BASE_MIN((uint64_t)rank, more);
	return (uint32_t)(share + (rank < more));
}

uint64_t ranks_place(const struct ranks *ranks, uint64_t steps)
{
	return steps < ranks_steps(ranks) ? ranks->base + steps * a_step(ranks) : ranks->n;
}
