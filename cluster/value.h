/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * What peers say to each other about values: a sample in a stored form, named by the group that it belongs to (a hash
 * of the data set's version, the form, and the ops before it) and the sample's number. A value is a function of its
 * name, so it may come from anybody who is trusted, twice or never; the source can always replace it.
 *
 *   reader --ring--> carrier ==connection==> carrier --ring--> reader
 *
 * The two ends of a talk are the readers of one user on two nodes. A message is this head and `bytes` bytes behind it.
 * The same head lies in rings (shmring/rings.h, as the form's bytes) and goes over connections, where `peer` is 0. Between
 * a reader and its carrier `peer` says to whom, or from whom: the number that accessd gave the connection.
 *
 *   GROUP   group, samples, form, bytes: a note for people  before the first GET or PUT of a group on a connection
 *   GET     id, group, sample, room                         -> HAVE | MISS, in any order, in the asker's patience or never
 *   HAVE    id, group, sample, form, bytes: the value, room: 1 where it was waited for until somebody had made it
 *   MISS    id, group, sample                               nobody has it and nobody makes it: read the source
 *           ... room: 1                                     somebody makes it: ask again, or read the source
 *   PUT     group, sample, form, bytes: the value           made by who asked in vain, for its owner to keep
 *           ... bytes: 0                                    it could not be made: nobody is to wait for it
 *   SPREAD  id, group, sample, room     behind that GROUP: a job has its samples spread over `room` nodes by the key `id`, and this
 *                                       node is its number `sample`: it is to keep what it owns there (base/owner.h)
 *   GONE    peer                                            of the carrier to its reader alone: no answer will come, and
 *                                                           what was told there is lost
 *
 * Numbers are little endian. A head is the other side's, and hostile, until value_head_check() has passed it.
 */

#include "base/base.h"
#include "base/hash.h"

#define VALUE_MAGIC UINT32_C(0x3156414f)      /* "OAV1" */
#define VALUE_MOST (UINT32_C(4) << 20)        /* bytes behind a head */
#define VALUE_RING_BYTES (UINT64_C(16) << 20) /* bytes of each of the two rings */
#define VALUE_MOST_PEERS 15 /* connections of a carrier: a cell has at most 16 nodes */
#define VALUE_MOST_SAMPLES (UINT64_C(1) << 32) /* of a group */
#define VALUE_MOST_NOTE 4096

enum value_type {
	VALUE_GROUP = 1,
	VALUE_GET = 2,
	VALUE_HAVE = 3,
	VALUE_MISS = 4,
	VALUE_PUT = 5,
	VALUE_GONE = 6,
	VALUE_SPREAD = 7,
};

struct value_head {
	uint32_t magic;
	uint32_t type;  /* enum value_type */
	uint32_t peer;  /* below VALUE_MOST_PEERS; 0 on a connection */
	uint32_t bytes; /* behind the head */
	uint64_t id;    /* the asker's number of a GET; a SPREAD's key */
	uint64_t sample;
	uint64_t samples; /* of a GROUP */
	uint32_t form;    /* LAYOUT_FORM_..., of GROUP, HAVE and PUT */
	uint32_t room; /* of a GET: a larger value is a miss; of an answer, a SPREAD: see above */
	struct hash_id group;
	uint64_t reserved[2]; /* 0 */
};
_Static_assert(sizeof(struct value_head) == 96, "a head has no holes");

/* Do type, sizes and numbers make sense, those that this type does not have being 0? Not whether the group is known. */
bool value_head_check(const struct value_head *head);
