/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Between the store's files; nobody else includes this.
 *
 * Locks, in the order in which they are taken:
 *   write_lock  one write at a time, the environment's opening and closing; held over system calls
 *   fence       read: somebody is in the environment; written (under write_lock): it is exchanged
 *   lock        the rest; held for moments, over no system call but of a group's own memfd (and, when the
 *               environment is opened, over the reading of the groups' records)
 * A group is never freed before the store is closed, so a pointer to one is always good. Its table comes
 * and goes with its users, under lock.
 */

#include "base/hold.h"
#include "storage/store.h"

#include "storage/store_lmdb.h"
#include "storage/store_record.h"
#include "storage/store_table.h"

#define STORE_QUEUE_ITEMS 65536 /* at most; deletions come on top */

struct store_group {
	struct store *store; /* const */
	struct hash_id id;   /* const */
	struct store_group *next;

	/* under lock */
	struct store_record record;
	uint64_t note_sum;
	uint64_t opened;          /* turn of the last opening, in this process */
	unsigned users, yielders; /* those of the users who no longer bring from it */
	bool is_kept;             /* has a record, or gets one with the next write */
	bool is_dirty;            /* its record on the disk is older */
	bool is_unknown;    /* its record was damaged: numbers of values and bytes are guesses */
	bool is_dropped;    /* while it was in use: takes no more */
	bool is_superseded; /* see store.h */
	bool is_busy;       /* being scanned, emptied or dropped: openers wait */
	struct store_table table; /* there is none without users */

	/* under write_lock: what the write under way changes */
	bool is_staged;
	int64_t staged_values, staged_bytes;
};

/* What waits for the writer: a value, or the order to delete one. */
struct store_item {
	struct store_item *next;
	struct store_group *group;
	uint64_t sample;
	uint32_t size; /* of the value, without its seal */
	bool is_delete, is_replace;
	bool is_lost;    /* the writer's: it was there already */
	uint8_t bytes[]; /* seal, value */
};

struct store_queue { /* store_queue.c; under lock */
	struct store_item *first, **last;
	uint64_t items, cost;
	uint64_t flight_items, flight_cost; /* taken out of it, being written */
	uint64_t since_ns;                  /* the first one came */
	uint64_t batch_bytes, limit;        /* const */
};

struct store_writer { /* store_write.c; under lock */
	pthread_t thread;
	pthread_cond_t wake; /* it has something to do */
	unsigned flushes;    /* callers that wait for an empty queue */
	bool is_stopping, is_ended;
	uint64_t stop_by_ns;
};

struct store_room {                            /* for values; under lock */
	uint64_t bytes;                        /* free, by the last look */
	uint64_t cramped_until_ns, cramped_ns; /* free, but not in one piece: nothing that costs */
	uint64_t cramped_cost;                 /* so much is taken until then */
};

struct store {
	/* const */
	int dir_fd; /* holds the folder's lock */
	uint64_t limit, map_bytes, aside_bytes, value_max;

	pthread_mutex_t write_lock;
	pthread_rwlock_t fence;
	struct store_lmdb *db; /* changed under write_lock and fence; NULL: off */

	pthread_mutex_t lock;
	pthread_cond_t settled; /* a group is no longer busy */
	/* Under write_lock: times that not even a value could be deleted, for room */
	unsigned stuck;

	/* under lock */
	struct store_group *groups;
	uint64_t opened; /* turns of openings */
	unsigned guests; /* groups that peers named first */
	struct store_queue queue;
	struct store_writer writer;
	struct store_room room;
	bool is_broken;                   /* set aside, begin anew */
	bool must_reopen;                 /* whole, but LMDB is not */
	uint64_t retry_at_ns, backoff_ns; /* not ON: when writing or opening is tried again */
	/* Damage that comes sooner turns the store off for a while */
	uint64_t aside_until_ns, aside_ns;
	struct store_state state;
};

/* ---- store.c ---- */
/* Somebody saw damage, or that LMDB must be opened anew: the writer will. Under write_lock or fence, so that it is told
 * of the environment that is there, and not of its successor. Returns r. */
int store_notice(struct store *store, int r);
/* A read in the environment ends, with r: notes that, and leaves the fence. Returns r. */
int store_leave(struct store *store, int r);
uint64_t store_now_s(void); /* of the unix epoch */

/* ---- store_env.c: under write_lock ---- */
/* Opens what is there or begins anew; loads the groups. 0 or negative errno with diag. */
int store_env_open(struct store *store, bool suspect, struct diag *diag);
void store_env_close(struct store *store);
/* After damage or a failure of LMDB: exchanges the environment, or leaves the store off for a while. */
void store_env_recover(struct store *store);
/* A write failed with a negative errno: no more until later. */
void store_env_write_failed(struct store *store, int r);
void store_env_written(struct store *store); /* one did not */

/* ---- store_group.c ---- */
/* Under lock. NULL: -ENOMEM, or there is none. */
struct store_group *store_group_find(struct store *store, const struct hash_id *id);
struct store_group *store_group_add(struct store *store, const struct hash_id *id);
void store_group_free_all(struct store *store);
/* Under lock: which of the groups with one note are superseded. */
void store_group_compare(struct store *store);
/* Does nobody bring anything from it? */
bool store_group_is_idle(const struct store_group *group);
void store_group_set(struct store_group *group, uint64_t sample, uint32_t size); /* in the table */
void store_group_clear(struct store_group *group);                               /* all of it */
void store_group_clear_from(struct store_group *group, uint64_t sample); /* and those behind */
/* Fills the table from the disk; without lock, by who made the group busy or holds write_lock. */
int store_group_scan(struct store_group *group);

/* ---- store_queue.c: under lock ---- */
bool store_queue_delete(struct store_group *group, uint64_t sample, uint32_t size);
void store_queue_drop(struct store *store, const struct store_group *group); /* NULL: all */
/* The oldest items, up to a batch, out of the queue; *ret_items is an array (caller frees it and them). 0 or
 * -ENOMEM. */
int store_queue_take(struct store *store, struct store_item ***ret_items, size_t *ret_count);

/* ---- store_write.c ---- */
void *store_write_main(void *store); /* the writer's thread */
/* Under write_lock: notes a change to group in the write under way; puts all noted records. */
void store_write_stage(struct store_group *group, int64_t values, int64_t bytes);
int store_write_records(struct store *store, struct store_lmdb_write *write);
/* Under write_lock and lock: the write was committed (or given up): the groups' numbers are the new ones
 * (the old ones). */
void store_write_settle(struct store *store, bool is_committed);
/* Says whose file it is. Under write_lock, where it is said already: it changes nothing, but pages that were freed before come
 * of age: the write before is then the older head's, too. 0 or as a write. */
int store_write_format(struct store_lmdb *db, bool is_there);
/* Under write_lock: what a write came to, 0 or not; the mode follows. Returns r. */
int store_write_outcome(struct store *store, int r);

/* ---- store_room.c ---- */
/* Under lock: a value that costs so much had no place in one piece; it may have now; is it no use to try? */
void store_room_cramp(struct store_room *room, uint64_t cost);
void store_room_clear(struct store_room *room);
bool store_room_is_cramped(const struct store_room *room, uint64_t cost);
/* Under write_lock: looks how much is free. */
void store_room_look(struct store *store);
/* Under lock: what groups that this one may push out have. */
uint64_t store_room_others(const struct store *store, const struct store_group *group);
/* Under write_lock: makes room for cost bytes of groups worth us_per_mib, if others may be pushed out for
 * them. */
void store_room_make(struct store *store, uint64_t cost, double us_per_mib);
/* Under write_lock: deletes a group's last values, some at a time. *ret_count: how many, 0: it has none.
 * 0 or as a write. */
int store_room_prune(struct store_group *group, size_t most, uint64_t bytes, size_t *ret_count);
