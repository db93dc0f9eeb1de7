/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a job stands, exactly. The truth is a set: the samples of the epoch that oa_next() has not
 * returned. It is kept as
 *
 *   need   a bit for each block of which nothing was taken
 *   tail   samples of begun blocks (after a resume), until their chunk is taken
 *   and what lies in our hands: the cursor's chunk from the cursor on, and what is carried
 *
 * A chunk clears its bits when the cursor leaves it (progress_fold()): on the path of a batch nothing is
 * done per block. progress_token.c makes one set of it all.
 *
 * Skipped samples and those of a dropped last batch count as seen.
 *
 * With a fixed plan a place in the epoch's order is all there is to know (progress.place). Ranks under
 * the carousel have a place, too, in their job's log, and the log says what it leaves (plan_reader.c).
 */

#include "libaccess/progress.h"

#include "base/bits.h"
#include "libaccess/error.h"
#include "sched/population.h"

/* ---- the start and the end ---- */

static void progress_fill_need(struct progress *progress)
{
	if (!progress->course->is_fixed && !progress->course->is_logged)
		course_need_all(progress->course, progress->need);
}

uint64_t progress_left(const struct progress *progress)
{
	const struct course *course = progress->course;

	if (course->is_ranked)
		return INT64_MAX; /* it is not counted, and never 0 */
	if (course->is_fixed)
		return progress->places - progress->place;
	/* Samples that need and tail stand for. */
	return population_samples(&course->permutation, course->part.bits, progress->need) +
	       progress->n_tail;
}

uint64_t progress_lacking(const struct progress *progress, uint32_t aside)
{
	if (progress->course->is_fixed || progress->course->is_ranked)
		return progress->local_places - progress->cursor;
	return progress->left - progress->n_carried - aside;
}

void progress_set_slice(struct progress *progress)
{
	const struct dial_open *ask = progress->course->ask;
	struct ranks ranks = progress_ranks(progress);

	progress->slice = (struct slice){.ranks = ranks};
	if (ask->local_ranks < ask->ranks)
		slice_init(&progress->slice, &ranks, ask->local_first, ask->local_ranks);
	progress->local_places = slice_places(&progress->slice);
	progress->cursor = slice_local(&progress->slice, progress->place);
}

/* The epoch's number is known. */
static void progress_enter_epoch(struct progress *progress)
{
	const struct course *course = progress->course;

	progress->places =
	    course->is_logged ? progress->log.total : listed_places(course, progress->epoch);
	progress_set_slice(progress);
	progress->has_ended =
	    course->permutation.n == 0 || (course->epochs > 0 && progress->epoch >= course->epochs);
}

/* What a token says of a job beside its place. */
static void progress_take_token(struct progress *progress, const struct token *token)
{
	const struct course *course = progress->course;

	progress->epoch = token->epoch;
	progress->delivered = token->delivered;
	progress->step = course->is_ranked ? course_step_of(course, token->delivered)
					   : token->delivered / course->ask->batch;
	progress->base = progress->place;
	progress->base_step = progress->step;
	memcpy(progress->seen.nonces, token->nonces, sizeof(progress->seen.nonces));
	progress->seen.n = token->n_nonces;
	progress->seen.seed = token->seed;
}

void progress_init(struct progress *progress, const struct course *course, struct trouble *trouble)
{
	*progress = (struct progress){.course = course, .trouble = trouble, .log.fd = -1};
}

/* With a plan log there is nothing but places in need and tail's stead. */
static int progress_begin_log(struct progress *progress, const struct token *token)
{
	const struct entry_set set = course_set(progress->course);

	if (plan_reader_init(&progress->log, &set, token))
		return -ENOMEM;
	if (token)
		progress_take_token(progress, token);
	if (progress->log.at.rest.epoch != progress->epoch) /* all of it was delivered */
		progress->step = progress->base_step = progress->delivered = 0;
	progress->epoch = progress->log.at.rest.epoch;
	progress->left = INT64_MAX;
	progress_enter_epoch(progress);
	return 0;
}

int progress_begin(struct progress *progress, const struct token *token)
{
	const struct course *course = progress->course;
	uint32_t n_tail = token && !course->is_logged ? token->n_tail : 0;

	progress->need = calloc(course_words(course), sizeof(*progress->need));
	progress->tail = calloc((size_t)n_tail + 1, sizeof(*progress->tail));
	if (!progress->need || !progress->tail)
		return -ENOMEM;
	if (course->is_logged)
		return progress_begin_log(progress, token);
	progress_fill_need(progress);
	if (token && course->is_fixed) {
		progress->place = token->delivered;
	} else if (token) {
		memcpy(progress->need, token->need,
		       bits_words(course->permutation.blocks) * sizeof(*progress->need));
		memcpy(progress->tail, token->tail, n_tail * sizeof(*progress->tail));
		progress->n_tail = n_tail;
	}
	if (token)
		progress_take_token(progress, token);
	progress_enter_epoch(progress);
	progress->left = progress_left(progress);
	if (course->permutation.n > 0 &&
	    (progress->left == 0 || progress->place == progress->places))
		progress_next_epoch(progress);
	return 0;
}

void progress_fini(struct progress *progress)
{
	free(progress->need);
	free(progress->tail);
	listed_fini(&progress->listed);
	plan_reader_fini(&progress->log);
}

bool progress_next_epoch(struct progress *progress)
{
	const struct course *course = progress->course;
	const struct entry_set set = course_set(course);

	if (progress->n_tail > 0 || bits_count(progress->need, course->permutation.blocks) > 0 ||
	    ((course->is_fixed || course->is_ranked) && progress->cursor != progress->local_places))
		return false;
	if (course->is_logged && (progress_follow(progress, progress->cursor, false) ||
				  !plan_reader_next_epoch(&progress->log, &set)))
		return false;
	progress->epoch++;
	progress->n_ended++;
	progress->step = progress->delivered = 0;
	progress->place = progress->base = progress->base_step = 0;
	progress_enter_epoch(progress);
	progress->left = course->is_ranked ? INT64_MAX : progress->places;
	progress_fill_need(progress);
	return true;
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

void progress_fold(struct progress *progress, const struct held *held)
{
	if (held->epoch == progress->epoch)
		held_clear_blocks(held, &progress->course->permutation, progress->need);
}

BASE_HOT void progress_note_seen(struct progress *progress, struct held *held)
{
	struct progress_seen *seen = &progress->seen;
	uint32_t at;

	if (held->is_seen)
		return;
	held->is_seen = true;
	at = progress->course->ask->reuse > 1 ? 0 : seen->n;
	while (at < seen->n && seen->nonces[at] != held->nonce)
		at++;
	if (at == TOKEN_MAX_NONCES)
		at = 0; /* the oldest makes room; one that was seen before is the newest now */
	if (at < seen->n) {
		memmove(seen->nonces + at, seen->nonces + at + 1,
			(seen->n - at - 1) * sizeof(uint64_t));
		seen->n--;
	}
	seen->nonces[seen->n++] = held->nonce;
}

void progress_settle(struct progress *progress)
{
	if (progress->n_carried > 0 || progress->course->is_ranked)
		return;
	progress->place = progress->cursor;
	progress->skipped = progress->filtered = 0;
}

void progress_pass(struct progress *progress, uint32_t count)
{
	progress->cursor += count;
	progress_settle(progress);
}

/* ---- lists ---- */

void progress_keys(const struct progress *progress, const struct held *held, uint32_t first,
		   uint32_t count, struct listing_key *ret)
{
	const struct course *course = progress->course;
	struct listing_key key = {held->session->table.geometry.seed, held->nonce};
	uint64_t place;

	if (course->is_fixed)
		key.seed = course->seed;
	for (uint32_t i = 0; i < count; i++) {
		ret[i] = key;
		if (!course->is_listed)
			continue;
		slice_run(&progress->slice, held->place + first + i, &place);
		ret[i] = listed_key(&progress->listed, progress->epoch, place);
	}
}

void progress_feed(struct progress *progress, int sock)
{
	if (progress->course->is_listed && !progress->has_ended)
		listed_feed(&progress->listed, progress->course, progress->epoch, sock,
			    progress->trouble);
}

/* ---- several ranks ---- */

struct ranks progress_ranks(const struct progress *progress)
{
	const struct dial_open *ask = progress->course->ask;

	return (struct ranks){
	    .n = progress->places,
	    .base = progress->base,
	    .batch = ask->batch,
	    .ranks = ask->ranks,
	    .drop_last = ask->drop_last,
	};
}

uint64_t progress_place(const struct progress *progress)
{
	struct ranks ranks = progress_ranks(progress);

	/* No step is done, where drop_last leaves none to do neither. */
	if (progress->has_ended || !progress_done(progress))
		return progress->base;
	return ranks_place(&ranks, progress_done(progress));
}

int progress_adopt(struct progress *progress, struct session *session, struct diag *diag)
{
	const struct entry_set set = course_set(progress->course);

	if (!session->has_log)
		return error_set(diag, OA_E_VERSION,
				 "this accessd has no plan log for ranks under the carousel: "
				 "upgrade accessd");
	if (plan_reader_adopt(&progress->log, &set, &session->log, &session->log_fd, session->epoch,
			      session->place))
		return error_set(diag, -EPROTO,
				 "accessd's plan log is no such memory, or contradicts the token");
	progress->places = progress->log.total;
	progress->base = progress->place = session->place;
	progress->base_step = progress->step;
	progress_set_slice(progress);
	return 0;
}

int progress_follow(struct progress *progress, uint64_t place, bool whole)
{
	const struct entry_set set = course_set(progress->course);
	int r = plan_reader_pass(&progress->log, &set, place, whole);

	if (r <= 0)
		return r;
	if (r == PLAN_READER_E_GONE)
		return trouble_fail(
		    progress->trouble, OA_E_REFUSED,
		    "this rank is two epochs behind the job's other ranks: the plan "
		    "is kept no longer; start it again with rank 0's token");
	return trouble_fail(progress->trouble, -EPROTO, "accessd's plan log contradicts itself");
}
