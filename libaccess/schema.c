/* SPDX-License-Identifier: Apache-2.0 */

#include "libaccess/schema.h"

#include "shmring/slot_table.h"

void schema_lay_out(struct schema *schema)
{
	schema->bytes = base_align_up(schema->batch * sizeof(int64_t), 64);
	for (uint32_t i = 0; i < schema->n; i++) {
		struct schema_field *field = &schema->field[i];

		field->offset = schema->bytes;
		if (field->where == LAYOUT_IN_SLOT)
			schema->bytes += base_align_up(schema->batch * field->sample_bytes, 64);
	}
}

void schema_init(struct schema *schema, const struct slot_geometry *geometry, uint32_t batch)
{
	*schema = (struct schema){.n = geometry->n_fields, .batch = batch};
	for (uint32_t i = 0; i < schema->n; i++) {
		const struct layout_field *from = &geometry->field[i];
		struct schema_field *field = &schema->field[i];

		memcpy(field->name, from->name, sizeof(from->name));
		field->dtype = from->dtype;
		field->where = from->where;
		field->ndim = from->ndim;
		memcpy(field->shape, from->shape, sizeof(field->shape));
		field->sample_bytes = from->sample_bytes;
		field->kind = from->kind;
		field->lengths = from->lengths;
	}
	schema_lay_out(schema);
}

bool schema_fits(const struct schema *schema, const struct slot_geometry *geometry)
{
	if (schema->n != geometry->n_fields)
		return false;
	for (uint32_t i = 0; i < schema->n; i++) {
		const struct schema_field *a = &schema->field[i];
		const struct layout_field *b = &geometry->field[i];

		if (memcmp(a->name, b->name, sizeof(b->name)) != 0 || a->dtype != b->dtype ||
		    a->where != b->where || a->ndim != b->ndim ||
		    a->sample_bytes != b->sample_bytes || a->kind != b->kind ||
		    a->lengths != b->lengths ||
		    memcmp(a->shape, b->shape, b->ndim * sizeof(b->shape[0])) != 0)
			return false;
	}
	return true;
}
