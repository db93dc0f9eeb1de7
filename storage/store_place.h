/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a store lies: the file system, the folder's lock, the names in it. */

#include "base/base.h"

struct statfs;

#define STORE_PLACE_DATA "cache.mdb"
#define STORE_PLACE_LOCK "cache.mdb-lock" /* LMDB's name for it */
#define STORE_PLACE_ASIDE "cache.mdb-damaged"

/* fstatfs(), or what a test puts in its place. */
extern int (*store_place_statfs)(int fd, struct statfs *ret);

/* 0, STORE_E_REFUSED or negative errno; diag says why and what to do. */
int store_place_check(int folder_fd, bool force, struct diag *diag);
/* Takes the folder's lock for the descriptor's description: nobody opens a store there while that is open. Waits
 * half a second for a process that is ending. 0, -EBUSY and other errnos. */
int store_place_lock(int dir_fd);
/* A descriptor of the folder (caller owns) that holds its lock. -EBUSY and other errnos, with
 * diag; also when one of our names is something else than a file. */
int store_place_open(int folder_fd, int *ret_fd, struct diag *diag);
/* LMDB writes the lock file through a mapping, where a full disk would be SIGBUS: its blocks are taken
 * before. 0 or negative errno. */
int store_place_reserve(int dir_fd);
/* Takes the data out of the way, cut to keep_bytes; the copy before is lost. 0 or negative errno. */
int store_place_set_aside(int dir_fd, uint64_t keep_bytes);
/* What the store's files take of the disk. */
uint64_t store_place_bytes(int dir_fd);
/* Deletes them, of a store that is closed, by who holds the folder's lock. What has one of their names and is
 * no file stays. */
void store_place_remove(int dir_fd);
/* Bytes of what was set aside. */
uint64_t store_place_aside_bytes(int dir_fd);
