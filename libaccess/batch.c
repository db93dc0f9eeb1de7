/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Batches in the caller's hands. A batch is a window into a chunk's slot, or a carry buffer of its
 * own, or a buffer of mixup, cutmix and mosaic. It keeps its stream's memory alive: the stream is freed with its last batch, in whichever
 * order the program closes and releases. Batch objects come from a pool, so that a batch costs no
 * malloc().
 *
 * What a batch says never changes while it is live, so reading it needs no lock.
 */

#include "libaccess/error.h"
#include "libaccess/stream.h"

static size_t batch_ids_bytes(const struct oa_stream *stream)
{
	return stream->flags & OA_KEEP ? stream->schema.batch * sizeof(int64_t) : 0;
}

BASE_HOT struct oa_batch *batch_new(struct oa_stream *stream)
{
	struct oa_batch *batch = stream->batch_pool;

	if (batch)
		stream->batch_pool = batch->next;
	else
		batch = malloc(sizeof(*batch) + batch_ids_bytes(stream));
	if (batch)
		*batch = (struct oa_batch){.stream = stream};
	return batch;
}

/* OA_POISON: a window's slot must hold the same instance until it is released. */
static void batch_check(struct oa_stream *stream, const struct oa_batch *batch)
{
	const struct held *held = batch->held;

	if (!held || !held->session || !(stream->flags & OA_POISON) || stream->trouble.failed)
		return;
	if (slot_table_of(&held->session->table, held->slot_number)->d_instance != held->instance)
		trouble_fail(&stream->trouble, -EPROTO,
			     "OA_POISON: a slot was given to another chunk while a batch in it was "
			     "held; this is a bug of accessd, please report it");
}

BASE_HOT void batch_let_go(struct oa_stream *stream, struct oa_batch *batch)
{
	batch_check(stream, batch);
	if (batch->held)
		held_close_window(&stream->chunks, batch->held, batch);
	carry_free(&stream->carries, batch->carry);
	batch->held = NULL;
	batch->carry = NULL;
}

BASE_HOT void batch_end(struct oa_stream *stream, struct oa_batch *batch)
{
	batch->is_live = false;
	batch_let_go(stream, batch);
	if (batch->batch_mixed)
		batch_mixed_free(&stream->batch_mixed, batch->batch_mixed);
	batch->next = stream->batch_pool;
	stream->batch_pool = batch;
	stream->stats.outstanding--;
}

BASE_HOT void oa_release(struct oa_batch *batch)
{
	struct oa_stream *stream;
	bool is_unused;

	if (!batch || !guard_is_ours(&batch->stream->guard))
		return;
	stream = batch->stream;
	pthread_mutex_lock(&stream->lock);
	if (!batch->is_live) {
		pthread_mutex_unlock(&stream->lock);
		return;
	}
	batch_end(stream, batch);
	if (stream->pollable.is_armed &&
	    next_is_ready(stream)) /* it may have waited for the slot */
		pollable_set_timer(&stream->pollable, 1);
	is_unused = stream_is_unused(stream);
	pthread_mutex_unlock(&stream->lock);
	if (is_unused)
		stream_free(stream);
}

/* What mixup, cutmix and mosaic have written is private, and what is in a view may become so. */
static void batch_say_slot(const struct oa_batch *batch, struct oa_batch_info *info)
{
	const struct held *held = batch->batch_mixed ? NULL : batch->held;

	if (!held || held->view)
		return;
	info->slot = held->slot;
	info->slot_bytes = held->session->table.geometry.slot_stride;
	info->session = held->session->number;
}

void oa_batch_info(const struct oa_batch *batch, struct oa_batch_info *ret)
{
	struct oa_batch_info info;
	size_t size;

	if (!batch || !ret)
		return;
	size = BASE_MIN(ret->size, sizeof(info));
	info = (struct oa_batch_info){
	    .size = size,
	    .count = batch->count,
	    .n_fields = batch->stream->schema.n,
	    .epoch = batch->epoch,
	    .step = batch->step,
	    .ids = batch->ids,
	    .substituted = batch->substituted,
	    .copied = batch->copied,
	    .is_last = batch->is_last,
	    .parts = batch->parts,
	    .kept = batch->kept,
	};
	batch_say_slot(batch, &info);
	memcpy(ret, &info, size);
}

const void *batch_data(const struct oa_batch *batch, uint32_t index)
{
	const struct schema_field *field = &batch->stream->schema.field[index];
	const struct held *held = batch->held;

	if (field->where == LAYOUT_IN_TABLE)
		return batch->ids;
	if (batch->batch_mixed)
		return batch->batch_mixed->memory + batch->stream->shown->field[index].offset;
	if (!held)
		return batch->carry->memory + field->offset;
	if (held->view)
		return view_slot(held->view, held->slot_number) + view_offset(held->view, index) +
		       batch->first * field->sample_bytes;
	return held->slot + held->session->table.geometry.field[index].offset +
	       batch->first * field->sample_bytes;
}

int oa_make_writable(struct oa_batch *batch)
{
	if (!batch)
		return OA_E_INVALID;
	if (!batch->held || batch->batch_mixed)
		return 0; /* it has memory of its own */
	if (!batch->held->view)
		return OA_E_INVALID;
	return view_open(batch->held->view, batch->held->slot_number);
}

int oa_batch_field(const struct oa_batch *batch, uint32_t index, struct oa_field *ret)
{
	const struct schema_field *field;
	struct oa_field all;
	int64_t stride;

	if (!batch || !ret || !ret->size || index >= batch->stream->schema.n)
		return OA_E_INVALID;
	field = &batch->stream->shown->field[index];
	all = (struct oa_field){
	    .size = BASE_MIN(ret->size, sizeof(all)),
	    .name = field->name,
	    .dtype = (enum oa_dtype)field->dtype,
	    .ndim = field->ndim + 1,
	    .data = batch_data(batch, index),
	    .bytes = batch->count * field->sample_bytes,
	    .kind = (enum oa_kind)field->kind,
	};
	if (field->kind != LAYOUT_DENSE)
		all.lengths = batch_data(batch, field->lengths);
	all.shape[0] = batch->count;
	all.strides[0] = (int64_t)field->sample_bytes;
	stride = (int64_t)layout_dtype_bytes(field->dtype);
	for (uint32_t i = field->ndim; i > 0; i--) {
		all.shape[i] = field->shape[i - 1];
		all.strides[i] = stride;
		stride *= (int64_t)field->shape[i - 1];
	}
	memcpy(ret, &all, all.size);
	return 0;
}

uint64_t oa_field_length(const struct oa_field *field, uint32_t sample)
{
	uint64_t most, length;

	if (!field || field->size < offsetof(struct oa_field, bytes) || sample >= field->shape[0])
		return 0;
	most = field->ndim > 1 ? field->shape[1] : 0;
	if (field->size < sizeof(*field) || !field->lengths)
		return most;
	/* once: a worker that was taken over may write to it at any moment */
	length = (uint64_t)slot_table_load_length(&field->lengths[sample]);
	return BASE_MIN(length, most);
}
