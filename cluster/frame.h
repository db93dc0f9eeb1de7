/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * A message between two carriers, on a connection:
 *
 *   u32 length of what follows | head, FRAME_HEAD bytes | body | tag
 *
 * What a frame says is what a value head says (cluster/value.h), in fewer bytes: a group is told once, with its hash, and
 * has a number from then on, which is how many were told before it in that direction. An answer names its GET by the id
 * that the asking carrier gave it, and has the group's mark and the sample so that one for another GET is seen.
 * Sealed or not, head and body are as long; what seals a frame is cluster/seal.h. Numbers are little endian.
 *
 * A value of x bytes takes x + 4 + FRAME_HEAD + the tag of at most 16.
 */

#include "cluster/value.h"

#define FRAME_LENGTH 4 /* bytes of the length */
#define FRAME_HEAD 24
#define FRAME_HASH 32          /* a GROUP's body begins with them; the note follows */
#define FRAME_MOST_GROUPS 4096 /* told in a direction of a connection */

enum frame_type { /* those of values, and */
		  FRAME_ALIVE =
		      16, /* no body: of a carrier that owes an answer and has said nothing for a while */
		  FRAME_PATH = 17, /* its body: cluster/path.h; before all others */
};

struct frame {
	uint8_t type, form;
	uint32_t
	    group; /* of GROUP, GET, PUT and SPREAD: its number; of HAVE and MISS: frame_mark() */
	uint64_t sample; /* of a GROUP: samples - 1; below 2^32 */
	uint32_t room;   /* of a GET, and a SPREAD's nodes */
	uint64_t id;     /* of GET, HAVE and MISS: the asking carrier's; a SPREAD's key */
};

/* The longest that may be said by `length`, with a tag of so many bytes; and the shortest. */
bool frame_length_check(uint32_t length, unsigned tag);
void frame_put(const struct frame *frame, uint8_t ret[FRAME_HEAD]);
/* Does it make sense with a body of so many bytes? Whether the group is known is not looked at. */
bool frame_get(const uint8_t head[FRAME_HEAD], uint32_t body, struct frame *ret);

/* What tells a group's answers from those of another. */
uint32_t frame_mark(const struct hash_id *group);
/* A head that was checked, and no GONE; group and id as they are said on the connection. */
void frame_of_value(const struct value_head *head, uint32_t group, uint64_t id, struct frame *ret);
/* Bytes of the body that belongs to the head. */
uint32_t frame_body(const struct value_head *head);
/* As its reader gets it; one that frame_get() passed is a head that value_head_check() passes. Not of ALIVE. */
void frame_to_value(const struct frame *frame, uint32_t body, const struct hash_id *group,
		    uint32_t peer, struct value_head *ret);
