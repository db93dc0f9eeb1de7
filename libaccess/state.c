/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a job stands, exactly. The truth is a set: the samples of the epoch that oa_next() has not
 * returned. It is kept as
 *
 *   need   a bit for each grain of which nothing was taken
 *   tail   samples of begun grains (after a resume), until their hand is taken
 *   and what lies in our hands: the cursor's hand from the cursor on, and what is carried
 *
 * The cursor's hand and those before it clear their bits only when they go back, or when somebody
 * asks (progress_fold()): on the path of a batch nothing is done per grain. A snapshot puts what
 * lies in our hands back: a grain that lies there whole is needed again as a whole, so that any
 * hand may bring it; of others the samples go into the tail. The snapshot is the token, and after
 * the loss of a session it is also where we go on (progress_rewind()): one way for both, tested at
 * every cut point.
 *
 * Skipped samples and those of a dropped last batch count as seen.
 *
 * With a fixed plan a place in the epoch's order is all there is to know (progress.place). Ranks under
 * the carousel have a place, too, in their job's log, and the log says what it leaves (planlog.c).
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/bits.h"
#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "sched/population.h"

/* ---- the start and the end ---- */

static size_t state_words(const struct oa_stream *stream)
{
	return bits_words(stream->deal.grains) + 1;
}

/* Samples that need and tail stand for. */
static uint64_t state_count(const struct oa_stream *stream)
{
	return population_samples(&stream->deal, stream->part.bits, stream->progress.need) +
	       stream->progress.n_tail;
}

/* An epoch's need, from nothing delivered on. */
static void state_fill_need(const struct oa_stream *stream, uint64_t *need)
{
	if (stream->is_fixed || stream->is_logged)
		return;
	if (stream->part.bits)
		population_need(&stream->deal, stream->part.bits, need);
	else
		bits_fill(need, stream->deal.grains);
}

/* Samples of the grain that are ours. */
static uint32_t state_grain_size(const struct oa_stream *stream, uint64_t grain)
{
	return stream->part.bits ? population_of_grain(&stream->deal, stream->part.bits, grain)
				 : deal_grain_size(&stream->deal, grain);
}

/* Samples of the epoch that were not delivered. */
static uint64_t state_left(const struct oa_stream *stream)
{
	if (stream->is_ranked)
		return INT64_MAX; /* it is not counted, and never 0 */
	if (stream->is_fixed)
		return stream->places - stream->progress.place;
	return state_count(stream);
}

static void state_note_end(struct oa_stream *stream)
{
	stream->has_ended =
	    stream->deal.n == 0 || (stream->epochs > 0 && stream->progress.epoch >= stream->epochs);
}

/* The epoch's number is known. */
static void state_set_places(struct oa_stream *stream)
{
	stream->places = stream->n_samples;
	if (stream->is_listed)
		stream->places = listed_places(stream, stream->progress.epoch);
	if (stream->is_logged)
		stream->places = stream->log.total;
}

/* What a token says of a job beside its place. */
static void state_take_token(struct oa_stream *stream, const struct token *token)
{
	struct progress *progress = &stream->progress;

	progress->epoch = token->epoch;
	progress->delivered = token->delivered;
	progress->step = token->delivered / stream->batch;
	if (stream->is_ranked)
		progress->step = ranked_step_of(stream, token->delivered);
	progress->base = progress->place;
	progress->base_step = progress->step;
	memcpy(progress->laps, token->laps, sizeof(progress->laps));
	progress->n_laps = token->n_laps;
	progress->seed = token->seed;
}

/* With a plan log there is nothing but places in need and tail's stead. */
static int state_init_log(struct oa_stream *stream, const struct token *token)
{
	struct progress *progress = &stream->progress;

	progress->need = calloc(state_words(stream), sizeof(*progress->need));
	progress->tail = calloc(1, sizeof(*progress->tail));
	if (!progress->need || !progress->tail ||
	    planlog_init(&stream->log, &stream->deal, token)) {
		progress_fini(progress);
		return -ENOMEM;
	}
	if (token)
		state_take_token(stream, token);
	if (stream->log.at.rest.epoch != progress->epoch) /* all of it was delivered */
		progress->step = progress->base_step = progress->delivered = 0;
	progress->epoch = stream->log.at.rest.epoch;
	progress->left = INT64_MAX;
	stream->n_carried = 0;
	state_set_places(stream);
	state_note_end(stream);
	return 0;
}

int progress_init(struct oa_stream *stream, const struct token *token)
{
	struct progress *progress = &stream->progress;
	uint32_t n_tail = token ? token->n_tail : 0;

	if (stream->is_logged)
		return state_init_log(stream, token);
	progress->need = calloc(state_words(stream), sizeof(*progress->need));
	progress->tail = calloc((size_t)n_tail + 1, sizeof(*progress->tail));
	if (!progress->need || !progress->tail) {
		progress_fini(progress);
		return -ENOMEM;
	}
	state_fill_need(stream, progress->need);
	if (token && stream->is_fixed) {
		progress->place = progress->cursor = token->delivered;
	} else if (token) {
		memcpy(progress->need, token->need,
		       bits_words(stream->deal.grains) * sizeof(*progress->need));
		memcpy(progress->tail, token->tail, n_tail * sizeof(*progress->tail));
		progress->n_tail = n_tail;
	}
	if (token)
		state_take_token(stream, token);
	state_set_places(stream);
	progress->left = state_left(stream);
	stream->n_carried = 0;
	if (stream->deal.n > 0 && (progress->left == 0 || progress->cursor == stream->places))
		progress_next_epoch(stream);
	state_note_end(stream);
	return 0;
}

void progress_fini(struct progress *progress)
{
	free(progress->need);
	free(progress->tail);
	progress->need = NULL;
	progress->tail = NULL;
}

/* ---- hands ---- */

static int state_compare_ids(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void progress_take_tail(struct progress *progress, const int64_t *ids, uint32_t count)
{
	int64_t *tail = progress->tail;
	uint32_t kept = 0;

	qsort(tail, progress->n_tail, sizeof(*tail), state_compare_ids);
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

static void state_clear_grains(const struct deal *deal, uint64_t *need, const struct held *held)
{
	for (uint32_t i = 0; i < held->n_grains; i++) {
		uint32_t grain = board_load_grain(&held->grains[i]);

		if (grain < deal->grains)
			bits_clear(need, grain);
	}
}

void progress_fold(struct oa_stream *stream, struct held *held)
{
	if (!held->is_folded && held->epoch == stream->progress.epoch)
		state_clear_grains(&stream->deal, stream->progress.need, held);
	held->is_folded = true;
}

void progress_settle(struct oa_stream *stream)
{
	if (stream->n_carried == 0)
		stream->progress.place = stream->progress.cursor;
}

void progress_pass(struct oa_stream *stream, uint32_t count)
{
	stream->progress.cursor += count;
	progress_settle(stream);
}

static void state_fold_spent(struct oa_stream *stream)
{
	for (struct held *held = stream->hands; held; held = held->next)
		if (held->is_spent)
			progress_fold(stream, held);
}

bool progress_next_epoch(struct oa_stream *stream)
{
	struct progress *progress = &stream->progress;

	state_fold_spent(stream);
	if (progress->n_tail > 0 || bits_count(progress->need, stream->deal.grains) > 0 ||
	    ((stream->is_fixed || stream->is_ranked) && progress->cursor != stream->places))
		return false;
	if (stream->is_logged && (ranked_follow(stream, progress->cursor, false) ||
				  !planlog_next_epoch(&stream->log, &stream->deal)))
		return false;
	progress->epoch++;
	state_set_places(stream);
	progress->step = progress->delivered = 0;
	progress->left = stream->is_ranked ? INT64_MAX : stream->places;
	progress->place = progress->cursor = progress->base = progress->base_step = 0;
	state_fill_need(stream, progress->need);
	stream->stats.epochs++;
	state_note_end(stream);
	return true;
}

/* ---- the snapshot ---- */

struct snapshot {
	uint64_t *need;
	int64_t *tail;
	uint32_t n_tail;
	uint64_t *position; /* in the deal, of all samples that lie in our hands */
	size_t n_positions;
};

static void snapshot_fini(struct snapshot *snapshot)
{
	free(snapshot->need);
	free(snapshot->tail);
	free(snapshot->position);
}

static void snapshot_add(struct snapshot *snapshot, const struct oa_stream *stream,
			 const int64_t *ids, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t id = (uint64_t)board_load_id(&ids[i]), position;

		if (id >= stream->deal.n)
			continue;
		position = deal_position(&stream->deal, id);
		if (!stream->part.bits || bits_test(stream->part.bits, position))
			snapshot->position[snapshot->n_positions++] = position;
	}
}

static int state_compare_positions(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void snapshot_collect(struct snapshot *snapshot, const struct oa_stream *stream)
{
	const struct progress *progress = &stream->progress;
	const struct held *held = stream->held;

	snapshot_add(snapshot, stream, progress->tail, progress->n_tail);
	for (const struct carry *carry = stream->full; carry; carry = carry->next)
		snapshot_add(snapshot, stream, carry->ids, carry->count);
	if (stream->carry)
		snapshot_add(snapshot, stream, stream->carry->ids, stream->carry->count);
	if (held)
		snapshot_add(snapshot, stream, held->ids + held->at, held->end - held->at);
}

static void snapshot_sort(struct snapshot *snapshot)
{
	qsort(snapshot->position, snapshot->n_positions, sizeof(*snapshot->position),
	      state_compare_positions);
}

/* Whole grains become bits, of others the samples become the tail. Positions are sorted. */
static void snapshot_sort_out(struct snapshot *snapshot, const struct oa_stream *stream)
{
	const struct deal *deal = &stream->deal;
	size_t first = 0;

	while (first < snapshot->n_positions) {
		uint64_t grain = snapshot->position[first] / deal->grain;
		uint32_t tail = snapshot->n_tail;
		size_t at = first;

		for (; at < snapshot->n_positions && snapshot->position[at] / deal->grain == grain;
		     at++)
			if (at == first || snapshot->position[at] != snapshot->position[at - 1])
				snapshot->tail[tail++] =
				    (int64_t)deal_sample(deal, snapshot->position[at]);
		first = at;
		if (bits_test(snapshot->need, grain))
			continue;
		if (tail - snapshot->n_tail == state_grain_size(stream, grain))
			bits_set(snapshot->need, grain);
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
		      (held ? held->end - held->at : 0) + (mark ? mark->n_ids : 0) + 1;
	bool is_of_now = !mark || mark->epoch == stream->progress.epoch;

	state_fold_spent(stream);
	snapshot->need = calloc(state_words(stream), sizeof(*snapshot->need));
	snapshot->tail = malloc(most * sizeof(*snapshot->tail));
	snapshot->position = malloc(most * sizeof(*snapshot->position));
	if (!snapshot->need || !snapshot->tail || !snapshot->position)
		return -ENOMEM;
	if (is_of_now) {
		memcpy(snapshot->need, stream->progress.need,
		       state_words(stream) * sizeof(*snapshot->need));
		if (held && !held->is_folded)
			state_clear_grains(&stream->deal, snapshot->need, held);
		snapshot_collect(snapshot, stream);
	}
	if (mark)
		snapshot_add(snapshot, stream, mark->ids, mark->n_ids);
	snapshot_sort(snapshot);
	snapshot_sort_out(snapshot, stream);
	return 0;
}

/* 0 or -ENOMEM. */
static int state_take_back(struct oa_stream *stream)
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

int progress_rewind(struct oa_stream *stream)
{
	struct progress *progress = &stream->progress;
	int r = stream->is_fixed || stream->is_logged ? 0 : state_take_back(stream);

	if (!r && stream->is_logged)
		r = ranked_follow(stream, ranked_place(stream), false);
	if (r)
		return r;
	if (stream->is_ranked) {
		progress->base = progress->place = ranked_place(stream);
		progress->base_step = progress->step;
	}
	progress->cursor = progress->place;
	if (stream->held) {
		stream->held->is_folded = true;
		held_spend(stream, stream->held);
	}
	carry_clear(stream);
	progress->left = state_left(stream);
	if (stream->is_ranked && progress->cursor == stream->places)
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
	if (stream->is_ranked)
		return ranked_place(stream);
	return stream->is_fixed ? stream->progress.place : stream->progress.delivered;
}

void progress_mark(const struct oa_stream *stream, struct progress_mark *ret)
{
	*ret = (struct progress_mark){
	    .epoch = stream->progress.epoch,
	    .delivered = progress_after(stream),
	};
}

/* By the log: what no rank has after the steps that are done. */
static int state_log_token(struct oa_stream *stream, struct snapshot *snapshot, struct token *token)
{
	struct entry_rest rest;
	int r = planlog_rest(&stream->log, &stream->deal, ranked_place(stream), &rest);

	if (r)
		return r < 0 ? r : -EPROTO;
	snapshot->need = rest.need;
	snapshot->tail = rest.tail;
	snapshot->n_tail = rest.n_tail;
	token->delivered = stream->deal.n - entry_rest_count(&stream->deal, &rest);
	token->has_log = stream->log.scroll.map != NULL;
	token->place = ranked_place(stream);
	memcpy(token->log, stream->log.scroll.id, sizeof(token->log));
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
	const struct progress *progress = &stream->progress;
	struct token token = {
	    .n = stream->deal.n,
	    .grain = stream->deal.grain,
	    .order = stream->order,
	    .seed = progress->seed,
	    .epoch = mark ? mark->epoch : progress->epoch,
	    .epochs = stream->epochs,
	    .delivered = mark ? mark->delivered : progress_after(stream),
	    .n_laps = progress->n_laps,
	};
	int r = 0;

	if (stream->is_logged)
		r = state_log_token(stream, &snapshot, &token);
	else if (!stream->is_fixed)
		r = snapshot_take(&snapshot, stream, mark);
	if (r)
		return r;
	if (stream->is_fixed) {
		token.seed = stream->seed;
		token.n_laps = 0;
	}
	memcpy(token.dataset, stream->dataset, sizeof(token.dataset));
	memcpy(token.sampler, stream->sampler.hash, sizeof(token.sampler));
	memcpy(token.laps, progress->laps, sizeof(token.laps));
	token.need = snapshot.need;
	token.tail = snapshot.tail;
	token.n_tail = snapshot.n_tail;
	*ret_size = token_size(&token);
	*ret = malloc(*ret_size);
	if (!*ret)
		return -ENOMEM;
	token_write(&token, *ret, *ret_size);
	return 0;
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

int oa_state(struct oa_stream *stream, void *data, size_t *size)
{
	_cleanup_free_ void *token = NULL;
	size_t token_size = 0;
	int r;

	if (!stream || !size)
		return OA_E_INVALID;
	if (!guard_is_ours(&stream->guard))
		return OA_E_FORKED;
	pthread_mutex_lock(&stream->lock);
	r = progress_token(stream, &token, &token_size);
	record_flush(stream);
	if (r)
		stream_error(stream, r, "oa_state(): %s", oa_error_name(r));
	pthread_mutex_unlock(&stream->lock);
	return r ? r : progress_copy_token(token, token_size, data, size);
}
