/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records: what comes of a data set that is a program (oneaccess.wrap()).
 *
 * The op "record" stands alone: its fields go to the slot as they are. With decode's source "record" a
 * record holds the bytes of a picture's file, and perhaps its class; the picture then goes through a
 * pipeline as any file does, and whatever the bytes do to a decoder happens to a sandboxed worker. What
 * else a record holds beside them goes to the slot as it is, but for masks (mask.h) and further pictures
 * (pipeline_companion.c), which are files, too.
 *
 * A ragged field has room for the longest sample that was announced; one that is longer is bad, so that
 * nothing can overflow. What it does not fill is zeros, whatever was in the slot before.
 *
 * Whoever wrote a record runs with its user's rights and may still be writing to what was copied from, but
 * not to the arena: what was checked here stays so. Bounds are differences, so that no sum of hostile
 * numbers can overflow.
 */

#include "pipeline/forms/packed.h"

#include <math.h>
#include <stdio.h>

#include "pipeline/formats/decode.h"
#include "pipeline/ops/op_run.h"

#define PACKED_MAX_DIMS 4
#define PACKED_MAX_BYTES (UINT64_C(1) << 30) /* of a field */
#define PACKED_POINT (3 * sizeof(float))
#define PACKED_MOST_TIMES 16
#define PACKED_BOX_3D 7 /* numbers, at least */
#define PACKED_OF_POINTS \
	"boxes in space (kind 11) follow points; give kind 3 for boxes on the picture"
#define PACKED_OF_PICTURES \
	"what follows a picture is beside one alone; give \"kinds\" of 0, 1, 2 and 10"

static bool packed_is_random(const struct op *op)
{
	return op_number(op, OP_RECORD_RANDOM, 0) != 0 && op_is_null(op, OP_RECORD_MEMBERS);
}

const struct op_impl packed_op = {.stage = OP_STAGE_DECODE, .is_random = packed_is_random};

uint64_t packed_dtype_bytes(enum pipeline_dtype dtype)
{
	static const uint8_t bytes[] = {
	    [PIPELINE_U8] = 1,   [PIPELINE_F16] = 2, [PIPELINE_F32] = 4, [PIPELINE_I64] = 8,
	    [PIPELINE_BF16] = 2, [PIPELINE_I8] = 1,  [PIPELINE_I16] = 2, [PIPELINE_I32] = 4,
	    [PIPELINE_U16] = 2,  [PIPELINE_U32] = 4, [PIPELINE_U64] = 8, [PIPELINE_F64] = 8,
	    [PIPELINE_BOOL] = 1,
	};

	return (size_t)dtype < BASE_ARRAY_LEN(bytes) ? bytes[dtype] : 0;
}

/* dtype and the dimensions make that many bytes; 0: they are out of range. */
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

/* Nothing along the first dimension, of what is in range otherwise? */
static bool packed_is_nothing(const struct packed_place *place)
{
	return place->ndim > 0 && place->shape[0] == 0 && place->bytes == 0 &&
	       packed_bytes(place->dtype, place->ndim - 1, place->shape + 1) > 0;
}

static bool packed_place_is_good(const struct packed_place *place, bool is_wide, uint64_t head,
				 uint64_t bytes)
{
	return place->ndim <= PACKED_MAX_DIMS && place->at % PACKED_ALIGN == 0 &&
	       place->at >= head && place->at <= bytes && place->bytes <= bytes - place->at &&
	       (place->bytes > 0
		    ? packed_bytes(place->dtype, place->ndim, place->shape) == place->bytes
		    : is_wide && packed_is_nothing(place));
}

/* The head that both versions begin with, and the places, of memory that need not be aligned. Bytes of
 * all that; 0: it is no record. */
static uint64_t packed_read(const uint8_t *data, size_t size, struct packed_head *head,
			    struct packed *ret)
{
	const size_t begin = offsetof(struct packed_head, field);

	if (size < begin)
		return 0;
	memcpy(head, data, begin);
	if (head->bytes > size || head->n_fields < 1)
		return 0;
	if (head->magic == PACKED_MAGIC) {
		if (size < sizeof(*head) || head->n_fields > PACKED_FIRST_FIELDS)
			return 0;
		memcpy(ret->field, data + begin, head->n_fields * sizeof(ret->field[0]));
		return sizeof(*head);
	}
	if (head->magic != PACKED_WIDE_MAGIC || head->n_fields > PIPELINE_MAX_FIELDS ||
	    size < sizeof(struct packed_wide_head) * (1 + head->n_fields))
		return 0;
	for (unsigned f = 0; f < head->n_fields; f++)
		memcpy(&ret->field[f], data + sizeof(struct packed_wide_head) * (1 + f),
		       sizeof(ret->field[f]));
	return sizeof(struct packed_wide_head) * (1 + head->n_fields);
}

/* Of a wide head: is it one that a file can have? */
static bool packed_read_part(const uint8_t *data, const struct packed_head *head,
			     struct pipeline_part *ret)
{
	struct packed_wide_head wide;

	*ret = (struct pipeline_part){.is_there = false};
	if (head->magic != PACKED_WIDE_MAGIC)
		return true;
	memcpy(&wide, data, sizeof(wide));
	if (wide.has_part == 0)
		return true;
	*ret = (struct pipeline_part){
	    .is_there = true, .start = wide.part[0], .seconds = wide.part[1]};
	if (wide.has_part == 2 && wide.part[2] >= 0 && wide.part[2] < PACKED_MOST_CHANNELS)
		ret->channel = 1 + (unsigned)wide.part[2];
	return (wide.has_part == 1 || ret->channel > 0) && isfinite(ret->start) &&
	       ret->start >= 0 && ret->seconds > 0;
}

int packed_parse(const void *data, size_t size, struct packed *ret,
		 struct pipeline_error *ret_error)
{
	struct packed_head head;
	struct packed record;
	const uint64_t begin = packed_read(data, size, &head, &record);

	if (begin == 0)
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0, "no record");
	record.n = head.n_fields;
	if (!packed_read_part(data, &head, &record.part))
		return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
				   "a part from second %.6g, %.6g long", record.part.start,
				   record.part.seconds);
	for (unsigned f = 0; f < record.n; f++) {
		if (!packed_place_is_good(&record.field[f], head.magic == PACKED_WIDE_MAGIC, begin,
					  head.bytes))
			return decode_fail(ret_error, PIPELINE_FAIL_REFUSED, 0,
					   "field %u of the record is damaged", f);
		record.value[f] = (const uint8_t *)data + record.field[f].at;
	}
	*ret = record;
	return 0;
}

/* ---- what is announced ---- */

/* One list of the op: dtype, then the shape. */
static const char *packed_field(const int32_t *item, unsigned count, struct pipeline_field *ret)
{
	if (count < 1 || count > 1 + PACKED_MAX_DIMS)
		return "a field is [dtype], followed by up to four dimensions";
	*ret = (struct pipeline_field){.dtype = (enum pipeline_dtype)item[0], .ndim = count - 1};
	for (unsigned i = 0; i < ret->ndim; i++)
		ret->shape[i] = (uint64_t)item[1 + i];
	ret->bytes = packed_bytes((uint32_t)ret->dtype, ret->ndim, ret->shape);
	if (ret->bytes == 0)
		return "a field has an unknown dtype, or more than 1 GiB a sample; dtypes are 1 "
		       "(uint8), 2 (float16), 3 (float32), 4 (int64), 5 (bfloat16), 6 to 8 (int8, "
		       "int16, int32), 9 to 11 (uint16, uint32, uint64), 12 (float64), 13 (bool)";
	return NULL;
}

/* [dtype], or [dtype, fill]: labels of the picture's size, which the pipeline knows. */
static const char *packed_mask(struct pipeline_field *field, bool by_middle)
{
	const uint64_t fill = field->ndim > 0 ? field->shape[0] : 0;

	if (field->ndim > 1 || fill > (field->dtype == PIPELINE_U8 ? UINT8_MAX : UINT16_MAX) ||
	    (field->dtype != PIPELINE_U8 && field->dtype != PIPELINE_U16 &&
	     field->dtype != PIPELINE_I32 && field->dtype != PIPELINE_I64))
		return "a mask is [dtype] or [dtype, label of what is outside], of 1 (uint8), 9 "
		       "(uint16), 8 (int32) or 4 (int64)";
	*field = (struct pipeline_field){.dtype = field->dtype,
					 .role = field->role,
					 .fill = (uint32_t)fill,
					 .by_middle = by_middle};
	return NULL;
}

/* [1], or [1, how many times as large]: a picture's file; what becomes of it, the pipeline knows. */
static const char *packed_image(struct pipeline_field *field, bool no_colors)
{
	const uint64_t times = field->ndim > 0 ? field->shape[0] : 1;

	if (field->dtype != PIPELINE_U8 || field->ndim > 1 || times > PACKED_MOST_TIMES)
		return "another picture is [1] or [1, how many times as high and wide as the first "
		       "one it is], at most 16 times";
	*field = (struct pipeline_field){.dtype = PIPELINE_U8,
					 .role = field->role,
					 .times = (uint32_t)times,
					 .no_colors = no_colors};
	return NULL;
}

/* [1]: a file that a view of that name decodes, which says what becomes of it. */
static const char *packed_own(struct pipeline_field *field, bool is_other)
{
	(void)is_other;
	if (field->dtype != PIPELINE_U8 || field->ndim > 0)
		return "a file of kind 10, which a view of its name decodes, is [1]";
	*field = (struct pipeline_field){.dtype = PIPELINE_U8, .role = field->role};
	return NULL;
}

/* [3, what, filter] or [3, what, filter, divisor]: a file of what was measured of the picture's pixels; its size, the pipeline knows. */
static const char *packed_measure(struct pipeline_field *field, bool is_other)
{
	(void)is_other;
	if (field->dtype != PIPELINE_F32 || field->ndim < 2 || field->ndim > 3 ||
	    field->shape[0] > PIPELINE_NORMALS || field->shape[1] > 2)
		return "what was measured is [3, 1 (depth), 2 (disparity), 3 (flow) or 4 "
		       "(normals), 1 (resized by the ops' filters) or 2 (by nearest)], and "
		       "perhaps what the file's numbers are divided by";
	*field = (struct pipeline_field){
	    .dtype = PIPELINE_F32,
	    .role = field->role,
	    .measured = {.what = (enum pipeline_measure)field->shape[0],
			 .by_nearest = field->shape[1] == 2,
			 .divisor = field->ndim == 3 ? (uint32_t)field->shape[2] : 0}};
	return NULL;
}

static const char *packed_shapes(const struct op_list *ops, const struct op_value *value,
				 struct pipeline_field *fields, unsigned most, unsigned *ret_n)
{
	const int32_t *item = ops->pool + (size_t)value->number[0], *end = item + value->count;
	const char *wrong = NULL;
	unsigned n = 0;

	for (; !wrong && item < end; item += 1 + *item) {
		if (n == most)
			return "there are more fields than 23, each ragged one counted twice";
		wrong = packed_field(item + 1, (unsigned)*item, &fields[n++]);
	}
	*ret_n = n;
	return wrong;
}

/* A field of a kind that is no file. */
static const char *packed_numbers(struct pipeline_field *field, bool is_other)
{
	(void)is_other;
	if (field->kind != PIPELINE_DENSE && field->ndim == 0)
		return "a ragged field has no dimension to be ragged along; the first one is the "
		       "most that a sample has";
	if (field->kind == PIPELINE_TEXT && (field->dtype != PIPELINE_U8 || field->ndim != 1))
		return "a text is of uint8 (1) and has one dimension, the most bytes of one";
	return NULL;
}

static const struct packed_kind {
	enum pipeline_kind kind;
	enum pipeline_role role;
	/* What is wrong with [dtype, shape], or NULL: the field is set up. */
	const char *(*set_up)(struct pipeline_field *field, bool is_other);
	bool is_other; /* the second kind of such a file */
} packed_kind[] = {
    [0] = {PIPELINE_DENSE, PIPELINE_ALONE, packed_numbers, false},
    [1] = {PIPELINE_RAGGED, PIPELINE_ALONE, packed_numbers, false},
    [2] = {PIPELINE_TEXT, PIPELINE_ALONE, packed_numbers, false},
    [3] = {PIPELINE_RAGGED, PIPELINE_BOXES, packed_numbers, false},
    [4] = {PIPELINE_RAGGED, PIPELINE_ROWS, packed_numbers, false},
    [5] = {PIPELINE_DENSE, PIPELINE_MASK, packed_mask, false},
    [6] = {PIPELINE_DENSE, PIPELINE_MASK, packed_mask, true},
    [7] = {PIPELINE_RAGGED, PIPELINE_POINTS, packed_numbers, false},
    [8] = {PIPELINE_DENSE, PIPELINE_IMAGE, packed_image, false},
    [9] = {PIPELINE_DENSE, PIPELINE_IMAGE, packed_image, true},
    [10] = {PIPELINE_DENSE, PIPELINE_FILE, packed_own, false},
    [11] = {PIPELINE_RAGGED, PIPELINE_BOXES_3D, packed_numbers, false},
    [12] = {PIPELINE_DENSE, PIPELINE_MEASURE, packed_measure, false},
};

/* What may stand beside what begins so. */
static const struct packed_beside {
	enum op_id first;
	uint32_t kinds; /* a bit of each */
	const char *others;
} packed_beside[] = {
    {OP_DECODE, ~(1u << 11), PACKED_OF_POINTS},
    {OP_BANDS, ~(1u << 11), PACKED_OF_POINTS},
    {OP_AUDIO, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 10, PACKED_OF_PICTURES},
    {OP_VIDEO, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 10, PACKED_OF_PICTURES},
    {OP_VOLUME, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 6 | 1 << 8 | 1 << 10,
     "boxes, key points, and volumes without some ops do not follow volumes; give kinds 0, 1, 2, "
     "5, 8 and 10"},
    {OP_CLOUD, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 10 | 1 << 11,
     "boxes on pictures, masks, key points and pictures do not follow points; give kinds 0, 1, 2, "
     "4, 10 and 11"},
};

static const char *packed_check_beside(enum op_id first, int32_t kind)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(packed_beside); i++)
		if (packed_beside[i].first == first && !(packed_beside[i].kinds >> kind & 1))
			return packed_beside[i].others;
	return NULL;
}

static const char *packed_kinds(const struct op_list *ops, const struct op_value *value,
				struct pipeline_field *fields, unsigned n)
{
	const int32_t *kind = ops->pool + (size_t)value->number[0];
	const char *wrong = NULL;

	if (value->count == 0)
		return NULL;
	if (value->count != n)
		return "there are not as many kinds as fields";
	for (unsigned f = 0; f < n && !wrong; f++) {
		const struct packed_kind *is = &packed_kind[kind[f]];

		fields[f].kind = is->kind;
		fields[f].role = is->role;
		wrong = packed_check_beside(ops->op[0].id, kind[f]);
		wrong = wrong ? wrong : is->set_up(&fields[f], is->is_other);
	}
	return wrong;
}

/* Those of a row become others, two by two. */
static const char *packed_flip_indices(const struct op_list *ops, bool are_points, unsigned n)
{
	const struct op *op = &ops->op[0];
	const unsigned param = op_intake(op->id)->flip_indices;
	const int32_t *flip;

	if (param == OP_INTAKE_NONE || op_is_null(op, param))
		return NULL;
	flip = op_items(ops, op, param);
	if (!are_points)
		return "flip_indices is of key points, and no field is (kind 7)";
	if (op->value[param].count != n)
		return "flip_indices has not one number for each key point of a row";
	for (unsigned i = 0; i < n; i++)
		if (flip[i] >= (int32_t)n || flip[flip[i]] != (int32_t)i)
			return "a key point of flip_indices becomes one that does not become it";
	return NULL;
}

/* [most, n, 3] or, as COCO has it, [most, 3 n]. */
static const char *packed_points(const struct op_list *ops, const struct pipeline_field *fields,
				 unsigned first, unsigned end, struct packed_fields *ret)
{
	ret->points = 0;
	for (unsigned f = first; f < end; f++) {
		const struct pipeline_field *field = &fields[f];

		if (field->role != PIPELINE_POINTS)
			continue;
		if (ret->points > 0)
			return "two fields are key points; one can be";
		if (field->dtype != PIPELINE_F32 || field->ndim < 2 || field->ndim > 3 ||
		    (field->ndim == 3 ? field->shape[2] != 3 : field->shape[1] % 3 != 0))
			return "key points are float32 (3) of shape [most, n, 3] or [most, 3 n]: "
			       "x, y and whether it is seen, of each";
		ret->points = f;
		ret->n_points = (unsigned)(field->bytes / field->shape[0] / PACKED_POINT);
	}
	return packed_flip_indices(ops, ret->points > 0, ret->n_points);
}

static const char *packed_check_boxes(const struct pipeline_field *field)
{
	const bool is_float = field->dtype == PIPELINE_F32 && field->ndim == 2;

	if (field->role == PIPELINE_BOXES)
		return is_float && field->shape[1] == 4 ? NULL
							: "boxes are float32 (3) of shape [most, "
							  "4]: left, top, right, bottom in "
							  "pixels";
	return is_float && field->shape[1] >= PACKED_BOX_3D
		   ? NULL
		   : "boxes of points are float32 (3) of shape [most, 7] or more: x, y, z, dx, dy, "
		     "dz, yaw";
}

/* Boxes are of one field, and rows of its boxes. */
static const char *packed_roles(const struct pipeline_field *fields, unsigned first, unsigned end,
				unsigned *ret_boxes)
{
	unsigned boxes = 0, rows = 0;
	const char *wrong = NULL;

	for (unsigned f = first; f < end && !wrong; f++) {
		const struct pipeline_field *field = &fields[f];

		rows += field->role == PIPELINE_ROWS;
		if (field->role != PIPELINE_BOXES && field->role != PIPELINE_BOXES_3D)
			continue;
		if (boxes > 0)
			return "two fields are boxes; one can be";
		wrong = packed_check_boxes(field);
		boxes = f;
	}
	*ret_boxes = boxes;
	if (!wrong && rows > 0 && boxes == 0)
		return "a field has rows for boxes (kind 4), and none is boxes (3; of points 11)";
	return wrong;
}

static void packed_usual_name(struct pipeline_field *field, unsigned number)
{
	if (number < 2)
		snprintf(field->name, sizeof(field->name), "%s", number == 0 ? "image" : "label");
	else
		snprintf(field->name, sizeof(field->name), "field%u", number);
}

/* Those of the op, where it has some; no two fields have one name. */
static const char *packed_names(const struct op_list *ops, const struct op_value *value,
				struct pipeline_field *fields, unsigned first, unsigned n)
{
	const int32_t *item = ops->pool + (size_t)value->number[0], *end = item + value->count;
	unsigned f = first;

	for (; value->count > 0 && item < end; item += 1 + *item, f++) {
		if (f == n)
			return "there are more names than fields";
		for (int32_t i = 0; i < *item; i++)
			fields[f].name[i] = (char)item[1 + i];
	}
	if (value->count > 0 && f < n)
		return "there are fewer names than fields";
	for (f = first; f < n; f++) {
		if (value->count == 0)
			packed_usual_name(&fields[f], f);
		for (unsigned other = 0; other < f; other++)
			if (strcmp(fields[other].name, fields[f].name) == 0)
				return "two fields have one name (with a pipeline its \"image\" or "
				       "\"video\", \"label\" and, of clips, \"length\", of "
				       "patches, \"grid\" are there already)";
		if (strcmp(fields[f].name, "index") == 0)
			return "\"index\" is the name of the samples' numbers; give another one";
	}
	return NULL;
}

/* A field more behind them for each ragged one, and for each that was measured. */
static const char *packed_lengths(struct pipeline_field *fields, unsigned first, unsigned n,
				  struct packed_fields *ret, unsigned *ret_n)
{
	unsigned end = n;

	ret->measures = 0;
	for (unsigned f = first; f < n; f++) {
		const bool is_measure = fields[f].role == PIPELINE_MEASURE;

		if (fields[f].kind == PIPELINE_DENSE && !is_measure)
			continue;
		if (end == PIPELINE_MAX_FIELDS)
			return "there are more fields than 23, each ragged one and each that was "
			       "measured counted twice";
		fields[end] = (struct pipeline_field){
		    .dtype = is_measure ? PIPELINE_BOOL : PIPELINE_I64, .bytes = sizeof(int64_t)};
		snprintf(fields[end].name, sizeof(fields[end].name), "%.24s.%s", fields[f].name,
			 is_measure ? "valid" : "length");
		ret->measures += is_measure;
		*(is_measure ? &fields[f].measured.valid : &fields[f].lengths) = end++;
	}
	*ret_n = end;
	return NULL;
}

const char *packed_announce(const struct op_list *ops, struct pipeline_field *fields,
			    struct packed_fields *ret, unsigned *ret_n)
{
	const struct op *op = &ops->op[0];
	const struct op_intake *intake = op_intake(op->id);
	const unsigned first = ret->first;
	const char *wrong;
	unsigned n = 0;

	if (op->id == OP_RECORD && ops->count > 1)
		return "what it gives goes to the batch as it is; leave out what stands behind it, "
		       "or begin with {\"op\": \"decode\", \"source\": \"record\"}";
	wrong = packed_shapes(ops, &op->value[intake->fields], fields + first,
			      PIPELINE_MAX_FIELDS - first, &n);
	if (!wrong)
		wrong = packed_kinds(ops, &op->value[intake->kinds], fields + first, n);
	if (!wrong)
		wrong = packed_roles(fields, first, first + n, &ret->boxes);
	if (!wrong)
		wrong = packed_points(ops, fields, first, first + n, ret);
	if (!wrong)
		wrong = packed_names(ops, &op->value[intake->names], fields, first, first + n);
	if (!wrong)
		wrong = packed_lengths(fields, first, first + n, ret, ret_n);
	ret->n = n;
	return wrong;
}

/* ---- one sample ---- */

static bool packed_is_as_announced(const struct packed_place *place,
				   const struct pipeline_field *field)
{
	const unsigned ragged = field->kind != PIPELINE_DENSE;

	if (packed_is_file(field))
		return place->dtype == PIPELINE_U8 && place->ndim == 1 && place->bytes > 0;
	return place->dtype == (uint32_t)field->dtype && place->ndim == field->ndim &&
	       memcmp(place->shape + ragged, field->shape + ragged,
		      (field->ndim - ragged) * sizeof(field->shape[0])) == 0;
}

/* A byte of a bool is 0 or 1, whatever it was. */
static void packed_copy(const uint8_t *from, uint64_t bytes, enum pipeline_dtype dtype, uint8_t *to)
{
	if (dtype != PIPELINE_BOOL) {
		memcpy(to, from, bytes);
		return;
	}
	for (uint64_t i = 0; i < bytes; i++)
		to[i] = from[i] != 0;
}

static int packed_put(const struct packed *record, unsigned number,
		      const struct pipeline_field *field, unsigned to,
		      const struct pipeline_out *out, struct pipeline_error *ret_error)
{
	const struct packed_place *place = &record->field[number];
	const int64_t length = (int64_t)place->shape[0];

	if (!packed_is_as_announced(place, field))
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "field %u: other type or shape",
				   number);
	if (packed_is_file(field)) /* the pipeline's to decode */
		return 0;
	if (place->bytes > field->bytes)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "field %u: %llu, at most %llu",
				   number, (unsigned long long)place->shape[0],
				   (unsigned long long)field->shape[0]);
	if (field->kind != PIPELINE_DENSE)
		memcpy(out->field[field->lengths], &length, sizeof(length));
	else if (place->bytes != field->bytes)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "field %u has no value", number);
	packed_copy(record->value[number], place->bytes, field->dtype, out->field[to]);
	memset((uint8_t *)out->field[to] + place->bytes, 0, field->bytes - place->bytes);
	return 0;
}

int packed_write(const struct packed *record, unsigned before, const struct pipeline_field *fields,
		 const struct packed_fields *announced, const struct pipeline_out *out,
		 struct pipeline_error *ret_error)
{
	int r = 0;

	if (record->n != before + announced->n)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "%u fields, not %u", record->n,
				   before + announced->n);
	for (unsigned f = 0; f < announced->n && r == 0; f++)
		r = packed_put(record, before + f, &fields[announced->first + f],
			       announced->first + f, out, ret_error);
	return r;
}

static bool packed_is_of_boxes(const struct pipeline_field *field)
{
	return field->role == PIPELINE_BOXES || field->role == PIPELINE_BOXES_3D ||
	       field->role == PIPELINE_ROWS || field->role == PIPELINE_POINTS;
}

int packed_boxes(const struct packed *record, unsigned before, const struct pipeline_field *fields,
		 const struct packed_fields *announced, uint64_t *ret,
		 struct pipeline_error *ret_error)
{
	const uint64_t n = record->field[before + announced->boxes - announced->first].shape[0];

	for (unsigned f = 0; f < announced->n; f++) {
		const uint64_t rows = record->field[before + f].shape[0];

		if (packed_is_of_boxes(&fields[announced->first + f]) && rows != n)
			return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
					   "field %u: %llu for %llu boxes", before + f,
					   (unsigned long long)rows, (unsigned long long)n);
	}
	*ret = n;
	return 0;
}

/* Row `to` is from now on what `from` is. */
static void packed_move(const struct pipeline_field *field, void *data, uint64_t from, uint64_t to)
{
	const uint64_t bytes = field->bytes / field->shape[0];

	if (from != to)
		memcpy((uint8_t *)data + to * bytes, (uint8_t *)data + from * bytes, bytes);
}

void packed_keep(const struct pipeline_field *fields, const struct packed_fields *announced,
		 uint64_t count, bool (*is_gone)(const float *box), const struct pipeline_out *out)
{
	const float *box = out->field[announced->boxes];
	const uint64_t numbers = fields[announced->boxes].shape[1];
	const unsigned end = announced->first + announced->n;
	uint64_t kept = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (is_gone(box + i * numbers))
			continue;
		for (unsigned f = announced->first; f < end; f++)
			if (packed_is_of_boxes(&fields[f]))
				packed_move(&fields[f], out->field[f], i, kept);
		kept++;
	}
	for (unsigned f = announced->first; f < end; f++) {
		const uint64_t bytes = fields[f].bytes / BASE_MAX(fields[f].shape[0], 1);

		if (!packed_is_of_boxes(&fields[f]))
			continue;
		memset((uint8_t *)out->field[f] + kept * bytes, 0, (count - kept) * bytes);
		memcpy(out->field[fields[f].lengths], &(int64_t){(int64_t)kept}, sizeof(int64_t));
	}
}

static int packed_class(const struct packed *record, uint32_t *ret,
			struct pipeline_error *ret_error)
{
	const struct packed_place *place = &record->field[1];
	int64_t number;

	if (place->dtype != PIPELINE_I64 || place->ndim != 0)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "the label is no whole number");
	memcpy(&number, record->value[1], sizeof(number));
	if (number < 0 || number > INT32_MAX)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0,
				   "label %lld, classes count from 0", (long long)number);
	*ret = (uint32_t)number;
	return 0;
}

int packed_picture(const struct packed *record, unsigned beside, const void **ret_data,
		   size_t *ret_size, uint32_t *ret_label, struct pipeline_error *ret_error)
{
	const struct packed_place *picture = &record->field[0];
	int r = 0;

	if (record->n < 1 + beside || record->n > 2 + beside || picture->dtype != PIPELINE_U8 ||
	    picture->ndim != 1)
		return decode_fail(ret_error, PIPELINE_FAIL_OP, 0, "it is no picture and label%s",
				   beside > 0 ? " with others" : "");
	*ret_label = 0;
	if (record->n == 2 + beside)
		r = packed_class(record, ret_label, ret_error);
	if (r != 0)
		return r;
	*ret_data = record->value[0];
	*ret_size = picture->bytes;
	return 0;
}
