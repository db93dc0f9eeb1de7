/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory between processes: memfds, never files, never names in /dev/shm.
 *
 * A memfd that leaves accessd is reserved (fallocate) and sealed against shrinking and growing, so
 * that nobody who has mapped it can get SIGBUS, whatever another holder of the descriptor tries.
 * Memory that ranks may only read is mapped writable by its writer first and then sealed
 * F_SEAL_FUTURE_WRITE: from then on the kernel refuses every new way to write it (mmap, mprotect,
 * write, punching holes, userfaultfd, reopening through /proc), for every uid, while the mapping
 * that exists goes on writing. F_SEAL_SEAL ends the list, so that nobody can add F_SEAL_WRITE.
 *
 * Large memories lie on multiples of 2 MiB in all address spaces, so that what stands in huge pages
 * is mapped as such: a slot of 147 MiB is then 74 page faults for whoever touches it first and not
 * 37,632, and a training step that reads it misses the TLB as seldom.
 *
 * Settings of the node keep the kernel from reserving huge pages by itself, but MADV_COLLAPSE makes
 * one of whatever stands in its place, and clears the rest. So one small page is reserved in each, and
 * collapsed: a quarter of the time that it takes to reserve all in small pages, as long as there are
 * huge ones. Where they have to be made first it may take seconds (doc/decisions/050): then small
 * ones do. Those are reserved twice: fallocate() leaves a page to be cleared by who touches it first,
 * but clears one that it finds in that state, and only cleared ones are mapped many at a time.
 *
 * Seals are no lock on a descriptor but a property of the memory: they are checked by the side that
 * receives it, too. An attacher that skipped the check could be handed a memfd that shrinks under
 * its eyes.
 */

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shmring/region.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define GATHER_STEP (4 * REGION_HUGE)
/* To clear a huge page takes 0.2 ms, to copy it 0.5; where it takes more than that many small ones
 * would, the kernel has to make room for it, or the machine below for the kernel. */
#define PATIENCE_NS UINT64_C(8000000)      /* of CPU time in all ... */
#define PATIENCE_PAGE_NS UINT64_C(3000000) /* ... and for each huge page */
#define PATIENCE_WALL UINT64_C(25)         /* times that, when somebody waits */
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1; older C libraries do not name it */
#endif

static int seal_bits(enum region_seal seal)
{
	int bits = F_SEAL_SHRINK | F_SEAL_GROW;

	if (seal == REGION_IMMUTABLE)
		return bits | F_SEAL_WRITE;
	return seal == REGION_READ_ONLY ? bits | F_SEAL_FUTURE_WRITE : bits;
}

int region_reserve(int fd, uint64_t offset, uint64_t bytes)
{
	int r;

	if (offset > INT64_MAX || bytes > INT64_MAX - offset)
		return -EOVERFLOW;
	do
		r = fallocate(fd, 0, (off_t)offset, (off_t)bytes);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

int region_release(int fd, uint64_t offset, uint64_t bytes)
{
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	int r;

	do
		r = fallocate(fd, mode, (off_t)offset, (off_t)bytes);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : 0;
}

/* As a whole, where the kernel can: a fault for each page takes longer by half. */
void region_touch(uint8_t *at, uint64_t bytes)
{
	const uint64_t page = base_page_size();
	uint8_t *first = at - (uintptr_t)at % page;

	if (madvise(first, (size_t)(at + bytes - first), MADV_POPULATE_WRITE) == 0)
		return;
	for (; first < at + bytes; first += page)
		(void)*(const volatile uint8_t *)first;
}

int region_seal(int fd, enum region_seal seal)
{
	return fcntl(fd, F_ADD_SEALS, seal_bits(seal) | F_SEAL_SEAL) < 0 ? -errno : 0;
}

/* Finds room for the mapping and what it lacks to a multiple, and gives the rest back. */
static void *map_aligned(int fd, uint64_t offset, size_t bytes, int protection, int flags)
{
	size_t room_bytes = bytes + REGION_HUGE, used = base_align_up(bytes, base_page_size());
	uint8_t *room =
	    mmap(NULL, room_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *at = (uint8_t *)(uintptr_t)base_align_up((uintptr_t)room, REGION_HUGE);
	void *map;

	if (room == MAP_FAILED)
		return MAP_FAILED;
	map = mmap(at, bytes, protection, flags | MAP_FIXED, fd, (off_t)offset);
	if (map == MAP_FAILED) {
		munmap(room, room_bytes);
		return MAP_FAILED;
	}
	if (at > room)
		munmap(room, (size_t)(at - room));
	munmap(at + used, room_bytes - used - (size_t)(at - room));
	return map;
}

static int map_as(int fd, uint64_t bytes, int protection, int flags, void **ret_map)
{
	void *map = MAP_FAILED;

	if (bytes == 0 || bytes > SIZE_MAX - REGION_HUGE)
		return -EINVAL;
	if (bytes >= REGION_HUGE)
		map = map_aligned(fd, 0, (size_t)bytes, protection, flags);
	if (map == MAP_FAILED) /* small, or no room for more than itself */
		map = mmap(NULL, (size_t)bytes, protection, flags, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*ret_map = map;
	return 0;
}

int region_map(int fd, uint64_t bytes, bool writable, void **ret_map)
{
	return map_as(fd, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
		      ret_map);
}

int region_map_privately(int fd, uint64_t bytes, void **ret_map)
{
	return map_as(fd, bytes, PROT_READ, MAP_PRIVATE, ret_map);
}

/* Has that much memory taken longer than it is worth? */
static bool is_late(uint64_t took_ns, uint64_t bytes)
{
	return took_ns > PATIENCE_NS + bytes / REGION_HUGE * PATIENCE_PAGE_NS;
}

/* The kernel looks for signals between two calls, not within one: who gathers at low priority and is
 * to end would otherwise keep the memory for long. */
static int gather_in_steps(uint8_t *map, uint64_t bytes)
{
	const uint64_t since_ns = base_cpu_ns();

	for (uint64_t at = 0; at < bytes; at += GATHER_STEP) {
		if (is_late(base_cpu_ns() - since_ns, at))
			return -ETIME;
		if (madvise(map + at, (size_t)BASE_MIN(GATHER_STEP, bytes - at), MADV_COLLAPSE) < 0)
			return -errno;
	}
	return 0;
}

static int reserve_in_steps(int fd, uint64_t offset, uint8_t *map, uint64_t bytes)
{
	const uint64_t cpu_ns = base_cpu_ns(), now_ns = base_now_ns();

	for (uint64_t at = 0; at < bytes; at += REGION_HUGE) {
		int r = region_reserve(fd, offset + at, base_page_size());

		if (r < 0)
			return r;
		if (madvise(map + at, REGION_HUGE, MADV_COLLAPSE) < 0)
			return -errno;
		if (is_late(base_cpu_ns() - cpu_ns, at + REGION_HUGE) ||
		    is_late((base_now_ns() - now_ns) / PATIENCE_WALL, at + REGION_HUGE))
			return -ETIME;
	}
	return 0;
}

/* With what lies in whole huge pages of the region, which may be nothing. */
static int do_whole(int fd, uint64_t offset, uint64_t bytes, bool reserves)
{
	const uint64_t first = base_align_up(offset, REGION_HUGE);
	const uint64_t end = (offset + bytes) / REGION_HUGE * REGION_HUGE;
	void *map;
	int r;

	if (end <= first)
		return 0;
	map = map_aligned(fd, first, (size_t)(end - first), PROT_READ, MAP_SHARED);
	if (map == MAP_FAILED)
		return -errno;
	r = reserves ? reserve_in_steps(fd, first, map, end - first)
		     : gather_in_steps(map, end - first);
	region_unmap(map, end - first);
	return r;
}

int region_gather(int fd, uint64_t offset, uint64_t bytes)
{
	return do_whole(fd, offset, bytes, false);
}

int region_gather_one(uint8_t *at)
{
	const uint64_t since_ns = base_cpu_ns();

	if (madvise(at, REGION_HUGE, MADV_COLLAPSE) < 0)
		return -errno;
	return is_late(base_cpu_ns() - since_ns, REGION_HUGE) ? -ETIME : 0;
}

int region_reserve_huge(int fd, uint64_t offset, uint64_t bytes)
{
	return do_whole(fd, offset, bytes, true);
}

void region_unmap(const volatile void *map, uint64_t bytes)
{
	int saved = errno;

	if (map)
		munmap((void *)(uintptr_t)map, (size_t)bytes);
	errno = saved;
}

int region_new(const char *name, enum region_seal seal, uint64_t bytes, void **ret_map, int *ret_fd)
{
	_cleanup_close_ int fd = base_memfd(name, bytes);
	void *map;
	int r;

	if (fd < 0)
		return fd;
	r = region_reserve(fd, 0, bytes);
	r = r ? r : region_map(fd, bytes, true, &map);
	if (r)
		return r;
	r = seal == REGION_UNSEALED ? 0 : region_seal(fd, seal);
	if (r) {
		region_unmap(map, bytes);
		return r;
	}
	*ret_map = map;
	*ret_fd = base_take_fd(&fd);
	return 0;
}

int region_new_sparse(const char *name, uint64_t bytes, int *ret_fd)
{
	_cleanup_close_ int fd = base_memfd(name, bytes);
	int r = fd < 0 ? fd : region_seal(fd, REGION_SHARED);

	if (!r)
		*ret_fd = base_take_fd(&fd);
	return r;
}

int region_freeze(int fd, uint64_t bytes, void **map)
{
	int r;

	region_unmap(*map, bytes);
	*map = NULL;
	r = region_seal(fd, REGION_IMMUTABLE);
	return r ? r : region_map_privately(fd, bytes, map);
}

/* Of a memfd from elsewhere that bears at least these seals. */
static int region_size(int fd, enum region_seal seal, uint64_t *ret_bytes)
{
	struct stat st;

	if (fcntl(fd, F_GET_SEALS) < 0 && errno != EINVAL)
		return -errno;
	if (!base_is_sealed(fd, seal_bits(seal)))
		return REGION_E_BAD;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size <= 0)
		return REGION_E_BAD;
	*ret_bytes = (uint64_t)st.st_size;
	return 0;
}

/* Before Linux 6.7 F_SEAL_WRITE forbids shared mappings, also to read. */
static int map_sealed(int fd, enum region_seal seal, uint64_t bytes, bool writable, void **ret_map)
{
	return seal == REGION_IMMUTABLE ? region_map_privately(fd, bytes, ret_map)
					: region_map(fd, bytes, writable, ret_map);
}

int region_attach_foreign(int fd, enum region_seal seal, uint64_t least, uint64_t most,
			  void **ret_map, uint64_t *ret_bytes)
{
	struct stat st;
	uint64_t bytes;
	/* First the seals: only a memfd has any, and whatever is asked of one is answered at once. */
	int r = region_size(fd, seal, &bytes);

	if (r)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (bytes < least || bytes > most || (uint64_t)st.st_blocks < (bytes + 511) / 512)
		return REGION_E_BAD;
	r = map_sealed(fd, seal, bytes, false, ret_map);
	if (!r)
		*ret_bytes = bytes;
	return r;
}

int region_attach_any(int fd, enum region_seal seal, uint64_t least, uint64_t most, bool writable,
		      void **ret_map, uint64_t *ret_bytes)
{
	int r = region_size(fd, seal, ret_bytes);

	if (r)
		return r;
	if (*ret_bytes < least || *ret_bytes > most)
		return REGION_E_BAD;
	return map_sealed(fd, seal, *ret_bytes, writable, ret_map);
}

int region_attach(int fd, enum region_seal seal, uint64_t bytes, bool writable, void **ret_map)
{
	uint64_t size = 0;

	return region_attach_any(fd, seal, bytes, bytes, writable, ret_map, &size);
}
