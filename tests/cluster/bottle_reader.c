/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/cluster/bottle_reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/owner.h"
#include "cluster/promise.h"

extern const struct bottle_reader bottle_reader __attribute__((visibility("default")));

static const struct bottle_host *host;
static struct promises *promises;

/* ---- the process: its memory, its clock, its chance ---- */

void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void __wrap_free(void *row);
uint64_t __wrap_base_now_ns(void);
int __wrap_base_random(void *ret, size_t size);
void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...);

void *__wrap_malloc(size_t bytes)
{
	return host->allocate(host->node, bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
	return host->allocate(host->node, n * bytes);
}

void __wrap_free(void *row)
{
	if (row)
		host->release(host->node, row);
}

uint64_t __wrap_base_now_ns(void)
{
	return host->now_ns(host->node);
}

int __wrap_base_random(void *ret, size_t size)
{
	const uint64_t chance = host->chance(host->node);

	memcpy(ret, &chance, size < sizeof(chance) ? size : sizeof(chance));
	return 0;
}

void __wrap_log_line(enum log_level level, const char *event, const char *fmt, ...)
{
	(void)level;
	(void)fmt;
	host->complain(host->node, event);
}

/* ---- planted faults ---- */

struct promises *__real_promise_new(unsigned most, unsigned most_waiters, uint64_t lasts_ns);
struct promises *__wrap_promise_new(unsigned most, unsigned most_waiters, uint64_t lasts_ns);
struct promise_waiter *__real_promise_expired(struct promises *of, uint64_t now_ns);
struct promise_waiter *__wrap_promise_expired(struct promises *of, uint64_t now_ns);
void __real_promise_answered(struct promises *of, struct promise_waiter *list);
void __wrap_promise_answered(struct promises *of, struct promise_waiter *list);
unsigned __real_owner_of(uint64_t key, uint64_t sample, const struct owner_node *nodes, unsigned n,
			 unsigned *ret_next);
unsigned __wrap_owner_of(uint64_t key, uint64_t sample, const struct owner_node *nodes, unsigned n,
			 unsigned *ret_next);
struct reader_ask *__real_reader_asks_take_late(uint64_t now_ns);
struct reader_ask *__wrap_reader_asks_take_late(uint64_t now_ns);
struct reader_ask *__real_reader_asks_take(uint64_t id, uint32_t peer, const struct hash_id *group,
					   uint64_t sample);
struct reader_ask *__wrap_reader_asks_take(uint64_t id, uint32_t peer, const struct hash_id *group,
					   uint64_t sample);
void __real_reader_tell_anew(uint32_t peer);
void __wrap_reader_tell_anew(uint32_t peer);

struct promises *__wrap_promise_new(unsigned most, unsigned most_waiters, uint64_t lasts_ns)
{
	promises = __real_promise_new(most, most_waiters, lasts_ns);
	return promises;
}

struct promise_waiter *__wrap_promise_expired(struct promises *of, uint64_t now_ns)
{
	return host->mutant == MUTANT_PROMISE_FOR_EVER ? NULL : __real_promise_expired(of, now_ns);
}

void __wrap_promise_answered(struct promises *of, struct promise_waiter *list)
{
	if (host->mutant != MUTANT_WAITERS_LEAK)
		__real_promise_answered(of, list);
}

unsigned __wrap_owner_of(uint64_t key, uint64_t sample, const struct owner_node *nodes, unsigned n,
			 unsigned *ret_next)
{
	unsigned owner = 0;

	if (host->mutant != MUTANT_OWNER_MODULO)
		return __real_owner_of(key, sample, nodes, n, ret_next);
	for (unsigned i = 0; i < n; i++) { /* the one with so many smaller ones */
		uint64_t smaller = 0;

		for (unsigned k = 0; k < n; k++)
			smaller += nodes[k].id < nodes[i].id;
		if (smaller == sample % n)
			owner = i;
	}
	*ret_next = (owner + 1) % n;
	return owner;
}

struct reader_ask *__wrap_reader_asks_take_late(uint64_t now_ns)
{
	return host->mutant == MUTANT_NO_PATIENCE ? NULL : __real_reader_asks_take_late(now_ns);
}

struct reader_ask *__wrap_reader_asks_take(uint64_t id, uint32_t peer, const struct hash_id *group,
					   uint64_t sample)
{
	struct reader_ask *ask = __real_reader_asks_take(id, peer, group, sample);

	if (ask && host->mutant == MUTANT_TAKEN_TWICE)
		ask->id = id;
	return ask;
}

void __wrap_reader_tell_anew(uint32_t peer)
{
	if (host->mutant != MUTANT_NAMES_ONCE)
		__real_reader_tell_anew(peer);
}

/* ---- the rest of the reader ---- */

/* Of a queue, its number and who has it are used. */
static struct reader_shared *shared_of(const struct reader_queue *queue)
{
	return queue->kept[LAYOUT_FORM_PACKED].shared;
}

/* Of both kinds: what is kept has a name alone. */
struct store_group {
	struct hash_id id;
};
struct reader_resident {
	struct hash_id id;
};

int store_group_open_guest(struct store *store, const struct hash_id *id, const char *note,
			   uint64_t n_samples, struct store_group **ret)
{
	(void)store;
	(void)note;
	(void)n_samples;
	*ret = __wrap_calloc(1, sizeof(**ret));
	(*ret)->id = *id;
	return 0;
}

void store_group_close(struct store_group *group)
{
	__wrap_free(group);
}

int store_get(struct store_group *group, uint64_t sample, uint8_t *buffer, size_t room,
	      size_t *ret_size)
{
	return host->find(host->node, &group->id, sample, buffer, room, ret_size);
}

bool store_put(struct store_group *group, uint64_t sample, const uint8_t *value, size_t size)
{
	host->keep(host->node, &group->id, sample, value, size);
	return true;
}

struct reader_resident *reader_resident_open(const struct hash_id *id, uint64_t samples)
{
	struct reader_resident *resident;

	(void)samples;
	if (host->has_store)
		return NULL;
	resident = __wrap_calloc(1, sizeof(*resident));
	resident->id = *id;
	return resident;
}

void reader_resident_close(struct reader_resident *group)
{
	__wrap_free(group);
}

void reader_resident_yield(struct reader_resident *group, bool yields)
{
	(void)group;
	(void)yields;
}

int reader_resident_copy(const struct reader_resident *group, uint64_t sample, uint8_t *buffer,
			 size_t room, size_t *ret_bytes)
{
	if (!group)
		return STORE_E_NONE;
	return host->find(host->node, &group->id, sample, buffer, room, ret_bytes);
}

enum reader_resident_answer reader_resident_keep(struct reader_resident *group, uint64_t sample,
						 const uint8_t *value, size_t bytes)
{
	if (!group)
		return RESIDENT_FULL;
	host->keep(host->node, &group->id, sample, value, bytes);
	return RESIDENT_KEEPS;
}

void reader_queue_keep(struct reader_queue *queue)
{
	queue->busy++;
}

void reader_queue_put(struct reader_queue *queue)
{
	queue->busy--;
}

bool reader_queue_is_leaving(const struct reader_queue *queue)
{
	(void)queue;
	return false;
}

bool reader_queue_idles(uint32_t *seen)
{
	(void)seen;
	return host->is_idle(host->node);
}

int reader_queue_look(const struct value_head *get)
{
	host->look(host->node, get);
	return 1;
}

void reader_queue_again(struct reader_ask *ask)
{
	struct reader_queue *queue = ask->queue;
	const struct queue_task task = ask->task;

	reader_asks_free(ask);
	host->again(host->node, queue->number, &task);
	reader_queue_put(queue);
}

void reader_queue_bring(struct reader_ask *ask, enum layout_from from, const uint8_t *value,
			uint32_t bytes)
{
	struct reader_queue *queue = ask->queue;
	const struct queue_task task = ask->task;

	(void)from;
	reader_asks_free(ask);
	host->bring(host->node, queue->number, &task, value, bytes);
	reader_queue_put(queue);
}

void reader_queue_store(struct reader_queue *queue, unsigned form, uint64_t sample,
			const uint8_t *value, uint32_t bytes)
{
	(void)form;
	host->keep(host->node, &shared_of(queue)->id, sample, value, bytes);
}

void reader_say_wrong(uint64_t node, uint64_t sample)
{
	(void)node;
	(void)sample;
	abort(); /* nobody lies here */
}

_Noreturn void reader_say_fatal(const char *event, const char *text)
{
	(void)event;
	(void)text;
	abort();
}

/* ---- what the bottle calls ---- */

static bool begin(const struct bottle_host *of)
{
	host = of;
	reader_guests_recheck(UINT64_C(30000000000));
	reader_checks_each(200);
	if (of->has_store)
		reader_peers_store((struct store *)(uintptr_t)of); /* nobody looks into it */
	return true;
}

static struct reader_queue *open_queue(uint64_t number, const struct hash_id *group,
				       uint64_t samples)
{
	struct reader_queue *queue = __wrap_calloc(1, sizeof(*queue));

	reader_guests_claim(group, samples, LAYOUT_FORM_PACKED, "{}");
	queue->number = number;
	queue->kept[LAYOUT_FORM_PACKED].shared =
	    reader_peers_share(group, samples, LAYOUT_FORM_PACKED, "{}");
	return queue;
}

static unsigned busy_of(const struct reader_queue *queue)
{
	return queue->busy;
}

/* As a reading thread does, which has the queue meanwhile. */
static bool ask(struct reader_queue *queue, const struct queue_task *task)
{
	bool is_theirs;

	reader_queue_keep(queue);
	is_theirs = reader_peers_ask(queue, shared_of(queue), task);
	reader_queue_put(queue);
	return is_theirs;
}

static bool made(struct reader_queue *queue, const struct rings_item *item)
{
	return reader_peers_made(shared_of(queue), item);
}

static void not_made(struct reader_queue *queue, uint64_t sample)
{
	reader_peers_not_made(shared_of(queue), sample);
}

static uint64_t owner(const struct hash_id *group, uint64_t sample)
{
	uint32_t next;

	return reader_peers_id(reader_peers_owner(group, sample, &next));
}

static unsigned count_promises(unsigned *ret_waiters)
{
	*ret_waiters = 0;
	return promises ? promise_count(promises, ret_waiters) : 0;
}

const struct bottle_reader bottle_reader = {
    .begin = begin,
    .open = open_queue,
    .busy = busy_of,
    .carrier = reader_peers_carrier,
    .members = reader_peers_members,
    .turn = reader_peers_turn,
    .nap_ns = reader_serve_nap_ns,
    .ask = ask,
    .made = made,
    .not_made = not_made,
    .looked = reader_serve_looked,
    .owner = owner,
    .promises = count_promises,
    .asks = reader_asks_count,
};
