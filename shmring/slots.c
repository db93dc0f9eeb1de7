/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memory of a stream's slots: made, reserved slot by slot and sealed by accessd, mapped by ranks. What is in a slot
 * the slot table says.
 */

#include "shmring/slot_table.h"
#include "shmring/region.h"

int slots_new(const struct slot_geometry *geometry, int *ret_fd)
{
	int fd = base_memfd("oneaccess-slots", geometry->slots_bytes);

	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

int slots_reserve_huge(int slots_fd, const struct slot_geometry *geometry, uint32_t slot)
{
	if (slot >= geometry->max_slots)
		return -EINVAL;
	return region_reserve_huge(slots_fd, slot * geometry->slot_stride, geometry->slot_stride);
}

/* Twice, as fallocate() leaves a page to be cleared by who touches it first, but clears one that it
 * finds in that state, and only cleared pages are mapped many at a time. */
int slots_reserve(int slots_fd, const struct slot_geometry *geometry, uint32_t slot)
{
	const uint64_t stride = geometry->slot_stride;
	int r;

	if (slot >= geometry->max_slots)
		return -EINVAL;
	r = region_reserve(slots_fd, slot * stride, stride);
	return r < 0 ? r : region_reserve(slots_fd, slot * stride, stride);
}

int slots_map(int slots_fd, uint64_t bytes, void **ret)
{
	return region_map(slots_fd, bytes, true, ret);
}

int slots_gather(int slots_fd, const struct slot_geometry *geometry, uint32_t slot)
{
	if (slot >= geometry->max_slots)
		return -EINVAL;
	return region_gather(slots_fd, slot * geometry->slot_stride, geometry->slot_stride);
}

int slots_seal(int slots_fd)
{
	return region_seal(slots_fd, REGION_READ_ONLY);
}

int slots_attach(int slots_fd, const struct slot_geometry *geometry, const uint8_t **ret)
{
	void *map;
	int r = region_attach(slots_fd, REGION_READ_ONLY, geometry->slots_bytes, false, &map);

	if (r)
		return r < 0 ? r : SLOT_TABLE_E_BAD;
	*ret = map;
	return 0;
}

void slots_detach(const struct slot_geometry *geometry, const uint8_t *slots)
{
	region_unmap(slots, geometry->slots_bytes);
}

int slots_view(int slots_fd, const struct slot_geometry *geometry, uint8_t **ret)
{
	void *map;
	int r = region_map_privately(slots_fd, geometry->slots_bytes, &map);

	if (r == 0)
		*ret = map;
	return r;
}
