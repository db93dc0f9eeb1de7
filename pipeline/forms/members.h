/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_FORMS_MEMBERS_H
#define PIPELINE_FORMS_MEMBERS_H

/*
 * Samples of tar shards that are all of their files (the data set's option members=all): which file a field is made of.
 * A member is suffixes, "jpg;png", the first that a sample has, or a key of its JSON, "json:objects/boxes". What comes
 * of a sample is what a record would be (packed.h), and goes on as one.
 */

#include "pipeline/forms/packed.h"

struct members; /* of a pipeline; immutable */

/* The members that the first op names: of the picture, if there is one before them, then of the fields that were announced,
 * which are borrowed. *ret is NULL where it names none. What is wrong with it, else NULL. */
const char *members_new(const struct op_list *ops, bool has_picture,
			const struct pipeline_field *fields, const struct packed_fields *announced,
			struct members **ret);
void members_free(struct members *members);

struct members_room; /* of a run: what is made of text; not shared */
int members_room_new(const struct members *members, struct members_room **ret); /* or -ENOMEM */
void members_room_free(struct members_room *room);

/* A sample's bytes, hostile; *ret borrows them and the room, until the next one. 0, or PIPELINE_E_BAD with *ret_error. */
int members_take(const struct members *members, struct members_room *room, const uint8_t *data,
		 size_t size, struct packed *ret, struct pipeline_error *ret_error);
/* Of a pipeline that names no members: 0, or, where the sample is files of a tar shard, PIPELINE_E_BAD. */
int members_refuse(const uint8_t *data, size_t size, struct pipeline_error *ret_error);

#endif
