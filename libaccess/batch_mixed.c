/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mixup and cutmix join each sample of a batch with the one before it, mosaic (mosaic/mosaic_batch.c) with three others. An objective
 * (objective/objective_batch.c) makes of each sample of tokens what is to be learned of it.
 * So what comes out is no view of anything that others may see: it is written into a private buffer, which costs about
 * what a copy of the batch does. In return the slot goes back as soon as that is done, and jobs that differ in
 * these ops alone, or have none, share everything.
 *
 * A pipeline without them passes one test of a flag on its way. One with them has a buffer reserved before
 * a batch is taken, so that no batch is lost for want of memory; the sums are done with the turn, but
 * without the lock. As many batches may be held as windows could be, two slots' worth: a job that collects
 * them is told so, as it would be told without these ops.
 *
 * accessd has parsed the ops and checked them against the pipeline. What it says is checked again here,
 * against the fields as the slot table has them, since addresses follow from it.
 */

#include "libaccess/batch_mixed.h"

#include "libaccess/error.h"
#include "libaccess/carry.h"

#define BATCH_MIXED_POOL 4
#define BATCH_MIXED_POISON 0xa5

/* ---- fields ---- */

/* The number of the field of that name in slots; schema->n: none. */
static uint32_t batch_mixed_find(const struct schema *schema, const char *name)
{
	uint32_t i = 0;

	while (i < schema->n && (strcmp(schema->field[i].name, name) != 0 ||
				 schema->field[i].where != LAYOUT_IN_SLOT))
		i++;
	return i;
}

/* Can values of this type be added up? Those of the others are exchanged whole, at most. */
static bool batch_mixed_is_summed(const struct mixed_ask *ask, uint32_t dtype)
{
	if (dtype == LAYOUT_F32 || dtype == LAYOUT_F16 || dtype == LAYOUT_BF16)
		return true;
	return dtype == LAYOUT_U8 && ask->n == 1 && ask->op[0].kind == BATCH_MIX_CUTMIX;
}

static bool batch_mixed_set_image(struct batch_mixed *batch_mixed, const struct schema_field *image)
{
	const uint64_t *side = image->shape + batch_mixed->ask.is_planar;
	uint64_t bytes = layout_dtype_bytes(image->dtype);

	if (image->ndim != 3 || !batch_mixed_is_summed(&batch_mixed->ask, image->dtype) ||
	    side[0] < 1 || side[1] < 1 || side[0] > UINT32_MAX || side[1] > UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < 3; i++)
		if (__builtin_mul_overflow(bytes, image->shape[i], &bytes))
			return false;
	batch_mixed->height = (uint32_t)side[0];
	batch_mixed->width = (uint32_t)side[1];
	return bytes == image->sample_bytes;
}

/* A class number, or the probability of each class, becomes the latter. */
static bool batch_mixed_set_label(struct batch_mixed *batch_mixed, struct schema_field *label)
{
	uint32_t classes = batch_mixed->ask.classes;

	if (label->dtype == LAYOUT_F32 && label->ndim == 1)
		return label->shape[0] >= 1 &&
		       label->sample_bytes == label->shape[0] * sizeof(float) &&
		       (!classes || label->shape[0] == classes);
	if (label->dtype != LAYOUT_I64 || label->ndim != 0 || !classes)
		return false;
	label->dtype = LAYOUT_F32;
	label->ndim = 1;
	label->shape[0] = classes;
	label->sample_bytes = classes * sizeof(float);
	return true;
}

int batch_mixed_begin(struct batch_mixed *batch_mixed, const struct mixed_ask *ask,
		      const struct schema *schema, struct diag *diag)
{
	uint32_t image = batch_mixed_find(schema, "image"),
		 label = batch_mixed_find(schema, "label");

	batch_mixed->ask = *ask;
	if (batch_mixed->objective.objective.kind && !batch_mixed_joins(batch_mixed))
		return objective_batch_begin(&batch_mixed->objective, schema, &batch_mixed->schema,
					     diag);
	if (batch_mixed->objective.objective.kind)
		return diag_fail(diag, OA_E_INVALID,
				 "oa_open(): options.objective is for tokens, and the pipeline has "
				 "mosaic, mixup or cutmix");
	if (ask->has_mosaic) {
		int r = mosaic_batch_begin(&batch_mixed->mosaic, &ask->mosaic, schema,
					   &batch_mixed->schema);

		if (r == -EPROTO)
			return diag_fail(diag, r, MIXED_ASK_NONSENSE);
		return r ? error_of_errno(diag, r, "opening a stream with mosaic") : 0;
	}
	if (!ask->n)
		return 0;
	if (image == schema->n || label == schema->n)
		return diag_fail(diag, -EPROTO, MIXED_ASK_NONSENSE);
	batch_mixed->schema = *schema;
	batch_mixed->image = image;
	batch_mixed->label = label;
	if (!batch_mixed_set_image(batch_mixed, &schema->field[image]) ||
	    !batch_mixed_set_label(batch_mixed, &batch_mixed->schema.field[label]))
		return diag_fail(diag, -EPROTO, MIXED_ASK_NONSENSE);
	schema_lay_out(&batch_mixed->schema);
	return 0;
}

bool batch_mixed_joins(const struct batch_mixed *batch_mixed)
{
	return batch_mixed->ask.n > 0 || batch_mixed->ask.has_mosaic;
}

bool batch_mixed_is_used(const struct batch_mixed *batch_mixed)
{
	return batch_mixed_joins(batch_mixed) || batch_mixed->objective.objective.kind;
}

/* ---- buffers ---- */

void batch_mixed_fini(struct batch_mixed *batch_mixed)
{
	while (batch_mixed->pool) {
		struct batch_mixed_buffer *buffer = batch_mixed->pool;

		batch_mixed->pool = buffer->next;
		free(buffer->memory);
		free(buffer);
	}
	batch_mixed->n_pool = 0;
	mosaic_batch_fini(&batch_mixed->mosaic);
	objective_batch_fini(&batch_mixed->objective);
}

void batch_mixed_free(struct batch_mixed *batch_mixed, struct batch_mixed_buffer *buffer)
{
	if (batch_mixed->is_poisoned)
		memset(buffer->memory, BATCH_MIXED_POISON, (size_t)batch_mixed->schema.bytes);
	if (batch_mixed->n_pool < BATCH_MIXED_POOL && !batch_mixed->is_closed) {
		buffer->next = batch_mixed->pool;
		batch_mixed->pool = buffer;
		batch_mixed->n_pool++;
		return;
	}
	free(buffer->memory);
	free(buffer);
}

int batch_mixed_reserve(struct batch_mixed *batch_mixed)
{
	struct batch_mixed_buffer *buffer;

	if (batch_mixed->pool)
		return 0;
	buffer = calloc(1, sizeof(*buffer));
	if (buffer)
		buffer->memory = aligned_alloc(64, (size_t)batch_mixed->schema.bytes);
	if (!buffer || !buffer->memory) {
		free(buffer);
		return -ENOMEM;
	}
	batch_mixed->pool = buffer;
	batch_mixed->n_pool++;
	return 0;
}

struct batch_mixed_buffer *batch_mixed_take(struct batch_mixed *batch_mixed)
{
	struct batch_mixed_buffer *buffer = batch_mixed->pool;

	batch_mixed->pool = buffer->next;
	batch_mixed->n_pool--;
	return buffer;
}

/* ---- images ---- */

typedef void batch_mixed_sum_fn(const struct batch_mixed *batch_mixed,
				const struct batch_mix *batch_mix, const uint8_t *own,
				const uint8_t *other, uint8_t *out);

static void batch_mixed_mixup(const struct batch_mixed *batch_mixed,
			      const struct batch_mix *batch_mix, const uint8_t *own,
			      const uint8_t *other, uint8_t *out)
{
	const struct schema_field *image = &batch_mixed->schema.field[batch_mixed->image];
	size_t n = (size_t)(image->sample_bytes / layout_dtype_bytes(image->dtype));

	if (image->dtype == LAYOUT_F32)
		batch_mix_f32((float *)(void *)out, (const float *)(const void *)own,
			      (const float *)(const void *)other, n, batch_mix->lambda);
	else if (image->dtype == LAYOUT_F16)
		batch_mix_f16((uint16_t *)(void *)out, (const uint16_t *)(const void *)own,
			      (const uint16_t *)(const void *)other, n, batch_mix->lambda);
	else
		batch_mix_bf16((uint16_t *)(void *)out, (const uint16_t *)(const void *)own,
			       (const uint16_t *)(const void *)other, n, batch_mix->lambda);
}

static void batch_mixed_cutmix(const struct batch_mixed *batch_mixed,
			       const struct batch_mix *batch_mix, const uint8_t *own,
			       const uint8_t *other, uint8_t *out)
{
	const struct schema_field *image = &batch_mixed->schema.field[batch_mixed->image];
	size_t element = (size_t)layout_dtype_bytes(image->dtype);
	bool is_planar = batch_mixed->ask.is_planar;
	size_t planes = is_planar ? (size_t)image->shape[0] : 1;
	size_t pixel = is_planar ? element : element * (size_t)image->shape[2];
	size_t row = pixel * batch_mixed->width,
	       bytes = pixel * (batch_mix->right - batch_mix->left);

	memcpy(out, own, (size_t)image->sample_bytes);
	for (size_t plane = 0; plane < planes; plane++) {
		for (size_t y = batch_mix->top; y < batch_mix->bottom; y++) {
			size_t at =
			    (plane * batch_mixed->height + y) * row + pixel * batch_mix->left;

			memcpy(out + at, other + at, bytes);
		}
	}
}

static void batch_mixed_copy(const struct batch_mixed *batch_mixed,
			     const struct batch_mix *batch_mix, const uint8_t *own,
			     const uint8_t *other, uint8_t *out)
{
	(void)batch_mix;
	(void)other;
	memcpy(out, own, (size_t)batch_mixed->schema.field[batch_mixed->image].sample_bytes);
}

static void batch_mixed_images(const struct batch_mixed *batch_mixed,
			       const struct batch_mix *batch_mix, const uint8_t *from,
			       uint32_t count, uint8_t *to)
{
	static batch_mixed_sum_fn *const sums[] = {
	    [BATCH_MIX_NONE] = batch_mixed_copy,
	    [BATCH_MIX_MIXUP] = batch_mixed_mixup,
	    [BATCH_MIX_CUTMIX] = batch_mixed_cutmix,
	};
	uint64_t bytes = batch_mixed->schema.field[batch_mixed->image].sample_bytes;

	for (uint32_t i = 0; i < count; i++)
		sums[batch_mix->kind](batch_mixed, batch_mix, from + i * bytes,
				      from + (i ? i - 1 : count - 1) * bytes, to + i * bytes);
}

/* ---- labels ---- */

/* Each sample's class, checked: count, or the number of the first one that is none. */
static uint32_t batch_mixed_check_classes(const int64_t *labels, uint32_t count, uint64_t classes)
{
	uint32_t i = 0;

	while (i < count && labels[i] >= 0 && (uint64_t)labels[i] < classes)
		i++;
	return i;
}

/* count, or the number of a sample whose label is no class. */
static uint32_t batch_mixed_labels(const struct batch_mixed *batch_mixed, bool is_class,
				   const struct batch_mix *batch_mix, const void *from,
				   uint32_t count, void *to)
{
	const size_t classes = (size_t)batch_mixed->schema.field[batch_mixed->label].shape[0];
	const int64_t *label = from;
	const float *row = from;
	float *out = to;

	if (is_class) {
		uint32_t good = batch_mixed_check_classes(label, count, classes);

		for (uint32_t i = 0; good == count && i < count; i++)
			batch_mix_classes(out + i * classes, (uint64_t)label[i],
					  (uint64_t)label[i ? i - 1 : count - 1], classes,
					  batch_mix->lambda);
		return good;
	}
	for (uint32_t i = 0; i < count; i++)
		batch_mix_f32(out + i * classes, row + i * classes,
			      row + (i ? i - 1 : count - 1) * classes, classes, batch_mix->lambda);
	return count;
}

/* ---- a batch ---- */

void batch_mixed_note(struct batch_mixed *batch_mixed, const struct progress *progress,
		      const struct oa_batch *batch)
{
	struct listing_key first = {0};

	if (batch_mixed->objective.objective.kind) {
		objective_batch_note(&batch_mixed->objective, progress, batch);
		return;
	}
	if (batch->held && batch->count)
		progress_keys(progress, batch->held, batch->first, 1, &first);
	else if (batch->count)
		first = batch->carry->keys[0];
	batch_mixed->key = (struct batch_mix_key){first.seed, first.nonce, batch->epoch,
						  batch->count ? batch->ids[0] : 0};
}

uint32_t batch_mixed_fill(const struct batch_mixed *batch_mixed, const struct schema *schema,
			  const struct oa_batch *batch, uint8_t *memory)
{
	struct batch_mix batch_mix;
	uint32_t good = batch->count;

	if (batch_mixed->objective.objective.kind) {
		objective_batch_fill(&batch_mixed->objective, schema, &batch_mixed->schema, batch,
				     memory);
		return good;
	}
	if (batch_mixed->ask.has_mosaic) {
		mosaic_batch_fill(&batch_mixed->mosaic, &batch_mixed->key, schema,
				  &batch_mixed->schema, batch, memory);
		return good;
	}
	batch_mix = batch_mix_draw(batch_mixed->ask.op, batch_mixed->ask.n, &batch_mixed->key,
				   batch_mixed->height, batch_mixed->width);
	memcpy(memory, batch->ids, batch->count * sizeof(*batch->ids));
	for (uint32_t i = 0; i < schema->n; i++) {
		const struct schema_field *field = &batch_mixed->schema.field[i];
		uint8_t *to = memory + field->offset;

		if (field->where != LAYOUT_IN_SLOT)
			continue;
		if (i == batch_mixed->image)
			batch_mixed_images(batch_mixed, &batch_mix, batch_data(batch, i),
					   batch->count, to);
		else if (i == batch_mixed->label)
			good =
			    batch_mixed_labels(batch_mixed, schema->field[i].dtype == LAYOUT_I64,
					       &batch_mix, batch_data(batch, i), batch->count, to);
		else
			memcpy(to, batch_data(batch, i),
			       (size_t)(batch->count * field->sample_bytes));
	}
	return good;
}
