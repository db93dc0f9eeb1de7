/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which batch is next. Everything here is loads from shared memory and arithmetic; waiting is in
 * wait.c.
 *
 * The order of batches of an epoch, with B samples each:
 *
 *   in a hand     windows of B samples that follow each other without a hole, from the cursor on, as
 *                 soon as they are below the watermark; fewer than B before a hole, or before the
 *                 end: copied to the carry
 *   after a hand  the buffers that it completed
 *   at the end    what is carried, as a short batch (OA_DROP_LAST: left out); with an empty carry
 *                 the short rest of the last hand is a window
 *
 * With a fixed plan batches are cut from the plan's order, so what is carried is completed from
 * the head of the next hand and handed out before anything else.
 *
 * So a batch depends on the hands and their holes alone, never on how far a hand was filled when we
 * looked. The end of an epoch is known by counting (progress.left), not by believing a flag: when
 * everything is delivered and accessd goes on with the epoch, or the other way round, one of us has
 * lost something, and held_take() or progress_next_epoch() finds it out.
 *
 * is_last needs to know that nothing follows. Where samples may be skipped that is open until the
 * rest of the last hand is finished, so such a batch waits for it (next_is_last() == NEXT_UNKNOWN).
 * The one case that cannot be known is that all of a later hand turns out to be holes.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "libaccess/error.h"
#include "libaccess/stream.h"

enum { NEXT_NO = 0, NEXT_YES = 1, NEXT_UNKNOWN = 2 };

/* ---- the end of an epoch ---- */

/*
 * Is the batch that leaves `left` samples of the epoch its last? `carried` of them lie in the carry,
 * those from `from` on in held (NULL: none do).
 */
static int next_is_last(const struct oa_stream *stream, const struct held *held, uint32_t from,
			uint64_t carried, uint64_t left)
{
	uint64_t enough = stream->flags & OA_DROP_LAST ? stream->batch : 1; /* for one more batch */
	uint64_t sure = stream->is_fixed ? 0 : carried, unknown;

	if (left < enough)
		return NEXT_YES;
	if (!stream->has_holes || !held || sure + held_count_own(held, from, held->end) < left)
		return NEXT_NO;
	for (uint32_t i = from; i < held->watermark; i++)
		sure += !held_is_hole(held->status[i]) && held_count_own(held, i, i + 1);
	unknown = held_count_own(held, BASE_MAX(from, held->watermark), held->end);
	if (sure >= enough)
		return NEXT_NO;
	return sure + unknown < enough ? NEXT_YES : NEXT_UNKNOWN;
}

/* All of the epoch is consumed. */
int next_epoch(struct oa_stream *stream)
{
	if (!progress_next_epoch(stream))
		stream_lose(stream, "the hands of an epoch did not hold each sample once");
	listed_feed(stream);
	return 0;
}

/* ---- handing out ---- */

static BASE_HOT void next_finish(struct oa_stream *stream, struct oa_batch *batch, bool is_last)
{
	struct progress *progress = &stream->progress;

	batch->epoch = progress->epoch;
	batch->step = progress->step++;
	batch->is_last = is_last;
	batch->is_live = true;
	progress->left -= batch->count;
	progress->delivered += batch->count;
	stream->stats.samples += batch->count;
	stream->stats.batches++;
	stream->stats.substituted += batch->substituted;
	stream->stats.outstanding++;
	stream->backoff_ns = 0;
	if (stream->record.path)
		record_batch(stream, batch);
	if (stream->is_mingled)
		mingled_note(stream, batch);
}

static uint32_t next_count_substitutes(const struct held *held, uint32_t first, uint32_t count)
{
	uint32_t n = 0;

	for (uint32_t i = first; held->has_substitutes && i < first + count; i++)
		n += held->status[i] == LAYOUT_SAMPLE_SUBSTITUTED;
	return n;
}

/* The count samples at the cursor: a view, or with OA_COPY a copy. */
BASE_HOT int next_window(struct oa_stream *stream, uint32_t count, bool is_last,
			 struct oa_batch **ret)
{
	struct held *held = stream->held;
	struct oa_batch *batch = batch_new(stream);

	if (!batch)
		return -ENOMEM;
	batch->first = held->at;
	batch->count = count;
	batch->substituted = next_count_substitutes(held, held->at, count);
	if ((stream->flags & OA_COPY) && !stream->is_mingled) { /* which copies anyway */
		batch->carry = carry_new(stream);
		if (!batch->carry) {
			batch->next = stream->batch_pool;
			stream->batch_pool = batch;
			return -ENOMEM;
		}
		carry_copy(stream, batch->carry, held, held->at, count);
		batch->ids = batch->carry->ids;
	} else {
		batch->held = held;
		batch->ids = held->ids + held->at;
		held->windows++;
	}
	held_note_seen(stream, held);
	held->at += count;
	progress_pass(stream, count);
	next_finish(stream, batch, is_last);
	if (held->at == held->end)
		held_spend(stream, held);
	*ret = batch;
	return stream->progress.left == 0 ? next_epoch(stream) : 0;
}

/* Hands out the buffer at *from, which moves on to the one behind it. */
int next_carried(struct oa_stream *stream, struct carry **from, bool is_last, struct oa_batch **ret)
{
	struct oa_batch *batch = batch_new(stream);
	struct carry *carry = *from;

	if (!batch)
		return -ENOMEM;
	*from = carry->next;
	carry->next = NULL;
	if (!stream->full)
		stream->full_end = &stream->full;
	batch->carry = carry;
	batch->ids = carry->ids;
	batch->count = batch->copied = carry->count;
	batch->substituted = carry->substituted;
	stream->n_carried -= carry->count;
	progress_settle(stream);
	next_finish(stream, batch, is_last);
	*ret = batch;
	return stream->progress.left == 0 ? next_epoch(stream) : 0;
}

/* The carry at *from; nothing is taken after it that belongs before it. */
static int next_left_over(struct oa_stream *stream, struct carry **from, struct oa_batch **ret)
{
	const struct held *held = stream->held;
	uint32_t count = (*from)->count;
	int last = next_is_last(stream, held, held ? held->at : 0, stream->n_carried - count,
				stream->progress.left - count);

	return next_carried(stream, from, last == NEXT_YES, ret);
}

/* Everything that is left of the epoch is carried, and is less than a batch. */
static BASE_COLD int next_short(struct oa_stream *stream, struct oa_batch **ret)
{
	struct carry *carry = stream->carry;

	if (carry && carry->count > 0 && !(stream->flags & OA_DROP_LAST))
		return next_left_over(stream, &stream->carry, ret);
	stream->progress.left = 0;
	carry_clear(stream);
	next_epoch(stream);
	return NEXT_LOOP;
}

/* ---- the cursor's hand ---- */

BASE_COLD int next_contradiction(struct oa_stream *stream)
{
	stream_lose(stream, "a sample below the watermark is not finished");
	return NEXT_LOOP;
}

/* A sample of others at the cursor + run: the run is carried, and it is passed over. */
static BASE_COLD int next_others(struct oa_stream *stream, struct held *held, uint32_t run)
{
	int r = carry_add(stream, held, run);

	if (r == 0)
		held->at++; /* never the last one: held_take() leaves those out */
	return r ? r : NEXT_LOOP;
}

/* A hole at the cursor + run: the run is carried, the hole passed over or reported. */
static BASE_COLD int next_hole(struct oa_stream *stream, struct held *held, uint32_t run)
{
	int r;

	if (held_is_others(held, run))
		return next_others(stream, held, run);
	if (held_status(held, run) == LAYOUT_SAMPLE_ERROR)
		return OA_E_SAMPLE; /* wait.c asks why */
	r = carry_add(stream, held, run);
	if (r)
		return r;
	held_note_seen(stream, held);
	held_count_hole(stream, held);
	held->at++;
	progress_pass(stream, 1);
	stream->progress.left--;
	if (held->at == held->end)
		held_spend(stream, held);
	if (stream->progress.left == 0)
		next_epoch(stream);
	return NEXT_LOOP;
}

/*
 * Batches larger than a hand are copied together in any case, and so is then the short one at an
 * epoch's end: were it a window that its caller keeps, its grant would stay open while the next
 * batch takes more hands than an inbox has room for.
 */
bool next_may_pin(const struct oa_stream *stream)
{
	return stream->batch <= stream->hand;
}

/* The hand ends after a run of less than a batch. */
static BASE_COLD int next_rest(struct oa_stream *stream, struct held *held, uint32_t run,
			       struct oa_batch **ret)
{
	int r;

	if (stream->progress.left == run && !(stream->flags & OA_DROP_LAST) && next_may_pin(stream))
		return next_window(stream, run, true, ret);
	r = carry_add(stream, held, run);
	if (r)
		return r;
	held_spend(stream, held);
	return NEXT_LOOP;
}

/* A fixed plan's batch that the hands before began: completed from the head of this one, which
 * has as many as lack. */
static BASE_COLD int next_complete(struct oa_stream *stream, struct held *held, uint32_t lack)
{
	int r = carry_add(stream, held, lack);

	if (r == 0 && held->at == held->end)
		held_spend(stream, held);
	return r ? r : NEXT_LOOP;
}

static BASE_HOT int next_in_hand(struct oa_stream *stream, struct oa_batch **ret)
{
	struct held *held = stream->held;
	uint32_t lack = stream->batch;
	int run, last;

	held_look(held);
	run = held_run(held, stream->batch);
	if (run < 0)
		return next_contradiction(stream);
	if (stream->is_fixed)
		lack -= carry_count(stream);
	if ((uint32_t)run >= lack) {
		last = next_is_last(stream, held, held->at + lack, stream->n_carried,
				    stream->progress.left - stream->batch);
		if (last == NEXT_UNKNOWN)
			return STREAM_NOTHING;
		if (lack < stream->batch)
			return next_complete(stream, held, lack);
		return next_window(stream, stream->batch, last == NEXT_YES, ret);
	}
	if (held->at + (uint32_t)run == held->end)
		return next_rest(stream, held, (uint32_t)run, ret);
	if (held->at + (uint32_t)run < held->watermark)
		return next_hole(stream, held, (uint32_t)run);
	return STREAM_NOTHING;
}

/* ---- the next one ---- */

static BASE_COLD int next_pins(struct oa_stream *stream)
{
	return stream_error(
	    stream, OA_E_PINS,
	    "you hold %llu batches on %d slots; release one before oa_next(), or open "
	    "with OA_COPY",
	    (unsigned long long)stream->stats.outstanding, LAYOUT_MAX_PINS);
}

BASE_HOT int next_hand(struct oa_stream *stream)
{
	struct diag diag; /* set with -EPROTO; not cleared, as that would cost more than the rest */
	int r;

	if (!stream->session)
		return STREAM_NOTHING;
	r = held_take(stream, &diag);
	if (r == OA_E_PINS)
		return next_pins(stream);
	if (r == -EPROTO)
		stream_lose(stream, diag.text);
	if (r == 0 || r == -EPROTO)
		return NEXT_LOOP;
	return r == STREAM_NOTHING ? r : stream_error(stream, r, "oa_next(): out of memory");
}

static BASE_HOT int next_step(struct oa_stream *stream, struct oa_batch **ret)
{
	if (stream->failed)
		return stream->failed;
	if (stream->record.failed)
		return record_report(stream);
	if (stream->has_ended)
		return OA_E_END;
	if (stream->is_ranked)
		return ranked_step(stream, ret);
	if (stream->full && (stream->is_fixed || !stream->held))
		return next_left_over(stream, &stream->full, ret);
	if (stream->held)
		return next_in_hand(stream, ret);
	if (stream->progress.left == carry_count(stream))
		return next_short(stream, ret);
	return next_hand(stream);
}

BASE_HOT int next_try(struct oa_stream *stream, struct oa_batch **ret)
{
	int r;

	do
		r = next_step(stream, ret);
	while (r == NEXT_LOOP);
	stream->is_idle = r == STREAM_NOTHING;
	if (r == stream->failed && r)
		stream->error = stream->failure;
	return r;
}

bool next_is_ready(const struct oa_stream *stream)
{
	if (!stream->is_idle || stream->failed || stream->has_ended)
		return true;
	if (stream->is_logged && stream->log.is_short) /* nothing else helps */
		return planlog_has_grown(&stream->log);
	if (stream->held)
		return held_has_moved(stream->held);
	return stream->session && grant_is_posted(&stream->session->rank);
}
