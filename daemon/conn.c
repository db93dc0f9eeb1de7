/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections.
 *
 * The socket is SOCK_SEQPACKET: there are no half messages, and a message that is not well formed
 * ends the conversation. Sending never blocks; a client that lets its queue fill up is shut, for it
 * will look at shared memory before it misses a wake, and nothing else is sent often.
 *
 * A process that forked leaves its socket open in the child, so besides hang-up the exit of the
 * process that connected is watched (SO_PEERPIDFD, or pidfd_open of the peer's pid, confirmed by
 * the nonce that came back in OPEN).
 */
#include "daemon/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/chores.h"
#include "daemon/describe.h"
#include "daemon/job.h"
#include "daemon/node.h"
#include "daemon/opening.h"
#include "daemon/param.h"
#include "daemon/pump.h"
#include "daemon/source.h"
#include "daemon/status.h"
#include "daemon/stream.h"
#include "libaccess/libaccess.h"

#define HELLO_NS UINT64_C(10000000000) /* a connection that says nothing for so long is shut */
#define GRACE_NS UINT64_C(2000000000)  /* for a client that was refused to hear it and hang up */
#define REST_NS UINT64_C(50000000)     /* a client that floods us is not heard for so long */
#define MOST_HEARD 500   /* messages within such a time: no honest job has so much to say */
#define MOST_UNREAD 8192 /* bytes of ours that a client may leave unread and ask for the status */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ---- sending ---- */

void conn_shut(struct conn *conn)
{
	if (conn->sending_shut)
		return;
	conn->sending_shut = true;
	shutdown(conn->fd, SHUT_WR);
	if (conn->state == CONN_RUNS)
		return; /* its process may hold slots: until it hangs up */
	conn->state = CONN_SHUT;
	loop_timer_set(conn->deadline, GRACE_NS);
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

/* What is lost without harm: it has messages enough to wake it. */
static void send_or_drop(struct conn *conn, struct wire_out *out)
{
	int r = conn->sending_shut ? 0 : wire_send(conn->fd, out, MSG_DONTWAIT);

	wire_out_fini(out);
	if (r && r != -EAGAIN && r != WIRE_E_CLOSED)
		conn_shut(conn);
}

void conn_send_text(struct conn *conn, uint16_t type, uint64_t code, const char *text)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_put_u64(&out, PROTO_KEY_CODE, code);
	wire_put_string(&out, PROTO_KEY_TEXT, text);
	if (type == PROTO_NOTICE)
		send_or_drop(conn, &out);
	else
		conn_send(conn, &out);
}

void conn_refuse(struct conn *conn, uint64_t code, const char *text)
{
	log_line(LOG_LEVEL_INFO, "client-refused", "pid=%ld uid=%u reason=\"%.500s\"",
		 (long)conn->pid, (unsigned)conn->uid, text);
	conn->node->counters.refused++;
	conn_send_text(conn, PROTO_REFUSED, code, text);
	conn_shut(conn);
}

void conn_progress(struct conn *conn, const char *what, uint64_t done, uint64_t total)
{
	struct wire_out out;

	wire_out_init(&out, PROTO_PROGRESS);
	wire_put_string(&out, PROTO_KEY_TEXT, what);
	wire_put_u64(&out, PROTO_KEY_DONE, done);
	wire_put_u64(&out, PROTO_KEY_TOTAL, total);
	send_or_drop(conn, &out);
}

void conn_wake(struct conn *conn)
{
	struct wire_out out;

	wire_out_init(&out, PROTO_WAKE);
	send_or_drop(conn, &out);
}

/* ---- ending ---- */

void conn_free(struct conn *conn)
{
	struct node *node = conn->node;

	LIST_REMOVE(conn, link);
	if (--node->n_conns == 0)
		node_is_idle(node);
	loop_unwatch(&conn->watch);
	loop_unwatch(&conn->pid_watch);
	loop_unwatch(&conn->deadline);
	chores_forget(conn);
	if (conn->job)
		job_free(conn->job);
	if (conn->stream)
		stream_unref(conn);
	if (conn->source)
		source_unref(conn->source);
	domain_unref(conn->domain);
	request_fini(&conn->request);
	base_close(&conn->pid_fd);
	base_close(&conn->fd);
	free(conn);
}

static void on_exit_of_process(void *arg)
{
	conn_free(arg);
}

static void on_readable(void *arg);

static void on_deadline(void *arg)
{
	struct conn *conn = arg;

	if (conn->state == CONN_SHUT)
		conn_free(conn);
	else if (!conn->watch && /* it has rested */
		 loop_watch_fd(conn->node->loop, conn->fd, on_readable, conn, &conn->watch))
		loop_timer_set(conn->deadline, REST_NS);
	else if (conn->state == CONN_NEW)
		conn_refuse(conn, OA_E_REFUSED, "said nothing for 10 s after connecting");
}

/* ---- an open, step by step ---- */

void conn_source_refused(struct conn *conn, const char *text)
{
	if (!opening_falls_back(conn))
		conn_refuse(conn, OA_E_DATASET, text);
}

static void describe(struct conn *conn)
{
	struct source *source = conn->source;

	conn->source = NULL;
	conn->describes = false;
	conn->state = CONN_GREETED;
	describe_answer(conn, &source->domain->catalogs, source->dataset);
	pipeline_free(conn->request.pipeline);
	conn->request.pipeline = NULL;
	source_unref(source);
}

void conn_source_ready(struct conn *conn, const char *unused)
{
	struct source *other;

	(void)unused;
	if (!opening_is_settled(conn))
		return;
	if (conn->describes) {
		describe(conn);
		return;
	}
	LIST_FOREACH(other, &conn->source->domain->sources, link)
	{ /* the same version is open already? */
		if (other == conn->source || other->how != conn->source->how ||
		    other->state != SOURCE_READY || other->reopening ||
		    strcmp(other->path, conn->source->path) ||
		    memcmp(dataset_version(other->dataset), dataset_version(conn->source->dataset),
			   sizeof(struct hash_id)))
			continue;
		other->users++;
		source_unref(conn->source);
		conn->source = other;
		break;
	}
	stream_request(conn);
}

/* What the stream's earlier jobs found counts for the next one, too: it would be shown the same. */
static bool exceeds_budget(const struct conn *conn, char *ret, size_t size)
{
	const struct stream *stream = conn->stream;

	if (stream->policy == PROTO_POLICY_ERROR || !conn->request.has_budget ||
	    stream->bad.count <= conn->request.budget)
		return false;
	snprintf(ret, size,
		 "%llu samples of this dataset are known to be bad, more than the budget of %llu: "
		 "accessd's log names them",
		 (unsigned long long)stream->bad.count, (unsigned long long)conn->request.budget);
	return true;
}

void conn_stream_ready(struct conn *conn)
{
	char text[256];

	if (exceeds_budget(conn, text, sizeof(text)))
		conn_refuse(conn, OA_E_SAMPLE, text);
	else
		job_open(conn);
}

static void on_open(struct conn *conn, struct wire_in *in)
{
	struct diag diag = {"out of memory"};
	int code = request_parse(&conn->request, in, conn->nonce, &diag);

	if (!code && conn->node->draining) {
		diag_set(&diag, "accessd is shutting down: try again");
		code = OA_E_UNREACHABLE;
	}
	if (!code)
		code = tenant_enter(conn, &diag);
	if (!code && opening_begin(conn, conn->request.dataset))
		code = OA_E_MEMORY;
	if (code) {
		conn_refuse(conn, (uint64_t)code, diag.text);
		return;
	}
	conn->node->counters.opens++;
	conn->state = CONN_WAITS_SOURCE;
	loop_timer_stop(conn->deadline);
}

static void on_describe(struct conn *conn, const struct wire_in *in)
{
	_cleanup_free_ char *path = request_text(in, PROTO_KEY_DATASET, PARAM_TEXT_MAX);
	const char *unused;
	bool has_pipeline = wire_get_string(in, PROTO_KEY_PIPELINE, &unused) == 0;
	struct diag diag;
	int code;

	if (!path || *path != '/') {
		diag_set(&diag, REQUEST_PATH_TEXT, PARAM_TEXT_MAX);
		conn_refuse(conn, OA_E_INVALID, diag.text);
	} else if (conn->node->draining) {
		conn_refuse(conn, OA_E_UNREACHABLE, "accessd is shutting down: try again");
	} else if ((code = tenant_enter(conn, &diag))) {
		conn_refuse(conn, (uint64_t)code, diag.text);
	} else if (has_pipeline && (code = request_compile(&conn->request, in, &diag))) {
		conn_refuse(conn, (uint64_t)code, diag.text);
	} else if (opening_begin(conn, path)) {
		conn_refuse(conn, OA_E_MEMORY, "out of memory");
	} else {
		conn->describes = true;
		conn->state = CONN_WAITS_SOURCE;
	}
}

/* ---- other messages ---- */

static void send_welcome(struct conn *conn)
{
	struct wire_out out;

	base_random(conn->nonce, sizeof(conn->nonce));
	wire_out_init(&out, PROTO_WELCOME);
	wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR);
	wire_put_u64(&out, PROTO_KEY_MINOR, PROTO_MINOR);
	wire_put_u64(&out, PROTO_KEY_PID, (uint64_t)getpid());
	wire_put_bytes(&out, PROTO_KEY_NONCE, conn->nonce, sizeof(conn->nonce));
	wire_put_string(&out, PROTO_KEY_VERSION, PACKAGE_VERSION);
	conn_send(conn, &out);
}

static void on_hello(struct conn *conn, const struct wire_in *in)
{
	struct diag diag;
	uint64_t major = 0;
	char text[256];
	int code;

	wire_get_u64(in, PROTO_KEY_MAJOR, &major);
	if (major != PROTO_MAJOR) {
		snprintf(text, sizeof(text),
			 "the client speaks protocol %llu, accessd %s speaks %d: upgrade %s",
			 (unsigned long long)major, PACKAGE_VERSION, PROTO_MAJOR,
			 major < PROTO_MAJOR ? "the client's libaccess" : "accessd");
		conn_refuse(conn, OA_E_VERSION, text);
		return;
	}
	code = tenant_greet(conn, &diag);
	if (code) {
		conn_refuse(conn, (uint64_t)code, diag.text);
		return;
	}
	wire_get_u64(in, PROTO_KEY_MINOR, &conn->request.minor);
	conn->request.program = request_text(in, PROTO_KEY_PROGRAM, REQUEST_NAME_MAX);
	conn->state = CONN_GREETED;
	loop_timer_stop(conn->deadline);
	send_welcome(conn);
}

static void on_explain(struct conn *conn, const struct wire_in *in)
{
	uint64_t instance = 0, position = 0;
	const char *text;

	wire_get_u64(in, PROTO_KEY_INSTANCE, &instance);
	wire_get_u64(in, PROTO_KEY_POSITION, &position);
	text = bad_reason_of(&conn->stream->bad, instance, (uint32_t)position);
	conn_send_text(conn, PROTO_EXPLAINED, OA_E_SAMPLE,
		       text ? text : "the reason is not known any more; accessd's log has it");
}

static bool is_allowed(const struct conn *conn, uint16_t type)
{
	switch (type) {
	case PROTO_HELLO:
		return conn->state == CONN_NEW;
	case PROTO_OPEN:
	case PROTO_DESCRIBE:
	case PROTO_CACHE:
		return conn->state == CONN_GREETED;
	case PROTO_KICK:
	case PROTO_EXPLAIN:
	case PROTO_PLAN:
		return conn->state == CONN_RUNS;
	case PROTO_STATUS:
		return conn->state == CONN_GREETED || conn->state == CONN_RUNS;
	default:
		return false;
	}
}

static void misbehaved(struct conn *conn, const char *how)
{
	log_line(LOG_LEVEL_WARN, "client-misbehaved", "pid=%ld uid=%u how=\"%s\"", (long)conn->pid,
		 (unsigned)conn->uid, how);
	conn_refuse(conn, OA_E_REFUSED, how);
	if (!conn->job)
		conn_free(conn);
	else if (conn->job->active)
		job_fail(conn->job, OA_E_REFUSED, how);
}

/* Each answer is a memory and a descriptor on the way, which count until the client has read it. */
static void on_status(struct conn *conn)
{
	_cleanup_close_ int fd = -1;
	struct wire_out out;
	int unread = 0;

	if (ioctl(conn->fd, SIOCOUTQ, &unread) == 0 && unread > MOST_UNREAD) {
		misbehaved(conn, "asks for the status and does not read the answers");
		return;
	}
	fd = status_new(conn);
	if (fd < 0) {
		conn_refuse(conn, OA_E_MEMORY, "out of memory for the status");
		return;
	}
	wire_out_init(&out, PROTO_STATUS_REPLY);
	wire_put_fd(&out, fd);
	conn_send(conn, &out);
}

/* A part's bitmap and a plan log; a list. */
static unsigned most_fds(uint16_t type)
{
	if (type == PROTO_OPEN)
		return 2;
	return type == PROTO_PLAN;
}

static void dispatch(struct conn *conn, struct wire_in *in)
{
	if (!is_allowed(conn, in->type) || in->n_fds > most_fds(in->type)) {
		misbehaved(conn, "a message that is not allowed here");
		return;
	}
	switch (in->type) {
	case PROTO_HELLO:
		on_hello(conn, in);
		break;
	case PROTO_OPEN:
		on_open(conn, in);
		break;
	case PROTO_DESCRIBE:
		on_describe(conn, in);
		break;
	case PROTO_KICK:
		pump_soon(conn->stream);
		break;
	case PROTO_EXPLAIN:
		on_explain(conn, in);
		break;
	case PROTO_CACHE:
		chores_ask(conn, in);
		break;
	case PROTO_PLAN:
		lists_take(conn->job, in);
		break;
	default:
		on_status(conn);
	}
}

static bool is_flooding(struct conn *conn)
{
	uint64_t now_ns = base_now_ns();

	if (now_ns - conn->heard_ns > REST_NS) {
		conn->heard_ns = now_ns;
		conn->heard = 0;
	}
	return ++conn->heard > MOST_HEARD &&
	       (conn->state == CONN_GREETED || conn->state == CONN_RUNS);
}

/* One message a turn: each client waits for its turn like all others, and one that floods us waits
 * longer: its own queue is full then, and ours does nothing else. */
static void on_readable(void *arg)
{
	struct conn *conn = arg;
	struct wire_in in;
	int r;

	if (is_flooding(conn)) {
		loop_unwatch(&conn->watch);
		loop_timer_set(conn->deadline, REST_NS);
		return;
	}
	wire_in_init(&in);
	r = loop_recv(conn->fd, &in);
	if (r == WIRE_E_CLOSED || (r < 0 && r != -EAGAIN && r != -EINTR))
		conn_free(conn);
	else if (r > 0 && conn->state != CONN_SHUT && !conn->sending_shut)
		misbehaved(conn, "a message that is not well formed");
	else if (r == 0 && conn->state != CONN_SHUT && !conn->sending_shut)
		dispatch(conn, &in);
	wire_in_fini(&in);
}

/* ---- accepting ---- */

static int peer_pid_fd(int fd, pid_t pid)
{
	int pid_fd = -1;
	socklen_t size = sizeof(pid_fd);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pid_fd, &size) == 0)
		return pid_fd;
	return pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

static int watch_peer(struct conn *conn)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	struct loop *loop = conn->node->loop;
	int r;

	if (getsockopt(conn->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
		return -errno;
	conn->pid = peer.pid;
	conn->uid = peer.uid;
	conn->gid = peer.gid;
	conn->pid_fd = peer_pid_fd(conn->fd, peer.pid);
	r = loop_watch_fd(loop, conn->fd, on_readable, conn, &conn->watch);
	if (!r && conn->pid_fd >= 0)
		r = loop_watch_fd(loop, conn->pid_fd, on_exit_of_process, conn, &conn->pid_watch);
	if (!r)
		r = loop_timer_new(loop, on_deadline, conn, &conn->deadline);
	if (!r)
		loop_timer_set(conn->deadline, HELLO_NS);
	return r;
}

struct conn *conn_new(struct node *node, int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		close(fd);
		return NULL;
	}
	conn->node = node;
	conn->fd = fd;
	conn->pid_fd = -1;
	request_init(&conn->request);
	LIST_INSERT_HEAD(&node->conns, conn, link);
	node->n_conns++;
	if (watch_peer(conn)) {
		conn_free(conn);
		return NULL;
	}
	return conn;
}

bool conn_is_spare(const struct conn *conn)
{
	return conn->state == CONN_NEW || conn->state == CONN_GREETED || conn->state == CONN_SHUT;
}
