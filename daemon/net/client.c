/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients, from their connect() to their end: what each may say, and what follows from it.
 *
 * The socket is SOCK_SEQPACKET: there are no half messages, and a message that is not well formed
 * ends the conversation.
 *
 * A process that forked leaves its socket open in the child, so besides hang-up the exit of the
 * process that connected is watched (SO_PEERPIDFD, or pidfd_open of the peer's pid, confirmed by
 * the nonce that came back in OPEN).
 */
#include "daemon/net/client.h"

#include <linux/sockios.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/cache/chores.h"
#include "daemon/net/bad_answer.h"
#include "daemon/net/conn.h"
#include "daemon/net/describe.h"
#include "daemon/net/guest.h"
#include "daemon/net/opening.h"
#include "daemon/net/porter.h"
#include "daemon/net/prepare.h"
#include "daemon/net/status.h"
#include "daemon/node.h"
#include "daemon/param.h"
#include "daemon/serve/job.h"
#include "daemon/serve/job_open.h"
#include "daemon/serve/source.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/tenant/domain.h"
#include "daemon/tenant/rights.h"
#include "libaccess/libaccess.h"

#define HELLO_NS UINT64_C(10000000000) /* a connection that says nothing for so long is shut */
#define REST_NS UINT64_C(50000000)     /* a client that floods us is not heard for so long */
#define MOST_HEARD 500   /* messages within such a time: no honest job has so much to say */
#define MOST_UNREAD 8192 /* bytes of ours that a client may leave unread and ask for more */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

/* ---- ending ---- */

void client_free(struct conn *conn)
{
	struct node *node = conn->node;

	watch_leave(&node->watching, &conn->watcher);
	LIST_REMOVE(conn, link);
	if (--node->clients.n == node->watching.n)
		node_is_idle(node);
	loop_unwatch(&conn->ear.watch);
	loop_unwatch(&conn->ear.pid_watch);
	loop_unwatch(&conn->ear.deadline);
	porter_cancel(&conn->ear.errand);
	chores_forget(conn);
	describe_forget(conn);
	if (conn->job) {
		job_free(conn->job);
		if (!node->draining) /* else it goes on with the next accessd */
			programs_end(&node->clients.programs, conn->uid, conn->pid);
	}
	if (conn->stream)
		stream_unref(conn);
	if (conn->source)
		source_unref(conn->source);
	domain_unref(conn->domain);
	porter_close(&node->porters, conn->uid, &conn->request.part.fd);
	porter_close(&node->porters, conn->uid, &conn->request.log_fd);
	request_fini(&conn->request);
	guest_unref(conn->ear.guest);
	base_close(&conn->ear.pid_fd);
	porter_close(&node->porters, conn->uid, &conn->fd);
	free(conn);
}

static void on_exit_of_process(void *arg)
{
	client_free(arg);
}

static void on_readable(void *arg);

static void on_deadline(void *arg)
{
	struct conn *conn = arg;

	if (conn->state == CONN_SHUT)
		client_free(conn);
	else if (!conn->ear.watch && !conn->ear.errand && /* it has rested */
		 loop_watch_fd(conn->node->loop, conn->fd, on_readable, conn, &conn->ear.watch))
		loop_timer_set(conn->ear.deadline, REST_NS);
	else if (conn->state == CONN_NEW)
		conn_refuse(conn, OA_E_REFUSED, "said nothing for 10 s after connecting");
}

/* ---- an open, step by step ---- */

static void on_source_refused(struct conn *conn, const char *text)
{
	if (!opening_falls_back(conn))
		conn_refuse(conn, OA_E_DATASET, "%s", text);
}

static void describe(struct conn *conn)
{
	struct source *source = conn->source;

	conn->source = NULL;
	conn->describes = false;
	describe_answer(conn, source);
	source_unref(source);
}

static void on_source_ready(struct conn *conn)
{
	struct source *other;

	if (!opening_is_settled(conn))
		return;
	if (conn->describes) {
		describe(conn);
		return;
	}
	LIST_FOREACH(other, &conn->source->domain->sources,
		     link) { /* the same version is open already? */
		if (other == conn->source || other->state != SOURCE_READY || other->reopening ||
		    !source_is_same(other, conn->source))
			continue;
		other->users++;
		source_unref(conn->source);
		conn->source = other;
		break;
	}
	stream_request(conn);
}

/* What the stream's earlier jobs found counts for the next one, too: it would be shown the same. */
static void on_stream_ready(struct conn *conn)
{
	const struct stream *stream = conn->stream;
	const uint64_t budget = request_budget(&conn->request, stream->geometry.n_samples);

	if (stream->asked.policy != PROTO_POLICY_ERROR && stream->bad.count > budget)
		conn_refuse(
		    conn, OA_E_SAMPLE,
		    "%llu samples of this dataset are known to be bad, more than the budget of "
		    "%llu: "
		    "with a larger one Loader.bad_samples and oa_bad_samples(3) list them, and "
		    "access-ctl bad while a job runs",
		    (unsigned long long)stream->bad.count, (unsigned long long)budget);
	else if (prepare_is_ready(conn))
		job_open(conn);
}

static void on_open(struct conn *conn, const struct message_open *open, struct wire_in *in)
{
	struct diag diag = {"out of memory"};
	int code = request_parse(&conn->request, open, in, conn->nonce, &diag);

	if (!code && conn->node->draining)
		code = diag_fail(&diag, OA_E_UNREACHABLE, "accessd is shutting down: try again");
	if (!code)
		code = rights_enter(conn, &diag);
	if (!code)
		code = rights_may_have_job(conn, &diag);
	if (!code)
		code = opening_begin(conn, conn->request.dataset, &diag);
	if (code) {
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
		return;
	}
	conn->node->counters.opens++;
	conn->state = CONN_WAITS_SOURCE;
	watch_leave(&conn->node->watching, &conn->watcher); /* a job keeps accessd running */
	loop_timer_stop(conn->ear.deadline);
}

static void on_describe(struct conn *conn, const struct message_describe *describe)
{
	struct diag diag;
	int code;

	if (!request_is_dataset(describe->dataset)) {
		conn_refuse(conn, OA_E_INVALID, "%s", REQUEST_PATH_TEXT);
	} else if (conn->node->draining) {
		conn_refuse(conn, OA_E_UNREACHABLE, "accessd is shutting down: try again");
	} else if ((code = rights_enter(conn, &diag))) {
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
	} else if (describe->pipeline &&
		   (code = request_compile(&conn->request, describe->pipeline, &diag))) {
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
	} else if ((code = opening_begin(conn, describe->dataset, &diag))) {
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
	} else {
		conn->describes = true;
		conn->state = CONN_WAITS_SOURCE;
	}
}

/* ---- other messages ---- */

static void on_hello(struct conn *conn, const struct message_hello *hello)
{
	const uint64_t major = hello->major;
	struct diag diag;
	int code;

	if (major != PROTO_MAJOR) {
		conn_refuse(conn, OA_E_VERSION,
			    "the client speaks protocol %llu, accessd %s speaks %d: upgrade %s",
			    (unsigned long long)major, PACKAGE_VERSION, PROTO_MAJOR,
			    major < PROTO_MAJOR ? "the client's libaccess" : "accessd");
		return;
	}
	code = rights_greet(conn, &diag);
	if (code) {
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
		return;
	}
	conn->request.minor = hello->minor;
	conn->request.program = request_name(hello->program);
	conn->state = CONN_GREETED;
	loop_timer_stop(conn->ear.deadline);
	base_random(conn->nonce, sizeof(conn->nonce));
	conn_tell(conn, PROTO_WELCOME, WIRE_U64(PROTO_KEY_MAJOR, PROTO_MAJOR),
		  WIRE_U64(PROTO_KEY_MINOR, PROTO_MINOR),
		  WIRE_U64(PROTO_KEY_PID, (uint64_t)getpid()),
		  WIRE_BYTES(PROTO_KEY_NONCE, conn->nonce, sizeof(conn->nonce)),
		  WIRE_STRING(PROTO_KEY_VERSION, PACKAGE_VERSION),
		  WIRE_STRING(PROTO_KEY_BUCKETS,
			      *conn->node->place.buckets ? conn->node->place.buckets : NULL));
}

static void on_explain(struct conn *conn, const struct message_explain *explain)
{
	const char *text =
	    bad_reason_of(&conn->stream->bad, explain->instance, (uint32_t)explain->position);
	char forgotten[LOG_PLACE_MAX + 64];

	snprintf(forgotten, sizeof(forgotten),
		 "the reason is not known any more; accessd's log (%s) has it", log_place());
	conn_send_text(conn, PROTO_EXPLAINED, OA_E_SAMPLE, text ? text : forgotten);
}

/* One that is not as it must be ends the job, and nobody else's. */
static void on_plan(struct job *job, const struct message_plan *plan, struct wire_in *in)
{
	const struct lists_job of = {job->stream->carousel, job->number};
	struct diag diag;

	if (!job->active)
		return; /* it failed, and does not know it yet */
	if (lists_take(&job->lists, &of, plan->epoch, wire_take_fd(in, plan->epoch_fd), &diag))
		job_fail(job, OA_E_INVALID, diag.text);
	else
		stream_turn_soon(job->stream);
}

static bool is_allowed(const struct conn *conn, uint16_t type)
{
	switch (type) {
	case PROTO_HELLO:
		return conn->state == CONN_NEW;
	case PROTO_OPEN:
	case PROTO_DESCRIBE:
	case PROTO_CACHE:
	case PROTO_BAD:
		return conn->state == CONN_GREETED;
	case PROTO_WATCH:
		return PROTO_MINOR >= PROTO_SINCE_WATCH && conn->state == CONN_GREETED;
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
	conn_refuse(conn, OA_E_REFUSED, "%s", how);
	if (!conn->job)
		client_free(conn);
	else if (conn->job->active)
		job_fail(conn->job, OA_E_REFUSED, how);
}

static void on_cache(struct conn *conn, const struct message_cache *asked)
{
	struct diag diag;
	const int code = asked->who ? 0 : rights_enter(conn, &diag);

	if (code && conn->uid == 0)
		diag_set(&diag,
			 "nothing is kept for root, whose jobs are not served (serve_root): say "
			 "whose cache is meant, by --user UID or --user everybody");
	if (code)
		conn_refuse(conn, (uint64_t)code, "%s", diag.text);
	else
		chores_ask(conn, asked);
}

static void on_status(struct conn *conn)
{
	_cleanup_close_ int fd = status_new(conn);

	if (fd < 0)
		conn_refuse(conn, OA_E_MEMORY, "out of memory for the status");
	else
		conn_tell(conn, PROTO_STATUS_REPLY, WIRE_FD(fd));
}

static void on_watch(struct conn *conn, const struct message_watch *watch)
{
	const struct watch_who who = {conn->uid, rights_is_admin(conn), rights_named(conn)};
	struct node *node = conn->node;
	int fd;

	if (watch_enter(&node->watching, &conn->watcher, &who, watch->period, &fd)) {
		conn_refuse(conn, OA_E_MEMORY, "out of memory for watching the status");
		return;
	}
	if (node->clients.n == node->watching.n)
		node_is_idle(node);
	conn_tell(conn, PROTO_WATCHED, WIRE_FD(fd));
}

/* Each of these answers is a memory and a descriptor on the way, which count until the client has read
 * it. One is under way at a time, so who has read what came before leaves one more at most. */
static bool may_ask(const struct conn *conn, const struct items_type *type)
{
	int unread = 0;

	if (type->asks != ITEMS_ASKS_MEMORY)
		return true;
	return ioctl(conn->fd, SIOCOUTQ, &unread) < 0 || unread <= MOST_UNREAD;
}

static void malformed(struct conn *conn, const char *how)
{
	if (!conn->job)
		conn_refuse(conn, OA_E_INVALID, "%s", how);
	else if (conn->job->active)
		job_fail(conn->job, OA_E_INVALID, how);
}

static void dispatch(struct conn *conn, struct wire_in *in)
{
	const struct items_type *type;
	union message message;
	struct diag diag;

	if (!is_allowed(conn, in->type)) {
		misbehaved(conn, "a message that is not allowed here");
		return;
	}
	type = message_type(in->type);
	if (!may_ask(conn, type)) {
		misbehaved(conn, "asks again and again and does not read the answers");
		return;
	}
	guest_spoke(conn->ear.guest,
		    type->asks == ITEMS_ASKS_NOTHING ? GUEST_MESSAGE : GUEST_QUESTION);
	loop_is_about(conn->node->loop, type->name);
	if (message_read(in, &message, &diag)) {
		malformed(conn, diag.text);
		return;
	}
	switch (in->type) {
	case PROTO_HELLO:
		on_hello(conn, &message.hello);
		break;
	case PROTO_OPEN:
		on_open(conn, &message.open, in);
		break;
	case PROTO_DESCRIBE:
		on_describe(conn, &message.describe);
		break;
	case PROTO_KICK:
		stream_turn_soon(conn->stream);
		break;
	case PROTO_EXPLAIN:
		on_explain(conn, &message.explain);
		break;
	case PROTO_CACHE:
		on_cache(conn, &message.cache);
		break;
	case PROTO_PLAN:
		on_plan(conn->job, &message.plan, in);
		break;
	case PROTO_BAD:
		bad_answer(conn, &message.bad);
		break;
	case PROTO_WATCH:
		on_watch(conn, &message.watch);
		break;
	default:
		on_status(conn);
	}
}

/* By itself, or with others of its user. */
static bool is_flooding(struct conn *conn)
{
	uint64_t now_ns = base_now_ns();

	if (conn->state != CONN_GREETED && conn->state != CONN_RUNS)
		return false;
	if (now_ns - conn->ear.since_ns > REST_NS) {
		conn->ear.since_ns = now_ns;
		conn->ear.heard = 0;
	}
	return ++conn->ear.heard > MOST_HEARD || !guest_may_speak(conn->ear.guest, now_ns);
}

static void heard(struct conn *conn, int r, struct wire_in *in)
{
	if (r == WIRE_E_CLOSED || (r < 0 && r != -EAGAIN && r != -EINTR)) {
		loop_is_about(conn->node->loop, "hang-up");
		client_free(conn);
	} else if (r > 0 && conn->state != CONN_SHUT && !conn->sending_shut)
		misbehaved(conn, "a message that is not well formed");
	else if (r == 0 && conn->state != CONN_SHUT && !conn->sending_shut)
		dispatch(conn, in);
}

static void on_fetched(void *arg, int r, struct wire_in *in)
{
	struct conn *conn = arg;

	conn->ear.errand = NULL;
	if (loop_watch_fd(conn->node->loop, conn->fd, on_readable, conn, &conn->ear.watch))
		loop_timer_set(conn->ear.deadline, REST_NS);
	heard(conn, r, in);
}

/* The message has descriptors. */
static void fetch(struct conn *conn)
{
	loop_unwatch(&conn->ear.watch);
	if (!porter_fetch(&conn->node->porters, conn->uid, conn->fd, on_fetched, conn,
			  &conn->ear.errand))
		return;
	conn_refuse(conn, OA_E_MEMORY,
		    "accessd cannot take more descriptors of user %u now: try again",
		    (unsigned)conn->uid);
	client_free(conn);
}

/* One message a turn: each client waits for its turn like all others, and one that floods us waits
 * longer, as does its user: its own queue is full then, and ours does nothing else. */
static void on_readable(void *arg)
{
	struct conn *conn = arg;
	struct wire_in in;
	int r;

	if (is_flooding(conn)) {
		loop_unwatch(&conn->ear.watch);
		loop_timer_set(conn->ear.deadline, REST_NS);
		return;
	}
	wire_in_init(&in);
	r = loop_recv(conn->fd, &in);
	if (r == WIRE_E_HAS_FDS)
		fetch(conn);
	else
		heard(conn, r, &in);
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
	conn->ear.guest = guest_ref(&conn->node->clients.guests, peer.uid);
	if (!conn->ear.guest)
		return -ENOMEM;
	conn->ear.pid_fd = peer_pid_fd(conn->fd, peer.pid);
	r = loop_watch_fd(loop, conn->fd, on_readable, conn, &conn->ear.watch);
	if (!r && conn->ear.pid_fd >= 0)
		r = loop_watch_fd(loop, conn->ear.pid_fd, on_exit_of_process, conn,
				  &conn->ear.pid_watch);
	r = r ? r : loop_timer_new(loop, on_deadline, conn, &conn->ear.deadline);
	if (!r)
		loop_timer_set(conn->ear.deadline, HELLO_NS);
	return r;
}

static const struct conn_steps steps = {on_source_ready, on_source_refused, on_stream_ready};

struct conn *client_new(struct node *node, int fd)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		porter_close(&node->porters, geteuid(), &fd);
		return NULL;
	}
	conn->node = node;
	conn->steps = &steps;
	conn->fd = fd;
	conn->ear.pid_fd = -1;
	request_init(&conn->request);
	LIST_INSERT_HEAD(&node->clients.list, conn, link);
	node->clients.n++;
	if (watch_peer(conn)) {
		client_free(conn);
		return NULL;
	}
	return conn;
}

bool client_is_spare(const struct conn *conn)
{
	return conn->state == CONN_NEW || conn->state == CONN_GREETED || conn->state == CONN_SHUT;
}
