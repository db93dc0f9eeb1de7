/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store: opening, closing, getting. store_parts.h has the locks.
 *
 * A get copies the value to the caller's buffer inside of LMDB's read, and leaves; the checksum is compared
 * on the copy. So no pointer into the map leaves store_lmdb.c, and no read is longer than a copy: a long one
 * would keep freed pages from being used again, and the file would fill up with them.
 *
 * The table of a group answers most misses without LMDB. It also closes a gap: what was found damaged
 * is gone from it at once, though it is deleted by the next write.
 */

#include "storage/store_parts.h"

#include "storage/store_place.h"

#define STORE_CLOSE_NS UINT64_C(5000000000)
#define STORE_BATCH_BYTES (16ULL << 20)
#define STORE_ASIDE_SHARE 64 /* of the limit, one of so many parts is for what was set aside */
#define STORE_LOCK_BYTES (64 << 10) /* LMDB's table of readers */

uint64_t store_now_s(void)
{
	return (uint64_t)BASE_MAX(time(NULL), 0);
}

int store_notice(struct store *store, int r)
{
	if (r != STORE_LMDB_E_DAMAGED && r != STORE_LMDB_E_AGAIN)
		return r;
	BASE_HOLD(&store->lock);
	store->is_broken = store->is_broken || r == STORE_LMDB_E_DAMAGED;
	store->must_reopen = true;
	pthread_cond_signal(&store->writer.wake);
	return r;
}

int store_leave(struct store *store, int r)
{
	store_notice(store, r);
	pthread_rwlock_unlock(&store->fence);
	return r;
}

/* ---- opening and closing ---- */

static void store_free(struct store *store)
{
	store_env_close(store);
	store_queue_drop(store, NULL);
	store_group_free_all(store);
	pthread_cond_destroy(&store->settled);
	pthread_cond_destroy(&store->writer.wake);
	pthread_mutex_destroy(&store->lock);
	pthread_mutex_destroy(&store->write_lock);
	pthread_rwlock_destroy(&store->fence);
	base_close(&store->dir_fd);
	free(store);
}

static void store_divide(struct store *store, uint64_t limit)
{
	const uint64_t page = base_page_size();

	store->limit = limit;
	store->map_bytes = (limit - limit / STORE_ASIDE_SHARE - STORE_LOCK_BYTES) & ~(page - 1);
	store->queue.batch_bytes = BASE_MIN(STORE_BATCH_BYTES, store->map_bytes / 16);
	store->queue.limit = 4 * store->queue.batch_bytes;
	store->value_max = store->queue.limit;
	store->aside_bytes = store_place_aside_bytes(store->dir_fd);
	store->state.limit = limit;
}

static int store_new(const struct store_settings *settings, struct store **ret, struct diag *diag)
{
	struct store *store = calloc(1, sizeof(*store));
	int r;
	pthread_rwlockattr_t fair;
	pthread_condattr_t clock;

	if (!store)
		return -ENOMEM;
	store->dir_fd = -1;
	store->queue.last = &store->queue.first;
	pthread_rwlockattr_init(&fair); /* who exchanges the environment waits for no newcomer */
	pthread_rwlockattr_setkind_np(&fair, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&store->fence, &fair);
	pthread_rwlockattr_destroy(&fair);
	pthread_mutex_init(&store->write_lock, NULL);
	pthread_mutex_init(&store->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&store->writer.wake, &clock);
	pthread_cond_init(&store->settled, &clock);
	pthread_condattr_destroy(&clock);
	r = store_place_open(settings->folder_fd, &store->dir_fd, diag);
	if (r == 0) {
		store_divide(store, settings->limit);
		r = store_env_open(store, settings->suspect, diag);
	}
	if (r) {
		store_free(store);
		return r;
	}
	*ret = store;
	return 0;
}

int store_open(const struct store_settings *settings, struct store **ret, struct diag *diag)
{
	struct store *store;
	int r;

	if (settings->limit < STORE_LIMIT_MIN)
		return diag_fail(diag, -EINVAL,
				 "a cache of %llu bytes is too small; 1 MiB is the least",
				 (unsigned long long)settings->limit);
	r = store_place_check(settings->folder_fd, settings->force, diag);
	if (r)
		return r;
	r = store_new(settings, &store, diag);
	if (r)
		return r;
	r = pthread_create(&store->writer.thread, NULL, store_write_main, store);
	if (r) {
		diag_set(diag, "no thread for the cache: %s", strerror(r));
		store_free(store);
		return -r;
	}
	*ret = store;
	return 0;
}

/* A writer that hangs in the kernel, on a disk that does not answer, keeps all of it: the process ends
 * soon. */
void store_close(struct store *store)
{
	struct timespec until;
	int r = 0;

	if (!store)
		return;
	pthread_mutex_lock(&store->lock);
	store->writer.is_stopping = true;
	store->writer.stop_by_ns = base_now_ns() + STORE_CLOSE_NS;
	pthread_cond_signal(&store->writer.wake);
	until = base_timespec(base_now_ns() + 2 * STORE_CLOSE_NS);
	while (!store->writer.is_ended && r == 0)
		r = pthread_cond_timedwait(&store->settled, &store->lock, &until);
	r = store->writer.is_ended ? 0 : r;
	pthread_mutex_unlock(&store->lock);
	if (r)
		return;
	pthread_join(store->writer.thread, NULL);
	store_free(store);
}

/* ---- getting ---- */

enum { GET_GONE = 100 }; /* not there, though the table says so: only here */

static int get_from_disk(struct store *store, const uint8_t key[STORE_RECORD_KEY], uint8_t *seal,
			 uint8_t *buffer, size_t room, size_t *ret_size)
{
	const struct store_lmdb_key name = {key, STORE_RECORD_KEY};
	int r = -ENODEV;

	pthread_rwlock_rdlock(&store->fence);
	if (store->db)
		r = store_lmdb_get(store->db, STORE_LMDB_VALUES, &name, seal, STORE_RECORD_SEAL,
				   buffer, room, ret_size);
	return store_leave(store, r);
}

static int get_checked(struct store_group *group, uint64_t sample, uint8_t *buffer, size_t room,
		       size_t *ret_size)
{
	uint8_t key[STORE_RECORD_KEY], seal[STORE_RECORD_SEAL];
	size_t size;
	int r;

	store_record_key(&group->id, sample, key);
	r = get_from_disk(group->store, key, seal, buffer, room, &size);
	if (r == 0 && store_record_is_sealed(key, buffer, size, seal)) {
		*ret_size = size;
		return 0;
	}
	switch (r) {
	case STORE_LMDB_E_ROOM:
		return STORE_E_ROOM;
	case 0:
	case STORE_LMDB_E_VALUE:
		return STORE_E_DAMAGED;
	case STORE_LMDB_E_NONE:
		return GET_GONE;
	default: /* that all of it is damaged is counted once, as set aside */
		return STORE_E_NONE;
	}
}

/* Under lock. Others may have met it, too. */
static void get_drop(struct store_group *group, uint64_t sample, uint32_t size, bool is_damaged)
{
	if (counter_cell_get(&group->table.cell[sample]) != size)
		return;
	store_group_set(group, sample, 0);
	if (is_damaged) {
		group->store->state.damaged++;
		store_queue_delete(group, sample, size);
	}
}

int store_get(struct store_group *group, uint64_t sample, uint8_t *buffer, size_t room,
	      size_t *ret_size)
{
	struct store *store = group->store;
	uint32_t size = 0;
	int r = STORE_E_NONE;

	if (sample < group->table.cells)
		size = counter_cell_get(&group->table.cell[sample]);
	if (size > room)
		return STORE_E_ROOM;
	if (size > 0)
		r = get_checked(group, sample, buffer, room, ret_size);
	BASE_HOLD(&store->lock);
	store->state.hits += r == 0;
	store->state.misses += r != 0;
	if (r == STORE_E_DAMAGED || r == GET_GONE)
		get_drop(group, sample, size, r == STORE_E_DAMAGED);
	return r == GET_GONE ? STORE_E_NONE : r;
}
