/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files picked*.c know of samples that are all of what they have, and nobody else. */

#include "base/encoding.h"
#include "base/json.h"
#include "pipeline/forms/json_field.h"
#include "pipeline/forms/picked.h"

#define PICKED_MOST_COLUMNS 64

_Static_assert(JSON_FIELD_PATH == OP_MAX_TEXT + 1, "a key is a part of a text");

struct member {
	char text[OP_MAX_TEXT + 1];         /* as it was given */
	char names[OP_MAX_TEXT + 2];        /* "jpg\0png\0" */
	const char *path;                   /* in JSON: behind the colon; NULL: there is none */
	const struct pipeline_field *field; /* borrowed; NULL: the picture */
	uint64_t place;                     /* in the room */
	unsigned column;                    /* where samples have columns */
};

struct picked {
	unsigned n;
	struct member member[PIPELINE_MAX_FIELDS];
	uint64_t bytes;          /* of the room */
	unsigned n_columns;      /* 0: samples say themselves what they have */
	struct encoding *column; /* owned */
	char columns[PICKED_MOST_COLUMNS * (OP_MAX_TEXT + 1)]; /* "NAME:ENCODING;..." */
};

struct picked_room {
	const uint8_t *json_of; /* what root was read from */
	size_t json_size;
	struct json_in *root; /* owned; NULL: of none */
	uint8_t bytes[];
};

enum found_kind {
	FOUND_NOTHING,
	FOUND_FILE, /* bytes of a member that no suffix says more of */
	FOUND_RAW,  /* bytes, which are a field's values as they are */
	FOUND_TEXT,
	FOUND_JSON,
	FOUND_NPY,
	FOUND_CLS,
	FOUND_ARRAY,
	FOUND_FLOATS, /* of tf.Example: its lists */
	FOUND_INTS,
};

struct found { /* of a member */
	enum found_kind kind;
	const char *name; /* which of the member's names it is */
	const uint8_t *bytes;
	uint64_t size;
	uint64_t values; /* of FOUND_RAW: how many there were; bytes are the last one's */
	struct encoding_array array; /* of FOUND_ARRAY */
};

struct taking { /* of one member */
	const struct member *member;
	struct picked_room *room;
	const struct found *found;
	struct packed_place *place; /* what is to be told */
	const uint8_t **value;
	struct pipeline_error *error;
};

/* Is there something for the member: a name of its own, which none is that was found and stands before it? */
bool picked_is_next(const struct member *member, const char *name, size_t size, bool any_case,
		    struct found *found);

/* ---- picked_value.c: what was found to what a record would have. 0, or PIPELINE_E_BAD with the error ---- */

int picked_value_take(const struct taking *taking);
BASE_PRINTF(2, 3) int picked_value_bad(const struct taking *taking, const char *fmt, ...);
uint8_t *picked_value_room(const struct taking *taking);
/* So many values of the field's type, at `from`, are what the field has: whole rows, all or no more than the most. */
int picked_value_rows(const struct taking *taking, uint64_t values, const uint8_t *from);

/* ---- picked_columns.c: samples of MDS ---- */

/* The op's columns, and which of them the members are. What is wrong, else NULL. */
const char *picked_columns_read(const struct op_list *ops, unsigned param, struct picked *members);
int picked_columns_find(const struct picked *members, const uint8_t *data, size_t size,
			struct found *found, struct pipeline_error *ret_error);

/* ---- picked_example.c: tf.Example ---- */

int picked_example_find(const struct picked *members, const uint8_t *data, size_t size,
			struct found *found, struct pipeline_error *ret_error);
/* FOUND_FLOATS and FOUND_INTS. */
int picked_example_take(const struct taking *taking);
