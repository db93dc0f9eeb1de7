/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Items of messages against their rows: one pass over the message, whatever is in it, and one over the
 * rows for what is missing.
 *
 * An item of a known key and of another kind or size is an error, and not passed over: a key keeps its
 * meaning for ever, so no honest peer of another version sends it. When a key comes twice the first one
 * counts, as everywhere in base/wire.h.
 */

#include "base/items.h"

#define MOST_ROWS 64 /* bits of `seen` */

static void *member(void *ret, size_t offset)
{
	return (uint8_t *)ret + offset;
}

static int bad(struct diag *diag, const struct items_row *row, const char *how)
{
	return diag_fail(diag, WIRE_E_BAD, "%s (item %u of the message) %s", row->what, row->key,
			 how);
}

static int check_size(const struct items_row *row, size_t size, struct diag *diag)
{
	if (size >= row->least && size <= row->most)
		return 0;
	if (row->least == row->most)
		diag_set(diag, "%s (item %u of the message) has %zu bytes and must have %u",
			 row->what, row->key, size, row->most);
	else
		diag_set(diag, "%s has %zu bytes and must have %u to %u", row->what, size,
			 row->least, row->most);
	return WIRE_E_BAD;
}

static int read_number(const struct items_row *row, const struct wire_item *item, void *ret,
		       struct diag *diag)
{
	const uint64_t number = wire_number(item);

	(void)diag;
	memcpy(member(ret, row->value), &number, sizeof(number));
	*(bool *)member(ret, row->has) = true;
	return 0;
}

static int read_small(const struct items_row *row, const struct wire_item *item, void *ret,
		      struct diag *diag)
{
	const uint64_t number = wire_number(item);
	const uint32_t small = (uint32_t)number;

	if (number > UINT32_MAX)
		return bad(diag, row, "is larger than it can be");
	memcpy(member(ret, row->value), &small, sizeof(small));
	*(bool *)member(ret, row->has) = true;
	return 0;
}

static int read_text(const struct items_row *row, const struct wire_item *item, void *ret,
		     struct diag *diag)
{
	const char *text = (const char *)item->data;
	int r = check_size(row, item->size - 1, diag);

	if (!r)
		memcpy(member(ret, row->value), &text, sizeof(text));
	return r;
}

static int read_fixed(const struct items_row *row, const struct wire_item *item, void *ret,
		      struct diag *diag)
{
	int r = check_size(row, item->size, diag);

	if (r)
		return r;
	memcpy(member(ret, row->value), item->data, row->most);
	*(bool *)member(ret, row->has) = true;
	return 0;
}

static int read_bytes(const struct items_row *row, const struct wire_item *item, void *ret,
		      struct diag *diag)
{
	const struct items_bytes bytes = {item->data, item->size};
	int r = check_size(row, item->size, diag);

	if (!r)
		memcpy(member(ret, row->value), &bytes, sizeof(bytes));
	return r;
}

static const struct {
	enum wire_kind kind;
	int (*read)(const struct items_row *row, const struct wire_item *item, void *ret,
		    struct diag *diag);
} kinds[] = {
    [ITEMS_NUMBER] = {WIRE_KIND_U64, read_number}, [ITEMS_SMALL] = {WIRE_KIND_U64, read_small},
    [ITEMS_TEXT] = {WIRE_KIND_STRING, read_text},  [ITEMS_FIXED] = {WIRE_KIND_BYTES, read_fixed},
    [ITEMS_BYTES] = {WIRE_KIND_BYTES, read_bytes},
};

/* n: there is none. */
static size_t row_of(const struct items_row *rows, size_t n, uint16_t key)
{
	size_t i = 0;

	while (i < n && (rows[i].kind == ITEMS_FD || rows[i].key != key))
		i++;
	return i;
}

static int read_one(const struct items_row *row, const struct wire_item *item, void *ret,
		    struct diag *diag)
{
	if (item->kind != kinds[row->kind].kind)
		return bad(diag, row, "is of another kind than it must be");
	return kinds[row->kind].read(row, item, ret, diag);
}

/* Is everything there that must be, and does each descriptor belong to an item? */
static int check_all(const struct wire_in *in, const struct items_row *rows, size_t n,
		     uint64_t seen, void *ret, struct diag *diag)
{
	unsigned fds = 0;

	for (size_t i = 0; i < n; i++) {
		const struct items_row *row = &rows[i];
		const bool is_with = row->need && row->need != ITEMS_MUST;
		const bool has_other = is_with && seen >> row_of(rows, n, row->need) & 1;
		bool is_there = seen >> i & 1;
		unsigned fd;

		if (row->kind == ITEMS_FD)
			is_there = is_with ? has_other : fds < in->n_fds;
		if (!is_there && row->need == ITEMS_MUST)
			return bad(diag, row, "is missing");
		if (is_there && is_with && !has_other)
			return bad(diag, row, "comes without the item that it belongs to");
		if (!row->brings_fd)
			continue;
		if (is_there && fds == in->n_fds)
			return bad(diag, row, "comes without its descriptor");
		fd = is_there ? fds++ : WIRE_MAX_FDS;
		memcpy(member(ret, row->fd), &fd, sizeof(fd));
	}
	if (fds == in->n_fds)
		return 0;
	return diag_fail(diag, WIRE_E_BAD, "the message has %u descriptors, its items bring %u",
			 in->n_fds, fds);
}

static int read_all(const struct wire_in *in, const struct items_type *type, void *ret,
		    struct diag *diag)
{
	const size_t n = BASE_MIN(type->n, (size_t)MOST_ROWS);
	struct wire_item item;
	uint64_t seen = 0;
	size_t at = 0;

	_Static_assert(MOST_ROWS <= 8 * sizeof(seen), "a bit a row");
	memset(ret, 0, type->size);
	while (wire_next(in, &at, &item)) {
		size_t i = row_of(type->rows, n, item.key);
		int r;

		if (i == n || seen >> i & 1)
			continue;
		r = read_one(&type->rows[i], &item, ret, diag);
		if (r)
			return r;
		seen |= UINT64_C(1) << i;
	}
	return check_all(in, type->rows, n, seen, ret, diag);
}

int items_read(const struct wire_in *in, const struct items_type *types, size_t n, void *ret,
	       struct diag *diag)
{
	if (in->type < n && types[in->type].rows)
		return read_all(in, &types[in->type], ret, diag);
	return diag_fail(diag, WIRE_E_BAD, "there is no message of type %u", in->type);
}

const char *items_name(const struct items_type *types, size_t n, uint16_t type)
{
	return type < n ? types[type].name : NULL;
}
