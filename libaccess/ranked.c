/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One of several ranks of a job: which places of its plan are ours is arithmetic (plan/ranks/ranks.h), and
 * the plan is fixed, or the log of what is dealt to the job (plan_reader.c). All chunks pass by, in order. Over places of other ranks the cursor jumps, and a
 * chunk without a place of ours goes back as soon as it comes, filled or not; a batch of ours is a
 * window of its chunk, or copied together where it straddles two. A hole makes it shorter, so that
 * all ranks have the same number of batches whatever is bad. Where ranks are on several nodes the
 * chunks are this node's slice of the plan, and the cursor counts local places (plan/ranks/slice.h).
 *
 * The token says where all ranks are when they have done as many steps as we have. With a log that is
 * known when the log reaches there, so a batch is handed out no earlier.
 */

#include "libaccess/stream.h"
#include "plan/ranks/ranks.h"

/* Does the log say all that a token after the step must? 0, STREAM_NOTHING, or the stream failed. */
static int ranked_gate(struct oa_stream *stream, uint64_t place)
{
	int r;

	if (!stream->course.is_logged)
		return 0;
	r = plan_reader_look(&stream->progress.log, stream->progress.epoch, place);
	if (r == PLAN_READER_E_SHORT)
		return STREAM_NOTHING;
	if (r < 0)
		return r;
	return r ? trouble_fail(&stream->trouble, -EPROTO, "accessd's plan log contradicts itself")
		 : 0;
}

/* The next chunk. What the last one brought is delivered, as far as all ranks' steps go. */
static int ranked_take(struct oa_stream *stream)
{
	uint64_t done = BASE_MIN(progress_place(&stream->progress), stream->progress.cursor);

	if (stream->course.is_logged && progress_follow(&stream->progress, done, true))
		return stream->trouble.failed ? stream->trouble.failed : -ENOMEM;
	return next_chunk(stream, 0);
}

/* ---- the cursor ---- */

static void ranked_move(struct oa_stream *stream, struct held *held, uint32_t count)
{
	held->at += count;
	progress_pass(&stream->progress, count);
	if (held->at == held->end)
		next_spend(stream, held);
}

/* Jumps towards a place, as far as the chunk at hand reaches. */
static int ranked_jump(struct oa_stream *stream, uint64_t place)
{
	struct held *held = stream->chunks.now;
	uint64_t far = place - stream->progress.cursor;

	if (!held)
		return ranked_take(stream);
	ranked_move(stream, held, (uint32_t)BASE_MIN(far, (uint64_t)(held->end - held->at)));
	return NEXT_LOOP;
}

/* ---- batches ---- */

/* What was copied together, maybe nothing at all. */
static int ranked_carried(struct oa_stream *stream, bool is_last, struct oa_batch **ret)
{
	if (stream->carries.full)
		return next_carried(stream, &stream->carries.full, is_last, ret);
	if (!stream->carries.filling)
		stream->carries.filling = carry_new(&stream->carries);
	return stream->carries.filling
		   ? next_carried(stream, &stream->carries.filling, is_last, ret)
		   : -ENOMEM;
}

/* Copies a finished run of ours that is no window, or passes a hole after it. */
static int ranked_copy(struct oa_stream *stream, struct held *held, uint32_t run, bool to_hole)
{
	int r;

	if (to_hole && held_status(held, run) == LAYOUT_SAMPLE_ERROR)
		return OA_E_SAMPLE; /* wait.c asks why */
	r = next_carry(stream, held, run);
	if (r)
		return r;
	if (to_hole)
		next_count_hole(stream, held);
	ranked_move(stream, held, to_hole);
	return NEXT_LOOP;
}

/* The cursor is inside our batch, which ends `left` places on; whole: at its first one. */
static int ranked_in_chunk(struct oa_stream *stream, uint64_t left, bool whole, bool is_last,
			   struct oa_batch **ret)
{
	struct held *held = stream->chunks.now;
	uint32_t want;
	int run;

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
	struct ranks ranks = progress_ranks(&stream->progress);
	uint64_t cursor = stream->progress.cursor, steps = ranks_steps(&ranks);
	uint64_t first, end;
	uint32_t count;
	int r;

	stream->progress.log.is_short = false;
	if (progress_done(&stream->progress) == steps) {
		/* Nothing more of this epoch is ours. */
		if (stream->progress.cursor < stream->progress.local_places)
			return ranked_jump(stream, stream->progress.local_places);
		return next_epoch(stream, 0);
	}
	count =
	    ranks_part(&ranks, stream->course.ask->rank, progress_done(&stream->progress), &first);
	first = slice_local(&stream->progress.slice, first);
	end = first + count;
	if (cursor < first)
		return ranked_jump(stream, first);
	if (cursor < end && !stream->chunks.now)
		return ranked_take(stream);
	r = ranked_gate(stream, ranks_place(&ranks, progress_done(&stream->progress) + 1));
	if (r)
		return r;
	if (cursor == end)
		return ranked_carried(stream, progress_done(&stream->progress) + 1 == steps, ret);
	return ranked_in_chunk(stream, end - cursor, cursor == first,
			       progress_done(&stream->progress) + 1 == steps, ret);
}
