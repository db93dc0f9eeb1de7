/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mixup and cutmix. Each sample of a batch is joined with the one before it, so what comes out is no
 * view of anything that others may see: it is written into a private buffer, which costs about what a
 * copy of the batch does. In return the slot goes back as soon as that is done, and jobs that differ in
 * these ops alone, or have none, share everything.
 *
 * A pipeline without them passes one test of a flag on its way. One with them has a buffer reserved before
 * a batch is taken, so that no batch is lost for want of memory; the sums are done with the turn, but
 * without the lock. As many batches may be held as windows could be, two slots' worth: a job that collects
 * them is told so, as it would be told without these ops.
 *
 * accessd has parsed the ops and checked them against the pipeline. What it says is checked again here,
 * against the fields as the board has them, since addresses follow from it.
 */

#include "libaccess/mingled.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libaccess/error.h"
#include "libaccess/stream.h"
#include "shmring/proto.h"

#define MINGLED_POOL 4
#define MINGLED_POISON 0xa5

/* ---- what accessd says ---- */

static int mingled_nonsense(struct diag *diag)
{
	return error_set(diag, -EPROTO,
			 "accessd's mixup or cutmix makes no sense, or does not fit the fields of "
			 "the pipeline: is it an accessd?");
}

int mingled_read(const struct wire_in *opened, struct mingled_ask *ret, struct diag *diag)
{
	struct proto_mingle item[MINGLE_MAX];
	struct mingled_ask ask = {.n = 0};
	const void *bytes;
	size_t size;

	*ret = ask;
	if (wire_get_bytes(opened, PROTO_KEY_MINGLE, &bytes, &size))
		return 0;
	if (size == 0 || size > sizeof(item) || size % sizeof(item[0]))
		return mingled_nonsense(diag);
	memcpy(item, bytes, size);
	ask.n = (uint32_t)(size / sizeof(item[0]));
	ask.is_planar = item[0].is_planar;
	ask.classes = item[0].classes;
	for (uint32_t i = 0; i < ask.n; i++) {
		if (item[i].is_planar != ask.is_planar || item[i].classes != ask.classes ||
		    item[i].kind > MINGLE_CUTMIX)
			return mingled_nonsense(diag);
		ask.op[i] =
		    (struct mingle_op){(enum mingle_kind)item[i].kind, item[i].alpha, item[i].p};
	}
	if (!mingle_is_good(ask.op, ask.n) || ask.classes > MINGLE_MAX_CLASSES)
		return mingled_nonsense(diag);
	*ret = ask;
	return 0;
}

bool mingled_same(const struct mingled_ask *a, const struct mingled_ask *b)
{
	if (a->n != b->n || a->is_planar != b->is_planar || a->classes != b->classes)
		return false;
	for (uint32_t i = 0; i < a->n; i++)
		if (a->op[i].kind != b->op[i].kind || a->op[i].alpha != b->op[i].alpha ||
		    a->op[i].p != b->op[i].p)
			return false;
	return true;
}

/* ---- fields ---- */

/* The number of the field of that name in slots, with so many dimensions; n_fields: none. */
static uint32_t mingled_find(const struct oa_stream *stream, const char *name)
{
	uint32_t i = 0;

	while (i < stream->n_fields && (strcmp(stream->field[i].name, name) != 0 ||
					stream->field[i].where != LAYOUT_IN_SLOT))
		i++;
	return i;
}

/* Can values of this type be added up? Those of the others are exchanged whole, at most. */
static bool mingled_is_summed(const struct mingled_ask *ask, uint32_t dtype)
{
	if (dtype == LAYOUT_F32 || dtype == LAYOUT_F16 || dtype == LAYOUT_BF16)
		return true;
	return dtype == LAYOUT_U8 && ask->n == 1 && ask->op[0].kind == MINGLE_CUTMIX;
}

static bool mingled_set_image(struct oa_stream *stream, const struct stream_field *image)
{
	struct mingled *mingled = &stream->mingled;
	const uint64_t *side = image->shape + mingled->ask.is_planar;
	uint64_t bytes = layout_dtype_bytes(image->dtype);

	if (image->ndim != 3 || !mingled_is_summed(&mingled->ask, image->dtype) || side[0] < 1 ||
	    side[1] < 1 || side[0] > UINT32_MAX || side[1] > UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < 3; i++)
		if (__builtin_mul_overflow(bytes, image->shape[i], &bytes))
			return false;
	mingled->height = (uint32_t)side[0];
	mingled->width = (uint32_t)side[1];
	return bytes == image->sample_bytes;
}

/* A class number, or the probability of each class, becomes the latter. */
static bool mingled_set_label(struct mingled *mingled, struct stream_field *label)
{
	uint32_t classes = mingled->ask.classes;

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

int mingled_begin(struct oa_stream *stream, const struct mingled_ask *ask, struct diag *diag)
{
	struct mingled *mingled = &stream->mingled;
	uint32_t image = mingled_find(stream, "image"), label = mingled_find(stream, "label");

	mingled->ask = *ask;
	if (!ask->n)
		return 0;
	if (image == stream->n_fields || label == stream->n_fields)
		return mingled_nonsense(diag);
	memcpy(mingled->field, stream->field, sizeof(mingled->field));
	mingled->image = image;
	mingled->label = label;
	if (!mingled_set_image(stream, &stream->field[image]) ||
	    !mingled_set_label(mingled, &mingled->field[label]))
		return mingled_nonsense(diag);
	mingled->bytes = stream_lay_out(mingled->field, stream->n_fields, stream->batch);
	stream->is_mingled = true;
	return 0;
}

/* ---- buffers ---- */

void mingled_fini(struct mingled *mingled)
{
	while (mingled->pool) {
		struct mingled_buffer *buffer = mingled->pool;

		mingled->pool = buffer->next;
		free(buffer->memory);
		free(buffer);
	}
	mingled->n_pool = 0;
}

void mingled_free(struct oa_stream *stream, struct mingled_buffer *buffer)
{
	struct mingled *mingled = &stream->mingled;

	if (stream->flags & OA_POISON)
		memset(buffer->memory, MINGLED_POISON, (size_t)mingled->bytes);
	if (mingled->n_pool < MINGLED_POOL && !stream->is_closed) {
		buffer->next = mingled->pool;
		mingled->pool = buffer;
		mingled->n_pool++;
		return;
	}
	free(buffer->memory);
	free(buffer);
}

static int mingled_add(struct mingled *mingled)
{
	struct mingled_buffer *buffer = calloc(1, sizeof(*buffer));

	if (buffer)
		buffer->memory = aligned_alloc(64, (size_t)mingled->bytes);
	if (!buffer || !buffer->memory) {
		free(buffer);
		return -ENOMEM;
	}
	mingled->pool = buffer;
	mingled->n_pool++;
	return 0;
}

int mingled_reserve(struct oa_stream *stream)
{
	uint64_t most =
	    (uint64_t)LAYOUT_MAX_PINS * BASE_MAX(stream->hand / stream->batch, (uint32_t)1);

	if (stream->failed || stream->has_ended)
		return 0; /* there will be no batch */
	if (!(stream->flags & OA_COPY) && stream->stats.outstanding >= most)
		return stream_error(
		    stream, OA_E_PINS,
		    "you hold %llu batches that mixup or cutmix made, as many as two slots would "
		    "hold; release one before oa_next(), or open with OA_COPY",
		    (unsigned long long)stream->stats.outstanding);
	if (!stream->mingled.pool && mingled_add(&stream->mingled))
		return stream_error(stream, -ENOMEM,
				    "oa_next(): out of memory for a batch of mixup or cutmix");
	return 0;
}

/* ---- images ---- */

typedef void mingled_sum_fn(const struct mingled *mingled, const struct mingle *mingle,
			    const uint8_t *own, const uint8_t *other, uint8_t *out);

static void mingled_mixup(const struct mingled *mingled, const struct mingle *mingle,
			  const uint8_t *own, const uint8_t *other, uint8_t *out)
{
	const struct stream_field *image = &mingled->field[mingled->image];
	size_t n = (size_t)(image->sample_bytes / layout_dtype_bytes(image->dtype));

	if (image->dtype == LAYOUT_F32)
		mingle_f32((float *)(void *)out, (const float *)(const void *)own,
			   (const float *)(const void *)other, n, mingle->lambda);
	else if (image->dtype == LAYOUT_F16)
		mingle_f16((uint16_t *)(void *)out, (const uint16_t *)(const void *)own,
			   (const uint16_t *)(const void *)other, n, mingle->lambda);
	else
		mingle_bf16((uint16_t *)(void *)out, (const uint16_t *)(const void *)own,
			    (const uint16_t *)(const void *)other, n, mingle->lambda);
}

static void mingled_cutmix(const struct mingled *mingled, const struct mingle *mingle,
			   const uint8_t *own, const uint8_t *other, uint8_t *out)
{
	const struct stream_field *image = &mingled->field[mingled->image];
	size_t element = (size_t)layout_dtype_bytes(image->dtype);
	bool is_planar = mingled->ask.is_planar;
	size_t planes = is_planar ? (size_t)image->shape[0] : 1;
	size_t pixel = is_planar ? element : element * (size_t)image->shape[2];
	size_t row = pixel * mingled->width, bytes = pixel * (mingle->right - mingle->left);

	memcpy(out, own, (size_t)image->sample_bytes);
	for (size_t plane = 0; plane < planes; plane++) {
		for (size_t y = mingle->top; y < mingle->bottom; y++) {
			size_t at = (plane * mingled->height + y) * row + pixel * mingle->left;

			memcpy(out + at, other + at, bytes);
		}
	}
}

static void mingled_copy(const struct mingled *mingled, const struct mingle *mingle,
			 const uint8_t *own, const uint8_t *other, uint8_t *out)
{
	(void)mingle;
	(void)other;
	memcpy(out, own, (size_t)mingled->field[mingled->image].sample_bytes);
}

static void mingled_images(const struct mingled *mingled, const struct mingle *mingle,
			   const uint8_t *from, uint32_t count, uint8_t *to)
{
	static mingled_sum_fn *const sums[] = {
	    [MINGLE_NONE] = mingled_copy,
	    [MINGLE_MIXUP] = mingled_mixup,
	    [MINGLE_CUTMIX] = mingled_cutmix,
	};
	uint64_t bytes = mingled->field[mingled->image].sample_bytes;

	for (uint32_t i = 0; i < count; i++)
		sums[mingle->kind](mingled, mingle, from + i * bytes,
				   from + (i ? i - 1 : count - 1) * bytes, to + i * bytes);
}

/* ---- labels ---- */

/* Each sample's class, checked: count, or the number of the first one that is none. */
static uint32_t mingled_check_classes(const int64_t *labels, uint32_t count, uint64_t classes)
{
	uint32_t i = 0;

	while (i < count && labels[i] >= 0 && (uint64_t)labels[i] < classes)
		i++;
	return i;
}

/* count, or the number of a sample whose label is no class. */
static uint32_t mingled_labels(const struct oa_stream *stream, const struct mingle *mingle,
			       const void *from, uint32_t count, void *to)
{
	const struct mingled *mingled = &stream->mingled;
	const size_t classes = (size_t)mingled->field[mingled->label].shape[0];
	const int64_t *label = from;
	const float *row = from;
	float *out = to;

	if (stream->field[mingled->label].dtype == LAYOUT_I64) {
		uint32_t good = mingled_check_classes(label, count, classes);

		for (uint32_t i = 0; good == count && i < count; i++)
			mingle_classes(out + i * classes, (uint64_t)label[i],
				       (uint64_t)label[i ? i - 1 : count - 1], classes,
				       mingle->lambda);
		return good;
	}
	for (uint32_t i = 0; i < count; i++)
		mingle_f32(out + i * classes, row + i * classes,
			   row + (i ? i - 1 : count - 1) * classes, classes, mingle->lambda);
	return count;
}

/* ---- a batch ---- */

void mingled_note(struct oa_stream *stream, const struct oa_batch *batch)
{
	struct listing_key first = {0};

	if (batch->held && batch->count)
		record_keys(stream, batch->held, batch->first, 1, &first);
	else if (batch->count)
		first = batch->carry->keys[0];
	stream->mingled.key = (struct mingle_key){first.seed, first.lap, batch->epoch,
						  batch->count ? batch->ids[0] : 0};
}

/* Everything into the buffer; as mingled_labels(). Without the lock. */
static uint32_t mingled_fill(const struct oa_stream *stream, const struct oa_batch *batch,
			     const struct mingle *mingle, uint8_t *memory)
{
	const struct mingled *mingled = &stream->mingled;
	uint32_t good = batch->count;

	memcpy(memory, batch->ids, batch->count * sizeof(*batch->ids));
	for (uint32_t i = 0; i < stream->n_fields; i++) {
		const struct stream_field *field = &mingled->field[i];
		uint8_t *to = memory + field->carry_offset;

		if (field->where != LAYOUT_IN_SLOT)
			continue;
		if (i == mingled->image)
			mingled_images(mingled, mingle, batch_data(batch, i), batch->count, to);
		else if (i == mingled->label)
			good =
			    mingled_labels(stream, mingle, batch_data(batch, i), batch->count, to);
		else
			memcpy(to, batch_data(batch, i),
			       (size_t)(batch->count * field->sample_bytes));
	}
	return good;
}

/* A label that is no class: nothing can be made of the batch, nor of others with that sample. */
static int mingled_fail(struct oa_stream *stream, struct oa_batch *batch, uint32_t at)
{
	const int64_t *label = batch_data(batch, stream->mingled.label);
	struct diag diag;

	diag_set(
	    &diag,
	    "pipeline: mixup or cutmix: sample %lld has label %lld, and num_classes is %u: give "
	    "the number of the dataset's classes, or map the labels",
	    (long long)batch->ids[at], (long long)label[at], stream->mingled.ask.classes);
	batch_end(stream, batch);
	return stream_fail(stream, OA_E_PIPELINE, diag.text);
}

int mingled_batch(struct oa_stream *stream, struct oa_batch *batch)
{
	struct mingled *mingled = &stream->mingled;
	struct mingled_buffer *buffer = mingled->pool;
	struct mingle mingle = mingle_draw(mingled->ask.op, mingled->ask.n, &mingled->key,
					   mingled->height, mingled->width);
	uint64_t start = base_now_ns();
	uint32_t good;

	mingled->pool = buffer->next;
	mingled->n_pool--;
	pthread_mutex_unlock(&stream->lock);
	good = mingled_fill(stream, batch, &mingle, buffer->memory);
	pthread_mutex_lock(&stream->lock);
	if (good < batch->count) {
		mingled_free(stream, buffer);
		return mingled_fail(stream, batch, good);
	}
	stream->stats.mingled++;
	stream->stats.mingled_ns += base_now_ns() - start;
	batch_let_go(stream, batch);
	batch->mingled = buffer;
	batch->ids = (const int64_t *)(const void *)buffer->memory;
	return 0;
}
