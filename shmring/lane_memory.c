/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memories of a stream's tasks: the lane (who shall do what) and the arena (the bytes of the
 * samples). Both are shared by accessd, the reader and the workers of one trust domain only. A
 * worker runs decoders on untrusted bytes and may be taken over, so nobody believes the lane's
 * geometry after attaching: each process keeps its private copy, checked against the size of the
 * memory.
 *
 * To reserve an arena takes 0.3 ms a MiB, and it may have hundreds, so that accessd, whose loop serves
 * everybody, leaves it to the reader, who writes it before anybody reads it.
 */

#include <string.h>

#include "shmring/lane.h"
#include "shmring/region.h"

#define BLOCK_OFFSET base_align_up(sizeof(struct layout_lane), 4 * BASE_CACHE_LINE)
#define MAX_ARENA (UINT64_C(1) << 46)

/* Sets sizes and, when map is not NULL, pointers. false: numbers out of range. */
static bool lane_plan(struct lane *lane, void *map)
{
	uint64_t task_offset = BLOCK_OFFSET + lane->n_blocks * sizeof(struct layout_block);
	uint64_t n_tasks = (uint64_t)lane->n_blocks * lane->chunk;

	if (lane->n_blocks == 0 || lane->n_blocks > LAYOUT_MAX_BLOCKS || lane->chunk == 0 ||
	    lane->chunk > LAYOUT_MAX_CHUNK || lane->arena_bytes == 0 ||
	    lane->arena_bytes > MAX_ARENA)
		return false;
	lane->bytes =
	    base_align_up(task_offset + n_tasks * sizeof(struct layout_task), base_page_size());
	if (map) {
		lane->head = map;
		lane->block = (struct layout_block *)((uint8_t *)map + BLOCK_OFFSET);
		lane->task = (struct layout_task *)((uint8_t *)map + task_offset);
	}
	return true;
}

static void head_fill(const struct lane *lane, struct layout_lane *head)
{
	head->magic = LAYOUT_MAGIC_LANE;
	head->version = LAYOUT_VERSION;
	head->n_blocks = lane->n_blocks;
	head->bytes = lane->bytes;
	head->arena_bytes = lane->arena_bytes;
	head->chunk = lane->chunk;
	head->lane = lane->number;
	head->block_offset = BLOCK_OFFSET;
	head->task_offset = BLOCK_OFFSET + lane->n_blocks * sizeof(struct layout_block);
}

int lane_new(uint32_t number, uint32_t n_blocks, uint32_t chunk, uint64_t arena_bytes,
	     struct lane *ret, int *ret_lane_fd, int *ret_arena_fd)
{
	_cleanup_close_ int lane_fd = -1;
	struct lane lane = {.number = number, .n_blocks = n_blocks, .chunk = chunk};
	void *map;
	int r;

	lane.arena_bytes = base_align_up(BASE_MIN(arena_bytes, MAX_ARENA + 1), base_page_size());
	if (!lane_plan(&lane, NULL))
		return LANE_E_BAD;
	r = region_new("oneaccess-lane", REGION_SHARED, lane.bytes, &map, &lane_fd);
	if (r)
		return r;
	lane_plan(&lane, map);
	head_fill(&lane, map);
	r = region_new_sparse("oneaccess-arena", lane.arena_bytes, ret_arena_fd);
	if (r) {
		region_unmap(map, lane.bytes);
		return r;
	}
	*ret = lane;
	*ret_lane_fd = base_take_fd(&lane_fd);
	return 0;
}

static bool head_is_good(const struct lane *lane, const struct layout_lane *head, uint64_t bytes)
{
	uint64_t task_offset = BLOCK_OFFSET + lane->n_blocks * sizeof(struct layout_block);

	return head->magic == LAYOUT_MAGIC_LANE && head->version == LAYOUT_VERSION &&
	       lane->bytes == bytes && head->bytes == bytes && head->block_offset == BLOCK_OFFSET &&
	       head->task_offset == task_offset && lane->arena_bytes % base_page_size() == 0;
}

int lane_attach(int fd, struct lane *ret)
{
	struct layout_lane head;
	struct lane lane;
	uint64_t bytes;
	void *map;
	int r = region_size(fd, REGION_SHARED, &bytes);

	if (r)
		return r < 0 ? r : LANE_E_BAD;
	if (bytes < BLOCK_OFFSET)
		return LANE_E_BAD;
	r = region_map(fd, bytes, true, &map);
	if (r)
		return r;
	memcpy(&head, map, sizeof(head));
	lane = (struct lane){
	    .number = head.lane,
	    .n_blocks = head.n_blocks,
	    .chunk = head.chunk,
	    .arena_bytes = head.arena_bytes,
	};
	if (!lane_plan(&lane, map) || !head_is_good(&lane, &head, bytes)) {
		region_unmap(map, bytes);
		return LANE_E_BAD;
	}
	*ret = lane;
	return 0;
}

void lane_detach(struct lane *lane)
{
	region_unmap(lane->head, lane->bytes);
	*lane = (struct lane){.head = NULL};
}

int lane_arena_attach(int fd, const struct lane *lane, bool writable, uint8_t **ret)
{
	void *map;
	int r = region_attach(fd, REGION_SHARED, lane->arena_bytes, writable, &map);

	if (r)
		return r < 0 ? r : LANE_E_BAD;
	r = writable ? region_reserve(fd, 0, lane->arena_bytes) : 0;
	if (r) {
		region_unmap(map, lane->arena_bytes);
		return r;
	}
	*ret = map;
	return 0;
}

void lane_arena_detach(const struct lane *lane, uint8_t *arena)
{
	region_unmap(arena, lane->arena_bytes);
}
