/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The slot table: what each slot of a stream holds and how far it is filled.
 *
 * Geometry. Whoever attaches copies the head of the slot table out once, runs slot_table_plan() on the inputs
 * it finds there and demands that all results agree, so that a slot table has nothing to say that is not
 * checked. From then on only the private copy is used for arithmetic.
 *
 * Order of writes. A slot is composed while no rank holds it: ids, blocks and states are plain
 * writes, published by the release store of d_instance (B1) and, for the rank that is granted the
 * slot, by the grant itself (R1 in grant.c). While the slot is being filled accessd writes a
 * sample's state byte, then moves the watermark with release (B2); ranks load the watermark with
 * acquire (B3) and look only below it. Both are sequentially consistent, since a rank that finds
 * too little there arms before it looks again, and accessd looks for an arm after it has moved. The pixels are written by workers before they end their
 * task with release (L3 in queue.c), which accessd acquires before it moves the watermark: the order
 * is handed on from worker to accessd to rank.
 *
 * Rejected: a watermark per field, which nobody needs as a task writes all fields of a sample.
 */

#include "shmring/slot_table.h"
#include "shmring/region.h"

/* ---- accessd makes it ---- */

static void head_fill(const struct slot_geometry *geometry, struct layout_slot_table_wide *wide)
{
	struct layout_slot_table *head = &wide->table;

	head->magic = LAYOUT_MAGIC_SLOT_TABLE;
	head->version = slot_table_is_wide(geometry) ? LAYOUT_VERSION_FIELDS : LAYOUT_VERSION;
	head->head_bytes = slot_table_is_wide(geometry) ? sizeof(*wide) : sizeof(*head);
	head->bytes = geometry->table_bytes;
	head->slots_bytes = geometry->slots_bytes;
	head->slot_stride = geometry->slot_stride;
	head->max_slots = geometry->max_slots;
	head->chunk = geometry->chunk;
	head->block = geometry->block;
	head->n_fields = geometry->n_fields;
	head->n_samples = geometry->n_samples;
	head->seed = geometry->seed;
	memcpy(head->dataset, geometry->dataset, sizeof(head->dataset));
	memcpy(head->stream, geometry->stream, sizeof(head->stream));
	head->slot_offset = geometry->slot_offset;
	head->status_offset = geometry->status_offset;
	head->ids_offset = geometry->ids_offset;
	head->blocks_offset = geometry->blocks_offset;
	memcpy(head->field, geometry->field, sizeof(head->field));
	memcpy(wide->more, geometry->field + LAYOUT_FIRST_FIELDS, sizeof(wide->more));
}

int slot_table_new(const struct slot_geometry *geometry, struct slot_table *ret, int *ret_fd)
{
	void *map;
	int r = region_new("oneaccess-slot-table", REGION_READ_ONLY, geometry->table_bytes, &map,
			   ret_fd);

	if (r)
		return r;
	head_fill(geometry, map);
	*ret = (struct slot_table){.geometry = *geometry, .map = map, .writable = true};
	return 0;
}

/* ---- where things are ---- */

/* accessd's own numbers go straight here; the readers below check theirs first. */
static void *element_of(const struct slot_table *table, uint64_t offset, uint64_t stride,
			uint32_t slot)
{
	return (uint8_t *)table->map + offset + slot * stride;
}

static struct layout_slot *slot_of(const struct slot_table *table, uint32_t slot)
{
	return element_of(table, table->geometry.slot_offset, sizeof(struct layout_slot), slot);
}

static uint8_t *status_of(const struct slot_table *table, uint32_t slot)
{
	return element_of(table, table->geometry.status_offset, table->geometry.chunk, slot);
}

static int64_t *ids_of(const struct slot_table *table, uint32_t slot)
{
	return element_of(table, table->geometry.ids_offset,
			  table->geometry.chunk * sizeof(int64_t), slot);
}

static uint32_t *blocks_of(const struct slot_table *table, uint32_t slot)
{
	return element_of(table, table->geometry.blocks_offset,
			  table->geometry.chunk * sizeof(uint32_t), slot);
}

static bool is_slot(const struct slot_table *table, uint32_t slot)
{
	return slot < table->geometry.max_slots;
}

const struct layout_slot *slot_table_of(const struct slot_table *table, uint32_t slot)
{
	return is_slot(table, slot) ? slot_of(table, slot) : NULL;
}

BASE_HOT const uint8_t *slot_table_status_of(const struct slot_table *table, uint32_t slot)
{
	return is_slot(table, slot) ? status_of(table, slot) : NULL;
}

BASE_HOT const int64_t *slot_table_ids_of(const struct slot_table *table, uint32_t slot)
{
	return is_slot(table, slot) ? ids_of(table, slot) : NULL;
}

BASE_HOT const uint32_t *slot_table_blocks_of(const struct slot_table *table, uint32_t slot)
{
	return is_slot(table, slot) ? blocks_of(table, slot) : NULL;
}

/* ---- accessd writes it ---- */

void slot_table_begin(struct slot_table *table, uint32_t slot, uint64_t instance, uint64_t nonce,
		      const int64_t *ids, uint32_t count, const uint32_t *blocks, uint32_t n_blocks,
		      bool is_private)
{
	struct layout_slot *s = slot_of(table, slot);

	slot_table_empty(table, slot);
	s->d_nonce = nonce;
	s->d_count = count;
	s->d_blocks = n_blocks;
	s->d_private = is_private;
	memset(status_of(table, slot), LAYOUT_SAMPLE_PENDING, count);
	memcpy(ids_of(table, slot), ids, count * sizeof(*ids));
	if (n_blocks)
		memcpy(blocks_of(table, slot), blocks, n_blocks * sizeof(*blocks));
	/* B1: release, pairs with the acquire of whoever reads d_instance first. */
	atomic_store_explicit(&s->d_instance, instance, memory_order_release);
}

void slot_table_status(struct slot_table *table, uint32_t slot, uint32_t sample, uint8_t status)
{
	status_of(table, slot)[sample] = status;
}

void slot_table_watermark(struct slot_table *table, uint32_t slot, uint32_t watermark)
{
	/* B2: release of states and pixels below it, pairs with B3. seq_cst, as the rank's arm is
	 * looked for after it (W3 in grant.c). */
	atomic_store_explicit(&slot_of(table, slot)->d_watermark, watermark, memory_order_seq_cst);
}

void slot_table_empty(struct slot_table *table, uint32_t slot)
{
	struct layout_slot *s = slot_of(table, slot);

	atomic_store_explicit(&s->d_instance, 0, memory_order_relaxed);
	atomic_store_explicit(&s->d_watermark, 0, memory_order_relaxed);
}

BASE_HOT uint32_t slot_table_read_watermark(const struct slot_table *table, uint32_t slot)
{
	uint32_t watermark;

	if (!is_slot(table, slot))
		return 0;
	/* B3: acquire, pairs with B2. seq_cst, as it follows the arm (W1 in grant.c): before a sleep
	 * the rank sees the watermark or accessd sees the arm. */
	watermark = atomic_load_explicit(&slot_of(table, slot)->d_watermark, memory_order_seq_cst);
	return BASE_MIN(watermark, table->geometry.chunk);
}

BASE_HOT void slot_table_read(const struct slot_table *table, uint32_t slot,
			      struct slot_table_chunk *ret)
{
	const struct layout_slot *s = slot_of(table, slot);

	/* acquire, pairs with B1 */
	ret->instance = atomic_load_explicit(&s->d_instance, memory_order_acquire);
	ret->nonce = __atomic_load_n(&s->d_nonce, __ATOMIC_RELAXED);
	ret->count = __atomic_load_n(&s->d_count, __ATOMIC_RELAXED);
	ret->n_blocks = __atomic_load_n(&s->d_blocks, __ATOMIC_RELAXED);
}

/* ---- ranks attach to it ---- */

static void geometry_of_head(const struct layout_slot_table_wide *wide, struct slot_geometry *ret)
{
	const struct layout_slot_table *head = &wide->table;

	*ret = (struct slot_geometry){
	    .max_slots = head->max_slots,
	    .chunk = head->chunk,
	    .block = head->block,
	    .n_fields = head->n_fields,
	    .n_samples = head->n_samples,
	    .seed = head->seed,
	};
	memcpy(ret->dataset, head->dataset, sizeof(ret->dataset));
	memcpy(ret->stream, head->stream, sizeof(ret->stream));
	memcpy(ret->field, head->field, sizeof(head->field));
	memcpy(ret->field + LAYOUT_FIRST_FIELDS, wide->more, sizeof(wide->more));
}

/* Plans again from what the head says and compares: 0 or SLOT_TABLE_E_BAD. */
static int head_check(const struct layout_slot_table_wide *head, uint64_t bytes,
		      struct slot_geometry *ret)
{
	struct layout_slot_table_wide again = *head;

	if (head->table.magic != LAYOUT_MAGIC_SLOT_TABLE)
		return SLOT_TABLE_E_BAD;
	geometry_of_head(head, ret);
	for (uint32_t i = 0; i < LAYOUT_MAX_FIELDS; i++)
		if (i < ret->n_fields && ret->field[i].sample_bytes == 0)
			return SLOT_TABLE_E_BAD;
	if (slot_table_plan(ret))
		return SLOT_TABLE_E_BAD;
	head_fill(ret, &again);
	if (memcmp(&again, head, sizeof(again)) || head->table.bytes != bytes)
		return SLOT_TABLE_E_BAD;
	return 0;
}

int slot_table_attach(int fd, struct slot_table *ret)
{
	struct slot_table table = {.writable = false};
	struct layout_slot_table_wide head;
	uint64_t bytes;
	int r = region_attach_any(fd, REGION_READ_ONLY, LAYOUT_SLOT_TABLE_HEAD, UINT64_MAX, false,
				  &table.map, &bytes);

	if (r)
		return r < 0 ? r : SLOT_TABLE_E_BAD;
	memcpy(&head, table.map, sizeof(head));
	r = head_check(&head, bytes, &table.geometry);
	if (r) {
		region_unmap(table.map, bytes);
		return r;
	}
	*ret = table;
	return 0;
}

void slot_table_detach(struct slot_table *table)
{
	region_unmap(table->map, table->geometry.table_bytes);
	table->map = NULL;
}
