/* SPDX-License-Identifier: Apache-2.0 */

#include "storage/promise.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/little.h"

struct promise {
	TAILQ_ENTRY(promise) by_age; /* the oldest is over first */
	LIST_ENTRY(promise) link;    /* of its bucket, or of those that are free */
	struct hash_id group;
	uint64_t sample, until_ns;
	uint32_t maker;
	bool is_made;
	struct promise_waiter *waiters;
};

LIST_HEAD(promise_bucket, promise);

struct promises {
	struct promise *all;                /* owned, [most] */
	struct promise_waiter *all_waiters; /* owned */
	struct promise_bucket *bucket;      /* owned, [most] */
	unsigned most, count, waiters, to_look_for;
	uint64_t lasts_ns;
	struct promise_bucket free;
	struct promise_waiter *free_waiters;
	TAILQ_HEAD(, promise) by_age;
};

void promise_free(struct promises *promises)
{
	if (!promises)
		return;
	free(promises->all);
	free(promises->all_waiters);
	free(promises->bucket);
	free(promises);
}

struct promises *promise_new(unsigned most, unsigned most_waiters, uint64_t lasts_ns)
{
	struct promises *promises = calloc(1, sizeof(*promises));

	if (!promises)
		return NULL;
	promises->all = calloc(most, sizeof(*promises->all));
	promises->all_waiters = calloc(most_waiters, sizeof(*promises->all_waiters));
	promises->bucket = calloc(most, sizeof(*promises->bucket));
	if (!promises->all || !promises->all_waiters || !promises->bucket) {
		promise_free(promises);
		return NULL;
	}
	promises->most = most;
	promises->lasts_ns = lasts_ns;
	TAILQ_INIT(&promises->by_age);
	for (unsigned i = 0; i < most; i++)
		LIST_INSERT_HEAD(&promises->free, &promises->all[i], link);
	for (unsigned i = 0; i < most_waiters; i++) {
		promises->all_waiters[i].next = promises->free_waiters;
		promises->free_waiters = &promises->all_waiters[i];
	}
	return promises;
}

/* ---- promises ---- */

static struct promise_bucket *bucket_of(struct promises *promises, const struct hash_id *group,
					uint64_t sample)
{
	const uint64_t mixed =
	    (little_64(group->bytes) ^ sample) * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / phi */

	return &promises->bucket[(mixed >> 32) % promises->most];
}

static struct promise *find(struct promises *promises, const struct hash_id *group, uint64_t sample)
{
	struct promise *promise;

	LIST_FOREACH(promise, bucket_of(promises, group, sample), link)
	if (promise->sample == sample && memcmp(&promise->group, group, sizeof(*group)) == 0)
		return promise;
	return NULL;
}

static struct promise *add(struct promises *promises, const struct hash_id *group, uint64_t sample,
			   uint32_t maker, uint64_t now_ns)
{
	struct promise *promise = LIST_FIRST(&promises->free);

	if (!promise)
		return NULL;
	LIST_REMOVE(promise, link);
	promise->group = *group;
	promise->sample = sample;
	promise->until_ns = now_ns + promises->lasts_ns;
	promise->maker = maker;
	promise->is_made = false;
	promise->waiters = NULL;
	LIST_INSERT_HEAD(bucket_of(promises, group, sample), promise, link);
	TAILQ_INSERT_TAIL(&promises->by_age, promise, by_age);
	promises->count++;
	return promise;
}

static struct promise_waiter *take_waiters(struct promises *promises, struct promise *promise)
{
	struct promise_waiter *list = promise->waiters;

	promise->waiters = NULL;
	for (struct promise_waiter *one = list; one && promise->is_made; one = one->next)
		promises->to_look_for--;
	return list;
}

static struct promise_waiter *end(struct promises *promises, struct promise *promise)
{
	struct promise_waiter *list = take_waiters(promises, promise);

	LIST_REMOVE(promise, link);
	TAILQ_REMOVE(&promises->by_age, promise, by_age);
	LIST_INSERT_HEAD(&promises->free, promise, link);
	promises->count--;
	return list;
}

static bool wait_for(struct promises *promises, struct promise *promise,
		     const struct promise_waiter *asker)
{
	struct promise_waiter *waiter = promises->free_waiters;

	if (!waiter)
		return false;
	promises->free_waiters = waiter->next;
	promises->waiters++;
	promises->to_look_for += promise->is_made;
	*waiter = *asker;
	waiter->next = promise->waiters;
	promise->waiters = waiter;
	return true;
}

static struct promise_waiter *join_lists(struct promise_waiter *a, struct promise_waiter *b)
{
	struct promise_waiter **at = &a;

	while (*at)
		at = &(*at)->next;
	*at = b;
	return a;
}

/* ---- asking ---- */

enum promise_answer promise_ask(struct promises *promises, const struct promise_waiter *asker,
				uint64_t now_ns)
{
	struct promise *promise = find(promises, &asker->group, asker->sample);

	if (promise)
		return wait_for(promises, promise, asker) ? PROMISE_WAITS : PROMISE_FULL;
	promise = add(promises, &asker->group, asker->sample, asker->peer, now_ns);
	return promise ? PROMISE_MAKE : PROMISE_FULL;
}

bool promise_join(struct promises *promises, const struct promise_waiter *asker)
{
	struct promise *promise = find(promises, &asker->group, asker->sample);

	return promise && wait_for(promises, promise, asker);
}

void promise_note(struct promises *promises, const struct hash_id *group, uint64_t sample,
		  uint32_t peer, uint64_t now_ns)
{
	if (!find(promises, group, sample))
		add(promises, group, sample, peer, now_ns);
}

/* ---- what comes of it ---- */

struct promise_waiter *promise_made(struct promises *promises, const struct hash_id *group,
				    uint64_t sample)
{
	struct promise *promise = find(promises, group, sample);
	struct promise_waiter *list;

	if (!promise)
		return NULL;
	list = take_waiters(promises, promise);
	promise->is_made = true;
	return list;
}

struct promise_waiter *promise_kept(struct promises *promises)
{
	struct promise_waiter *list = NULL;
	struct promise *promise;

	if (promises->to_look_for == 0)
		return NULL;
	TAILQ_FOREACH(promise, &promises->by_age, by_age)
	if (promise->is_made)
		list = join_lists(take_waiters(promises, promise), list);
	return list;
}

struct promise_waiter *promise_expired(struct promises *promises, uint64_t now_ns)
{
	struct promise_waiter *list = NULL;
	struct promise *promise;

	while ((promise = TAILQ_FIRST(&promises->by_age)) && promise->until_ns <= now_ns)
		list = join_lists(end(promises, promise), list);
	return list;
}

/* Takes those of a peer out, and back. */
static void forget_waiter(struct promises *promises, struct promise *promise, uint32_t peer)
{
	struct promise_waiter **at = &promise->waiters, *gone = NULL;

	while (*at) {
		struct promise_waiter *one = *at;

		if (one->peer != peer) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		one->next = gone;
		gone = one;
		promises->to_look_for -= promise->is_made;
	}
	promise_answered(promises, gone);
}

struct promise_waiter *promise_gone(struct promises *promises, uint32_t peer)
{
	struct promise_waiter *list = NULL;
	struct promise *promise = TAILQ_FIRST(&promises->by_age);

	while (promise) {
		struct promise *next = TAILQ_NEXT(promise, by_age);

		forget_waiter(promises, promise, peer);
		if (promise->maker == peer && !promise->is_made)
			list = join_lists(end(promises, promise), list);
		promise = next;
	}
	return list;
}

void promise_answered(struct promises *promises, struct promise_waiter *list)
{
	while (list) {
		struct promise_waiter *next = list->next;

		list->next = promises->free_waiters;
		promises->free_waiters = list;
		promises->waiters--;
		list = next;
	}
}

unsigned promise_count(const struct promises *promises, unsigned *ret_waiters)
{
	*ret_waiters = promises->waiters;
	return promises->count;
}
