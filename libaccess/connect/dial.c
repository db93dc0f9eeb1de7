/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How a client gets from a path to a served stream, as a machine of states that never blocks:
 *
 *   IDLE --connect--> HELLO --WELCOME--> OPEN --OPENED--> (the caller has the socket)
 *    |  ^
 *    v  | it is up
 *   STARTING   (private daemon: only the process with the election's lock)
 *
 * One machine for oa_connect(), oa_open(), oa_status() and for the way back after a daemon was
 * lost, so that a program which polls with oa_next(stream, 0, ...) waits for a connection as it
 * waits for a batch, and so that no lock is held across a wait. Every answer is unbelieved: a
 * message that makes no sense ends the conversation with a text, a refusal's code is clamped to
 * codes that we know.
 *
 * The nonce of WELCOME goes back in OPEN: whoever has this pid now has read this socket, so accessd
 * may watch the pid as the owner of what the stream will pin.
 */

#include "libaccess/connect/dial.h"

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "libaccess/error.h"
#include "plan/ranks/spread.h"
#include "shmring/proto.h"

#define DIAL_RETRY_NS UINT64_C(50000000)
#define DIAL_FOREVER_NS UINT64_C(1000000000) /* nothing is due: look again each second */

void dial_open_fini(struct dial_open *open)
{
	free(open->dataset);
	free(open->pipeline);
	free(open->job);
	free(open->keep);
	free(open->token);
	*open = (struct dial_open){0};
}

void dial_init(struct dial *dial, const struct dial_route *route)
{
	*dial = (struct dial){.route = route, .sock = -1};
	spawn_init(&dial->spawn);
}

void dial_reset(struct dial *dial)
{
	base_close(&dial->sock);
	spawn_fini(&dial->spawn);
	dial->state = DIAL_IDLE;
	dial->progress[0] = '\0';
}

void dial_fini(struct dial *dial)
{
	dial_reset(dial);
}

int dial_fd(const struct dial *dial)
{
	if (dial->state == DIAL_STARTING)
		return dial->spawn.pid_fd;
	return dial->state == DIAL_IDLE ? -1 : dial->sock;
}

char *dial_name(const struct dial *dial, char *ret, size_t size)
{
	if (dial->pid)
		snprintf(ret, size, "accessd (pid %llu) at %s", (unsigned long long)dial->pid,
			 dial->route->socket);
	else
		snprintf(ret, size, "accessd at %s", dial->route->socket);
	return ret;
}

uint64_t dial_deadline(int64_t timeout_ms)
{
	return timeout_ms < 0 ? UINT64_MAX : base_now_ns() + (uint64_t)timeout_ms * 1000000;
}

void dial_block_signals(sigset_t *ret_before)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	sigset_t blocked;

	sigfillset(&blocked);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(faults); i++)
		sigdelset(&blocked, faults[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, ret_before);
}

void dial_wait_begin(struct dial_wait *wait)
{
	if (wait->has_begun)
		return;
	dial_block_signals(&wait->before);
	wait->has_begun = true;
}

void dial_wait_end(struct dial_wait *wait)
{
	if (wait->has_begun)
		pthread_sigmask(SIG_SETMASK, &wait->before, NULL);
	wait->has_begun = false;
}

int dial_wait(const struct dial_wait *wait, int fd, uint64_t until_ns)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
	uint64_t now = base_now_ns();
	uint64_t left = until_ns > now ? until_ns - now : 0;
	struct timespec timeout;

	left = BASE_MIN(left, UINT64_C(3600) * 1000000000);
	timeout.tv_sec = (time_t)(left / 1000000000);
	timeout.tv_nsec = (long)(left % 1000000000);
	if (ppoll(&poll_fd, 1, &timeout, &wait->before) >= 0)
		return 0;
	return errno == EINTR ? OA_E_INTERRUPTED : -errno;
}

static int dial_end(struct dial *dial, int r)
{
	dial_reset(dial);
	return r;
}

static int dial_again(struct dial *dial, uint64_t wait_ns)
{
	dial->wake_ns = base_now_ns() + wait_ns;
	return DIAL_AGAIN;
}

static void dial_go(struct dial *dial, enum dial_state state)
{
	dial->state = state;
	dial->since_ns = base_now_ns();
}

/* ---- connect ---- */

/* 0 or negative errno. */
static int dial_connect(struct dial *dial)
{
	int sock = wire_connect(dial->route->socket);

	if (sock < 0)
		return sock;
	dial->sock = sock;
	return 0;
}

static bool dial_is_absent(int r)
{
	return r == -ENOENT || r == -ECONNREFUSED || r == -ENOTDIR || r == -ECONNRESET;
}

static int dial_absent(struct dial *dial, int r, struct diag *diag)
{
	const char *hint =
	    r == -ECONNREFUSED
		? "it has stopped, or is starting; in a container mount the folder of the socket, "
		  "not the socket's file, which is made anew at each start"
		: "start it (systemctl start accessd), or unset ACCESS_SOCKET to have a private "
		  "one";

	diag_fail(diag, DIAL_GONE, "no daemon at %s (%s): %s", dial->route->socket,
		  strerrordesc_np(-r), hint);
	return dial_end(dial, DIAL_GONE);
}

/* Nobody answers in our private folder: elect, look again, start. */
static int dial_start(struct dial *dial, int connect_error, struct diag *diag)
{
	int r;

	if (dial->spawn.has_run) {
		diag_fail(diag, OA_E_UNREACHABLE,
			  "a private accessd was started, but nobody answers at %s (%s)",
			  dial->route->socket, strerrordesc_np(-connect_error));
		return dial_end(dial, OA_E_UNREACHABLE);
	}
	if (dial->spawn.lock_fd < 0) {
		r = spawn_elect(&dial->spawn, dial->route->folder, diag);
		if (r == SPAWN_AGAIN) {
			dial->wake_ns = dial->spawn.wake_ns;
			return DIAL_AGAIN;
		}
		return r ? dial_end(dial, r) : DIAL_PROGRESS; /* the lock is ours: look once more */
	}
	r = private_spawn(&dial->spawn, dial->route->folder, diag);
	if (r)
		return dial_end(dial, r);
	dial_go(dial, DIAL_STARTING);
	dial->wake_ns = dial->spawn.wake_ns;
	return DIAL_AGAIN;
}

static int dial_step_idle(struct dial *dial, struct diag *diag)
{
	int r = dial->route->is_private ? private_make_folder(dial->route->folder, diag) : 0;

	if (r)
		return dial_end(dial, r);
	r = dial_connect(dial);
	while (r && dial_is_absent(r) && dial->route->is_private) {
		r = dial_start(dial, r, diag);
		if (r != DIAL_PROGRESS)
			return r;
		r = dial_connect(dial);
	}
	if (r == -EAGAIN) /* its backlog is full */
		return dial_again(dial, DIAL_RETRY_NS);
	if (dial_is_absent(r))
		return dial_absent(dial, r, diag);
	if (r == -EACCES || r == -EPERM)
		return dial_end(dial,
				diag_fail(diag, OA_E_PERMISSION,
					  "this user (uid %u) may not connect to %s: its "
					  "permissions, or those of a folder above, forbid it",
					  (unsigned)geteuid(), dial->route->socket));
	if (r)
		return dial_end(dial, error_of_errno(diag, r, dial->route->socket));
	r = wire_tell(dial->sock, PROTO_HELLO, WIRE_U64(PROTO_KEY_MAJOR, PROTO_MAJOR),
		      WIRE_U64(PROTO_KEY_MINOR, PROTO_MINOR),
		      WIRE_STRING(PROTO_KEY_PROGRAM, program_invocation_short_name));
	if (r == WIRE_E_CLOSED)
		return dial_absent(dial, -ECONNRESET, diag);
	if (r)
		return dial_end(dial, error_of_errno(diag, r, "HELLO to accessd"));
	dial_go(dial, DIAL_HELLO);
	return 0;
}

static int dial_step_starting(struct dial *dial, struct diag *diag)
{
	int r = private_step(&dial->spawn, diag);

	if (r == SPAWN_AGAIN) {
		dial->wake_ns = dial->spawn.wake_ns;
		return DIAL_AGAIN;
	}
	if (r)
		return dial_end(dial, r);
	dial_go(dial, DIAL_IDLE);
	return 0;
}

/* ---- the conversation ---- */

int dial_receive(struct dial *dial, struct wire_in *ret, struct diag *diag)
{
	char name[192];
	int r;

	wire_in_init(ret);
	r = wire_recv(dial->sock, ret, MSG_DONTWAIT);
	if (r == -EAGAIN || r == -EINTR)
		return dial_again(dial, DIAL_FOREVER_NS);
	dial_name(dial, name, sizeof(name));
	if (r == WIRE_E_TRUNCATED_FDS)
		return dial_end(
		    dial,
		    error_of_files(diag, "opening a stream takes five descriptors for a moment"));
	if (r == WIRE_E_CLOSED || r == -ECONNRESET) {
		return dial_end(dial,
				diag_fail(diag, DIAL_GONE,
					  "%s hung up while the connection was being made", name));
	}
	if (r > 0)
		return dial_end(
		    dial,
		    diag_fail(diag, -EPROTO,
			      "%s sent a message that makes no sense: is it an accessd?", name));
	return r ? dial_end(dial, error_of_errno(diag, r, name)) : 0;
}

static int dial_refused(struct dial *dial, const struct wire_in *in, struct diag *diag)
{
	const char *text = "accessd refused without a text";
	uint64_t code = OA_E_REFUSED;

	wire_get_string(in, PROTO_KEY_TEXT, &text);
	wire_get_u64(in, PROTO_KEY_CODE, &code);
	if (code <= OA_E_PINS || code > OA_E_LIMIT)
		code = OA_E_REFUSED;
	return dial_end(dial, diag_fail(diag, (int)code, "%s", text));
}

static int dial_unexpected(struct dial *dial, const struct wire_in *in, struct diag *diag)
{
	char name[192];

	return dial_end(
	    dial, diag_fail(diag, -EPROTO,
			    "%s answered with message %u, or left out a part: is it an accessd?",
			    dial_name(dial, name, sizeof(name)), in->type));
}

static int dial_other_version(struct dial *dial, uint64_t major, struct diag *diag)
{
	return dial_end(
	    dial,
	    diag_fail(
		diag, OA_E_VERSION,
		"accessd %s at %s speaks protocol %llu, this libaccess %s speaks %d: upgrade %s",
		dial->version, dial->route->socket, (unsigned long long)major, PACKAGE_VERSION,
		PROTO_MAJOR,
		major > PROTO_MAJOR ? "libaccess (the job's side)" : "accessd (the node's side)"));
}

int dial_knows(const struct dial *dial, const char *dataset, bool is_remote, struct diag *diag)
{
	if (is_remote && dial->minor < PROTO_SINCE_BUCKETS)
		return diag_fail(diag, OA_E_VERSION,
				 "accessd %s at %s is older than data sets of object stores: "
				 "upgrade accessd",
				 dial->version, dial->route->socket);
	if (dial->minor >= PROTO_SINCE_NAMES || !proto_is_named(dataset))
		return 0;
	return diag_fail(diag, OA_E_VERSION,
			 "accessd %s at %s is older than data sets with names: upgrade accessd, or "
			 "open the folder of \"%.128s\"",
			 dial->version, dial->route->socket, dataset);
}

static int dial_send_open(struct dial *dial, const struct dial_open *open, const void *nonce,
			  size_t nonce_size, struct diag *diag)
{
	const struct part *part = open->part;
	const bool is_random = part && part->is_random,
		   has_others = open->local_ranks < open->ranks;
	uint64_t split[3] = {0};
	int r;

	if (is_random) {
		memcpy(&split[0], &part->split.from, sizeof(split[0]));
		memcpy(&split[1], &part->split.to, sizeof(split[1]));
		split[2] = part->split.seed;
	}
	r = wire_tell(
	    dial->sock, PROTO_OPEN, WIRE_BYTES(PROTO_KEY_NONCE, nonce, nonce_size),
	    WIRE_STRING(PROTO_KEY_DATASET, open->dataset),
	    WIRE_STRING(PROTO_KEY_PIPELINE, open->pipeline), WIRE_U64(PROTO_KEY_BATCH, open->batch),
	    WIRE_U64(PROTO_KEY_EPOCHS, open->epochs), WIRE_STRING(PROTO_KEY_JOB, open->job),
	    WIRE_U64(PROTO_KEY_POLICY, open->bad), WIRE_U64(PROTO_KEY_RANKS, open->ranks),
	    WIRE_U64(PROTO_KEY_RANK, open->rank), WIRE_NONZERO(PROTO_KEY_ORDER, open->order),
	    WIRE_NONZERO(PROTO_KEY_SEED, open->seed),
	    WIRE_BYTES(PROTO_KEY_TOKEN, open->token, open->token_size),
	    WIRE_NONZERO(PROTO_KEY_CHUNK, open->chunk),
	    WIRE_NONZERO(PROTO_KEY_EXACT, open->is_exact), WIRE_STRING(PROTO_KEY_FORM, open->keep),
	    WIRE_NONZERO(PROTO_KEY_FILTERED, open->has_filtered),
	    WIRE_U64_IF(open->bad_budget != 0, PROTO_KEY_BUDGET,
			(uint64_t)BASE_MAX(open->bad_budget, 0)),
	    WIRE_U64_IF(has_others, PROTO_KEY_LOCAL_RANKS, open->local_ranks),
	    WIRE_U64_IF(has_others, PROTO_KEY_LOCAL_FIRST, open->local_first),
	    WIRE_U64_IF(has_others, PROTO_KEY_DROP_LAST, open->drop_last),
	    WIRE_U64_IF(has_others, PROTO_KEY_SPREAD, open->is_spread ? SPREAD_ARITHMETIC : 0),
	    WIRE_U64_IF(open->reuse > 1, PROTO_KEY_REUSE, open->reuse),
	    WIRE_BYTES(PROTO_KEY_PART, part ? part->version : NULL, sizeof(part->version)),
	    WIRE_FD(part ? part->fd : -1),
	    WIRE_BYTES(PROTO_KEY_SPLIT, is_random ? split : NULL, sizeof(split)),
	    WIRE_U64_IF(open->log_fd >= 0, PROTO_KEY_LOG, part != NULL), WIRE_FD(open->log_fd));
	if (r == -EMSGSIZE)
		return dial_end(dial, diag_fail(diag, OA_E_TOKEN,
						"the token (%zu bytes) and the pipeline's text do "
						"not fit into one message of %d bytes",
						open->token_size, WIRE_MAX));
	if (r == WIRE_E_CLOSED)
		return dial_end(
		    dial, diag_fail(diag, DIAL_GONE, "accessd at %s hung up", dial->route->socket));
	if (r)
		return dial_end(dial, error_of_errno(diag, r, "OPEN to accessd"));
	dial_go(dial, DIAL_OPEN);
	return 0;
}

static int dial_welcome(struct dial *dial, const struct wire_in *in, const struct dial_open *open,
			struct diag *diag)
{
	const char *version = "of unknown version", *buckets = "";
	const void *nonce = NULL;
	size_t nonce_size = 0;
	uint64_t major;
	int r;

	if (wire_get_u64(in, PROTO_KEY_MAJOR, &major))
		return dial_unexpected(dial, in, diag);
	wire_get_u64(in, PROTO_KEY_PID, &dial->pid);
	wire_get_string(in, PROTO_KEY_VERSION, &version);
	base_quote(version, dial->version, sizeof(dial->version));
	wire_get_string(in, PROTO_KEY_BUCKETS, &buckets);
	snprintf(dial->buckets, sizeof(dial->buckets), "%s",
		 strlen(buckets) < sizeof(dial->buckets) ? buckets : "");
	dial->minor = 0;
	wire_get_u64(in, PROTO_KEY_MINOR, &dial->minor);
	if (major != PROTO_MAJOR)
		return dial_other_version(dial, major, diag);
	spawn_fini(&dial->spawn); /* somebody serves: the election is over */
	if (!open)
		return 0;
	if (wire_get_bytes(in, PROTO_KEY_NONCE, &nonce, &nonce_size))
		return dial_unexpected(dial, in, diag);
	r = dial_knows(dial, open->dataset, open->is_remote, diag);
	if (r)
		return dial_end(dial, r);
	return dial_send_open(dial, open, nonce, nonce_size, diag);
}

static int dial_progress(struct dial *dial, const struct wire_in *in)
{
	const char *text = "";

	dial->done = dial->total = 0;
	wire_get_string(in, PROTO_KEY_TEXT, &text);
	wire_get_u64(in, PROTO_KEY_DONE, &dial->done);
	wire_get_u64(in, PROTO_KEY_TOTAL, &dial->total);
	base_quote(text, dial->progress, sizeof(dial->progress));
	return DIAL_PROGRESS;
}

int dial_other(struct dial *dial, const struct wire_in *in, struct diag *diag)
{
	if (in->type == PROTO_REFUSED)
		return dial_refused(dial, in, diag);
	if (in->type == PROTO_PROGRESS)
		return dial_progress(dial, in);
	return dial_unexpected(dial, in, diag);
}

/* Reads one message. 0: the state has moved on. */
static int dial_step_talking(struct dial *dial, const struct dial_open *open, struct wire_in *ret,
			     bool *ret_done, struct diag *diag)
{
	_cleanup_(wire_in_fini) struct wire_in in;
	int r = dial_receive(dial, &in, diag);

	if (r)
		return r;
	if (in.type == PROTO_REFUSED)
		return dial_refused(dial, &in, diag);
	if (dial->state == DIAL_HELLO && in.type == PROTO_WELCOME) {
		r = dial_welcome(dial, &in, open, diag);
		*ret_done = !open;
		return r;
	}
	if (dial->state == DIAL_OPEN && in.type == PROTO_PROGRESS)
		return dial_progress(dial, &in);
	if (dial->state == DIAL_OPEN && in.type == PROTO_OPENED) {
		*ret = in;
		wire_in_init(&in);
		*ret_done = true;
		return 0;
	}
	if (dial->state == DIAL_OPEN && (in.type == PROTO_LOST || in.type == PROTO_FAILED)) {
		r = dial_refused(dial, &in, diag);
		return in.type == PROTO_LOST ? DIAL_GONE : r;
	}
	if (dial->state == DIAL_OPEN && in.type > PROTO_OPENED)
		return 0; /* a notice, a wake: not for us yet */
	return dial_unexpected(dial, &in, diag);
}

int dial_step(struct dial *dial, const struct dial_open *open, struct wire_in *ret,
	      struct diag *diag)
{
	bool done = false;
	int r = 0;

	while (r == 0 && !done) {
		if (dial->state == DIAL_IDLE)
			r = dial_step_idle(dial, diag);
		else if (dial->state == DIAL_STARTING)
			r = dial_step_starting(dial, diag);
		else
			r = dial_step_talking(dial, open, ret, &done, diag);
	}
	return r;
}
