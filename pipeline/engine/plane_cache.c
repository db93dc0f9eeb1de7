/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that a run keeps.
 *
 * Training crops come in hundreds of widths and heights, each mirrored or not, and a table costs
 * as much as some rows; so about a thousand are kept for each axis, in sets of PLANE_WAYS of which the one longest
 * unused goes. What all of them hold is bounded: a table of more than PLANE_CACHE_KEEP bytes (a
 * huge picture, or a huge output) goes to a place of its own.
 */

#include "pipeline/engine/plane.h"

#define PLANE_CACHE_KEEP ((size_t)16 << 10)
#define PLANE_CACHE_LARGE ((size_t)4 << 20)

static bool plane_cache_same(const struct plane_want *a, const struct plane_want *b)
{
	return a->in == b->in && a->out == b->out && a->first == b->first && a->count == b->count &&
	       a->id == b->id && a->form == b->form && a->mirrored == b->mirrored &&
	       a->cut.front == b->cut.front && a->cut.back == b->cut.back;
}

static uint32_t plane_cache_hash(const struct plane_want *want)
{
	uint32_t hash = want->in;

	hash = (hash * 31 + want->out) * UINT32_C(2654435761);
	hash = (hash ^ hash >> 15) + want->first * 31 + want->count;
	hash = (hash * 31 + (uint32_t)want->id * 8 + (uint32_t)want->form * 2 + want->mirrored) *
	       UINT32_C(2246822519);
	hash += want->cut.front * 8u + want->cut.back;
	return hash ^ hash >> 16;
}

/* About the bytes that the table takes: more than it does, hardly. */
static bool plane_cache_is_large(const struct plane_want *want)
{
	uint64_t taps = filter_taps(want->id, want->in, want->out);

	return want->count * (taps * 4 + 16) > PLANE_CACHE_KEEP;
}

static const struct plane_table *plane_cache_fill(struct plane_cache *cache,
						  struct plane_table *table,
						  const struct plane_want *want)
{
	if (plane_cache_same(&table->want, want))
		return table;
	return plane_table_make(table, &cache->filter, want) ? table : NULL;
}

const struct plane_table *plane_cache_get(struct plane_cache *cache, const struct plane_want *want)
{
	struct plane_table *set = cache->slot[plane_cache_hash(want) % PLANE_SETS], found;
	unsigned i = 0;

	if (plane_cache_is_large(want))
		return plane_cache_fill(cache, &cache->large, want);
	while (i < PLANE_WAYS - 1 && !plane_cache_same(&set[i].want, want))
		i++;
	found = set[i];
	memmove(set + 1, set, i * sizeof(*set));
	set[0] = found;
	return plane_cache_fill(cache, &set[0], want);
}

void plane_cache_trim(struct plane_cache *cache)
{
	if (cache->large.size > PLANE_CACHE_LARGE)
		plane_table_fini(&cache->large);
	if (cache->filter.size > PLANE_CACHE_LARGE)
		filter_fini(&cache->filter);
}

void plane_cache_fini(struct plane_cache *cache)
{
	for (unsigned i = 0; i < PLANE_SETS; i++) {
		for (unsigned way = 0; way < PLANE_WAYS; way++)
			plane_table_fini(&cache->slot[i][way]);
	}
	plane_table_fini(&cache->large);
	filter_fini(&cache->filter);
}
