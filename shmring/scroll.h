/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_SCROLL_H
#define SHMRING_SCROLL_H

/*
 * The plan log of a job of several ranks, as its ranks see it (sched/entry.h says what an entry
 * is): one memfd a group, written by accessd alone, read by all ranks, and by another accessd that
 * goes on with it. Entries are appended; the oldest give way.
 *
 *   head (4096 bytes) | records one after the other, round and round
 *
 * Offsets count from the first record ever, in bytes, and are never taken back; a record lies whole
 * at its offset modulo the room, or, where it would not fit, at the room's beginning.
 */

#include <stdatomic.h>
#include "base/base.h"

#define SCROLL_MAGIC UINT64_C(0x314c524353214f01) /* 01 "O!SCRL1" */
#define SCROLL_ID 16
#define SCROLL_HEAD 4096
#define SCROLL_MAX_RECORD (64 + 8 * 65536)

enum {
	SCROLL_E_NONE = 1, /* nothing more yet */
	SCROLL_E_GONE = 2, /* that gave way to newer entries */
	SCROLL_E_BAD = 3,  /* memory that is no scroll, or a record that makes no sense */
};

struct scroll_head { /* d_: accessd writes */
	uint64_t magic, bytes, room, n_samples;
	uint8_t id[SCROLL_ID];
	uint64_t origin, first_epoch;                          /* of the group: daemon/group.h */
	_Atomic uint64_t d_first __attribute__((aligned(64))); /* offset of the oldest record */
	_Atomic uint64_t d_end;                                /* behind the newest */
};

struct scroll_record { /* 64 bytes, then grains, or ids of a tail, to a multiple of 8 */
	uint64_t epoch, place, seed, lap;
	uint32_t count, n_grains;
	uint32_t bytes; /* of the whole record; 0: the next one is at the room's beginning */
	uint32_t reserved0;
	uint64_t reserved1[2];
};
_Static_assert(sizeof(struct scroll_record) == 64, "a record is frozen");
_Static_assert(sizeof(struct scroll_head) <= SCROLL_HEAD, "the head ends before the records");

struct scroll_entry {
	uint64_t epoch, place, seed, lap;
	uint32_t count, n_grains;
	const uint32_t *grains; /* NULL for a tail */
	const int64_t *ids;     /* of a tail */
};

struct scroll { /* a mapped one */
	struct scroll_head *map;
	uint64_t bytes, room;
	uint8_t id[SCROLL_ID];
	uint64_t n_samples, origin, first_epoch;
	uint64_t first, end; /* accessd's own */
	uint64_t *copy;      /* owned; a reader's copy of a record */
	size_t copy_bytes;
};

/* accessd: a new one that has room for records of `bytes` in all, mapped writable and sealed. 0 or
 * negative errno; *ret_fd is the caller's, safe to pass on. */
int scroll_new(uint64_t bytes, uint64_t n_samples, const uint8_t id[SCROLL_ID], struct scroll *ret,
	       int *ret_fd);
/* What a group began with, for whoever goes on with its log. */
void scroll_set_origin(struct scroll *scroll, uint64_t origin, uint64_t first_epoch);
/* The entry must not be larger than SCROLL_MAX_RECORD, nor than half the room. Others see it when it is
 * published. */
void scroll_append(struct scroll *scroll, const struct scroll_entry *entry);
void scroll_publish(struct scroll *scroll);

/*
 * accessd: brings a file to where the scroll is, published or not, *saved being its end when it was last
 * (0: the file is new). Wherever this is cut off, the file is a whole scroll, of fewer entries. 0 or negative errno.
 */
int scroll_save(const struct scroll *scroll, int fd, uint64_t *saved);

/* Another process: maps fd, which stays the caller's, read-only and checks it. 0, SCROLL_E_BAD,
 * negative errno. */
int scroll_attach(int fd, struct scroll *ret);
void scroll_detach(struct scroll *scroll); /* of either side */
/* Where to begin to read: offset of the oldest record. */
uint64_t scroll_first(const struct scroll *scroll);
uint64_t scroll_end(const struct scroll *scroll);
/* The record at *offset, which moves on behind it. Its arrays are copies and live until the next
 * call; numbers are those of the memory, sizes are checked. 0, SCROLL_E_NONE, SCROLL_E_GONE,
 * SCROLL_E_BAD, -ENOMEM. */
int scroll_read(struct scroll *scroll, uint64_t *offset, struct scroll_entry *ret);

#endif
