/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHMRING_BOARD_H
#define SHMRING_BOARD_H

/*
 * The board of a stream: geometry, and for each slot what it holds and how far it is filled.
 * accessd makes it and alone writes it; ranks attach to it read-only and read geometry once.
 */

#include "base/base.h"
#include "shmring/layout.h"

enum { BOARD_E_BAD = 1 }; /* the memory is no board, or its numbers contradict each other */

struct board_geometry {
	uint32_t max_slots, chunk, grain, n_fields;
	uint64_t n_samples, seed;
	uint8_t dataset[32], stream[32];
	struct layout_field field[LAYOUT_MAX_FIELDS]; /* offset is set by board_plan() */
	/* set by board_plan(): */
	uint64_t slot_stride, slots_bytes, board_bytes;
	uint64_t slot_offset, status_offset, ids_offset, grains_offset;
};

/* A mapped board. The pointers are into the mapping; geometry is a private copy. */
struct board {
	struct board_geometry geometry;
	void *map;
	bool writable;
};

/* board_plan.c */
/* Lays out fields in the slot and the arrays in the board. 0, -EOVERFLOW, or BOARD_E_BAD (bad
 * field). */
int board_plan(struct board_geometry *geometry);
uint64_t layout_dtype_bytes(uint32_t dtype); /* 0 for an unknown one */
/* Has it what LAYOUT_VERSION_FIELDS brought: more fields than eight, other dtypes, ragged ones? */
bool board_is_wide(const struct board_geometry *geometry);

/* board.c and board_slots.c, accessd's side */
/* New memfd, mapped writable here, then sealed (also FUTURE_WRITE). 0 or negative errno.
 * *ret_fd: caller owns, safe to pass on. */
int board_new(const struct board_geometry *geometry, struct board *ret, int *ret_fd);
/* New slots memfd of geometry->slots_bytes: sized, not yet reserved, not mapped, not sealed. */
int board_slots_new(const struct board_geometry *geometry, int *ret_fd);
/* Reserves slot's memory (also after the seal), all of it that is not. 0, -ENOSPC, -ENOMEM, ... */
int board_slots_reserve(int slots_fd, const struct board_geometry *geometry, uint32_t slot);
/* Before that: in huge pages, where they are ready: region.h. 0 or negative errno. */
int board_slots_reserve_huge(int slots_fd, const struct board_geometry *geometry, uint32_t slot);
/* Puts a reserved slot into huge pages, where the kernel can: region.h. 0 or negative errno. */
int board_slots_gather(int slots_fd, const struct board_geometry *geometry, uint32_t slot);
/* Maps the first bytes of slots that are not sealed yet, writable; the caller unmaps. */
int board_slots_map(int slots_fd, uint64_t bytes, void **ret);
/* SHRINK | GROW | FUTURE_WRITE | SEAL: from now on nobody maps it writable. */
int board_slots_seal(int slots_fd);
/* Compose: only while no rank holds the slot. ids (count) and grains (n_grains) are copied. */
void board_slot_begin(struct board *board, uint32_t slot, uint64_t instance, uint64_t lap,
		      const int64_t *ids, uint32_t count, const uint32_t *grains, uint32_t n_grains,
		      bool is_private);
void board_slot_status(struct board *board, uint32_t slot, uint32_t sample, uint8_t status);
void board_slot_watermark(struct board *board, uint32_t slot, uint32_t watermark); /* release */
void board_slot_empty(struct board *board, uint32_t slot);

/* board.c and board_slots.c, the rank's side */
/* Maps fd read-only, copies the geometry out and checks every number of it against the size of fd
 * and against itself. fd stays the caller's. 0, BOARD_E_BAD, negative errno. */
int board_attach(int fd, struct board *ret);
void board_detach(struct board *board);
/* Maps the slots memory read-only (PROT_READ, MAP_SHARED, no prefault); checks seals and size. */
int board_slots_attach(int slots_fd, const struct board_geometry *geometry, const uint8_t **ret);
void board_slots_detach(const struct board_geometry *geometry, const uint8_t *slots);
/* Maps it a second time, when board_slots_attach() has checked it: see region_map_privately(). */
int board_slots_view(int slots_fd, const struct board_geometry *geometry, uint8_t **ret);
uint32_t board_slot_read_watermark(const struct board *board, uint32_t slot); /* acquire */
/* What a slot says that it holds, each word loaded once. Not checked. slot < max_slots. */
struct board_chunk {
	uint64_t instance, lap;
	uint32_t count, n_grains;
};
void board_slot_read(const struct board *board, uint32_t slot, struct board_chunk *ret);
/* One load of a word that another process may change at any moment, for whoever checks and uses. */
static inline uint32_t board_load_grain(const uint32_t *grain)
{
	return __atomic_load_n(grain, __ATOMIC_RELAXED);
}
static inline int64_t board_load_id(const int64_t *id)
{
	return __atomic_load_n(id, __ATOMIC_RELAXED);
}
static inline int64_t board_load_length(const int64_t *length)
{
	return __atomic_load_n(length, __ATOMIC_RELAXED);
}
const struct layout_slot *board_slot_of(const struct board *board, uint32_t slot);
const uint8_t *board_status_of(const struct board *board, uint32_t slot);
const int64_t *board_ids_of(const struct board *board, uint32_t slot);
const uint32_t *board_grains_of(const struct board *board, uint32_t slot);

/* First broken rule of the board as text, or NULL. */
const char *board_check(const struct board *board);

#endif
