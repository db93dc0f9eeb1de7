/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Tasks that wait for a value: a bounded table. A task is claimed, its queue is busy, and no thread is held by it.
 *
 * Whoever takes an entry out ends its task, or has it read: that is done under the lock, so it is one, once. An id holds
 * the entry's place and how often it was used; an answer that comes late finds another id, or none.
 */

#include "base/hold.h"
#include "storage/reader_peers.h"

static struct {
	pthread_mutex_t lock;
	/* under the lock */
	struct reader_ask *all; /* [ASKS_MOST], from the first carrier on, for ever */
	struct reader_ask *free;
	unsigned count, used; /* that wait; entries that ever were used */
	uint64_t uses;
} asks = {.lock = PTHREAD_MUTEX_INITIALIZER};

int reader_asks_init(void)
{
	struct reader_ask *all = calloc(ASKS_MOST, sizeof(*all));

	if (!all)
		return -ENOMEM;
	BASE_HOLD(&asks.lock);
	asks.all = all;
	return 0;
}

/* Under the lock; NULL: none is free. */
static struct reader_ask *take_free(void)
{
	struct reader_ask *ask = asks.free;

	if (ask)
		asks.free = ask->next;
	else if (asks.all && asks.used < ASKS_MOST)
		ask = &asks.all[asks.used++];
	return ask;
}

uint64_t reader_asks_add(const struct reader_ask *ask)
{
	struct reader_ask *entry;
	uint64_t id = 0;

	BASE_HOLD(&asks.lock);
	entry = take_free();
	if (entry) {
		id = ++asks.uses * ASKS_MOST + (uint64_t)(entry - asks.all);
		*entry = *ask;
		entry->id = id;
		entry->next = NULL;
		asks.count++;
	}
	return id;
}

/* Under the lock: nobody else finds it any more. */
static void take_out(struct reader_ask *ask)
{
	ask->id = 0;
	asks.count--;
}

struct reader_ask *reader_asks_take(uint64_t id, uint32_t peer, const struct hash_id *group,
				    uint64_t sample)
{
	struct reader_ask *ask = NULL;

	BASE_HOLD(&asks.lock);
	if (id && asks.all)
		ask = &asks.all[id % ASKS_MOST];
	if (ask && ask->id == id && ask->peer == peer && ask->task.sample == sample &&
	    memcmp(&ask->group, group, sizeof(*group)) == 0)
		take_out(ask);
	else
		ask = NULL;
	return ask;
}

enum take_which { TAKE_OF_PEER, TAKE_LATE, TAKE_OLD };

static bool is_wanted(const struct reader_ask *ask, enum take_which which, uint64_t what)
{
	if (!ask->id)
		return false;
	if (which == TAKE_OF_PEER)
		return ask->peer == what;
	if (which == TAKE_OLD)
		return ask->since_ns <= what;
	return ask->until_ns <= what || reader_queue_is_leaving(ask->queue);
}

static struct reader_ask *take_list(enum take_which which, uint64_t what, unsigned most)
{
	struct reader_ask *list = NULL, **end = &list;

	BASE_HOLD(&asks.lock);
	for (unsigned i = 0; i < asks.used && asks.count > 0 && most > 0; i++) {
		struct reader_ask *ask = &asks.all[i];

		if (!is_wanted(ask, which, what))
			continue;
		most--;
		take_out(ask);
		*end = ask;
		end = &ask->next;
	}
	*end = NULL;
	return list;
}

struct reader_ask *reader_asks_take_of(uint32_t peer)
{
	return take_list(TAKE_OF_PEER, peer, ASKS_MOST);
}

struct reader_ask *reader_asks_take_late(uint64_t now_ns)
{
	return take_list(TAKE_LATE, now_ns, ASKS_MOST);
}

struct reader_ask *reader_asks_take_old(uint64_t since_ns, unsigned most)
{
	return take_list(TAKE_OLD, since_ns, most);
}

void reader_asks_free(struct reader_ask *ask)
{
	BASE_HOLD(&asks.lock);
	ask->next = asks.free;
	asks.free = ask;
}

unsigned reader_asks_count(void)
{
	BASE_HOLD(&asks.lock);
	return asks.count;
}
