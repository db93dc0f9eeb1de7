/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The writer: the one thread that puts values on the disk.
 *
 * It takes what waits when there is a batch of it, or when the first of it has waited for a second, and
 * commits it in one write: values, and the record of each group that they change, so that numbers of
 * values and bytes are always those of the disk. Only after the commit are tables set, so a value that a
 * table tells of is there.
 *
 * A write that fails is given up as a whole: LMDB has nothing of it. When it failed for room that was
 * thought to be there (free, but not in one piece, or kept by a long reader) the batch is tried again in
 * halves, down to single values; when one value alone finds no place, puts are refused for a while. When it
 * failed otherwise (full disk, quota, I/O), the batch is lost and the store is read-only for a
 * while; gets go on. When LMDB finds damage, or wants to be opened anew, this thread does it: store_env.c.
 */

#include "storage/store_parts.h"

#define WRITE_AGE_NS UINT64_C(1000000000)
#define WRITE_IDLE_NS (10 * WRITE_AGE_NS) /* records of use, dead readers */

/* ---- records of groups ---- */

void store_write_stage(struct store_group *group, int64_t values, int64_t bytes)
{
	group->is_staged = true;
	group->staged_values += values;
	group->staged_bytes += bytes;
}

static uint64_t write_sum(uint64_t number, int64_t change)
{
	if (change < 0 && number < (uint64_t)-change)
		return 0;
	return number + (uint64_t)change;
}

/* Under lock: the record as it will be. false: there is nothing to keep. */
static bool write_record_of(const struct store_group *group, struct store_record *ret)
{
	*ret = group->record;
	ret->values = BASE_MIN(write_sum(ret->values, group->staged_values), ret->n_samples);
	ret->bytes = write_sum(ret->bytes, group->staged_bytes);
	return ret->values > 0 || group->users > 0 || ret->is_pinned;
}

static int write_record(struct store_group *group, struct store_lmdb_write *write)
{
	const struct store_lmdb_key key = {&group->id, sizeof(group->id)};
	uint8_t bytes[STORE_RECORD_MAX];
	struct store_record record;
	size_t before;
	bool is_kept;
	int r;

	pthread_mutex_lock(&group->store->lock);
	is_kept = write_record_of(group, &record);
	group->is_dirty = false;
	pthread_mutex_unlock(&group->store->lock);
	if (is_kept)
		return store_lmdb_put(write, STORE_LMDB_GROUPS, &key, bytes,
				      store_record_write(&group->id, &record, bytes), true);
	r = store_lmdb_delete(write, STORE_LMDB_GROUPS, &key, &before);
	return r == STORE_LMDB_E_NONE ? 0 : r;
}

/* Groups are only ever added, in front: a list that was read under lock stays good. */
static struct store_group *write_groups(struct store *store)
{
	BASE_HOLD(&store->lock);
	return store->groups;
}

int store_write_records(struct store *store, struct store_lmdb_write *write)
{
	int r = 0;

	for (struct store_group *g = write_groups(store); g && r == 0; g = g->next) {
		if (g->is_staged)
			r = write_record(g, write);
	}
	return r;
}

void store_write_settle(struct store *store, bool is_committed)
{
	for (struct store_group *group = store->groups; group; group = group->next) {
		struct store_record record;

		if (!group->is_staged)
			continue;
		if (is_committed) {
			group->is_kept = write_record_of(group, &record);
			group->record.values = record.values;
			group->record.bytes = record.bytes;
		} else {
			group->is_dirty = group->is_kept;
		}
		group->is_staged = false;
		group->staged_values = group->staged_bytes = 0;
	}
}

/* ---- what a write came to ---- */

int store_write_format(struct store_lmdb *db, bool is_there)
{
	const struct store_lmdb_key key = {STORE_RECORD_FORMAT_KEY,
					   strlen(STORE_RECORD_FORMAT_KEY)};
	uint8_t format[STORE_RECORD_FORMAT_SIZE];
	struct store_lmdb_write *write;
	int r = store_lmdb_begin(db, &write);

	if (r)
		return r;
	store_record_format(format);
	r = store_lmdb_put(write, STORE_LMDB_GROUPS, &key, format, sizeof(format), is_there);
	return store_lmdb_end(write, r);
}

int store_write_outcome(struct store *store, int r)
{
	if (r == 0)
		store->stuck = 0;
	if (r == 0)
		store_env_written(store);
	else if (r < 0)
		store_env_write_failed(store, r);
	else
		store_notice(store, r);
	return r;
}

/* Deletes what the item's sample has. NONE: nothing. */
static int write_delete(struct store_lmdb_write *write, const struct store_lmdb_key *key,
			struct store_group *group)
{
	size_t size;
	int r = store_lmdb_delete(write, STORE_LMDB_VALUES, key, &size);

	if (r == 0)
		store_write_stage(group, -1,
				  -(int64_t)(size - BASE_MIN(size, (size_t)STORE_RECORD_SEAL)));
	return r;
}

static int write_value(struct store_lmdb_write *write, const struct store_lmdb_key *key,
		       const struct store_item *item)
{
	int r = store_lmdb_put(write, STORE_LMDB_VALUES, key, item->bytes,
			       STORE_RECORD_SEAL + (size_t)item->size, false);

	if (r == 0)
		store_write_stage(item->group, 1, (int64_t)item->size);
	return r;
}

static int write_item(struct store_lmdb_write *write, struct store_item *item)
{
	uint8_t bytes[STORE_RECORD_KEY];
	const struct store_lmdb_key key = {bytes, sizeof(bytes)};
	int r = 0;

	store_record_key(&item->group->id, item->sample, bytes);
	item->is_lost = !item->is_delete && store_room_is_cramped(&item->group->store->room,
								  store_bytes_of(item->size));
	if (item->is_delete || item->is_replace)
		r = write_delete(write, &key, item->group);
	if (r == STORE_LMDB_E_NONE)
		r = 0;
	if (r == 0 && !item->is_delete && !item->is_lost)
		r = write_value(write, &key, item);
	if (r != STORE_LMDB_E_THERE)
		return r;
	item->is_lost = true;
	return 0;
}

static int write_items(struct store *store, struct store_item **items, size_t count)
{
	struct store_lmdb_write *write;
	int r = store_lmdb_begin(store->db, &write);

	if (r)
		return r;
	for (size_t i = 0; i < count && r == 0; i++)
		r = write_item(write, items[i]);
	r = r ? r : store_write_records(store, write);
	return store_lmdb_end(write, r);
}

static int write_some(struct store *store, struct store_item **items, size_t count)
{
	int r = write_items(store, items, count);

	pthread_mutex_lock(&store->lock);
	store_write_settle(store, r == 0);
	if (r == 0) {
		/* Under lock, after the commit. */
		for (size_t i = 0; i < count; i++) {
			if (items[i]->is_delete)
				store_group_set(items[i]->group, items[i]->sample, 0);
			else if (!items[i]->is_lost)
				store_group_set(items[i]->group, items[i]->sample, items[i]->size);
			store->state.puts += !items[i]->is_delete && !items[i]->is_lost;
			store->state.puts_not_taken += !items[i]->is_delete && items[i]->is_lost;
		}
	}
	pthread_mutex_unlock(&store->lock);
	if (r != STORE_LMDB_E_FULL)
		store_write_outcome(store, r);
	return r;
}

/* There was no place for a single value: nothing of its size finds one, for a while or until others are
 * pushed out. */
static void write_cramped(struct store *store, const struct store_item *item)
{
	BASE_HOLD(&store->lock);
	store_room_cramp(&store->room, store_bytes_of(item->size));
	store->state.puts_not_taken += !item->is_delete;
	store->state.puts_full += !item->is_delete;
}

/* Returns how many were dealt with. */
static size_t write_batch(struct store *store, struct store_item **items, size_t count)
{
	size_t done = 0, some = count;

	while (done < count) {
		const size_t now = BASE_MIN(some, count - done);
		const int r = write_some(store, items + done, now);

		if (r != 0 && r != STORE_LMDB_E_FULL)
			break;
		if (r == STORE_LMDB_E_FULL && now > 1) {
			some = now / 2;
			continue;
		}
		if (r == STORE_LMDB_E_FULL)
			write_cramped(store, items[done]);
		done += now;
		some = count;
	}
	return done;
}

/* ---- turns of the thread ---- */

/* Under write_lock: the least that must be free, and for whom. */
static uint64_t write_weigh(struct store_item **items, size_t count, double *ret_us_per_mib)
{
	uint64_t cost = 0;
	double worth = 0;

	for (size_t i = 0; i < count; i++) {
		if (items[i]->is_delete)
			continue;
		cost += store_bytes_of(items[i]->size);
		worth = BASE_MAX(worth, items[i]->group->record.us_per_mib);
	}
	*ret_us_per_mib = worth;
	return cost;
}

/* How many of the items find room without touching what is kept free for the tree's own changes: that would
 * end in a store in which nothing can be deleted. */
static size_t write_fit(struct store *store, struct store_item **items, size_t count)
{
	uint64_t cost = 0, room;
	size_t fit;

	pthread_mutex_lock(&store->lock);
	room = store->room.bytes;
	pthread_mutex_unlock(&store->lock);
	for (fit = 0; fit < count; fit++) {
		cost += items[fit]->is_delete ? 0 : store_bytes_of(items[fit]->size);
		if (cost > room)
			break;
	}
	return fit;
}

/* Under lock: what the values took that are on the disk now, with the deletions among them, the room that was made, and
 * what a commit costs however many there are. */
static void write_account(struct store *store, struct store_item **items, size_t done,
			  uint64_t began_ns, uint64_t began_cpu_ns)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < done; i++)
		if (!items[i]->is_delete && !items[i]->is_lost)
			bytes += store_bytes_of(items[i]->size);
	if (bytes == 0)
		return;
	store->state.write_ns += base_now_ns() - began_ns;
	store->state.write_cpu_ns += base_cpu_ns() - began_cpu_ns;
	store->state.write_bytes += bytes;
}

static void write_queue(struct store *store)
{
	const uint64_t began_ns = base_now_ns(), began_cpu_ns = base_cpu_ns();
	struct store_item **items;
	size_t count, fit, done;
	uint64_t cost;
	double worth;
	int r;

	pthread_mutex_lock(&store->lock);
	r = store_queue_take(store, &items, &count);
	if (r == 0)
		cost = write_weigh(items, count, &worth);
	else
		store_queue_drop(store, NULL); /* memory is short, and this is some */
	pthread_mutex_unlock(&store->lock);
	if (r)
		return;
	if (count > 0) {
		store_room_make(store, cost, worth);
		fit = write_fit(store, items, count);
		done = write_batch(store, items, fit);
		pthread_mutex_lock(&store->lock);
		for (size_t i = done; i < count; i++) {
			store->state.puts_not_taken += !items[i]->is_delete;
			store->state.puts_full += !items[i]->is_delete && i >= fit;
		}
		write_account(store, items, done, began_ns, began_cpu_ns);
		pthread_mutex_unlock(&store->lock);
		store_room_look(store);
	}
	for (size_t i = 0; i < count; i++)
		free(items[i]);
	free(items);
	pthread_mutex_lock(&store->lock);
	store->queue.flight_items = store->queue.flight_cost = 0;
	pthread_cond_broadcast(&store->settled);
	pthread_mutex_unlock(&store->lock);
}

/* Records that no batch brought to the disk. */
static void write_uses(struct store *store)
{
	bool is_dirty = false;

	pthread_mutex_lock(&store->lock);
	for (struct store_group *group = store->groups; group; group = group->next) {
		if (group->is_dirty)
			store_write_stage(group, 0, 0);
		is_dirty = is_dirty || group->is_dirty;
	}
	pthread_mutex_unlock(&store->lock);
	if (is_dirty)
		write_some(store, NULL, 0);
}

/* Under write_lock. */
static void write_turn(struct store *store, bool is_idle)
{
	bool must_recover, may;

	pthread_mutex_lock(&store->lock);
	/* Under lock. */
	must_recover = store->is_broken || store->must_reopen ||
		       (store->state.mode == STORE_OFF && base_now_ns() >= store->retry_at_ns);
	may = store->writer.is_stopping || store->state.mode == STORE_ON ||
	      base_now_ns() >= store->retry_at_ns;
	pthread_mutex_unlock(&store->lock);
	if (must_recover)
		store_env_recover(store);
	if (!store->db || !may)
		return;
	write_queue(store);
	if (is_idle && store->db)
		write_uses(store);
	if (is_idle && store->db)
		store_lmdb_tidy(store->db);
}

static bool write_is_urgent(const struct store *store)
{
	return store->writer.flushes > 0 || store->queue.cost >= store->queue.batch_bytes ||
	       store->queue.items >= STORE_QUEUE_ITEMS;
}

/* Under lock: when there will be something to do. */
static uint64_t write_due(const struct store *store, uint64_t idle_ns)
{
	uint64_t due = idle_ns;

	if (store->writer.is_stopping || store->is_broken || store->must_reopen)
		return 0;
	if (store->state.mode == STORE_OFF)
		return store->retry_at_ns;
	if (store->queue.first)
		due = BASE_MIN(due,
			       write_is_urgent(store) ? 0 : store->queue.since_ns + WRITE_AGE_NS);
	return store->state.mode == STORE_ON ? due : BASE_MAX(due, store->retry_at_ns);
}

void *store_write_main(void *arg)
{
	struct store *store = arg;
	uint64_t idle_ns = base_now_ns() + WRITE_IDLE_NS;
	bool is_last = false;

	pthread_setname_np(pthread_self(), "store-writer");
	while (!is_last) {
		bool is_idle;
		uint64_t due, now;

		pthread_mutex_lock(&store->lock);
		while ((due = write_due(store, idle_ns)) > (now = base_now_ns())) {
			const struct timespec until = base_timespec(due);

			pthread_cond_timedwait(&store->writer.wake, &store->lock, &until);
		}
		is_idle = now >= idle_ns || store->writer.is_stopping;
		pthread_mutex_unlock(&store->lock);
		if (is_idle)
			idle_ns = base_now_ns() + WRITE_IDLE_NS;
		pthread_mutex_lock(&store->write_lock);
		write_turn(store, is_idle);
		pthread_mutex_unlock(&store->write_lock);
		pthread_mutex_lock(&store->lock);
		is_last = store->writer.is_stopping &&
			  (!store->queue.first || store->state.mode != STORE_ON ||
			   base_now_ns() >= store->writer.stop_by_ns);
		store->writer.is_ended = is_last;
		if (is_last)
			pthread_cond_broadcast(&store->settled);
		pthread_mutex_unlock(&store->lock);
	}
	return NULL;
}
