/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mosaic. What of a batch follows its pictures is known by roles that accessd says for each field; the rest is the first
 * picture's own. Boxes, rows beside them and key points of four samples stand behind each other, so such a field has four
 * times the room, and none is ever lost for want of it.
 *
 * Numbers of boxes in a mask (1, 2, 3 of each picture) would mean four boxes each. So those of a result are counted anew,
 * from 1, and what a mask has of boxes that were removed becomes 0.
 *
 * What is said is checked against the slot table, since addresses follow from it; lengths in a slot are loaded once, and
 * are no more than there is room.
 */

#include "libaccess/mosaic/mosaic_batch.h"

#include "libaccess/held.h"

#define MOSAIC_BATCH_LENGTHS 100 /* a role: of a field of rows, which is written with it */

_Static_assert((int)MOSAIC_U8 == (int)LAYOUT_U8 && (int)MOSAIC_F16 == (int)LAYOUT_F16 &&
		   (int)MOSAIC_F32 == (int)LAYOUT_F32 && (int)MOSAIC_BF16 == (int)LAYOUT_BF16,
	       "one numbering of types");
_Static_assert(LAYOUT_MAX_FIELDS == BASE_ARRAY_LEN(((struct proto_mosaic *)NULL)->field),
	       "a role for each field");

/* ---- what is said ---- */

static bool mosaic_batch_is_rows(const struct mosaic_field *field)
{
	return field->role == PROTO_MOSAIC_BOXES || field->role == PROTO_MOSAIC_ROWS ||
	       field->role == PROTO_MOSAIC_POINTS;
}

static bool mosaic_batch_set_image(const struct schema_field *from, bool is_planar,
				   const uint8_t fill[MOSAIC_MAX_PIXEL], struct mosaic_picture *ret)
{
	const uint64_t *side = from->shape + is_planar, channels = from->shape[is_planar ? 0 : 2];
	const uint64_t bytes = layout_dtype_bytes(from->dtype);

	if (from->ndim != 3 || side[0] < 1 || side[1] < 1 || side[0] > INT16_MAX ||
	    side[1] > INT16_MAX || (channels != 1 && channels != 3) ||
	    (from->dtype != LAYOUT_U8 && from->dtype != LAYOUT_F16 && from->dtype != LAYOUT_F32 &&
	     from->dtype != LAYOUT_BF16) ||
	    from->sample_bytes != side[0] * side[1] * channels * bytes)
		return false;
	*ret = (struct mosaic_picture){
	    .height = (uint32_t)side[0],
	    .width = (uint32_t)side[1],
	    .planes = is_planar ? (uint32_t)channels : 1,
	    .channels = is_planar ? 1 : (uint32_t)channels,
	    .value_bytes = (uint32_t)bytes,
	    .type = (enum mosaic_type)from->dtype,
	};
	memcpy(ret->fill, fill, sizeof(ret->fill));
	return true;
}

static bool mosaic_batch_set_mask(const struct mosaic_picture *image,
				  const struct schema_field *from, uint16_t fill,
				  struct mosaic_picture *ret)
{
	const uint64_t bytes = layout_dtype_bytes(from->dtype);

	if (from->ndim != 2 || from->shape[0] != image->height || from->shape[1] != image->width ||
	    (from->dtype != LAYOUT_U8 && from->dtype != LAYOUT_U16 && from->dtype != LAYOUT_I32 &&
	     from->dtype != LAYOUT_I64) ||
	    from->sample_bytes != from->shape[0] * from->shape[1] * bytes)
		return false;
	*ret = (struct mosaic_picture){
	    .height = image->height,
	    .width = image->width,
	    .planes = 1,
	    .channels = 1,
	    .value_bytes = (uint32_t)bytes,
	};
	memcpy(ret->fill, &fill, sizeof(fill)); /* little endian, with zeros behind it */
	return true;
}

/* Its numbers are those of another field, if they are any. */
static bool mosaic_batch_set_numbers(struct mosaic_batch *mosaic_batch, const struct schema *schema,
				     uint32_t mask, uint16_t fill, uint16_t said)
{
	const uint32_t most = schema->field[mask].dtype == LAYOUT_U8 ? UINT8_MAX : UINT16_MAX;
	const uint32_t numbers = (uint32_t)said - 1;

	mosaic_batch->field[mask].numbers = LAYOUT_MAX_FIELDS;
	if (!said)
		return true;
	if (numbers >= schema->n || mosaic_batch->field[numbers].role != PROTO_MOSAIC_ROWS ||
	    schema->field[numbers].dtype != LAYOUT_I64 || schema->field[numbers].ndim != 1 ||
	    schema->field[numbers].sample_bytes / sizeof(int64_t) !=
		schema->field[numbers].shape[0])
		return false;
	mosaic_batch->field[numbers].is_numbers = true;
	mosaic_batch->field[mask].numbers = numbers;
	mosaic_batch->most_kept = BASE_MIN(mosaic_batch->most_kept, most);
	if (fill > 0)
		mosaic_batch->most_kept = BASE_MIN(mosaic_batch->most_kept, (uint32_t)fill - 1);
	return true;
}

/* Rows for boxes; shown has room for those of four. */
static bool mosaic_batch_set_rows(struct mosaic_batch *mosaic_batch, const struct schema *schema,
				  uint32_t number, struct schema_field *shown)
{
	const struct schema_field *from = &schema->field[number];
	struct mosaic_field *field = &mosaic_batch->field[number];
	const uint64_t most = from->shape[0];
	const struct schema_field *lengths;

	if (from->kind != LAYOUT_RAGGED || from->ndim < 1 || most < 1 || most > MOSAIC_MOST_ROWS ||
	    from->sample_bytes % most || from->sample_bytes > UINT64_MAX / MOSAIC_TILES ||
	    from->lengths >= schema->n)
		return false;
	lengths = &schema->field[from->lengths];
	if (lengths->where != LAYOUT_IN_SLOT || lengths->dtype != LAYOUT_I64 ||
	    lengths->sample_bytes != sizeof(int64_t) ||
	    mosaic_batch->field[from->lengths].role != PROTO_MOSAIC_ALONE)
		return false;
	field->row_bytes = from->sample_bytes / most;
	if (field->role == PROTO_MOSAIC_BOXES && field->row_bytes != 4 * sizeof(float))
		return false;
	if (field->role == PROTO_MOSAIC_POINTS && field->row_bytes % (3 * sizeof(float)))
		return false;
	if (field->role != PROTO_MOSAIC_ROWS && from->dtype != LAYOUT_F32)
		return false;
	field->points = (uint32_t)(field->row_bytes / (3 * sizeof(float)));
	mosaic_batch->field[from->lengths].role = MOSAIC_BATCH_LENGTHS;
	mosaic_batch->most = BASE_MIN(mosaic_batch->most, (uint32_t)most);
	shown->shape[0] *= MOSAIC_TILES;
	shown->sample_bytes *= MOSAIC_TILES;
	return true;
}

static bool mosaic_batch_set_field(struct mosaic_batch *mosaic_batch,
				   const struct proto_mosaic *said, const struct schema *schema,
				   uint32_t number, struct schema_field *shown)
{
	const struct schema_field *from = &schema->field[number];
	struct mosaic_field *field = &mosaic_batch->field[number];

	if (field->role == PROTO_MOSAIC_MASK)
		return mosaic_batch_set_mask(&mosaic_batch->field[mosaic_batch->image].picture,
					     from, said->field[number].fill, &field->picture) &&
		       mosaic_batch_set_numbers(mosaic_batch, schema, number,
						said->field[number].fill,
						said->field[number].numbers);
	if (mosaic_batch_is_rows(field))
		return mosaic_batch_set_rows(mosaic_batch, schema, number, shown);
	return true;
}

/* Which field is the image, and which one leads the rows. */
static bool mosaic_batch_set_roles(struct mosaic_batch *mosaic_batch,
				   const struct proto_mosaic *said, const struct schema *schema)
{
	uint32_t images = 0, boxes = 0, points = 0, rows = 0;

	mosaic_batch->leader = LAYOUT_MAX_FIELDS;
	for (uint32_t i = 0; i < schema->n; i++) {
		const uint32_t role = said->field[i].role;

		mosaic_batch->field[i].role = role;
		if (role > PROTO_MOSAIC_POINTS ||
		    (role && schema->field[i].where != LAYOUT_IN_SLOT))
			return false;
		if (role == PROTO_MOSAIC_IMAGE)
			mosaic_batch->image = i;
		if (role == PROTO_MOSAIC_BOXES || (role == PROTO_MOSAIC_POINTS && boxes == 0))
			mosaic_batch->leader = i;
		images += role == PROTO_MOSAIC_IMAGE;
		boxes += role == PROTO_MOSAIC_BOXES;
		points += role == PROTO_MOSAIC_POINTS;
		rows += role == PROTO_MOSAIC_ROWS;
	}
	return images == 1 && boxes <= 1 && points <= 1 && (rows == 0 || boxes == 1);
}

/* ---- memory ---- */

static int mosaic_batch_allocate(struct mosaic_batch *mosaic_batch, uint32_t n)
{
	size_t scratch = 0;
	bool has_numbers = false;

	for (uint32_t i = 0; i < n; i++) {
		const struct mosaic_field *field = &mosaic_batch->field[i];

		if (field->role == PROTO_MOSAIC_IMAGE || field->role == PROTO_MOSAIC_MASK)
			scratch = BASE_MAX(scratch, mosaic_scratch_bytes(&field->picture));
		has_numbers |= field->is_numbers;
	}
	mosaic_batch->scratch = aligned_alloc(64, scratch);
	if (mosaic_batch->leader < LAYOUT_MAX_FIELDS)
		mosaic_batch->rows =
		    calloc((size_t)mosaic_batch->most * MOSAIC_TILES, sizeof(*mosaic_batch->rows));
	if (has_numbers)
		mosaic_batch->numbers =
		    calloc((size_t)MOSAIC_TILES * MOSAIC_NUMBERS, sizeof(*mosaic_batch->numbers));
	if (!mosaic_batch->scratch || (has_numbers && !mosaic_batch->numbers) ||
	    (mosaic_batch->leader < LAYOUT_MAX_FIELDS && !mosaic_batch->rows))
		return -ENOMEM;
	return 0;
}

void mosaic_batch_fini(struct mosaic_batch *mosaic_batch)
{
	free(mosaic_batch->scratch);
	free(mosaic_batch->numbers);
	free(mosaic_batch->rows);
}

int mosaic_batch_begin(struct mosaic_batch *mosaic_batch, const struct proto_mosaic *said,
		       const struct schema *schema, struct schema *ret)
{
	*ret = *schema;
	mosaic_batch_fini(mosaic_batch); /* of an opening that failed later */
	*mosaic_batch = (struct mosaic_batch){.most = MOSAIC_MOST_ROWS, .most_kept = UINT32_MAX};
	mosaic_batch->ask = (struct mosaic_ask){
	    .p = said->p,
	    .center = {said->center[0], said->center[1]},
	    .scale = {said->scale[0], said->scale[1]},
	    .min_size = said->min_size,
	    .min_visibility = said->min_visibility,
	    .epochs = said->epochs,
	};
	if (!mosaic_is_good(&mosaic_batch->ask) ||
	    !mosaic_batch_set_roles(mosaic_batch, said, schema) ||
	    !mosaic_batch_set_image(&schema->field[mosaic_batch->image], said->is_planar,
				    said->fill, &mosaic_batch->field[mosaic_batch->image].picture))
		return -EPROTO;
	for (uint32_t i = 0; i < schema->n; i++)
		if (!mosaic_batch_set_field(mosaic_batch, said, schema, i, &ret->field[i]))
			return -EPROTO;
	schema_lay_out(ret);
	return mosaic_batch_allocate(mosaic_batch, schema->n);
}

/* ---- a picture ---- */

struct mosaic_one {
	const struct mosaic_batch *mosaic_batch;
	const struct schema *schema, *shown;
	const struct oa_batch *batch;
	uint8_t *memory;
	struct mosaic mosaic;
	uint32_t number; /* in the batch */
	uint32_t kept;   /* rows of the result */
};

static const uint8_t *mosaic_batch_from(const struct mosaic_one *one, uint32_t field,
					uint32_t number)
{
	const uint8_t *data = batch_data(one->batch, field);

	return data + number * one->schema->field[field].sample_bytes;
}

static uint8_t *mosaic_batch_to(const struct mosaic_one *one, uint32_t field)
{
	return one->memory + one->shown->field[field].offset +
	       one->number * one->shown->field[field].sample_bytes;
}

/* A row of one of the four. */
static const uint8_t *mosaic_batch_row(const struct mosaic_one *one, uint32_t field, unsigned tile,
				       uint32_t row)
{
	return mosaic_batch_from(one, field, one->mosaic.from[tile]) +
	       row * one->mosaic_batch->field[field].row_bytes;
}

static bool mosaic_batch_keeps(const struct mosaic_one *one, unsigned tile, uint32_t row)
{
	const struct mosaic_batch *mosaic_batch = one->mosaic_batch;
	float box[4], cut[4];

	if (one->kept >= mosaic_batch->most_kept)
		return false;
	if (mosaic_batch->field[mosaic_batch->leader].role != PROTO_MOSAIC_BOXES)
		return true;
	memcpy(box, mosaic_batch_row(one, mosaic_batch->leader, tile, row), sizeof(box));
	return mosaic_box(&mosaic_batch->ask, &one->mosaic, tile, box, cut);
}

/* Which rows of the four are the result's. */
static void mosaic_batch_choose(struct mosaic_one *one)
{
	const struct mosaic_batch *mosaic_batch = one->mosaic_batch;

	one->kept = 0;
	for (unsigned tile = 0; tile < MOSAIC_TILES; tile++) {
		const uint32_t lengths = one->schema->field[mosaic_batch->leader].lengths;
		int64_t length;

		memcpy(&length, mosaic_batch_from(one, lengths, one->mosaic.from[tile]),
		       sizeof(length));
		length = BASE_MIN(BASE_MAX(length, (int64_t)0), (int64_t)mosaic_batch->most);
		for (uint32_t row = 0; row < length; row++)
			if (mosaic_batch_keeps(one, tile, row))
				mosaic_batch->rows[one->kept++] = row * MOSAIC_TILES + tile;
	}
}

static void mosaic_batch_write_row(const struct mosaic_one *one, uint32_t number, unsigned tile,
				   const uint8_t *from, uint8_t *to)
{
	const struct mosaic_field *field = &one->mosaic_batch->field[number];
	float value[4], ret[4];

	if (field->role == PROTO_MOSAIC_BOXES) {
		memcpy(value, from, sizeof(value));
		mosaic_box(&one->mosaic_batch->ask, &one->mosaic, tile, value, ret);
		memcpy(to, ret, sizeof(ret));
	} else if (field->role == PROTO_MOSAIC_POINTS) {
		for (uint32_t i = 0; i < field->points; i++) {
			memcpy(value, from + i * 3 * sizeof(float), 3 * sizeof(float));
			mosaic_point(&one->mosaic, tile, value, ret);
			memcpy(to + i * 3 * sizeof(float), ret, 3 * sizeof(float));
		}
	} else {
		memcpy(to, from, (size_t)field->row_bytes);
	}
}

static void mosaic_batch_write_rows(const struct mosaic_one *one, uint32_t number)
{
	const struct mosaic_field *field = &one->mosaic_batch->field[number];
	const uint64_t bytes = one->shown->field[number].sample_bytes;
	uint8_t *to = mosaic_batch_to(one, number);

	for (uint32_t i = 0; i < one->kept; i++) {
		const uint32_t row = one->mosaic_batch->rows[i];
		const unsigned tile = row % MOSAIC_TILES;

		if (field->is_numbers)
			memcpy(to + i * field->row_bytes, &(int64_t){i + 1}, sizeof(int64_t));
		else
			mosaic_batch_write_row(
			    one, number, tile,
			    mosaic_batch_row(one, number, tile, row / MOSAIC_TILES),
			    to + i * field->row_bytes);
	}
	memset(to + one->kept * field->row_bytes, 0,
	       (size_t)(bytes - one->kept * field->row_bytes));
	memcpy(mosaic_batch_to(one, one->schema->field[number].lengths), &(int64_t){one->kept},
	       sizeof(int64_t));
}

/* What the numbers of the four become; with is_set false all 0 again. */
static void mosaic_batch_number(const struct mosaic_one *one, uint32_t field, bool is_set)
{
	for (uint32_t i = 0; i < one->kept; i++) {
		const uint32_t row = one->mosaic_batch->rows[i];
		const unsigned tile = row % MOSAIC_TILES;
		int64_t number;

		memcpy(&number, mosaic_batch_row(one, field, tile, row / MOSAIC_TILES),
		       sizeof(number));
		if (number >= 0 && number < MOSAIC_NUMBERS)
			one->mosaic_batch->numbers[(size_t)tile * MOSAIC_NUMBERS + (size_t)number] =
			    (uint16_t)(is_set ? i + 1 : 0);
	}
}

static void mosaic_batch_pixels(const struct mosaic_one *one, uint32_t number)
{
	const struct mosaic_field *field = &one->mosaic_batch->field[number];
	const uint16_t *numbers = NULL;
	const uint8_t *tile[MOSAIC_TILES];

	for (unsigned i = 0; i < MOSAIC_TILES; i++)
		tile[i] = mosaic_batch_from(one, number, one->mosaic.from[i]);
	if (field->role == PROTO_MOSAIC_IMAGE) {
		mosaic_picture(&field->picture, &one->mosaic, tile, one->mosaic_batch->scratch,
			       mosaic_batch_to(one, number));
		return;
	}
	if (field->numbers < LAYOUT_MAX_FIELDS) {
		numbers = one->mosaic_batch->numbers;
		mosaic_batch_number(one, field->numbers, true);
	}
	mosaic_mask(&field->picture, &one->mosaic, tile, numbers, one->mosaic_batch->scratch,
		    mosaic_batch_to(one, number));
	if (numbers)
		mosaic_batch_number(one, field->numbers, false);
}

/* As it is, with zeros where there is more room. */
static void mosaic_batch_copy(const struct mosaic_one *one, uint32_t field)
{
	const uint64_t bytes = one->schema->field[field].sample_bytes;
	uint8_t *to = mosaic_batch_to(one, field);

	memcpy(to, mosaic_batch_from(one, field, one->number), (size_t)bytes);
	memset(to + bytes, 0, (size_t)(one->shown->field[field].sample_bytes - bytes));
}

static void mosaic_batch_field(const struct mosaic_one *one, uint32_t number)
{
	const struct mosaic_field *field = &one->mosaic_batch->field[number];

	if (one->schema->field[number].where != LAYOUT_IN_SLOT)
		return;
	if (!one->mosaic.is_done || field->role == PROTO_MOSAIC_ALONE)
		mosaic_batch_copy(one, number);
	else if (mosaic_batch_is_rows(field))
		mosaic_batch_write_rows(one, number);
	else if (field->role != MOSAIC_BATCH_LENGTHS)
		mosaic_batch_pixels(one, number);
}

void mosaic_batch_fill(const struct mosaic_batch *mosaic_batch, const struct batch_mix_key *key,
		       const struct schema *schema, const struct schema *shown,
		       const struct oa_batch *batch, uint8_t *memory)
{
	const struct mosaic_picture *image = &mosaic_batch->field[mosaic_batch->image].picture;
	struct mosaic_one one = {
	    .mosaic_batch = mosaic_batch,
	    .schema = schema,
	    .shown = shown,
	    .batch = batch,
	    .memory = memory,
	};

	memcpy(memory, batch->ids, batch->count * sizeof(*batch->ids));
	for (one.number = 0; one.number < batch->count; one.number++) {
		one.mosaic = mosaic_draw(&mosaic_batch->ask, key, one.number, batch->count,
					 image->height, image->width);
		if (one.mosaic.is_done && mosaic_batch->leader < LAYOUT_MAX_FIELDS)
			mosaic_batch_choose(&one);
		for (uint32_t field = 0; field < schema->n; field++)
			mosaic_batch_field(&one, field);
	}
}
