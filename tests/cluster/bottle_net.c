/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Connections as a carrier's transport. What was sent is in pieces, which arrive in their order, each in its time; those that
 * are sent into a hole lie there until it is gone. A cut ends all connections over it, on both sides.
 */

#include "tests/cluster/bottle.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define NET_FD 1000000 /* no descriptor of this process */
#define NET_ROOM ((size_t)192 << 10)
#define NET_PIECE ((size_t)16 << 10)

struct piece {
	struct piece *next;
	uint64_t arrives_ns; /* NEVER: lies in a hole */
	size_t bytes, done;  /* bytes 0: the end */
	uint8_t data[];
};

struct end {
	struct transport transport; /* first */
	struct end *next;           /* of all */
	struct end *other;
	struct node *node;
	int fd;
	struct piece *first, **last; /* that come here */
	size_t bytes;                /* of them */
	uint64_t last_ns;
	bool receives, sends, is_closed, is_cut;
};

static struct bottle *bottle_of(const struct end *end)
{
	return end->node->bottle;
}

static struct wire *wire_to(const struct end *end)
{
	return &bottle_of(end)->wire[end->other->node->number][end->node->number];
}

static struct end *end_of(struct bottle *bottle, int fd)
{
	for (struct end *end = bottle->ends; end; end = end->next)
		if (end->fd == fd)
			return end;
	abort();
}

uint64_t net_late_ns(struct bottle *bottle, unsigned from, unsigned to)
{
	const uint64_t late_ns = bottle->wire[from][to].late_ns;

	return late_ns + bottle_below(bottle, late_ns / 4 + 1);
}

/* ---- pieces ---- */

static void empty(struct end *end)
{
	while (end->first) {
		struct piece *piece = end->first;

		end->first = piece->next;
		free(piece);
	}
	end->last = &end->first;
	end->bytes = 0;
}

static void on_arrival(void *arg, uint64_t a, uint64_t b)
{
	struct node *node = arg;

	(void)a;
	(void)b;
	carrier_wake(node, node->bottle->clock.now_ns);
}

static void set_out(struct end *to, struct piece *piece)
{
	struct bottle *bottle = bottle_of(to);

	if (wire_to(to)->is_hole) {
		piece->arrives_ns = NEVER;
		return;
	}
	to->last_ns = BASE_MAX(to->last_ns,
			       bottle->clock.now_ns +
				   net_late_ns(bottle, to->other->node->number, to->node->number));
	piece->arrives_ns = to->last_ns;
	bottle_at(bottle, to->last_ns, on_arrival, to->node, 0, 0);
}

/* The data and room for them come apart in time: a repeated piece is more than there was room for. */
static void put(struct end *to, const uint8_t *data, size_t bytes, bool is_damaged)
{
	struct piece *piece = malloc(sizeof(*piece) + bytes);

	if (!piece)
		abort();
	*piece = (struct piece){.bytes = bytes};
	if (bytes)
		memcpy(piece->data, data, bytes);
	if (is_damaged) {
		const uint64_t at = bottle_below(bottle_of(to), bytes);

		piece->data[at] ^= (uint8_t)(1 << bottle_below(bottle_of(to), 8));
	}
	*to->last = piece;
	to->last = &piece->next;
	to->bytes += bytes;
	set_out(to, piece);
}

static void send_piece(struct end *to, const uint8_t *data, size_t bytes)
{
	struct bottle *bottle = bottle_of(to);
	const unsigned harm = wire_to(to)->harm;
	const uint64_t what = harm && bottle_below(bottle, harm) == 0 ? bottle_below(bottle, 3) : 3;

	bottle_note(bottle, 'n', bytes, what);
	if (what != 0) /* left out */
		put(to, data, bytes, what == 1);
	if (what == 2)
		put(to, data, bytes, false);
}

/* ---- as a transport ---- */

static struct end *of(struct transport *transport)
{
	return (struct end *)transport;
}

static ssize_t net_send(struct transport *transport, const struct iovec *parts, unsigned n)
{
	struct end *to = of(transport)->other;
	uint8_t data[NET_PIECE];
	size_t has = 0, sum = 0;

	if (of(transport)->is_cut || to->is_closed)
		return -ECONNRESET;
	for (unsigned i = 0; i < n; i++)
		for (size_t at = 0; at < parts[i].iov_len && to->bytes + has < NET_ROOM;) {
			const size_t bytes = BASE_MIN(parts[i].iov_len - at, NET_PIECE - has);

			memcpy(data + has, (const uint8_t *)parts[i].iov_base + at, bytes);
			at += bytes;
			has += bytes;
			sum += bytes;
			if (has == NET_PIECE) {
				send_piece(to, data, has);
				has = 0;
			}
		}
	if (has)
		send_piece(to, data, has);
	return sum ? (ssize_t)sum : -EAGAIN;
}

static bool has_come(const struct end *end)
{
	return end->first && end->first->arrives_ns <= bottle_of(end)->clock.now_ns;
}

static size_t take(struct end *end, uint8_t *to, size_t most)
{
	struct piece *piece = end->first;
	const size_t bytes = BASE_MIN(piece->bytes - piece->done, most);

	memcpy(to, piece->data + piece->done, bytes);
	piece->done += bytes;
	end->bytes -= bytes;
	if (piece->done == piece->bytes) {
		end->first = piece->next;
		if (!end->first)
			end->last = &end->first;
		free(piece);
	}
	return bytes;
}

static ssize_t net_receive(struct transport *transport, const struct iovec *parts, unsigned n)
{
	struct end *end = of(transport);
	size_t sum = 0;

	if (end->is_cut)
		return -ECONNRESET;
	for (unsigned i = 0; i < n; i++)
		for (size_t at = 0; at < parts[i].iov_len && has_come(end) && end->first->bytes;) {
			const size_t bytes =
			    take(end, (uint8_t *)parts[i].iov_base + at, parts[i].iov_len - at);

			at += bytes;
			sum += bytes;
		}
	if (sum) { /* there is room again */
		carrier_wake(end->other->node, bottle_of(end)->clock.now_ns);
		return (ssize_t)sum;
	}
	return has_come(end) ? 0 : -EAGAIN;
}

static int net_wait(struct transport *transport, int epoll_fd, uint64_t tag, bool receives,
		    bool sends)
{
	(void)epoll_fd;
	(void)tag;
	of(transport)->receives = receives;
	of(transport)->sends = sends;
	return 0;
}

uint32_t net_events(struct transport *transport)
{
	const struct end *end = of(transport);
	uint32_t events = 0;

	if (!end->receives && !end->sends)
		return 0;
	if (end->is_cut)
		return EPOLLHUP;
	if (end->receives && has_come(end))
		events |= EPOLLIN;
	if (end->sends && end->other->bytes < NET_ROOM / 2)
		events |= EPOLLOUT;
	return events;
}

static void net_woke(struct transport *transport, uint32_t events, bool *ret_receives,
		     bool *ret_sends)
{
	(void)transport;
	*ret_sends = events & (EPOLLOUT | EPOLLHUP);
	*ret_receives = events & (EPOLLIN | EPOLLHUP);
}

static const char *net_why(const struct transport *transport)
{
	(void)transport;
	return NULL;
}

static void forget(struct end *end)
{
	struct end **at = &bottle_of(end)->ends;

	while (*at != end)
		at = &(*at)->next;
	*at = end->next;
	empty(end);
	free(end);
}

static void close_end(struct end *end)
{
	struct end *other = end->other;

	end->is_closed = true;
	empty(end);
	if (other->is_closed) {
		forget(other);
		forget(end);
	} else {
		put(other, NULL, 0, false);
	}
}

static void net_close_transport(struct transport *transport)
{
	close_end(of(transport));
}

static const struct transport_ops net_ops = {.name = "net",
					     .send = net_send,
					     .receive = net_receive,
					     .wait = net_wait,
					     .woke = net_woke,
					     .why = net_why,
					     .close = net_close_transport};

/* ---- connections ---- */

static struct end *add(struct node *node)
{
	struct bottle *bottle = node->bottle;
	struct end *end = calloc(1, sizeof(*end));

	if (!end)
		abort();
	end->transport.ops = &net_ops;
	end->node = node;
	end->fd = NET_FD + bottle->n_ends++;
	end->last = &end->first;
	end->next = bottle->ends;
	bottle->ends = end;
	return end;
}

void net_connect(struct node *a, struct node *b, int ret_fd[2])
{
	struct end *one = add(a), *two = add(b);

	one->other = two;
	two->other = one;
	ret_fd[0] = one->fd;
	ret_fd[1] = two->fd;
}

void net_close(struct bottle *bottle, int fd)
{
	close_end(end_of(bottle, fd));
}

static bool is_between(const struct end *end, unsigned a, unsigned b)
{
	return (end->node->number == a && end->other->node->number == b) ||
	       (end->node->number == b && end->other->node->number == a);
}

void net_cut(struct bottle *bottle, unsigned a, unsigned b)
{
	for (struct end *end = bottle->ends; end; end = end->next) {
		if (!is_between(end, a, b) || end->is_cut)
			continue;
		empty(end);
		end->is_cut = true;
		bottle_at(bottle, bottle->clock.now_ns + net_late_ns(bottle, a, b), on_arrival,
			  end->node, 0, 0);
	}
}

void net_healed(struct bottle *bottle, unsigned a, unsigned b)
{
	for (struct end *end = bottle->ends; end; end = end->next)
		for (struct piece *piece = is_between(end, a, b) ? end->first : NULL; piece;
		     piece = piece->next)
			if (piece->arrives_ns == NEVER)
				set_out(end, piece);
}

void net_end(struct bottle *bottle)
{
	while (bottle->ends) {
		struct end *end = bottle->ends;

		bottle->ends = end->next;
		empty(end);
		free(end);
	}
}

/* What access-carrier calls for a socket. */
int transport_tcp_new(int fd, struct transport **ret)
{
	*ret = &end_of(bottle_now(), fd)->transport;
	return 0;
}

int transport_tcp_take(struct transport *transport)
{
	(void)transport;
	abort(); /* nobody has an RDMA device here */
}
