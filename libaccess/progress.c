/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Where a job stands, exactly. The truth is a set: the samples of the epoch that oa_next() has not
 * returned. It is kept as
 *
 *   rest   what was not taken: whole blocks, and samples of begun ones (after a resume)
 *   and what lies in our hands: the cursor's chunk from the cursor on, and what is carried
 *
 * A chunk takes its blocks out when the cursor leaves it (progress_fold()): on the path of a batch nothing is
 * done per block. progress_token.c makes one set of it all.
 *
 * Skipped samples and those of a dropped last batch count as seen.
 *
 * With a fixed plan a place in the epoch's order is all there is to know (progress.place). Ranks under
 * the carousel have a place, too, in their job's log, and the log says what it leaves (plan_reader.c).
 */

#include "libaccess/progress.h"

#include "libaccess/error.h"

/* ---- the start and the end ---- */

uint64_t progress_left(const struct progress *progress)
{
	const struct course *course = progress->course;

	if (course->is_ranked)
		return INT64_MAX; /* it is not counted, and never 0 */
	return course->is_fixed ? progress->places - progress->place
				: entry_rest_count(&progress->rest);
}

uint64_t progress_lacking(const struct progress *progress, uint32_t aside)
{
	if (progress->course->is_placed)
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

	progress->places = course->is_logged ? entry_rest_count(&progress->rest)
					     : listed_places(course, progress->epoch);
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

int progress_begin(struct progress *progress, const struct token *token)
{
	const struct course *course = progress->course;
	const struct entry_set set = course_set(course);
	static const struct token start;
	const struct token *from = token ? token : &start;

	if (!course->is_fixed &&
	    entry_rest_init(&set, from->need, from->tail, from->n_tail, &progress->rest))
		return -ENOMEM;
	progress->rest.epoch = from->epoch;
	progress->place = course->is_fixed ? from->delivered : 0;
	if (token)
		progress_take_token(progress, token);
	progress->has_begun = true;
	progress->is_whole = !token;
	progress_enter_epoch(progress);
	progress->left = progress_left(progress);
	if (course->permutation.n > 0 &&
	    (progress->left == 0 || progress->place == progress->places))
		progress_next_epoch(progress);
	progress->n_ended = 0; /* that one had ended before */
	return 0;
}

void progress_fini(struct progress *progress)
{
	entry_rest_fini(&progress->rest);
	listed_fini(&progress->listed);
	plan_reader_fini(&progress->log);
}

bool progress_next_epoch(struct progress *progress)
{
	const struct course *course = progress->course;
	const struct entry_set set = course_set(course);

	if (course->is_placed && progress->cursor != progress->local_places)
		return false;
	if (course->is_logged && progress_follow(progress, progress->cursor, false))
		return false;
	if (!course->is_fixed && entry_rest_count(&progress->rest))
		return false;
	if (!course->is_fixed)
		entry_rest_next_epoch(&set, &progress->rest);
	progress->epoch++;
	progress->n_ended++;
	progress->step = progress->delivered = 0;
	progress->place = progress->base = progress->base_step = 0;
	progress_enter_epoch(progress);
	progress->left = course->is_ranked ? INT64_MAX : progress->places;
	return true;
}

/* ---- chunks ---- */

int progress_take_tail(struct progress *progress, const struct held *held)
{
	const struct entry_set set = course_set(progress->course);
	_cleanup_free_ int64_t *ids = NULL;

	if (!progress->rest.n_tail || progress->course->is_placed)
		return 0;
	ids = malloc(held_rest(held) * sizeof(*ids));
	return ids ? entry_rest_take(&set, &progress->rest, ids, held_copy_rest(held, ids))
		   : -ENOMEM;
}

void progress_fold(struct progress *progress, const struct held *held)
{
	const struct entry_set set = course_set(progress->course);

	if (!progress->course->is_placed && held->epoch == progress->epoch)
		held_take_blocks(held, &set, &progress->rest);
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
		return diag_fail(
		    diag, OA_E_VERSION,
		    "this accessd has no plan log for ranks under the carousel: upgrade accessd");
	if (plan_reader_adopt(&progress->log, &set, &progress->rest, &session->log,
			      &session->log_fd, session->epoch, session->place))
		return diag_fail(diag, -EPROTO,
				 "accessd's plan log is no such memory, or contradicts the token");
	progress->places = session->place + entry_rest_count(&progress->rest);
	progress->base = progress->place = session->place;
	progress->base_step = progress->step;
	progress_set_slice(progress);
	return 0;
}

int progress_follow(struct progress *progress, uint64_t place, bool whole)
{
	const struct entry_set set = course_set(progress->course);
	int r = plan_reader_pass(&progress->log, &set, &progress->rest, place, whole);

	if (r <= 0)
		return r;
	if (r == PLAN_READER_E_GONE)
		return trouble_fail(progress->trouble, OA_E_REFUSED,
				    "this rank is two epochs behind the job's other ranks: the "
				    "plan is kept no longer; start it again with rank 0's token");
	return trouble_fail(progress->trouble, -EPROTO, "accessd's plan log contradicts itself");
}
