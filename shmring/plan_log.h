/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The plan log of a job of several ranks, as its ranks see it (plan/entry.h says what an entry
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
#include "base/plan_entry.h"

#define PLAN_LOG_MAGIC UINT64_C(0x314c524353214f01) /* 01 "O!SCRL1" */
#define PLAN_LOG_ID 16
#define PLAN_LOG_PLAN \
	8 /* the first bytes of the id are the plan's, whoever goes on with it; the others the version's */
#define PLAN_LOG_BEFORE 64
#define PLAN_LOG_HEAD 4096
#define PLAN_LOG_MAX_RECORD (64 + 8 * 65536)

enum {
	PLAN_LOG_E_NONE = 1, /* nothing more yet */
	PLAN_LOG_E_GONE = 2, /* that gave way to newer entries */
	PLAN_LOG_E_BAD = 3,  /* memory that is no plan log, or a record that makes no sense */
};

struct plan_log_before { /* a version that another one goes on with: there it ended */
	uint8_t id[PLAN_LOG_ID];
	uint64_t epoch, place;
};

struct plan_log_head { /* d_: accessd writes */
	uint64_t magic, bytes, room, n_samples;
	uint8_t id[PLAN_LOG_ID];
	uint64_t origin, first_epoch; /* of the group: daemon/serve/group.h */
	_Atomic uint64_t d_first __attribute__((aligned(64))); /* offset of the oldest record */
	_Atomic uint64_t d_end;                                /* behind the newest */
	struct plan_log_before before[PLAN_LOG_BEFORE]
	    __attribute__((aligned(64))); /* newest first */
};

struct plan_log_record { /* 64 bytes, then blocks, or ids of a tail, to a multiple of 8 */
	uint64_t epoch, place, seed, nonce;
	uint32_t count, n_blocks;
	uint32_t bytes; /* of the whole record; 0: the next one is at the room's beginning */
	uint32_t reserved0;
	uint64_t reserved1[2];
};
_Static_assert(sizeof(struct plan_log_record) == 64, "a record is frozen");
_Static_assert(offsetof(struct plan_log_head, before) == 128 &&
		   sizeof(struct plan_log_before) == 32,
	       "so is the head");
_Static_assert(sizeof(struct plan_log_head) <= PLAN_LOG_HEAD, "the head ends before the records");

struct plan_log { /* a mapped one */
	struct plan_log_head *map;
	uint64_t bytes, room;
	uint64_t reserved; /* bytes; accessd's own */
	uint8_t id[PLAN_LOG_ID];
	uint64_t n_samples, origin, first_epoch;
	uint64_t first, end; /* accessd's own */
	uint64_t *copy;      /* owned; a reader's copy of a record */
	size_t copy_bytes;
};

/* Of the whole memory of a plan log that has room for records of `bytes` in all. */
uint64_t plan_log_bytes(uint64_t bytes);
/* accessd: a new one that has room for records of `bytes` in all, mapped writable and sealed. 0 or
 * negative errno; *ret_fd is the caller's. Its records' memory is still to be reserved: plan_log_reserve(). */
int plan_log_new(uint64_t bytes, uint64_t n_samples, const uint8_t id[PLAN_LOG_ID],
		 struct plan_log *ret, int *ret_fd);
/* accessd: reserves at most `most` bytes more, which takes 0.3 ms a MiB. When all is reserved (reserved == bytes),
 * records can be appended, and fd is safe to pass on. 0 or negative errno. */
int plan_log_reserve(struct plan_log *plan_log, int fd, uint64_t most);
/* What a group began with, for whoever goes on with its log. */
void plan_log_set_origin(struct plan_log *plan_log, uint64_t origin, uint64_t first_epoch);
/* accessd: it goes on with `from`, under the same id, or, as another version of that plan, under one of its own: what was dealt
 * before the place at which `from` ended both have, what is dealt behind it each has for itself. */
void plan_log_go_on(struct plan_log *plan_log, const struct plan_log *from, uint64_t epoch,
		    uint64_t place);
/* Is the plan up to that place the same as in the version with this id? */
bool plan_log_has(const struct plan_log *plan_log, const uint8_t id[PLAN_LOG_ID], uint64_t epoch,
		  uint64_t place);
/* The entry must not be larger than PLAN_LOG_MAX_RECORD, nor than half the room. Others see it when it is
 * published. */
void plan_log_append(struct plan_log *plan_log, const struct entry *entry);
void plan_log_publish(struct plan_log *plan_log);

/*
 * accessd: brings a file to where the plan log is, published or not, *saved being its end when it was last
 * (0: the file is new). Wherever this is cut off, the file is a whole plan log, of fewer entries. 0 or negative errno.
 */
int plan_log_save(const struct plan_log *plan_log, int fd, uint64_t *saved);
/* The same of what it goes on with, once. */
int plan_log_save_before(const struct plan_log *plan_log, int fd);

/* Another process: maps fd, which stays the caller's, read-only and checks it: at most `most` bytes, all of
 * which are there. 0, PLAN_LOG_E_BAD, negative errno. */
int plan_log_attach(int fd, uint64_t most, struct plan_log *ret);
void plan_log_detach(struct plan_log *plan_log); /* of either side */
/* The same, but the mapping is the caller's. NULL: there is none. */
void *plan_log_take_map(struct plan_log *plan_log, uint64_t *ret_bytes);
/* Where to begin to read: offset of the oldest record. */
uint64_t plan_log_first(const struct plan_log *plan_log);
uint64_t plan_log_end(const struct plan_log *plan_log);
/* The record at *offset, which moves on behind it. Its arrays are copies and live until the next
 * call; numbers are those of the memory, sizes are checked. 0, PLAN_LOG_E_NONE, PLAN_LOG_E_GONE,
 * PLAN_LOG_E_BAD, -ENOMEM. */
int plan_log_read(struct plan_log *plan_log, uint64_t *offset, struct entry *ret);
