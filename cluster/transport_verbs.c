/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A stream of bytes by SEND and RECV: each message is a part of it, received into a ring and copied from there to where it
 * belongs, as from a socket.
 *
 * Credits: a sender has one for each receive that the other end has posted for it, and without one sends nothing, so no
 * message ever meets a queue without a receive. What was received and copied is posted anew, and owed as a credit; what is
 * owed goes along with the next message, or in one of its own when it is half of all. Such a message has no bytes and needs no
 * credit: at most two of them are on the way before the other end has seen one, for it can use no credit that it has not
 * got. VERBS_RECEIVES has room for these and for the one message that tries the way. One more that says nothing is nonsense: who
 * could send them without end would keep the carrier from all others.
 *
 * A queue pair that was given back is stopped, and rests while the others have their turn; then it is reset. So what is still on
 * its way to it meets nobody, and what was under way has ended.
 *
 * The socket carries nothing any more. When the other side closes it, or its process dies, the connection has ended, also
 * where the network between the devices would take seconds to say so.
 */

#include "cluster/transport_verbs.h"

#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>

#include "cluster/value.h"

#define VERBS_PAIRS (VALUE_MOST_PEERS + 4) /* some rest, also in a full cell */
#define VERBS_MESSAGE (UINT32_C(32) << 10)
#define VERBS_CREDITS 9 /* messages with bytes that the other end may have sent */
#define VERBS_OWED_MOST ((VERBS_CREDITS + 1) / 2)
#define VERBS_RECEIVES (VERBS_CREDITS + 3)
#define VERBS_BUFFERS 4                 /* sends with bytes */
#define VERBS_SENDS (VERBS_BUFFERS + 4) /* and without */
#define VERBS_PLACES (VERBS_RECEIVES + VERBS_BUFFERS)
#define VERBS_EMPTY 0xffU /* in place of a buffer: a send without bytes */
#define VERBS_RECEIVED UINT64_C(0x100)

struct came { /* a message that was received, and not copied yet */
	uint8_t place;
	uint32_t at, bytes;
};

struct link {
	struct transport transport; /* first */
	struct verbs_pool *pool;
	unsigned i; /* of the queue pair */
	uint32_t generation;
	struct path_address address;
	int fd;       /* the socket; -1: it is not ours yet */
	int epoll_fd; /* that knows the queue pair's descriptor; -1: none does */
	bool is_armed, has_ended, has_tried, was_tried;
	unsigned credits, owed, empties; /* empties: sends without bytes under way */
	unsigned n_free;
	uint8_t free[VERBS_BUFFERS]; /* buffers that nothing is sent from */
	unsigned first, n;           /* of came[], a ring */
	struct came came[VERBS_RECEIVES];
	int error; /* it is of no use any more; 0: it is */
	char why[160];
};

enum slot { SLOT_FREE, SLOT_TAKEN, SLOT_BROKEN /* it could not be reset */ };

struct verbs_pool {
	const struct verbs_ops *ops;
	struct verbs *verbs;
	uint8_t *memory;
	uint32_t generation, chance;
	unsigned next; /* whose turn it is */
	enum slot slot[VERBS_PAIRS];
};

#define POOL_BYTES ((size_t)VERBS_PAIRS * VERBS_PLACES * VERBS_MESSAGE)

/* ---- the pool ---- */

int verbs_pool_new(const struct verbs_ops *ops, struct verbs_pool **ret, struct diag *why)
{
	struct verbs_pool *pool = calloc(1, sizeof(*pool));
	void *memory =
	    mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int r = pool && memory != MAP_FAILED ? 0 : -ENOMEM;

	if (r)
		diag_set(why, "there is no memory for messages");
	else
		r = base_random(&pool->chance, sizeof(pool->chance));
	if (r == 0)
		r = ops->open(memory, POOL_BYTES, VERBS_PAIRS, VERBS_SENDS, VERBS_RECEIVES,
			      &pool->verbs, why);
	if (r) {
		if (memory != MAP_FAILED)
			munmap(memory, POOL_BYTES);
		free(pool);
		return r;
	}
	pool->ops = ops;
	pool->memory = memory;
	*ret = pool;
	return 0;
}

void verbs_pool_free(struct verbs_pool *pool)
{
	pool->ops->close(pool->verbs);
	munmap(pool->memory, POOL_BYTES);
	free(pool);
}

const char *verbs_pool_device(const struct verbs_pool *pool)
{
	return pool->ops->name(pool->verbs);
}

int verbs_pool_device_fd(const struct verbs_pool *pool)
{
	return pool->ops->device_fd(pool->verbs);
}

int verbs_pool_event_fd(const struct verbs_pool *pool)
{
	return pool->ops->event_fd(pool->verbs);
}

bool verbs_pool_broken(struct verbs_pool *pool)
{
	return pool->ops->broken(pool->verbs);
}

/* ---- one queue pair ---- */

static struct link *link_of(struct transport *transport)
{
	return (struct link *)transport;
}

static void *place_of(const struct link *link, unsigned place)
{
	return link->pool->memory + ((size_t)link->i * VERBS_PLACES + place) * VERBS_MESSAGE;
}

static int fail(struct link *link, int error, const char *why)
{
	if (!link->error) {
		link->error = error;
		snprintf(link->why, sizeof(link->why), "%s", why);
	}
	return error;
}

static uint64_t id_of(const struct link *link, unsigned place)
{
	return (uint64_t)link->generation << 32 | place;
}

static int post_receive(struct link *link, unsigned place)
{
	struct verbs_pool *pool = link->pool;
	int r = pool->ops->post_receive(pool->verbs, link->i, id_of(link, place) | VERBS_RECEIVED,
					place_of(link, place), VERBS_MESSAGE);

	return r ? fail(link, r, "a receive cannot be posted") : 0;
}

/* place: a buffer of n_free's, or VERBS_EMPTY. All that is owed goes along. */
static int post_send(struct link *link, unsigned place, uint32_t bytes)
{
	struct verbs_pool *pool = link->pool;
	const void *from = place_of(link, place == VERBS_EMPTY ? 0 : place);
	int r =
	    pool->ops->post_send(pool->verbs, link->i, id_of(link, place), from, bytes, link->owed);

	if (r)
		return fail(link, r, "a send cannot be posted");
	link->owed = 0;
	if (place == VERBS_EMPTY)
		link->empties++;
	return 0;
}

static void give_back(struct link *link)
{
	if (!link->error && link->owed >= VERBS_OWED_MOST &&
	    link->empties < VERBS_SENDS - VERBS_BUFFERS)
		post_send(link, VERBS_EMPTY, 0);
}

/* ---- what was done ---- */

static void on_sent(struct link *link, unsigned place)
{
	if (place == VERBS_EMPTY) {
		link->empties--;
		link->was_tried = true;
	} else {
		link->free[link->n_free++] = (uint8_t)place;
	}
}

static void on_received(struct link *link, unsigned place, const struct verbs_done *done)
{
	if (done->said > VERBS_CREDITS - link->credits || done->bytes > VERBS_MESSAGE) {
		fail(link, -EPROTO, "the other end gives credits that it does not have");
		return;
	}
	link->credits += done->said;
	if (done->bytes == 0) {
		if (link->has_tried && done->said == 0) {
			fail(link, -EPROTO, "the other end sends messages that say nothing");
			return;
		}
		link->has_tried = true;
		post_receive(link, place);
		return;
	}
	link->came[(link->first + link->n++) % VERBS_RECEIVES] =
	    (struct came){.place = (uint8_t)place, .bytes = done->bytes};
}

static void on_done(struct link *link, const struct verbs_done *done)
{
	const unsigned place = done->id & 0xff;

	if (done->id >> 32 != link->generation || link->error)
		return; /* of one who had the queue pair before */
	if (done->wrong)
		fail(link, -EIO, done->wrong);
	else if (done->id & VERBS_RECEIVED)
		on_received(link, place, done);
	else
		on_sent(link, place);
}

static void poll_done(struct link *link)
{
	struct verbs_pool *pool = link->pool;
	struct verbs_done done[VERBS_SENDS];
	int n;

	do {
		n = link->error ? 0 : pool->ops->poll(pool->verbs, link->i, done, VERBS_SENDS);
		if (n < 0)
			fail(link, n, "its queue cannot be read");
		for (int i = 0; i < n; i++)
			on_done(link, &done[i]);
	} while (n == VERBS_SENDS);
	give_back(link);
}

/* ---- a transport ---- */

static bool may_send(const struct link *link)
{
	return link->error || (link->credits && link->n_free);
}

static bool may_receive(const struct link *link)
{
	return link->error || link->n || link->has_ended;
}

/* Where the parts are read or written, one after the other. */
struct cursor {
	const struct iovec *part;
	unsigned n;
	size_t at;
};

static size_t copy(struct cursor *cursor, uint8_t *bytes, size_t most, bool out)
{
	size_t sum = 0;

	while (cursor->n && sum < most) {
		uint8_t *with = (uint8_t *)cursor->part->iov_base + cursor->at;
		const size_t some = BASE_MIN(most - sum, cursor->part->iov_len - cursor->at);

		if (out)
			memcpy(bytes + sum, with, some);
		else
			memcpy(with, bytes + sum, some);
		sum += some;
		cursor->at += some;
		if (cursor->at == cursor->part->iov_len) {
			cursor->part++;
			cursor->n--;
			cursor->at = 0;
		}
	}
	return sum;
}

static ssize_t link_send(struct transport *transport, const struct iovec *parts, unsigned n)
{
	struct link *link = link_of(transport);
	struct cursor cursor = {.part = parts, .n = n};
	size_t sum = 0;

	if (!link->credits || !link->n_free)
		poll_done(link);
	while (!link->error && link->credits && link->n_free) {
		const unsigned place = link->free[link->n_free - 1];
		const size_t bytes = copy(&cursor, place_of(link, place), VERBS_MESSAGE, true);

		if (bytes == 0 || post_send(link, place, (uint32_t)bytes))
			break;
		link->n_free--;
		link->credits--;
		sum += bytes;
	}
	if (link->error)
		return link->error;
	return sum ? (ssize_t)sum : -EAGAIN;
}

static ssize_t link_receive(struct transport *transport, const struct iovec *parts, unsigned n)
{
	struct link *link = link_of(transport);
	struct cursor cursor = {.part = parts, .n = n};
	size_t sum = 0;

	if (link->n == 0)
		poll_done(link);
	while (link->n && cursor.n) {
		struct came *came = &link->came[link->first];
		const size_t bytes =
		    copy(&cursor, (uint8_t *)place_of(link, came->place) + came->at,
			 came->bytes - came->at, false);

		sum += bytes;
		came->at += (uint32_t)bytes;
		if (came->at < came->bytes)
			break;
		link->first = (link->first + 1) % VERBS_RECEIVES;
		link->n--;
		link->owed++;
		post_receive(link, came->place);
	}
	give_back(link);
	if (sum)
		return (ssize_t)sum;
	if (link->error)
		return link->error;
	return link->has_ended ? 0 : -EAGAIN;
}

/* The socket wakes by its end alone; once that was heard, not again. */
static int watch_socket(struct link *link, uint64_t tag, bool watched)
{
	struct epoll_event event = {.events = EPOLLRDHUP, .data.u64 = tag};

	if (!watched)
		epoll_ctl(link->epoll_fd, EPOLL_CTL_DEL, link->fd, NULL);
	else if (epoll_ctl(link->epoll_fd, EPOLL_CTL_MOD, link->fd, &event) < 0 &&
		 (errno != ENOENT ||
		  epoll_ctl(link->epoll_fd, EPOLL_CTL_ADD, link->fd, &event) < 0))
		return -errno;
	return 0;
}

static int watch_pair(struct link *link, int epoll_fd, uint64_t tag)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = tag};
	const struct verbs_pool *pool = link->pool;

	if (link->epoll_fd >= 0)
		return 0;
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, pool->ops->done_fd(pool->verbs, link->i), &event) <
	    0)
		return -errno;
	link->epoll_fd = epoll_fd;
	return 0;
}

static int link_wait(struct transport *transport, int epoll_fd, uint64_t tag, bool receives,
		     bool sends)
{
	struct link *link = link_of(transport);
	int r = watch_pair(link, epoll_fd, tag);

	if (r || (!receives && !sends))
		return r;
	if ((receives && may_receive(link)) || (sends && may_send(link)))
		return 1;
	if (!link->is_armed) {
		r = link->pool->ops->arm(link->pool->verbs, link->i);
		if (r)
			return fail(link, r, "its queue cannot be waited for");
		link->is_armed = true;
		poll_done(link); /* or what was done before it was armed would wake nobody */
	}
	return (receives && may_receive(link)) || (sends && may_send(link));
}

static void link_woke(struct transport *transport, uint32_t events, bool *ret_receives,
		      bool *ret_sends)
{
	struct link *link = link_of(transport);

	if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR) && link->fd >= 0) {
		link->has_ended = true;
		watch_socket(link, 0, false);
	}
	if (events & EPOLLIN) {
		link->pool->ops->heard(link->pool->verbs, link->i);
		link->is_armed = false;
	}
	poll_done(link);
	*ret_receives = may_receive(link);
	*ret_sends = may_send(link);
}

static const char *link_why(const struct transport *transport)
{
	const struct link *link = (const struct link *)transport;

	return link->error ? link->why : NULL;
}

static void link_close(struct transport *transport)
{
	struct link *link = link_of(transport);
	struct verbs_pool *pool = link->pool;
	const int done_fd = pool->ops->done_fd(pool->verbs, link->i);

	pool->ops->stop(pool->verbs, link->i);
	if (link->epoll_fd >= 0)
		epoll_ctl(link->epoll_fd, EPOLL_CTL_DEL, done_fd, NULL);
	pool->slot[link->i] = SLOT_FREE;
	base_close(&link->fd);
	free(link);
}

static const struct transport_ops link_ops = {
    .name = "rdma",
    .send = link_send,
    .receive = link_receive,
    .wait = link_wait,
    .woke = link_woke,
    .why = link_why,
    .close = link_close,
};

/* ---- its beginning ---- */

static int begin(struct link *link, struct diag *why)
{
	struct verbs_pool *pool = link->pool;
	int r = pool->ops->address(pool->verbs, link->i, &link->address, why);

	if (r)
		return r;
	r = pool->ops->prepare(pool->verbs, link->i);
	for (unsigned place = 0; r == 0 && place < VERBS_RECEIVES; place++)
		r = post_receive(link, place);
	if (r)
		diag_set(why, "a queue pair of %s cannot be made ready: %s",
			 pool->ops->name(pool->verbs), strerror(-r));
	return r;
}

/* The next one that is free and can be reset, round and round. VERBS_PAIRS: none is. */
static unsigned take_slot(struct verbs_pool *pool)
{
	const unsigned first = pool->next;

	for (unsigned n = 0; n < VERBS_PAIRS; n++) {
		const unsigned i = (first + n) % VERBS_PAIRS;

		if (pool->slot[i] != SLOT_FREE)
			continue;
		pool->next = (i + 1) % VERBS_PAIRS;
		pool->slot[i] = pool->ops->reset(pool->verbs, i) ? SLOT_BROKEN : SLOT_TAKEN;
		if (pool->slot[i] == SLOT_TAKEN)
			return i;
	}
	return VERBS_PAIRS;
}

int transport_verbs_new(struct verbs_pool *pool, struct transport **ret,
			struct path_address *ret_address, struct diag *why)
{
	struct link *link = calloc(1, sizeof(*link));
	const unsigned i = link ? take_slot(pool) : VERBS_PAIRS;
	int r;

	if (i == VERBS_PAIRS) {
		diag_set(why, "no queue pair of %s is free", pool->ops->name(pool->verbs));
		free(link);
		return -EBUSY;
	}
	pool->chance = pool->chance * 1664525U + 1013904223U;
	*link = (struct link){
	    .transport.ops = &link_ops,
	    .pool = pool,
	    .i = i,
	    .generation = ++pool->generation,
	    .address.first = pool->chance >> 8,
	    .fd = -1,
	    .epoll_fd = -1,
	    .credits = VERBS_CREDITS,
	    .n_free = VERBS_BUFFERS,
	};
	for (unsigned place = 0; place < VERBS_BUFFERS; place++)
		link->free[place] = (uint8_t)(VERBS_RECEIVES + place);
	r = begin(link, why);
	if (r) {
		link_close(&link->transport);
		return r;
	}
	*ret = &link->transport;
	*ret_address = link->address;
	return 0;
}

int transport_verbs_connect(struct transport *transport, const struct path_address *theirs,
			    struct diag *why)
{
	struct link *link = link_of(transport);

	return link->pool->ops->connect(link->pool->verbs, link->i, &link->address, theirs, why);
}

int transport_verbs_try(struct transport *transport)
{
	return post_send(link_of(transport), VERBS_EMPTY, 0);
}

int transport_verbs_works(struct transport *transport)
{
	struct link *link = link_of(transport);

	poll_done(link);
	return link->error ? link->error : link->has_tried && link->was_tried;
}

int transport_verbs_take(struct transport *transport, int fd, int epoll_fd, uint64_t tag)
{
	struct link *link = link_of(transport);
	int r = watch_pair(link, epoll_fd, tag);

	link->fd = fd;
	return r ? r : watch_socket(link, tag, true);
}

bool transport_is_verbs(const struct transport *transport)
{
	return transport->ops == &link_ops;
}
