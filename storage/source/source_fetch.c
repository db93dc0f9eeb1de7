/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Ranges of objects, which access-bucket brings (shmring/bucket.h): a thread's questions, up to SOURCE_SLOTS of them at once.
 *
 * Connections are the data set's. A thread takes one that is idle, or makes one, as long as it has something to ask, so
 * there are as many as threads that ever read at once. Each has memory with a slot for each question, of which only what comes is
 * there; what large ranges took of it is given back. Bytes are copied from it, to where they are wanted, before anything
 * else is asked in that slot; and a connection over which something is still to come is never used for others.
 *
 * When access-bucket is gone, a job of the user's starts a new one. All that was asked is asked again of that one, which is
 * waited for as long as the bucket says, or until nobody wants the bytes any more. So it is with one that says what makes no
 * sense, a few times. Which errors are worth a second try access-bucket knows: what it gives up is an error here.
 */

#include "storage/source/source_bucket.h"

#include "base/hold.h"
#include "shmring/bucket.h"
#include "storage/source/source_link.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define FETCH_PAUSE_MS 50
#define FETCH_LOOK_MS 1000                /* between two looks whether anybody still wants it */
#define FETCH_LOST 5                      /* connections, over which nothing good came */
#define FETCH_KEEPS (UINT32_C(512) << 10) /* of a slot's memory, when it is free */
#define FETCH_BYTES ((uint64_t)SOURCE_SLOTS * SOURCE_SLOT)

_Static_assert(SOURCE_SLOTS == BUCKET_MOST_ASKS, "one message asks for all");
_Static_assert(FETCH_BYTES <= BUCKET_MOST_MEMORY, "the memory is no larger than it may be");
_Static_assert(SOURCE_WHY == sizeof(((struct bucket_answer *)0)->text), "a text");

enum slot_state { SLOT_FREE, SLOT_WANTED, SLOT_ASKED };
struct fetch_slot {
	enum slot_state state;
	uint64_t id; /* of the question */
	struct source_range range;
	char name[BUCKET_NAME_ROOM];
	size_t name_bytes;
};

struct bucket_link { /* a connection, of one thread at a time */
	struct bucket_link *next;
	int fd, memory_fd; /* owned; -1: there is none */
	uint8_t *memory;   /* owned */
	uint64_t asked;    /* so far */
	struct fetch_slot slot[SOURCE_SLOTS];
	uint8_t message[BUCKET_MOST_MESSAGE];
};

struct fetching {
	struct bucket *bucket;
	const struct source_fetch *fetch;
	struct bucket_link *link;
	unsigned n;    /* of its slots that are not free */
	unsigned lost; /* connections, since something good came */
	bool is_over;  /* nothing more is taken on */
	uint64_t heard_ns;
};

/* ---- connections ---- */

static void link_close(struct bucket_link *link)
{
	if (link->memory)
		munmap(link->memory, FETCH_BYTES);
	link->memory = NULL;
	base_close(&link->memory_fd);
	base_close(&link->fd);
}

/* 0 or negative errno. */
static int link_open(struct bucket_link *link, const struct bucket *bucket)
{
	const struct bucket_head hello = {
	    .magic = BUCKET_MAGIC, .kind = BUCKET_HELLO, .memory = FETCH_BYTES};
	const struct iovec part = {(void *)(uintptr_t)&hello, sizeof(hello)};
	_cleanup_close_ int folder = -1;
	int fd = source_link_connect(bucket->folder, BUCKET_SOCKET, &folder), r;

	if (fd < 0)
		return fd;
	link->fd = fd;
	r = source_link_memory("access-bucket", FETCH_BYTES, false, &link->memory);
	if (r >= 0) {
		link->memory_fd = r;
		r = source_link_send(fd, &part, 1, link->memory_fd);
	}
	if (r)
		link_close(link);
	return r;
}

static struct bucket_link *take_idle(struct bucket *bucket)
{
	struct bucket_link *link;

	BASE_HOLD(&bucket->lock);
	link = bucket->idle;
	if (link)
		bucket->idle = link->next;
	return link;
}

static struct bucket_link *link_take(struct bucket *bucket)
{
	struct bucket_link *link = take_idle(bucket);

	if (link || !(link = calloc(1, sizeof(*link))))
		return link;
	link->fd = link->memory_fd = -1;
	return link;
}

static void link_give_back(struct bucket *bucket, struct bucket_link *link)
{
	BASE_HOLD(&bucket->lock);
	link->next = bucket->idle;
	bucket->idle = link;
}

void source_fetch_close(struct bucket *bucket)
{
	struct bucket_link *link;

	while ((link = take_idle(bucket))) {
		link_close(link);
		free(link);
	}
}

/* ---- slots ---- */

static void settle(struct fetching *all, unsigned i, int result, const char *why)
{
	all->link->slot[i].state = SLOT_FREE;
	all->n--;
	all->fetch->came(all->fetch->arg, i, result, why);
}

/* And what is not even asked for. */
static void settle_all(struct fetching *all, int result, const char *why)
{
	struct source_range range;

	for (unsigned i = 0; i < SOURCE_SLOTS; i++)
		if (all->link->slot[i].state != SLOT_FREE)
			settle(all, i, result, why);
	all->is_over = true;
	while (all->fetch->next(all->fetch->arg, 0, &range))
		all->fetch->came(all->fetch->arg, 0, result, why);
}

/* Nothing that was asked comes any more. */
static void hang_up(struct fetching *all)
{
	link_close(all->link);
	for (unsigned i = 0; i < SOURCE_SLOTS; i++)
		if (all->link->slot[i].state == SLOT_ASKED)
			all->link->slot[i].state = SLOT_WANTED;
}

static void lose(struct fetching *all)
{
	hang_up(all);
	if (++all->lost == FETCH_LOST)
		settle_all(all, -EREMOTEIO, "access-bucket ends, or says what it may not");
}

static bool is_left(struct fetching *all)
{
	if (!source_bucket_is_left(all->bucket))
		return false;
	hang_up(all);
	settle_all(all, -ECANCELED, "nobody waits for it any more");
	return true;
}

static void take_on(struct fetching *all)
{
	for (unsigned i = 0; i < SOURCE_SLOTS && !all->is_over; i++) {
		struct fetch_slot *slot = &all->link->slot[i];

		if (slot->state != SLOT_FREE)
			continue;
		if (!all->fetch->next(all->fetch->arg, i, &slot->range))
			return;
		slot->state = SLOT_WANTED;
		all->n++;
		slot->name_bytes = source_bucket_name(all->bucket, slot->range.name, slot->name);
		if (!slot->name_bytes)
			settle(all, i, -EINVAL, "no object can have its name");
	}
}

/* ---- asking ---- */

/* Is somebody there? Else all is settled. */
static bool need_link(struct fetching *all)
{
	const uint64_t end_ns = base_now_ns() + all->bucket->wait_ns;
	char text[SOURCE_WHY];
	int r;

	if (all->link->fd >= 0)
		return true;
	while ((r = link_open(all->link, all->bucket)) && source_link_may_come(r) &&
	       base_now_ns() < end_ns) {
		if (is_left(all))
			return false;
		poll(NULL, 0, FETCH_PAUSE_MS);
	}
	if (!r)
		return true;
	snprintf(text, sizeof(text), "no access-bucket: %s", strerror(-r));
	settle_all(all, -EREMOTEIO, source_link_may_come(r) ? "access-bucket is gone" : text);
	return false;
}

/* All that is wanted and was not asked for. Returns its bytes. */
static size_t write_message(struct bucket_link *link, unsigned n)
{
	const struct bucket_head head = {.magic = BUCKET_MAGIC, .kind = BUCKET_READ, .count = n};
	uint8_t *asks = link->message + sizeof(head), *names = asks + n * sizeof(struct bucket_ask);

	memcpy(link->message, &head, sizeof(head));
	for (unsigned i = 0; i < SOURCE_SLOTS; i++) {
		struct fetch_slot *slot = &link->slot[i];
		struct bucket_ask ask = {.at = slot->range.at,
					 .place = (uint64_t)i * SOURCE_SLOT,
					 .size = slot->range.size,
					 .mtime_ns = slot->range.mtime_ns,
					 .bytes = slot->range.bytes,
					 .name_bytes = (uint32_t)slot->name_bytes};

		if (slot->state != SLOT_WANTED)
			continue;
		slot->id = ask.id = ++link->asked * SOURCE_SLOTS + i;
		memcpy(asks, &ask, sizeof(ask));
		memcpy(names, slot->name, slot->name_bytes);
		asks += sizeof(ask);
		names += slot->name_bytes;
	}
	return (size_t)(names - link->message);
}

static unsigned count_wanted(const struct bucket_link *link)
{
	unsigned n = 0;

	for (unsigned i = 0; i < SOURCE_SLOTS; i++)
		n += link->slot[i].state == SLOT_WANTED;
	return n;
}

/* false: the other end takes no more now. */
static bool ask(struct fetching *all)
{
	struct bucket_link *link = all->link;
	const unsigned wanted = count_wanted(link);
	struct iovec part = {.iov_base = link->message};
	int r;

	if (!wanted)
		return true;
	part.iov_len = write_message(link, wanted);
	r = source_link_send(link->fd, &part, 1, -1);
	if (r == -EAGAIN)
		return false;
	if (r) {
		lose(all);
		return true;
	}
	if (wanted == all->n)
		all->heard_ns = base_now_ns(); /* from here on it is waited for */
	for (unsigned i = 0; i < SOURCE_SLOTS; i++)
		if (link->slot[i].state == SLOT_WANTED)
			link->slot[i].state = SLOT_ASKED;
	return true;
}

/* ---- answers ---- */

/* What a large one took of the memory, which others may never need. */
static void give_back_memory(const struct bucket_link *link, unsigned i)
{
	if (link->slot[i].range.bytes > FETCH_KEEPS)
		fallocate(link->memory_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  (off_t)i * SOURCE_SLOT + FETCH_KEEPS, SOURCE_SLOT - FETCH_KEEPS);
}

static void say(const struct bucket_answer *answer, char ret[SOURCE_WHY])
{
	memcpy(ret, answer->text, SOURCE_WHY - 1);
	ret[SOURCE_WHY - 1] = '\0';
	if (!*ret && answer->code >= 100)
		snprintf(ret, SOURCE_WHY, "the store says HTTP %d", answer->code);
	else if (!*ret)
		snprintf(ret, SOURCE_WHY, "the store: %s",
			 strerror(answer->code > 0 ? answer->code : EIO));
}

/* false: it makes no sense. */
static bool take_answer(struct fetching *all, const struct bucket_answer *answer)
{
	const unsigned i = (unsigned)(answer->id % SOURCE_SLOTS);
	const struct fetch_slot *slot = &all->link->slot[i];
	char why[SOURCE_WHY] = "";

	if (slot->state != SLOT_ASKED || answer->id != slot->id || answer->status > BUCKET_FAILED)
		return false;
	if (answer->status == BUCKET_GOOD) {
		memcpy(slot->range.to, all->link->memory + (size_t)i * SOURCE_SLOT,
		       slot->range.bytes);
		give_back_memory(all->link, i);
	} else if (answer->status != BUCKET_CHANGED) {
		say(answer, why);
	}
	all->lost = 0;
	settle(all, i,
	       answer->status == BUCKET_GOOD      ? 0
	       : answer->status == BUCKET_CHANGED ? SOURCE_E_CHANGED
	       : answer->status == BUCKET_DENIED  ? -EACCES
						  : -EREMOTEIO,
	       why);
	return true;
}

/* One message. false: the connection is lost. */
static bool hear(struct fetching *all)
{
	struct bucket_answer answer[BUCKET_MOST_ASKS];
	const ssize_t got = recv(all->link->fd, answer, sizeof(answer), MSG_DONTWAIT | MSG_TRUNC);

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (got <= 0 || (size_t)got > sizeof(answer) || (size_t)got % sizeof(*answer))
		return false;
	for (size_t i = 0; i < (size_t)got / sizeof(*answer); i++)
		if (!take_answer(all, &answer[i]))
			return false;
	all->heard_ns = base_now_ns();
	return true;
}

/* For answers, or for room for questions. */
static void listen_once(struct fetching *all, bool is_full)
{
	struct pollfd ready = {.fd = all->link->fd,
			       .events = (short)(POLLIN | (is_full ? POLLOUT : 0))};
	const int r = poll(&ready, 1, BASE_MIN(all->bucket->patience_ms, FETCH_LOOK_MS));

	if (r > 0 && (ready.revents & ~POLLOUT)) {
		if (!hear(all))
			lose(all);
	} else if (r == 0 && !is_left(all) &&
		   base_now_ns() - all->heard_ns >= (uint64_t)all->bucket->patience_ms * 1000000) {
		hang_up(all);
		settle_all(all, -ETIMEDOUT, "access-bucket does not answer");
	}
}

void source_fetch(struct bucket *bucket, const struct source_fetch *fetch)
{
	struct fetching all = {.bucket = bucket, .fetch = fetch, .heard_ns = base_now_ns()};
	struct source_range range;

	all.link = link_take(bucket);
	while (!all.link && fetch->next(fetch->arg, 0, &range))
		fetch->came(fetch->arg, 0, -ENOMEM, strerror(ENOMEM));
	if (!all.link)
		return;
	for (take_on(&all); all.n; take_on(&all)) {
		if (need_link(&all)) {
			const bool is_full = !ask(&all);

			if (all.link->fd >= 0)
				listen_once(&all, is_full);
		}
		if (fetch->pause)
			fetch->pause(fetch->arg);
	}
	link_give_back(bucket, all.link);
}
