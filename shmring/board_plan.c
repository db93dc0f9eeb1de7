/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plan of a stream's memory: a pure function from (slots, chunk, fields) to every size and
 * offset, and the only place where they are computed. accessd makes the memories from it; ranks run
 * it again on what a board says (board.c). So a change of the plan is a change of LAYOUT_VERSION.
 *
 * A slot is its fields' arrays one after the other, each 64-byte aligned, the whole rounded up to
 * pages, as slots are reserved one by one; to huge ones where that costs at most an eighth. Ragged fields will need their own kind of array.
 *
 * Rejected: offsets that a board may choose freely inside its memory, with a check of bounds and
 * overlaps on attaching: the check was longer than the plan and allowed what nobody needs.
 */

#include <errno.h>
#include <string.h>

#include "shmring/board.h"
#include "shmring/region.h"

#define PLAN_LIMIT (UINT64_C(1) << 62) /* sums below it can be rounded up without a thought */
#define PLAN_MAX_GRAIN 32

uint64_t layout_dtype_bytes(uint32_t dtype)
{
	switch (dtype) {
	case LAYOUT_U8:
		return 1;
	case LAYOUT_F16:
	case LAYOUT_BF16:
		return 2;
	case LAYOUT_F32:
		return 4;
	case LAYOUT_I64:
		return 8;
	default:
		return 0;
	}
}

static int plan_product(uint64_t a, uint64_t b, uint64_t *ret)
{
	uint64_t product;

	if (__builtin_mul_overflow(a, b, &product) || product > PLAN_LIMIT)
		return -EOVERFLOW;
	*ret = product;
	return 0;
}

/* Puts an array of count elements at the end of what is laid out so far. */
static int plan_array(uint64_t *end, uint64_t count, uint64_t bytes_each, uint64_t *ret_offset)
{
	uint64_t bytes;
	int r = plan_product(count, bytes_each, &bytes);

	if (r)
		return r;
	*ret_offset = *end;
	*end = base_align_up(*end + bytes, BASE_CACHE_LINE);
	return *end > PLAN_LIMIT ? -EOVERFLOW : 0;
}

static bool field_has_name(const struct layout_field *field)
{
	return field->name[0] && memchr(field->name, 0, sizeof(field->name));
}

static int plan_sample(struct layout_field *field)
{
	uint64_t element = layout_dtype_bytes(field->dtype), bytes = element;

	if (element == 0 || field->ndim > LAYOUT_MAX_DIMS || !field_has_name(field))
		return BOARD_E_BAD;
	for (uint32_t d = 0; d < field->ndim; d++) {
		if (field->shape[d] == 0)
			return BOARD_E_BAD;
		if (plan_product(bytes, field->shape[d], &bytes))
			return -EOVERFLOW;
	}
	if (field->sample_bytes == 0)
		field->sample_bytes = bytes;
	if (field->sample_bytes < bytes || field->sample_bytes % element)
		return BOARD_E_BAD;
	return 0;
}

static int plan_field(struct board_geometry *geometry, uint32_t index, uint64_t *slot_end)
{
	struct layout_field *field = &geometry->field[index];
	int r = plan_sample(field);

	if (r)
		return r;
	for (uint32_t other = 0; other < index; other++)
		if (!strcmp(geometry->field[other].name, field->name))
			return BOARD_E_BAD;
	if (field->where == LAYOUT_IN_SLOT)
		return plan_array(slot_end, geometry->chunk, field->sample_bytes, &field->offset);
	if (field->where != LAYOUT_IN_BOARD || field->dtype != LAYOUT_I64 ||
	    field->sample_bytes != sizeof(int64_t))
		return BOARD_E_BAD;
	field->offset = 0;
	return 0;
}

static int plan_slots(struct board_geometry *geometry)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < geometry->n_fields; i++) {
		int r = plan_field(geometry, i, &end);

		if (r)
			return r;
	}
	if (end == 0)
		return BOARD_E_BAD;
	geometry->slot_stride =
	    base_align_up(end, end >= 8 * REGION_HUGE ? REGION_HUGE : base_page_size());
	return plan_product(geometry->slot_stride, geometry->max_slots, &geometry->slots_bytes);
}

static int plan_arrays(struct board_geometry *geometry)
{
	uint64_t samples = (uint64_t)geometry->max_slots * geometry->chunk;
	uint64_t end = LAYOUT_BOARD_HEAD;
	int r = plan_array(&end, geometry->max_slots, sizeof(struct layout_slot),
			   &geometry->slot_offset);

	if (!r)
		r = plan_array(&end, samples, sizeof(uint8_t), &geometry->status_offset);
	if (!r)
		r = plan_array(&end, samples, sizeof(int64_t), &geometry->ids_offset);
	if (!r)
		r = plan_array(&end, samples, sizeof(uint32_t), &geometry->grains_offset);
	if (!r)
		geometry->board_bytes = base_align_up(end, base_page_size());
	return r;
}

int board_plan(struct board_geometry *geometry)
{
	uint32_t grain = geometry->grain;
	int r;

	if (geometry->max_slots == 0 || geometry->max_slots > LAYOUT_MAX_SLOTS ||
	    geometry->chunk == 0 || geometry->chunk > LAYOUT_MAX_CHUNK || grain == 0 ||
	    grain > PLAN_MAX_GRAIN || (grain & (grain - 1)) || geometry->n_fields == 0 ||
	    geometry->n_fields > LAYOUT_MAX_FIELDS || geometry->n_samples > INT64_MAX)
		return BOARD_E_BAD;
	r = plan_slots(geometry);
	return r ? r : plan_arrays(geometry);
}
