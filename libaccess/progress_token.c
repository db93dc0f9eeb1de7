/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The snapshot of where a job stands: one set of samples that were not delivered.
 *
 * It puts what lies in our hands back: a block that lies there whole is needed again as a whole, so
 * that any chunk may bring it; of others the samples go into the tail. The snapshot is the token, and
 * after the loss of a session it is also where we go on (progress_rewind()): one way for both, tested
 * at every cut point.
 *
 * A fixed plan needs none, as its place is the whole state; a token of ranks under the carousel has
 * what their job's log leaves after the steps that are done.
 */

#include "base/bits.h"
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "sched/population.h"

/* ---- the snapshot ---- */

struct snapshot {
	uint64_t *need;
	int64_t *tail;
	uint32_t n_tail;
	uint64_t *position; /* in the permutation, of all samples that lie in our hands */
	size_t n_positions;
};

static void snapshot_fini(struct snapshot *snapshot)
{
	free(snapshot->need);
	free(snapshot->tail);
	free(snapshot->position);
}

static void snapshot_add(struct snapshot *snapshot, const struct course *course, const int64_t *ids,
			 uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = (uint64_t)slot_table_load_id(&ids[i]), position;

		if (id >= course->permutation.n)
			continue;
		position = permutation_position(&course->permutation, id);
		if (!course->part.bits || bits_test(course->part.bits, position))
			snapshot->position[snapshot->n_positions++] = position;
	}
}

static int snapshot_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void snapshot_collect(struct snapshot *snapshot, const struct oa_stream *stream)
{
	const struct progress *progress = &stream->progress;
	const struct held *held = stream->held;

	snapshot_add(snapshot, &stream->course, progress->tail, progress->n_tail);
	for (const struct carry *carry = stream->full; carry; carry = carry->next)
		snapshot_add(snapshot, &stream->course, carry->ids, carry->count);
	if (stream->carry)
		snapshot_add(snapshot, &stream->course, stream->carry->ids, stream->carry->count);
	if (held)
		snapshot_add(snapshot, &stream->course, held->ids + held->at, held_rest(held));
	if (stream->aside)
		snapshot_add(snapshot, &stream->course, stream->aside->ids + stream->aside->at,
			     held_rest(stream->aside));
}

/* held may be NULL. */
static void snapshot_clear_blocks(struct snapshot *snapshot, const struct course *course,
				  const struct held *held)
{
	if (held && !held->is_folded)
		progress_clear_blocks(&course->permutation, snapshot->need, held);
}

/* Samples of the block that are ours. */
static uint32_t snapshot_block_size(const struct course *course, uint64_t block)
{
	return course->part.bits
		   ? population_of_block(&course->permutation, course->part.bits, block)
		   : permutation_block_size(&course->permutation, block);
}

/* Whole blocks become bits, of others the samples become the tail. Positions are sorted. */
static void snapshot_sort_out(struct snapshot *snapshot, const struct course *course)
{
	const struct permutation *permutation = &course->permutation;
	size_t first = 0;

	while (first < snapshot->n_positions) {
		uint64_t block = snapshot->position[first] / permutation->block;
		uint32_t tail = snapshot->n_tail;
		size_t at = first;

		for (; at < snapshot->n_positions &&
		       snapshot->position[at] / permutation->block == block;
		     at++)
			if (at == first || snapshot->position[at] != snapshot->position[at - 1])
				snapshot->tail[tail++] = (int64_t)permutation_sample(
				    permutation, snapshot->position[at]);
		first = at;
		if (bits_test(snapshot->need, block))
			continue;
		if (tail - snapshot->n_tail == snapshot_block_size(course, block))
			bits_set(snapshot->need, block);
		else
			snapshot->n_tail = tail;
	}
}

/*
 * 0 or -ENOMEM. As of a mark, what was delivered since is put back. When the job has come into another
 * epoch since, that is all that is left of the mark's, and of later ones nothing was delivered.
 */
static int snapshot_take(struct snapshot *snapshot, struct oa_stream *stream,
			 const struct progress_mark *mark)
{
	const struct held *held = stream->held;
	size_t most = (size_t)stream->progress.n_tail + (size_t)stream->n_carried +
		      held_rest(held) + held_rest(stream->aside) + (mark ? mark->n_ids : 0) + 1;
	bool is_of_now = !mark || mark->epoch == stream->progress.epoch;

	progress_fold_spent(stream);
	snapshot->need = calloc(course_words(&stream->course), sizeof(*snapshot->need));
	snapshot->tail = malloc(most * sizeof(*snapshot->tail));
	snapshot->position = malloc(most * sizeof(*snapshot->position));
	if (!snapshot->need || !snapshot->tail || !snapshot->position)
		return -ENOMEM;
	if (is_of_now) {
		memcpy(snapshot->need, stream->progress.need,
		       course_words(&stream->course) * sizeof(*snapshot->need));
		snapshot_clear_blocks(snapshot, &stream->course, held);
		snapshot_clear_blocks(snapshot, &stream->course, stream->aside);
		snapshot_collect(snapshot, stream);
	}
	if (mark)
		snapshot_add(snapshot, &stream->course, mark->ids, mark->n_ids);
	qsort(snapshot->position, snapshot->n_positions, sizeof(*snapshot->position),
	      snapshot_compare);
	snapshot_sort_out(snapshot, &stream->course);
	return 0;
}

/* ---- back to it ---- */

/* 0 or -ENOMEM. */
static int progress_take_back(struct oa_stream *stream)
{
	_cleanup_(snapshot_fini) struct snapshot snapshot = {0};
	struct progress *progress = &stream->progress;
	int r = snapshot_take(&snapshot, stream, NULL);

	if (r)
		return r;
	progress_fini(progress);
	progress->need = base_take_ptr(snapshot.need);
	progress->tail = base_take_ptr(snapshot.tail);
	progress->n_tail = snapshot.n_tail;
	return 0;
}

/* The holes behind where we go on come again. Under the carousel a hole that was passed does not. */
static void progress_uncount(struct oa_stream *stream)
{
	struct progress *progress = &stream->progress;

	if (stream->course.is_fixed || stream->course.is_ranked) {
		stream->stats.skipped -= progress->skipped;
		stream->stats.filtered -= progress->filtered;
	}
	progress->skipped = progress->filtered = 0;
}

/* What is left of the chunk, if there is one, has been taken back. */
static void progress_drop(struct oa_stream *stream, struct held *held)
{
	if (!held)
		return;
	held->is_folded = true;
	held_spend(stream, held);
}

int progress_rewind(struct oa_stream *stream)
{
	struct progress *progress = &stream->progress;
	int r =
	    stream->course.is_fixed || stream->course.is_logged ? 0 : progress_take_back(stream);

	if (!r && stream->course.is_logged)
		r = ranked_follow(stream, ranked_place(stream), false);
	if (r)
		return r;
	progress_uncount(stream);
	if (stream->course.is_ranked) {
		progress->base = progress->place = ranked_place(stream);
		progress->base_step = progress->step;
	}
	progress_set_slice(stream);
	progress_drop(stream, stream->held);
	progress_drop(stream, stream->aside);
	carry_clear(stream);
	progress->left = progress_left(stream);
	if (stream->course.is_ranked && progress->place == stream->places)
		progress_next_epoch(stream);
	/* Fewer than counted if accessd dealt something twice: the token must not contradict
	 * itself. */
	progress->delivered = BASE_MIN(progress->delivered, stream->places - progress->left);
	return 0;
}

/* ---- the token ---- */

/* What a token of now says was delivered: with a fixed plan, a place. */
uint64_t progress_after(const struct oa_stream *stream)
{
	if (stream->course.is_ranked)
		return ranked_place(stream);
	return stream->course.is_fixed ? stream->progress.place : stream->progress.delivered;
}

void progress_mark(const struct oa_stream *stream, struct progress_mark *ret)
{
	*ret = (struct progress_mark){
	    .epoch = stream->progress.epoch,
	    .delivered = progress_after(stream),
	};
}

/* By the log: what no rank has after the steps that are done. */
static int progress_log_token(struct oa_stream *stream, struct snapshot *snapshot,
			      struct token *token)
{
	const struct entry_set set = course_set(&stream->course);
	struct entry_rest rest;
	int r = plan_reader_rest(&stream->log, &set, ranked_place(stream), &rest);

	if (r)
		return r < 0 ? r : -EPROTO;
	token->delivered = stream->course.n_samples - entry_rest_count(&rest);
	snapshot->n_tail = rest.n_tail;
	snapshot->need = base_take_ptr(rest.need);
	snapshot->tail = base_take_ptr(rest.tail);
	entry_rest_fini(&rest);
	token->has_log = stream->log.plan_log.map != NULL;
	token->place = ranked_place(stream);
	memcpy(token->log, stream->log.plan_log.id, sizeof(token->log));
	return 0;
}

static int progress_write_token(const struct token *token, void **ret, size_t *ret_size)
{
	*ret_size = token_size(token);
	*ret = malloc(*ret_size);
	if (!*ret)
		return -ENOMEM;
	token_write(token, *ret, *ret_size);
	return 0;
}

int progress_token(struct oa_stream *stream, void **ret, size_t *ret_size)
{
	return progress_token_as_of(stream, NULL, ret, ret_size);
}

int progress_token_as_of(struct oa_stream *stream, const struct progress_mark *mark, void **ret,
			 size_t *ret_size)
{
	_cleanup_(snapshot_fini) struct snapshot snapshot = {0};
	const struct course *course = &stream->course;
	const struct progress *progress = &stream->progress;
	struct token token = course_token(course);
	int r = 0;

	token.epoch = mark ? mark->epoch : progress->epoch;
	token.delivered = mark ? mark->delivered : progress_after(stream);
	if (course->is_logged)
		r = progress_log_token(stream, &snapshot, &token);
	else if (!course->is_fixed)
		r = snapshot_take(&snapshot, stream, mark);
	if (r)
		return r;
	if (!course->is_fixed) {
		token.seed = progress->seed;
		token.n_nonces = progress->n_nonces;
	}
	memcpy(token.nonces, progress->nonces, sizeof(token.nonces));
	token.need = snapshot.need;
	token.tail = snapshot.tail;
	token.n_tail = snapshot.n_tail;
	return progress_write_token(&token, ret, ret_size);
}

/* Of an epoch from its beginning on. Ranks under the carousel begin a log of their own with it, and
 * must all have the same token: what each of them has seen is left out. */
static int progress_epoch_token(const struct oa_stream *stream, uint64_t epoch, void **ret,
				size_t *ret_size)
{
	const struct course *course = &stream->course;
	_cleanup_free_ uint64_t *need = calloc(course_words(course), sizeof(*need));
	const struct progress *progress = &stream->progress;
	struct token token = course_token(course);

	if (!need)
		return -ENOMEM;
	token.epoch = epoch;
	token.need = need;
	if (!course->is_fixed) {
		course_need_all(course, need);
		token.seed = progress->seed;
		token.n_nonces = course->is_logged ? 0 : progress->n_nonces;
	}
	memcpy(token.nonces, progress->nonces, sizeof(token.nonces));
	return progress_write_token(&token, ret, ret_size);
}

int progress_copy_token(const void *token, size_t token_size, void *data, size_t *size)
{
	size_t room = data ? *size : 0;

	*size = token_size;
	if (room < token_size)
		return -ENOBUFS;
	memcpy(data, token, token_size);
	return 0;
}

static int state_epoch(struct oa_stream *stream, uint64_t epoch, void **ret, size_t *ret_size)
{
	if (stream->course.epochs > 0 && epoch > stream->course.epochs)
		return error_set(&stream->trouble.error, OA_E_INVALID,
				 "oa_state_epoch(): epoch is %llu, the stream ends before epoch "
				 "%llu (they are numbered from 0)",
				 (unsigned long long)epoch,
				 (unsigned long long)stream->course.epochs);
	return progress_epoch_token(stream, epoch, ret, ret_size);
}

/* epoch NULL: of now. */
static int state_make(struct oa_stream *stream, const uint64_t *epoch, const char *call, void *data,
		      size_t *size)
{
	_cleanup_free_ void *token = NULL;
	size_t token_size = 0;
	int r;

	if (!stream || !size)
		return OA_E_INVALID;
	if (!guard_is_ours(&stream->guard))
		return OA_E_FORKED;
	pthread_mutex_lock(&stream->lock);
	r = epoch ? state_epoch(stream, *epoch, &token, &token_size)
		  : progress_token(stream, &token, &token_size);
	record_flush(stream);
	if (r < 0)
		error_set(&stream->trouble.error, r, "%s(): %s", call, oa_error_name(r));
	pthread_mutex_unlock(&stream->lock);
	return r ? r : progress_copy_token(token, token_size, data, size);
}

int oa_state(struct oa_stream *stream, void *data, size_t *size)
{
	return state_make(stream, NULL, "oa_state", data, size);
}

int oa_state_epoch(struct oa_stream *stream, uint64_t epoch, void *data, size_t *size)
{
	return state_make(stream, &epoch, "oa_state_epoch", data, size);
}
