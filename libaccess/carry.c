/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Left-overs. A batch is a window of one chunk; where a chunk, or a run between holes, ends with
 * fewer samples than a batch, they are copied together here and the slot goes back at once. A full
 * buffer waits in stream->full until the windows of the chunk that completed it are handed out.
 *
 * A buffer holds one batch: the ids, then each field's array at a multiple of 64. It is as large as
 * a batch (37 MiB of 256 uint8 pictures), so it is only made when something is left over, and a few
 * are kept for the next time. OA_COPY uses the same buffers for all batches.
 */

#include "libaccess/stream.h"

#define CARRY_POOL 2
#define CARRY_POISON 0xa5

void carry_destroy(struct carry *carry)
{
	free(carry->memory);
	free(carry->keys);
	free(carry);
}

struct carry *carry_new(struct oa_stream *stream)
{
	struct carry *carry = stream->carry_pool;

	if (carry) {
		stream->carry_pool = carry->next;
		stream->n_carry_pool--;
		carry->next = NULL;
		carry->count = carry->substituted = 0;
		return carry;
	}
	carry = calloc(1, sizeof(*carry));
	if (!carry)
		return NULL;
	carry->memory = aligned_alloc(64, (size_t)stream->schema.bytes);
	if (!carry->memory) {
		free(carry);
		return NULL;
	}
	carry->ids = (int64_t *)(void *)carry->memory;
	if (stream->record.path || stream->is_batch_mixed)
		carry->keys = malloc(stream->schema.batch * sizeof(*carry->keys));
	if ((stream->record.path || stream->is_batch_mixed) && !carry->keys) {
		carry_destroy(carry);
		return NULL;
	}
	return carry;
}

void carry_free(struct oa_stream *stream, struct carry *carry)
{
	if (!carry)
		return;
	if (stream->flags & OA_POISON)
		memset(carry->memory, CARRY_POISON, (size_t)stream->schema.bytes);
	if (stream->n_carry_pool < CARRY_POOL && !stream->is_closed) {
		carry->next = stream->carry_pool;
		stream->carry_pool = carry;
		stream->n_carry_pool++;
		return;
	}
	carry_destroy(carry);
}

void carry_copy(const struct oa_stream *stream, struct carry *carry, const struct held *held,
		uint32_t first, uint32_t count)
{
	const struct slot_geometry *geometry = &held->session->table.geometry;
	const uint8_t *slot = held_memory(held);

	memcpy(carry->ids + carry->count, held->ids + first, count * sizeof(int64_t));
	for (uint32_t i = 0; i < stream->schema.n; i++) {
		const struct schema_field *field = &stream->schema.field[i];

		if (field->where == LAYOUT_IN_SLOT)
			memcpy(carry->memory + field->offset + carry->count * field->sample_bytes,
			       slot + geometry->field[i].offset + first * field->sample_bytes,
			       (size_t)(count * field->sample_bytes));
	}
	if (carry->keys)
		record_keys(stream, held, first, count, carry->keys + carry->count);
	carry->count += count;
}

int carry_add(struct oa_stream *stream, struct held *held, uint32_t count)
{
	held_note_seen(stream, held);
	while (count > 0) {
		uint32_t part;

		if (!stream->carry)
			stream->carry = carry_new(stream);
		if (!stream->carry)
			return -ENOMEM;
		part = BASE_MIN(count, stream->schema.batch - stream->carry->count);
		carry_copy(stream, stream->carry, held, held->at, part);
		stream->carry->substituted += held_meet_substitutes(stream, held, part);
		stream->n_carried += part;
		stream->stats.copied += part;
		stream->has_copied = true;
		held->at += part;
		progress_pass(stream, part);
		count -= part;
		if (stream->carry->count == stream->schema.batch) {
			if (!stream->full)
				stream->full_end = &stream->full;
			*stream->full_end = stream->carry;
			stream->full_end = &stream->carry->next;
			stream->carry = NULL;
		}
	}
	return 0;
}

uint32_t carry_count(const struct oa_stream *stream)
{
	return stream->carry ? stream->carry->count : 0;
}

void carry_clear(struct oa_stream *stream)
{
	while (stream->full) {
		struct carry *carry = stream->full;

		stream->full = carry->next;
		carry_free(stream, carry);
	}
	stream->full_end = &stream->full;
	carry_free(stream, stream->carry);
	stream->carry = NULL;
	stream->n_carried = 0;
}
