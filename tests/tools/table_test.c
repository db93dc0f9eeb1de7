/* SPDX-License-Identifier: Apache-2.0 */

/* Tables line up, and a name cannot move the cursor. */

#include "tools/table.h"
#include "tests/suite.h"

#include <stdlib.h>
#include <string.h>

static char *print(struct table *table)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	table_print(table, "> ", NULL, out);
	fclose(out);
	return text;
}

START_TEST(columns_line_up)
{
	struct table table;
	char *text;

	table_init(&table, "<name|rate|<state");
	table_cell(&table, "%s", "gr\xc3\xbcn");
	table_cell(&table, "%d", 1000);
	table_cell(&table, "runs");
	table_end_row(&table);
	table_cell(&table, "a longer one");
	table_cell(&table, "7");
	table_end_row(&table);
	ck_assert_uint_eq(table_rows(&table), 2);
	text = print(&table);
	ck_assert_str_eq(text, "> name          rate  state\n"
			       "> gr\xc3\xbcn          1000  runs\n"
			       "> a longer one     7  \n");
	free(text);
}
END_TEST

START_TEST(hostile_names_stay_in_their_cell)
{
	struct table table;
	char *text;

	table_init(&table, "<name");
	table_cell(&table, "%s", "\x1b[2J\n\xff \xc2\x9b");
	table_end_row(&table);
	text = print(&table);
	ck_assert_str_eq(text, "> name\n> \\x1b[2J\\x0a\\xff \\xc2\\x9b\n");
	free(text);
}
END_TEST

START_TEST(no_rows_no_columns)
{
	struct table table;
	char *text;

	table_init(&table, "");
	table_end_row(&table);
	ck_assert_uint_eq(table_rows(&table), 0);
	text = print(&table);
	ck_assert_uint_le(strlen(text), 3);
	free(text);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, columns_line_up);
	tcase_add_test(tcase, hostile_names_stay_in_their_cell);
	tcase_add_test(tcase, no_rows_no_columns);
}

int main(void)
{
	return suite_run("table", add);
}
