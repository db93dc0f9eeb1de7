/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a job stands, exactly. The truth is a set: the samples of the epoch that oa_next() has not
 * returned. It is kept as
 *
 *   need   a bit for each block of which nothing was taken
 *   tail   samples of begun blocks (after a resume), until their chunk is taken
 *   and what lies in our hands: the cursor's chunk from the cursor on, and what is carried
 *
 * The cursor's chunk and those before it clear their bits only when they go back, or when somebody
 * asks (progress_fold()): on the path of a batch nothing is done per block. progress_token.c makes one
 * set of it all.
 *
 * Skipped samples and those of a dropped last batch count as seen.
 *
 * With a fixed plan a place in the epoch's order is all there is to know (progress.place). Ranks under
 * the carousel have a place, too, in their job's log, and the log says what it leaves (plan_reader.c).
 */

#include "base/bits.h"
#include "libaccess/stream.h"
#include "sched/population.h"

/* ---- the start and the end ---- */

static void progress_fill_need(const struct oa_stream *stream, uint64_t *need)
{
	if (!stream->course.is_fixed && !stream->course.is_logged)
		course_need_all(&stream->course, need);
}

uint64_t progress_left(const struct oa_stream *stream)
{
	if (stream->course.is_ranked)
		return INT64_MAX; /* it is not counted, and never 0 */
	if (stream->course.is_fixed)
		return stream->places - stream->progress.place;
	/* Samples that need and tail stand for. */
	return population_samples(&stream->course.permutation, stream->course.part.bits,
				  stream->progress.need) +
	       stream->progress.n_tail;
}

static void progress_note_end(struct oa_stream *stream)
{
	stream->has_ended =
	    stream->course.permutation.n == 0 ||
	    (stream->course.epochs > 0 && stream->progress.epoch >= stream->course.epochs);
}

/* The epoch's number is known. */
static void progress_set_places(struct oa_stream *stream)
{
	stream->places = stream->course.is_logged
			     ? stream->log.total
			     : listed_places(&stream->course, stream->progress.epoch);
}

void progress_set_slice(struct oa_stream *stream)
{
	struct progress *progress = &stream->progress;
	struct ranks ranks = ranked_ranks(stream);

	stream->slice = (struct slice){.ranks = ranks};
	if (stream->open.local_ranks < stream->open.ranks)
		slice_init(&stream->slice, &ranks, stream->open.local_first,
			   stream->open.local_ranks);
	stream->local_places = slice_places(&stream->slice);
	progress->cursor = slice_local(&stream->slice, progress->place);
}

/* What a token says of a job beside its place. */
static void progress_take_token(struct oa_stream *stream, const struct token *token)
{
	struct progress *progress = &stream->progress;

	progress->epoch = token->epoch;
	progress->delivered = token->delivered;
	progress->step = token->delivered / stream->schema.batch;
	if (stream->course.is_ranked)
		progress->step = course_step_of(&stream->course, token->delivered);
	progress->base = progress->place;
	progress->base_step = progress->step;
	memcpy(progress->nonces, token->nonces, sizeof(progress->nonces));
	progress->n_nonces = token->n_nonces;
	progress->seed = token->seed;
}

/* With a plan log there is nothing but places in need and tail's stead. */
static int progress_init_log(struct oa_stream *stream, const struct token *token)
{
	const struct entry_set set = course_set(&stream->course);
	struct progress *progress = &stream->progress;

	progress->need = calloc(course_words(&stream->course), sizeof(*progress->need));
	progress->tail = calloc(1, sizeof(*progress->tail));
	if (!progress->need || !progress->tail || plan_reader_init(&stream->log, &set, token)) {
		progress_fini(progress);
		return -ENOMEM;
	}
	if (token)
		progress_take_token(stream, token);
	if (stream->log.at.rest.epoch != progress->epoch) /* all of it was delivered */
		progress->step = progress->base_step = progress->delivered = 0;
	progress->epoch = stream->log.at.rest.epoch;
	progress->left = INT64_MAX;
	stream->n_carried = 0;
	progress_set_places(stream);
	progress_set_slice(stream);
	progress_note_end(stream);
	return 0;
}

int progress_init(struct oa_stream *stream, const struct token *token)
{
	struct progress *progress = &stream->progress;
	uint32_t n_tail = token ? token->n_tail : 0;

	if (stream->course.is_logged)
		return progress_init_log(stream, token);
	progress->need = calloc(course_words(&stream->course), sizeof(*progress->need));
	progress->tail = calloc((size_t)n_tail + 1, sizeof(*progress->tail));
	if (!progress->need || !progress->tail) {
		progress_fini(progress);
		return -ENOMEM;
	}
	progress_fill_need(stream, progress->need);
	if (token && stream->course.is_fixed) {
		progress->place = token->delivered;
	} else if (token) {
		memcpy(progress->need, token->need,
		       bits_words(stream->course.permutation.blocks) * sizeof(*progress->need));
		memcpy(progress->tail, token->tail, n_tail * sizeof(*progress->tail));
		progress->n_tail = n_tail;
	}
	if (token)
		progress_take_token(stream, token);
	progress_set_places(stream);
	progress_set_slice(stream);
	progress->left = progress_left(stream);
	stream->n_carried = 0;
	if (stream->course.permutation.n > 0 &&
	    (progress->left == 0 || progress->place == stream->places))
		progress_next_epoch(stream);
	progress_note_end(stream);
	return 0;
}

void progress_fini(struct progress *progress)
{
	free(progress->need);
	free(progress->tail);
	progress->need = NULL;
	progress->tail = NULL;
}

/* ---- chunks ---- */

static int progress_compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void progress_take_tail(struct progress *progress, const int64_t *ids, uint32_t count)
{
	int64_t *tail = progress->tail;
	uint32_t kept = 0;

	qsort(tail, progress->n_tail, sizeof(*tail), progress_compare_ids);
	for (uint32_t i = 0; i < count && progress->n_tail > 0; i++) {
		int64_t id = ids[i];
		uint32_t low = 0, high = progress->n_tail;

		while (high - low > 1) {
			uint32_t middle = low + (high - low) / 2;

			if ((tail[middle] & INT64_MAX) <= id)
				low = middle;
			else
				high = middle;
		}
		if (tail[low] == id)
			tail[low] |= INT64_MIN; /* marked; the order without the mark stays */
	}
	for (uint32_t i = 0; i < progress->n_tail; i++)
		if (tail[i] >= 0)
			tail[kept++] = tail[i];
	progress->n_tail = kept;
}

void progress_clear_blocks(const struct permutation *permutation, uint64_t *need,
			   const struct held *held)
{
	for (uint32_t i = 0; i < held->n_blocks; i++) {
		uint32_t block = slot_table_load_block(&held->blocks[i]);

		if (block < permutation->blocks)
			bits_clear(need, block);
	}
}

void progress_fold(struct oa_stream *stream, struct held *held)
{
	if (!held->is_folded && held->epoch == stream->progress.epoch)
		progress_clear_blocks(&stream->course.permutation, stream->progress.need, held);
	held->is_folded = true;
}

void progress_settle(struct oa_stream *stream)
{
	struct progress *progress = &stream->progress;

	if (stream->n_carried > 0)
		return;
	if (stream->course.is_ranked)
		return;
	progress->place = progress->cursor;
	progress->skipped = progress->filtered = 0;
}

void progress_pass(struct oa_stream *stream, uint32_t count)
{
	stream->progress.cursor += count;
	progress_settle(stream);
}

void progress_fold_spent(struct oa_stream *stream)
{
	for (struct held *held = stream->chunks; held; held = held->next)
		if (held->is_spent)
			progress_fold(stream, held);
}

bool progress_next_epoch(struct oa_stream *stream)
{
	const struct entry_set set = course_set(&stream->course);
	struct progress *progress = &stream->progress;

	progress_fold_spent(stream);
	if (progress->n_tail > 0 ||
	    bits_count(progress->need, stream->course.permutation.blocks) > 0 ||
	    ((stream->course.is_fixed || stream->course.is_ranked) &&
	     progress->cursor != stream->local_places))
		return false;
	if (stream->course.is_logged && (ranked_follow(stream, progress->cursor, false) ||
					 !plan_reader_next_epoch(&stream->log, &set)))
		return false;
	progress->epoch++;
	progress_set_places(stream);
	progress->step = progress->delivered = 0;
	progress->left = stream->course.is_ranked ? INT64_MAX : stream->places;
	progress->place = progress->base = progress->base_step = 0;
	progress_set_slice(stream);
	progress_fill_need(stream, progress->need);
	stream->stats.epochs++;
	progress_note_end(stream);
	return true;
}
