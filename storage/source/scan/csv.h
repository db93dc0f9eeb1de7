/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Rows of fields with a separator between them, as RFC 4180 has them and spreadsheets, pandas and Python's csv write them:
 * a field that begins with a quote ends with one, has separators and line ends in it, and its own quotes twice.
 * Lines end in LF or CRLF. Pure; the bytes may be any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CSV_MOST_FIELDS 1024

enum {
	CSV_E_MORE = 1, /* the row does not end in these bytes */
	CSV_E_BAD = 2,  /* why says what is wrong */
};

struct csv_field { /* as it is written, in the row's bytes */
	uint32_t at, bytes;
};
struct csv_row {
	size_t bytes;   /* with its line's end */
	unsigned lines; /* line ends in it */
	unsigned n;     /* fields; 0: the line is empty */
	struct csv_field field[CSV_MOST_FIELDS];
	const char *why; /* static */
};

/* The first row of size > 0 bytes; is_last: no more follow. 0, CSV_E_MORE, CSV_E_BAD. */
int csv_row(const uint8_t *bytes, size_t size, bool is_last, char separator, struct csv_row *ret);
/* What a field says, without its quotes, and a NUL. false: it has not room enough. */
bool csv_text(const uint8_t *row, const struct csv_field *field, char *ret, size_t room);
