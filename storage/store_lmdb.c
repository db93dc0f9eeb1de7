/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The one file that knows LMDB.
 *
 * Flags. MDB_NOTLS: a read belongs to whoever holds it, not to a thread, so reads that are at rest
 * wait in a pool and keep their slots. MDB_NORDAHEAD: samples are read in random order; the kernel is
 * told of each value as a whole instead, which brings it with few, long reads. MDB_NOMETASYNC: pages are
 * flushed before the head that leads to them is written, which itself is flushed with the next commit's
 * pages. A power cut loses the last commit, never the structure, for half of the waiting that full
 * syncing costs; MDB_NOSYNC would be free and lose all. No MDB_WRITEMAP: a stray pointer of this process
 * shall not reach the file, and a full disk shall be an error of write(), not SIGBUS.
 *
 * Room. The map is the store's limit from the beginning, address space and nothing else: LMDB never
 * allocates a page behind it, so the file stays below it whatever becomes of its free pages, and no
 * reader ever waits until a map has grown. Pages freed by one write can be used by the next but one (the
 * older head must stay whole), and only when no reader is left that began before: room says which.
 *
 * Damage. LMDB believes its pages. What it notices is STORE_LMDB_E_DAMAGED; what it does not may
 * end the process (who starts readers then says `suspect`) or lead to another value, which the
 * checksums notice. A value's pages are asked for by madvise(MADV_POPULATE_READ) before they are
 * copied: a failing disk and a file that was cut off are errors of that, where there would be SIGBUS.
 *
 * Locks: `lock` covers the pool and is held over nothing else. Reads of a closing environment, and two
 * writes at a time, are the caller's to prevent.
 */

#include "storage/store_lmdb.h"

#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hold.h"
#include "storage/store_map.h"

#define LMDB_POOL 192     /* reads at rest; more are ended */
#define LMDB_FREE_TABLE 0 /* LMDB's own, of free pages, by the number of the write */
#define LMDB_KEY_MAX 64
#define LMDB_HEADS 2 /* the first pages, which are never free */

struct store_lmdb {
	MDB_env *env;
	MDB_dbi table[STORE_LMDB_TABLES];
	struct store_map map;
	pthread_mutex_t lock;
	MDB_txn *pool[LMDB_POOL];
	unsigned n_pool;
};

struct store_lmdb_write {
	struct store_lmdb *db;
	MDB_txn *txn;
};

static const char *const lmdb_table_name[STORE_LMDB_TABLES] = {"groups", "values"};

/* What LMDB says in our words; what it leaves open means that it found what cannot be. */
static int lmdb_outcome(int r)
{
	if (r > 0)
		return -r;
	switch (r) {
	case 0:
		return 0;
	case MDB_NOTFOUND:
		return STORE_LMDB_E_NONE;
	case MDB_KEYEXIST:
		return STORE_LMDB_E_THERE;
	case MDB_MAP_FULL:
	case MDB_TXN_FULL:
		return STORE_LMDB_E_FULL;
	case MDB_READERS_FULL:
		return -EAGAIN;
	case MDB_PANIC: /* a head could not be written: all later writes fail */
	case MDB_MAP_RESIZED:
		return STORE_LMDB_E_AGAIN;
	default:
		return STORE_LMDB_E_DAMAGED;
	}
}

static MDB_val lmdb_val(const void *data, size_t size)
{
	return (MDB_val){.mv_size = size, .mv_data = (void *)data};
}

/* ---- tables ---- */

static int lmdb_open_some(struct store_lmdb *db, unsigned txn_flags, unsigned table_flags)
{
	MDB_txn *txn;
	int r = mdb_txn_begin(db->env, NULL, txn_flags, &txn);

	if (r)
		return r;
	for (unsigned i = 0; i < STORE_LMDB_TABLES && r == 0; i++)
		r = mdb_dbi_open(txn, lmdb_table_name[i], table_flags, &db->table[i]);
	if (r == 0)
		return mdb_txn_commit(txn);
	mdb_txn_abort(txn);
	return r;
}

/* ---- a file that was cut off ---- */

typedef void (*lmdb_free_fn)(void *arg, size_t txn, const size_t *pages, size_t count);

/* Each record of the table of free pages. Numbers in it were not checked by anyone. */
static int lmdb_free_each(MDB_txn *txn, lmdb_free_fn each, void *arg)
{
	MDB_cursor *cursor;
	MDB_val name, value;
	int r = mdb_cursor_open(txn, LMDB_FREE_TABLE, &cursor);

	if (r)
		return r;
	while ((r = mdb_cursor_get(cursor, &name, &value, MDB_NEXT)) == 0) {
		const size_t room = value.mv_size / sizeof(size_t);
		const size_t *list = value.mv_data;

		if (name.mv_size != sizeof(size_t) || room < 1 || list[0] > room - 1) {
			r = MDB_CORRUPTED;
			break;
		}
		each(arg, *(const size_t *)name.mv_data, list + 1, list[0]);
	}
	mdb_cursor_close(cursor);
	return r == MDB_NOTFOUND ? 0 : r;
}

struct lmdb_found {
	/* The first page that the file has not; how many from there on are free */
	uint64_t from, missing;
	uint64_t spread;
	bool is_bad;
};

/* Pages that are handed out again must be ones that there are, each once: lists go downwards. */
static void lmdb_found_add(void *arg, size_t txn, const size_t *pages, size_t count)
{
	struct lmdb_found *found = arg;

	(void)txn;
	for (size_t i = 0; i < count; i++) {
		if (pages[i] < LMDB_HEADS || pages[i] >= found->spread ||
		    (i > 0 && pages[i] >= pages[i - 1]))
			found->is_bad = true;
		found->missing += pages[i] >= found->from;
	}
}

/* Makes a file that was cut off as long as its pages need, so that looking at them cannot end in SIGBUS, nor
 * rubbish fill the disk. 0 and the first page that is missing, UINT64_MAX: none; or an errno. */
static int lmdb_lengthen(struct store_lmdb *db, uint64_t map_bytes, uint64_t *ret_from)
{
	MDB_envinfo info;
	struct stat st;
	MDB_stat stat;
	uint64_t spread;
	int fd, r = mdb_env_get_fd(db->env, &fd);

	r = r ? r : mdb_env_info(db->env, &info);
	r = r ? r : mdb_env_stat(db->env, &stat);
	if (r)
		return r;
	if (info.me_last_pgno >= map_bytes / stat.ms_psize) /* LMDB mapped so many, if it could */
		return MDB_INVALID;
	if (fstat(fd, &st) < 0)
		return errno;
	spread = (uint64_t)info.me_last_pgno + 1;
	*ret_from = (uint64_t)st.st_size / stat.ms_psize;
	if (*ret_from >= spread)
		*ret_from = UINT64_MAX;
	else if (ftruncate(fd, (off_t)(spread * stat.ms_psize)) < 0)
		return errno;
	return 0;
}

/* Pages at the file's end that were taken and given back in one write are never written, so a file may be
 * shorter than its spread, but only by free pages. */
static int lmdb_check_free(struct store_lmdb *db, uint64_t from)
{
	struct lmdb_found found = {.from = from};
	MDB_envinfo info;
	MDB_txn *txn;
	int r = mdb_env_info(db->env, &info);

	r = r ? r : mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn);
	if (r)
		return r;
	found.spread = (uint64_t)info.me_last_pgno + 1;
	r = lmdb_free_each(txn, lmdb_found_add, &found);
	mdb_txn_abort(txn);
	if (r == 0 &&
	    (found.is_bad || (from < found.spread && found.missing != found.spread - from)))
		return MDB_CORRUPTED;
	return r;
}

/* ---- where the map is ---- */

/* LMDB does not tell. But each page begins with its number, and a record of the main table lies in one. */
static int lmdb_find_map(struct store_lmdb *db)
{
	MDB_val name = lmdb_val(lmdb_table_name[0], strlen(lmdb_table_name[0])), value;
	MDB_envinfo info;
	MDB_stat stat;
	MDB_txn *txn;
	MDB_dbi main_table;
	int r = mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn);

	if (r)
		return r;
	r = mdb_dbi_open(txn, NULL, 0, &main_table);
	r = r ? r : mdb_get(txn, main_table, &name, &value);
	r = r ? r : mdb_env_info(db->env, &info);
	r = r ? r : mdb_env_stat(db->env, &stat);
	if (r == 0) {
		const uintptr_t page = (uintptr_t)value.mv_data & ~(uintptr_t)(stat.ms_psize - 1);
		const size_t number = *(const size_t *)page;

		db->map = (struct store_map){.at = page - number * stat.ms_psize,
					     .page = stat.ms_psize,
					     .pages = info.me_mapsize / stat.ms_psize};
		r = number > info.me_last_pgno ? MDB_CORRUPTED : 0;
	}
	mdb_txn_abort(txn);
	return r;
}

/* ---- opening ---- */

/* What cannot be mapped though there is room for all that was asked for is a head that wants more. */
static int lmdb_open_env(struct store_lmdb *db, const char *path, uint64_t map_bytes)
{
	int r = mdb_env_create(&db->env);

	if (r)
		return r;
	r = mdb_env_set_mapsize(db->env, map_bytes);
	r = r ? r : mdb_env_set_maxdbs(db->env, STORE_LMDB_TABLES);
	r = r ? r : mdb_env_set_maxreaders(db->env, STORE_LMDB_READERS);
	if (r == 0)
		r = mdb_env_open(db->env, path,
				 MDB_NOSUBDIR | MDB_NOTLS | MDB_NORDAHEAD | MDB_NOMETASYNC, 0600);
	if ((r == ENOMEM || r == EINVAL) && store_map_fits(map_bytes))
		r = MDB_INVALID;
	return r;
}

static int lmdb_open_tables(struct store_lmdb *db)
{
	int r = lmdb_open_some(db, MDB_RDONLY, 0); /* writes nothing where nothing is missing */

	return r == MDB_NOTFOUND ? lmdb_open_some(db, 0, MDB_CREATE) : r;
}

static int lmdb_open(struct store_lmdb *db, const char *path, uint64_t map_bytes)
{
	uint64_t missing = UINT64_MAX;
	int r = lmdb_open_env(db, path, map_bytes);

	r = r ? r : lmdb_lengthen(db, map_bytes, &missing);
	r = r ? r : lmdb_check_free(db, missing);
	if (r)
		return r;
	mdb_reader_check(db->env, NULL);
	r = lmdb_open_tables(db);
	return r ? r : lmdb_find_map(db);
}

int store_lmdb_open(const char *path, uint64_t map_bytes, struct store_lmdb **ret)
{
	struct store_lmdb *db = calloc(1, sizeof(*db));
	int r;

	if (!db)
		return -ENOMEM;
	pthread_mutex_init(&db->lock, NULL);
	r = lmdb_open(db, path, map_bytes);
	if (r) {
		store_lmdb_close(db);
		/* a missing table where others are is damage, too */
		return r == MDB_NOTFOUND ? STORE_LMDB_E_DAMAGED : lmdb_outcome(r);
	}
	*ret = db;
	return 0;
}

void store_lmdb_close(struct store_lmdb *db)
{
	if (!db)
		return;
	while (db->n_pool > 0)
		mdb_txn_abort(db->pool[--db->n_pool]);
	if (db->env)
		mdb_env_close(db->env);
	pthread_mutex_destroy(&db->lock);
	free(db);
}

/* ---- reads and their pool ---- */

static MDB_txn *lmdb_pool_take(struct store_lmdb *db)
{
	MDB_txn *txn = NULL;

	BASE_HOLD(&db->lock);
	if (db->n_pool > 0)
		txn = db->pool[--db->n_pool];
	return txn;
}

static int lmdb_read_begin(struct store_lmdb *db, MDB_txn **ret)
{
	MDB_txn *txn = lmdb_pool_take(db);
	int r;

	if (txn) {
		r = mdb_txn_renew(txn);
		if (r == 0) {
			*ret = txn;
			return 0;
		}
		mdb_txn_abort(txn); /* its slot is not ours any more: another one will do */
	}
	r = mdb_txn_begin(db->env, NULL, MDB_RDONLY, ret);
	if (r == MDB_READERS_FULL) {
		store_lmdb_tidy(db);
		r = mdb_txn_begin(db->env, NULL, MDB_RDONLY, ret);
	}
	return r;
}

static void lmdb_read_end(struct store_lmdb *db, MDB_txn *txn)
{
	mdb_txn_reset(txn);
	pthread_mutex_lock(&db->lock);
	if (db->n_pool < LMDB_POOL)
		db->pool[db->n_pool++] = base_take_ptr(txn);
	pthread_mutex_unlock(&db->lock);
	if (txn)
		mdb_txn_abort(txn);
}

static int lmdb_copy(const struct store_lmdb *db, const MDB_val *value, uint8_t *head,
		     size_t head_size, uint8_t *buffer, size_t room, size_t *ret_size)
{
	const uint8_t *data = value->mv_data;

	if (value->mv_size < head_size)
		return STORE_LMDB_E_VALUE;
	if (value->mv_size - head_size > room)
		return STORE_LMDB_E_ROOM;
	if (!store_map_bring(&db->map, data, value->mv_size))
		return STORE_LMDB_E_VALUE;
	memcpy(head, data, head_size);
	memcpy(buffer, data + head_size, value->mv_size - head_size);
	*ret_size = value->mv_size - head_size;
	return 0;
}

int store_lmdb_get(struct store_lmdb *db, enum store_lmdb_table table,
		   const struct store_lmdb_key *key, uint8_t *head, size_t head_size,
		   uint8_t *buffer, size_t room, size_t *ret_size)
{
	MDB_val name = lmdb_val(key->data, key->size), value;
	MDB_txn *txn;
	int r = lmdb_read_begin(db, &txn);

	if (r)
		return lmdb_outcome(r);
	r = lmdb_outcome(mdb_get(txn, db->table[table], &name, &value));
	r = r ? r : lmdb_copy(db, &value, head, head_size, buffer, room, ret_size);
	lmdb_read_end(db, txn);
	return r;
}

struct lmdb_last {
	uint8_t key[LMDB_KEY_MAX];
	size_t size;
};

/* Is key behind the last one? A damaged tree may have a circle in it. */
static bool lmdb_is_onward(struct lmdb_last *last, const MDB_val *key)
{
	int order;

	if (key->mv_size > sizeof(last->key))
		return false;
	order = memcmp(last->key, key->mv_data, BASE_MIN(last->size, key->mv_size));
	if (order > 0 || (order == 0 && last->size >= key->mv_size))
		return false;
	memcpy(last->key, key->mv_data, key->mv_size);
	last->size = key->mv_size;
	return true;
}

static int lmdb_walk(MDB_cursor *cursor, const struct store_lmdb_key *from, size_t step,
		     store_lmdb_each_fn each, void *arg)
{
	MDB_val name = lmdb_val(from->data, from->size), value;
	struct lmdb_last last = {.size = 0};
	int r = mdb_cursor_get(cursor, &name, &value, from->size ? MDB_SET_RANGE : MDB_FIRST);

	while (r == 0 && step-- > 0) {
		const struct store_lmdb_key key = {name.mv_data, name.mv_size};

		if (!lmdb_is_onward(&last, &name))
			return MDB_CORRUPTED;
		if (!each(arg, &key, value.mv_data, value.mv_size))
			return 0;
		r = mdb_cursor_get(cursor, &name, &value, MDB_NEXT);
	}
	return r;
}

int store_lmdb_walk(struct store_lmdb *db, enum store_lmdb_table table,
		    const struct store_lmdb_key *from, size_t step, store_lmdb_each_fn each,
		    void *arg)
{
	MDB_cursor *cursor;
	MDB_txn *txn;
	int r = lmdb_read_begin(db, &txn);

	if (r)
		return lmdb_outcome(r);
	r = mdb_cursor_open(txn, db->table[table], &cursor);
	if (r == 0) {
		r = lmdb_walk(cursor, from, step, each, arg);
		mdb_cursor_close(cursor);
	}
	lmdb_read_end(db, txn);
	return lmdb_outcome(r);
}

/* ---- room and readers ---- */

struct lmdb_free_count {
	size_t last_txn;
	struct store_lmdb_room *room;
};

static void lmdb_free_add(void *arg, size_t txn, const size_t *pages, size_t count)
{
	struct lmdb_free_count *sum = arg;

	(void)pages;
	sum->room->free += count;
	if (txn < sum->last_txn)
		sum->room->usable += count;
}

static int lmdb_room(struct store_lmdb *db, MDB_txn *txn, struct store_lmdb_room *room)
{
	struct lmdb_free_count sum = {.room = room};
	MDB_envinfo info;
	MDB_stat stat;
	int r = mdb_stat(txn, db->table[STORE_LMDB_VALUES], &stat);

	r = r ? r : mdb_env_info(db->env, &info);
	if (r)
		return r;
	sum.last_txn = mdb_txn_id(txn);
	room->page = stat.ms_psize;
	room->values = stat.ms_entries;
	room->pages = info.me_mapsize / stat.ms_psize;
	room->spread = (uint64_t)info.me_last_pgno + 1;
	r = lmdb_free_each(txn, lmdb_free_add, &sum);
	if (r == 0 && (room->free > room->spread || room->spread > room->pages))
		return MDB_CORRUPTED;
	return r;
}

int store_lmdb_room(struct store_lmdb *db, struct store_lmdb_room *ret)
{
	struct store_lmdb_room room = {.pages = 0};
	MDB_txn *txn;
	int r = lmdb_read_begin(db, &txn);

	if (r)
		return lmdb_outcome(r);
	r = lmdb_room(db, txn, &room);
	lmdb_read_end(db, txn);
	if (r)
		return lmdb_outcome(r);
	room.usable += room.pages - room.spread;
	*ret = room;
	return 0;
}

void store_lmdb_tidy(struct store_lmdb *db)
{
	mdb_reader_check(db->env, NULL);
}

/* LMDB tells of readers in lines for people: pid, thread, write; "-" for one at rest. */
static int lmdb_reader_line(const char *line, void *arg)
{
	uint64_t *oldest = arg, txn;
	char number[32];

	if (sscanf(line, "%*d %*s %31s", number) == 1 && sscanf(number, "%lu", &txn) == 1)
		*oldest = BASE_MIN(*oldest, txn);
	return 0;
}

uint64_t store_lmdb_held_back(struct store_lmdb *db)
{
	uint64_t oldest = UINT64_MAX;
	MDB_envinfo info;

	if (mdb_env_info(db->env, &info) || mdb_reader_list(db->env, lmdb_reader_line, &oldest) < 0)
		return 0;
	return oldest < info.me_last_txnid ? info.me_last_txnid - oldest : 0;
}

/* ---- what was in free pages ---- */

struct lmdb_wipe {
	int fd;
	uint64_t page;  /* bytes */
	uint64_t below; /* pages that writes from here on freed may still be read */
	bool is_kept;   /* some of those */
	int error;
};

static int lmdb_zero(int fd, uint64_t at, uint64_t bytes)
{
	static const uint8_t zeros[65536];
	int r = 0;

	if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)at, (off_t)bytes) == 0)
		return 0;
	if (errno != EOPNOTSUPP)
		return errno;
	for (uint64_t n; bytes > 0 && r == 0; at += n, bytes -= n) {
		n = BASE_MIN(bytes, (uint64_t)sizeof(zeros));
		r = base_write_at(fd, zeros, n, at);
	}
	return -r;
}

/* Lists go downwards. */
static void lmdb_wipe_some(void *arg, size_t txn, const size_t *pages, size_t count)
{
	struct lmdb_wipe *wipe = arg;

	if (txn >= wipe->below) {
		wipe->is_kept = true;
		return;
	}
	for (size_t i = 0, next; i < count && !wipe->error; i = next) {
		for (next = i + 1; next < count && pages[next] + 1 == pages[next - 1];)
			next++;
		wipe->error =
		    lmdb_zero(wipe->fd, pages[next - 1] * wipe->page, (next - i) * wipe->page);
	}
}

static int lmdb_wipe(struct store_lmdb *db, MDB_txn *txn, struct lmdb_wipe *wipe)
{
	const uint64_t last = mdb_txn_id(txn);
	int r = mdb_env_get_fd(db->env, &wipe->fd);

	wipe->page = db->map.page;
	wipe->below = last - BASE_MIN(store_lmdb_held_back(db), last);
	r = r ? r : lmdb_free_each(txn, lmdb_wipe_some, wipe);
	if (!r && !wipe->error && fdatasync(wipe->fd) < 0)
		wipe->error = errno;
	if (wipe->below == last)
		wipe->is_kept = false; /* by nobody but the head before: pages of the last write */
	return r ? r : wipe->error;
}

int store_lmdb_wipe(struct store_lmdb *db)
{
	struct lmdb_wipe wipe = {.fd = -1};
	MDB_txn *txn;
	int r = lmdb_check_free(db, UINT64_MAX);

	store_lmdb_tidy(db);
	r = r ? r : lmdb_read_begin(db, &txn);
	if (r)
		return lmdb_outcome(r);
	r = lmdb_wipe(db, txn, &wipe);
	lmdb_read_end(db, txn);
	return r == 0 && wipe.is_kept ? -EBUSY : lmdb_outcome(r);
}

/* ---- writing ---- */

int store_lmdb_begin(struct store_lmdb *db, struct store_lmdb_write **ret)
{
	struct store_lmdb_write *write = calloc(1, sizeof(*write));
	int r;

	if (!write)
		return -ENOMEM;
	write->db = db;
	store_lmdb_tidy(db); /* what a dead one keeps, this write may need */
	r = mdb_txn_begin(db->env, NULL, 0, &write->txn);
	if (r) {
		free(write);
		return lmdb_outcome(r);
	}
	*ret = write;
	return 0;
}

int store_lmdb_put(struct store_lmdb_write *write, enum store_lmdb_table table,
		   const struct store_lmdb_key *key, const void *data, size_t size, bool replace)
{
	const MDB_dbi dbi = write->db->table[table];
	MDB_val name = lmdb_val(key->data, key->size), value = lmdb_val(data, size), before;

	if (replace && mdb_get(write->txn, dbi, &name, &before) == 0 &&
	    !store_map_is_sound(&write->db->map, before.mv_data, before.mv_size))
		return STORE_LMDB_E_DAMAGED;
	return lmdb_outcome(mdb_put(write->txn, dbi, &name, &value, replace ? 0 : MDB_NOOVERWRITE));
}

int store_lmdb_delete(struct store_lmdb_write *write, enum store_lmdb_table table,
		      const struct store_lmdb_key *key, size_t *ret_size)
{
	const MDB_dbi dbi = write->db->table[table];
	MDB_val name = lmdb_val(key->data, key->size), value;
	int r = mdb_get(write->txn, dbi, &name, &value);

	if (r == 0 && !store_map_is_sound(&write->db->map, value.mv_data, value.mv_size))
		return STORE_LMDB_E_DAMAGED;
	if (r == 0) {
		*ret_size = value.mv_size;
		r = mdb_del(write->txn, dbi, &name, NULL);
	}
	return lmdb_outcome(r);
}

/* To the last key that begins with prefix: the one before the first behind all such. */
static int lmdb_last(MDB_cursor *cursor, const struct store_lmdb_key *prefix, MDB_val *name,
		     MDB_val *value)
{
	uint8_t behind[LMDB_KEY_MAX];
	int r;

	memset(behind, 0xff, sizeof(behind));
	memcpy(behind, prefix->data, prefix->size);
	*name = lmdb_val(behind, sizeof(behind));
	r = mdb_cursor_get(cursor, name, value, MDB_SET_RANGE);
	r = mdb_cursor_get(cursor, name, value, r == MDB_NOTFOUND ? MDB_LAST : MDB_PREV);
	if (r == 0 && (name->mv_size < prefix->size ||
		       memcmp(name->mv_data, prefix->data, prefix->size) != 0))
		return MDB_NOTFOUND;
	return r;
}

int store_lmdb_delete_last(struct store_lmdb_write *write, const struct store_lmdb_key *prefix,
			   size_t key_size, uint8_t *ret_key, size_t *ret_size)
{
	MDB_cursor *cursor;
	MDB_val name, value;
	int r = mdb_cursor_open(write->txn, write->db->table[STORE_LMDB_VALUES], &cursor);

	if (r)
		return lmdb_outcome(r);
	r = lmdb_last(cursor, prefix, &name, &value);
	if (r == 0 && (name.mv_size != key_size ||
		       !store_map_is_sound(&write->db->map, value.mv_data, value.mv_size)))
		r = MDB_CORRUPTED;
	if (r == 0) {
		memcpy(ret_key, name.mv_data, key_size);
		*ret_size = value.mv_size;
		r = mdb_cursor_del(cursor, 0);
	}
	mdb_cursor_close(cursor);
	return lmdb_outcome(r);
}

int store_lmdb_end(struct store_lmdb_write *write, int r)
{
	if (r)
		mdb_txn_abort(write->txn);
	else
		r = lmdb_outcome(mdb_txn_commit(write->txn));
	free(write);
	return r;
}
