/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One of several ranks of a job with a fixed plan: which places of it are ours is arithmetic
 * (sched/ranks.h). All hands pass by, in order. Over places of other ranks the cursor jumps, and a
 * hand without a place of ours goes back as soon as it comes, filled or not; a batch of ours is a
 * window of its hand, or copied together where it straddles two. A hole makes it shorter, so that
 * all ranks have the same number of batches whatever is bad.
 *
 * The token says where all ranks are when they have done as many steps as we have.
 */

#include <errno.h>
#include <stdlib.h>
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "sched/ranks.h"

static struct ranks ranked_ranks(const struct oa_stream *stream)
{
	return (struct ranks){
	    .n = stream->places,
	    .base = stream->progress.base,
	    .batch = stream->batch,
	    .ranks = stream->open.ranks,
	    .drop_last = stream->flags & OA_DROP_LAST,
	};
}

/* Steps done since base. */
static uint64_t ranked_done(const struct oa_stream *stream)
{
	return stream->progress.step - stream->progress.base_step;
}

uint64_t ranked_place(const struct oa_stream *stream)
{
	struct ranks ranks = ranked_ranks(stream);

	if (stream->has_ended) /* the next epoch's first, though it may have no step to be done */
		return stream->progress.base;
	return ranks_place(&ranks, ranked_done(stream));
}

uint64_t ranked_step_of(const struct oa_stream *stream, uint64_t place)
{
	return place / ((uint64_t)stream->batch * stream->open.ranks);
}

/* ---- the cursor ---- */

static void ranked_move(struct oa_stream *stream, struct held *held, uint32_t count)
{
	held->at += count;
	progress_pass(stream, count);
	if (held->at == held->end)
		held_spend(stream, held);
}

/* Jumps towards a place, as far as the hand at hand reaches. */
static int ranked_jump(struct oa_stream *stream, uint64_t place)
{
	struct held *held = stream->held;
	uint64_t far = place - stream->progress.cursor;

	if (!held)
		return next_hand(stream);
	ranked_move(stream, held, (uint32_t)BASE_MIN(far, (uint64_t)(held->end - held->at)));
	return NEXT_LOOP;
}

/* Nothing more of this epoch is ours. */
static int ranked_end(struct oa_stream *stream)
{
	if (stream->progress.cursor < stream->places)
		return ranked_jump(stream, stream->places);
	next_epoch(stream);
	return NEXT_LOOP;
}

/* ---- batches ---- */

/* What was copied together, maybe nothing at all. */
static int ranked_carried(struct oa_stream *stream, bool is_last, struct oa_batch **ret)
{
	if (stream->full)
		return next_carried(stream, &stream->full, is_last, ret);
	if (!stream->carry)
		stream->carry = carry_new(stream);
	return stream->carry ? next_carried(stream, &stream->carry, is_last, ret) : -ENOMEM;
}

/* Copies a finished run of ours that is no window, or passes a hole after it. */
static int ranked_copy(struct oa_stream *stream, struct held *held, uint32_t run, bool to_hole)
{
	int r;

	if (to_hole && held_status(held, run) == LAYOUT_SAMPLE_ERROR)
		return OA_E_SAMPLE; /* wait.c asks why */
	r = carry_add(stream, held, run);
	if (r)
		return r;
	stream->stats.skipped += to_hole;
	ranked_move(stream, held, to_hole);
	return NEXT_LOOP;
}

/* The cursor is inside our batch, which ends `left` places on; whole: at its first one. */
static int ranked_in_hand(struct oa_stream *stream, uint64_t left, bool whole, bool is_last,
			  struct oa_batch **ret)
{
	struct held *held = stream->held;
	uint32_t want;
	int run;

	if (!held)
		return next_hand(stream);
	want = (uint32_t)BASE_MIN(left, (uint64_t)(held->end - held->at));
	held_look(held);
	run = held_run(held, want);
	if (run < 0)
		return next_contradiction(stream);
	if ((uint32_t)run == want && want == left && whole && next_may_pin(stream))
		return next_window(stream, want, is_last, ret);
	if ((uint32_t)run == want)
		return ranked_copy(stream, held, want, false);
	if (held->at + (uint32_t)run < held->watermark)
		return ranked_copy(stream, held, (uint32_t)run, true);
	return STREAM_NOTHING;
}

int ranked_step(struct oa_stream *stream, struct oa_batch **ret)
{
	struct ranks ranks = ranked_ranks(stream);
	uint64_t cursor = stream->progress.cursor, steps = ranks_steps(&ranks);
	uint64_t first, end;

	if (ranked_done(stream) == steps)
		return ranked_end(stream);
	end = ranks_part(&ranks, stream->open.rank, ranked_done(stream), &first);
	end += first;
	if (cursor < first)
		return ranked_jump(stream, first);
	if (cursor == end)
		return ranked_carried(stream, ranked_done(stream) + 1 == steps, ret);
	return ranked_in_hand(stream, end - cursor, cursor == first,
			      ranked_done(stream) + 1 == steps, ret);
}
