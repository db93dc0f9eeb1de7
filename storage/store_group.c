/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Groups: who uses which, and the table of each that is in use.
 *
 * Groups of the disk are all known from the opening on, by their records; a group that is opened for the
 * first time gets a record with its first write. A handle is a counted reference to the one struct
 * store_group of its id. Structs stay until the store is closed: there are as many as there were dataset
 * versions and forms, and nothing has to ask whether one is still there.
 *
 * The table says of each sample how many bytes are kept. It is filled when the first handle is opened,
 * by a walk over the group's keys in steps, which touches the tree's leaves and no value. Meanwhile the
 * group is busy: another opener waits, and nobody empties it. From then on every change is set in it
 * after it was committed, under `lock`. accessd reads it at any time and believes it for planning
 * only; what counts is what store_get() finds.
 */

#include "storage/store_parts.h"

#define GROUP_STEP 16384 /* keys a read of the scan */

/* ---- the list, under lock ---- */

struct store_group *store_group_find(struct store *store, const struct hash_id *id)
{
	struct store_group *group = store->groups;

	while (group && memcmp(&group->id, id, sizeof(*id)) != 0)
		group = group->next;
	return group;
}

struct store_group *store_group_add(struct store *store, const struct hash_id *id)
{
	struct store_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->store = store;
	group->id = *id;
	group->table.fd = -1;
	group->record.us_per_mib = 1;
	group->next = store->groups;
	store->groups = group;
	return group;
}

bool store_group_is_idle(const struct store_group *group)
{
	return group->users == group->yielders;
}

static bool group_is_newer(const struct store_group *group, const struct store_group *than)
{
	if (group->opened != than->opened)
		return group->opened > than->opened;
	return group->record.last_use_s > than->record.last_use_s;
}

static bool group_is_superseded(const struct store *store, const struct store_group *group)
{
	if (group->users > 0 || group->note_sum == 0)
		return false;
	for (const struct store_group *other = store->groups; other; other = other->next) {
		if (other != group && other->note_sum == group->note_sum &&
		    (other->users > 0 || (other->is_kept && group_is_newer(other, group))))
			return true;
	}
	return false;
}

void store_group_compare(struct store *store)
{
	for (struct store_group *group = store->groups; group; group = group->next) {
		const char *note = group->record.note;

		group->note_sum = *note ? hash_checksum(note, strlen(note)) | 1 : 0;
	}
	for (struct store_group *group = store->groups; group; group = group->next)
		group->is_superseded = group_is_superseded(store, group);
}

/* ---- tables ---- */

void store_group_free_all(struct store *store)
{
	while (store->groups) {
		struct store_group *group = store->groups;

		store->groups = group->next;
		store_table_free(&group->table);
		free(group);
	}
}

void store_group_set(struct store_group *group, uint64_t sample, uint32_t size)
{
	store_table_set(&group->table, sample, size);
}

void store_group_clear_from(struct store_group *group, uint64_t sample)
{
	store_table_clear_from(&group->table, sample);
}

void store_group_clear(struct store_group *group)
{
	store_group_clear_from(group, 0);
}

struct group_scan {
	struct store_group *group;
	uint8_t next[STORE_RECORD_KEY]; /* the first key that was not seen */
	uint64_t values, bytes;
	bool is_done;
};

static bool group_scan_each(void *arg, const struct store_lmdb_key *key, const uint8_t *data,
			    size_t size)
{
	struct group_scan *scan = arg;
	uint64_t sample;

	(void)data;
	scan->is_done = key->size != STORE_RECORD_KEY ||
			memcmp(key->data, &scan->group->id, sizeof(struct hash_id)) != 0;
	if (scan->is_done)
		return false;
	sample = store_record_sample(key->data);
	scan->values++;
	scan->bytes += size - BASE_MIN(size, (size_t)STORE_RECORD_SEAL);
	if (size > STORE_RECORD_SEAL && size - STORE_RECORD_SEAL <= scan->group->store->value_max)
		store_group_set(scan->group, sample, (uint32_t)(size - STORE_RECORD_SEAL));
	store_record_key(&scan->group->id, sample + 1, scan->next);
	return true;
}

/* A group whose record was damaged has again what is found of it. */
static void group_scanned(struct group_scan *scan)
{
	struct store_group *group = scan->group;

	BASE_HOLD(&group->store->lock);
	if (group->is_unknown) {
		group->record.values = BASE_MIN(scan->values, group->record.n_samples);
		group->record.bytes = scan->bytes;
		group->is_unknown = false;
		group->is_dirty = true;
	}
}

int store_group_scan(struct store_group *group)
{
	struct store *store = group->store;
	struct group_scan scan = {.group = group};
	int r = 0;

	store_record_key(&group->id, 0, scan.next);
	while (r == 0 && !scan.is_done) {
		const struct store_lmdb_key from = {scan.next, sizeof(scan.next)};

		pthread_rwlock_rdlock(&store->fence);
		r = store->db ? store_lmdb_walk(store->db, STORE_LMDB_VALUES, &from, GROUP_STEP,
						group_scan_each, &scan)
			      : STORE_LMDB_E_NONE;
		store_leave(store, r);
	}
	if (r == 0 || r == STORE_LMDB_E_NONE)
		group_scanned(&scan);
	return r == STORE_LMDB_E_NONE ? 0 : r;
}

/* ---- handles ---- */

/* The first user's: the table, and what the record says from now on. */
static int group_begin(struct store_group *group, uint64_t n_samples)
{
	int r = store_table_new(n_samples, &group->table);

	if (r)
		return r;
	group->record.n_samples = n_samples;
	group->is_dropped = false;
	group->is_busy = true;
	pthread_mutex_unlock(&group->store->lock);
	store_group_scan(group); /* what it could not see is missed, no more */
	pthread_mutex_lock(&group->store->lock);
	group->is_busy = false;
	pthread_cond_broadcast(&group->store->settled);
	return 0;
}

/* NULL: there is none. */
static struct store_group *group_settle(struct store *store, const struct hash_id *id)
{
	struct store_group *group = store_group_find(store, id);

	while (group && group->is_busy)
		pthread_cond_wait(&store->settled, &store->lock);
	return group;
}

static int group_open(struct store *store, const struct hash_id *id, const char *note,
		      uint64_t n_samples, bool is_guest, struct store_group **ret)
{
	struct store_group *group;
	bool is_new, is_known;
	int r = 0;

	if (n_samples < 1 || n_samples > STORE_RECORD_SAMPLES)
		return -EINVAL;
	BASE_HOLD(&store->lock);
	group = group_settle(store, id);
	is_new = !group;
	is_known = is_guest && group && group->record.n_samples > 0;
	if (is_known && group->record.n_samples != n_samples)
		return -EINVAL;
	if (is_guest && is_new && store->guests == STORE_GUESTS_MOST)
		return -ENOSPC;
	if (is_new)
		group = store_group_add(store, id);
	if (!group)
		return -ENOMEM;
	if (group->users > 0 && group->table.cells != n_samples)
		return -EINVAL; /* one id names one dataset version */
	group->is_dropped = false;
	if (group->users++ == 0)
		r = group_begin(group, n_samples);
	if (r) {
		group->users--;
		return r;
	}
	if (!is_known) {
		memset(group->record.note, 0, sizeof(group->record.note));
		memcpy(group->record.note, note, strnlen(note, STORE_NOTE_MAX));
	}
	group->record.last_use_s = store_now_s();
	group->opened = ++store->opened;
	group->is_dirty = group->is_kept;
	store->guests += is_guest && is_new;
	store_group_compare(store);
	*ret = group;
	return 0;
}

int store_group_open(struct store *store, const struct hash_id *id, const char *note,
		     uint64_t n_samples, struct store_group **ret)
{
	return group_open(store, id, note, n_samples, false, ret);
}

int store_group_open_guest(struct store *store, const struct hash_id *id, const char *note,
			   uint64_t n_samples, struct store_group **ret)
{
	return group_open(store, id, note, n_samples, true, ret);
}

void store_group_close(struct store_group *group)
{
	struct store *store;

	if (!group)
		return;
	store = group->store;
	BASE_HOLD(&store->lock);
	while (group->is_busy) /* its table is in use */
		pthread_cond_wait(&store->settled, &store->lock);
	group->record.last_use_s = store_now_s();
	group->is_dirty = group->is_kept;
	if (--group->users == 0)
		store_table_free(&group->table);
	store_group_compare(store);
}

int store_group_table(const struct store_group *group)
{
	return group->table.fd;
}

void store_group_worth(struct store_group *group, double us_per_mib)
{
	if (!(us_per_mib >= 0 && us_per_mib < 1e18)) /* nor what is no number */
		return;
	BASE_HOLD(&group->store->lock);
	group->record.us_per_mib = us_per_mib;
	group->is_dirty = group->is_kept;
}

void store_group_yield(struct store_group *group, bool yields)
{
	struct store *store = group->store;

	BASE_HOLD(&store->lock);
	if (yields)
		group->yielders++;
	else
		group->yielders--;
	if (store_group_is_idle(group))
		store_room_clear(&store->room); /* it may fit now */
}
