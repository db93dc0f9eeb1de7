/* SPDX-License-Identifier: Apache-2.0 */

#include "tests/invariants/invariants.h"

#include "shmring/region.h"
#include "shmring/slot_table.h"

static const char *check_samples(const struct slot_table *table, uint32_t slot, uint32_t watermark)
{
	const struct layout_slot *s = slot_table_of(table, slot);
	const uint8_t *status = slot_table_status_of(table, slot);
	const int64_t *ids = slot_table_ids_of(table, slot);

	for (uint32_t i = 0; i < s->d_count; i++) {
		if (status[i] > LAYOUT_SAMPLE_FILTERED)
			return "a sample has a state that does not exist";
		if (i < watermark && status[i] == LAYOUT_SAMPLE_PENDING)
			return "a sample below the watermark is not finished";
		if (ids[i] < 0 || (uint64_t)ids[i] >= table->geometry.n_samples)
			return "a sample id is outside the dataset";
	}
	return NULL;
}

static const char *check_slot(const struct slot_table *table, uint32_t slot)
{
	const struct slot_geometry *geometry = &table->geometry;
	const struct layout_slot *s = slot_table_of(table, slot);
	const uint32_t *blocks = slot_table_blocks_of(table, slot);
	uint64_t n_blocks = (geometry->n_samples + geometry->block - 1) / geometry->block;
	uint64_t instance = atomic_load_explicit(&s->d_instance, memory_order_acquire);
	uint32_t watermark = atomic_load_explicit(&s->d_watermark, memory_order_acquire);

	if (instance == 0)
		return watermark ? "an empty slot has a watermark" : NULL;
	if (s->d_count == 0 || s->d_count > geometry->chunk || s->d_blocks > s->d_count)
		return "a slot's counts are out of bounds";
	if (s->d_private > 1)
		return "a slot's private flag is neither 0 nor 1";
	if (watermark > s->d_count)
		return "a watermark is above its slot's count";
	for (uint32_t i = 0; i < s->d_blocks; i++)
		if (blocks[i] >= n_blocks)
			return "a block is outside the dataset";
	for (uint32_t other = 0; other < slot; other++)
		if (atomic_load_explicit(&slot_table_of(table, other)->d_instance,
					 memory_order_relaxed) == instance)
			return "two slots hold the same instance";
	return check_samples(table, slot, watermark);
}

/* A rank that attached to it now would find the geometry that its maker keeps. */
static const char *check_head(const struct slot_table *table)
{
	const uint64_t bytes = table->geometry.table_bytes;
	_cleanup_close_ int fd = base_memfd("slot-table-check", bytes);
	struct slot_table again;
	bool is_same;

	if (fd < 0 || base_write_at(fd, table->map, bytes, 0) || region_seal(fd, REGION_READ_ONLY))
		return "there is no memory for a copy of the slot table";
	if (slot_table_attach(fd, &again))
		return "the head of the slot table contradicts itself";
	is_same = memcmp(&again.geometry, &table->geometry, sizeof(again.geometry)) == 0;
	slot_table_detach(&again);
	return is_same ? NULL : "the head of the slot table differs from the private copy";
}

const char *slot_table_check(const struct slot_table *table)
{
	const char *broken = check_head(table);

	for (uint32_t slot = 0; !broken && slot < table->geometry.max_slots; slot++)
		broken = check_slot(table, slot);
	return broken;
}
