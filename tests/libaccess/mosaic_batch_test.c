/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Mosaic of whole batches, without a daemon: what accessd says of the fields is refused where it does not fit them, and
 * no length in a slot, nor any number in a mask, leads out of a batch's memory. What pixels and boxes become is
 * tests/python/mosaic_test.py's.
 */

#include <check.h>
#include <math.h>

#include "libaccess/held.h"
#include "libaccess/mosaic/mosaic_batch.h"
#include "tests/suite.h"

enum {
	IMAGE,
	LABEL,
	BOXES,
	CLASSES,
	IDS,
	POINTS,
	MASK,
	BOXES_LENGTH,
	CLASSES_LENGTH,
	IDS_LENGTH,
	POINTS_LENGTH,
	FIELDS
};
enum { COUNT = 6, MOST = 5, SIDE = 8 };

/* In place of batch.c's: each field is an array of its own. */
static uint8_t *data[FIELDS];

const void *batch_data(const struct oa_batch *batch, uint32_t index)
{
	(void)batch;
	return data[index];
}

static struct schema fields(void)
{
	struct schema schema = {
	    .n = FIELDS,
	    .batch = COUNT,
	    .field =
		{
		    [IMAGE] = {.dtype = LAYOUT_U8, .ndim = 3, .shape = {SIDE, SIDE, 3}},
		    [LABEL] = {.dtype = LAYOUT_I64},
		    [BOXES] = {.dtype = LAYOUT_F32, .ndim = 2, .shape = {MOST, 4}},
		    [CLASSES] = {.dtype = LAYOUT_U8, .ndim = 1, .shape = {MOST}},
		    [IDS] = {.dtype = LAYOUT_I64, .ndim = 1, .shape = {MOST}},
		    [POINTS] = {.dtype = LAYOUT_F32, .ndim = 3, .shape = {MOST + 1, 2, 3}},
		    [MASK] = {.dtype = LAYOUT_U8, .ndim = 2, .shape = {SIDE, SIDE}},
		    [BOXES_LENGTH] = {.dtype = LAYOUT_I64},
		    [CLASSES_LENGTH] = {.dtype = LAYOUT_I64},
		    [IDS_LENGTH] = {.dtype = LAYOUT_I64},
		    [POINTS_LENGTH] = {.dtype = LAYOUT_I64},
		},
	};

	for (uint32_t i = 0; i < FIELDS; i++) {
		struct schema_field *field = &schema.field[i];

		field->where = LAYOUT_IN_SLOT;
		field->sample_bytes = layout_dtype_bytes(field->dtype);
		for (uint32_t k = 0; k < field->ndim; k++)
			field->sample_bytes *= field->shape[k];
		if (i >= BOXES && i <= POINTS) {
			field->kind = LAYOUT_RAGGED;
			field->lengths = i + BOXES_LENGTH - BOXES;
		}
	}
	schema_lay_out(&schema);
	return schema;
}

static struct proto_mosaic said(void)
{
	return (struct proto_mosaic){
	    .p = 1,
	    .center = {0, 2},
	    .scale = {0.5, 1.5},
	    .field = {[IMAGE] = {PROTO_MOSAIC_IMAGE, 0, 0},
		      [BOXES] = {PROTO_MOSAIC_BOXES, 0, 0},
		      [CLASSES] = {PROTO_MOSAIC_ROWS, 0, 0},
		      [IDS] = {PROTO_MOSAIC_ROWS, 0, 0},
		      [POINTS] = {PROTO_MOSAIC_POINTS, 0, 0},
		      [MASK] = {PROTO_MOSAIC_MASK, 7, IDS + 1}},
	};
}

/* ---- what is said ---- */

static void no_chance(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->p = NAN;
}

static void unknown_role(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[LABEL].role = 6;
}

static void two_images(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[MASK].role = PROTO_MOSAIC_IMAGE;
}

static void no_image(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[IMAGE].role = PROTO_MOSAIC_ALONE;
}

static void two_boxes(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[POINTS].role = PROTO_MOSAIC_BOXES;
}

static void rows_alone(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[BOXES].role = PROTO_MOSAIC_ALONE;
}

static void dense_boxes(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[BOXES].kind = LAYOUT_DENSE;
}

static void wide_boxes(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[BOXES].sample_bytes *= 2;
}

static void whole_boxes(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[BOXES].dtype = LAYOUT_I32;
}

static void no_rows(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[CLASSES].shape[0] = 0;
}

static void uneven_rows(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[CLASSES].sample_bytes++;
}

static void vast_rows(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[CLASSES].sample_bytes = UINT64_MAX / MOST * MOST;
}

static void no_lengths(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[CLASSES].lengths = FIELDS;
}

static void short_lengths(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[CLASSES_LENGTH].dtype = LAYOUT_I32;
	schema->field[CLASSES_LENGTH].sample_bytes = 4;
}

static void image_of_lengths(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[CLASSES].lengths = BOXES_LENGTH;
}

static void pairs_of_points(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[POINTS].sample_bytes = (MOST + 1) * 8;
}

static void flat_image(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[IMAGE].ndim = 2;
}

static void small_image(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[IMAGE].sample_bytes--;
}

static void five_channels(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[IMAGE].shape[2] = 5;
	schema->field[IMAGE].sample_bytes = SIDE * SIDE * 5;
}

static void other_layout(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->is_planar = 1; /* 8 channels */
}

static void vast_image(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[IMAGE].shape[0] = UINT64_C(1) << 62;
}

static void whole_image(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[IMAGE].dtype = LAYOUT_I8;
}

static void small_mask(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[MASK].shape[1]--;
}

static void short_mask(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[MASK].sample_bytes--;
}

static void mask_in_table(struct proto_mosaic *said, struct schema *schema)
{
	(void)said;
	schema->field[MASK].where = LAYOUT_IN_TABLE;
}

static void numbers_nowhere(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[MASK].numbers = FIELDS + 1;
}

static void numbers_of_boxes(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[MASK].numbers = BOXES + 1;
}

static void small_numbers(struct proto_mosaic *said, struct schema *schema)
{
	(void)schema;
	said->field[MASK].numbers = CLASSES + 1;
}

static void (*const wrongs[])(struct proto_mosaic *said, struct schema *schema) = {
    no_chance,     unknown_role,    two_images,       no_image,        two_boxes,   rows_alone,
    dense_boxes,   wide_boxes,      whole_boxes,      no_rows,         uneven_rows, vast_rows,
    no_lengths,    short_lengths,   image_of_lengths, pairs_of_points, flat_image,  small_image,
    five_channels, other_layout,    vast_image,       whole_image,     small_mask,  short_mask,
    mask_in_table, numbers_nowhere, numbers_of_boxes, small_numbers,
};

START_TEST(what_does_not_fit)
{
	struct schema schema = fields(), shown;
	struct proto_mosaic item = said();
	struct mosaic_batch mosaic_batch = {.most = 0};

	wrongs[_i](&item, &schema);
	ck_assert_int_eq(mosaic_batch_begin(&mosaic_batch, &item, &schema, &shown), -EPROTO);
	mosaic_batch_fini(&mosaic_batch);
}
END_TEST

START_TEST(rooms)
{
	struct schema schema = fields(), shown;
	const struct proto_mosaic item = said();
	struct mosaic_batch mosaic_batch = {.most = 0};

	for (unsigned i = 0; i < 2; i++) /* and anew */
		ck_assert_int_eq(mosaic_batch_begin(&mosaic_batch, &item, &schema, &shown), 0);
	for (uint32_t i = 0; i < FIELDS; i++) {
		const uint64_t times = i >= BOXES && i <= POINTS ? MOSAIC_TILES : 1;

		ck_assert_uint_eq(shown.field[i].sample_bytes,
				  times * schema.field[i].sample_bytes);
		ck_assert_uint_eq(shown.field[i].shape[0], times * schema.field[i].shape[0]);
	}
	ck_assert_uint_eq(mosaic_batch.most_kept, 6); /* 7 is the mask's label of what is outside */
	mosaic_batch_fini(&mosaic_batch);
}
END_TEST

/* ---- what is in a slot ---- */

static const int64_t lengths[] = {0, MOST, MOST + 1, -1, INT64_MIN, INT64_MAX, 3};

/* Arrays that are as large as they must be, for AddressSanitizer. */
static void make_data(const struct schema *schema, int64_t length)
{
	for (uint32_t i = 0; i < FIELDS; i++) {
		const size_t bytes = (size_t)(COUNT * schema->field[i].sample_bytes);

		data[i] = malloc(bytes);
		for (size_t k = 0; k < bytes; k++)
			data[i][k] = (uint8_t)(k * 37 + i);
	}
	for (uint32_t i = 0; i < COUNT * MOST; i++) {
		((float *)(void *)data[BOXES])[4 * i] = i % 4 == 0 ? NAN : 0;
		((float *)(void *)data[BOXES])[4 * i + 1] = -1e30f;
		((float *)(void *)data[BOXES])[4 * i + 2] = i % 4 == 1 ? INFINITY : 7;
		((float *)(void *)data[BOXES])[4 * i + 3] = 8;
		((int64_t *)(void *)data[IDS])[i] = i % 3 ? i : INT64_MIN + i;
	}
	for (uint32_t i = 0; i < COUNT; i++)
		for (uint32_t f = BOXES_LENGTH; f < FIELDS; f++)
			((int64_t *)(void *)data[f])[i] = length;
}

START_TEST(lengths_are_bounded)
{
	struct schema schema = fields(), shown;
	const struct proto_mosaic item = said();
	const int64_t ids[COUNT] = {1, 2, 3, 4, 5, 6};
	const struct oa_batch batch = {.ids = ids, .count = COUNT};
	const struct batch_mix_key key = {1, 2, 3, 4};
	struct mosaic_batch mosaic_batch = {.most = 0};
	uint8_t *memory;

	ck_assert_int_eq(mosaic_batch_begin(&mosaic_batch, &item, &schema, &shown), 0);
	make_data(&schema, lengths[_i]);
	memory = aligned_alloc(64, (size_t)shown.bytes);
	mosaic_batch_fill(&mosaic_batch, &key, &schema, &shown, &batch, memory);
	ck_assert_mem_eq(memory, ids, sizeof(ids));
	for (uint32_t i = 0; i < COUNT; i++) {
		int64_t kept[4];

		for (uint32_t f = 0; f < 4; f++)
			memcpy(&kept[f],
			       memory + shown.field[BOXES_LENGTH + f].offset + i * sizeof(int64_t),
			       sizeof(int64_t));
		ck_assert(kept[0] >= 0 && kept[0] <= 6);
		ck_assert(kept[1] == kept[0] && kept[2] == kept[0] && kept[3] == kept[0]);
		ck_assert(kept[0] == 0 || lengths[_i] > 0);
	}
	for (uint32_t i = 0; i < FIELDS; i++)
		free(data[i]);
	free(memory);
	mosaic_batch_fini(&mosaic_batch);
}
END_TEST

static void add(TCase *tests)
{
	tcase_add_loop_test(tests, what_does_not_fit, 0, BASE_ARRAY_LEN(wrongs));
	tcase_add_test(tests, rooms);
	tcase_add_loop_test(tests, lengths_are_bounded, 0, BASE_ARRAY_LEN(lengths));
}

int main(void)
{
	return suite_run("mosaic_batch", add);
}
