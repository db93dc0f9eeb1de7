/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The snapshot of where a job stands: one set of samples that were not delivered.
 *
 * It puts what lies in our hands back: a block that lies there whole is needed again as a whole, so
 * that any chunk may bring it; of others single samples are. The snapshot is the token, and
 * after the loss of a session it is also where we go on (progress_rewind()): one way for both, tested
 * at every cut point.
 *
 * A fixed plan needs none, as its place is the whole state; a token of ranks under the carousel has
 * what their job's log leaves after the steps that are done.
 */

#include "libaccess/progress_token.h"

/* ---- the snapshot ---- */

static uint32_t snapshot_carry(const struct carry *carry, uint32_t count, int64_t *ret_ids)
{
	memcpy(ret_ids, carry->ids, count * sizeof(*ret_ids));
	return count;
}

/* Ids of what lies in our hands, carried or in a chunk. Returns how many. */
static uint32_t snapshot_hand(const struct progress_hand *hand, int64_t *ret_ids)
{
	const struct carries *carries = hand->carries;
	uint32_t n = 0;

	for (const struct carry *carry = carries->full; carry; carry = carry->next)
		n += snapshot_carry(carry, carry->count, ret_ids + n);
	if (carries->filling)
		n += snapshot_carry(carries->filling, carry_count(carries), ret_ids + n);
	n += held_copy_rest(hand->chunks->now, ret_ids + n);
	return n + held_copy_rest(hand->chunks->aside, ret_ids + n);
}

/*
 * 0 or -ENOMEM. As of a mark, what was delivered since is put back. When the job has come into another
 * epoch since, that is all that is left of the mark's, and of later ones nothing was delivered.
 */
static int snapshot_take(const struct progress *progress, const struct progress_hand *hand,
			 const struct progress_mark *mark, struct entry_rest *ret)
{
	const struct entry_set set = course_set(progress->course);
	const bool is_here = !mark || mark->epoch == progress->epoch;
	const uint64_t n_mark = mark ? mark->n_ids : 0;
	_cleanup_free_ int64_t *ids = malloc((progress->n_carried + held_rest(hand->chunks->now) +
					      held_rest(hand->chunks->aside) + n_mark + 1) *
					     sizeof(*ids));
	uint32_t n;

	if (!ids || entry_rest_copy(&set, &progress->rest, ret))
		return -ENOMEM;
	if (!is_here)
		entry_rest_clear(&set, ret);
	held_take_blocks(is_here ? hand->chunks->now : NULL, &set, ret);
	held_take_blocks(is_here ? hand->chunks->aside : NULL, &set, ret);
	n = is_here ? snapshot_hand(hand, ids) : 0;
	if (n_mark)
		memcpy(ids + n, mark->ids, n_mark * sizeof(*ids));
	return entry_rest_put(&set, ret, ids, n + (uint32_t)n_mark);
}

/* ---- back to it ---- */

/* 0 or -ENOMEM. */
static int progress_take_back(struct progress *progress, const struct progress_hand *hand)
{
	struct entry_rest rest = {.epoch = progress->epoch};
	int r = snapshot_take(progress, hand, NULL, &rest);

	entry_rest_fini(r ? &rest : &progress->rest);
	if (!r)
		progress->rest = rest;
	return r;
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
static int progress_log_token(struct progress *progress, struct entry_rest *rest,
			      struct token *token)
{
	const struct entry_set set = course_set(progress->course);
	int r;

	token->place = progress_place(progress);
	r = plan_reader_rest(&progress->log, &set, &progress->rest, token->place, rest);
	if (r)
		return r < 0 ? r : -EPROTO;
	token->delivered = progress->course->n_samples - entry_rest_count(rest);
	token->has_log = progress->log.plan_log.map != NULL;
	memcpy(token->log, progress->log.plan_log.id, sizeof(token->log));
	return 0;
}

/* With what is left, and, of instances, what was seen. */
static int progress_write_token(const struct progress *progress, const struct entry_rest *rest,
				struct token *token, void **ret, size_t *ret_size)
{
	if (!progress->course->is_fixed) {
		token->seed = progress->seen.seed;
		token->need = rest->need;
		token->tail = rest->tail;
		token->n_tail = rest->n_tail;
	}
	memcpy(token->nonces, progress->seen.nonces, sizeof(token->nonces));
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
	_cleanup_(entry_rest_fini) struct entry_rest rest = {0};
	const struct course *course = progress->course;
	struct token token = course_token(course);
	int r = 0;

	token.epoch = mark ? mark->epoch : progress->epoch;
	token.delivered = mark ? mark->delivered : progress_after(progress);
	token.n_nonces = course->is_fixed ? 0 : progress->seen.n;
	if (course->is_logged)
		r = progress_log_token(progress, &rest, &token);
	else if (!course->is_fixed)
		r = snapshot_take(progress, hand, mark, &rest);
	return r ? r : progress_write_token(progress, &rest, &token, ret, ret_size);
}

/* Ranks under the carousel begin a log of their own with it, and must all have the same token: what
 * each of them has seen is left out. */
int progress_epoch_token(const struct progress *progress, uint64_t epoch, void **ret,
			 size_t *ret_size)
{
	_cleanup_(entry_rest_fini) struct entry_rest rest = {0};
	const struct course *course = progress->course;
	const struct entry_set set = course_set(course);
	struct token token = course_token(course);

	if (!course->is_fixed && entry_rest_init(&set, NULL, NULL, 0, &rest))
		return -ENOMEM;
	token.epoch = epoch;
	token.n_nonces = course->is_placed ? 0 : progress->seen.n;
	return progress_write_token(progress, &rest, &token, ret, ret_size);
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
