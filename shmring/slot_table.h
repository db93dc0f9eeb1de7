/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The slot table of a stream: geometry, and for each slot what it holds and how far it is filled.
 * accessd makes it and alone writes it; ranks attach to it read-only and read geometry once.
 */

#include "base/base.h"
#include "shmring/layout.h"

enum {
	SLOT_TABLE_E_BAD = 1
}; /* the memory is no slot table, or its numbers contradict each other */

struct slot_geometry {
	uint32_t max_slots, chunk, block, n_fields;
	uint64_t n_samples, seed;
	uint8_t dataset[32], stream[32];
	struct layout_field field[LAYOUT_MAX_FIELDS]; /* offset is set by slot_table_plan() */
	/* set by slot_table_plan(): */
	uint64_t slot_stride, slots_bytes, table_bytes;
	uint64_t slot_offset, status_offset, ids_offset, blocks_offset;
};

/* A mapped slot table. The pointers are into the mapping; geometry is a private copy. */
struct slot_table {
	struct slot_geometry geometry;
	void *map;
	bool writable;
};

/* slot_table_plan.c */
/* Lays out fields in the slot and the arrays in the slot table. 0, -EOVERFLOW, or SLOT_TABLE_E_BAD (bad
 * field). */
int slot_table_plan(struct slot_geometry *geometry);
uint64_t layout_dtype_bytes(uint32_t dtype); /* 0 for an unknown one */
/* Has it what LAYOUT_VERSION_FIELDS brought: more fields than eight, other dtypes, ragged ones? */
bool slot_table_is_wide(const struct slot_geometry *geometry);

/* slot_table.c and slots.c, accessd's side */
/* New memfd, mapped writable here, then sealed (also FUTURE_WRITE). 0 or negative errno.
 * *ret_fd: caller owns, safe to pass on. */
int slot_table_new(const struct slot_geometry *geometry, struct slot_table *ret, int *ret_fd);
/* New slots memfd of geometry->slots_bytes: sized, not yet reserved, not mapped, not sealed. */
int slots_new(const struct slot_geometry *geometry, int *ret_fd);
/* Reserves slot's memory (also after the seal), all of it that is not. 0, -ENOSPC, -ENOMEM, ... */
int slots_reserve(int slots_fd, const struct slot_geometry *geometry, uint32_t slot);
/* Before that: in huge pages, where they are ready: region.h. 0 or negative errno. */
int slots_reserve_huge(int slots_fd, const struct slot_geometry *geometry, uint32_t slot);
/* Puts a reserved slot into huge pages, where the kernel can: region.h. 0 or negative errno. */
int slots_gather(int slots_fd, const struct slot_geometry *geometry, uint32_t slot);
/* Maps the first bytes of slots that are not sealed yet, writable; the caller unmaps. */
int slots_map(int slots_fd, uint64_t bytes, void **ret);
/* SHRINK | GROW | FUTURE_WRITE | SEAL: from now on nobody maps it writable. */
int slots_seal(int slots_fd);
/* Compose: only while no rank holds the slot. ids (count) and blocks (n_blocks) are copied. */
void slot_table_begin(struct slot_table *table, uint32_t slot, uint64_t instance, uint64_t nonce,
		      const int64_t *ids, uint32_t count, const uint32_t *blocks, uint32_t n_blocks,
		      bool is_private);
void slot_table_status(struct slot_table *table, uint32_t slot, uint32_t sample, uint8_t status);
void slot_table_watermark(struct slot_table *table, uint32_t slot,
			  uint32_t watermark); /* release */
void slot_table_empty(struct slot_table *table, uint32_t slot);

/* slot_table.c and slots.c, the rank's side */
/* Maps fd read-only, copies the geometry out and checks every number of it against the size of fd
 * and against itself. fd stays the caller's. 0, SLOT_TABLE_E_BAD, negative errno. */
int slot_table_attach(int fd, struct slot_table *ret);
void slot_table_detach(struct slot_table *table);
/* Maps the slots memory read-only (PROT_READ, MAP_SHARED, no prefault); checks seals and size. */
int slots_attach(int slots_fd, const struct slot_geometry *geometry, const uint8_t **ret);
void slots_detach(const struct slot_geometry *geometry, const uint8_t *slots);
/* Maps it a second time, when slots_attach() has checked it: see region_map_privately(). */
int slots_view(int slots_fd, const struct slot_geometry *geometry, uint8_t **ret);
uint32_t slot_table_read_watermark(const struct slot_table *table, uint32_t slot); /* acquire */
/* What a slot says that it holds, each word loaded once. Not checked. slot < max_slots. */
struct slot_table_chunk {
	uint64_t instance, nonce;
	uint32_t count, n_blocks;
};
void slot_table_read(const struct slot_table *table, uint32_t slot, struct slot_table_chunk *ret);
/* One load of a word that another process may change at any moment, for whoever checks and uses. */
static inline uint32_t slot_table_load_block(const uint32_t *block)
{
	return __atomic_load_n(block, __ATOMIC_RELAXED);
}
static inline int64_t slot_table_load_id(const int64_t *id)
{
	return __atomic_load_n(id, __ATOMIC_RELAXED);
}
static inline int64_t slot_table_load_length(const int64_t *length)
{
	return __atomic_load_n(length, __ATOMIC_RELAXED);
}
const struct layout_slot *slot_table_of(const struct slot_table *table, uint32_t slot);
const uint8_t *slot_table_status_of(const struct slot_table *table, uint32_t slot);
const int64_t *slot_table_ids_of(const struct slot_table *table, uint32_t slot);
const uint32_t *slot_table_blocks_of(const struct slot_table *table, uint32_t slot);
