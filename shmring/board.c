/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The board: what each slot of a stream holds and how far it is filled.
 *
 * Geometry. Whoever attaches copies the head of the board out once, runs board_plan() on the inputs
 * it finds there and demands that all results agree, so that a board has nothing to say that is not
 * checked. From then on only the private copy is used for arithmetic.
 *
 * Order of writes. A slot is composed while no rank holds it: ids, grains and states are plain
 * writes, published by the release store of d_instance (B1) and, for the rank that is granted the
 * slot, by the grant itself (R1 in grant.c). While the slot is being filled accessd writes a
 * sample's state byte, then moves the watermark with release (B2); ranks load the watermark with
 * acquire (B3) and look only below it. Both are sequentially consistent, since a rank that finds
 * too little there arms before it looks again, and accessd looks for an arm after it has moved. The pixels are written by workers before they end their
 * task with release (L3 in lane.c), which accessd acquires before it moves the watermark: the order
 * is handed on from worker to accessd to rank.
 *
 * Rejected: a watermark per field, which nobody needs as a task writes all fields of a sample.
 */

#include <string.h>

#include "shmring/board.h"
#include "shmring/region.h"

/* ---- accessd makes it ---- */

static void head_fill(const struct board_geometry *geometry, struct layout_board_wide *wide)
{
	struct layout_board *head = &wide->board;

	head->magic = LAYOUT_MAGIC_BOARD;
	head->version = board_is_wide(geometry) ? LAYOUT_VERSION_FIELDS : LAYOUT_VERSION;
	head->head_bytes = board_is_wide(geometry) ? sizeof(*wide) : sizeof(*head);
	head->bytes = geometry->board_bytes;
	head->slots_bytes = geometry->slots_bytes;
	head->slot_stride = geometry->slot_stride;
	head->max_slots = geometry->max_slots;
	head->chunk = geometry->chunk;
	head->grain = geometry->grain;
	head->n_fields = geometry->n_fields;
	head->n_samples = geometry->n_samples;
	head->seed = geometry->seed;
	memcpy(head->dataset, geometry->dataset, sizeof(head->dataset));
	memcpy(head->stream, geometry->stream, sizeof(head->stream));
	head->slot_offset = geometry->slot_offset;
	head->status_offset = geometry->status_offset;
	head->ids_offset = geometry->ids_offset;
	head->grains_offset = geometry->grains_offset;
	memcpy(head->field, geometry->field, sizeof(head->field));
	memcpy(wide->more, geometry->field + LAYOUT_FIRST_FIELDS, sizeof(wide->more));
}

int board_new(const struct board_geometry *geometry, struct board *ret, int *ret_fd)
{
	void *map;
	int r =
	    region_new("oneaccess-board", REGION_READ_ONLY, geometry->board_bytes, &map, ret_fd);

	if (r)
		return r;
	head_fill(geometry, map);
	*ret = (struct board){.geometry = *geometry, .map = map, .writable = true};
	return 0;
}

/* ---- where things are ---- */

/* accessd's own numbers go straight here; the readers below check theirs first. */
static void *element_of(const struct board *board, uint64_t offset, uint64_t stride, uint32_t slot)
{
	return (uint8_t *)board->map + offset + slot * stride;
}

static struct layout_slot *slot_of(const struct board *board, uint32_t slot)
{
	return element_of(board, board->geometry.slot_offset, sizeof(struct layout_slot), slot);
}

static uint8_t *status_of(const struct board *board, uint32_t slot)
{
	return element_of(board, board->geometry.status_offset, board->geometry.chunk, slot);
}

static int64_t *ids_of(const struct board *board, uint32_t slot)
{
	return element_of(board, board->geometry.ids_offset,
			  board->geometry.chunk * sizeof(int64_t), slot);
}

static uint32_t *grains_of(const struct board *board, uint32_t slot)
{
	return element_of(board, board->geometry.grains_offset,
			  board->geometry.chunk * sizeof(uint32_t), slot);
}

static bool is_slot(const struct board *board, uint32_t slot)
{
	return slot < board->geometry.max_slots;
}

const struct layout_slot *board_slot_of(const struct board *board, uint32_t slot)
{
	return is_slot(board, slot) ? slot_of(board, slot) : NULL;
}

BASE_HOT const uint8_t *board_status_of(const struct board *board, uint32_t slot)
{
	return is_slot(board, slot) ? status_of(board, slot) : NULL;
}

BASE_HOT const int64_t *board_ids_of(const struct board *board, uint32_t slot)
{
	return is_slot(board, slot) ? ids_of(board, slot) : NULL;
}

BASE_HOT const uint32_t *board_grains_of(const struct board *board, uint32_t slot)
{
	return is_slot(board, slot) ? grains_of(board, slot) : NULL;
}

/* ---- accessd writes it ---- */

void board_slot_begin(struct board *board, uint32_t slot, uint64_t instance, uint64_t lap,
		      const int64_t *ids, uint32_t count, const uint32_t *grains, uint32_t n_grains,
		      bool is_private)
{
	struct layout_slot *s = slot_of(board, slot);

	board_slot_empty(board, slot);
	s->d_lap = lap;
	s->d_count = count;
	s->d_grains = n_grains;
	s->d_private = is_private;
	memset(status_of(board, slot), LAYOUT_SAMPLE_PENDING, count);
	memcpy(ids_of(board, slot), ids, count * sizeof(*ids));
	if (n_grains)
		memcpy(grains_of(board, slot), grains, n_grains * sizeof(*grains));
	/* B1: release, pairs with the acquire of whoever reads d_instance first (board_check()). */
	atomic_store_explicit(&s->d_instance, instance, memory_order_release);
}

void board_slot_status(struct board *board, uint32_t slot, uint32_t sample, uint8_t status)
{
	status_of(board, slot)[sample] = status;
}

void board_slot_watermark(struct board *board, uint32_t slot, uint32_t watermark)
{
	/* B2: release of states and pixels below it, pairs with B3. seq_cst, as the rank's arm is
	 * looked for after it (W3 in grant.c). */
	atomic_store_explicit(&slot_of(board, slot)->d_watermark, watermark, memory_order_seq_cst);
}

void board_slot_empty(struct board *board, uint32_t slot)
{
	struct layout_slot *s = slot_of(board, slot);

	atomic_store_explicit(&s->d_instance, 0, memory_order_relaxed);
	atomic_store_explicit(&s->d_watermark, 0, memory_order_relaxed);
}

BASE_HOT uint32_t board_slot_read_watermark(const struct board *board, uint32_t slot)
{
	uint32_t watermark;

	if (!is_slot(board, slot))
		return 0;
	/* B3: acquire, pairs with B2. seq_cst, as it follows the arm (W1 in grant.c): before a sleep
	 * the rank sees the watermark or accessd sees the arm. */
	watermark = atomic_load_explicit(&slot_of(board, slot)->d_watermark, memory_order_seq_cst);
	return BASE_MIN(watermark, board->geometry.chunk);
}

BASE_HOT void board_slot_read(const struct board *board, uint32_t slot, struct board_chunk *ret)
{
	const struct layout_slot *s = slot_of(board, slot);

	/* acquire, pairs with B1 */
	ret->instance = atomic_load_explicit(&s->d_instance, memory_order_acquire);
	ret->lap = __atomic_load_n(&s->d_lap, __ATOMIC_RELAXED);
	ret->count = __atomic_load_n(&s->d_count, __ATOMIC_RELAXED);
	ret->n_grains = __atomic_load_n(&s->d_grains, __ATOMIC_RELAXED);
}

/* ---- ranks attach to it ---- */

static void geometry_of_head(const struct layout_board_wide *wide, struct board_geometry *ret)
{
	const struct layout_board *head = &wide->board;

	*ret = (struct board_geometry){
	    .max_slots = head->max_slots,
	    .chunk = head->chunk,
	    .grain = head->grain,
	    .n_fields = head->n_fields,
	    .n_samples = head->n_samples,
	    .seed = head->seed,
	};
	memcpy(ret->dataset, head->dataset, sizeof(ret->dataset));
	memcpy(ret->stream, head->stream, sizeof(ret->stream));
	memcpy(ret->field, head->field, sizeof(head->field));
	memcpy(ret->field + LAYOUT_FIRST_FIELDS, wide->more, sizeof(wide->more));
}

/* Plans again from what the head says and compares: 0 or BOARD_E_BAD. */
static int head_check(const struct layout_board_wide *head, uint64_t bytes,
		      struct board_geometry *ret)
{
	struct layout_board_wide again = *head;

	if (head->board.magic != LAYOUT_MAGIC_BOARD)
		return BOARD_E_BAD;
	geometry_of_head(head, ret);
	for (uint32_t i = 0; i < LAYOUT_MAX_FIELDS; i++)
		if (i < ret->n_fields && ret->field[i].sample_bytes == 0)
			return BOARD_E_BAD;
	if (board_plan(ret))
		return BOARD_E_BAD;
	head_fill(ret, &again);
	if (memcmp(&again, head, sizeof(again)) || head->board.bytes != bytes)
		return BOARD_E_BAD;
	return 0;
}

int board_attach(int fd, struct board *ret)
{
	struct board board = {.writable = false};
	struct layout_board_wide head;
	uint64_t bytes;
	int r = region_size(fd, REGION_READ_ONLY, &bytes);

	if (r)
		return r < 0 ? r : BOARD_E_BAD;
	if (bytes < LAYOUT_BOARD_HEAD)
		return BOARD_E_BAD;
	r = region_map(fd, bytes, false, &board.map);
	if (r)
		return r;
	memcpy(&head, board.map, sizeof(head));
	r = head_check(&head, bytes, &board.geometry);
	if (r) {
		region_unmap(board.map, bytes);
		return r;
	}
	*ret = board;
	return 0;
}

void board_detach(struct board *board)
{
	region_unmap(board->map, board->geometry.board_bytes);
	board->map = NULL;
}

/* ---- the checker ---- */

static const char *check_samples(const struct board *board, uint32_t slot, uint32_t watermark)
{
	const struct layout_slot *s = slot_of(board, slot);
	const uint8_t *status = status_of(board, slot);
	const int64_t *ids = ids_of(board, slot);

	for (uint32_t i = 0; i < s->d_count; i++) {
		if (status[i] > LAYOUT_SAMPLE_FILTERED)
			return "a sample has a state that does not exist";
		if (i < watermark && status[i] == LAYOUT_SAMPLE_PENDING)
			return "a sample below the watermark is not finished";
		if (ids[i] < 0 || (uint64_t)ids[i] >= board->geometry.n_samples)
			return "a sample id is outside the dataset";
	}
	return NULL;
}

static const char *check_slot(const struct board *board, uint32_t slot)
{
	const struct board_geometry *geometry = &board->geometry;
	const struct layout_slot *s = slot_of(board, slot);
	const uint32_t *grains = grains_of(board, slot);
	uint64_t n_grains = (geometry->n_samples + geometry->grain - 1) / geometry->grain;
	uint64_t instance = atomic_load_explicit(&s->d_instance, memory_order_acquire);
	uint32_t watermark = atomic_load_explicit(&s->d_watermark, memory_order_acquire);

	if (instance == 0)
		return watermark ? "an empty slot has a watermark" : NULL;
	if (s->d_count == 0 || s->d_count > geometry->chunk || s->d_grains > s->d_count)
		return "a slot's counts are out of bounds";
	if (s->d_private > 1)
		return "a slot's private flag is neither 0 nor 1";
	if (watermark > s->d_count)
		return "a watermark is above its slot's count";
	for (uint32_t i = 0; i < s->d_grains; i++)
		if (grains[i] >= n_grains)
			return "a grain is outside the dataset";
	for (uint32_t other = 0; other < slot; other++)
		if (atomic_load_explicit(&slot_of(board, other)->d_instance,
					 memory_order_relaxed) == instance)
			return "two slots hold the same instance";
	return check_samples(board, slot, watermark);
}

const char *board_check(const struct board *board)
{
	struct board_geometry geometry;

	if (head_check(board->map, board->geometry.board_bytes, &geometry))
		return "the head of the board contradicts itself";
	if (memcmp(&geometry, &board->geometry, sizeof(geometry)))
		return "the head of the board differs from the private copy";
	for (uint32_t slot = 0; slot < geometry.max_slots; slot++) {
		const char *broken = check_slot(board, slot);

		if (broken)
			return broken;
	}
	return NULL;
}
