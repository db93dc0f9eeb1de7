/* SPDX-License-Identifier: Apache-2.0 */

/* What training runs want, drawn: a statement a draw, or compilers would order them. */

#include <string.h>

#include "tests/daemon/bottle/bottle.h"

static const char random_spec[] =
    "[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":4},{\"op\":\"hflip\"}]";
static const char *const specs[] = {
    random_spec,
    "[{\"op\":\"decode\"},{\"op\":\"random_resized_crop\",\"size\":6}]",
    "[{\"op\":\"decode\"},{\"op\":\"resize\",\"size\":8},{\"op\":\"center_crop\",\"size\":4}]",
};

static bool is_fixed(const struct job_plan *plan)
{
	return plan->order == OA_ORDER_SEEDED || plan->order == OA_ORDER_SEQUENTIAL;
}

/* ---- which samples ---- */

static void draw_set(struct picked *picked)
{
	const unsigned one_in = (unsigned)bottle_between(2, 5);

	for (unsigned i = 0; i < bottle_now()->samples; i++)
		if (bottle_chance(one_in))
			picked->ids[picked->n++] = i;
	if (!picked->n)
		picked->ids[picked->n++] = 0;
}

static void draw_list(struct picked *picked)
{
	const unsigned n = (unsigned)bottle_between(1, BOTTLE_LIST);

	while (picked->n < n)
		picked->ids[picked->n++] = (int64_t)bottle_below(bottle_now()->samples);
}

static void draw_weights(struct picked *picked)
{
	picked->n = bottle_now()->samples;
	picked->has_weights = true;
	picked->repeats = bottle_chance(2);
	for (unsigned i = 0; i < picked->n; i++) {
		const bool is_none = bottle_chance(4);

		picked->weight[i] = is_none ? 0 : (double)(1 + bottle_below(100)) / 10;
	}
	picked->weight[0] = 1;
	picked->total = 1;
	for (unsigned i = 1; i < picked->n; i++)
		picked->total += picked->weight[i] > 0;
	picked->total = 1 + (unsigned)bottle_below(picked->total);
}

static void draw_picked(struct job_plan *plan)
{
	struct picked *picked = &plan->picked;
	const uint64_t kind = bottle_below(6);

	if (kind == 0)
		draw_set(picked);
	else if (kind <= 2 && is_fixed(plan))
		draw_list(picked);
	else if (kind == 3 && plan->order == OA_ORDER_SEEDED)
		draw_weights(picked);
	if (!picked->has_weights)
		picked->total = picked->n ? picked->n : bottle_now()->samples;
}

/* How often an epoch has each sample, or has it at most. */
static void count_times(struct picked *picked)
{
	for (unsigned i = 0; i < bottle_now()->samples; i++) {
		if (picked->has_weights)
			picked->times[i] = picked->weight[i] == 0 ? 0
					   : picked->repeats      ? BOTTLE_LIST
								  : 1;
		else
			picked->times[i] = !picked->n;
	}
	for (unsigned i = 0; i < picked->n && !picked->has_weights; i++)
		picked->times[picked->ids[i]]++;
}

/* ---- a plan ---- */

static void draw_ranks(struct job_plan *plan)
{
	plan->ranks = (unsigned)bottle_between(2, BOTTLE_RANKS + 1);
	plan->batch = (uint32_t)bottle_between(1, 2 + bottle_now()->samples / (8 * plan->ranks));
	plan->saves = (unsigned)bottle_below(4); /* 0: it is killed as a whole, and begins anew */
	plan->reuse = 1;
}

static void draw_alone(struct job_plan *plan)
{
	plan->alone_of = (uint32_t)bottle_between(2, 1000);
	plan->flags &= ~(uint32_t)OA_DROP_LAST;
	plan->reuse = 1;
}

void plan_draw(struct job_plan *plan, enum oa_bad bad, bool may_have_ranks)
{
	static const enum oa_order orders[] = {OA_ORDER_CAROUSEL, OA_ORDER_CAROUSEL,
					       OA_ORDER_CAROUSEL, OA_ORDER_ANY,
					       OA_ORDER_SEEDED,   OA_ORDER_SEQUENTIAL};
	static const uint32_t flags[] = {0, 0, OA_COPY, OA_KEEP, OA_DROP_LAST, OA_POISON};
	uint64_t most;

	memset(plan, 0, sizeof(*plan));
	plan->bad = bad;
	plan->ranks = plan->reuse = 1;
	plan->ahead = 2;
	plan->batch = (uint32_t)bottle_between(1, 30);
	plan->flags = flags[bottle_below(BASE_ARRAY_LEN(flags))];
	plan->order = orders[bottle_below(BASE_ARRAY_LEN(orders))];
	plan->epochs = bottle_between(1, BOTTLE_EPOCHS + 1);
	plan->pace_ns =
	    bottle_chance(2) ? bottle_between(MS, 50 * MS) : bottle_between(100 * MS, 2 * SECOND);
	plan->saves = (unsigned)bottle_below(6);
	plan->pipeline =
	    specs[plan->order == OA_ORDER_ANY ? 2 : bottle_below(BASE_ARRAY_LEN(specs) - 1)];
	if (is_fixed(plan))
		plan->seed = 1 + bottle_below(2);
	if (plan->order == OA_ORDER_CAROUSEL && bottle_chance(2))
		plan->reuse = (uint32_t)bottle_between(2, 4);
	if (bottle_chance(2)) /* else by rule: then slots hold all of so small a data set */
		plan->chunk = (uint32_t)bottle_between(4, 40);
	plan->picked.total = bottle_now()->samples;
	if (may_have_ranks && plan->order != OA_ORDER_ANY && bottle_chance(2))
		draw_ranks(plan);
	else if (bottle_chance(2))
		draw_picked(plan);
	count_times(&plan->picked);
	if (plan->order != OA_ORDER_ANY && plan->ranks == 1 && bottle_chance(8))
		draw_alone(plan);
	if (plan->flags & OA_DROP_LAST) /* a batch of each rank there must be */
		plan->batch = BASE_MIN(plan->batch, plan->picked.total / plan->ranks);
	most = 1500 * SECOND / plan->pace_ns * plan->batch * plan->ranks / plan->picked.total;
	plan->epochs = BASE_MIN(plan->epochs, 1 + most);
	plan->holds = plan->flags & (OA_COPY | OA_KEEP) ? 3 : 1;
}
