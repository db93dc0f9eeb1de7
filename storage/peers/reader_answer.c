/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Who waits for a value, and is answered when there is one, or none.
 *
 * An owner that has no such value says so to the first who asks, who makes it then and puts it here; whoever asks meanwhile waits
 * (cluster/promise.h), this node's own tasks (reader_fetch.c) among them. Whoever waits for long is told so, and asks again.
 */

#include "base/hold.h"
#include "storage/reader_peers.h"

#define ANSWER_PROMISES 16384
#define ANSWER_WAITERS 8192
#define ANSWER_PROMISED_NS UINT64_C(4000000000) /* somebody who makes nothing makes this, either */
#define ANSWER_AGAIN_NS UINT64_C(1000000000)    /* so long others wait till they ask again */

static struct {
	pthread_mutex_t lock;
	struct promises *promises; /* under the lock */
} answer = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool reader_answer_init(void)
{
	answer.promises = promise_new(ANSWER_PROMISES, ANSWER_WAITERS, ANSWER_PROMISED_NS);
	return answer.promises != NULL;
}

bool reader_answer_owns(const struct hash_id *group, uint64_t sample)
{
	uint32_t next;

	return reader_peers_owner(group, sample, &next) == PROMISE_SELF;
}

/* ---- answers ---- */

static struct value_head head_for(const struct promise_waiter *waiter, enum value_type type)
{
	return (struct value_head){.magic = VALUE_MAGIC,
				   .type = type,
				   .peer = waiter->peer,
				   .id = waiter->id,
				   .sample = waiter->sample,
				   .group = waiter->group};
}

void reader_answer_miss(const struct promise_waiter *waiter)
{
	const struct value_head miss = head_for(waiter, VALUE_MISS);

	if (waiter->peer != PROMISE_SELF)
		reader_tell(&miss, NULL); /* without room he runs out of patience */
	else
		reader_fetch_none(waiter);
}

void reader_answer_value(const struct promise_waiter *waiter, enum layout_from from, unsigned form,
			 const uint8_t *value, uint32_t bytes)
{
	struct value_head head = head_for(waiter, VALUE_HAVE);

	if (waiter->peer == PROMISE_SELF) {
		reader_fetch_value(waiter, from, form, value, bytes);
		return;
	}
	head.form = form;
	head.bytes = bytes;
	head.room = waiter->since_ns > 0;
	if (bytes > waiter->room || bytes > VALUE_MOST) {
		reader_answer_miss(waiter);
	} else if (!reader_tell(&head, value)) {
		head = head_for(waiter, VALUE_GET); /* when there is room */
		head.room = waiter->room;
		reader_owed_add(&head, false);
	}
}

static void answered(struct promise_waiter *list)
{
	BASE_HOLD(&answer.lock);
	promise_answered(answer.promises, list);
}

static void answer_misses(struct promise_waiter *list)
{
	if (!list)
		return;
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next)
		reader_answer_miss(waiter);
	answered(list);
}

void reader_answer_all(const struct value_head *put, enum layout_from from, const uint8_t *value)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&answer.lock);
	list = promise_made(answer.promises, &put->group, put->sample, base_now_ns());
	pthread_mutex_unlock(&answer.lock);
	if (!list)
		return;
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next)
		reader_answer_value(waiter, from, put->form, value, put->bytes);
	answered(list);
}

/* ---- who waits ---- */

bool reader_answer_waits(const struct promise_waiter *waiter)
{
	BASE_HOLD(&answer.lock);
	return promise_ask(answer.promises, waiter, base_now_ns()) == PROMISE_WAITS;
}

bool reader_answer_promise(const struct reader_shared *shared, uint64_t sample)
{
	BASE_HOLD(&answer.lock);
	return promise_note(answer.promises, &shared->id, sample, PROMISE_SELF, base_now_ns());
}

bool reader_peers_makes_ahead(struct reader_shared *shared, uint64_t sample)
{
	return reader_peers_is_on() && reader_peers_makes(&shared->id, sample) &&
	       reader_answer_promise(shared, sample);
}

/* ---- what was made here, from the keeper ---- */

bool reader_peers_made(struct reader_shared *shared, const struct rings_item *item)
{
	struct value_head put = {
	    .magic = VALUE_MAGIC,
	    .type = VALUE_PUT,
	    .bytes = item->bytes,
	    .sample = item->sample,
	    .form = shared->form,
	    .group = shared->id,
	};
	uint32_t next;

	reader_checks_made(&shared->id, item);
	if (!reader_peers_is_on() || item->bytes == 0 || item->bytes > VALUE_MOST)
		return false;
	put.peer = reader_peers_owner(&shared->id, item->sample, &next);
	if (put.peer != PROMISE_SELF) {
		reader_tell_of(shared, &put,
			       item->data); /* without room it is made again, sometime */
		return true;
	}
	reader_answer_all(&put, LAYOUT_FROM_MEMORY, item->data);
	return false;
}

void reader_answer_none(const struct hash_id *group, uint64_t sample)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&answer.lock);
	list = promise_unmade(answer.promises, group, sample, base_now_ns());
	pthread_mutex_unlock(&answer.lock);
	answer_misses(list);
}

void reader_peers_not_made(struct reader_shared *shared, uint64_t sample)
{
	struct value_head put = {.magic = VALUE_MAGIC,
				 .type = VALUE_PUT,
				 .sample = sample,
				 .form = shared->form,
				 .group = shared->id};
	uint32_t next;

	reader_checks_not_made(&shared->id, sample);
	if (!reader_peers_is_on())
		return;
	put.peer = reader_peers_owner(&shared->id, sample, &next);
	if (put.peer == PROMISE_SELF)
		reader_answer_none(&shared->id, sample);
	else
		reader_tell_of(shared, &put, NULL);
}

/* ---- in time ---- */

/* What was made and waits to be found: it is in the store by now, or not yet. */
static void look_again(void)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&answer.lock);
	list = promise_kept(answer.promises);
	pthread_mutex_unlock(&answer.lock);
	if (!list)
		return;
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next) {
		struct value_head get = head_for(waiter, VALUE_GET);

		get.room = waiter->room;
		if (waiter->peer == PROMISE_SELF || !reader_owed_add(&get, false))
			reader_answer_miss(waiter); /* it is looked for where reading begins */
	}
	answered(list);
}

/* Who waits is told that he still does. */
static void tell_patient(uint64_t now_ns)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&answer.lock);
	list = promise_patient(answer.promises, now_ns - ANSWER_AGAIN_NS);
	pthread_mutex_unlock(&answer.lock);
	for (const struct promise_waiter *waiter = list; waiter; waiter = waiter->next) {
		struct value_head miss = head_for(waiter, VALUE_MISS);

		miss.room = 1;
		if (waiter->peer != PROMISE_SELF)
			reader_tell(&miss, NULL);
		else
			reader_fetch_patient(waiter);
	}
	if (list)
		answered(list);
}

void reader_answer_tick(uint64_t now_ns)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&answer.lock);
	list = promise_expired(answer.promises, now_ns);
	pthread_mutex_unlock(&answer.lock);
	answer_misses(list);
	if (now_ns > ANSWER_AGAIN_NS)
		tell_patient(now_ns);
	look_again();
}

void reader_answer_gone(uint32_t peer)
{
	struct promise_waiter *list;

	pthread_mutex_lock(&answer.lock);
	list = promise_gone(answer.promises, peer, base_now_ns());
	pthread_mutex_unlock(&answer.lock);
	answer_misses(list);
}

bool reader_answer_is_awaited(void)
{
	unsigned promised, waiters;

	BASE_HOLD(&answer.lock);
	promised = promise_count(answer.promises, &waiters);
	return promised > 0;
}
