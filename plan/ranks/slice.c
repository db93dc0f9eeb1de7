/* SPDX-License-Identifier: Apache-2.0 */

#include "base/base.h"
#include "plan/ranks/slice.h"

void slice_init(struct slice *ret, const struct ranks *ranks, uint32_t first, uint32_t count)
{
	*ret = (struct slice){.ranks = *ranks};
	if (count == ranks->ranks)
		return;
	ret->ranks.base %= (uint64_t)ranks->batch * ranks->ranks;
	ret->first = first;
	ret->count = count;
}

/* Full steps, and one more unless that is left out or there is none. */
static uint64_t full_steps(const struct slice *slice)
{
	const struct ranks *ranks = &slice->ranks;

	return (ranks->n - ranks->base) / ((uint64_t)ranks->batch * ranks->ranks);
}

static uint64_t a_share(const struct slice *slice)
{
	return (uint64_t)slice->ranks.batch * slice->count;
}

uint64_t slice_share(const struct slice *slice, uint64_t step, uint64_t *ret_place)
{
	uint64_t end = 0;

	*ret_place = slice->ranks.n;
	if (step >= ranks_steps(&slice->ranks))
		return 0;
	ranks_part(&slice->ranks, slice->first, step, ret_place);
	end = ranks_part(&slice->ranks, slice->first + slice->count - 1, step, &end) + end;
	return end - *ret_place;
}

uint64_t slice_places(const struct slice *slice)
{
	return slice_local(slice, slice->ranks.n);
}

uint64_t slice_local(const struct slice *slice, uint64_t place)
{
	const struct ranks *ranks = &slice->ranks;
	uint64_t step, first, share;

	if (slice_is_whole(slice) || place <= ranks->base)
		return slice_is_whole(slice) ? place : 0;
	step = (place - ranks->base) / ((uint64_t)ranks->batch * ranks->ranks);
	share = slice_share(slice, step, &first);
	return step * a_share(slice) + BASE_MIN(share, place - BASE_MIN(place, first));
}

uint64_t slice_run(const struct slice *slice, uint64_t local, uint64_t *ret_place)
{
	uint64_t step, share;

	if (slice_is_whole(slice)) {
		*ret_place = local;
		return slice->ranks.n - local;
	}
	step = BASE_MIN(local / a_share(slice), full_steps(slice));
	local -= step * a_share(slice);
	share = slice_share(slice, step, ret_place);
	*ret_place += local;
	return share - local;
}

bool slice_is_same(const struct slice *a, const struct slice *b)
{
	if (slice_is_whole(a) || slice_is_whole(b))
		return slice_is_whole(a) == slice_is_whole(b);
	return a->first == b->first && a->count == b->count && a->ranks.base == b->ranks.base &&
	       a->ranks.batch == b->ranks.batch && a->ranks.ranks == b->ranks.ranks &&
	       a->ranks.drop_last == b->ranks.drop_last && a->is_spread == b->is_spread;
}
