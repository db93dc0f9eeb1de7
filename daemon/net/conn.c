/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sending never blocks; a client that lets its queue fill up is shut, for it will look at shared memory before it misses a
 * wake, and nothing else is sent often.
 */
#include "daemon/net/conn.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/log.h"
#include "daemon/node.h"

#define GRACE_NS UINT64_C(2000000000) /* for a client that was refused to hear it and hang up */

void conn_shut(struct conn *conn)
{
	if (conn->sending_shut)
		return;
	conn->sending_shut = true;
	shutdown(conn->fd, SHUT_WR);
	if (conn->state == CONN_RUNS)
		return; /* its process may hold slots: until it hangs up */
	conn->state = CONN_SHUT;
	loop_timer_set(conn->ear.deadline, GRACE_NS);
}

void conn_send(struct conn *conn, struct wire_out *out)
{
	int r = conn->sending_shut ? 0 : wire_send(conn->fd, out, MSG_DONTWAIT);

	wire_out_fini(out);
	if (r && r != WIRE_E_CLOSED) {
		log_line(LOG_LEVEL_WARN, "client-shut",
			 "pid=%ld reason=\"does not read its messages\"", (long)conn->pid);
		conn_shut(conn);
	}
}

void conn_tell_of(struct conn *conn, uint16_t type, const struct wire_part *parts)
{
	struct wire_out out;

	wire_out_make_of(&out, type, parts);
	conn_send(conn, &out);
}

/* What is lost without harm: it has messages enough to wake it. */
static void tell_or_drop(struct conn *conn, uint16_t type, const struct wire_part *parts)
{
	int r = conn->sending_shut ? 0 : wire_tell_of(conn->fd, MSG_DONTWAIT, type, parts);

	if (r && r != -EAGAIN && r != WIRE_E_CLOSED)
		conn_shut(conn);
}

void conn_send_text(struct conn *conn, uint16_t type, uint64_t code, const char *text)
{
	const struct wire_part *parts =
	    WIRE_PARTS(WIRE_U64(PROTO_KEY_CODE, code), WIRE_STRING(PROTO_KEY_TEXT, text));

	if (type == PROTO_NOTICE)
		tell_or_drop(conn, type, parts);
	else
		conn_tell_of(conn, type, parts);
}

void conn_refuse(struct conn *conn, uint64_t code, const char *fmt, ...)
{
	struct diag diag;
	va_list args;

	va_start(args, fmt);
	vsnprintf(diag.text, sizeof(diag.text), fmt, args);
	va_end(args);
	log_line(LOG_LEVEL_INFO, "client-refused", "pid=%ld uid=%u reason=\"%.500s\"",
		 (long)conn->pid, (unsigned)conn->uid, diag.text);
	conn->node->counters.refused++;
	conn_send_text(conn, PROTO_REFUSED, code, diag.text);
	conn_shut(conn);
}

void conn_progress(struct conn *conn, const char *what, uint64_t done, uint64_t total)
{
	tell_or_drop(conn, PROTO_PROGRESS,
		     WIRE_PARTS(WIRE_STRING(PROTO_KEY_TEXT, what), WIRE_U64(PROTO_KEY_DONE, done),
				WIRE_U64(PROTO_KEY_TOTAL, total)));
}

void conn_wake(struct conn *conn)
{
	tell_or_drop(conn, PROTO_WAKE, WIRE_PARTS(WIRE_NOTHING));
}

/* ---- steps of an open ---- */

void conn_source_ready(struct conn *conn)
{
	conn->steps->source_ready(conn);
}

void conn_source_refused(struct conn *conn, const char *text)
{
	conn->steps->source_refused(conn, text);
}

void conn_stream_ready(struct conn *conn)
{
	conn->steps->stream_ready(conn);
}
