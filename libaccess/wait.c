/* SPDX-License-Identifier: Apache-2.0 */

/*
 * oa_next(): takes what is ready, else waits for it.
 *
 *   turn      one thread at a time is in here; others wait for their turn within their own time
 *   lock      held while something is looked at, dropped while we sleep: batches can be released,
 * tokens taken and statistics read meanwhile
 *
 * With a session, to wait is: arm, look again, tell accessd (KICK) unless it has said that it need not
 * know, sleep on the socket. Every WAIT_SLICE we look once more, so that a wake that was lost costs a
 * second and not the job. News that came by itself is only read when nothing is ready: taking a ready
 * batch makes no system call.
 *
 * Without one, to wait is to dial: steps of the dial and pauses between tries (redial.c), with the
 * token of what was delivered. The caller's time bounds all of it; what was half
 * done goes on with the next call, so a program that polls with a time-out of 0 also gets its
 * connection back.
 *
 * oa_close() in another thread fails the stream: whoever waits here finds that out when it looks
 * again.
 *
 * A signal's handler may want to run code in this thread (Python does): every sleep ends when one
 * ran, and signals are only let in while we sleep (struct dial_wait).
 */

#include <sys/socket.h>
#include "libaccess/error.h"
#include "base/hold.h"
#include "libaccess/stream.h"
#include "shmring/inbox.h"
#include "shmring/proto.h"

#define WAIT_SLICE_NS UINT64_C(1000000000)
#define WAIT_EXPLAIN_MS 2000

enum { WAIT_ON = STREAM_NOTHING + 8 }; /* nothing was decided: look again */

/* ---- what accessd says by itself ---- */

static void wait_failed(struct oa_stream *stream, const struct wire_in *in)
{
	const char *text = "accessd ended this stream without a text";
	uint64_t code = OA_E_REFUSED;

	wire_get_string(in, PROTO_KEY_TEXT, &text);
	wire_get_u64(in, PROTO_KEY_CODE, &code);
	if (code <= OA_E_PINS || code > OA_E_LIMIT)
		code = OA_E_REFUSED;
	trouble_fail(&stream->trouble, (int)code, text);
}

static bool wait_heed(struct oa_stream *stream, const struct wire_in *in, struct diag *ret_text)
{
	const char *text = "";

	wire_get_string(in, PROTO_KEY_TEXT, &text);
	switch (in->type) {
	case PROTO_LOST:
		stream_lose(stream, *text ? text : "accessd asks to open again");
		return false;
	case PROTO_FAILED:
		wait_failed(stream, in);
		return false;
	case PROTO_NOTICE:
		diag_set(&stream->trouble.notice, "%s", text);
		return false;
	case PROTO_EXPLAINED:
		diag_set(ret_text, "%s", text);
		return true;
	default: /* WAKE has done its work by arriving; others are of newer minor versions */
		return false;
	}
}

/* Reads what accessd has sent. Returns true if an explanation came (in *ret_text). */
static bool wait_read_news(struct oa_stream *stream, struct diag *ret_text)
{
	bool is_explained = false;

	while (stream->session && !stream->trouble.failed) {
		_cleanup_(wire_in_fini) struct wire_in in;
		int r;

		wire_in_init(&in);
		r = wire_recv(stream->session->sock, &in, MSG_DONTWAIT);
		if (r == -EAGAIN || r == -EINTR)
			break;
		if (r == 0)
			is_explained |= wait_heed(stream, &in, ret_text);
		else
			stream_lose(stream, r == WIRE_E_CLOSED || r == -ECONNRESET
						? "accessd hung up"
						: "accessd sent a message that makes no sense");
	}
	return is_explained;
}

/* ---- sleeping ---- */

/* Sleeps without the lock. 0 or OA_E_INTERRUPTED, negative errno. */
static int wait_sleep(struct oa_stream *stream, int fd, uint64_t until_ns)
{
	struct dial_wait wait = stream->callers.wait;
	uint64_t start = base_now_ns();
	int r;

	pthread_mutex_unlock(&stream->lock);
	r = dial_wait(&wait, fd, until_ns);
	pthread_mutex_lock(&stream->lock);
	stream->has_slept = true;
	stream->stats.wait_ns += base_now_ns() - start;
	if (r == OA_E_INTERRUPTED)
		return diag_fail(&stream->trouble.error, r,
				 "a signal arrived while oa_next() waited; call it again");
	return r ? diag_fail(&stream->trouble.error, r, "waiting for accessd: %s", oa_error_name(r))
		 : 0;
}

static BASE_COLD int wait_served(struct oa_stream *stream, uint64_t deadline)
{
	struct session *session = stream->session;
	const uint64_t now_ns = base_now_ns();
	struct diag ignored;
	int r = 0;

	session_ref(session); /* it may be lost in here */
	progress_feed(&stream->progress, session->sock);
	inbox_tell_sleep(session->outbox, now_ns);
	grant_arm(&session->rank);
	if (!next_is_ready(stream)) {
		if (grant_wants_sleep(&session->rank))
			session_send(session, PROTO_KICK);
		r = wait_sleep(stream, session->sock,
			       BASE_MIN(BASE_MIN(deadline, now_ns + WAIT_SLICE_NS),
					stream->redial.remote.wake_ns));
		wait_read_news(stream, &ignored);
	}
	grant_disarm(&session->rank);
	session_unref(session);
	return r ? r : WAIT_ON;
}

/* ---- the way back ---- */

static int wait_refresh_token(struct oa_stream *stream)
{
	struct dial_open *ask = &stream->redial.ask;
	void *token;
	size_t size;

	if (stream_token(stream, NULL, &token, &size))
		return -ENOMEM;
	free(ask->token);
	ask->token = token;
	ask->token_size = size;
	ask->log_fd = stream->progress.log.fd;
	return 0;
}

static int wait_opened(struct oa_stream *stream, struct wire_in *opened)
{
	struct redial *redial = &stream->redial;
	struct session *session;
	int r = redial_session(redial, opened, stream_has_view(stream), &session, &redial->error);

	r = r ? r : stream_adopt(stream, session, &redial->error);
	if (!r)
		stream->stats.reconnects++;
	return r;
}

/* Would a later try go better? Not when the question itself is wrong. */
static bool wait_is_final(int r)
{
	return r == OA_E_DATASET || r == OA_E_PIPELINE || r == OA_E_TOKEN || r == OA_E_VERSION ||
	       r == OA_E_PERMISSION || r == OA_E_INVALID || r == OA_E_SAMPLE;
}

/* One step of the dial. 0: it serves; DIAL_AGAIN: not yet; a final error. */
static int wait_dial_step(struct oa_stream *stream)
{
	_cleanup_(wire_in_fini) struct wire_in opened;
	struct redial *redial = &stream->redial;
	int r = 0;

	wire_in_init(&opened);
	if (redial_pauses(redial))
		return DIAL_AGAIN;
	if (redial->dial.state == DIAL_IDLE)
		r = wait_refresh_token(stream);
	if (r)
		return r;
	pollable_forget(&stream->pollable); /* a step may close the dial's socket */
	r = redial_step(redial, &opened);
	if (r == 0)
		r = wait_opened(stream, &opened);
	if (r == 0 || r == DIAL_AGAIN)
		return r;
	if (wait_is_final(r))
		return trouble_fail(&stream->trouble, r, redial->error.text);
	redial_back_off(redial);
	return DIAL_AGAIN;
}

static BASE_COLD int wait_alone(struct oa_stream *stream, uint64_t deadline)
{
	int r = wait_dial_step(stream);

	if (r == 0)
		return WAIT_ON;
	if (r != DIAL_AGAIN)
		return stream->trouble.failed ? stream->trouble.failed
					      : diag_fail(&stream->trouble.error, r,
							  "connecting again: %s", oa_error_name(r));
	if (base_now_ns() >= deadline)
		return WAIT_ON;
	deadline = BASE_MIN(deadline, base_now_ns() + WAIT_SLICE_NS);
	deadline = BASE_MIN(deadline, stream->redial.remote.wake_ns);
	r = wait_sleep(stream, dial_fd(&stream->redial.dial),
		       BASE_MIN(stream->redial.dial.wake_ns, deadline));
	return r ? r : WAIT_ON;
}

/* ---- a bad sample ---- */

/* Sleeps until accessd says why, or until_ns. 0: *ret_is_known tells; else the end of the call. */
static int wait_explained(struct oa_stream *stream, struct session *session, uint64_t until_ns,
			  struct diag *ret_why, bool *ret_is_known)
{
	bool is_known = false;
	int r;

	do {
		r = wait_sleep(stream, session->sock, until_ns);
		is_known = !r && wait_read_news(stream, ret_why);
	} while (!r && !is_known && stream->session && !stream->trouble.failed &&
		 base_now_ns() < until_ns);
	*ret_is_known = is_known;
	return r;
}

/*
 * The cursor has come to a sample with status ERROR: accessd is asked why, once, and has
 * WAIT_EXPLAIN_MS for it; of which this call waits no longer than its own time.
 */
static BASE_COLD int wait_bad_sample(struct oa_stream *stream, int timeout_ms, uint64_t deadline)
{
	struct session *session = stream->session;
	const struct held *held = stream->chunks.now;
	long long id = slot_table_load_id(&held->ids[held->clean]);
	struct diag why = {""};
	bool is_known;
	int r;

	met_note(&stream->met, id);
	if (!stream->met.explain_ns) {
		session_ask_explanation(session, held->instance, held->clean);
		stream->met.explain_ns = dial_deadline(WAIT_EXPLAIN_MS);
	}
	session_ref(session); /* it may be lost in here */
	r = wait_explained(stream, session, BASE_MIN(deadline, stream->met.explain_ns), &why,
			   &is_known);
	session_unref(session);
	if (r)
		return r;
	if (stream->trouble.failed || !stream->session)
		return WAIT_ON;
	if (!is_known && base_now_ns() < stream->met.explain_ns)
		return diag_fail(&stream->trouble.error, OA_E_TIMEOUT,
				 "no batch within %d ms: sample %lld is bad, accessd is asked why",
				 timeout_ms, id);
	if (!is_known)
		diag_set(&why,
			 "sample %lld is bad; accessd did not say why within %d ms (policy "
			 "\"error\": choose skip or substitute to go on)",
			 id, WAIT_EXPLAIN_MS);
	stream->met.explain_ns = 0;
	return trouble_fail(&stream->trouble, OA_E_SAMPLE, why.text);
}

/* An epoch had no sample: nor will the next one have any, unless it is only this rank's. */
static BASE_COLD int wait_empty(struct oa_stream *stream, uint64_t deadline)
{
	int r = empty_epoch_fail(stream, deadline);

	return r ? r : WAIT_ON;
}

/* ---- oa_next() ---- */

/* STREAM_NOTHING, or the stream's end: what its samples come from has ended, and does not come back. */
static BASE_COLD int wait_look(struct oa_stream *stream)
{
	struct diag diag = {""};
	int r = remote_look(&stream->redial.remote, &diag);

	return r ? trouble_fail(&stream->trouble, r, diag.text) : STREAM_NOTHING;
}

static BASE_HOT int wait_batch(struct oa_stream *stream, int timeout_ms, uint64_t deadline,
			       struct oa_batch **ret)
{
	bool is_late = false;

	for (;;) {
		int r = next_try(stream, ret);

		if (r == STREAM_NOTHING && is_late)
			return stall_diagnose(stream, timeout_ms);
		if (r == STREAM_NOTHING || r == OA_E_SAMPLE)
			dial_wait_begin(&stream->callers.wait);
		if (r == STREAM_NOTHING)
			r = wait_look(stream);
		if (r == STREAM_NOTHING)
			r = stream->session ? wait_served(stream, deadline)
					    : wait_alone(stream, deadline);
		else if (r == OA_E_SAMPLE && !stream->trouble.failed)
			r = wait_bad_sample(stream, timeout_ms, deadline);
		else if (r == NEXT_EMPTY)
			r = wait_empty(stream, deadline);
		if (r != WAIT_ON)
			return r;
		is_late = base_now_ns() >= deadline;
	}
}

/* 0, or what oa_next() returns: the turn was not got. */
static int wait_take_turn(struct oa_stream *stream, int timeout_ms, uint64_t deadline)
{
	int r = callers_take_turn(&stream->callers, &stream->lock, deadline);

	if (r == OA_E_INTERRUPTED)
		return diag_fail(
		    &stream->trouble.error, r,
		    "a signal arrived while oa_next() waited for its turn; call it again");
	if (r)
		return diag_fail(
		    &stream->trouble.error, r,
		    "no batch within %d ms: another thread is waiting in oa_next() on this stream",
		    timeout_ms);
	return 0;
}

static BASE_HOT void wait_count(struct oa_stream *stream, uint64_t start, int r)
{
	const struct oa_stats *stats = &stream->stats;

	if (r == 0 && !stream->has_slept && !stream->has_copied) {
		stream->stats.ready_count++;
		stream->stats.ready_ns_total += base_now_ns() - start;
	}
	if (stream->session)
		inbox_tell_figures(stream->session->outbox,
				   &(struct inbox_figures){.samples = stats->samples,
							   .batches = stats->batches,
							   .wait_ns = stats->wait_ns,
							   .copied = stats->copied,
							   .epochs = stream->progress.n_ended});
}

/* ---- mixup, cutmix, mosaic ---- */

/* A buffer for the batch that will come, so that it is not lost for want of memory. 0, OA_E_PINS, -ENOMEM. */
static BASE_COLD int wait_reserve(struct oa_stream *stream)
{
	struct oa_stats *stats = &stream->stats;
	uint64_t most = (uint64_t)LAYOUT_MAX_PINS *
			BASE_MAX(stream->chunks.size / stream->schema.batch, (uint32_t)1);

	if (stream->trouble.failed || stream->progress.has_ended)
		return 0; /* there will be no batch */
	if (stats->outstanding >= most && (stream->flags & OA_KEEP))
		stats->kept += stream->schema.batch;
	else if (!(stream->flags & OA_COPY) && stats->outstanding >= most)
		return diag_fail(
		    &stream->trouble.error, OA_E_PINS,
		    "you hold %llu batches that mosaic, mixup, cutmix or an objective made, as "
		    "many "
		    "as two slots would "
		    "hold; release one before oa_next(), or open with OA_KEEP or OA_COPY",
		    (unsigned long long)stats->outstanding);
	if (batch_mixed_reserve(&stream->batch_mixed))
		return diag_fail(&stream->trouble.error, -ENOMEM,
				 "oa_next(): out of memory for a batch of mosaic, mixup, cutmix or "
				 "an objective");
	return 0;
}

/* A label that is no class: nothing can be made of the batch, nor of others with that sample. */
static BASE_COLD int wait_mix_fail(struct oa_stream *stream, struct oa_batch *batch, uint32_t at)
{
	const struct batch_mixed *batch_mixed = &stream->batch_mixed;
	const int64_t *label = batch_data(batch, batch_mixed->label);
	struct diag diag;

	diag_set(&diag,
		 "pipeline: mixup or cutmix: sample %lld has label %lld, and num_classes is %u: "
		 "give the number of the dataset's classes, or map the labels",
		 (long long)batch->ids[at], (long long)label[at], batch_mixed->ask.classes);
	batch_end(stream, batch);
	return trouble_fail(&stream->trouble, OA_E_PIPELINE, diag.text);
}

/* Mixes the batch, for which a buffer was reserved; drops the lock meanwhile. 0; OA_E_PIPELINE: a label fits no
 * class, the stream has failed and the batch is gone. */
static BASE_COLD int wait_mix(struct oa_stream *stream, struct oa_batch *batch)
{
	struct batch_mixed_buffer *buffer = batch_mixed_take(&stream->batch_mixed);
	uint64_t start = base_now_ns();
	uint32_t good;

	pthread_mutex_unlock(&stream->lock);
	good = batch_mixed_fill(&stream->batch_mixed, &stream->schema, batch, buffer->memory);
	pthread_mutex_lock(&stream->lock);
	if (good < batch->count) {
		batch_mixed_free(&stream->batch_mixed, buffer);
		return wait_mix_fail(stream, batch, good);
	}
	stream->stats.batch_mixed++;
	stream->stats.batch_mixed_ns += base_now_ns() - start;
	batch_let_go(stream, batch);
	batch->batch_mixed = buffer;
	batch->ids = (const int64_t *)(const void *)buffer->memory;
	return 0;
}

/* oa_next() looks by itself: accessd need not take us for asleep. */
static BASE_COLD void wait_disarm(struct oa_stream *stream)
{
	if (stream->session)
		grant_disarm(&stream->session->rank);
	stream->pollable.is_armed = false;
}

/* With the turn, which it passes on. */
static BASE_HOT int wait_in_turn(struct oa_stream *stream, int timeout_ms, uint64_t start,
				 uint64_t deadline, struct oa_batch **ret,
				 struct dial_wait *ret_wait)
{
	int r;

	stream->has_slept = stream->has_copied = false;
	if (stream->pollable.is_armed)
		wait_disarm(stream);
	r = stream->is_batch_mixed ? wait_reserve(stream) : 0;
	if (r == 0)
		r = wait_batch(stream, timeout_ms, deadline, ret);
	wait_count(stream, start, r);
	if (r == 0 && stream->is_batch_mixed)
		r = wait_mix(stream, *ret);
	if (r == OA_E_END)
		diag_fail(&stream->trouble.error, r, "all epochs are delivered");
	callers_pass_turn(&stream->callers, ret_wait);
	return r;
}

/* true: it was the last one of a stream that is closed, and frees it without the lock. */
static BASE_HOT bool wait_end_call(struct oa_stream *stream)
{
	if (--stream->callers.n == 0 && stream->is_closed)
		stream_shut(stream);
	return stream_is_unused(stream);
}

BASE_HOT int oa_next(struct oa_stream *stream, int timeout_ms, struct oa_batch **ret)
{
	struct dial_wait wait;
	uint64_t start, deadline;
	bool is_unused;
	int r;

	if (!stream || !ret)
		return OA_E_INVALID;
	if (!guard_is_ours(&stream->guard))
		return OA_E_FORKED;
	start = base_now_ns();
	deadline = timeout_ms < 0 ? UINT64_MAX : start + (uint64_t)timeout_ms * 1000000;
	pthread_mutex_lock(&stream->lock);
	wait.has_begun = false;
	stream->callers.n++; /* from here on oa_close() leaves the freeing to us */
	r = wait_take_turn(stream, timeout_ms, deadline);
	r = r ? r : wait_in_turn(stream, timeout_ms, start, deadline, ret, &wait);
	is_unused = wait_end_call(stream);
	pthread_mutex_unlock(&stream->lock);
	dial_wait_end(&wait);
	if (is_unused)
		stream_free(stream);
	return r;
}

/* ---- other calls that wait ---- */

void wait_enter(struct oa_stream *stream)
{
	BASE_HOLD(&stream->lock);
	stream->callers.n++;
}

void wait_leave(struct oa_stream *stream)
{
	bool is_unused;

	pthread_mutex_lock(&stream->lock);
	is_unused = wait_end_call(stream);
	pthread_mutex_unlock(&stream->lock);
	if (is_unused)
		stream_free(stream);
}

/* With the turn. An answer that oa_next() has asked for and not waited for is left to it. */
static int wait_for_session(struct oa_stream *stream, uint64_t deadline)
{
	struct diag ignored;
	int r = WAIT_ON;

	if (stream->session && !stream->met.explain_ns)
		wait_read_news(stream, &ignored);
	dial_wait_begin(&stream->callers.wait);
	while (r == WAIT_ON && !stream->session && !stream->trouble.failed) {
		if (base_now_ns() >= deadline)
			return diag_fail(&stream->trouble.error, OA_E_TIMEOUT,
					 "not connected again in time: %s",
					 stream->redial.error.text);
		r = wait_alone(stream, deadline);
	}
	if (r == WAIT_ON && !stream->session)
		trouble_repeat(&stream->trouble);
	return r != WAIT_ON ? r : stream->session ? 0 : stream->trouble.failed;
}

int wait_session(struct oa_stream *stream, int timeout_ms, uint64_t deadline)
{
	struct dial_wait wait = {.has_begun = false};
	int r;

	pthread_mutex_lock(&stream->lock);
	r = wait_take_turn(stream, timeout_ms, deadline);
	if (!r) {
		r = wait_for_session(stream, deadline);
		callers_pass_turn(&stream->callers, &wait);
	}
	pthread_mutex_unlock(&stream->lock);
	dial_wait_end(&wait);
	return r;
}

/* ---- oa_fd() ---- */

/* When there will be something to look at, if not on the socket; 0: nobody knows. */
static uint64_t wait_due_ns(struct oa_stream *stream)
{
	const struct session *session = stream->session;

	if (stream->met.explain_ns)
		return stream->met.explain_ns;
	if (next_is_ready(stream))
		return 1;
	if (!session)
		return BASE_MAX(stream->redial.dial.wake_ns, (uint64_t)1);
	if (grant_wants_sleep(&session->rank))
		session_send(session, PROTO_KICK);
	return stream->redial.remote.url.text ? base_now_ns() + WAIT_SLICE_NS : 0;
}

static int wait_arm(struct oa_stream *stream)
{
	struct session *session = stream->session;
	struct pollable *pollable = &stream->pollable;
	int r = pollable_watch(pollable, session ? session->sock : dial_fd(&stream->redial.dial));

	if (r)
		return r;
	if (session) {
		inbox_tell_sleep(session->outbox, base_now_ns());
		grant_arm(&session->rank);
	}
	pollable->is_armed = session != NULL;
	pollable_set_timer(pollable, wait_due_ns(stream));
	return pollable->epoll_fd;
}

int oa_fd(struct oa_stream *stream)
{
	int r;

	if (!stream)
		return -EINVAL;
	if (!guard_is_ours(&stream->guard))
		return -EPERM;
	BASE_HOLD(&stream->lock);
	r = wait_arm(stream);
	if (r < 0)
		diag_fail(&stream->trouble.error, r, "oa_fd(): %s", oa_error_name(r));
	return r;
}
