/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collect, then draw: the widths are known only when the last row is in. Text comes from strangers
 * (names of jobs and folders), so every cell goes through base_quote(); a table that ran out of
 * memory draws empty cells rather than nothing.
 */

#include "tools/table.h"

#include <stdarg.h>

#define TABLE_CELL 512

static void table_add(struct table *table, const char *text)
{
	if (base_grow(&table->cell, &table->room, table->cells + 1, sizeof(*table->cell)))
		table->cell[table->cells++] = strdup(text);
}

void table_init(struct table *table, const char *headers)
{
	*table = (struct table){.columns = 0};
	while (*headers && table->columns < TABLE_COLUMNS) {
		char text[TABLE_CELL];
		size_t length = strcspn(headers, "|");

		table->left[table->columns] = *headers == '<';
		snprintf(text, sizeof(text), "%.*s", (int)length, headers);
		table_add(table, text + (*headers == '<' ? 1 : 0));
		table->columns++;
		headers += length + (headers[length] ? 1 : 0);
	}
}

void table_cell(struct table *table, const char *fmt, ...)
{
	char raw[TABLE_CELL];
	va_list args;

	va_start(args, fmt);
	if (vsnprintf(raw, sizeof(raw), fmt, args) < 0)
		raw[0] = '\0';
	va_end(args);
	table_add(table, BASE_QUOTED(raw, TABLE_CELL));
}

void table_end_row(struct table *table)
{
	while (table->columns > 0 && table->cells % table->columns != 0) {
		unsigned before = table->cells;

		table_add(table, "");
		if (table->cells == before)
			return;
	}
}

unsigned table_rows(const struct table *table)
{
	return table->columns > 0 && table->cells > 0 ? table->cells / table->columns - 1 : 0;
}

unsigned table_width(const char *text)
{
	unsigned width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

static const char *table_text(const struct table *table, unsigned index)
{
	return index < table->cells && table->cell[index] ? table->cell[index] : "";
}

static unsigned table_column_width(const struct table *table, unsigned column)
{
	unsigned width = 0;

	for (unsigned i = column; i < table->cells; i += table->columns)
		width = BASE_MAX(width, table_width(table_text(table, i)));
	return width;
}

static void table_draw(const struct table *table, const char *indent, FILE *out)
{
	unsigned width[TABLE_COLUMNS];

	for (unsigned i = 0; i < table->columns; i++)
		width[i] = table_column_width(table, i);
	for (unsigned row = 0; row <= table_rows(table); row++) {
		fputs(indent, out);
		for (unsigned i = 0; i < table->columns; i++) {
			const char *text = table_text(table, row * table->columns + i);
			int pad = (int)(width[i] - table_width(text));

			if (i > 0)
				fputs("  ", out);
			if (!table->left[i])
				fprintf(out, "%*s", pad, "");
			fputs(text, out);
			if (table->left[i] && i + 1 < table->columns)
				fprintf(out, "%*s", pad, "");
		}
		fputc('\n', out);
	}
}

void table_print(struct table *table, const char *indent, const char *none, FILE *out)
{
	if (none && table_rows(table) == 0)
		fputs(none, out);
	else
		table_draw(table, indent, out);
	for (unsigned i = 0; i < table->cells; i++)
		free(table->cell[i]);
	free(table->cell);
	*table = (struct table){.columns = 0};
}
