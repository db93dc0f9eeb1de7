/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Samples of shards that are all of what they have (the data set's options members=all and columns=): which file of a tar shard's, feature
 * of a tf.Example or column of MDS a field is made of. A member is one of them, or several, "jpg;png", the first that a sample has, or a
 * key of its JSON, "json:objects/boxes". What comes of a sample is what a record would be (packed.h), and goes on as one.
 */

#include "pipeline/forms/packed.h"

struct picked; /* of a pipeline; immutable */

/* The members that the first op names: of the picture, if there is one before them, then of the fields that were announced,
 * which are borrowed. *ret is NULL where it names none. What is wrong with it, else NULL. */
const char *picked_new(const struct op_list *ops, bool has_picture,
		       const struct pipeline_field *fields, const struct packed_fields *announced,
		       struct picked **ret);
void picked_free(struct picked *members);
/* "NAME:ENCODING;...", all of them, where samples are columns; else NULL. */
const char *picked_columns(const struct picked *members);

struct picked_room; /* of a run: what is made of text; not shared */
int picked_room_new(const struct picked *members, struct picked_room **ret); /* or -ENOMEM */
void picked_room_free(struct picked_room *room);

/* A sample's bytes, hostile; *ret borrows them and the room, until the next one. 0, or PIPELINE_E_BAD with *ret_error. */
int picked_take(const struct picked *members, struct picked_room *room, const uint8_t *data,
		size_t size, struct packed *ret, struct pipeline_error *ret_error);
/* Of a pipeline that names no members: 0, or, where the sample is files of a tar shard, PIPELINE_E_BAD. */
int picked_refuse(const uint8_t *data, size_t size, struct pipeline_error *ret_error);
