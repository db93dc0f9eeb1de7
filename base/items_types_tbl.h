/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rows of a table of messages (base/items.h), and items_types[], by their types. Defined by who
 * includes it, and not any more behind it:
 *
 * ITEMS_TABLE, ITEMS_STRUCT(name)   as for base/items_structs_tbl.h
 * ITEMS_KEY(KEY)                    an item's key
 * ITEMS_TYPE(NAME)                  a message's type
 * ITEMS_WHOSE                       whose it is: "reader's "
 */
#include "base/items.h"

#define MAY ITEMS_MAY
#define MUST ITEMS_MUST
#define WITH(KEY) ITEMS_KEY(KEY)
#define AT(message, member) offsetof(struct ITEMS_STRUCT(message), member)
#define ROW(KEY, need, what, kind, least, most, value, has, brings, fd) \
	{what, ITEMS_KEY(KEY), need, kind, brings, least, most, value, has, fd},

#define MESSAGE(name, NAME, asks) \
	}                         \
	;                         \
	static const struct items_row name##_rows[] = {
#define SMALL(message, KEY, member, need, what)                                                 \
	ROW(KEY, need, what, ITEMS_SMALL, 0, 0, AT(message, member), AT(message, has_##member), \
	    false, 0)
#define NUMBER(message, KEY, member, need, what)                                                 \
	ROW(KEY, need, what, ITEMS_NUMBER, 0, 0, AT(message, member), AT(message, has_##member), \
	    false, 0)
#define NUMBER_FD(message, KEY, member, need, what)                                              \
	ROW(KEY, need, what, ITEMS_NUMBER, 0, 0, AT(message, member), AT(message, has_##member), \
	    true, AT(message, member##_fd))
#define FD(message, member, need, what) \
	{what, 0, need, ITEMS_FD, true, 0, 0, 0, 0, AT(message, member##_fd)},
#define TEXT(message, KEY, member, least, most, need, what) \
	ROW(KEY, need, what, ITEMS_TEXT, least, most, AT(message, member), 0, false, 0)
#define FIXED(message, KEY, member, size, need, what)                      \
	ROW(KEY, need, what, ITEMS_FIXED, size, size, AT(message, member), \
	    AT(message, has_##member), false, 0)
#define FIXED_FD(message, KEY, member, size, need, what)                   \
	ROW(KEY, need, what, ITEMS_FIXED, size, size, AT(message, member), \
	    AT(message, has_##member), true, AT(message, member##_fd))
#define BYTES(message, KEY, member, least, most, need, what) \
	ROW(KEY, need, what, ITEMS_BYTES, least, most, AT(message, member), 0, false, 0)
__attribute__((unused)) static const struct items_row nothing_rows[] = {
/* for the first message to end */
#include ITEMS_TABLE
};
#include "base/items_end_tbl.h"

#define MESSAGE(name, NAME, asks)                                                \
	[ITEMS_TYPE(NAME)] = {ITEMS_WHOSE #NAME, ITEMS_ASKS_##asks, name##_rows, \
			      BASE_ARRAY_LEN(name##_rows), sizeof(struct ITEMS_STRUCT(name))},
#include "base/items_skip_tbl.h"
static const struct items_type items_types[] = {
#include ITEMS_TABLE
};
#include "base/items_end_tbl.h"
#undef MAY
#undef MUST
#undef WITH
#undef AT
#undef ROW
#undef ITEMS_TABLE
#undef ITEMS_STRUCT
#undef ITEMS_UNION
#undef ITEMS_KEY
#undef ITEMS_TYPE
#undef ITEMS_WHOSE
