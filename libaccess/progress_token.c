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

#include "libaccess/progress_token.h"

#include "base/bits.h"
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

/* What is left of the chunk (NULL: nothing) lies in our hands. */
static void snapshot_add_chunk(struct snapshot *snapshot, const struct course *course,
			       const struct held *held)
{
	if (!held)
		return;
	held_clear_blocks(held, &course->permutation, snapshot->need);
	snapshot_add(snapshot, course, held->ids + held->at, held_rest(held));
}

static void snapshot_collect(struct snapshot *snapshot, const struct progress *progress,
			     const struct progress_hand *hand)
{
	const struct course *course = progress->course;
	const struct carries *carries = hand->carries;

	memcpy(snapshot->need, progress->need, course_words(course) * sizeof(*snapshot->need));
	snapshot_add(snapshot, course, progress->tail, progress->n_tail);
	for (const struct carry *carry = carries->full; carry; carry = carry->next)
		snapshot_add(snapshot, course, carry->ids, carry->count);
	if (carries->filling)
		snapshot_add(snapshot, course, carries->filling->ids, carry_count(carries));
	snapshot_add_chunk(snapshot, course, hand->chunks->now);
	snapshot_add_chunk(snapshot, course, hand->chunks->aside);
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
static int snapshot_take(struct snapshot *snapshot, const struct progress *progress,
			 const struct progress_hand *hand, const struct progress_mark *mark)
{
	const struct course *course = progress->course;
	size_t most = (size_t)progress->n_tail + (size_t)progress->n_carried +
		      held_rest(hand->chunks->now) + held_rest(hand->chunks->aside) +
		      (mark ? mark->n_ids : 0) + 1;

	snapshot->need = calloc(course_words(course), sizeof(*snapshot->need));
	snapshot->tail = malloc(most * sizeof(*snapshot->tail));
	snapshot->position = malloc(most * sizeof(*snapshot->position));
	if (!snapshot->need || !snapshot->tail || !snapshot->position)
		return -ENOMEM;
	if (!mark || mark->epoch == progress->epoch)
		snapshot_collect(snapshot, progress, hand);
	if (mark)
		snapshot_add(snapshot, course, mark->ids, mark->n_ids);
	qsort(snapshot->position, snapshot->n_positions, sizeof(*snapshot->position),
	      snapshot_compare);
	snapshot_sort_out(snapshot, course);
	return 0;
}

/* ---- back to it ---- */

/* 0 or -ENOMEM. */
static int progress_take_back(struct progress *progress, const struct progress_hand *hand)
{
	_cleanup_(snapshot_fini) struct snapshot snapshot = {0};
	int r = snapshot_take(&snapshot, progress, hand, NULL);

	if (r)
		return r;
	free(progress->need);
	free(progress->tail);
	progress->need = base_take_ptr(snapshot.need);
	progress->tail = base_take_ptr(snapshot.tail);
	progress->n_tail = snapshot.n_tail;
	return 0;
}

int progress_rewind(struct progress *progress, const struct progress_hand *hand)
{
	const struct course *course = progress->course;
	int r = 0;

	if (course->is_logged)
		r = progress_follow(progress, progress_place(progress), false);
	else if (!course->is_fixed)
		r = progress_take_back(progress, hand);
	if (r)
		return r;
	if (course->is_ranked) {
		progress->base = progress->place = progress_place(progress);
		progress->base_step = progress->step;
	}
	progress_set_slice(progress);
	progress->n_carried = 0;
	progress->left = progress_left(progress);
	if (course->is_ranked && progress->place == progress->places)
		progress_next_epoch(progress);
	/* Fewer than counted if accessd dealt something twice: the token must not contradict
	 * itself. */
	progress->delivered = BASE_MIN(progress->delivered, progress->places - progress->left);
	return 0;
}

/* ---- the token ---- */

/* What a token of now says was delivered: with a fixed plan, a place. */
uint64_t progress_after(const struct progress *progress)
{
	if (progress->course->is_ranked)
		return progress_place(progress);
	return progress->course->is_fixed ? progress->place : progress->delivered;
}

void progress_mark(const struct progress *progress, struct progress_mark *ret)
{
	*ret = (struct progress_mark){
	    .epoch = progress->epoch,
	    .delivered = progress_after(progress),
	};
}

/* By the log: what no rank has after the steps that are done. */
static int progress_log_token(struct progress *progress, struct snapshot *snapshot,
			      struct token *token)
{
	const struct entry_set set = course_set(progress->course);
	uint64_t place = progress_place(progress);
	struct entry_rest rest;
	int r = plan_reader_rest(&progress->log, &set, place, &rest);

	if (r)
		return r < 0 ? r : -EPROTO;
	token->delivered = progress->course->n_samples - entry_rest_count(&rest);
	snapshot->n_tail = rest.n_tail;
	snapshot->need = base_take_ptr(rest.need);
	snapshot->tail = base_take_ptr(rest.tail);
	entry_rest_fini(&rest);
	token->has_log = progress->log.plan_log.map != NULL;
	token->place = place;
	memcpy(token->log, progress->log.plan_log.id, sizeof(token->log));
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

int progress_token(struct progress *progress, const struct progress_hand *hand,
		   const struct progress_mark *mark, void **ret, size_t *ret_size)
{
	_cleanup_(snapshot_fini) struct snapshot snapshot = {0};
	const struct course *course = progress->course;
	struct token token = course_token(course);
	int r = 0;

	token.epoch = mark ? mark->epoch : progress->epoch;
	token.delivered = mark ? mark->delivered : progress_after(progress);
	if (course->is_logged)
		r = progress_log_token(progress, &snapshot, &token);
	else if (!course->is_fixed)
		r = snapshot_take(&snapshot, progress, hand, mark);
	if (r)
		return r;
	if (!course->is_fixed) {
		token.seed = progress->seen.seed;
		token.n_nonces = progress->seen.n;
	}
	memcpy(token.nonces, progress->seen.nonces, sizeof(token.nonces));
	token.need = snapshot.need;
	token.tail = snapshot.tail;
	token.n_tail = snapshot.n_tail;
	return progress_write_token(&token, ret, ret_size);
}

/* Ranks under the carousel begin a log of their own with it, and must all have the same token: what
 * each of them has seen is left out. */
int progress_epoch_token(const struct progress *progress, uint64_t epoch, void **ret,
			 size_t *ret_size)
{
	const struct course *course = progress->course;
	_cleanup_free_ uint64_t *need = calloc(course_words(course), sizeof(*need));
	struct token token = course_token(course);

	if (!need)
		return -ENOMEM;
	token.epoch = epoch;
	token.need = need;
	if (!course->is_fixed) {
		course_need_all(course, need);
		token.seed = progress->seen.seed;
		token.n_nonces = course->is_logged ? 0 : progress->seen.n;
	}
	memcpy(token.nonces, progress->seen.nonces, sizeof(token.nonces));
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
