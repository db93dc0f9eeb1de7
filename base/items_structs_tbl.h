/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs of a table of messages (base/items.h). Defined by who includes it:
 *
 * ITEMS_TABLE          the table's file
 * ITEMS_STRUCT(name)   a struct's name, without "struct"
 * ITEMS_UNION          the name of a union of them all; where it is not defined there is none
 *
 * Numbers and bytes of a fixed size: has_...; texts and bytes: NULL where there is none; ..._fd: which of the
 * message's descriptors it brings, for wire_take_fd(), which has none for one that is not there.
 */
#include "base/items.h"

#define MESSAGE(name, NAME, asks) \
	}                         \
	;                         \
	struct ITEMS_STRUCT(name) {
#define SMALL(message, KEY, member, need, what) \
	uint32_t member;                        \
	bool has_##member;
#define NUMBER(message, KEY, member, need, what) \
	uint64_t member;                         \
	bool has_##member;
#define NUMBER_FD(message, KEY, member, need, what) \
	NUMBER(message, KEY, member, need, what)    \
	unsigned member##_fd;
#define FD(message, member, need, what) unsigned member##_fd;
#define TEXT(message, KEY, member, least, most, need, what) const char *member;
#define FIXED(message, KEY, member, size, need, what) \
	uint8_t member[size];                         \
	bool has_##member;
#define FIXED_FD(message, KEY, member, size, need, what) \
	FIXED(message, KEY, member, size, need, what)    \
	unsigned member##_fd;
#define BYTES(message, KEY, member, least, most, need, what) struct items_bytes member;
struct ITEMS_STRUCT(nothing) { /* for the first message to end */
#include ITEMS_TABLE
};
#include "base/items_end_tbl.h"

#ifdef ITEMS_UNION
union ITEMS_UNION {
#define MESSAGE(name, NAME, asks) struct ITEMS_STRUCT(name) name;
#include "base/items_skip_tbl.h"
#include ITEMS_TABLE
#include "base/items_end_tbl.h"
};
#endif
