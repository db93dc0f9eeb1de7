/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream from its memory to the last release.
 *
 *   oa_open() --> served <--> lost (dialling) --> closed --> freed, with the last batch
 *
 * stream_options.c checks what is asked for, stream_open.c asks accessd, and in stream_adopt.c sessions
 * come and go. Here is what holds at any time: its memory, its errors, its end, its figures.
 *
 * Closing never invalidates a batch: chunks with open windows keep their session, and the stream's
 * memory goes with the last batch. It never pulls memory from under a thread either that is in
 * oa_next(): closing fails the stream, rouses the sleeper, and whoever leaves last frees. In a
 * forked child only the child's copies go.
 */

#include <sys/socket.h>
#include "libaccess/error.h"
#include "base/hold.h"
#include "libaccess/listed.h"
#include "libaccess/stream.h"
#include "shmring/inbox.h"

/* ---- errors ---- */

/* A copy of this thread's: another thread's failed call may change the stream's at any time. */
const char *oa_error_text(const struct oa_stream *stream)
{
	static _Thread_local struct diag copy;

	if (!stream)
		return "no stream";
	if (!guard_is_ours(&stream->guard))
		return ERROR_FORKED_TEXT;
	BASE_HOLD((pthread_mutex_t *)&stream->lock);
	copy = stream->trouble.error;
	return copy.text;
}

/* ---- memory ---- */

int stream_alloc(const struct dial_route *route, struct oa_stream **ret)
{
	struct oa_stream *stream = calloc(1, sizeof(*stream));
	int r;

	if (!stream)
		return -ENOMEM;
	r = guard_init(&stream->guard);
	if (r) {
		free(stream);
		return r;
	}
	redial_init(&stream->redial, route);
	stream->shown = &stream->schema;
	carry_init(&stream->carries, &stream->schema);
	progress_init(&stream->progress, &stream->course, &stream->trouble);
	course_init(&stream->course, &stream->redial.ask);
	record_init(&stream->record);
	pollable_init(&stream->pollable);
	callers_init(&stream->callers);
	pthread_mutex_init(&stream->lock, NULL);
	diag_set(&stream->trouble.error, "no error");
	*ret = stream;
	return 0;
}

bool stream_has_view(const struct oa_stream *stream)
{
	return (stream->flags & (OA_KEEP | OA_WRITABLE)) && !(stream->flags & OA_COPY);
}

void stream_set_flags(struct oa_stream *stream, uint32_t flags)
{
	stream->flags = flags;
	stream->carries.is_poisoned = stream->batch_mixed.is_poisoned = flags & OA_POISON;
}

int stream_new_like(const struct oa_stream *other, uint32_t batch, uint32_t flags,
		    struct oa_stream **ret)
{
	int r = stream_alloc(&other->redial.route, ret);

	if (r)
		return r;
	stream_set_flags(*ret, flags);
	(*ret)->schema = *other->shown;
	(*ret)->schema.batch = batch;
	schema_lay_out(&(*ret)->schema);
	return 0;
}

static void stream_free_pools(struct oa_stream *stream)
{
	while (stream->batch_pool) {
		struct oa_batch *batch = stream->batch_pool;

		stream->batch_pool = batch->next;
		free(batch);
	}
	held_fini(&stream->chunks);
	carry_fini(&stream->carries);
}

void stream_free(struct oa_stream *stream)
{
	stream_free_pools(stream);
	free(stream->parts);
	free(stream->met.bits);
	batch_mixed_fini(&stream->batch_mixed);
	progress_fini(&stream->progress);
	course_fini(&stream->course);
	redial_fini(&stream->redial);
	callers_fini(&stream->callers);
	pthread_mutex_destroy(&stream->lock);
	guard_fini(&stream->guard);
	record_fini(&stream->record);
	free(stream);
}

/* ---- close ---- */

void stream_shut(struct oa_stream *stream)
{
	dial_fini(&stream->redial.dial);
	remote_fini(&stream->redial.remote);
	pollable_fini(&stream->pollable);
}

bool stream_is_unused(const struct oa_stream *stream)
{
	return stream->is_closed && stream->callers.n == 0 && stream->stats.outstanding == 0;
}

/*
 * Ends the sleep of a thread in oa_next(): the socket becomes readable. Not with open windows, as
 * hanging up would give their slots back: the sleeper then looks by itself, within WAIT_SLICE.
 */
static void stream_rouse(const struct oa_stream *stream)
{
	int sock = stream->session ? stream->session->sock : stream->redial.dial.sock;

	if (sock >= 0 && !(stream->session && stream->chunks.all))
		shutdown(sock, SHUT_RDWR);
}

void oa_close(struct oa_stream *stream)
{
	bool is_unused;

	if (!stream)
		return;
	if (!guard_is_ours(&stream->guard)) {
		/* The locks may be held for ever by a thread that was not forked, so none is taken. */
		pollable_fini(&stream->pollable);
		base_close(&stream->redial.dial.sock);
		base_close(&stream->redial.remote.sock);
		base_close(&stream->record.fd);
		base_close(&stream->course.replay.fd);
		base_close(&stream->progress.log.fd);
		if (stream->session)
			session_abandon(stream->session, stream->chunks.all != NULL);
		stream->session = NULL;
		return;
	}
	pthread_mutex_lock(&stream->lock);
	if (stream->is_closed) {
		pthread_mutex_unlock(&stream->lock);
		return;
	}
	stream->is_closed = stream->carries.is_closed = stream->batch_mixed.is_closed = true;
	record_flush(&stream->record);
	base_close(&stream->record.fd);
	trouble_fail(&stream->trouble, OA_E_INVALID,
		     "the stream was closed by oa_close() in another thread");
	carry_clear(&stream->carries);
	if (stream->chunks.now)
		held_spend(&stream->chunks, stream->chunks.now);
	if (stream->chunks.aside)
		held_spend(&stream->chunks, stream->chunks.aside);
	if (stream->session)
		prefault_stop(stream->session->prefault);
	if (stream->callers.n > 0)
		stream_rouse(stream);
	else
		stream_shut(stream);
	session_unref(stream->session);
	stream->session = NULL;
	is_unused = stream_is_unused(stream);
	pthread_mutex_unlock(&stream->lock);
	if (is_unused)
		stream_free(stream);
}

/* ---- statistics ---- */

/* Of the epoch it is in; behind the last, of the first. */
static uint64_t stream_samples(const struct oa_stream *stream)
{
	const struct course *course = &stream->course;

	return course->is_listed && !stream->progress.has_ended
		   ? stream->progress.places
		   : listed_places(course, course->replay.first);
}

void oa_stream_stats(struct oa_stream *stream, struct oa_stats *ret)
{
	struct oa_stats stats;
	size_t size;

	if (!stream || !ret || !guard_is_ours(&stream->guard))
		return;
	pthread_mutex_lock(&stream->lock);
	stats = stream->stats;
	for (const struct held *held = stream->chunks.all; held; held = held->next)
		stats.pins++;
	stats.chunk = stream->chunks.size;
	stats.block = stream->course.permutation.block;
	stats.n_samples = stream_samples(stream);
	stats.epoch = stream->progress.epoch;
	stats.epochs = stream->progress.n_ended;
	if (stream->session)
		stats.late_ns += inbox_late_ns(stream->session->inbox);
	stats.late_ns = BASE_MIN(stats.late_ns, stats.wait_ns);
	pthread_mutex_unlock(&stream->lock);
	size = BASE_MIN(ret->size, sizeof(stats));
	stats.size = size;
	memcpy(ret, &stats, size);
}
