/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Sessions come and go.
 *
 * A stream outlives sessions: what it promises (fields, sizes, the dataset's version) is fixed by
 * the first one, and a later one must agree or is refused, because a training loop cannot take
 * other shapes in the middle. It keeps the truth about what was delivered (progress.c); accessd is
 * told at each opening.
 */

#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/inbox.h"

/* ---- the first one ---- */

/* The first session says what the stream is. */
static int stream_found(struct oa_stream *stream, const struct session *session, struct diag *diag)
{
	const struct slot_geometry *geometry = &session->table.geometry;
	struct course *course = &stream->course;
	struct token token = {0};
	uint64_t places;
	int r;

	permutation_init(&course->permutation, geometry->n_samples, geometry->dataset);
	if (met_init(&stream->met, geometry->n_samples))
		return error_of_errno(diag, -ENOMEM, "opening a stream");
	memcpy(course->dataset, geometry->dataset, sizeof(course->dataset));
	course->n_samples = course->part.bits ? course->part.count : geometry->n_samples;
	schema_init(&stream->schema, geometry, course->ask->batch);
	r = batch_mixed_begin(&stream->batch_mixed, &session->batch_mixed, &stream->schema, diag);
	stream->is_batch_mixed = batch_mixed_is_used(&stream->batch_mixed);
	if (stream->is_batch_mixed) {
		stream->shown = &stream->batch_mixed.schema;
		stream->carries.has_keys = true;
	}
	if (!r && course->is_listed)
		r = listed_check(course, diag);
	if (r)
		return r;
	if (geometry->block != course->permutation.block)
		return diag_fail(diag, -EPROTO,
				 "accessd deals blocks of %u samples, this libaccess %u",
				 geometry->block, course->permutation.block);
	if (course->part.n &&
	    (geometry->n_samples != course->part.n ||
	     memcmp(geometry->dataset, course->part.version, sizeof(course->dataset)) != 0))
		return diag_fail(diag, -EPROTO,
				 "accessd opened another version of the dataset than it described");
	places = listed_places(course, course->replay.first);
	if ((stream->flags & OA_DROP_LAST) && places < stream->schema.batch)
		return diag_fail(diag, OA_E_INVALID,
				 "an epoch has %llu samples, fewer than one batch of %u: with "
				 "OA_DROP_LAST nothing would be left",
				 (unsigned long long)places, stream->schema.batch);
	if (!course->ask->token) {
		r = progress_begin(&stream->progress, NULL);
		return r ? r : record_open(&stream->record, course, NULL, diag);
	}
	r = token_parse(course->ask->token, course->ask->token_size, &token, diag);
	if (!r)
		r = token_fits(&token, course->permutation.n, course->permutation.block,
			       course->dataset, diag);
	if (!r)
		r = token_fits_sampler(&token, course->sampler.hash, diag);
	if (!r) {
		course_resume(course, &token);
		stream->progress.listed.next = token.epoch;
		if (course->is_listed && token.delivered > listed_places(course, token.epoch))
			r = diag_fail(diag, OA_E_TOKEN, "resume token: its place is past the end");
		else
			r = progress_begin(&stream->progress, &token);
	}
	if (r > 0)
		r = OA_E_TOKEN;
	if (!r)
		r = record_open(&stream->record, course, &token, diag);
	token_fini(&token);
	return r;
}

/* ---- a later one ---- */

/* A later one must be the same to the job. */
static int stream_found_again(const struct oa_stream *stream, const struct session *session,
			      struct diag *diag)
{
	const struct slot_geometry *geometry = &session->table.geometry;

	if (geometry->n_samples != stream->course.permutation.n ||
	    memcmp(geometry->dataset, stream->course.dataset, sizeof(stream->course.dataset)) != 0)
		return diag_fail(
		    diag, OA_E_DATASET,
		    "the dataset %s has changed while this job was running: start the job again",
		    redial_dataset(&stream->redial));
	if (geometry->block != stream->course.permutation.block ||
	    !schema_fits(&stream->schema, geometry) ||
	    !mixed_ask_same(&stream->batch_mixed.ask, &session->batch_mixed))
		return diag_fail(diag, OA_E_PIPELINE,
				 "accessd came back with other fields or shapes for this pipeline: "
				 "start the job again from its token");
	return 0;
}

/* ---- it is taken, and lost ---- */

int stream_adopt(struct oa_stream *stream, struct session *session, struct diag *diag)
{
	const struct slot_geometry *geometry = &session->table.geometry;
	struct progress *progress = &stream->progress;
	int r;

	memcpy(stream->course.pipeline, session->pipeline, sizeof(stream->course.pipeline));
	memcpy(stream->stats.shares, session->shares, sizeof(stream->stats.shares));
	progress->listed.next = progress->epoch;
	r = progress->has_begun ? stream_found_again(stream, session, diag)
				: stream_found(stream, session, diag);

	if (!r && stream->course.ask->local_ranks < stream->course.ask->ranks &&
	    session->local_ranks != stream->course.ask->local_ranks)
		r = diag_fail(diag, OA_E_VERSION,
			      "this accessd does not know which ranks are on its node, and would "
			      "prepare every node's samples: upgrade accessd");
	if (!r && stream->course.is_logged)
		r = progress_adopt(progress, session, diag);
	if (r) {
		session_unref(session);
		return r;
	}
	if (stream->course.is_fixed)
		; /* its instances are the plan's, whatever stream makes them */
	else if (progress->seen.seed !=
		 geometry->seed) /* noted nonces are of another stream's instances */
		progress->seen.n = 0;
	progress->seen.seed = geometry->seed;
	stream->chunks.size = geometry->chunk;
	stream->chunks.has_holes = session->has_holes || stream->course.ask->bad == OA_BAD_SKIP;
	stream->session = session;
	stream->is_idle = false;
	progress_feed(progress, session->sock);
	/* What could not be sent to the new session is its end. */
	if (stream->trouble.failed)
		*diag = stream->trouble.failure;
	return stream->trouble.failed;
}

/* The holes behind where we go on come again. Under the carousel a hole that was passed does not. */
static void stream_uncount(struct oa_stream *stream)
{
	struct progress *progress = &stream->progress;

	if (stream->course.is_placed) {
		stream->stats.skipped -= progress->skipped;
		stream->stats.filtered -= progress->filtered;
	}
	progress->skipped = progress->filtered = 0;
}

/* Takes everything back that was taken and not delivered. 0, or as progress_rewind(). */
static int stream_rewind(struct oa_stream *stream)
{
	struct chunks *chunks = &stream->chunks;
	const struct progress_hand hand = {chunks, &stream->carries};
	int r = progress_rewind(&stream->progress, &hand);

	if (r)
		return r;
	stream_uncount(stream);
	if (chunks->now)
		held_spend(chunks, chunks->now);
	if (chunks->aside)
		held_spend(chunks, chunks->aside);
	carry_clear(&stream->carries);
	return 0;
}

void stream_lose(struct oa_stream *stream, const char *why)
{
	struct session *session = stream->session;

	pollable_forget(&stream->pollable);
	if (stream_rewind(stream))
		trouble_fail(&stream->trouble, -ENOMEM,
			     "out of memory while taking back what was not delivered");
	if (session)
		stream->stats.late_ns += inbox_late_ns(session->inbox);
	stream->session = NULL;
	stream->is_idle = false;
	stream->met.explain_ns = 0;
	redial_lose(&stream->redial, why);
	if (session)
		prefault_stop(session->prefault);
	session_unref(session);
}
