/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream that is LOST or FAILED does nothing any more, but its memory is counted as long as a
 * connection stands whose process may map it.
 */
#include "daemon/serve/stream_fail.h"

#include "base/log.h"
#include "daemon/net/conn.h"
#include "daemon/net/porter.h"
#include "daemon/node.h"
#include "daemon/serve/group.h"
#include "daemon/serve/job.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/variant.h"
#include "daemon/serve/variant_make.h"
#include "daemon/tenant/domain.h"
#include "libaccess/libaccess.h"

/* Reader and worker parent let go of its memory. */
void stream_detach(struct stream *stream)
{
	if (stream->shared.is_leaving)
		return;
	stream->shared.is_leaving = true;
	/* Who is the last to hold memory frees it, which takes 0.2 ms a MiB. That is not us, whatever became of the others:
	 * what we have mapped we keep open, too, until it is unmapped. */
	porter_close(&stream->node->porters, PORTER_OWN, &stream->shared.arena_fd);
	VARIANT_EACH(variant, stream)
		variant_let_go(variant);
	if (stream->shared.queue.head) {
		queue_close(&stream->shared.queue);
		workers_remove(&stream->domain->workers, stream->shared.queue.number);
		reading_detach(&stream->domain->reading, stream->shared.queue.number);
	}
}

/* Ends the stream in `state`; each job is told by fn. */
static void end_stream(struct stream *stream, enum stream_state state, uint64_t code,
		       const char *text)
{
	if (stream->state > STREAM_RUNS)
		return;
	stream->state = state;
	loop_timer_stop(stream->pump_timer);
	group_leave_all(stream);
	for (unsigned i = 0; i < CAROUSEL_MAX_JOBS; i++) {
		struct job *job = stream->users.job[i];

		if (job && state == STREAM_LOST)
			job_lost(job, text);
		else if (job)
			job_fail(job, code, text);
	}
	stream_detach(stream);
	if (!stream->users.n_conns)
		loop_timer_set(stream->linger_timer, 0);
}

/* Connections that wait for a stream which will never run. code 0: they are to open again. */
static void refuse_waiting(struct stream *stream, uint64_t code, const char *text)
{
	BASE_EACH_LEAVING(conn, &stream->node->clients.list, link) {
		if (conn->stream != stream || conn->state != CONN_WAITS_STREAM)
			continue;
		if (code) {
			conn_refuse(conn, code, "%s", text);
		} else {
			conn_send_text(conn, PROTO_LOST, 0, text);
			conn_shut(conn);
		}
	}
}

void stream_fail(struct stream *stream, uint64_t code, const char *text)
{
	if (stream->state > STREAM_RUNS)
		return;
	log_line(LOG_LEVEL_ERROR, "stream-failed", "queue=%u reason=\"%.500s\"",
		 stream->shared.queue.number, text);
	end_stream(stream, STREAM_FAILED, code, text);
	refuse_waiting(stream, code, text);
}

void stream_lose(struct stream *stream, const char *text)
{
	end_stream(stream, STREAM_LOST, 0, text);
	refuse_waiting(stream, 0, text);
}

void stream_lose_memory(struct stream *stream)
{
	end_stream(stream, STREAM_LOST, 0, "the worker parent died and was replaced");
	refuse_waiting(stream, OA_E_REFUSED,
		       "the worker parent died while the stream was opened: open it again");
}
