/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Room: how much is free, and who makes some for whom.
 *
 * A group in use loses nothing to another one, nor does a pinned one: what is kept of a running dataset is
 * a stable subset. One whose users all yield (they keep the samples in another form now) counts as superseded. For the values of a group others are pushed out that are worth less, of those the superseded
 * first, then by worth, which halves with each day that a group is not used: so a day-old group loses against an
 * equal one that is used now, and against one worth half of it only after another day. A victim
 * loses its last samples first, and no more than are needed, in writes of a bounded size.
 *
 * What one write frees the next but one can use (store_lmdb.c), so more is freed than is needed at once, and
 * a few writes may pass with nothing in them but a record.
 */

#include "storage/store_parts.h"

#include <math.h>

#define ROOM_PRUNE_VALUES 1024
#define ROOM_DAY_S 86400.0
#define ROOM_TURNS 64    /* writes that one batch may wait for */
#define ROOM_AGE_TURNS 2 /* writes until freed pages can be used */
#define ROOM_STUCK 4
#define ROOM_CRAMPED_MIN_NS UINT64_C(2000000000)
#define ROOM_CRAMPED_MAX_NS UINT64_C(60000000000)

/* For the tree itself: pages that are copied by a write before the old ones are free. */
static uint64_t room_reserve(const struct store *store)
{
	const uint64_t least = 64 * base_page_size();

	return BASE_MIN(least + store->map_bytes / 128, store->map_bytes / 8);
}

void store_room_look(struct store *store)
{
	const uint64_t reserve = room_reserve(store);
	struct store_lmdb_room room;
	int r = store->db ? store_lmdb_room(store->db, &room) : STORE_LMDB_E_AGAIN;

	if (r) {
		if (store->db)
			store_notice(store, r);
		return;
	}
	BASE_HOLD(&store->lock);
	store->room.bytes =
	    room.usable * room.page > reserve ? room.usable * room.page - reserve : 0;
	store->state.values = room.values;
	store->state.bytes_used = (room.spread - room.free) * room.page;
	store->state.bytes_file = room.spread * room.page + store->aside_bytes;
}

void store_room_cramp(struct store_room *room, uint64_t cost)
{
	room->cramped_ns =
	    BASE_MIN(BASE_MAX(room->cramped_ns * 2, ROOM_CRAMPED_MIN_NS), ROOM_CRAMPED_MAX_NS);
	room->cramped_until_ns = base_now_ns() + room->cramped_ns;
	room->cramped_cost = cost;
}

void store_room_clear(struct store_room *room)
{
	room->cramped_until_ns = room->cramped_ns = 0;
}

bool store_room_is_cramped(const struct store_room *room, uint64_t cost)
{
	return room->cramped_until_ns > 0 && cost >= room->cramped_cost &&
	       base_now_ns() < room->cramped_until_ns;
}

/* ---- who may be pushed out ---- */

static double room_worth(const struct store_group *group, uint64_t now_s)
{
	const uint64_t last = BASE_MIN(group->record.last_use_s, now_s);

	if (group->is_superseded || group->users > 0) /* and all of them yield */
		return -1;
	return group->record.us_per_mib * exp2(-(double)(now_s - last) / ROOM_DAY_S);
}

static bool room_is_open(const struct store_group *group)
{
	return store_group_is_idle(group) && !group->record.is_pinned && !group->is_busy &&
	       group->record.values > 0;
}

uint64_t store_room_others(const struct store *store, const struct store_group *group)
{
	const uint64_t now_s = store_now_s();
	uint64_t bytes = 0;

	for (const struct store_group *other = store->groups; other; other = other->next) {
		if (other != group && room_is_open(other) &&
		    room_worth(other, now_s) < group->record.us_per_mib)
			bytes += other->record.bytes;
	}
	return bytes;
}

/* Under lock. */
static struct store_group *room_victim(struct store *store, double us_per_mib)
{
	const uint64_t now_s = store_now_s();
	struct store_group *victim = NULL;
	double least = us_per_mib;

	for (struct store_group *group = store->groups; group; group = group->next) {
		const double worth = room_worth(group, now_s);

		if (!room_is_open(group) || worth > least || (worth == least && !victim))
			continue;
		if (victim && worth == least &&
		    group->record.last_use_s >= victim->record.last_use_s)
			continue;
		victim = group;
		least = worth;
	}
	return victim;
}

/* ---- pruning ---- */

struct room_pruned {
	size_t count;
	uint64_t first; /* sample: it and all behind it are gone */
};

static int room_prune_values(struct store_group *group, struct store_lmdb_write *write, size_t most,
			     uint64_t bytes, struct room_pruned *pruned)
{
	const struct store_lmdb_key prefix = {&group->id, sizeof(group->id)};
	uint64_t freed = 0;
	int r = 0;

	while (r == 0 && pruned->count < most && freed < bytes) {
		uint8_t key[STORE_RECORD_KEY];
		size_t size;

		r = store_lmdb_delete_last(write, &prefix, sizeof(key), key, &size);
		if (r)
			break;
		size -= BASE_MIN(size, (size_t)STORE_RECORD_SEAL);
		freed += store_bytes_of(size);
		pruned->count++;
		pruned->first = store_record_sample(key);
		store_write_stage(group, -1, -(int64_t)size);
	}
	return r == STORE_LMDB_E_NONE ? 0 : r;
}

static int room_prune(struct store_group *group, size_t most, uint64_t bytes,
		      struct room_pruned *pruned)
{
	struct store *store = group->store;
	struct store_lmdb_write *write;
	int r = store_lmdb_begin(store->db, &write);

	if (r)
		return r;
	store_write_stage(group, 0, 0);
	r = room_prune_values(group, write, most, bytes, pruned);
	r = r ? r : store_write_records(store, write);
	return store_lmdb_end(write, r);
}

static int room_prune_once(struct store_group *group, size_t most, uint64_t bytes,
			   size_t *ret_count)
{
	struct store *store = group->store;
	struct room_pruned pruned = {.count = 0};
	int r = store->db ? room_prune(group, most, bytes, &pruned) : -ENODEV;

	pthread_mutex_lock(&store->lock);
	store_write_settle(store, r == 0);
	if (r == 0 && pruned.count > 0)
		store_group_clear_from(group, pruned.first);
	pthread_mutex_unlock(&store->lock);
	if (r == 0)
		*ret_count = pruned.count;
	return r;
}

/* Nothing can be deleted, since even that needs pages, and no reader keeps those that are free: then there
 * is nothing to wait for, and the store begins anew. */
static int room_stuck(struct store *store, int r)
{
	if (store_lmdb_held_back(store->db) <= ROOM_AGE_TURNS && ++store->stuck >= ROOM_STUCK)
		return STORE_LMDB_E_DAMAGED;
	return r;
}

int store_room_prune(struct store_group *group, size_t most, uint64_t bytes, size_t *ret_count)
{
	struct store *store = group->store;
	int r = room_prune_once(group, most, bytes, ret_count);

	while (r == STORE_LMDB_E_FULL && most > 1) { /* smaller writes need less room */
		most = BASE_MAX(most / 8, (size_t)1);
		r = room_prune_once(group, most, bytes, ret_count);
	}
	if (r == STORE_LMDB_E_FULL)
		r = room_stuck(store, r);
	return store->db ? store_write_outcome(store, r) : r;
}

/* ---- making room ---- */

/* Empties one victim a little, by so many bytes: *ret_freed. false: there is none, or it cannot be written. */
static bool room_push(struct store *store, uint64_t bytes, double us_per_mib, uint64_t *ret_freed)
{
	struct store_group *victim;
	uint64_t before = 0;
	size_t count = 0;
	int r;

	pthread_mutex_lock(&store->lock);
	victim = room_victim(store, us_per_mib);
	if (victim) {
		victim->is_busy = true;
		before = victim->record.bytes;
	}
	pthread_mutex_unlock(&store->lock);
	if (!victim)
		return false;
	r = store_room_prune(victim, ROOM_PRUNE_VALUES, bytes, &count);
	pthread_mutex_lock(&store->lock);
	store->state.evicted += count;
	if (r == 0 && count == 0) /* its record was wrong: it has none */
		victim->record.values = victim->record.bytes = 0;
	*ret_freed = count > 0 ? before - BASE_MIN(victim->record.bytes, before) : 0;
	victim->is_busy = false;
	pthread_cond_broadcast(&store->settled);
	pthread_mutex_unlock(&store->lock);
	return r == 0;
}

static uint64_t room_free(struct store *store)
{
	store_room_look(store);
	BASE_HOLD(&store->lock);
	return store->room.bytes;
}

void store_room_make(struct store *store, uint64_t cost, double us_per_mib)
{
	/* some for the next batches, too; more when what was free was not in one piece */
	const uint64_t more = store->room.cramped_until_ns > 0 ? store->map_bytes / 16 : 0;
	const uint64_t ahead = cost + 2 * store->queue.batch_bytes + more;
	uint64_t freed = 0;
	unsigned age = 0;

	if (more == 0 && room_free(store) >= cost)
		return;
	for (unsigned turn = 0; turn < ROOM_TURNS && age < ROOM_AGE_TURNS; turn++) {
		uint64_t now = 0;

		if (freed < ahead && room_push(store, ahead - freed, us_per_mib, &now)) {
			freed += now;
			continue;
		}
		if (freed == 0 || !store->db ||
		    store_write_outcome(store, store_write_format(store->db, true)))
			return;
		age++;
	}
	room_free(store);
	BASE_HOLD(&store->lock);
	store->room.cramped_until_ns = 0; /* it may fit now; cramped_ns stays, if it does not */
}
