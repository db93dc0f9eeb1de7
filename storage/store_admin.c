/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What people may ask of a store: lists, numbers, to pin a group and to drop one.
 *
 * Both changes are on the disk when the call returns, made by the caller's own thread under write_lock.
 * Dropping goes in writes of a bounded size, so that it neither copies half of the tree nor keeps the writer
 * away for long. A group in use is empty for its users from the beginning: table and queue first. What a disk
 * that is full did not let go is theirs again.
 */

#include "storage/store_parts.h"

#include <unistd.h>

#include "storage/store_place.h"

#define DROP_STEP 4096 /* values a write */

static int admin_outcome(int r)
{
	if (r == STORE_LMDB_E_FULL) /* by pages that a reader of another process keeps */
		return -ENOSPC;
	return r > 0 ? -EIO : r;
}

int store_pin(struct store *store, const struct hash_id *id, bool pinned)
{
	struct store_group *group;
	int r = -ENOENT;

	pthread_mutex_lock(&store->write_lock);
	pthread_mutex_lock(&store->lock);
	group = store_group_find(store, id);
	if (group && (group->is_kept || group->users > 0))
		group->record.is_pinned = pinned;
	else
		group = NULL;
	pthread_mutex_unlock(&store->lock);
	if (group) {
		size_t count;

		/* Brings a group's record to the disk now. */
		r = store_room_prune(group, 0, 0, &count);
	}
	pthread_mutex_unlock(&store->write_lock);
	return admin_outcome(r);
}

static int admin_drop_all(struct store_group *group)
{
	size_t count = 1;
	int r = 0;

	while (r == 0 && count > 0)
		r = store_room_prune(group, DROP_STEP, UINT64_MAX, &count);
	return admin_outcome(r);
}

/* Under lock: 0 and the group is this caller's to empty. */
static int admin_drop_begin(struct store *store, const struct hash_id *id, struct store_group **ret)
{
	struct store_group *group = store_group_find(store, id);

	while (group && group->is_busy)
		pthread_cond_wait(&store->settled, &store->lock);
	if (!group || (!group->is_kept && group->users == 0))
		return -ENOENT;
	if (group->record.is_pinned)
		return -EBUSY;
	group->is_busy = true;
	group->is_dropped = true;
	store_queue_drop(store, group);
	store_group_clear(group);
	*ret = group;
	return 0;
}

/* Under write_lock: all of it is gone, or what is left is used as before. */
static int admin_drop(struct store *store, struct store_group *group)
{
	int r = admin_drop_all(group);

	store_room_look(store);
	if (r)
		store_group_scan(group);
	BASE_HOLD(&store->lock);
	if (r)
		group->is_dropped = false;
	else
		store_group_clear(group); /* a batch may have come between */
	group->is_busy = false;
	store_room_clear(&store->room);
	pthread_cond_broadcast(&store->settled);
	return r;
}

int store_drop(struct store *store, const struct hash_id *id)
{
	struct store_group *group;
	int r;

	pthread_mutex_lock(&store->lock);
	r = admin_drop_begin(store, id, &group);
	pthread_mutex_unlock(&store->lock);
	if (r)
		return r;
	pthread_mutex_lock(&store->write_lock);
	r = admin_drop(store, group);
	pthread_mutex_unlock(&store->write_lock);
	return r;
}

/* What was set aside goes only then, so that a failure of that leaves no page as it was. */
static int admin_wipe(struct store *store)
{
	int r = admin_outcome(store_notice(store, store_lmdb_wipe(store->db)));

	if (unlinkat(store->dir_fd, STORE_PLACE_ASIDE, 0) < 0 && errno != ENOENT)
		return r ? r : -errno;
	store->aside_bytes = 0;
	store_room_look(store);
	return r;
}

int store_wipe(struct store *store)
{
	int r = -ENODEV;

	BASE_HOLD(&store->write_lock);
	if (store->db)
		r = store_write_outcome(store, store_write_format(store->db, true));
	if (r)
		return admin_outcome(r);
	/* Whoever read before that has read it. */
	pthread_rwlock_wrlock(&store->fence);
	pthread_rwlock_unlock(&store->fence);
	return admin_wipe(store);
}

struct admin_listed {
	struct store_listing listing;
	char note[STORE_NOTE_MAX + 1];
};

/* Under lock. */
static size_t admin_list_copy(const struct store *store, struct admin_listed *listed)
{
	size_t count = 0;

	for (const struct store_group *group = store->groups; group; group = group->next) {
		const struct store_record *record = &group->record;

		if (!group->is_kept && group->users == 0)
			continue;
		if (listed) {
			memcpy(listed[count].note, record->note, sizeof(record->note));
			listed[count].listing = (struct store_listing){
			    .id = group->id,
			    .note = listed[count].note,
			    .n_samples = record->n_samples,
			    .values = record->values,
			    .bytes = record->bytes,
			    .last_use_s = group->users > 0 ? store_now_s() : record->last_use_s,
			    .us_per_mib = record->us_per_mib,
			    .is_pinned = record->is_pinned,
			    .is_used = group->users > 0,
			    .is_superseded = group->is_superseded,
			};
		}
		count++;
	}
	return count;
}

int store_list(struct store *store, void (*each)(void *arg, const struct store_listing *listing),
	       void *arg)
{
	_cleanup_free_ struct admin_listed *listed = NULL;
	size_t count;

	pthread_mutex_lock(&store->lock);
	count = admin_list_copy(store, NULL);
	listed = calloc(count + 1, sizeof(*listed));
	if (listed)
		admin_list_copy(store, listed);
	pthread_mutex_unlock(&store->lock);
	if (!listed)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		each(arg, &listed[i].listing);
	return 0;
}

void store_state(struct store *store, struct store_state *ret)
{
	BASE_HOLD(&store->lock);
	*ret = store->state;
	ret->queue_values = store->queue.items + store->queue.flight_items;
	ret->groups = 0;
	for (const struct store_group *group = store->groups; group; group = group->next)
		ret->groups += group->is_kept || group->users > 0;
}
