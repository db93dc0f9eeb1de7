/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A connection's steps, a function each. Every one of them may be repeated: it either needs the socket to be ready once more, or
 * puts the next step in its place. One deadline holds for all of it, from the first packet to the GO, so that whoever says a
 * byte a second gets no further.
 */

#include "cluster/gate_call.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "base/hash.h"

#define PROBE_AFTER_S 10
#define PROBE_EACH_S 5
#define PROBES 3
#define UNHEARD_MS 30000

static void set_number(int fd, int level, int name, int number)
{
	setsockopt(fd, level, name, &number, sizeof(number));
}

/* Set here, as a carrier may not. Without it who is cut off while nobody talks would be believed to be connected for good,
 * and his gate's calls would be answered so. */
static void set_options(int fd)
{
	set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_AFTER_S);
	set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_EACH_S);
	set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES);
	set_number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNHEARD_MS);
}

static int call_new(struct gate_tls_way *way, int fd, const struct gate_address *other,
		    bool is_caller, struct gate_call **ret)
{
	struct gate_call *call = calloc(1, sizeof(*call));
	int r = call ? 0 : -ENOMEM;

	r = r ? r : gate_tls_new(way, fd, is_caller, &call->tls);
	if (r) {
		close(fd);
		free(call);
		return r;
	}
	set_options(fd);
	call->fd = fd;
	call->other = *other;
	call->is_caller = is_caller;
	*ret = call;
	return 0;
}

int gate_call_to(struct gate_tls_way *way, const struct gate_address *to,
		 const struct gate_hello *mine, uint64_t now_ns, struct gate_call **ret)
{
	int fd = socket(to->sock.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct gate_call *call;
	int r;

	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&to->sock, to->size) && errno != EINPROGRESS) {
		r = -errno;
		close(fd);
		return r;
	}
	r = call_new(way, fd, to, true, &call);
	if (r)
		return r;
	call->step = GATE_CALL_CONNECT;
	call->wants_write = true;
	call->mine = *mine;
	call->began_ns = now_ns;
	call->deadline_ns = now_ns + GATE_CALL_PATIENCE_NS;
	*ret = call;
	return 0;
}

int gate_call_from(struct gate_tls_way *way, int fd, const struct gate_address *from,
		   uint64_t now_ns, struct gate_call **ret)
{
	struct gate_call *call;
	int r = call_new(way, fd, from, false, &call);

	if (r)
		return r;
	call->step = GATE_CALL_SHAKE;
	call->began_ns = now_ns;
	call->deadline_ns = now_ns + GATE_CALL_PATIENCE_NS;
	*ret = call;
	return 0;
}

void gate_call_free(struct gate_call *call)
{
	if (!call)
		return;
	gate_tls_free(call->tls);
	base_close(&call->fd);
	free(call);
}

short gate_call_events(const struct gate_call *call)
{
	return call->wants_write ? POLLOUT : POLLIN;
}

/* ---- steps: 0: the next one at once, or a result that ends the turn ---- */

static int next(struct gate_call *call, enum gate_call_step step)
{
	call->step = step;
	call->done = 0;
	return -1;
}

static int of_tls(struct gate_call *call, int r)
{
	call->wants_write = r == GATE_TLS_E_WRITE;
	if (r == GATE_TLS_E_READ || r == GATE_TLS_E_WRITE)
		return GATE_CALL_WAITS;
	return r == GATE_TLS_E_REFUSED ? GATE_CALL_REFUSED : GATE_CALL_BROKE;
}

static int step_connect(struct gate_call *call)
{
	struct pollfd pollfd = {call->fd, POLLOUT, 0};
	socklen_t size = sizeof(int);
	int error = 0;

	if (poll(&pollfd, 1, 0) == 0)
		return GATE_CALL_WAITS;
	getsockopt(call->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	if (error)
		return diag_fail(
		    &call->diag, GATE_CALL_BROKE, "cannot connect: %s%s", strerror(error),
		    error == ECONNREFUSED
			? ": no accessd with peers runs there, or its peer_listen has another port"
			: "");
	return next(call, GATE_CALL_SHAKE);
}

static int step_shake(struct gate_call *call)
{
	int r = gate_tls_shake(call->tls, &call->diag);

	if (r)
		return of_tls(call, r);
	if (call->is_caller)
		gate_hello_write(&call->mine, call->buffer);
	return next(call, call->is_caller ? GATE_CALL_WRITE : GATE_CALL_READ);
}

static int step_write(struct gate_call *call)
{
	int r = gate_tls_write(call->tls, call->buffer, GATE_HELLO_BYTES, &call->done, &call->diag);

	if (r)
		return of_tls(call, r);
	if (call->is_caller)
		return next(call, GATE_CALL_READ);
	return call->mine.answer == GATE_ANSWER_YES ? next(call, GATE_CALL_READ_GO) : GATE_CALL_NO;
}

/* Of what the other said: GATE_HELLO_E_... */
static int not_understood(struct gate_call *call, int r)
{
	if (r == GATE_HELLO_E_VERSION)
		diag_set(&call->diag,
			 "it speaks version %u of the gates' protocol, this node version %u: "
			 "install the same oneaccess-cluster on both",
			 call->theirs.version, GATE_HELLO_VERSION);
	else
		diag_set(&call->diag, "it has the key, but what it says makes no sense: install "
				      "the same oneaccess-cluster on both");
	return GATE_CALL_REFUSED;
}

static int step_read(struct gate_call *call)
{
	int r = gate_tls_read(call->tls, call->buffer, GATE_HELLO_BYTES, &call->done, &call->diag);

	if (r)
		return of_tls(call, r);
	r = gate_hello_read(call->buffer, call->is_caller ? GATE_HELLO_ANSWER : GATE_HELLO_CALL,
			    &call->theirs);
	if (r && (call->is_caller || r != GATE_HELLO_E_VERSION))
		return not_understood(call, r);
	if (!call->is_caller) {
		next(call, GATE_CALL_DECIDE);
		return GATE_CALL_ASKED;
	}
	if (call->theirs.answer != GATE_ANSWER_YES)
		return GATE_CALL_NO;
	if (!gate_tls_is_of(call->tls, call->theirs.node))
		return diag_fail(
		    &call->diag, GATE_CALL_REFUSED,
		    "it says that it is %s, which its certificate does not: set node_name "
		    "there to a name in the certificate (subjectAltName, DNS)",
		    call->theirs.node);
	gate_hello_write_go(call->buffer);
	return next(call, GATE_CALL_WRITE_GO);
}

static int step_decide(struct gate_call *call)
{
	(void)call;
	return GATE_CALL_ASKED;
}

static int step_write_go(struct gate_call *call)
{
	int r =
	    gate_tls_write(call->tls, call->buffer, GATE_HELLO_GO_BYTES, &call->done, &call->diag);

	return r ? of_tls(call, r) : GATE_CALL_DONE;
}

static int step_read_go(struct gate_call *call)
{
	int r =
	    gate_tls_read(call->tls, call->buffer, GATE_HELLO_GO_BYTES, &call->done, &call->diag);

	if (r)
		return of_tls(call, r);
	return gate_hello_is_go(call->buffer) ? GATE_CALL_DONE
					      : not_understood(call, GATE_HELLO_E_BAD);
}

enum gate_call_result gate_call_step(struct gate_call *call, uint64_t now_ns)
{
	static int (*const steps[])(struct gate_call *) = {
	    [GATE_CALL_CONNECT] = step_connect, [GATE_CALL_SHAKE] = step_shake,
	    [GATE_CALL_WRITE] = step_write,     [GATE_CALL_READ] = step_read,
	    [GATE_CALL_DECIDE] = step_decide,   [GATE_CALL_WRITE_GO] = step_write_go,
	    [GATE_CALL_READ_GO] = step_read_go,
	};
	int r = -1;

	while (r < 0)
		r = steps[call->step](call);
	if (r != GATE_CALL_WAITS || now_ns < call->deadline_ns)
		return (enum gate_call_result)r;
	return diag_fail(&call->diag, GATE_CALL_BROKE, "no answer within %u s%s",
			 (unsigned)(GATE_CALL_PATIENCE_NS / 1000000000),
			 call->step == GATE_CALL_CONNECT ? ": does a firewall drop it?" : "");
}

void gate_call_answer(struct gate_call *call, const struct gate_hello *mine)
{
	call->mine = *mine;
	gate_hello_write(mine, call->buffer);
	call->wants_write = true;
	next(call, GATE_CALL_WRITE);
}

/* ---- what comes of it ---- */

/* Who, of which life, with whom, for what: keys of another connection are others. */
static int context_of(const struct gate_hello *caller, const struct gate_hello *called,
		      struct hash_id *ret)
{
	struct hash *hash;
	int r = hash_new(&hash);

	if (r)
		return r;
	hash_add_u64(hash, gate_id_of(caller->node));
	hash_add_u64(hash, caller->incarnation);
	hash_add_u64(hash, gate_id_of(called->node));
	hash_add_u64(hash, called->incarnation);
	hash_add(hash, caller->domain, strlen(caller->domain));
	hash_finish(hash, ret);
	hash_free(hash);
	return 0;
}

int gate_call_take(struct gate_call *call, struct carrier_keys *ret_keys)
{
	struct way {
		uint8_t key[16], iv[12];
	} ways[2]; /* of the caller to the called, and back */
	const struct way *send = &ways[!call->is_caller], *receive = &ways[call->is_caller];
	struct hash_id context;
	int r = call->is_caller ? context_of(&call->mine, &call->theirs, &context)
				: context_of(&call->theirs, &call->mine, &context);

	r = r ? r : gate_tls_export(call->tls, &context, sizeof(context), ways, sizeof(ways));
	if (r)
		return r;
	memcpy(ret_keys->send_key, send->key, sizeof(send->key));
	memcpy(ret_keys->send_iv, send->iv, sizeof(send->iv));
	memcpy(ret_keys->receive_key, receive->key, sizeof(receive->key));
	memcpy(ret_keys->receive_iv, receive->iv, sizeof(receive->iv));
	explicit_bzero(ways, sizeof(ways));
	return base_take_fd(&call->fd);
}
