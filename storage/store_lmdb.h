/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * LMDB, without its header: one environment with two tables. What comes out of it has the store's own
 * outcomes; nothing that lies in the mapped file leaves store_lmdb.c, but bytes handed to a callback for
 * as long as that runs.
 *
 * Reads from any thread; one write at a time, begun and ended in one thread; open and close when
 * nobody else is inside.
 */

#include "base/base.h"

enum {
	STORE_LMDB_E_NONE = 1,    /* no such key, no more keys */
	STORE_LMDB_E_THERE = 2,   /* the key has a value */
	STORE_LMDB_E_FULL = 3,    /* of the map; the write can only be given up */
	STORE_LMDB_E_ROOM = 4,    /* larger than the room given */
	STORE_LMDB_E_DAMAGED = 5, /* the environment makes no sense */
	STORE_LMDB_E_AGAIN = 6,   /* whole, but must be closed and opened again */
	STORE_LMDB_E_VALUE = 7,   /* this one cannot be read; the environment may be whole */
};
enum store_lmdb_table { STORE_LMDB_GROUPS, STORE_LMDB_VALUES };
#define STORE_LMDB_TABLES 2
#define STORE_LMDB_READERS 254 /* slots for threads, ours and of other processes */

struct store_lmdb;
struct store_lmdb_write;
struct store_lmdb_key {
	const void *data;
	size_t size;
};

/* path: of the file; another one, its name with "-lock" behind, is the lock. Makes both if they are
 * missing. 0, DAMAGED (also when the file was cut off), negative errno. */
int store_lmdb_open(const char *path, uint64_t map_bytes, struct store_lmdb **ret);
void store_lmdb_close(struct store_lmdb *db);

/* ---- reading ---- */

/* Copies a value: its first head_size bytes to head, the rest to buffer. 0, NONE, ROOM, VALUE, DAMAGED,
 * AGAIN, -EAGAIN (no reader's slot is free). */
int store_lmdb_get(struct store_lmdb *db, enum store_lmdb_table table,
		   const struct store_lmdb_key *key, uint8_t *head, size_t head_size,
		   uint8_t *buffer, size_t room, size_t *ret_size);
/* Calls each() for keys from `from` on, in order, until it returns false or step were seen. data is not
 * touched, only pointed to. 0 or as above; NONE: that was the table's last one. */
typedef bool (*store_lmdb_each_fn)(void *arg, const struct store_lmdb_key *key, const uint8_t *data,
				   size_t size);
int store_lmdb_walk(struct store_lmdb *db, enum store_lmdb_table table,
		    const struct store_lmdb_key *from, size_t step, store_lmdb_each_fn each,
		    void *arg);

struct store_lmdb_room {
	uint64_t page;   /* bytes */
	uint64_t pages;  /* that the map has */
	uint64_t spread; /* pages that the file has or had */
	uint64_t free;   /* of those, in use by nothing */
	uint64_t usable; /* of those, by the next write; the others by later ones */
	uint64_t values; /* entries of the table */
};
int store_lmdb_room(struct store_lmdb *db, struct store_lmdb_room *ret);
/* Frees the slots of dead readers. */
void store_lmdb_tidy(struct store_lmdb *db);
/* How many writes the oldest reader of any process is behind. */
uint64_t store_lmdb_held_back(struct store_lmdb *db);
/* While nobody writes: the file has zeros where a page is free since the write before the last, or longer. -EBUSY: not where a
 * reader may still look; 0 or as a write. */
int store_lmdb_wipe(struct store_lmdb *db);

/* ---- writing ---- */

int store_lmdb_begin(struct store_lmdb *db, struct store_lmdb_write **ret);
/* THERE unless replace. */
int store_lmdb_put(struct store_lmdb_write *write, enum store_lmdb_table table,
		   const struct store_lmdb_key *key, const void *data, size_t size, bool replace);
/* NONE. *ret_size is what the value had. */
int store_lmdb_delete(struct store_lmdb_write *write, enum store_lmdb_table table,
		      const struct store_lmdb_key *key, size_t *ret_size);
/* Deletes the last value whose key begins with prefix, up to 64 bytes; *ret_key gets prefix and rest.
 * NONE. */
int store_lmdb_delete_last(struct store_lmdb_write *write, const struct store_lmdb_key *prefix,
			   size_t key_size, uint8_t *ret_key, size_t *ret_size);
/* Ends it: it is committed if r is 0, else given up. r, or what the commit came to. */
int store_lmdb_end(struct store_lmdb_write *write, int r);
