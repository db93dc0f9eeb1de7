/* SPDX-License-Identifier: Apache-2.0 */

/* One pass over a row: each byte is looked at once, and belongs to one field or stands between two. */

#include "storage/source/scan/csv.h"

struct walk {
	const uint8_t *bytes;
	size_t size, at;
	bool is_last;
};

static int csv_bad(struct csv_row *row, const char *why)
{
	row->why = why;
	return CSV_E_BAD;
}

/* Behind the closing quote of the field that begins here. */
static int pass_quoted(struct walk *walk, struct csv_row *row)
{
	for (walk->at++; walk->at < walk->size; walk->at++) {
		const uint8_t byte = walk->bytes[walk->at];

		row->lines += byte == '\n';
		if (byte != '"')
			continue;
		if (walk->at + 1 == walk->size && !walk->is_last)
			return CSV_E_MORE;
		if (walk->at + 1 == walk->size || walk->bytes[walk->at + 1] != '"') {
			walk->at++;
			return 0;
		}
		walk->at++;
	}
	return walk->is_last ? csv_bad(row, "a quote is opened here and never closed") : CSV_E_MORE;
}

static bool ends_field(uint8_t byte, char separator)
{
	return byte == (uint8_t)separator || byte == '\n' || byte == '\r';
}

static int pass_field(struct walk *walk, char separator, struct csv_row *row)
{
	const size_t begin = walk->at;
	int r = 0;

	if (row->n == CSV_MOST_FIELDS)
		return csv_bad(row, "it has more than 1024 fields");
	if (walk->at < walk->size && walk->bytes[walk->at] == '"')
		r = pass_quoted(walk, row);
	else
		while (walk->at < walk->size && !ends_field(walk->bytes[walk->at], separator))
			walk->at++;
	if (r)
		return r;
	if (walk->at == walk->size && !walk->is_last)
		return CSV_E_MORE;
	if (walk->at < walk->size && !ends_field(walk->bytes[walk->at], separator))
		return csv_bad(row, "something follows a closing quote; a quote within quotes is "
				    "written twice");
	row->field[row->n++] = (struct csv_field){(uint32_t)begin, (uint32_t)(walk->at - begin)};
	return 0;
}

/* What stands behind the last field. */
static int pass_end(struct walk *walk, struct csv_row *row)
{
	if (walk->at < walk->size && walk->bytes[walk->at] == '\r') {
		if (++walk->at == walk->size && !walk->is_last)
			return CSV_E_MORE;
		if (walk->at < walk->size && walk->bytes[walk->at] != '\n')
			return csv_bad(row, "a carriage return within a row; lines end in LF or "
					    "CRLF");
	}
	if (walk->at < walk->size) {
		walk->at++;
		row->lines++;
	}
	row->bytes = walk->at;
	if (row->n == 1 && row->field[0].bytes == 0)
		row->n = 0;
	return 0;
}

int csv_row(const uint8_t *bytes, size_t size, bool is_last, char separator, struct csv_row *ret)
{
	struct walk walk = {.bytes = bytes, .size = size, .is_last = is_last};
	bool has_more = true;

	ret->n = ret->lines = 0;
	while (has_more) {
		const int r = pass_field(&walk, separator, ret);

		if (r)
			return r;
		has_more = walk.at < size && bytes[walk.at] == (uint8_t)separator;
		walk.at += has_more;
	}
	return pass_end(&walk, ret);
}

bool csv_text(const uint8_t *row, const struct csv_field *field, char *ret, size_t room)
{
	const uint8_t *from = row + field->at, *end = from + field->bytes;
	size_t n = 0;

	if (from < end && *from == '"') {
		from++;
		end--;
		for (; from < end && n < room; from++) {
			ret[n++] = (char)*from;
			from += *from == '"';
		}
	} else {
		for (; from < end && n < room; from++)
			ret[n++] = (char)*from;
	}
	if (n == room)
		return false;
	ret[n] = '\0';
	return true;
}
