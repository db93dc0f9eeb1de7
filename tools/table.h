/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * Plain tables for terminals: collected cell by cell, drawn when complete. A column whose header
 * begins with '<' is aligned left, others right. Cells may hold anything: what could move the
 * cursor is escaped.
 */

#include <stdio.h>
#include "base/base.h"

#define TABLE_COLUMNS 24

struct table {
	unsigned columns, cells;
	size_t room; /* of cell */
	char **cell; /* row by row, the header first; NULL after a failed allocation: drawn empty */
	bool left[TABLE_COLUMNS];
};

/* headers: columns texts with '|' between them. */
void table_init(struct table *table, const char *headers);
void table_cell(struct table *table, const char *fmt, ...) BASE_PRINTF(2, 3);
void table_end_row(struct table *table);        /* fills it up with empty cells */
unsigned table_rows(const struct table *table); /* without the header */
/* Draws it, or says `none` (NULL: draws the header) where it has no rows, and frees it. */
void table_print(struct table *table, const char *indent, const char *none, FILE *out);
/* Columns that a UTF-8 text needs, as far as characters are one column wide. */
unsigned table_width(const char *text);
