/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What a domain may keep on the disk, seen from accessd: the write-back ring between its workers and its reader, the
 * folder of the store, which the reader alone opens (storage/store.h), and how the store is.
 */

#include "base/base.h"
#include "storage/reader.h"

struct param;
struct porters;

enum disk_cache_share { /* of the node's disk: daemon/cache/stores.h */
			DISK_CACHE_ALONE,
			DISK_CACHE_ASKS,
			DISK_CACHE_LOOKS,
			DISK_CACHE_HAS,
			DISK_CACHE_REFUSED,
};

struct disk_cache {
	int rings_fd; /* -1: nothing is kept, and why says so */
	enum disk_cache_share share;
	uint64_t limit;  /* bytes that its store may have; 0: none yet */
	bool has_folder; /* this reader was given one */
	bool is_told;    /* or at least why there is none: it keeps what it can */
	bool is_known;   /* the reader has said how its store is */
	bool suspect;    /* the reader before died in a way that a damaged store would explain */
	unsigned deaths; /* of that kind, of late */
	uint64_t died_ns;
	uint64_t full_until_ns, pause_ns; /* it took nothing: nothing more is made until then */
	struct reader_state state;        /* as the reader said last */
	bool has_written; /* what writing takes was measured: ns a byte of the disk */
	double write_ns, write_cpu_ns;
	char why[256]; /* nothing is kept; "" otherwise */
};

struct disk_cache_at {
	const char *stores; /* the folder of all stores */
	const char *key;    /* the name of this one's folder in it */
	bool is_own;        /* of accessd's own user */
};

bool disk_cache_may_keep(const struct param *param); /* anything at all? */
/* Makes the write-back ring of so many workers, where anything is to be kept. 0 or negative errno. */
int disk_cache_init(struct disk_cache *disk_cache, const struct param *param, unsigned workers);
void disk_cache_fini(struct disk_cache *disk_cache, struct porters *porters);
/* The store's folder, made if need be; the caller owns the descriptor. -1: nothing is
 * kept on a disk, and disk_cache->why says so. */
int disk_cache_open_folder(struct disk_cache *disk_cache, const struct disk_cache_at *at);
/* It is used now, not longer ago. */
void disk_cache_touch(const struct disk_cache_at *at);
/* From the reader: its store's state; why: it is not on. */
void disk_cache_said(struct disk_cache *disk_cache, const struct reader_state *state,
		     const char *why);
void disk_cache_reader_died(struct disk_cache *disk_cache, int status);
/* Are forms brought from it; can more be kept in it now? */
bool disk_cache_gives(const struct disk_cache *disk_cache);
bool disk_cache_is_memory(const struct disk_cache *disk_cache); /* and nothing on a disk */
bool disk_cache_takes(const struct disk_cache *disk_cache, uint64_t now_ns);
void disk_cache_has_room(struct disk_cache *disk_cache); /* again: it is not waited for */
/* What the store's writer takes for a value of that size, elapsed, and of that on a processor. false: it has
 * not written any yet. */
bool disk_cache_write_us(const struct disk_cache *disk_cache, uint64_t bytes, double *ret_us,
			 double *ret_cpu_us);
