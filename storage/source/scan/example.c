/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Protocol buffers as far as tf.Example needs them: a message is a row of fields, each a varint that holds number and
 * kind, then a varint, 8 bytes, 4 bytes, or a length and so many bytes, which may be a message again.
 *
 * The walk is a place and a stack of ends, as deep as tf.Example is; what a field is follows from the depth and its
 * number. A message begins by pushing its end, which lies within the one around it, and ends where the place
 * reaches it. What a feature holds is noted until its entry ends, since only then its name is sure to be known. A
 * picture is passed over, not read: a step looks at a name or a few numbers, EXAMPLE_AHEAD bytes at most.
 *
 * Rejected: a parser of whole examples in memory. They are as large as pictures, and pieces are not.
 */

#include "storage/source/scan/example.h"

#include "base/base.h"
#include "base/varint.h"
#include "storage/source/scan/magic.h"

enum { /* depths: what the place is in */
       IN_EXAMPLE,
       IN_FEATURES,
       IN_ENTRY,
       IN_FEATURE,
       IN_LIST,
       IN_PACKED,
};
_Static_assert((int)IN_PACKED < (int)EXAMPLE_DEPTH, "a depth has an end");

enum { LIST_BYTES = 1, LIST_INTS = 3 };
enum { FIT_NONE, FIT_GUESS, FIT_OTHER, FIT_USUAL, FIT_NAMED };

struct piece { /* what is there from the walk's place on */
	const uint8_t *data;
	size_t size;
};

static bool walk_fail(struct example_walk *walk, const char *why, uint64_t at)
{
	walk->why = why;
	walk->bad_at = at;
	return false;
}

static bool walk_damaged(struct example_walk *walk)
{
	return walk_fail(walk, "it is no tf.Example", walk->at);
}

static void walk_take(struct example_walk *walk, struct piece *piece, size_t bytes)
{
	walk->at += bytes;
	piece->data += bytes;
	piece->size -= bytes;
}

/* ---- what a feature is ---- */

static bool name_is(const uint8_t *name, uint64_t bytes, const char *wanted)
{
	return bytes == strlen(wanted) && memcmp(name, wanted, bytes) == 0;
}

static void take_name(struct example_walk *walk, const uint8_t *name, uint64_t bytes)
{
	const struct example_names *names = walk->names;
	struct example_entry *entry = &walk->entry;

	entry->picture = entry->label = FIT_NONE;
	if (names->picture[0])
		entry->picture = name_is(name, bytes, names->picture) ? FIT_NAMED : FIT_NONE;
	else if (!names->is_whole)
		entry->picture = name_is(name, bytes, EXAMPLE_PICTURE) ? FIT_USUAL : FIT_GUESS;
	if (names->label[0])
		entry->label = name_is(name, bytes, names->label) ? FIT_NAMED : FIT_NONE;
	else if (name_is(name, bytes, "image/class/label"))
		entry->label = FIT_USUAL;
	else if (name_is(name, bytes, "label"))
		entry->label = FIT_OTHER;
}

static bool take_picture(struct example_walk *walk)
{
	const struct example_entry *entry = &walk->entry;

	if (entry->picture == FIT_GUESS && (entry->values != 1 || !entry->is_picture))
		return true;
	if (entry->values != 1 || entry->bytes == 0)
		return walk_fail(walk,
				 entry->values > 1 ? "the picture's feature has several values"
						   : "the picture's feature is empty",
				 entry->begin);
	walk->guesses += entry->picture == FIT_GUESS;
	walk->picture = entry->picture;
	walk->found.at = entry->at;
	walk->found.bytes = entry->bytes;
	return true;
}

static bool take_label(struct example_walk *walk)
{
	const struct example_entry *entry = &walk->entry;

	if (entry->values != 1 && entry->label != FIT_NAMED)
		return true; /* of many classes: none is the sample's */
	if (entry->values != 1)
		return walk_fail(walk, "the label's feature is not one number", entry->begin);
	walk->label = entry->label;
	walk->found.has_label = true;
	walk->found.label = entry->number;
	return true;
}

static bool end_entry(struct example_walk *walk)
{
	const struct example_entry *entry = &walk->entry;

	if (entry->list == LIST_BYTES && entry->picture && entry->picture >= walk->picture)
		return take_picture(walk);
	if (entry->list == LIST_INTS && entry->label && entry->label >= walk->label)
		return take_label(walk);
	return true;
}

/* ---- fields ---- */

static void push(struct example_walk *walk, uint64_t bytes)
{
	walk->end[++walk->depth] = walk->at + bytes;
}

static void take_int(struct example_walk *walk, uint64_t value)
{
	walk->entry.values++;
	walk->entry.number = (int64_t)value;
}

/* A value of a list of bytes; the piece begins with it. */
static void take_bytes(struct example_walk *walk, struct piece piece, uint64_t bytes)
{
	struct example_entry *entry = &walk->entry;

	entry->values++;
	entry->at = walk->at;
	entry->bytes = bytes;
	entry->is_picture = magic_is_picture(piece.data, BASE_MIN(bytes, (uint64_t)piece.size));
}

/* A field of bytes, at its first one. true: it is a message, which is walked now, and not passed over. */
static bool open_field(struct example_walk *walk, struct piece piece, uint64_t number,
		       uint64_t bytes)
{
	const bool is_list_value = walk->depth == IN_LIST && number == 1;

	if (walk->depth == IN_ENTRY && number == 1 && bytes < EXAMPLE_NAME)
		take_name(walk, piece.data, bytes);
	if (is_list_value && walk->entry.list == LIST_BYTES)
		take_bytes(walk, piece, bytes);
	if (walk->depth == IN_FEATURE) {
		walk->entry.list = number;
		walk->entry.values = 0;
	}
	if (walk->depth == IN_FEATURES && number == 1)
		walk->entry = (struct example_entry){.begin = walk->at};
	return (walk->depth <= IN_FEATURES && number == 1) ||
	       (walk->depth == IN_ENTRY && number == 2) ||
	       (walk->depth == IN_FEATURE && (number == LIST_BYTES || number == LIST_INTS)) ||
	       (is_list_value && walk->entry.list == LIST_INTS);
}

static bool step_bytes(struct example_walk *walk, struct piece *piece, uint64_t number)
{
	uint64_t bytes;
	const size_t n = varint_read(piece->data, piece->size, &bytes);

	if (n == 0 || bytes > walk->end[walk->depth] - walk->at - n)
		return walk_damaged(walk);
	walk_take(walk, piece, n);
	if (open_field(walk, *piece, number, bytes))
		push(walk, bytes);
	else
		walk->at += bytes;
	return true;
}

static bool step_number(struct example_walk *walk, struct piece *piece, uint64_t number)
{
	uint64_t value;
	const size_t n = varint_read(piece->data, piece->size, &value);

	if (n == 0)
		return walk_damaged(walk);
	if (walk->depth == IN_PACKED ||
	    (walk->depth == IN_LIST && walk->entry.list == LIST_INTS && number == 1))
		take_int(walk, value);
	walk_take(walk, piece, n);
	return true;
}

static bool step_fixed(struct example_walk *walk, size_t bytes)
{
	if (bytes > walk->end[walk->depth] - walk->at)
		return walk_damaged(walk);
	walk->at += bytes;
	return true;
}

/* One field, or one of many numbers. */
static bool step(struct example_walk *walk, struct piece piece)
{
	uint64_t head;
	size_t n;

	if (walk->depth == IN_PACKED)
		return step_number(walk, &piece, 0);
	n = varint_read(piece.data, piece.size, &head);
	if (n == 0 || head >> 3 == 0)
		return walk_damaged(walk);
	walk_take(walk, &piece, n);
	switch ((enum proto_kind)(head & 7)) {
	case PROTO_VARINT:
		return step_number(walk, &piece, head >> 3);
	case PROTO_64:
		return step_fixed(walk, 8);
	case PROTO_BYTES:
		return step_bytes(walk, &piece, head >> 3);
	case PROTO_32:
		return step_fixed(walk, 4);
	}
	return walk_damaged(walk);
}

/* Messages that end here. */
static bool pop(struct example_walk *walk)
{
	while (walk->depth > 0 && walk->at == walk->end[walk->depth]) {
		const bool is_entry = walk->depth == IN_ENTRY;

		walk->depth--;
		if (is_entry && !end_entry(walk))
			return false;
	}
	return true;
}

/* ---- the walk ---- */

void example_begin(struct example_walk *walk, const struct example_names *names, uint64_t bytes)
{
	*walk = (struct example_walk){.names = names, .bytes = bytes, .end = {bytes}};
}

bool example_feed(struct example_walk *walk, uint64_t at, const uint8_t *data, size_t size)
{
	const uint64_t end = at + size;

	while (walk->at < walk->bytes && walk->at < end &&
	       (end - walk->at >= EXAMPLE_AHEAD || end >= walk->bytes)) {
		/* A step sees nothing behind the message that it is in. */
		const uint64_t left = BASE_MIN(end, walk->end[walk->depth]) - walk->at;

		if (!step(walk, (struct piece){data + (walk->at - at), left}) || !pop(walk))
			return false;
	}
	return true;
}

bool example_end(struct example_walk *walk, struct example *ret)
{
	if (walk->at != walk->bytes || walk->depth > 0)
		return walk_damaged(walk);
	if (walk->picture == FIT_NONE && !walk->names->is_whole)
		return walk_fail(walk, "no feature of bytes is the picture", 0);
	if (walk->picture == FIT_GUESS && walk->guesses > 1)
		return walk_fail(walk,
				 "several features are pictures, and none is " EXAMPLE_PICTURE, 0);
	if (walk->names->label[0] && walk->label == FIT_NONE)
		return walk_fail(walk, "no feature of whole numbers is the label", 0);
	*ret = walk->found;
	return true;
}
