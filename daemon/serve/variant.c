/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/serve/variant.h"

#include "daemon/serve/stream.h"
#include "pipeline/pipeline.h"

void variant_account(struct variant *variant, int64_t bytes)
{
	variant->memory = (uint64_t)((int64_t)variant->memory + bytes);
	stream_account(variant->stream, variant->payer, bytes);
}

void variant_describe_fields(const struct pipeline *pipeline, struct slot_geometry *geometry)
{
	const struct pipeline_field *from;
	unsigned n = pipeline_fields(pipeline, &from);
	struct layout_field *index = &geometry->field[n];

	memset(geometry->field, 0, sizeof(geometry->field));
	for (unsigned i = 0; i < n; i++) {
		struct layout_field *field = &geometry->field[i];

		memcpy(field->name, from[i].name, sizeof(field->name));
		field->dtype = from[i].dtype;
		field->where = LAYOUT_IN_SLOT;
		field->ndim = from[i].ndim;
		memcpy(field->shape, from[i].shape, sizeof(field->shape));
		field->sample_bytes = from[i].bytes;
		field->kind = from[i].kind;
		field->lengths = from[i].lengths;
	}
	strcpy(index->name, "index");
	index->dtype = LAYOUT_I64;
	index->where = LAYOUT_IN_TABLE;
	index->sample_bytes = sizeof(int64_t);
	geometry->n_fields = n + 1;
}

int variant_plan(const struct stream *stream, const struct pipeline *pipeline,
		 struct slot_geometry *ret)
{
	*ret = stream->geometry;
	variant_describe_fields(pipeline, ret);
	return slot_table_plan(ret);
}

struct variant *variant_of(const struct stream *stream, uint64_t number)
{
	return number < LAYOUT_MAX_VARIANTS ? stream->variant[number] : NULL;
}

bool variant_is_open(const struct variant *variant)
{
	return variant && variant->state <= VARIANT_RUNS;
}

unsigned variant_numbers(const struct stream *stream)
{
	unsigned n = 0;

	VARIANT_EACH(variant, stream)
		n++;
	return n;
}

struct variant *variant_from(const struct stream *stream, uint32_t number)
{
	while (number < LAYOUT_MAX_VARIANTS && !stream->variant[number])
		number++;
	return variant_of(stream, number);
}

struct variant *variant_open_from(const struct stream *stream, uint32_t number)
{
	while (number < LAYOUT_MAX_VARIANTS && !variant_is_open(stream->variant[number]))
		number++;
	return variant_of(stream, number);
}
