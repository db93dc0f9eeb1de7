/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept behind random ops: the last 8-bit picture of one instance of each sample, made in one chunk and brought
 * again to others, for jobs that all want to see an instance several times (reuse).
 *
 * Which instance that is, and in how many chunks it was, is the book's (sched/instance.h), and the carousel grants
 * such chunks to nobody too often. What is in the store decides nothing of that: a task that is to come from an
 * instance has the key of its nonce, so its sample is the same from what is kept and, where that is gone or is another
 * one's, from the file. A chunk whose samples may be kept or brought is decided to be one as it begins.
 *
 * The point is there while all jobs allow it and there is a disk for it; it is the last of the list, so the others are
 * what they are without it.
 */

#include "daemon/cache/cache.h"
#include "daemon/serve/source.h"
#include "daemon/node.h"
#include "daemon/serve/stream.h"
#include "daemon/tenant/domain.h"

#define CACHE_EPOCHS_IN_SLOTS 2 /* with one, chunks leave before they are needed again */

void cache_own_cut(const struct stream *stream, const struct hash_id *cut, struct hash_id *ret)
{
	const struct {
		struct hash_id cut;
		uint64_t seed, first_nonce, arithmetic;
	} all = {*cut, stream->geometry.seed, stream->made.first_nonce,
		 stream->node->machine.arithmetic};

	hash_of(&all, sizeof(all), ret);
}

/* ---- chunks ---- */

/* A chunk whose samples may be kept is granted once, and not again while it lies in its slot. Where the slots hold all
 * samples from epoch to epoch, that is the better way. */
static bool is_in_slots(const struct stream *stream)
{
	return (uint64_t)stream->slots * stream->geometry.chunk >=
	       CACHE_EPOCHS_IN_SLOTS * stream->geometry.n_samples;
}

/* Jobs have come or gone since the last chunk: is the point there? */
static void allow(struct stream *stream)
{
	struct cache *cache = &stream->cache;
	const unsigned before = cache->n;

	cache->allows = carousel_allows(stream->carousel);
	if (cache->forced < 0 && is_in_slots(stream))
		cache->allows = 1;
	cache_open(cache);
	if (cache->n == before)
		return;
	if (cache->choice.point >= cache->n)
		cache->choice = (struct point_choice){.point = 0};
	cache->choice.reason = POINT_UNMEASURED; /* it is to be chosen anew, at once */
	cache->looked_ns = 0;
	cache_settle(stream);
}

static bool has_book(struct stream *stream, const struct cache_point *augmented)
{
	struct cache *cache = &stream->cache;

	if (memcmp(&augmented->group, &cache->book_group, sizeof(cache->book_group)) == 0)
		return true;
	instance_fini(&cache->book);
	memset(&cache->book_group, 0, sizeof(cache->book_group));
	if (instance_init(&cache->book, stream->geometry.n_samples, stream->made.first_nonce))
		return false;
	cache->book_group = augmented->group;
	return true;
}

/* Is it brought? Its number in this chunk, or 0. */
static unsigned bring(struct stream *stream, struct fill *fill, uint32_t i, uint64_t sample,
		      const struct cache_point *augmented)
{
	const uint32_t bytes = dataset_size_of(stream->source->dataset, sample);
	uint64_t nonce;
	unsigned number;

	if (!cache_room_for(stream, augmented, sample, bytes))
		return 0;
	number = instance_bring(&stream->cache.book, sample, stream->cache.allows, &nonce);
	if (number > 0)
		queue_task_key(&stream->shared.queue, fill->row, i, stream->geometry.seed, nonce);
	return number;
}

void cache_begin(struct stream *stream, struct fill *fill, const struct carousel_chunk *chunk)
{
	struct cache *cache = &stream->cache;
	const struct cache_point *augmented;
	uint32_t number = 1;

	if (!cache->is_on)
		return;
	allow(stream);
	augmented = cache_augmented(cache);
	if (!augmented || &cache->point[cache->choice.point] != augmented ||
	    augmented->state != CACHE_READY || !disk_cache_gives(&stream->domain->disk_cache) ||
	    !has_book(stream, augmented) || !carousel_number(stream->carousel, fill->slot, number))
		return;
	for (uint32_t i = 0; i < chunk->count; i++) {
		struct fill_task *task = &fill->task[i];
		const unsigned own = bring(stream, fill, i, task->source, augmented);

		task->is_again = own > 0;
		task->may_keep = own == 0;
		number = BASE_MAX(number, own);
	}
	carousel_number(stream->carousel, fill->slot, number);
}

void cache_made(struct stream *stream, uint64_t sample, uint64_t nonce)
{
	instance_made(&stream->cache.book, sample, nonce);
}
