/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What waits for the writer.
 *
 * store_put() copies and seals in the caller's thread, and takes only what has a place: there is room
 * on the disk for all that waits and this, or other groups may be pushed out for it. When that is not so
 * the value is simply not taken: what is kept stays, and of a dataset that is larger than the room a
 * stable part is found every epoch, where replacing the oldest would find nothing.
 *
 * The queue is bounded in bytes, so a slow disk slows nobody: values are lost instead, and are made
 * again in the next epoch. Orders to delete come on top; there are never more than values. A value that replaces
 * another one needs the room for both, as the old one's pages are free with the write after; where it is not
 * taken an order to delete follows.
 */

#include "storage/store_parts.h"

#define QUEUE_FLUSH_NS (UINT64_C(5) * 1000000000)

static bool queue_is_closed(const struct store *store)
{
	if (store->state.mode == STORE_OFF || store->is_broken || store->writer.is_stopping)
		return true;
	/* after the wait one batch tries whether writing works again */
	return store->state.mode == STORE_READ_ONLY && base_now_ns() < store->retry_at_ns;
}

/* The writer is behind. */
static bool queue_is_long(const struct store *store, uint64_t cost)
{
	return store->queue.items >= STORE_QUEUE_ITEMS ||
	       store->queue.cost + cost > store->queue.limit;
}

static bool queue_has_room(const struct store_group *group, uint64_t cost)
{
	const struct store *store = group->store;
	const uint64_t all = store->queue.flight_cost + store->queue.cost + cost;

	if (store_room_is_cramped(&store->room, cost))
		return false;
	return all <= store->room.bytes ||
	       all <= store->room.bytes + store_room_others(store, group);
}

enum queue_answer { QUEUE_TAKES, QUEUE_REFUSES, QUEUE_FULL };

static enum queue_answer queue_may(const struct store_group *group, uint64_t sample, size_t size)
{
	const uint64_t cost = store_bytes_of(size);

	if (sample >= group->table.cells || size == 0 || size > group->store->value_max ||
	    group->is_dropped || queue_is_closed(group->store) ||
	    counter_cell_get(&group->table.cell[sample]) > 0 || queue_is_long(group->store, cost))
		return QUEUE_REFUSES;
	return queue_has_room(group, cost) ? QUEUE_TAKES : QUEUE_FULL;
}

static struct store_item *queue_item_new(struct store_group *group, uint64_t sample, uint32_t size,
					 const uint8_t *value)
{
	const size_t bytes = value ? STORE_RECORD_SEAL + (size_t)size : 0;
	struct store_item *item = malloc(sizeof(*item) + bytes);
	uint8_t key[STORE_RECORD_KEY];

	if (!item)
		return NULL;
	*item = (struct store_item){
	    .group = group, .sample = sample, .size = size, .is_delete = !value};
	if (value) {
		store_record_key(&group->id, sample, key);
		memcpy(item->bytes + STORE_RECORD_SEAL, value, size);
		store_record_seal(key, item->bytes + STORE_RECORD_SEAL, size, item->bytes);
	}
	return item;
}

static uint64_t queue_item_cost(const struct store_item *item)
{
	return item->is_delete ? 0 : store_bytes_of(item->size);
}

static void queue_append(struct store *store, struct store_item *item)
{
	const bool was_empty = store->queue.first == NULL;

	if (was_empty)
		store->queue.since_ns = base_now_ns();
	*store->queue.last = item;
	store->queue.last = &item->next;
	store->queue.items++;
	store->queue.cost += queue_item_cost(item);
	if (was_empty || store->queue.cost >= store->queue.batch_bytes)
		pthread_cond_signal(&store->writer.wake);
}

static bool queue_put(struct store_group *group, uint64_t sample, const uint8_t *value, size_t size,
		      bool is_replace)
{
	struct store *store = group->store;
	struct store_item *item = NULL;
	enum queue_answer may;
	bool is_taken;

	pthread_mutex_lock(&store->lock);
	may = queue_may(group, sample, size);
	pthread_mutex_unlock(&store->lock);
	if (may == QUEUE_TAKES)
		item = queue_item_new(group, sample, (uint32_t)size, value);
	pthread_mutex_lock(&store->lock);
	if (item) /* of many, some may have come between */
		may = queue_may(group, sample, size);
	is_taken = item && may == QUEUE_TAKES;
	if (is_taken) {
		item->is_replace = is_replace;
		queue_append(store, base_take_ptr(item));
	} else {
		store->state.puts_not_taken++;
	}
	store->state.puts_full += may == QUEUE_FULL;
	pthread_mutex_unlock(&store->lock);
	free(item);
	return is_taken;
}

bool store_put(struct store_group *group, uint64_t sample, const uint8_t *value, size_t size)
{
	return queue_put(group, sample, value, size, false);
}

bool store_queue_delete(struct store_group *group, uint64_t sample, uint32_t size)
{
	struct store_item *item = queue_item_new(group, sample, size, NULL);

	if (!item)
		return false;
	queue_append(group->store, item);
	return true;
}

bool store_replace(struct store_group *group, uint64_t sample, const uint8_t *value, size_t size)
{
	struct store *store = group->store;
	uint32_t before = 0;

	pthread_mutex_lock(&store->lock);
	if (sample < group->table.cells)
		before = counter_cell_get(&group->table.cell[sample]);
	if (before > 0)
		store_group_set(group, sample, 0);
	pthread_mutex_unlock(&store->lock);
	if (queue_put(group, sample, value, size, true))
		return true;
	pthread_mutex_lock(&store->lock);
	if (before > 0 && !queue_is_closed(store) && !group->is_dropped)
		store_queue_delete(group, sample, before); /* so that there is room for others */
	pthread_mutex_unlock(&store->lock);
	return false;
}

void store_queue_drop(struct store *store, const struct store_group *group)
{
	struct store_item **at = &store->queue.first;

	while (*at) {
		struct store_item *item = *at;

		if (group && item->group != group) {
			at = &item->next;
			continue;
		}
		*at = item->next;
		store->queue.items--;
		store->queue.cost -= queue_item_cost(item);
		store->state.puts_not_taken += !item->is_delete;
		free(item);
	}
	store->queue.last = at;
}

void store_flush(struct store *store)
{
	const struct timespec until = base_timespec(base_now_ns() + QUEUE_FLUSH_NS);
	int r = 0;

	BASE_HOLD(&store->lock);
	store->writer.flushes++;
	pthread_cond_signal(&store->writer.wake);
	while ((store->queue.first || store->queue.flight_items > 0) && r == 0)
		r = pthread_cond_timedwait(&store->settled, &store->lock, &until);
	store->writer.flushes--;
}

/* A batch has at least one item, and then as many as have batch_bytes together. */
static size_t queue_count(const struct store *store, uint64_t *ret_cost)
{
	const struct store_item *item = store->queue.first;
	size_t count = 0;
	uint64_t cost = 0;

	while (item && (count == 0 || cost + queue_item_cost(item) <= store->queue.batch_bytes)) {
		cost += queue_item_cost(item);
		count++;
		item = item->next;
	}
	*ret_cost = cost;
	return count;
}

int store_queue_take(struct store *store, struct store_item ***ret_items, size_t *ret_count)
{
	uint64_t cost;
	const size_t count = queue_count(store, &cost);
	struct store_item **items = calloc(count + 1, sizeof(struct store_item *));

	if (!items)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		items[i] = store->queue.first;
		store->queue.first = items[i]->next;
	}
	if (!store->queue.first)
		store->queue.last = &store->queue.first;
	store->queue.items -= count;
	store->queue.flight_items = count;
	store->queue.cost -= cost;
	store->queue.flight_cost = cost;
	*ret_items = items;
	*ret_count = count;
	return 0;
}
