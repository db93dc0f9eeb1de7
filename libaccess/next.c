/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which batch is next. Everything here is loads from shared memory and arithmetic; waiting is in
 * wait.c.
 *
 * The order of batches of an epoch, with B samples each:
 *
 *   in a chunk     windows of B samples that follow each other without a hole, from the cursor on, as
 *                 soon as they are below the watermark; fewer than B before a hole, or before the
 *                 end: copied to the carry
 *   after a chunk  the buffers that it completed
 *   at the end    what is carried, as a short batch (OA_DROP_LAST: left out); with an empty carry
 *                 the short rest of the last chunk is a window
 *
 * With a fixed plan batches are cut from the plan's order, so what is carried is completed from
 * the head of the next chunk and handed out before anything else.
 *
 * So a batch depends on the chunks and their holes alone, never on how far a chunk was filled when we
 * looked. The end of an epoch is known by counting (progress.left), not by believing a flag: when
 * everything is delivered and accessd goes on with the epoch, or the other way round, one of us has
 * lost something, and held_take() or progress_next_epoch() finds it out.
 *
 * is_last needs to know that nothing follows. Where samples may be skipped that is open until the
 * rest of the last chunk is finished, so such a batch waits for it (next_is_last() == NEXT_UNKNOWN).
 * The one case that cannot be known is that all of a later chunk turns out to be holes.
 */

#include "libaccess/error.h"
#include "libaccess/stream.h"

enum { NEXT_NO = 0, NEXT_YES = 1, NEXT_UNKNOWN = 2 };

/* ---- the cursor's chunk is left ---- */

BASE_HOT void next_spend(struct oa_stream *stream, struct held *held)
{
	progress_fold(&stream->progress, held);
	held_spend(&stream->chunks, held);
}

/* ---- the end of an epoch ---- */

/*
 * Is the batch that leaves `left` samples of the epoch its last? `carried` of them lie in the carry,
 * those from `from` on in held (NULL: none do).
 */
static int next_is_last(const struct oa_stream *stream, const struct held *held, uint32_t from,
			uint64_t carried, uint64_t left)
{
	uint64_t enough =
	    stream->flags & OA_DROP_LAST ? stream->schema.batch : 1; /* for one more batch */
	uint64_t sure = stream->course.is_fixed ? 0 : carried, unknown;

	if (left < enough)
		return NEXT_YES;
	if (!stream->chunks.has_holes || !held ||
	    sure + held_count_own(held, from, held->end) < left)
		return NEXT_NO;
	for (uint32_t i = from; i < held->watermark; i++)
		sure += !held_is_hole(held->status[i]) && held_count_own(held, i, i + 1);
	unknown = held_count_own(held, BASE_MAX(from, held->watermark), held->end);
	if (sure >= enough)
		return NEXT_NO;
	return sure + unknown < enough ? NEXT_YES : NEXT_UNKNOWN;
}

int next_epoch(struct oa_stream *stream, uint64_t dropped)
{
	bool is_empty = empty_epoch_note(stream, dropped);

	if (!progress_next_epoch(&stream->progress)) {
		stream_lose(stream, "the chunks of an epoch did not hold each sample once");
		is_empty = false;
	}
	if (stream->session)
		progress_feed(&stream->progress, stream->session->sock);
	return is_empty ? NEXT_EMPTY : NEXT_LOOP;
}

static BASE_COLD int next_hole(struct oa_stream *stream, struct held *held, uint32_t run);

/* ---- handing out ---- */

int next_carry(struct oa_stream *stream, struct held *held, uint32_t count)
{
	progress_note_seen(&stream->progress, held);
	while (count > 0) {
		uint32_t n =
		    carry_add(&stream->carries, &stream->progress, held, count, &stream->met);

		if (!n)
			return -ENOMEM;
		stream->stats.copied += n;
		stream->has_copied = true;
		count -= n;
	}
	return 0;
}

static BASE_HOT void next_finish(struct oa_stream *stream, struct oa_batch *batch, bool is_last)
{
	struct progress *progress = &stream->progress;

	batch->epoch = progress->epoch;
	batch->step = progress->step++;
	batch->is_last = is_last;
	batch->is_live = true;
	batch->kept = stream->stats.kept;
	progress->left -= batch->count;
	progress->delivered += batch->count;
	if (stream->course.is_ranked)
		progress->skipped = progress->filtered = 0;
	stream->stats.samples += batch->count;
	stream->stats.batches++;
	stream->stats.substituted += batch->substituted;
	stream->stats.outstanding++;
	stream->redial.backoff_ns = 0;
	if (stream->record.path)
		record_batch(&stream->record, progress, batch);
	if (stream->is_batch_mixed)
		batch_mixed_note(&stream->batch_mixed, progress, batch);
}

/*
 * What follows an epoch's last batch is holes, as far as it is known: they are counted with it, and do not wait
 * for the next epoch's first. Ranks pass over holes with the batch that they are in.
 */
static BASE_COLD void next_holes_behind(struct oa_stream *stream)
{
	uint64_t epoch = stream->progress.epoch;

	while (!stream->course.is_ranked && stream->progress.epoch == epoch && stream->chunks.now) {
		struct held *held = stream->chunks.now;

		held_look(held);
		if (held->at == held->watermark || held_run(held, 1) != 0 ||
		    next_hole(stream, held, 0) != NEXT_LOOP)
			return;
	}
}

/* A batch is handed out, and the cursor stands behind it. */
static BASE_HOT int next_behind(struct oa_stream *stream, bool is_last)
{
	if (stream->progress.left == 0)
		next_epoch(stream, 0); /* which had this batch */
	else if (is_last && stream->chunks.has_holes)
		next_holes_behind(stream);
	return 0;
}

/* Of the count samples at the cursor. 0 or -ENOMEM. */
static int next_copy(struct oa_stream *stream, struct oa_batch *batch, uint32_t count)
{
	const struct held *held = stream->chunks.now;

	batch->carry = carry_new(&stream->carries);
	if (!batch->carry)
		return -ENOMEM;
	carry_copy(&stream->carries, &stream->progress, batch->carry, held, held->at, count);
	batch->ids = batch->carry->ids;
	if (stream->flags & OA_COPY)
		return 0;
	batch->copied = count;
	stream->has_copied = true;
	if (held_is_private(held) && view_is_kept(held->view, held->slot_number)) {
		stream->stats.kept += count;
		return 0;
	}
	stream->stats.written += count;
	stream->chunks.copies_left =
	    held_is_private(held) ? HELD_COPIES : stream->chunks.copies_left - 1;
	return 0;
}

/* Is the next window to be a copy? What mixup, cutmix and mosaic make is one anyway. */
static BASE_HOT bool next_copies(const struct oa_stream *stream)
{
	return ((stream->flags & OA_COPY) || stream->chunks.copies_left > 0 ||
		held_is_private(stream->chunks.now)) &&
	       !stream->is_batch_mixed;
}

static BASE_HOT void next_view(const struct oa_stream *stream, struct oa_batch *batch,
			       uint32_t count)
{
	struct held *held = stream->chunks.now;

	batch->held = held;
	batch->ids = held->ids + held->at;
	if (stream->flags & OA_KEEP) {
		memcpy(batch->own_ids, batch->ids, count * sizeof(int64_t));
		batch->ids = batch->own_ids;
	}
	held_open_window(held, batch);
}

/* The count samples at the cursor: a view, or with OA_COPY, and where its slot is private, a copy. */
BASE_HOT int next_window(struct oa_stream *stream, uint32_t count, bool is_last,
			 struct oa_batch **ret)
{
	struct held *held = stream->chunks.now;
	struct oa_batch *batch = batch_new(stream);

	if (!batch)
		return -ENOMEM;
	batch->first = held->at;
	batch->count = count;
	batch->substituted = held_meet_substitutes(held, count, &stream->met);
	if (next_copies(stream)) {
		if (next_copy(stream, batch, count)) {
			batch->next = stream->batch_pool;
			stream->batch_pool = batch;
			return -ENOMEM;
		}
	} else {
		next_view(stream, batch, count);
	}
	progress_note_seen(&stream->progress, held);
	held->at += count;
	progress_pass(&stream->progress, count);
	next_finish(stream, batch, is_last);
	if (held->at == held->end)
		next_spend(stream, held);
	*ret = batch;
	return next_behind(stream, is_last);
}

/* Hands out the buffer at *from, which moves on to the one behind it. */
int next_carried(struct oa_stream *stream, struct carry **from, bool is_last, struct oa_batch **ret)
{
	struct oa_batch *batch = batch_new(stream);
	struct carry *carry;

	if (!batch)
		return -ENOMEM;
	batch->carry = carry = carry_take(&stream->carries, from);
	batch->ids = carry->ids;
	batch->count = batch->copied = carry->count;
	batch->substituted = carry->substituted;
	stream->progress.n_carried -= carry->count;
	progress_settle(&stream->progress);
	next_finish(stream, batch, is_last);
	*ret = batch;
	return next_behind(stream, is_last);
}

/* The carry at *from; nothing is taken after it that belongs before it. */
static int next_left_over(struct oa_stream *stream, struct carry **from, struct oa_batch **ret)
{
	const struct held *held = stream->chunks.now;
	uint32_t count = (*from)->count;
	int last = next_is_last(stream, held, held ? held->at : 0,
				stream->progress.n_carried - count, stream->progress.left - count);

	return next_carried(stream, from, last == NEXT_YES, ret);
}

/* Everything that is left of the epoch is carried, and is less than a batch. */
static BASE_COLD int next_short(struct oa_stream *stream, struct oa_batch **ret)
{
	struct carry *carry = stream->carries.filling;
	uint64_t dropped = stream->progress.left;

	if (carry && carry->count > 0 && !(stream->flags & OA_DROP_LAST))
		return next_left_over(stream, &stream->carries.filling, ret);
	stream->progress.left = stream->progress.n_carried = 0;
	carry_clear(&stream->carries);
	return next_epoch(stream, dropped);
}

/* ---- the cursor's chunk ---- */

BASE_COLD int next_contradiction(struct oa_stream *stream)
{
	stream_lose(stream, "a sample below the watermark is not finished");
	return NEXT_LOOP;
}

/* A sample of others at the cursor + run: the run is carried, and it is passed over. */
static BASE_COLD int next_others(struct oa_stream *stream, struct held *held, uint32_t run)
{
	int r = next_carry(stream, held, run);

	if (r == 0)
		held->at++; /* never the last one: held_take() leaves those out */
	return r ? r : NEXT_LOOP;
}

void next_count_hole(struct oa_stream *stream, const struct held *held)
{
	bool is_filtered = held->status[held->at] == LAYOUT_SAMPLE_FILTERED;

	stream->stats.filtered += is_filtered;
	stream->stats.skipped += !is_filtered;
	stream->progress.filtered += is_filtered;
	stream->progress.skipped += !is_filtered;
	if (!is_filtered)
		met_note(&stream->met, slot_table_load_id(&held->ids[held->at]));
}

/* A hole at the cursor + run: the run is carried, the hole passed over or reported. */
static BASE_COLD int next_hole(struct oa_stream *stream, struct held *held, uint32_t run)
{
	int r;

	if (held_is_others(held, run))
		return next_others(stream, held, run);
	if (held_status(held, run) == LAYOUT_SAMPLE_ERROR)
		return OA_E_SAMPLE; /* wait.c asks why */
	r = next_carry(stream, held, run);
	if (r)
		return r;
	progress_note_seen(&stream->progress, held);
	next_count_hole(stream, held);
	held->at++;
	progress_pass(&stream->progress, 1);
	stream->progress.left--;
	if (held->at == held->end)
		next_spend(stream, held);
	return stream->progress.left == 0 ? next_epoch(stream, 0) : NEXT_LOOP;
}

/*
 * Batches larger than a chunk are copied together in any case, and so is then the short one at an
 * epoch's end: were it a window that its caller keeps, its grant would stay open while the next
 * batch takes more chunks than an inbox has room for.
 */
bool next_may_pin(const struct oa_stream *stream)
{
	return stream->schema.batch <= stream->chunks.size;
}

/* The chunk ends after a run of less than a batch. */
static BASE_COLD int next_rest(struct oa_stream *stream, struct held *held, uint32_t run,
			       struct oa_batch **ret)
{
	int r;

	if (stream->progress.left == run && !(stream->flags & OA_DROP_LAST) && next_may_pin(stream))
		return next_window(stream, run, true, ret);
	r = next_carry(stream, held, run);
	if (r)
		return r;
	next_spend(stream, held);
	return NEXT_LOOP;
}

/* A fixed plan's batch that the chunks before began: completed from the head of this one, which
 * has as many as lack. */
static BASE_COLD int next_complete(struct oa_stream *stream, struct held *held, uint32_t lack)
{
	int r = next_carry(stream, held, lack);

	if (r == 0 && held->at == held->end)
		next_spend(stream, held);
	return r ? r : NEXT_LOOP;
}

static BASE_HOT int next_in_chunk(struct oa_stream *stream, struct oa_batch **ret)
{
	struct held *held = stream->chunks.now;
	uint32_t lack = stream->schema.batch;
	int run, last;

	held_look(held);
	run = held_run(held, stream->schema.batch);
	if (run < 0)
		return next_contradiction(stream);
	if (stream->course.is_fixed)
		lack -= carry_count(&stream->carries);
	if ((uint32_t)run >= lack) {
		last = next_is_last(stream, held, held->at + lack, stream->progress.n_carried,
				    stream->progress.left - stream->schema.batch);
		if (last == NEXT_UNKNOWN)
			return STREAM_NOTHING;
		if (lack < stream->schema.batch)
			return next_complete(stream, held, lack);
		return next_window(stream, stream->schema.batch, last == NEXT_YES, ret);
	}
	if (held->at + (uint32_t)run == held->end)
		return next_rest(stream, held, (uint32_t)run, ret);
	if (held->at + (uint32_t)run < held->watermark)
		return next_hole(stream, held, (uint32_t)run);
	return overtake_step(stream);
}

/* ---- the next one ---- */

static BASE_COLD int next_pins(struct oa_stream *stream)
{
	return diag_fail(&stream->trouble.error, OA_E_PINS,
			 "you hold %llu batches on %d slots; release one before oa_next(), or open "
			 "with OA_KEEP or OA_COPY",
			 (unsigned long long)stream->stats.outstanding, LAYOUT_MAX_PINS);
}

/* No pin is free. 0: one is, as the batches of a slot are kept; else OA_E_PINS. */
int next_keep(struct oa_stream *stream)
{
	uint64_t count;

	if (!(stream->flags & OA_KEEP) ||
	    held_keep(&stream->chunks, stream->session, &stream->schema, &count))
		return OA_E_PINS;
	stream->stats.kept += count;
	stream->has_copied = true;
	return 0;
}

BASE_HOT int next_chunk(struct oa_stream *stream, uint64_t only)
{
	struct progress *progress = &stream->progress;
	struct diag diag; /* set with -EPROTO; not cleared, as that would cost more than the rest */
	struct held_want want = {
	    .epoch = progress->epoch,
	    .lacking = progress_lacking(progress, held_rest_own(stream->chunks.aside)),
	    .place = progress->cursor,
	    .part = &stream->course.part,
	    .only = only,
	};
	const struct held *held;
	int r;

	if (!stream->session)
		return STREAM_NOTHING;
	r = held_take(&stream->chunks, stream->session, &want, &diag);
	if (r == OA_E_PINS)
		return next_keep(stream) ? next_pins(stream) : NEXT_LOOP;
	if (r == -EPROTO) {
		stream_lose(stream, diag.text);
		return NEXT_LOOP;
	}
	if (r)
		return r == HELD_NONE
			   ? STREAM_NOTHING
			   : diag_fail(&stream->trouble.error, r, "oa_next(): out of memory");
	held = stream->chunks.now;
	if (held->n_blocks == 0 && progress_take_tail(progress, held))
		return trouble_fail(&stream->trouble, -ENOMEM, "out of memory for a chunk's ids");
	return NEXT_LOOP;
}

static BASE_HOT int next_step(struct oa_stream *stream, struct oa_batch **ret)
{
	if (stream->trouble.failed)
		return stream->trouble.failed;
	if (stream->record.failed)
		return record_report(&stream->record, &stream->trouble.error);
	if (stream->progress.has_ended)
		return OA_E_END;
	if (stream->course.is_ranked)
		return ranked_step(stream, ret);
	if (stream->carries.full && (stream->course.is_fixed || !stream->chunks.now))
		return next_left_over(stream, &stream->carries.full, ret);
	if (stream->chunks.now || overtake_back(stream))
		return next_in_chunk(stream, ret);
	if (stream->progress.left == carry_count(&stream->carries))
		return next_short(stream, ret);
	return next_chunk(stream, 0);
}

BASE_HOT int next_try(struct oa_stream *stream, struct oa_batch **ret)
{
	int r;

	do
		r = next_step(stream, ret);
	while (r == NEXT_LOOP);
	stream->is_idle = r == STREAM_NOTHING;
	if (r == stream->trouble.failed && r)
		trouble_repeat(&stream->trouble);
	return r;
}

bool next_is_ready(const struct oa_stream *stream)
{
	if (!stream->is_idle || stream->trouble.failed || stream->progress.has_ended)
		return true;
	if (stream->course.is_logged && stream->progress.log.is_short) /* nothing else helps */
		return plan_reader_has_grown(&stream->progress.log);
	if (stream->chunks.now)
		return held_has_moved(stream->chunks.now) || overtake_is_ready(stream);
	return stream->session && grant_is_posted(&stream->session->rank);
}
