/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Rings of bytes, each with one writer (the worker of that number) and one reader.
 *
 * Head and tail count bytes since ever. An item is a head of 64 bytes and the form, never wrapped: where
 * the rest of the ring is too short, a head that says so is left there (there is room for one, as all
 * sizes are multiples of it) and the item begins anew at the ring's start. The writer fills the item and
 * then moves the head (T1: release); the reader acts and then moves the tail (T2: release). A worker that
 * dies in between leaves bytes that nobody sees, and its successor, which begins after it was reaped,
 * goes on at the head.
 *
 * Workers decode hostile bytes, so the reader copies each number once and checks it; a ring that makes no
 * sense is passed over to its head. The reader is trusted no further by workers: a tail that makes no
 * sense is a ring without room.
 */

#include "shmring/rings.h"

#include "shmring/region.h"
#include "shmring/wake.h"

#define RINGS_STEP ((uint64_t)sizeof(struct layout_item))
#define RINGS_MOST_RING (UINT64_C(1) << 31)

static uint64_t rings_data_offset(uint32_t n_rings)
{
	return base_align_up(sizeof(struct layout_rings) + n_rings * sizeof(struct layout_ring),
			     base_page_size());
}

int rings_new(uint32_t n_rings, uint64_t ring_bytes, int *ret_fd)
{
	const uint64_t offset = rings_data_offset(n_rings);
	const struct layout_rings head = {
	    .magic = LAYOUT_MAGIC_RINGS,
	    .version = LAYOUT_VERSION,
	    .n_rings = n_rings,
	    .bytes = offset + n_rings * ring_bytes,
	    .ring_bytes = ring_bytes,
	    .data_offset = offset,
	};
	_cleanup_close_ int fd = -1;
	int r = region_new_sparse("oneaccess-rings", head.bytes, &fd);

	r = r ? r : base_write_at(fd, &head, sizeof(head), 0);
	if (!r)
		*ret_fd = base_take_fd(&fd);
	return r;
}

static bool rings_is_good(const struct layout_rings *head, uint64_t bytes)
{
	return head->magic == LAYOUT_MAGIC_RINGS && head->version == LAYOUT_VERSION &&
	       head->n_rings >= 1 && head->n_rings <= LAYOUT_MAX_WORKERS &&
	       head->ring_bytes <= RINGS_MOST_RING && head->ring_bytes >= 2 * RINGS_STEP &&
	       head->ring_bytes % base_page_size() == 0 && head->bytes == bytes &&
	       head->data_offset == rings_data_offset(head->n_rings) &&
	       bytes == head->data_offset + head->n_rings * head->ring_bytes;
}

int rings_attach(int fd, struct rings *ret)
{
	struct layout_rings head;
	uint64_t bytes;
	void *map;
	int r = region_attach_any(fd, REGION_SHARED, sizeof(head), UINT64_MAX, true, &map, &bytes);

	if (r)
		return r < 0 ? r : RINGS_E_BAD;
	memcpy(&head, map, sizeof(head));
	if (!rings_is_good(&head, bytes)) {
		region_unmap(map, bytes);
		return RINGS_E_BAD;
	}
	*ret = (struct rings){
	    .head = map,
	    .data = (uint8_t *)map + head.data_offset,
	    .bytes = bytes,
	    .ring_bytes = head.ring_bytes,
	    .n_rings = head.n_rings,
	};
	return 0;
}

void rings_detach(struct rings *rings)
{
	region_unmap(rings->head, rings->bytes);
	*rings = (struct rings){.head = NULL};
}

uint64_t rings_most(const struct rings *rings)
{
	return rings->ring_bytes / 2 - RINGS_STEP;
}

void rings_wake(const struct rings *rings)
{
	wake_ring(&rings->head->s_seq, &rings->head->s_armed, 1);
}

/* ---- the worker ---- */

static struct layout_item *item_at(const struct rings *rings, uint32_t ring, uint64_t count)
{
	uint8_t *at = rings->data + ring * rings->ring_bytes + count % rings->ring_bytes;

	return (struct layout_item *)(void *)at;
}

/* Bytes that an item takes, its head included. */
static uint64_t item_bytes(uint64_t form)
{
	return RINGS_STEP + base_align_up(form, RINGS_STEP);
}

uint8_t *rings_begin(const struct rings *rings, uint32_t ring, uint64_t most)
{
	struct layout_ring *r = &rings->head->ring[ring];
	uint64_t head = atomic_load_explicit(&r->w_head, memory_order_relaxed);
	/* T2: acquire: the reader is done with what is overwritten. */
	uint64_t tail = atomic_load_explicit(&r->r_tail, memory_order_acquire);
	uint64_t left = rings->ring_bytes - head % rings->ring_bytes;
	uint64_t need = item_bytes(most);

	if (most > rings_most(rings) || head % RINGS_STEP || head - tail > rings->ring_bytes)
		return NULL;
	if (need > left) {
		if (head - tail + left + need > rings->ring_bytes)
			return NULL;
		item_at(rings, ring, head)->magic = LAYOUT_ITEM_SKIP;
		head += left;
		/* T1: release of the head that says so. */
		atomic_store_explicit(&r->w_head, head, memory_order_release);
	}
	if (head - tail + need > rings->ring_bytes)
		return NULL;
	return (uint8_t *)(item_at(rings, ring, head) + 1);
}

void rings_end(const struct rings *rings, uint32_t ring, const struct rings_item *item)
{
	struct layout_ring *r = &rings->head->ring[ring];
	uint64_t head = atomic_load_explicit(&r->w_head, memory_order_relaxed);

	*item_at(rings, ring, head) = (struct layout_item){
	    .magic = LAYOUT_ITEM,
	    .bytes = item->bytes,
	    .queue = item->queue,
	    .row = item->row,
	    .task = item->task,
	    .form = item->form,
	    .sample = item->sample,
	};
	/* T1: release of item and form. */
	atomic_store_explicit(&r->w_head, head + item_bytes(item->bytes), memory_order_release);
	rings_wake(rings);
}

/* ---- the reader ---- */

/* The item at the tail, skips passed over. false: there is none, or (*ret_bad) it makes no sense. */
static bool find_item(const struct rings *rings, uint32_t ring, uint64_t *tail, uint64_t head,
		      struct layout_item *ret, bool *ret_bad)
{
	while (*tail != head) {
		uint64_t left = rings->ring_bytes - *tail % rings->ring_bytes;

		memcpy(ret, item_at(rings, ring, *tail), sizeof(*ret));
		if (ret->magic == LAYOUT_ITEM &&
		    item_bytes(ret->bytes) <= BASE_MIN(left, head - *tail))
			return true;
		if (ret->magic != LAYOUT_ITEM_SKIP || left > head - *tail) {
			*ret_bad = true;
			return false;
		}
		*tail += left;
	}
	return false;
}

bool rings_look(const struct rings *rings, uint32_t ring, struct rings_item *ret, bool *ret_bad)
{
	struct layout_ring *r = &rings->head->ring[ring];
	/* T1: acquire: items and forms up to the head. */
	uint64_t head = atomic_load_explicit(&r->w_head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&r->r_tail, memory_order_relaxed);
	struct layout_item item;

	*ret_bad = (head | tail) % RINGS_STEP || head - tail > rings->ring_bytes;
	if (*ret_bad || !find_item(rings, ring, &tail, head, &item, ret_bad)) {
		/* T2: release; of nothing that was used. */
		atomic_store_explicit(&r->r_tail, head - head % RINGS_STEP, memory_order_release);
		return false;
	}
	*ret = (struct rings_item){
	    .queue = item.queue,
	    .row = item.row,
	    .task = item.task,
	    .form = item.form,
	    .bytes = item.bytes,
	    .sample = item.sample,
	    .data = (const uint8_t *)(item_at(rings, ring, tail) + 1),
	    .next = tail + item_bytes(item.bytes),
	};
	return true;
}

void rings_pass(const struct rings *rings, uint32_t ring, const struct rings_item *item)
{
	/* T2: release: the form has been copied. */
	atomic_store_explicit(&rings->head->ring[ring].r_tail, item->next, memory_order_release);
}

uint32_t rings_seq(const struct rings *rings)
{
	return atomic_load_explicit(&rings->head->s_seq, memory_order_seq_cst);
}

void rings_sleep(const struct rings *rings, uint32_t seen, uint64_t timeout_ns)
{
	wake_sleep(&rings->head->s_seq, &rings->head->s_armed, seen, timeout_ns);
}
