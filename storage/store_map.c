/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What LMDB believes of its pages, and this does not: where a value lies and what the head of its page says. And pages
 * are asked for before they are touched, so that a disk that fails is an error, where there would be SIGBUS.
 */

#include "storage/store_map.h"

#include <sys/mman.h>

#define MAP_ASK_FOR (32 * 1024) /* of so many bytes the kernel is told before */

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

/* The head of a page, as the file has it. Of a value that has pages of its own, LMDB takes from there how
 * many to free when it is deleted, and which: rubbish would be believed. */
struct map_head {
	uint64_t number;
	uint16_t pad, flags;
	uint32_t pages;
};
#define MAP_HEAD_OVERFLOW 4

bool store_map_fits(uint64_t bytes)
{
	void *map = mmap(NULL, (size_t)bytes, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return map != MAP_FAILED && munmap(map, (size_t)bytes) == 0;
}

bool store_map_is_sound(const struct store_map *map, const void *value, uint64_t size)
{
	const uint64_t at = (uintptr_t)value - map->at;
	const struct map_head *head;

	if ((uintptr_t)value < map->at || at >= map->pages * map->page)
		return true;
	if (size > map->pages * map->page - at)
		return false;
	if (at % map->page != sizeof(*head))
		return size < map->page;
	head = (const struct map_head *)((const uint8_t *)value - sizeof(*head));
	return head->number == at / map->page && (head->flags & MAP_HEAD_OVERFLOW) &&
	       head->pages == (sizeof(*head) + size + map->page - 1) / map->page;
}

bool store_map_bring(const struct store_map *map, const void *value, uint64_t size)
{
	const uintptr_t page = (uintptr_t)base_page_size();
	const uintptr_t begin = (uintptr_t)value & ~(page - 1);
	const uintptr_t end = base_align_up((uintptr_t)value + size, page);

	if (size > map->pages * map->page - ((uintptr_t)value - map->at))
		return false;
	if (size >= MAP_ASK_FOR)
		madvise((void *)begin, end - begin, MADV_WILLNEED);
	/* EINVAL: a kernel that does not know it, then reading is all there is */
	return madvise((void *)begin, end - begin, MADV_POPULATE_READ) == 0 || errno == EINVAL;
}
