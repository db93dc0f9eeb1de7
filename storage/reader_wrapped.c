/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Samples of a wrapped data set: a thread's connection to the pool, and one or several samples at a time over it.
 *
 * The pool consists of the user's own processes, outside of accessd's reach, started by his jobs; it can
 * do nothing to this one but answer or not. Its record is made in memory of the connection's, a memfd
 * sealed against shrinking, so that no read of it ends in SIGBUS, and copied to the arena, where the pool
 * cannot change it any more. What it says about that is a worker's to check.
 *
 * A process of the pool that dies is not yet the sample's fault: the sample is asked for once more, of
 * another process. When the pool itself is gone, a job of the user's starts a new one, and a thread
 * waits for that: LINK_WAIT_NS, or until its queue leaves.
 *
 * The pool ends what takes too long; a pool that does not even do that is waited for LINK_GRACE_MS more.
 *
 * Several at a time save round trips, and more where the data set is read by blocks. But the first of them waits
 * for the last, and the training may wait for that one: a connection begins with one, asks for twice as many after an
 * answer that came soon, and for half after one that did not. Whatever goes wrong with several is found out one by one, so a
 * sample fails alone, and what a death costs others is a second try.
 */

#include "storage/reader_parts.h"
#include "storage/source/source_kind.h"
#include "storage/source/source_link.h"
#include "storage/wrapped.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define LINK_WAIT_NS UINT64_C(180000000000) /* to import torch, on a busy machine */
#define LINK_PAUSE_MS 50
#define LINK_GRACE_MS 15000
#define LINK_TRIES 2 /* deaths over one sample */
#define LINK_LOST 5  /* pools that went away over one sample */
#define LINK_SOON_NS UINT64_C(50000000)
#define LINK_LATE_NS UINT64_C(200000000)

enum { LINK_E_GONE = 1 }; /* the other end */

struct link_call { /* one sample, or several, which have makings and outcomes of their own */
	struct reader_link *link;
	const struct reader_dataset *dataset;
	const struct wrapped_note *note;
	const struct source_making *making;
	struct wrapped_ask ask;
	struct reader_outcome *outcome;
};

static void link_fail(struct reader_outcome *ret, const char *text)
{
	*ret = (struct reader_outcome){.stage = LAYOUT_FAIL_READ, .code = EREMOTEIO};
	snprintf(ret->text, sizeof(ret->text), "%.47s", text);
}

/* ---- the connection ---- */

void reader_wrapped_close(struct reader_link *link)
{
	if (link->memory)
		munmap(link->memory, link->bytes);
	if (link->is_open)
		close(link->fd);
	*link = (struct reader_link){.is_open = false};
}

static bool link_is_of(const struct reader_link *link, const struct wrapped_note *note)
{
	return link->is_open && link->room == note->room &&
	       memcmp(&link->id, &note->id, sizeof(link->id)) == 0;
}

static int link_send(int fd, const struct wrapped_ask ask[], unsigned n, int pass)
{
	const struct iovec part = {(void *)(uintptr_t)ask, n * sizeof(*ask)};

	return source_link_send(fd, &part, 1, pass);
}

static int link_open_once(const struct link_call *call)
{
	const struct wrapped_note *note = call->note;
	struct wrapped_ask hello = {.magic = WRAPPED_MAGIC, .kind = WRAPPED_HELLO};
	struct reader_link *link = call->link;
	_cleanup_close_ int memory_fd = -1, root = -1;
	int fd = source_link_connect(call->dataset->path, WRAPPED_SOCKET, &root), r;

	if (fd < 0)
		return fd;
	link->fd = fd;
	link->is_open = true;
	link->id = note->id;
	link->room = note->room;
	link->batch = wrapped_batch(root);
	link->most = 1;
	hello.room = wrapped_memory(note, link->batch);
	memory_fd = source_link_memory("access-wrapped", hello.room, true, &link->memory);
	link->bytes = hello.room;
	r = memory_fd < 0 ? memory_fd : link_send(fd, &hello, 1, memory_fd);
	if (r)
		reader_wrapped_close(link);
	return r;
}

/* 0, or negative errno and the outcome. */
static int link_need(const struct link_call *call)
{
	const uint64_t end_ns = base_now_ns() + LINK_WAIT_NS;
	char text[64];
	int r;

	if (link_is_of(call->link, call->note))
		return 0;
	reader_wrapped_close(call->link);
	while ((r = link_open_once(call)) && source_link_may_come(r) && base_now_ns() < end_ns &&
	       !call->making->is_leaving(call->making->arg))
		poll(NULL, 0, LINK_PAUSE_MS);
	if (!r)
		return 0;
	snprintf(text, sizeof(text), "no pool of processes answers: %s", strerror(-r));
	link_fail(call->outcome, source_link_may_come(r) ? "its pool of processes is gone" : text);
	return r;
}

/* ---- asking ---- */

/* LINK_E_GONE; -ETIMEDOUT: not even the pool's own limit ended it. */
static int link_receive(const struct link_call *call, struct wrapped_answer ret[], unsigned n)
{
	const uint64_t patience_ms = (uint64_t)n * call->note->seconds * 1000 + LINK_GRACE_MS;
	const int limit_ms = (int)BASE_MIN(patience_ms, (uint64_t)INT_MAX);
	struct pollfd ready = {.fd = call->link->fd, .events = POLLIN};
	ssize_t got;
	int r;

	do
		r = poll(&ready, 1, limit_ms);
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return -ETIMEDOUT;
	got = recv(call->link->fd, ret, n * sizeof(*ret), MSG_DONTWAIT | MSG_TRUNC);
	return got == (ssize_t)(n * sizeof(*ret)) ? 0 : LINK_E_GONE;
}

static struct wrapped_ask link_ask_of(const struct queue_task *task, enum wrapped_kind kind)
{
	return (struct wrapped_ask){.magic = WRAPPED_MAGIC,
				    .kind = kind,
				    .sample = task->sample,
				    .random_id = task->random_id,
				    .seed = task->seed,
				    .nonce = task->nonce};
}

/* An answer came after so long. */
static void link_adapt(struct reader_link *link, unsigned asked, unsigned settled, uint64_t took_ns)
{
	if (settled < asked)
		link->most = BASE_MAX(settled, 1U);
	else if (took_ns > LINK_LATE_NS)
		link->most = BASE_MAX(asked / 2, 1U);
	else if (took_ns < LINK_SOON_NS && asked >= link->most)
		link->most = BASE_MIN(2 * asked, link->batch);
}

static void link_good(const struct reader_link *link, uint64_t place, uint64_t bytes,
		      uint8_t *buffer, struct reader_outcome *ret)
{
	memcpy(buffer, link->memory + place, bytes);
	ret->stage = LAYOUT_FAIL_NONE;
}

static void link_say(const struct wrapped_answer *answer, struct reader_outcome *ret)
{
	char text[sizeof(answer->text) + 1] = "";

	memcpy(text, answer->text, sizeof(answer->text));
	link_fail(ret, text);
}

/* ---- a sample ---- */

/* The sample's outcome is known. */
static bool link_settle(const struct link_call *call, const struct wrapped_answer *answer,
			unsigned tries)
{
	if (answer->status == WRAPPED_GOOD && answer->bytes <= call->link->room) {
		link_good(call->link, 0, answer->bytes, call->making->buffer, call->outcome);
		return true;
	}
	if (answer->status == WRAPPED_GOOD)
		link_fail(call->outcome, "a record larger than its room");
	else
		link_say(answer, call->outcome);
	if (answer->status == WRAPPED_DIED)
		return tries >= LINK_TRIES;
	return true;
}

/* One question. true: the outcome is known. */
static bool link_ask(const struct link_call *call, unsigned *tries, unsigned *lost)
{
	const uint64_t begin_ns = base_now_ns();
	struct wrapped_answer answer;
	int r = link_send(call->link->fd, &call->ask, 1, -1);

	if (!r)
		r = link_receive(call, &answer, 1);
	if (r) {
		reader_wrapped_close(call->link);
		link_fail(call->outcome, r == -ETIMEDOUT ? "its pool of processes does not answer"
							 : "its pool of processes is gone");
		return r == -ETIMEDOUT || ++*lost >= LINK_LOST ||
		       call->making->is_leaving(call->making->arg);
	}
	link_adapt(call->link, 1, 1, base_now_ns() - begin_ns);
	*tries += answer.status == WRAPPED_DIED;
	if (!link_settle(call, &answer, *tries)) {
		reader_wrapped_close(call->link);
		return false;
	}
	if (answer.status != WRAPPED_GOOD && answer.status != WRAPPED_FAILED)
		reader_wrapped_close(call->link);
	return true;
}

void reader_wrapped_make(const struct reader_dataset *dataset, const struct source_making *making,
			 struct reader_outcome *ret)
{
	const struct link_call call = {.dataset = dataset,
				       .note = source_wrapped_note(dataset),
				       .making = making,
				       .link = making->link,
				       .ask = link_ask_of(making->task, WRAPPED_READ),
				       .outcome = ret};
	unsigned tries = 0, lost = 0;

	while (link_need(&call) == 0 && !link_ask(&call, &tries, &lost))
		continue;
}

/* ---- several ---- */

unsigned reader_wrapped_most(const struct reader_dataset *dataset, const struct reader_link *link)
{
	return link_is_of(link, source_wrapped_note(dataset)) ? link->most : 1;
}

/* By its part of the answer. *at: as in wrapped_place(). */
static void link_settle_one(const struct link_call *call, const struct wrapped_answer *answer,
			    uint64_t *at, struct reader_wanted *ret)
{
	uint64_t place;

	if (answer->status == WRAPPED_FAILED) {
		link_say(answer, &ret->outcome);
		ret->is_settled = true;
	} else if (answer->status == WRAPPED_GOOD &&
		   wrapped_place(answer, call->note, call->link->bytes, at, &place)) {
		link_good(call->link, place, answer->bytes, ret->buffer, &ret->outcome);
		ret->is_settled = true;
	}
}

/* One question about so many of them. How many of these are settled by it; where none is, the connection has ended. */
static unsigned link_ask_many(const struct link_call *call, struct reader_wanted *const wanted[],
			      unsigned n)
{
	const uint64_t begin_ns = base_now_ns();
	struct wrapped_ask ask[WRAPPED_MAX_BATCH];
	struct wrapped_answer answer[WRAPPED_MAX_BATCH];
	unsigned settled = 0;
	uint64_t at = 0;

	for (unsigned i = 0; i < n; i++)
		ask[i] = link_ask_of(wanted[i]->task, WRAPPED_READ_MANY);
	if (link_send(call->link->fd, ask, n, -1) || link_receive(call, answer, n)) {
		reader_wrapped_close(call->link);
		return 0;
	}
	for (unsigned i = 0; i < n; i++) {
		link_settle_one(call, &answer[i], &at, wanted[i]);
		settled += wanted[i]->is_settled;
	}
	if (settled)
		link_adapt(call->link, n, settled, base_now_ns() - begin_ns);
	else
		reader_wrapped_close(call->link);
	return settled;
}

void reader_wrapped_make_many(const struct reader_dataset *dataset, struct reader_many *many)
{
	struct reader_link *link = many->link;
	const struct link_call call = {
	    .link = link, .dataset = dataset, .note = source_wrapped_note(dataset)};
	struct reader_wanted *some[WRAPPED_MAX_BATCH];
	unsigned count;

	do {
		many->tell(many);
		count = 0;
		for (unsigned i = 0; i < many->n && count < reader_wrapped_most(dataset, link); i++)
			if (!many->wanted[i].is_settled)
				some[count++] = &many->wanted[i];
	} while (count && link_is_of(link, call.note) && link_ask_many(&call, some, count));
}
