/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A region is one memfd of fixed size: made, reserved, sealed, passed on, attached. The rules of
 * the table in layout.h are kept here and nowhere else. Outside of shmring/ for memory that is the
 * client's: what he shows to accessd once and for good.
 */

#include "base/base.h"

enum { REGION_E_BAD = 1 }; /* no sealed memfd, or not of this size */

enum region_seal {
	REGION_SHARED,    /* SHRINK, GROW, SEAL: the size is for ever */
	REGION_READ_ONLY, /* and FUTURE_WRITE: only mappings that exist by now go on writing */
	REGION_IMMUTABLE, /* and WRITE: nobody writes it any more; no mapping does when it is set */
	REGION_UNSEALED,  /* none: region_seal() is to follow */
};

/* New memfd of bytes, reserved in full, mapped writable, and sealed, but not REGION_IMMUTABLE: the mapping goes on
 * writing. Caller owns *ret_map and *ret_fd. 0 or negative errno. */
int region_new(const char *name, enum region_seal seal, uint64_t bytes, void **ret_map,
	       int *ret_fd);
/* The same, REGION_SHARED, but neither reserved nor mapped. */
int region_new_sparse(const char *name, uint64_t bytes, int *ret_fd);
/* Reserves memory so that no touch of it can fail later. 0, -ENOSPC, -ENOMEM, ... */
int region_reserve(int fd, uint64_t offset, uint64_t bytes);
/* Gives it back: what is read there from now on is zeros. 0 or negative errno. */
int region_release(int fd, uint64_t offset, uint64_t bytes);
/* Touches what is reserved and mapped for writing, so that nobody meets a fault there later. */
void region_touch(uint8_t *at, uint64_t bytes);
int region_seal(int fd, enum region_seal seal);
/* *map, writable so far, is mapped read-only from now on, and fd REGION_IMMUTABLE. 0 or negative errno: *map is NULL
 * then. */
int region_freeze(int fd, uint64_t bytes, void **map);
/*
 * Maps memory that another has made, for reading: of least to most bytes, and all of it there. What was never
 * written would be allocated when it is read, in the name of who reads it, so memory with holes is refused:
 * its blocks are counted, whether they are in memory, in swap or in huge pages. So is memory of hugetlbfs,
 * which has other blocks and may be gone when it is touched.
 */
int region_attach_foreign(int fd, enum region_seal seal, uint64_t least, uint64_t most,
			  void **ret_map, uint64_t *ret_bytes);
/* A large page of the hardware, as far as we ask for them. */
#define REGION_HUGE (UINT64_C(2) << 20)
/* Puts the reserved memory that lies in whole huge pages of the region into such, where the kernel
 * can (Linux 6.1; no matter what /sys says of shmem). Contents and mappings stay. 0 or negative
 * errno: it is as it was, or in part; nothing is lost but speed. Takes about as long as to copy it. */
int region_gather(int fd, uint64_t offset, uint64_t bytes);
/* The same with REGION_HUGE bytes at such a multiple of what region_map() gave. -EAGAIN: somebody uses a page of it just now; -ETIME:
 * it is done, and took more than it is worth. */
int region_gather_one(uint8_t *at);
/* Reserves what region_gather() would gather, in huge pages from the start: in a quarter of the time that
 * small ones take, or not at all. 0 or negative errno; whatever it is, region_reserve() is to follow. */
int region_reserve_huge(int fd, uint64_t offset, uint64_t bytes);
/* Maps all of it, shared, from 2 MiB on at a multiple of REGION_HUGE if there is room; without writable it can never be made writable by mprotect. */
int region_map(int fd, uint64_t bytes, bool writable, void **ret_map);
/* The same for reading, privately: it shows what is in fd, and mprotect() can make it writable, when pages
 * that are written to become this process' own. */
int region_map_privately(int fd, uint64_t bytes, void **ret_map);
/* Maps a memfd from elsewhere that bears at least these seals and has least to most bytes, with region_map(). 0, REGION_E_BAD,
 * negative errno. */
int region_attach_any(int fd, enum region_seal seal, uint64_t least, uint64_t most, bool writable,
		      void **ret_map, uint64_t *ret_bytes);
/* The same of exactly so many bytes. */
int region_attach(int fd, enum region_seal seal, uint64_t bytes, bool writable, void **ret_map);
void region_unmap(const volatile void *map, uint64_t bytes); /* NULL is fine; errno is kept */
