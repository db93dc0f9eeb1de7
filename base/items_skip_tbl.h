/* SPDX-License-Identifier: Apache-2.0 */
/* In front of a table of messages: of each message its MESSAGE() alone counts. */
#define SMALL(message, KEY, member, need, what)
#define NUMBER(message, KEY, member, need, what)
#define NUMBER_FD(message, KEY, member, need, what)
#define FD(message, member, need, what)
#define TEXT(message, KEY, member, least, most, need, what)
#define FIXED(message, KEY, member, size, need, what)
#define FIXED_FD(message, KEY, member, size, need, what)
#define BYTES(message, KEY, member, least, most, need, what)
