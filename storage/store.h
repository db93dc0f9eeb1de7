/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What is kept on a local disk so that work is not done twice: values, one a sample, in groups. A
 * group is what was made of the samples of one dataset version in one form; its id names both, so a
 * changed source or another library version is another group and old bytes are never found again.
 *
 * It is a cache: every value can be made anew, is checked whenever it is read, and whatever cannot
 * be believed is thrown away and counted. No outcome here is worth ending a job for.
 *
 * The process must not fork while a store is open, nor open one folder twice. Functions may be called
 * from any thread, but store_close() when no other is in a function of this store.
 */

#include "base/base.h"
#include "base/hash.h"

enum { STORE_E_NONE = 1, STORE_E_ROOM = 2, STORE_E_DAMAGED = 3, STORE_E_REFUSED = 4 };

#define STORE_NOTE_MAX 4096          /* bytes of a note; more are cut off */
#define STORE_LIMIT_MIN (1ULL << 20) /* a smaller limit is refused */
#define STORE_GUESTS_MOST 1024       /* groups that peers named first, as long as a store is open */

struct store;       /* one environment in one folder */
struct store_group; /* a handle, counted */

struct store_settings {
	int folder_fd;  /* a folder that is the store's alone; borrowed for the call */
	uint64_t limit; /* bytes on disk, all in all */
	bool force;     /* on any file system */
	bool suspect;   /* the process before died in it, of a fault: set it aside, begin anew */
};

/* 0; STORE_E_REFUSED (the file system is no local disk: diag names it and cache_force);
 * negative errno (diag): -EBUSY, another process has it open. Damage is no error: what is there is set
 * aside and begun anew, and counted. */
int store_open(const struct store_settings *settings, struct store **ret, struct diag *diag);
/* Writes what is queued, for five seconds at most, and frees all; groups must have been closed. NULL is
 * fine. */
void store_close(struct store *store);

/* ---- groups ---- */

/* note: one line of JSON for people (dataset path, form, ...), kept with the group and shown by
 * store_list(). A group with the note of one that was opened later and that nobody uses is superseded:
 * it is the first to make room. 0, -ENOMEM and other negative errnos; -EINVAL: n_samples is 0 or
 * absurd. A store that is off opens groups, too: they are empty until it is on. */
int store_group_open(struct store *store, const struct hash_id *id, const char *note,
		     uint64_t n_samples, struct store_group **ret);
/* The same for a group that a peer named, which may lie: one that is there keeps its note, and with another number of
 * samples is not had (-EINVAL). -ENOSPC: there were STORE_GUESTS_MOST new ones already. */
int store_group_open_guest(struct store *store, const struct hash_id *id, const char *note,
			   uint64_t n_samples, struct store_group **ret);
void store_group_close(struct store_group *group); /* NULL is fine */
/* memfd of n_samples u32 (struct counter_cell): bytes of each sample's value, 0: none. Kept up with
 * commits, drops, evictions and damage; it may be behind for a moment, never ahead of the disk by a value
 * that was not written. Sealed: only the store writes it, nobody shrinks it. Borrowed until the
 * group's last close. */
int store_group_table(const struct store_group *group);
/* What a MiB of it saves, in microseconds: who may push out whom. 1 until it is told. */
void store_group_worth(struct store_group *group, double us_per_mib);
/* One of its users brings nothing of it any more, or does again; who yields takes that back before he closes it. When
 * all of them yield, it is with those that are superseded the first to make room. */
void store_group_yield(struct store_group *group, bool yields);

/* ---- values ---- */

/* Copies the value to buffer and checks it there. 0; STORE_E_NONE; STORE_E_ROOM (larger than room);
 * STORE_E_DAMAGED (it is dropped, counted; buffer holds rubbish). */
int store_get(struct store_group *group, uint64_t sample, uint8_t *buffer, size_t room,
	      size_t *ret_size);
/* Copies it to the writer's bounded queue. false: not taken (queue full, no room, off, is there
 * already, dropped; larger than the queue: 64 MiB, or a quarter of the limit). */
bool store_put(struct store_group *group, uint64_t sample, const uint8_t *value, size_t size);
/* The same for a value that takes the place of what is there, which is worth nothing from now on: it is not in
 * the table any more, taken or not, and leaves the disk in the write that brings the new one. */
bool store_replace(struct store_group *group, uint64_t sample, const uint8_t *value, size_t size);
/* Has the writer write now all that waits, and waits until it did or gave it up, or for five seconds. */
void store_flush(struct store *store);

/* ---- for people ---- */

/* 0, -ENOENT: there is no such group, or negative errno. */
int store_pin(struct store *store, const struct hash_id *id, bool pinned);
/* Also of a group in use: its gets then miss, and it takes no more until it is opened again. -EBUSY: it is
 * pinned; -ENOENT; an error of writing: what is left of it is used as before. */
int store_drop(struct store *store, const struct hash_id *id);

/* Bytes of values that were dropped before are in no file of the store any more: zeros are where they were, and what was set
 * aside is removed. Of a value smaller than a page a part may be left where a page is not full. 0, -EBUSY (a reader of
 * another process, such as mdb_copy, keeps some) or an error of writing. */
int store_wipe(struct store *store);

/* What a value of size bytes takes of the disk, about. */
uint64_t store_bytes_of(uint64_t size);

struct store_progress {
	void (*tell)(void *arg, uint64_t done,
		     uint64_t total); /* at most 10 a second; may be NULL */
	bool (*cancelled)(void *arg); /* may be NULL */
	void *arg;
};
struct store_checked {
	uint64_t groups, values, bytes; /* bytes of values, sound ones */
	uint64_t damaged;               /* were dropped */
};
/* Reads each value and compares its checksum. 0, -ECANCELED, negative errno; ret is filled as far as it
 * came in each case. */
int store_verify(struct store *store, const struct store_progress *progress,
		 struct store_checked *ret);

struct store_listing {
	struct hash_id id;
	const char *note; /* borrowed for the call */
	uint64_t n_samples, values, bytes;
	uint64_t last_use_s; /* of the unix epoch */
	double us_per_mib;
	bool is_pinned, is_used, is_superseded;
};
/* Calls each() for each group, with no lock held. 0 or -ENOMEM. */
int store_list(struct store *store, void (*each)(void *arg, const struct store_listing *listing),
	       void *arg);

enum store_mode { STORE_ON, STORE_READ_ONLY, STORE_OFF };
struct store_state {
	enum store_mode mode;
	char why[256]; /* it is not on; "" if it is */
	uint64_t limit;
	uint64_t bytes_used; /* of the disk, by what can be read and its index */
	uint64_t bytes_file; /* the file: also pages that wait to be used again; <= limit */
	uint64_t groups, values;
	uint64_t hits, misses;
	uint64_t puts, puts_not_taken; /* written; refused, or lost on the way to the disk */
	uint64_t puts_full;            /* of the latter those for which there was no room */
	uint64_t damaged, evicted;     /* values */
	/* Of the writer for values: elapsed, of that on a processor */
	uint64_t write_ns, write_cpu_ns;
	uint64_t write_bytes; /* of the disk, that those took: store_bytes_of() */
	uint64_t set_aside;   /* times that all was begun anew */
	uint64_t write_errors;
	uint64_t queue_values; /* that wait or are being written */
};
void store_state(struct store *store, struct store_state *ret);
