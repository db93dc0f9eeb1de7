/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A sample that takes seconds, a huge picture or a slow file, does not hold up what is ready behind it.
 *
 * A chunk is read from its beginning up to the watermark, in the order in which it was dealt. Where the cursor
 * waits, and the next chunk that was granted is finished though it was begun later, the sample that the cursor waits for
 * takes longer than a whole chunk. Then the cursor's chunk is set aside and the next one goes first:
 *
 *   held waits   aside is none, the next grant's chunk is finished   it is taken; held becomes aside
 *   held waits   aside has something                                 they change places
 *   held is spent                                                    aside becomes held, and may be set aside again
 *
 * So a chunk is still read in its own order, and each sample of the epoch comes once: what is set aside is
 * pinned, as any chunk that was taken, and is put back into the token like the cursor's (progress_token.c). One
 * chunk at most is aside, as a rank has two pins; where the program's batches hold the other one, it waits as before.
 *
 * What is taken is the very grant that was looked at: accessd may have withdrawn it meanwhile, and the one behind it may be
 * unfinished, or the epoch's last.
 *
 * No clock decides. But the order in which an epoch's chunks come now depends on how long samples take, by so many chunks
 * as are read meanwhile; what is in a chunk, and with whom a sample is in a window, does not. A fixed plan and ranks
 * have an order that is promised: nothing overtakes there. Nor does a chunk of the next epoch.
 */

#include "libaccess/stream.h"

/* Can something be handed out of the chunk, or passed over in it, now? */
static bool overtake_has_some(const struct oa_stream *stream, struct held *held)
{
	int run;

	held_look(held);
	run = held_run(held, stream->schema.batch);
	return run < 0 || (uint32_t)run >= stream->schema.batch ||
	       held->at + (uint32_t)run == held->end || held->at + (uint32_t)run < held->watermark;
}

/*
 * Is the chunk finished, and of this epoch? Where samples may be left out it is not the epoch's last either: whether a
 * batch is the last one is known by what is behind it, not by what is aside.
 */
static bool overtake_suits(const struct oa_stream *stream, const struct grant *grant)
{
	const struct slot_table *table = &stream->session->table;
	uint64_t left = stream->progress.left - stream->progress.n_carried;

	if (grant->slot >= table->geometry.max_slots || grant->epoch != stream->progress.epoch ||
	    grant->count == 0 ||
	    (stream->chunks.has_holes &&
	     left <= held_rest(stream->chunks.now) + (uint64_t)grant->count))
		return false;
	return slot_table_read_watermark(table, grant->slot) >=
	       (uint64_t)grant->first + grant->count;
}

/*
 * Who keeps batches without OA_KEEP has two pins for them and for what is aside, which is in use again when its rest is
 * handed out. Who holds one batch at a time always has one then; who holds more may not.
 */
static bool overtake_leaves_pins(const struct oa_stream *stream)
{
	uint32_t windows = 0;

	if (stream->flags & (OA_KEEP | OA_COPY))
		return true;
	for (const struct held *held = stream->chunks.all; held; held = held->next)
		windows += held->windows;
	return windows <= 1;
}

/* The number of the grant that may be taken; 0: none. */
static uint64_t overtake_next(const struct oa_stream *stream)
{
	struct grant grant;

	return !stream->course.is_placed && stream->session && !stream->chunks.aside &&
		       !stream->chunks.is_pinned_out &&
		       grant_peek(&stream->session->rank, &grant) &&
		       overtake_suits(stream, &grant) && overtake_leaves_pins(stream)
		   ? grant.number
		   : 0;
}

bool overtake_is_ready(const struct oa_stream *stream)
{
	return stream->chunks.aside ? held_has_moved(stream->chunks.aside)
				    : overtake_next(stream) != 0;
}

bool overtake_back(struct oa_stream *stream)
{
	stream->chunks.now = stream->chunks.aside;
	stream->chunks.aside = NULL;
	return stream->chunks.now;
}

static void overtake_swap(struct oa_stream *stream)
{
	struct held *held = stream->chunks.now;

	stream->chunks.now = stream->chunks.aside;
	stream->chunks.aside = held;
}

int overtake_step(struct oa_stream *stream)
{
	struct held *waits = stream->chunks.now;
	uint64_t next;
	int r;

	if (stream->chunks.aside && overtake_has_some(stream, stream->chunks.aside)) {
		overtake_swap(stream);
		return NEXT_LOOP;
	}
	next = overtake_next(stream);
	if (!next)
		return STREAM_NOTHING;
	if (!grant_has_pin(&stream->session->rank) && next_keep(stream)) {
		stream->chunks.is_pinned_out = true;
		return STREAM_NOTHING;
	}
	overtake_swap(stream);
	r = next_chunk(stream, next);
	if (stream->chunks.aside == waits && !stream->chunks.now)
		overtake_back(stream);
	return r;
}
