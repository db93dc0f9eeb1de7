/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every call is looked at when its socket is ready, and when its time is up. Of those that come in there are at most MOST_IN
 * at once: one more takes the place of the oldest of the address that has the most, so that whoever fills the places
 * takes them from himself. poll() over a few hundred
 * descriptors needs no library.
 */

#include "cluster/gate_serve.h"

#include <netdb.h>
#include <poll.h>

#include "base/log.h"
#include "cluster/peers/peers_kind.h"

#define MOST_IN 64
#define MOST_OUT 64
#define MOST_TOLD 5 /* calls that were refused, a minute */
#define MINUTE_NS UINT64_C(60000000000)
#define MOST_CALLS (MOST_IN + MOST_OUT)
/* Descriptors before those of the calls: two of the caller's, and the one that listens */
#define OTHERS 3

struct place {
	struct gate_call *call;
	bool has_ref;
	struct cell_ref ref;
};

struct gate_serve {
	struct gate_tls_way *way;
	struct cell *cell;
	struct gate_carriers *carriers;
	int listen_fd;
	struct place places[MOST_CALLS];
	size_t n;
	uint64_t refused_ns; /* the minute began in which so many calls were refused: */
	uint64_t refused;
};

/* ---- listening ---- */

static int bind_one(const struct addrinfo *info, struct gate_address *ret_address)
{
	_cleanup_close_ int fd =
	    socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	const int on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, MOST_IN))
		return -errno;
	ret_address->size = sizeof(ret_address->sock);
	if (getsockname(fd, (struct sockaddr *)&ret_address->sock, &ret_address->size))
		return -errno;
	return base_take_fd(&fd);
}

int gate_serve_listen(const char *text, struct gate_address *ret_address, struct diag *diag)
{
	const struct addrinfo hints = {.ai_family = AF_UNSPEC,
				       .ai_socktype = SOCK_STREAM,
				       .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
	char host[PEERS_HOST];
	const char *port = strrchr(text, ':');
	struct addrinfo *info = NULL;
	unsigned number;
	int r = peers_parse_host(text, strlen(text), host, &number, diag);

	if (r || !port || getaddrinfo(host, port + 1, &hints, &info))
		return diag_fail(
		    diag, -EINVAL,
		    "peer_listen %s: must be ADDRESS:PORT or [IPv6]:PORT, the address in "
		    "figures, as 0.0.0.0:7411",
		    text);
	r = bind_one(info, ret_address);
	freeaddrinfo(info);
	if (r < 0)
		diag_set(diag, "peer_listen %s: cannot listen there: %s%s", text, strerror(-r),
			 r == -EADDRINUSE ? " (`ss -ltnp` says by whom)" : "");
	return r;
}

/* ---- calls ---- */

int gate_serve_new(struct gate_tls_way *way, struct gate_carriers *carriers, int listen_fd,
		   struct gate_serve **ret)
{
	struct gate_serve *serve = calloc(1, sizeof(*serve));

	if (!serve)
		return -ENOMEM;
	serve->way = way;
	serve->cell = carriers->cell;
	serve->carriers = carriers;
	serve->listen_fd = listen_fd;
	*ret = serve;
	return 0;
}

static void end_call(struct gate_serve *serve, size_t i)
{
	gate_call_free(serve->places[i].call);
	serve->places[i] = serve->places[--serve->n];
}

static size_t count(const struct gate_serve *serve, bool is_caller)
{
	size_t n = 0;

	for (size_t i = 0; i < serve->n; i++)
		n += serve->places[i].call->is_caller == is_caller;
	return n;
}

/* How many calls came in from where this one did. */
static size_t neighbours(const struct gate_serve *serve, const struct gate_call *call)
{
	size_t n = 0;

	for (size_t i = 0; i < serve->n; i++)
		n += !serve->places[i].call->is_caller &&
		     gate_address_is_host(&serve->places[i].call->other, &call->other);
	return n;
}

static void make_room(struct gate_serve *serve)
{
	size_t most = 0, which = serve->n;

	for (size_t i = 0; i < serve->n; i++) {
		const struct gate_call *call = serve->places[i].call;
		size_t n = call->is_caller ? 0 : neighbours(serve, call);

		if (n > most ||
		    (n > 0 && n == most && call->began_ns < serve->places[which].call->began_ns)) {
			most = n;
			which = i;
		}
	}
	if (which == serve->n)
		return;
	if (serve->places[which].has_ref)
		cell_failed(serve->cell, &serve->places[which].ref, false, NULL, base_now_ns());
	end_call(serve, which);
}

static void accept_all(struct gate_serve *serve)
{
	for (size_t i = 0; i < MOST_IN; i++) {
		struct gate_address from = {.size = sizeof(from.sock)};
		int fd = accept4(serve->listen_fd, (struct sockaddr *)&from.sock, &from.size,
				 SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct place *place;

		if (fd < 0)
			return;
		if (count(serve, false) >= MOST_IN)
			make_room(serve);
		place = &serve->places[serve->n];
		*place = (struct place){0};
		if (gate_call_from(serve->way, fd, &from, base_now_ns(), &place->call) == 0)
			serve->n++;
	}
}

static void call_all(struct gate_serve *serve)
{
	struct cell_call due;

	while (count(serve, true) < MOST_OUT && cell_due(serve->cell, base_now_ns(), &due)) {
		struct place *place = &serve->places[serve->n];
		struct diag diag;
		int r;

		*place = (struct place){.has_ref = true, .ref = due.ref};
		r = gate_call_to(serve->way, &due.to, &due.hello, base_now_ns(), &place->call);
		if (!r) {
			serve->n++;
			continue;
		}
		diag_set(&diag, "cannot connect: %s", strerror(-r));
		cell_failed(serve->cell, &due.ref, false, &diag, base_now_ns());
	}
}

static void hand_over(struct gate_serve *serve, struct place *place)
{
	const uint64_t now_ns = base_now_ns();
	struct carrier_keys keys;
	uint64_t id;
	_cleanup_close_ int fd = -1;

	if (!cell_done(serve->cell, &place->ref, place->call, now_ns, &id))
		return;
	fd = gate_call_take(place->call, &keys);
	if (fd < 0 || !gate_carriers_hand(serve->carriers, place->ref.domain, id,
					  &place->call->theirs, &keys, fd))
		cell_lost(serve->cell, place->ref.domain, id, place->call->theirs.incarnation,
			  now_ns);
	explicit_bzero(&keys, sizeof(keys));
}

/* Anybody can connect, so a few a minute are told, and then how many there were. */
static void log_refused(struct gate_serve *serve, const struct gate_call *call)
{
	const uint64_t now_ns = base_now_ns();
	char from[GATE_CALL_ADDRESS];

	if (now_ns - serve->refused_ns >= MINUTE_NS) {
		if (serve->refused > MOST_TOLD)
			log_line(LOG_LEVEL_INFO, "calls-refused", "more=%llu",
				 (unsigned long long)(serve->refused - MOST_TOLD));
		serve->refused_ns = now_ns;
		serve->refused = 0;
	}
	if (++serve->refused <= MOST_TOLD)
		log_line(LOG_LEVEL_INFO, "call-refused", "from=%s why=\"%s\"",
			 gate_address_text(&call->other, from), call->diag.text);
}

static void fail(struct gate_serve *serve, struct place *place, bool is_refused)
{
	if (place->has_ref)
		cell_failed(serve->cell, &place->ref, is_refused, &place->call->diag,
			    base_now_ns());
	if (!place->call->is_caller)
		log_refused(serve, place->call);
}

/* true: it is over. */
static bool step(struct gate_serve *serve, struct place *place)
{
	const uint64_t now_ns = base_now_ns();
	enum gate_call_result result = gate_call_step(place->call, now_ns);
	struct gate_hello answer;

	if (result == GATE_CALL_ASKED) {
		cell_asked(serve->cell, place->call, now_ns, &answer, &place->ref);
		place->has_ref = answer.answer == GATE_ANSWER_YES;
		gate_call_answer(place->call, &answer);
		result = gate_call_step(place->call, now_ns);
	}
	if (result == GATE_CALL_WAITS)
		return false;
	if (result == GATE_CALL_DONE)
		hand_over(serve, place);
	else if (result == GATE_CALL_NO && place->call->is_caller)
		cell_answered(serve->cell, &place->ref, place->call, now_ns);
	else if (result == GATE_CALL_BROKE || result == GATE_CALL_REFUSED)
		fail(serve, place, result == GATE_CALL_REFUSED);
	return true;
}

/* From the last to the first, as one that ends is replaced by the last. */
static void step_all(struct gate_serve *serve, const struct pollfd *pollfds, size_t n)
{
	const uint64_t now_ns = base_now_ns();

	for (size_t i = n; i-- > 0;) {
		struct place *place = &serve->places[i];

		if (place->has_ref && !cell_wants(serve->cell, &place->ref))
			end_call(serve, i);
		else if ((pollfds[i].revents || place->call->deadline_ns <= now_ns) &&
			 step(serve, place))
			end_call(serve, i);
	}
}

/* ---- waiting ---- */

static int patience_ms(const struct gate_serve *serve, uint64_t next_ns)
{
	const uint64_t now_ns = base_now_ns();

	if (count(serve, true) < MOST_OUT)
		next_ns = BASE_MIN(next_ns, cell_next_ns(serve->cell));
	for (size_t i = 0; i < serve->n; i++)
		next_ns = BASE_MIN(next_ns, serve->places[i].call->deadline_ns);
	if (next_ns == UINT64_MAX)
		return -1;
	return next_ns <= now_ns ? 0 : (int)BASE_MIN((next_ns - now_ns) / 1000000 + 1, 60000U);
}

int gate_serve_turn(struct gate_serve *serve, const int fds[2])
{
	struct pollfd pollfds[OTHERS + MOST_CALLS + CELL_MOST_DOMAINS] = {
	    {fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}, {serve->listen_fd, POLLIN, 0}};
	const uint64_t again_ns = gate_carriers_again(serve->carriers, base_now_ns());
	const size_t n_carriers = serve->carriers->n;
	size_t n;

	call_all(serve);
	n = serve->n;
	for (size_t i = 0; i < n; i++)
		pollfds[OTHERS + i] = (struct pollfd){serve->places[i].call->fd,
						      gate_call_events(serve->places[i].call), 0};
	gate_carriers_poll(serve->carriers, pollfds + OTHERS + n);
	if (poll(pollfds, OTHERS + n + n_carriers, patience_ms(serve, again_ns)) < 0)
		return errno == EINTR ? 0 : -errno;
	gate_carriers_hear(serve->carriers, pollfds + OTHERS + n, n_carriers);
	step_all(serve, pollfds + OTHERS, n);
	if (pollfds[2].revents)
		accept_all(serve);
	return (pollfds[0].revents ? 1 : 0) | (pollfds[1].revents ? 2 : 0);
}
