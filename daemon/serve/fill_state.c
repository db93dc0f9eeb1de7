/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/fill_state.h"

static bool is_chunk(const struct fill *fill)
{
	return fill->used && !fill->is_ahead;
}

unsigned fill_active(const struct fill *fills)
{
	unsigned n = 0;

	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		n += is_chunk(&fills[i]);
	return n;
}

void fill_watch(struct fill *fills)
{
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		fills[i].is_watched = is_chunk(&fills[i]);
}

bool fill_is_watched(const struct fill *fills)
{
	bool any = false;

	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		any |= is_chunk(&fills[i]) && fills[i].is_watched;
	return any;
}

uint32_t fill_variants(const struct fill *fills, uint32_t row)
{
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		if (fills[i].used && fills[i].row == row)
			return fills[i].variants;
	return 0;
}

const struct fill *fill_of_slot(const struct fill *fills, uint32_t slot)
{
	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		if (fills[i].used && fills[i].slot == slot)
			return &fills[i];
	return NULL;
}

/* The chunk in production that was begun before all others not yet visited: order of production. */
struct fill *fill_next(struct fill *fills, const struct fill *after)
{
	struct fill *best = NULL;

	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++) {
		struct fill *fill = &fills[i];

		if (!is_chunk(fill) || (after && fill->started_ns <= after->started_ns))
			continue;
		if (!best || fill->started_ns < best->started_ns)
			best = fill;
	}
	return best;
}

bool fill_is_of_use(const struct fill *fills, uint32_t slot, uint32_t batch)
{
	const struct fill *fill = fill_of_slot(fills, slot);

	return !fill || fill->after_hole || fill->watermark >= batch;
}

/* What is to be queued once more is not: else, where room is short, it would wait for itself. */
static uint32_t under_way_of(const struct fill *fill)
{
	return fill->fed - BASE_MIN(fill->finished + fill->again, fill->fed);
}

uint32_t fill_under_way(const struct fill *fills)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < LAYOUT_MAX_ROWS; i++)
		if (is_chunk(&fills[i]))
			n += under_way_of(&fills[i]);
	return n;
}
