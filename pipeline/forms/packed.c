/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: what comes of a data set that is a program (oneaccess.wrap()).
 *
 * The op "record" stands alone: its fields go to the slot as they are. With decode's source "record" a
 * record holds the bytes of a picture's file, and perhaps its class; the picture then goes through a
 * pipeline as any file does, and whatever the bytes do to a decoder happens to a sandboxed worker.
 *
 * Whoever wrote a record runs with its user's rights and may still be writing to what was copied from, but
 * not to the arena: what was checked here stays so. Bounds are differences, so that no sum of hostile
 * numbers can overflow.
 */

#include "pipeline/forms/packed.h"

#include <stdio.h>
#include <string.h>

#include "pipeline/formats/decode.h"
#include "pipeline/ops/op_run.h"

#define PACKED_MAX_DIMS 4
#define PACKED_MAX_BYTES (UINT64_C(1) << 30) /* of a field */

static bool packed_is_random(const struct op *op)
{
	return op_number(op, OP_RECORD_RANDOM, 0) != 0;
}

const struct op_impl packed_op = {.stage = OP_STAGE_DECODE, .is_random = packed_is_random};

uint64_t packed_dtype_bytes(enum pipeline_dtype dtype)
{
	static const uint8_t bytes[] = {[PIPELINE_U8] = 1,
					[PIPELINE_F16] = 2,
					[PIPELINE_F32] = 4,
					[PIPELINE_I64] = 8,
					[PIPELINE_BF16] = 2};

	return (size_t)dtype < BASE_ARRAY_LEN(bytes) ? bytes[dtype] : 0;
}

/* dtype, ndim and shape make that many bytes; 0: they are out of range. */
static uint64_t packed_bytes(uint32_t dtype, uint32_t ndim, const uint64_t *shape)
{
	uint64_t bytes = packed_dtype_bytes((enum pipeline_dtype)dtype);

	for (unsigned i = 0; i < ndim && bytes > 0; i++) {
		if (shape[i] == 0 || shape[i] > PACKED_MAX_BYTES / bytes)
			return 0;
		bytes *= shape[i];
	}
	return bytes;
}

/* ---- the bytes ---- */

static bool packed_place_is_good(const struct packed_place *place, uint64_t bytes)
{
	return place->ndim <= PACKED_MAX_DIMS && place->bytes > 0 &&
	       packed_bytes(place->dtype, place->ndim, place->shape) == place->bytes &&
	       place->at % PACKED_ALIGN == 0 && place->at >= sizeof(struct packed_head) &&
	       place->at <= bytes && place->bytes <= bytes - place->at;
}

int packed_parse(const void *data, size_t size, struct packed *ret,
		 struct pipeline_error *ret_error)
{
	struct packed_head head;

	if (size < sizeof(head))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "no record");
	memcpy(&head, data, sizeof(head));
	if (head.magic != PACKED_MAGIC || head.bytes > size || head.n_fields < 1 ||
	    head.n_fields > PIPELINE_MAX_FIELDS)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "no record");
	for (unsigned f = 0; f < head.n_fields; f++)
		if (!packed_place_is_good(&head.field[f], head.bytes))
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					   "field %u of the record is damaged", f);
	ret->n = head.n_fields;
	memcpy(ret->field, head.field, sizeof(ret->field));
	ret->data = data;
	return 0;
}

/* ---- the op's fields ---- */

/* One list of the op: dtype, then the shape. */
static const char *packed_field(const int32_t *item, unsigned count, unsigned number,
				struct pipeline_field *ret)
{
	if (count < 1 || count > 1 + PACKED_MAX_DIMS)
		return "a field is [dtype], followed by up to four dimensions";
	*ret = (struct pipeline_field){.dtype = (enum pipeline_dtype)item[0], .ndim = count - 1};
	for (unsigned i = 0; i < ret->ndim; i++)
		ret->shape[i] = (uint64_t)item[1 + i];
	ret->bytes = packed_bytes((uint32_t)ret->dtype, ret->ndim, ret->shape);
	if (ret->bytes == 0)
		return "a field has an unknown dtype, or more than 1 GiB a sample; dtypes are 1 "
		       "(uint8), 2 (float16), 3 (float32), 4 (int64), 5 (bfloat16)";
	if (number < 2)
		snprintf(ret->name, sizeof(ret->name), "%s", number == 0 ? "image" : "label");
	else
		snprintf(ret->name, sizeof(ret->name), "field%u", number);
	return NULL;
}

const char *packed_fields(const struct op_list *ops, struct pipeline_field *ret, unsigned *ret_n)
{
	const struct op *op = &ops->op[0];
	const int32_t *item = op_items(ops, op, OP_RECORD_FIELDS);
	const int32_t *end = item + op->value[OP_RECORD_FIELDS].count;
	const char *wrong = NULL;
	unsigned n = 0;

	if (ops->count > 1)
		return "what it gives goes to the batch as it is; leave out what stands behind it, "
		       "or begin with {\"op\": \"decode\", \"source\": \"record\"}";
	while (!wrong && item < end) {
		if (n == PIPELINE_MAX_FIELDS)
			return "there are more than four fields";
		wrong = packed_field(item + 1, (unsigned)*item, n, &ret[n]);
		n++;
		item += 1 + *item;
	}
	*ret_n = n;
	return wrong;
}

/* ---- one sample ---- */

static bool packed_is_as_announced(const struct packed_place *place,
				   const struct pipeline_field *field)
{
	return place->dtype == (uint32_t)field->dtype && place->ndim == field->ndim &&
	       memcmp(place->shape, field->shape, field->ndim * sizeof(field->shape[0])) == 0;
}

int packed_write(const void *data, size_t size, const struct pipeline_field *fields, unsigned n,
		 const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	struct packed record;
	int r = packed_parse(data, size, &record, ret_error);

	if (r != 0)
		return r;
	if (record.n != n)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "%u fields, not %u", record.n,
				   n);
	for (unsigned f = 0; f < n; f++) {
		if (!packed_is_as_announced(&record.field[f], &fields[f]))
			return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
					   "field %u: other type or shape", f);
		memcpy(out->field[f], record.data + record.field[f].at, fields[f].bytes);
	}
	return 0;
}

static int packed_class(const struct packed *record, uint32_t *ret,
			struct pipeline_error *ret_error)
{
	const struct packed_place *place = &record->field[1];
	int64_t number = 0;

	if (record->n > 1) {
		if (place->dtype != PIPELINE_I64 || place->ndim != 0)
			return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
					   "the label is no whole number");
		memcpy(&number, record->data + place->at, sizeof(number));
	}
	if (number < 0 || number > INT32_MAX)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
				   "label %lld, classes count from 0", (long long)number);
	*ret = (uint32_t)number;
	return 0;
}

int packed_picture(const void *data, size_t size, const void **ret_data, size_t *ret_size,
		   uint32_t *ret_label, struct pipeline_error *ret_error)
{
	struct packed record;
	int r = packed_parse(data, size, &record, ret_error);

	if (r != 0)
		return r;
	if (record.n > 2 || record.field[0].dtype != PIPELINE_U8 || record.field[0].ndim != 1)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "it is no picture and label");
	r = packed_class(&record, ret_label, ret_error);
	if (r != 0)
		return r;
	*ret_data = record.data + record.field[0].at;
	*ret_size = record.field[0].bytes;
	return 0;
}
