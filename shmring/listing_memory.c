/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that comes from a client, and that accessd reads: nothing that the client does with it later
 * may change it or make accessd fault. F_SEAL_WRITE says that no writable mapping exists and none
 * will be, and forbids to punch holes; SHRINK that no page is cut off. What was never written would
 * have to be allocated when it is read, in accessd's name and maybe in vain, so memory with holes is
 * refused: its blocks are counted. Memory of huge pages is refused with it, which are counted
 * otherwise.
 */

#include "shmring/listing_memory.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include "shmring/region.h"

#define TMPFS 0x01021994

int listing_memory_new(uint64_t bytes, void **ret_map, int *ret_fd)
{
	return region_new("oneaccess-list", bytes, ret_map, ret_fd);
}

int listing_memory_seal(int fd, uint64_t bytes, void **map)
{
	int r;

	region_unmap(*map, bytes);
	*map = NULL;
	r = region_seal(fd, REGION_IMMUTABLE);
	return r ? r : region_map(fd, bytes, false, map);
}

/* Is all of it there? */
static int check_whole(int fd, uint64_t bytes)
{
	struct statfs system;
	struct stat st;

	if (fstatfs(fd, &system) < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (system.f_type != TMPFS || (uint64_t)st.st_blocks < (bytes + 511) / 512)
		return LISTING_MEMORY_E_BAD;
	return 0;
}

int listing_memory_attach(int fd, uint64_t most, void **ret_map, uint64_t *ret_bytes)
{
	uint64_t bytes;
	int r = region_size(fd, REGION_IMMUTABLE, &bytes);

	if (r == REGION_E_BAD || (!r && bytes > most))
		return LISTING_MEMORY_E_BAD;
	if (!r)
		r = check_whole(fd, bytes);
	if (!r)
		r = region_map(fd, bytes, false, ret_map);
	if (!r)
		*ret_bytes = bytes;
	return r;
}

void listing_memory_detach(void *map, uint64_t bytes)
{
	region_unmap(map, bytes);
}
