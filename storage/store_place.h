/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORAGE_STORE_PLACE_H
#define STORAGE_STORE_PLACE_H

/* Where a store lies: the file system, the folder's lock, the names in it. */

#include "base/base.h"

struct statfs;

#define STORE_PLACE_DATA "cache.mdb"
#define STORE_PLACE_LOCK "cache.mdb-lock" /* LMDB's name for it */
#define STORE_PLACE_ASIDE "cache.mdb-damaged"

/* fstatfs(), or what a test puts in its place. */
extern int (*store_place_statfs)(int fd, struct statfs *ret);

/* The kind of a file system by its number in statfs(2): its name for people, or NULL, and whether a store
 * may lie there without force. */
const char *store_place_kind(uint64_t type, bool *ret_is_good);
/* 0, STORE_E_REFUSED or negative errno; diag says why and what to do. */
int store_place_check(int folder_fd, bool force, struct diag *diag);
/* A descriptor of the folder (caller owns) that holds its lock: nobody else opens a store there while it
 * is open. Waits half a second for a process that is ending. -EBUSY and other errnos, with diag; also when
 * one of our names is something else than a file. */
int store_place_open(int folder_fd, int *ret_fd, struct diag *diag);
/* LMDB writes the lock file through a mapping, where a full disk would be SIGBUS: its blocks are taken
 * before. 0 or negative errno. */
int store_place_reserve(int dir_fd);
/* Takes the data out of the way, cut to keep_bytes; the copy before is lost. 0 or negative errno. */
int store_place_set_aside(int dir_fd, uint64_t keep_bytes);
/* Bytes of what was set aside. */
uint64_t store_place_aside_bytes(int dir_fd);

#endif
