/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A memfd as large as it may ever be, and empty: address space. The reader takes a chunk by reserving it
 * before its first byte is written, so a full machine is an error of the reservation and never SIGBUS, and
 * gives it back by punching a hole.
 *
 * It has no head and no table. Where a form lies is in the reader's own memory and, for a task that was
 * handed out, in the task; so a captured worker can show another worker of its domain any place of what it
 * may read anyway, and no byte of this memory says anything about other bytes.
 *
 * Workers have it mapped read-only from before they were forked, and a sandbox without mprotect(). A page that
 * nobody took and that a worker reads all the same becomes a page of zeros: a captured worker can
 * so fill the memory up to its size, as it can fill the write-back ring.
 */

#include "shmring/resident.h"

#include "shmring/region.h"

#define RESIDENT_MOST (UINT64_C(1) << 46)

_Static_assert(RESIDENT_CHUNK == REGION_HUGE, "a chunk is a huge page");

int resident_new(uint64_t bytes, int *ret_fd)
{
	bytes -= bytes % RESIDENT_CHUNK;
	if (bytes == 0 || bytes > RESIDENT_MOST)
		return RESIDENT_E_BAD;
	return region_new_sparse("oneaccess-resident", bytes, ret_fd);
}

int resident_attach(int fd, bool writable, struct resident *ret)
{
	uint64_t bytes;
	void *map;
	int r = region_attach_any(fd, REGION_SHARED, 0, RESIDENT_MOST, writable, &map, &bytes);

	if (r)
		return r < 0 ? r : RESIDENT_E_BAD;
	if (bytes % RESIDENT_CHUNK) {
		region_unmap(map, bytes);
		return RESIDENT_E_BAD;
	}
	*ret = (struct resident){.data = map, .bytes = bytes};
	return 0;
}

void resident_detach(struct resident *resident)
{
	region_unmap(resident->data, resident->bytes);
	*resident = (struct resident){.data = NULL};
}

int resident_take(int fd, uint64_t chunk)
{
	return region_reserve(fd, chunk * RESIDENT_CHUNK, RESIDENT_CHUNK);
}

int resident_give_back(int fd, uint64_t first, uint64_t count)
{
	return region_release(fd, first * RESIDENT_CHUNK, count * RESIDENT_CHUNK);
}

const uint8_t *resident_at(const struct resident *resident, uint64_t place, uint64_t bytes)
{
	const uint64_t offset = place - 1;

	if (place == 0 || bytes > resident->bytes || offset > resident->bytes - bytes)
		return NULL;
	return resident->data + offset;
}
