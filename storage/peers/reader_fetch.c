/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What this node's tasks ask for.
 *
 * A task that is to make a form is asked of who owns its sample: a reading thread writes the question and goes on, the task
 * waits in a table (reader_asks.c). Where the owner is this node, and somebody makes the value, it waits for that one
 * (reader_answer.c). Whatever does not come, or does not come in time, is read from the source, by a reading thread.
 *
 * Whoever takes a task out of the table ends it, or has it read.
 */

#include "storage/reader_peers.h"

/* Who has nothing to do makes what others make, too: so many a tick of those that he waits for so long. */
#define FETCH_IDLE_NS UINT64_C(500000000)
#define FETCH_IDLE_MOST 8
/* Then a task is read from its source: longer than the two times that somebody's making may take (who waits for the
 * first one may find another promise), and than the carrier waits for an answer. */
#define FETCH_PATIENCE_NS UINT64_C(20000000000)

static uint32_t work_seen; /* the peers' thread's */

static void read_all_instead(struct reader_ask *list)
{
	while (list) {
		struct reader_ask *next = list->next;

		reader_queue_again(list);
		list = next;
	}
}

/* The value that a task waits for: checked to be no larger than its room. */
static void come(struct reader_ask *ask, enum layout_from from, unsigned form, const uint8_t *value,
		 uint32_t bytes)
{
	const uint32_t behind = form == LAYOUT_FORM_INDEXED ? ask->task.bytes : 0;

	if (ask->task.want != form || bytes > ask->task.room || ask->task.room - bytes < behind)
		reader_queue_again(ask);
	else
		reader_queue_bring(ask, from, value, bytes);
}

/* ---- asking, from reading threads ---- */

static bool ask_there(const struct reader_ask *ask, uint64_t id)
{
	const struct value_head get = {
	    .magic = VALUE_MAGIC,
	    .type = VALUE_GET,
	    .peer = ask->peer,
	    .id = id,
	    .sample = ask->task.sample,
	    .room = BASE_MIN(ask->task.room, VALUE_MOST),
	    .group = ask->group,
	};

	return reader_tell_of(ask->shared, &get, NULL);
}

/* This node's own sample: does somebody make it already? Else it is this task that does. */
static bool waits_here(const struct reader_ask *ask, uint64_t id)
{
	const struct promise_waiter self = {
	    .group = ask->group, .sample = ask->task.sample, .id = id, .peer = PROMISE_SELF};

	return reader_answer_waits(&self);
}

/* false: nobody answers it, and it is the caller's again. */
static bool wait_or_ask(const struct reader_ask *ask)
{
	const uint64_t id = reader_asks_add(ask);
	struct reader_ask *mine;

	if (!id)
		return false;
	if (ask->peer == PROMISE_SELF ? waits_here(ask, id) : ask_there(ask, id))
		return true;
	mine = reader_asks_take(id, ask->peer, &ask->group, ask->task.sample);
	if (!mine) /* given up meanwhile, and read by somebody else */
		return true;
	reader_asks_free(mine);
	return false;
}

bool reader_peers_ask(struct reader_queue *queue, struct reader_shared *shared,
		      const struct queue_task *task)
{
	struct reader_ask ask = {
	    .queue = queue, .task = *task, .group = shared->id, .shared = shared};
	uint32_t next;

	if (!reader_peers_is_on() || !task->make)
		return false;
	if (task->want != task->make || reader_checks_waits(&shared->id, task->sample)) {
		if (reader_answer_owns(&shared->id, task->sample))
			reader_answer_promise(shared, task->sample);
		return false;
	}
	ask.peer = reader_peers_owner(&shared->id, task->sample, &next);
	ask.since_ns = base_now_ns();
	ask.until_ns = ask.since_ns + FETCH_PATIENCE_NS;
	reader_queue_keep(queue);
	if (wait_or_ask(&ask))
		return true;
	if (ask.peer == PROMISE_SELF && next != PROMISE_SELF) {
		ask.peer = next;
		ask.is_last = true;
		if (wait_or_ask(&ask))
			return true;
	}
	reader_queue_put(queue);
	return false;
}

/* Somebody makes it, and that takes its time. */
static void ask_again(struct reader_ask *ask)
{
	struct reader_ask further = *ask;

	further.has_waited = true;
	if (wait_or_ask(&further))
		reader_asks_free(ask);
	else
		reader_queue_again(ask);
}

/* ---- this node's own, which wait for what is made here; from the keeper and the peers' thread ---- */

static struct reader_ask *take_own(const struct promise_waiter *waiter)
{
	return reader_asks_take(waiter->id, PROMISE_SELF, &waiter->group, waiter->sample);
}

void reader_fetch_none(const struct promise_waiter *waiter)
{
	struct reader_ask *ask = take_own(waiter);

	if (ask)
		reader_queue_again(ask);
}

void reader_fetch_value(const struct promise_waiter *waiter, enum layout_from from, unsigned form,
			const uint8_t *value, uint32_t bytes)
{
	struct reader_ask *ask = take_own(waiter);

	if (ask)
		come(ask, from, form, value, bytes);
}

void reader_fetch_patient(const struct promise_waiter *waiter)
{
	struct reader_ask *ask = take_own(waiter);

	if (ask)
		ask_again(ask);
}

/* ---- answers, in the peers' thread ---- */

/* It came from who had it before its owner did: that one keeps it from now on. */
static void hand_on(const struct reader_ask *ask, const struct value_head *have,
		    const uint8_t *value)
{
	struct value_head put = *have;
	uint32_t next;

	put.type = VALUE_PUT;
	put.id = 0;
	put.room = 0;
	put.peer = reader_peers_owner(&have->group, have->sample, &next);
	if (put.peer != PROMISE_SELF) {
		reader_tell_of(ask->shared, &put, value);
		return;
	}
	reader_queue_store(ask->queue, have->form, have->sample, value, have->bytes);
	reader_answer_all(have, LAYOUT_FROM_PEER, value);
}

void reader_fetch_have(const struct value_head *have, const uint8_t *value)
{
	struct reader_ask *ask = reader_asks_take(have->id, have->peer, &have->group, have->sample);

	if (!ask)
		return;
	if (reader_serve_distrusts(have->peer) || reader_checks_begin(have, value)) {
		reader_queue_again(ask);
		return;
	}
	ask->has_waited |= have->room > 0;
	if (ask->is_last && have->form == ask->shared->form)
		hand_on(ask, have, value);
	come(ask, LAYOUT_FROM_PEER, have->form, value, have->bytes);
}

/* The owner has not got it: who was the owner before him may have. */
void reader_fetch_miss(const struct value_head *miss)
{
	struct reader_ask *ask = reader_asks_take(miss->id, miss->peer, &miss->group, miss->sample);
	struct reader_ask further;
	uint32_t next = PROMISE_SELF;

	if (!ask)
		return;
	if (miss->room) {
		ask_again(ask);
		return;
	}
	if (!ask->is_last && reader_peers_owner(&ask->group, ask->task.sample, &next) != miss->peer)
		next = PROMISE_SELF; /* there are others now */
	further = *ask;
	further.peer = next;
	further.is_last = true;
	if (next == PROMISE_SELF || !wait_or_ask(&further))
		reader_queue_again(ask);
	else
		reader_asks_free(ask);
}

void reader_fetch_gone(uint32_t peer)
{
	read_all_instead(reader_asks_take_of(peer));
}

void reader_fetch_tick(uint64_t now_ns)
{
	read_all_instead(reader_asks_take_late(now_ns));
	if (reader_queue_idles(&work_seen) && now_ns > FETCH_IDLE_NS)
		read_all_instead(reader_asks_take_old(now_ns - FETCH_IDLE_NS, FETCH_IDLE_MOST));
}
