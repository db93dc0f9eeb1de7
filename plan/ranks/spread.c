/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "base/little.h"
#include "base/owner.h"
#include "plan/ranks/spread.h"

#define NOBODY UINT8_MAX

struct cell {                 /* in one step */
	uint32_t nodes, node; /* how many; which of them is the slice's */
	uint64_t place;       /* of its first sample */
	uint32_t count;
	uint32_t room[SPREAD_CELL]; /* places that each node has, and nobody's sample yet */
	int64_t ids[SPREAD_MOST];
	uint8_t to[SPREAD_MOST]; /* which node gets it */
};

bool spread_is_even(const struct slice *slice)
{
	return slice_is_whole(slice) ||
	       (slice->ranks.ranks % slice->count == 0 && slice->first % slice->count == 0);
}

static uint32_t cell_size(const struct slice *slice)
{
	uint64_t share = (uint64_t)slice->ranks.batch * slice->count;

	return (uint32_t)BASE_MAX(BASE_MIN(SPREAD_MOST / share, (uint64_t)SPREAD_CELL),
				  UINT64_C(1));
}

uint64_t spread_work(const struct slice *slice, uint32_t chunk)
{
	uint64_t share = (uint64_t)slice->ranks.batch * slice->count;

	return cell_size(slice) == 1 ? chunk : (chunk / share + 2) * share * cell_size(slice);
}

bool spread_place(const struct slice *slice, uint32_t *ret_number, uint32_t *ret_nodes)
{
	if (!slice->is_spread || slice_is_whole(slice) || !spread_is_even(slice) ||
	    slice->ranks.ranks / slice->count > cell_size(slice))
		return false;
	*ret_number = slice->first / slice->count;
	*ret_nodes = slice->ranks.ranks / slice->count;
	return true;
}

/* Which nodes, and what of the step each has without a spread: so many it has with it. */
static void cell_init(struct cell *cell, const struct slice *slice, uint64_t step)
{
	uint32_t size = cell_size(slice), number = slice->first / slice->count;
	uint32_t all = slice->ranks.ranks / slice->count;
	struct slice node = *slice;
	uint64_t place;

	cell->node = number % size;
	cell->nodes = BASE_MIN(size, all - (number - cell->node));
	cell->count = 0;
	for (uint32_t i = 0; i < cell->nodes; i++) {
		node.first = (number - cell->node + i) * slice->count;
		cell->room[i] = (uint32_t)slice_share(&node, step, &place);
		if (i == 0)
			cell->place = place;
		cell->count += cell->room[i];
	}
}

static void cell_deal(struct cell *cell, const struct plan *plan)
{
	const uint64_t key = little_64(plan->version);
	uint32_t free = 0;

	for (uint32_t i = 0; i < cell->count; i++) {
		const unsigned owner = owner_of_spread(key, (uint64_t)cell->ids[i], cell->nodes);

		cell->to[i] = cell->room[owner] ? (uint8_t)owner : NOBODY;
		cell->room[owner] -= cell->room[owner] > 0;
	}
	for (uint32_t i = 0; i < cell->count; i++) {
		if (cell->to[i] != NOBODY)
			continue;
		while (!cell->room[free])
			free++;
		cell->to[i] = (uint8_t)free;
		cell->room[free]--;
	}
}

/* Of the node's samples of the step, count from the skip-th on. */
static void step_samples(const struct slice *slice, const struct plan *plan, uint64_t epoch,
			 uint64_t step, uint32_t skip, uint32_t count, int64_t *ret_ids)
{
	struct cell cell;
	uint32_t at = 0;

	cell_init(&cell, slice, step);
	plan_samples(plan, epoch, cell.place, cell.count, cell.ids);
	cell_deal(&cell, plan);
	for (uint32_t i = 0; i < cell.count && at < skip + count; i++) {
		if (cell.to[i] != cell.node)
			continue;
		if (at >= skip)
			ret_ids[at - skip] = cell.ids[i];
		at++;
	}
}

void spread_samples(const struct slice *slice, const struct plan *plan, uint64_t epoch,
		    uint64_t local, uint32_t count, int64_t *ret_ids)
{
	uint64_t share = (uint64_t)slice->ranks.batch * slice->count, place;

	for (uint32_t i = 0, run; i < count; i += run) {
		run =
		    (uint32_t)BASE_MIN(slice_run(slice, local + i, &place), (uint64_t)(count - i));
		if (cell_size(slice) == 1)
			plan_samples(plan, epoch, place, run, ret_ids + i);
		else
			step_samples(slice, plan, epoch, (local + i) / share,
				     (uint32_t)((local + i) % share), run, ret_ids + i);
	}
}
