/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * The items of a message (base/wire.h), as who receives it declares them: a row an item, and a plain
 * struct that all of them are read into. One routine looks at lengths, and what comes behind it sees
 * members of a fixed size, texts and bytes that are no longer than their row allows.
 *
 * Rows are not written by hand: a table of macros makes the structs and their rows of one text, so that a
 * row's size is that of its member. Each peer's messages are one table, which has for each of them
 *
 * MESSAGE(name, NAME, asks)                  begins it; it ends where the next one begins
 * NUMBER(message, KEY, member, need, what)
 * NUMBER_FD(...)                             the same, and it brings a descriptor
 * FD(message, member, need, what)            one more descriptor; WITH(KEY): with that item; MAY: a last one
 * SMALL(message, KEY, member, need, what)    a number of 32 bits
 * TEXT(message, KEY, member, least, most, need, what)
 * FIXED(message, KEY, member, size, need, what)
 * FIXED_FD(...)                              the same, and it brings a descriptor
 * BYTES(message, KEY, member, least, most, need, what)
 *
 * asks: NOTHING; SOMETHING; MEMORY: for an answer that is a memory, which the peer must read before it asks more.
 * need: MAY, MUST, or WITH(KEY): not without that item. base/items_structs_tbl.h makes the structs of it, and
 * base/items_types_tbl.h the rows.
 */

#include "base/base.h"
#include "base/wire.h"

#define ITEMS_MAY 0       /* need: it may be missing */
#define ITEMS_MUST 0xffff /* need: it may not; another number: not without the item of that key */

enum items_kind {
	ITEMS_NUMBER, /* uint64_t, and whether it is there */
	ITEMS_SMALL,  /* uint32_t, and whether it is there */
	ITEMS_TEXT,   /* const char *; NULL: not there; least, most: of its bytes without the NUL */
	ITEMS_FIXED,  /* uint8_t[most], and whether it is there */
	ITEMS_BYTES,  /* struct items_bytes; least, most: of their number */
	ITEMS_FD,     /* no item */
};

struct items_bytes {
	const uint8_t *data; /* NULL: not there */
	size_t size;
};

struct items_row {
	const char *what; /* for people: "the dataset's path" */
	uint16_t key, need;
	uint8_t kind;
	bool brings_fd; /* the next descriptor of the message goes with it */
	uint32_t least, most;
	size_t value, has, fd; /* offsets of the members; fd: unsigned, number of the descriptor */
};

enum items_asks { ITEMS_ASKS_NOTHING, ITEMS_ASKS_SOMETHING, ITEMS_ASKS_MEMORY };

struct items_type {       /* of a message: its rows, and the size of its struct */
	const char *name; /* for people: "reader's OPENED" */
	enum items_asks asks;
	const struct items_row *rows;
	size_t n, size;
};

/*
 * Reads in's items into the struct of its type, which is zeroed first. Texts and bytes are in's. There
 * must be as many descriptors as the items bring, in the order of the rows. Items of other keys are
 * passed over. 0, or WIRE_E_BAD with diag: there is no such type, or what is wrong with which item.
 */
int items_read(const struct wire_in *in, const struct items_type *types, size_t n, void *ret,
	       struct diag *diag);
/* What a message of that type is called; NULL: there is none. */
const char *items_name(const struct items_type *types, size_t n, uint16_t type);
