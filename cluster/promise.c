/* SPDX-License-Identifier: Apache-2.0 */

#include "cluster/promise.h"

#include <sys/queue.h>

#include "base/base.h"
#include "base/little.h"

#define NOBODY (PROMISE_SELF - 1) /* a peer that there is not */
/* In a bucket: of names that nobody chose it never has as many, and who chooses them makes no look longer. */
#define ALIKE_MOST 32

struct promise {
	TAILQ_ENTRY(promise) by_age; /* the oldest is over first */
	LIST_ENTRY(promise) link;    /* of its bucket, or of those that are free */
	struct hash_id group;
	uint64_t sample, since_ns; /* since it was given; when is_made: since then */
	uint32_t maker;
	bool is_made;
	struct promise_waiter *waiters;
};

LIST_HEAD(promise_bucket, promise);

struct promise_maker {
	uint64_t kept_ns;  /* when he kept one last; 0: never */
	uint64_t given_ns; /* when he had given the youngest that he has kept */
};

struct promises {
	struct promise *all;                /* owned, [most] */
	struct promise_waiter *all_waiters; /* owned */
	struct promise_bucket *bucket;      /* owned, [most] */
	unsigned most, count, waiters, to_look_for;
	uint64_t lasts_ns;
	struct promise_bucket free;
	struct promise_waiter *free_waiters;
	TAILQ_HEAD(, promise) by_age;
	struct promise_maker maker[PROMISE_PEERS + 1]; /* the last one: this node */
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

static struct promise_maker *maker_of(struct promises *promises, uint32_t peer)
{
	return &promises->maker[BASE_MIN(peer, (uint32_t)PROMISE_PEERS)];
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
	BASE_EACH(promise, bucket_of(promises, group, sample), link)
		if (promise->sample == sample &&
		    memcmp(&promise->group, group, sizeof(*group)) == 0)
			return promise;
	return NULL;
}

static struct promise *add(struct promises *promises, const struct hash_id *group, uint64_t sample,
			   uint32_t maker, uint64_t now_ns)
{
	struct promise *promise = LIST_FIRST(&promises->free);
	unsigned alike = 0;

	BASE_EACH(other, bucket_of(promises, group, sample), link)
		alike++;
	if (!promise || alike == ALIKE_MOST)
		return NULL;
	LIST_REMOVE(promise, link);
	promise->group = *group;
	promise->sample = sample;
	promise->since_ns = now_ns;
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
		     const struct promise_waiter *asker, uint64_t now_ns)
{
	struct promise_waiter *waiter = promises->free_waiters;

	if (!waiter)
		return false;
	promises->free_waiters = waiter->next;
	promises->waiters++;
	promises->to_look_for += promise->is_made;
	*waiter = *asker;
	waiter->since_ns = now_ns;
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
		return wait_for(promises, promise, asker, now_ns) ? PROMISE_WAITS : PROMISE_FULL;
	promise = add(promises, &asker->group, asker->sample, asker->peer, now_ns);
	return promise ? PROMISE_MAKE : PROMISE_FULL;
}

bool promise_note(struct promises *promises, const struct hash_id *group, uint64_t sample,
		  uint32_t peer, uint64_t now_ns)
{
	return !find(promises, group, sample) && add(promises, group, sample, peer, now_ns);
}

/* ---- what comes of it ---- */

/* Its maker has done what he could. */
static void note_maker(struct promises *promises, const struct promise *promise, uint64_t now_ns)
{
	struct promise_maker *maker = maker_of(promises, promise->maker);

	maker->kept_ns = now_ns;
	maker->given_ns = BASE_MAX(maker->given_ns, promise->since_ns);
}

struct promise_waiter *promise_made(struct promises *promises, const struct hash_id *group,
				    uint64_t sample, uint64_t now_ns)
{
	struct promise *promise = find(promises, group, sample);
	struct promise_waiter *list;

	if (!promise)
		return NULL;
	list = take_waiters(promises, promise);
	if (promise->is_made)
		return list;
	note_maker(promises, promise, now_ns);
	promise->is_made = true;
	promise->since_ns = now_ns;
	return list;
}

struct promise_waiter *promise_unmade(struct promises *promises, const struct hash_id *group,
				      uint64_t sample, uint64_t now_ns)
{
	struct promise *promise = find(promises, group, sample);

	if (!promise || promise->is_made)
		return NULL;
	note_maker(promises, promise, now_ns);
	return end(promises, promise);
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

static bool is_over(struct promises *promises, const struct promise *promise, uint64_t now_ns)
{
	const struct promise_maker *maker = maker_of(promises, promise->maker);
	uint64_t heard_ns = promise->since_ns;

	if (!promise->is_made) {
		if (maker->given_ns >= promise->since_ns + promises->lasts_ns)
			return true;
		heard_ns = BASE_MAX(heard_ns, maker->kept_ns);
	}
	return now_ns >= heard_ns + promises->lasts_ns;
}

/* Who has waited longest, alone; he makes it from now on. Without anybody it ends. */
static struct promise_waiter *pass_on(struct promises *promises, struct promise *promise,
				      uint64_t now_ns)
{
	struct promise_waiter **at = &promise->waiters, *heir;

	if (promise->is_made || !promise->waiters)
		return end(promises, promise);
	while ((*at)->next)
		at = &(*at)->next;
	heir = *at;
	*at = NULL;
	promise->maker = heir->peer;
	promise->since_ns = now_ns;
	TAILQ_REMOVE(&promises->by_age, promise, by_age);
	TAILQ_INSERT_TAIL(&promises->by_age, promise, by_age);
	return heir;
}

struct promise_waiter *promise_expired(struct promises *promises, uint64_t now_ns)
{
	struct promise_waiter *list = NULL;
	struct promise *promise = TAILQ_FIRST(&promises->by_age), *next;

	for (; promise; promise = next) {
		next = TAILQ_NEXT(promise, by_age);
		if (is_over(promises, promise, now_ns))
			list = join_lists(pass_on(promises, promise, now_ns), list);
	}
	return list;
}

/* Takes out those of that peer; NOBODY: those who have waited since then or longer. */
static struct promise_waiter *take_some(struct promises *promises, struct promise *promise,
					uint32_t peer, uint64_t since_ns)
{
	struct promise_waiter **at = &promise->waiters, *taken = NULL;

	while (*at) {
		struct promise_waiter *one = *at;

		if (peer == NOBODY ? one->since_ns > since_ns : one->peer != peer) {
			at = &one->next;
			continue;
		}
		*at = one->next;
		one->next = taken;
		taken = one;
		promises->to_look_for -= promise->is_made;
	}
	return taken;
}

struct promise_waiter *promise_patient(struct promises *promises, uint64_t since_ns)
{
	struct promise_waiter *list = NULL;
	struct promise *promise;

	if (promises->waiters == 0)
		return NULL;
	TAILQ_FOREACH(promise, &promises->by_age, by_age)
		if (!promise->is_made)
			list = join_lists(take_some(promises, promise, NOBODY, since_ns), list);
	return list;
}

struct promise_waiter *promise_gone(struct promises *promises, uint32_t peer, uint64_t now_ns)
{
	struct promise_waiter *list = NULL;
	struct promise *promise = TAILQ_FIRST(&promises->by_age), *next;

	*maker_of(promises, peer) = (struct promise_maker){.kept_ns = 0};
	for (; promise; promise = next) {
		next = TAILQ_NEXT(promise, by_age);
		promise_answered(promises, take_some(promises, promise, peer, 0));
		if (promise->maker == peer && !promise->is_made)
			list = join_lists(pass_on(promises, promise, now_ns), list);
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
