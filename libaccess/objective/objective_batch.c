/* SPDX-License-Identifier: Apache-2.0 */

/*
 * An objective is the job's own, as mixup is (batch_mixed.c): the slots have the windows as they are in the file, which jobs
 * with other objectives, or none, share. What it makes of a sample is written into the private buffer of the batch, one
 * pass over its tokens. Samples are made one by one, from keys of their own, so a batch of a mix, or of one sample, has what any
 * other would have.
 *
 * The field of tokens becomes one of another shape; how many fields there are does not change.
 */

#include "libaccess/objective/objective_batch.h"

#include "libaccess/error.h"
#include "libaccess/carry.h"
#include "libaccess/held.h"
#include "libaccess/progress.h"

/* ---- fields ---- */

/* The only field of samples. schema->n: there are others, or none. */
static uint32_t objective_batch_find(const struct schema *schema)
{
	uint32_t found = schema->n;

	for (uint32_t i = 0; i < schema->n; i++) {
		if (schema->field[i].where != LAYOUT_IN_SLOT)
			continue;
		if (found < schema->n)
			return schema->n;
		found = i;
	}
	return found;
}

/* Of tokens() and of packed ones. */
static bool objective_batch_is_from(const struct schema_field *field, struct objective_from *ret)
{
	const bool is_packed = field->ndim == 2 && field->shape[0] == OBJECTIVE_ROWS;
	const uint64_t n = field->ndim == 1 ? field->shape[0] : is_packed ? field->shape[1] : 0;

	if (field->dtype != LAYOUT_I64 || field->kind != LAYOUT_DENSE || n < 1 || n > INT32_MAX)
		return false;
	*ret = (struct objective_from){(uint32_t)(is_packed ? n : n - 1), is_packed};
	return field->sample_bytes == (is_packed ? OBJECTIVE_ROWS : 1) * n * sizeof(int64_t);
}

static void objective_batch_set(struct schema_field *field, const struct objective_shape *shape)
{
	field->ndim = shape->columns ? 2 : 1;
	field->shape[0] = shape->rows;
	field->shape[1] = shape->columns;
	field->sample_bytes = shape->rows * BASE_MAX(shape->columns, UINT64_C(1)) * sizeof(int64_t);
}

int objective_batch_begin(struct objective_batch *objective_batch, const struct schema *schema,
			  struct schema *ret, struct diag *diag)
{
	struct objective_shape shape;
	uint32_t at = objective_batch_find(schema);

	if (at == schema->n || !objective_batch_is_from(&schema->field[at], &objective_batch->from))
		return diag_fail(
		    diag, OA_E_INVALID,
		    "oa_open(): options.objective is for data sets of tokens (seq_len, with or "
		    "without pack), and the samples of this one are no windows of these");
	if (!objective_shape(&objective_batch->objective, &objective_batch->from, &shape))
		return diag_fail(
		    diag, OA_E_INVALID,
		    "oa_open(): options.objective cannot be had of samples of %u tokens%s: spans "
		    "need windows (no pack) of 2 tokens at least, a sentinel for each span, and "
		    "spans and what is between them a token each",
		    objective_batch->from.length,
		    objective_batch->from.is_packed ? ", packed" : "");
	objective_batch->field = at;
	objective_batch->key = calloc(schema->batch, sizeof(*objective_batch->key));
	if (!objective_batch->key)
		return error_of_errno(diag, -ENOMEM, "opening a stream with an objective");
	*ret = *schema;
	objective_batch_set(&ret->field[at], &shape);
	schema_lay_out(ret);
	return 0;
}

/* ---- a batch ---- */

void objective_batch_note(struct objective_batch *objective_batch, const struct progress *progress,
			  const struct oa_batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		struct listing_key key;

		if (batch->held)
			progress_keys(progress, batch->held, batch->first + i, 1, &key);
		else
			key = batch->carry->keys[i];
		objective_batch->key[i] =
		    (struct objective_key){key.seed, key.nonce, batch->epoch, batch->ids[i]};
	}
}

void objective_batch_fill(const struct objective_batch *objective_batch,
			  const struct schema *schema, const struct schema *shown,
			  const struct oa_batch *batch, uint8_t *memory)
{
	const struct schema_field *from = &schema->field[objective_batch->field];
	const struct schema_field *to = &shown->field[objective_batch->field];
	const uint8_t *tokens = batch_data(batch, objective_batch->field);

	memcpy(memory, batch->ids, batch->count * sizeof(*batch->ids));
	for (uint32_t i = 0; i < batch->count; i++)
		objective_make(&objective_batch->objective, &objective_batch->from,
			       &objective_batch->key[i],
			       (const int64_t *)(const void *)(tokens + i * from->sample_bytes),
			       (int64_t *)(void *)(memory + to->offset + i * to->sample_bytes));
}

void objective_batch_fini(struct objective_batch *objective_batch)
{
	free(objective_batch->what);
	free(objective_batch->sentinels);
	free(objective_batch->key);
	objective_batch->what = NULL;
	objective_batch->sentinels = NULL;
	objective_batch->key = NULL;
}
