/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Memory that comes from a client, and that accessd reads: nothing that the client does with it later
 * may change it or make accessd fault. F_SEAL_WRITE says that no writable mapping exists and none
 * will be, and forbids to punch holes; SHRINK that no page is cut off. region_check_foreign() sees that all
 * of it is there.
 */

#include "shmring/listing_memory.h"

#include "shmring/region.h"

int listing_memory_new(uint64_t bytes, void **ret_map, int *ret_fd)
{
	return region_new("oneaccess-list", REGION_UNSEALED, bytes, ret_map, ret_fd);
}

int listing_memory_seal(int fd, uint64_t bytes, void **map)
{
	int r;

	region_unmap(*map, bytes);
	*map = NULL;
	r = region_seal(fd, REGION_IMMUTABLE);
	return r ? r : region_map(fd, bytes, false, map);
}

int listing_memory_attach(int fd, uint64_t most, void **ret_map, uint64_t *ret_bytes)
{
	uint64_t bytes;
	int r = region_check_foreign(fd, REGION_IMMUTABLE, 1, most, &bytes);

	if (r == REGION_E_BAD)
		return LISTING_MEMORY_E_BAD;
	r = r ? r : region_map(fd, bytes, false, ret_map);
	if (!r)
		*ret_bytes = bytes;
	return r;
}

void listing_memory_detach(void *map, uint64_t bytes)
{
	region_unmap(map, bytes);
}
