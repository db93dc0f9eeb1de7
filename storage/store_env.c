/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The environment's life: opened, found good or set aside, exchanged while the store is in use.
 *
 * What is found at the opening is ours if LMDB can open it, the file is as long as its pages need,
 * the format is this release's, and it fits under the limit. Anything else is renamed to
 * cache.mdb-damaged, cut to the 64th of the limit that is kept free for it, and all begins anew: it
 * is a cache, and a copy that nobody can trust is worth a look by a person, not a repair. There is one such
 * copy; the next one takes its place.
 *
 * While it is in use the writer's thread does the same: nobody is in the environment then (fence), tables
 * are cleared, handles stay good. After a head that could not be written LMDB wants a new opening, but
 * the data are whole: then tables are filled again, and nothing is lost.
 *
 * When it cannot be opened or written the store waits, twice as long each time up to a minute: off
 * without an environment, read-only with one.
 */

#include "storage/store_parts.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "storage/store_place.h"

#define ENV_BACKOFF_MIN_NS UINT64_C(1000000000)
#define ENV_BACKOFF_MAX_NS (60 * ENV_BACKOFF_MIN_NS)
#define ENV_LOAD_STEP 64

/* ---- the mode ---- */

/* Under lock. Returns the seconds. */
static unsigned env_back_off(struct store *store)
{
	store->backoff_ns =
	    BASE_MIN(BASE_MAX(store->backoff_ns * 2, ENV_BACKOFF_MIN_NS), ENV_BACKOFF_MAX_NS);
	store->retry_at_ns = base_now_ns() + store->backoff_ns;
	return (unsigned)(store->backoff_ns / 1000000000);
}

/* LMDB says EIO, too, where the disk takes a part of what is written, as one does that is just full. */
static const char *env_why(int r)
{
	if (r == -EIO)
		return "the disk did not take all of it: it is full, over a quota, or broken";
	return strerror(-r);
}

void store_env_write_failed(struct store *store, int r)
{
	unsigned seconds;

	BASE_HOLD(&store->lock);
	store->state.write_errors++;
	seconds = env_back_off(store);
	if (store->db) {
		store->state.mode = STORE_READ_ONLY;
		snprintf(
		    store->state.why, sizeof(store->state.why),
		    "writing failed: %s; what is there is used, writing is tried again after %u s",
		    env_why(r), seconds);
	}
}

void store_env_written(struct store *store)
{
	BASE_HOLD(&store->lock);
	store->state.mode = STORE_ON;
	store->state.why[0] = '\0';
	store->backoff_ns = store->retry_at_ns = 0;
}

static void env_off(struct store *store, const char *what)
{
	unsigned seconds;

	BASE_HOLD(&store->lock);
	seconds = env_back_off(store);
	store->state.mode = STORE_OFF;
	store->state.values = store->state.bytes_used = store->room.bytes = 0;
	snprintf(store->state.why, sizeof(store->state.why), "%.192s; tried again after %u s", what,
		 seconds);
	store_queue_drop(store, NULL);
}

/* ---- exchanging ---- */

static struct store_lmdb *env_exchange(struct store *store, struct store_lmdb *db)
{
	struct store_lmdb *before;

	pthread_rwlock_wrlock(&store->fence);
	before = store->db;
	store->db = db;
	pthread_rwlock_unlock(&store->fence);
	return before;
}

void store_env_close(struct store *store)
{
	store_lmdb_close(env_exchange(store, NULL));
}

static int env_set_aside(struct store *store)
{
	const uint64_t keep = store->limit - store->map_bytes;
	int r = store_place_set_aside(store->dir_fd, keep);

	BASE_HOLD(&store->lock);
	store->aside_bytes = store_place_aside_bytes(store->dir_fd);
	store->state.set_aside++;
	for (struct store_group *group = store->groups; group; group = group->next) {
		group->record.values = group->record.bytes = 0;
		group->is_kept = group->users > 0 || group->record.is_pinned;
		group->is_dirty = group->is_kept;
		store_group_clear(group);
	}
	return r;
}

/* ---- groups of the disk ---- */

struct env_load {
	struct store *store;
	int r;
	bool is_ours;
	struct hash_id next;
	uint64_t damaged;
};

static int env_load_group(struct store *store, const struct hash_id *id,
			  const struct store_record *record, bool is_unknown)
{
	struct store_group *group = store_group_find(store, id);

	if (!group)
		group = store_group_add(store, id);
	if (!group)
		return -ENOMEM;
	group->is_kept = true;
	group->is_unknown = is_unknown;
	if (group->users == 0) {
		group->record = *record;
		return 0;
	}
	group->record.values = record->values; /* the rest its users know better */
	group->record.bytes = record->bytes;
	return 0;
}

static bool env_load_each(void *arg, const struct store_lmdb_key *key, const uint8_t *data,
			  size_t size)
{
	const size_t format = strlen(STORE_RECORD_FORMAT_KEY);
	struct env_load *load = arg;
	struct store_record record;
	bool is_unknown;

	if (key->size == format && memcmp(key->data, STORE_RECORD_FORMAT_KEY, format) == 0) {
		load->is_ours = store_record_is_format(data, size);
		return load->is_ours;
	}
	if (key->size != sizeof(struct hash_id)) {
		load->r = STORE_LMDB_E_DAMAGED;
		return false;
	}
	memcpy(&load->next, key->data, sizeof(load->next));
	is_unknown = !store_record_parse(&load->next, data, size, &record);
	if (is_unknown) {
		/* A record that is not believed costs the group: it stands for one without a note that nobody will open, so
		 * its values make room. */
		memset(&record, 0, sizeof(record));
		record.n_samples = STORE_RECORD_SAMPLES;
		record.values = 1; /* at least, and it will turn out */
		record.bytes = load->store->queue.batch_bytes;
		load->damaged++;
	}
	load->r = env_load_group(load->store, &load->next, &record, is_unknown);
	return load->r == 0;
}

/* All records in one read: they are few, and no other process's writes can come between. */
static int env_load(struct store *store, struct store_lmdb *db)
{
	const struct store_lmdb_key from = {NULL, 0};
	struct env_load load = {.store = store};
	int r;

	pthread_mutex_lock(&store->lock);
	r = store_lmdb_walk(db, STORE_LMDB_GROUPS, &from, SIZE_MAX, env_load_each, &load);
	store_group_compare(store);
	store->state.damaged += load.damaged;
	pthread_mutex_unlock(&store->lock);
	if (load.r)
		return load.r;
	if (r == STORE_LMDB_E_NONE)
		r = 0;
	return r == 0 && !load.is_ours ? STORE_LMDB_E_DAMAGED : r;
}

/* ---- opening ---- */

/* Is what was opened ours? */
static int env_check(struct store *store, struct store_lmdb *db, bool is_new)
{
	int r = is_new ? store_write_format(db, false) : 0;

	if (r)
		return r == STORE_LMDB_E_THERE ? STORE_LMDB_E_DAMAGED : r;
	return env_load(store, db);
}

/* Nothing that can be opened is there yet, or a first opening came no further than the tables. */
static bool env_is_new(struct store *store)
{
	struct stat st;

	return fstatat(store->dir_fd, STORE_PLACE_DATA, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	       st.st_size == 0;
}

static bool env_is_too_large(struct store *store)
{
	struct stat st;

	return fstatat(store->dir_fd, STORE_PLACE_DATA, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       (uint64_t)st.st_size > store->map_bytes;
}

static int env_try(struct store *store)
{
	const bool is_new = env_is_new(store);
	struct store_lmdb *db;
	char path[64];
	int r;

	if (env_is_too_large(store))
		return STORE_LMDB_E_DAMAGED;
	snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", store->dir_fd, STORE_PLACE_DATA);
	r = store_place_reserve(store->dir_fd);
	r = r ? r : store_lmdb_open(path, store->map_bytes, &db);
	if (r)
		return r;
	r = env_check(store, db, is_new);
	if (r) {
		store_lmdb_close(db);
		return r;
	}
	env_exchange(store, db);
	return 0;
}

static int env_open_anew(struct store *store)
{
	int r = env_set_aside(store);

	return r ? r : env_try(store);
}

int store_env_open(struct store *store, bool suspect, struct diag *diag)
{
	int r = suspect && !env_is_new(store) ? env_open_anew(store) : env_try(store);

	if (r > 0)
		r = env_open_anew(store);
	if (r > 0)
		r = -EIO;
	if (r)
		return diag_fail(diag, r, "the cache cannot be opened: %s", strerror(-r));
	store_room_look(store);
	return 0;
}

/* ---- while it is in use ---- */

static void env_fill_tables(struct store *store)
{
	struct store_group *group;

	pthread_mutex_lock(&store->lock);
	group = store->groups;
	pthread_mutex_unlock(&store->lock);
	for (; group; group = group->next) {
		bool has_table;

		pthread_mutex_lock(&store->lock);
		has_table = group->table.cell && !group->is_busy;
		group->is_busy = group->is_busy || has_table;
		pthread_mutex_unlock(&store->lock);
		if (!has_table)
			continue;
		store_group_scan(group);
		pthread_mutex_lock(&store->lock);
		group->is_busy = false;
		pthread_cond_broadcast(&store->settled);
		pthread_mutex_unlock(&store->lock);
	}
}

/* Under lock: was the last damage just now? */
static bool env_is_early(struct store *store)
{
	const uint64_t now = base_now_ns();
	const bool is_early = now < store->aside_until_ns;

	store->aside_ns =
	    is_early ? BASE_MIN(store->aside_ns * 2, ENV_BACKOFF_MAX_NS) : ENV_BACKOFF_MIN_NS;
	store->aside_until_ns = now + store->aside_ns;
	return is_early;
}

static int env_begin_anew(struct store *store, bool is_broken, struct diag *diag)
{
	int r = is_broken ? env_set_aside(store) : 0;

	if (r == 0)
		return store_env_open(store, false, diag);
	return diag_fail(diag, r, "the damaged cache cannot be set aside: %s", strerror(-r));
}

void store_env_recover(struct store *store)
{
	bool is_broken, is_early;
	struct diag diag;
	int r;

	store_env_close(store);
	pthread_mutex_lock(
	    &store->lock); /* nobody is in there any more who would see more damage */
	is_broken = store->is_broken;
	is_early = is_broken && env_is_early(store);
	store->is_broken = store->must_reopen = false;
	pthread_mutex_unlock(&store->lock);
	r = env_begin_anew(store, is_broken, &diag);
	if (r == 0 && is_early) { /* not as fast as it goes */
		store_env_close(store);
		r = diag_fail(&diag, -EIO, "the cache was damaged again and again");
	}
	if (r) {
		env_off(store, diag.text);
		return;
	}
	env_fill_tables(store);
	store_env_written(store);
}
