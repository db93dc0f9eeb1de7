/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plan of a stream's memory: a pure function from (slots, chunk, fields) to every size and
 * offset, and the only place where they are computed. accessd makes the memories from it; ranks run
 * it again on what a slot table says (slot_table.c). So a change of the plan is a change of LAYOUT_VERSION.
 *
 * A slot is its fields' arrays one after the other, each 64-byte aligned, the whole rounded up to
 * pages, as slots are reserved one by one; to huge ones where that costs at most an eighth. A ragged field has the room of its longest sample for each,
 * and a field beside it says how long they are: doc/decisions/300-fields.md.
 *
 * Rejected: offsets that a slot table may choose freely inside its memory, with a check of bounds and
 * overlaps on attaching: the check was longer than the plan and allowed what nobody needs.
 */

#include "shmring/slot_table.h"
#include "shmring/region.h"

#define PLAN_LIMIT (UINT64_C(1) << 62) /* sums below it can be rounded up without a thought */
#define PLAN_MAX_BLOCK 32

uint64_t layout_dtype_bytes(uint32_t dtype)
{
	static const uint8_t bytes[] = {
	    [LAYOUT_U8] = 1,   [LAYOUT_F16] = 2, [LAYOUT_F32] = 4, [LAYOUT_I64] = 8,
	    [LAYOUT_BF16] = 2, [LAYOUT_I8] = 1,  [LAYOUT_I16] = 2, [LAYOUT_I32] = 4,
	    [LAYOUT_U16] = 2,  [LAYOUT_U32] = 4, [LAYOUT_U64] = 8, [LAYOUT_F64] = 8,
	    [LAYOUT_BOOL] = 1,
	};

	return dtype < BASE_ARRAY_LEN(bytes) ? bytes[dtype] : 0;
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
		return SLOT_TABLE_E_BAD;
	for (uint32_t d = 0; d < field->ndim; d++) {
		if (field->shape[d] == 0)
			return SLOT_TABLE_E_BAD;
		if (plan_product(bytes, field->shape[d], &bytes))
			return -EOVERFLOW;
	}
	if (field->sample_bytes == 0)
		field->sample_bytes = bytes;
	if (field->sample_bytes < bytes || field->sample_bytes % element)
		return SLOT_TABLE_E_BAD;
	return 0;
}

/* Is it dense, or does another field say how long its samples are? */
static bool field_has_kind(const struct slot_geometry *geometry, const struct layout_field *field)
{
	const struct layout_field *lengths = &geometry->field[field->lengths % LAYOUT_MAX_FIELDS];

	if (field->kind == LAYOUT_DENSE)
		return field->lengths == 0;
	if (field->kind == LAYOUT_TEXT && (field->dtype != LAYOUT_U8 || field->ndim != 1))
		return false;
	return field->kind <= LAYOUT_TEXT && field->ndim >= 1 && field->where == LAYOUT_IN_SLOT &&
	       field->lengths < geometry->n_fields && lengths->kind == LAYOUT_DENSE &&
	       lengths->dtype == LAYOUT_I64 && lengths->ndim == 0 &&
	       lengths->where == LAYOUT_IN_SLOT;
}

static int plan_field(struct slot_geometry *geometry, uint32_t index, uint64_t *slot_end)
{
	struct layout_field *field = &geometry->field[index];
	int r = field_has_kind(geometry, field) ? plan_sample(field) : SLOT_TABLE_E_BAD;

	if (r)
		return r;
	for (uint32_t other = 0; other < index; other++)
		if (!strcmp(geometry->field[other].name, field->name))
			return SLOT_TABLE_E_BAD;
	if (field->where == LAYOUT_IN_SLOT)
		return plan_array(slot_end, geometry->chunk, field->sample_bytes, &field->offset);
	if (field->where != LAYOUT_IN_TABLE || field->dtype != LAYOUT_I64 ||
	    field->sample_bytes != sizeof(int64_t))
		return SLOT_TABLE_E_BAD;
	field->offset = 0;
	return 0;
}

static int plan_slots(struct slot_geometry *geometry)
{
	uint64_t end = 0;

	for (uint32_t i = 0; i < geometry->n_fields; i++) {
		int r = plan_field(geometry, i, &end);

		if (r)
			return r;
	}
	if (end == 0)
		return SLOT_TABLE_E_BAD;
	geometry->slot_stride =
	    base_align_up(end, end >= 8 * REGION_HUGE ? REGION_HUGE : base_page_size());
	return plan_product(geometry->slot_stride, geometry->max_slots, &geometry->slots_bytes);
}

static int plan_arrays(struct slot_geometry *geometry)
{
	uint64_t samples = (uint64_t)geometry->max_slots * geometry->chunk;
	uint64_t end = LAYOUT_SLOT_TABLE_HEAD;
	int r = plan_array(&end, geometry->max_slots, sizeof(struct layout_slot),
			   &geometry->slot_offset);

	r = r ? r : plan_array(&end, samples, sizeof(uint8_t), &geometry->status_offset);
	r = r ? r : plan_array(&end, samples, sizeof(int64_t), &geometry->ids_offset);
	r = r ? r : plan_array(&end, samples, sizeof(uint32_t), &geometry->blocks_offset);
	if (!r)
		geometry->table_bytes = base_align_up(end, base_page_size());
	return r;
}

bool slot_table_is_wide(const struct slot_geometry *geometry)
{
	for (uint32_t i = 0; i < geometry->n_fields; i++)
		if (geometry->field[i].dtype > LAYOUT_BF16 ||
		    geometry->field[i].kind != LAYOUT_DENSE)
			return true;
	return geometry->n_fields > LAYOUT_FIRST_FIELDS;
}

int slot_table_plan(struct slot_geometry *geometry)
{
	uint32_t block = geometry->block;
	int r;

	if (geometry->max_slots == 0 || geometry->max_slots > LAYOUT_MAX_SLOTS ||
	    geometry->chunk == 0 || geometry->chunk > LAYOUT_MAX_CHUNK || block == 0 ||
	    block > PLAN_MAX_BLOCK || (block & (block - 1)) || geometry->n_fields == 0 ||
	    geometry->n_fields > LAYOUT_MAX_FIELDS || geometry->n_samples > INT64_MAX)
		return SLOT_TABLE_E_BAD;
	r = plan_slots(geometry);
	return r ? r : plan_arrays(geometry);
}
