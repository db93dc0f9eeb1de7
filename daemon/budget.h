/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * How long one callback of the loop goes on with work that could wait: what is left is done in a later
 * turn, after all who have something to say. A time and not a number of steps, as nobody knows how
 * long a step takes on his machine; no result depends on where work is cut.
 */

#include "base/base.h"

#define BUDGET_NS UINT64_C(1000000)

struct budget {
	uint64_t begun_ns;
};

static inline struct budget budget_begin(void)
{
	return (struct budget){base_now_ns()};
}

static inline bool budget_is_spent(const struct budget *budget)
{
	return base_now_ns() - budget->begun_ns >= BUDGET_NS;
}
