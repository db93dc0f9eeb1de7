/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The memories of a stream's tasks: the queue (who shall do what) and the arena (the bytes of the
 * samples). Both are shared by accessd, the reader and the workers of one trust domain only. A
 * worker runs decoders on untrusted bytes and may be taken over, so nobody believes the queue's
 * geometry after attaching: each process keeps its private copy, checked against the size of the
 * memory.
 *
 * To reserve an arena takes 0.3 ms a MiB, and it may have hundreds, so that accessd, whose loop serves
 * everybody, leaves it to the reader, who writes it before anybody reads it.
 */

#include "shmring/queue.h"
#include "shmring/region.h"

#define ROW_OFFSET base_align_up(sizeof(struct layout_queue), 4 * BASE_CACHE_LINE)
#define MAX_ARENA (UINT64_C(1) << 46)

/* Sets sizes and, when map is not NULL, pointers. false: numbers out of range. */
static bool queue_plan(struct queue *queue, void *map)
{
	uint64_t task_offset = ROW_OFFSET + queue->n_rows * sizeof(struct layout_row);
	uint64_t n_tasks = (uint64_t)queue->n_rows * queue->chunk;

	if (queue->n_rows == 0 || queue->n_rows > LAYOUT_MAX_ROWS || queue->chunk == 0 ||
	    queue->chunk > LAYOUT_MAX_CHUNK || queue->arena_bytes == 0 ||
	    queue->arena_bytes > MAX_ARENA)
		return false;
	queue->bytes =
	    base_align_up(task_offset + n_tasks * sizeof(struct layout_task), base_page_size());
	if (map) {
		queue->head = map;
		queue->row = (struct layout_row *)((uint8_t *)map + ROW_OFFSET);
		queue->task = (struct layout_task *)((uint8_t *)map + task_offset);
	}
	return true;
}

static void head_fill(const struct queue *queue, struct layout_queue *head)
{
	head->magic = LAYOUT_MAGIC_QUEUE;
	head->version = LAYOUT_VERSION;
	head->n_rows = queue->n_rows;
	head->bytes = queue->bytes;
	head->arena_bytes = queue->arena_bytes;
	head->chunk = queue->chunk;
	head->queue = queue->number;
	head->row_offset = ROW_OFFSET;
	head->task_offset = ROW_OFFSET + queue->n_rows * sizeof(struct layout_row);
}

int queue_new(uint32_t number, uint32_t n_rows, uint32_t chunk, uint64_t arena_bytes,
	      struct queue *ret, int *ret_queue_fd, int *ret_arena_fd)
{
	_cleanup_close_ int queue_fd = -1;
	struct queue queue = {.number = number, .n_rows = n_rows, .chunk = chunk};
	void *map;
	int r;

	queue.arena_bytes = base_align_up(BASE_MIN(arena_bytes, MAX_ARENA + 1), base_page_size());
	if (!queue_plan(&queue, NULL))
		return QUEUE_E_BAD;
	r = region_new("oneaccess-queue", REGION_SHARED, queue.bytes, &map, &queue_fd);
	if (r)
		return r;
	queue_plan(&queue, map);
	head_fill(&queue, map);
	r = region_new_sparse("oneaccess-arena", queue.arena_bytes, ret_arena_fd);
	if (r) {
		region_unmap(map, queue.bytes);
		return r;
	}
	*ret = queue;
	*ret_queue_fd = base_take_fd(&queue_fd);
	return 0;
}

static bool head_is_good(const struct queue *queue, const struct layout_queue *head, uint64_t bytes)
{
	uint64_t task_offset = ROW_OFFSET + queue->n_rows * sizeof(struct layout_row);

	return head->magic == LAYOUT_MAGIC_QUEUE && head->version == LAYOUT_VERSION &&
	       queue->bytes == bytes && head->bytes == bytes && head->row_offset == ROW_OFFSET &&
	       head->task_offset == task_offset && queue->arena_bytes % base_page_size() == 0;
}

int queue_attach(int fd, struct queue *ret)
{
	struct layout_queue head;
	struct queue queue;
	uint64_t bytes;
	void *map;
	int r = region_attach_any(fd, REGION_SHARED, ROW_OFFSET, UINT64_MAX, true, &map, &bytes);

	if (r)
		return r < 0 ? r : QUEUE_E_BAD;
	memcpy(&head, map, sizeof(head));
	queue = (struct queue){
	    .number = head.queue,
	    .n_rows = head.n_rows,
	    .chunk = head.chunk,
	    .arena_bytes = head.arena_bytes,
	};
	if (!queue_plan(&queue, map) || !head_is_good(&queue, &head, bytes)) {
		region_unmap(map, bytes);
		return QUEUE_E_BAD;
	}
	*ret = queue;
	return 0;
}

void queue_detach(struct queue *queue)
{
	region_unmap(queue->head, queue->bytes);
	*queue = (struct queue){.head = NULL};
}

int queue_arena_attach(int fd, const struct queue *queue, bool writable, uint8_t **ret)
{
	void *map;
	int r = region_attach(fd, REGION_SHARED, queue->arena_bytes, writable, &map);

	if (r)
		return r < 0 ? r : QUEUE_E_BAD;
	r = writable ? region_reserve(fd, 0, queue->arena_bytes) : 0;
	if (r) {
		region_unmap(map, queue->arena_bytes);
		return r;
	}
	*ret = map;
	return 0;
}

void queue_arena_detach(const struct queue *queue, uint8_t *arena)
{
	region_unmap(arena, queue->arena_bytes);
}
