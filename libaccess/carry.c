/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Left-overs. A batch is a window of one chunk; where a chunk, or a run between holes, ends with
 * fewer samples than a batch, they are copied together here and the slot goes back at once. A full
 * buffer waits in carries->full until the windows of the chunk that completed it are handed out.
 *
 * A buffer holds one batch: the ids, then each field's array at a multiple of 64. It is as large as
 * a batch (37 MiB of 256 uint8 pictures), so it is only made when something is left over, and a few
 * are kept for the next time. OA_COPY uses the same buffers for all batches.
 */

#include "libaccess/carry.h"

#define CARRY_POOL 2
#define CARRY_POISON 0xa5

static void carry_destroy(struct carry *carry)
{
	free(carry->memory);
	free(carry->keys);
	free(carry);
}

void carry_init(struct carries *carries, const struct schema *schema)
{
	*carries = (struct carries){.schema = schema};
	carries->full_end = &carries->full;
}

void carry_fini(struct carries *carries)
{
	while (carries->pool) {
		struct carry *carry = carries->pool;

		carries->pool = carry->next;
		carry_destroy(carry);
	}
}

struct carry *carry_new(struct carries *carries)
{
	struct carry *carry = carries->pool;

	if (carry) {
		carries->pool = carry->next;
		carries->n_pool--;
		carry->next = NULL;
		carry->count = carry->substituted = 0;
		return carry;
	}
	carry = calloc(1, sizeof(*carry));
	if (!carry)
		return NULL;
	carry->memory = aligned_alloc(64, (size_t)carries->schema->bytes);
	carry->ids = (int64_t *)(void *)carry->memory;
	if (carries->has_keys)
		carry->keys = malloc(carries->schema->batch * sizeof(*carry->keys));
	if (!carry->memory || (carries->has_keys && !carry->keys)) {
		carry_destroy(carry);
		return NULL;
	}
	return carry;
}

void carry_free(struct carries *carries, struct carry *carry)
{
	if (!carry)
		return;
	if (carries->is_poisoned)
		memset(carry->memory, CARRY_POISON, (size_t)carries->schema->bytes);
	if (carries->n_pool < CARRY_POOL && !carries->is_closed) {
		carry->next = carries->pool;
		carries->pool = carry;
		carries->n_pool++;
		return;
	}
	carry_destroy(carry);
}

void carry_copy(const struct carries *carries, const struct progress *progress, struct carry *carry,
		const struct held *held, uint32_t first, uint32_t count)
{
	const struct slot_geometry *geometry = &held->session->table.geometry;
	const struct schema *schema = carries->schema;
	const uint8_t *slot = held_memory(held);

	memcpy(carry->ids + carry->count, held->ids + first, count * sizeof(int64_t));
	for (uint32_t i = 0; i < schema->n; i++) {
		const struct schema_field *field = &schema->field[i];

		if (field->where == LAYOUT_IN_SLOT)
			memcpy(carry->memory + field->offset + carry->count * field->sample_bytes,
			       slot + geometry->field[i].offset + first * field->sample_bytes,
			       (size_t)(count * field->sample_bytes));
	}
	if (carry->keys)
		progress_keys(progress, held, first, count, carry->keys + carry->count);
	carry->count += count;
}

uint32_t carry_add(struct carries *carries, struct progress *progress, struct held *held,
		   uint32_t count, struct met *met)
{
	struct carry *carry = carries->filling;

	if (!carry)
		carry = carries->filling = carry_new(carries);
	if (!carry)
		return 0;
	count = BASE_MIN(count, carries->schema->batch - carry->count);
	carry_copy(carries, progress, carry, held, held->at, count);
	carry->substituted += held_meet_substitutes(held, count, met);
	held->at += count;
	progress->n_carried += count;
	progress_pass(progress, count);
	if (carry->count == carries->schema->batch) {
		*carries->full_end = carry;
		carries->full_end = &carry->next;
		carries->filling = NULL;
	}
	return count;
}

struct carry *carry_take(struct carries *carries, struct carry **from)
{
	struct carry *carry = *from;

	*from = carry->next;
	carry->next = NULL;
	if (!carries->full)
		carries->full_end = &carries->full;
	return carry;
}

void carry_clear(struct carries *carries)
{
	while (carries->full)
		carry_free(carries, carry_take(carries, &carries->full));
	carry_free(carries, carries->filling);
	carries->filling = NULL;
}
