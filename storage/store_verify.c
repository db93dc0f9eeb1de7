/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads all values and compares their checksums, beside everything else that goes on.
 *
 * Keys are taken in steps, each in a read of its own, then each value is read as a get reads it: no read is
 * long, so the file does not fill up with pages that wait for it. What is damaged is deleted, by the
 * writer; so is what nobody can ask for: values of groups that have no record, and of samples that a
 * group has not.
 */

#include "storage/store_parts.h"

#define VERIFY_STEP 256
#define VERIFY_TELL_NS UINT64_C(100000000)

struct verify {
	struct store *store;
	const struct store_progress *progress;
	struct store_checked checked;
	uint64_t done, total, told_ns;
	uint8_t *buffer;
	size_t room;
	size_t n_keys;
	uint8_t keys[VERIFY_STEP][STORE_RECORD_KEY];
	size_t sizes[VERIFY_STEP]; /* of values with their seals */
};

static bool verify_collect(void *arg, const struct store_lmdb_key *key, const uint8_t *data,
			   size_t size)
{
	struct verify *v = arg;

	(void)data;
	if (key->size != STORE_RECORD_KEY)
		return false;
	memcpy(v->keys[v->n_keys], key->data, STORE_RECORD_KEY);
	v->sizes[v->n_keys++] = size;
	return true;
}

/* The keys behind the one given. 0, or as store_lmdb_walk() but NONE. */
static int verify_step(struct verify *v, const uint8_t *last)
{
	uint8_t from[STORE_RECORD_KEY + 1] = {0};
	const struct store_lmdb_key key = {from, last ? sizeof(from) : 0};
	int r = -ENODEV;

	if (last)
		memcpy(from, last, STORE_RECORD_KEY); /* the same and a byte is the next one */
	v->n_keys = 0;
	pthread_rwlock_rdlock(&v->store->fence);
	if (v->store->db)
		r = store_lmdb_walk(v->store->db, STORE_LMDB_VALUES, &key, VERIFY_STEP,
				    verify_collect, v);
	store_leave(v->store, r);
	return r == STORE_LMDB_E_NONE ? 0 : r;
}

static int verify_room(struct verify *v, size_t size)
{
	if (size > v->store->value_max + STORE_RECORD_SEAL)
		return STORE_LMDB_E_VALUE;
	return base_grow(&v->buffer, &v->room, size, 1) ? 0 : -ENOMEM;
}

/* 0 and its size; NONE: it went; VALUE: it is damaged; or what ends all. */
static int verify_read(struct verify *v, size_t index, size_t *ret_size)
{
	const struct store_lmdb_key key = {v->keys[index], STORE_RECORD_KEY};
	uint8_t seal[STORE_RECORD_SEAL];
	int r = verify_room(v, v->sizes[index]);

	if (r)
		return r;
	r = -ENODEV;
	pthread_rwlock_rdlock(&v->store->fence);
	if (v->store->db)
		r = store_lmdb_get(v->store->db, STORE_LMDB_VALUES, &key, seal, sizeof(seal),
				   v->buffer, v->room, ret_size);
	store_leave(v->store, r);
	if (r ==
	    STORE_LMDB_E_ROOM) /* another one was put in its place meanwhile, which was checked there */
		return STORE_LMDB_E_NONE;
	if (r == 0 && !store_record_is_sealed(v->keys[index], v->buffer, *ret_size, seal))
		return STORE_LMDB_E_VALUE;
	return r;
}

/* Can anybody ask for it? */
static bool verify_is_known(struct verify *v, size_t index)
{
	const struct store_group *group;
	struct hash_id id;

	memcpy(&id, v->keys[index], sizeof(id));
	BASE_HOLD(&v->store->lock);
	group = store_group_find(v->store, &id);
	return group && store_record_sample(v->keys[index]) < group->record.n_samples;
}

static int verify_drop(struct verify *v, size_t index)
{
	struct store_group *group;
	struct hash_id id;
	int r = 0;

	memcpy(&id, v->keys[index], sizeof(id));
	v->checked.damaged++;
	BASE_HOLD(&v->store->lock);
	v->store->state.damaged++;
	group = store_group_find(v->store, &id);
	if (!group)
		group = store_group_add(v->store, &id); /* of which nothing but this is known */
	if (group) {
		const uint64_t sample = store_record_sample(v->keys[index]);
		const size_t size =
		    BASE_MIN(v->sizes[index] - STORE_RECORD_SEAL, v->store->value_max);

		store_group_set(group, sample, 0);
		r = store_queue_delete(group, sample, (uint32_t)size) ? 0 : -ENOMEM;
	}
	return group ? r : -ENOMEM;
}

static int verify_value(struct verify *v, size_t index)
{
	size_t size = 0;
	int r = verify_read(v, index, &size);

	if (r == STORE_LMDB_E_NONE)
		return 0;
	if (r == STORE_LMDB_E_VALUE || (r == 0 && !verify_is_known(v, index)))
		return verify_drop(v, index);
	if (r)
		return r;
	v->checked.values++;
	v->checked.bytes += size;
	return 0;
}

static bool verify_is_cancelled(struct verify *v)
{
	const struct store_progress *progress = v->progress;
	const uint64_t now = base_now_ns();

	if (!progress)
		return false;
	if (progress->tell && now - v->told_ns >= VERIFY_TELL_NS) {
		progress->tell(progress->arg, v->done, BASE_MAX(v->total, v->done));
		v->told_ns = now;
	}
	return progress->cancelled && progress->cancelled(progress->arg);
}

static int verify_keys(struct verify *v)
{
	int r = 0;

	for (size_t i = 0; i < v->n_keys && r == 0; i++) {
		if (verify_is_cancelled(v))
			return -ECANCELED;
		r = verify_value(v, i);
		v->done++;
	}
	return r;
}

static int verify_all(struct verify *v)
{
	uint8_t last[STORE_RECORD_KEY];
	bool has_last = false;
	int r;

	do {
		r = verify_step(v, has_last ? last : NULL);
		if (r || v->n_keys == 0)
			break;
		has_last = true;
		memcpy(last, v->keys[v->n_keys - 1], sizeof(last));
		r = verify_keys(v);
	} while (r == 0);
	return r;
}

int store_verify(struct store *store, const struct store_progress *progress,
		 struct store_checked *ret)
{
	struct verify *v = calloc(1, sizeof(*v));
	struct store_state state;
	int r;

	if (!v)
		return -ENOMEM;
	store_state(store, &state);
	v->store = store;
	v->progress = progress;
	v->total = state.values;
	v->checked.groups = state.groups;
	r = verify_all(v);
	if (r == 0 && progress && progress->tell)
		progress->tell(progress->arg, v->done, v->done);
	*ret = v->checked;
	free(v->buffer);
	free(v);
	return r > 0 ? -EIO : r;
}
