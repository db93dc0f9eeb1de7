/* SPDX-License-Identifier: Apache-2.0 */

/* The help: made of the tables, shown a screen at a time. */

#include "tools/top/top_view.h"

#include "tools/ctl_waits.h"
#include "tools/option.h"

void top_help_columns(FILE *out)
{
	for (unsigned view = 0; view < TOP_VIEWS; view++) {
		fprintf(out, "%s%s: %s.\n", view ? "\n" : "", top_views[view].title,
			top_views[view].help);
		for (unsigned i = 0; i < top_columns_of(view); i++) {
			const struct top_column_info *column =
			    &top_columns[top_views[view].first + i];

			fprintf(out, "  %-11s", column->header);
			option_wrap(out, 13, 80 - 13, "%s", column->help);
		}
	}
}

void top_help(struct top_ui *ui, struct top_grid *grid)
{
	_cleanup_free_ char *text = NULL;
	size_t size = 0, line = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	fputs("access-top: what accessd does for whom. Down, PgDn: more; any other key: back.\n\n",
	      out);
	top_help_keys(out);
	fputs("\nWhat a job waits for, and the letters of its timeline, which are their first:\n",
	      out);
	ctl_waits_help(out);
	fputs("  itself     its own steps (#); stopped (x): it takes nothing\n\n", out);
	top_help_columns(out);
	if (fclose(out))
		return;
	ui->page_rows = grid->height;
	for (char *at = text; *at; line++) {
		size_t length = strcspn(at, "\n");
		bool is_title = at[0] != ' ';

		at[length] = '\0';
		if (line >= ui->scroll && line - ui->scroll < grid->height)
			top_grid_put(grid, 0, (unsigned)(line - ui->scroll), grid->width,
				     is_title ? TOP_BOLD : TOP_PLAIN, at);
		at += length + 1;
	}
	if (line > 0 && ui->scroll >= line)
		ui->scroll = line - 1;
}
