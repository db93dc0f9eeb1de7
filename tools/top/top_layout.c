/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The screen: meters, the views' names, columns and rows, the keys. Each part says how many lines it took, so a small
 * screen has less of what matters less: meters first.
 */

#include "tools/top/top_view.h"

#include "tools/ctl_value.h"

#define LAYOUT_CELL 4 /* steps that a character of a column's history is of */

/* ---- cells ---- */

static double layout_cell_mean(const struct top_past *past, uint64_t cell, unsigned steps)
{
	double sum = 0;
	unsigned n = 0;

	for (uint64_t step = cell * steps; step < (cell + 1) * steps && step < past->steps;
	     step++) {
		double one = top_past_main(past, past->steps - 1 - step);

		if (!isnan(one)) {
			sum += one;
			n++;
		}
	}
	return n > 0 ? sum / n : NAN;
}

/* Cells are of the same steps from one screen to the next, and only the newest one grows. */
void top_layout_spark(const struct top_past *past, unsigned x, unsigned y, unsigned width,
		      enum top_style style, struct top_grid *grid)
{
	unsigned steps = width > 20 ? 1 : LAYOUT_CELL;
	uint64_t newest = past->steps > 0 ? (past->steps - 1) / steps : 0;
	double most = 0;

	for (unsigned i = 0; i < width && i <= newest; i++)
		most = fmax(most, layout_cell_mean(past, newest - i, steps));
	for (unsigned i = 0; i < width && i <= newest && past->steps > 0; i++) {
		double mean = layout_cell_mean(past, newest - i, steps);

		top_grid_put(grid, x + width - 1 - i, y, 1, style,
			     top_grid_spark(grid, most > 0 ? mean / most : mean));
	}
}

static enum top_style layout_style(const struct top_column_info *column,
				   const struct top_value *value)
{
	bool waits = strncmp(column->word, "wait", 4) == 0;

	if (value->text)
		return strcmp(value->text, "stopped") == 0 ? TOP_BAD : TOP_PLAIN;
	if (isnan(value->number))
		return TOP_DIM;
	if (waits && value->number >= 0.05)
		return value->number >= 0.5 ? TOP_BAD : TOP_BUSY;
	if (strncmp(column->word, "saved", 5) == 0 && value->number > 0)
		return TOP_GOOD;
	return TOP_PLAIN;
}

/* The end of a text that is too long, where that says more. */
static const char *layout_tail(const struct top_grid *grid, const char *text, unsigned width)
{
	while (top_grid_width(grid, text) > width)
		do
			text++;
		while (((unsigned char)*text & 0xc0) == 0x80);
	return text;
}

static void layout_cell(const struct top_row *row, const struct top_column_info *column,
			const struct top_value *value, unsigned x, unsigned y, unsigned width,
			struct top_grid *grid)
{
	enum top_style style = layout_style(column, value);
	char text[512];
	unsigned used;

	if (value->kind == TOP_SPARK) {
		top_layout_spark(row->past, x, y, width, TOP_BAR, grid);
		return;
	}
	top_text(value, width, text, sizeof(text));
	used = top_grid_width(grid, text);
	if (value->kind == TOP_TAIL)
		top_grid_put(grid, x, y, width, style, layout_tail(grid, text, width));
	else if (top_is_left(value->kind) || used >= width)
		top_grid_put(grid, x, y, width, style, text);
	else
		top_grid_put(grid, x + width - used, y, used, style, text);
}

/* ---- columns ---- */

/* Columns that fit, one after the other: at is their number (0 at first), x where it begins. The last one has the
 * rest of the line. */
struct layout_walk {
	unsigned at, x, width;
	const struct top_column_info *column;
};

static bool layout_next(enum top_view view, const struct top_grid *grid, struct layout_walk *walk)
{
	unsigned first = top_views[view].first, n = top_columns_of(view);

	walk->x += walk->column ? walk->width + 1 : 0;
	walk->at += walk->column ? 1 : 0;
	while (walk->at < n && top_columns[first + walk->at].from > grid->width)
		walk->at++;
	if (walk->at >= n || walk->x >= grid->width)
		return false;
	walk->column = &top_columns[first + walk->at];
	walk->width = BASE_MIN(walk->column->width, grid->width - walk->x);
	if (walk->at == n - 1 && top_is_left(walk->column->kind))
		walk->width = grid->width - walk->x;
	return true;
}

void top_layout_header(const struct top_ui *ui, unsigned y, struct top_grid *grid)
{
	struct layout_walk walk = {.at = 0};

	top_grid_style(grid, 0, y, grid->width, TOP_HEADER);
	while (layout_next(ui->view, grid, &walk)) {
		unsigned used = top_grid_width(grid, walk.column->header);
		bool is_sorted = ui->sort[ui->view] == (int)(top_views[ui->view].first + walk.at);
		unsigned right =
		    top_is_left(walk.column->kind) || used > walk.width ? 0 : walk.width - used;

		top_grid_put(grid, walk.x + right, y, walk.width - right,
			     is_sorted ? TOP_SORTED : TOP_HEADER, walk.column->header);
	}
}

void top_layout_row(const struct top_ui *ui, const struct top_row *row, unsigned y,
		    bool is_selected, struct top_grid *grid)
{
	struct layout_walk walk = {.at = 0};

	while (layout_next(ui->view, grid, &walk))
		layout_cell(row, walk.column, &row->value[walk.at], walk.x, y, walk.width, grid);
	if (is_selected)
		top_grid_style(grid, 0, y, grid->width, TOP_SELECTED);
}

/* ---- what is told ---- */

/* In lines of the grid's width; to at most the last line but one. Returns the one below. */
static unsigned layout_note(const char *note, unsigned y, struct top_grid *grid)
{
	unsigned width = grid->width > 4 ? grid->width - 4 : grid->width, x = 0;

	while (*note && y + 1 < grid->height) {
		size_t length = strcspn(note, " ");
		char word[256];

		snprintf(word, sizeof(word), "%.*s", (int)length, note);
		if (x > 0 && x + 1 + top_grid_width(grid, word) > width) {
			x = 0;
			y++;
			continue;
		}
		x += x > 0 ? 1 : 0;
		x += top_grid_put(grid, 2 + x, y, width - x, TOP_BAD, word);
		note += length + (note[length] == ' ');
	}
	return y + (x > 0);
}

unsigned top_layout_trouble(const struct top_ui *ui, const struct top_model *model, unsigned y,
			    struct top_grid *grid)
{
	const struct json_in *cluster = json_in_member(model->status, "cluster");
	const char *failed = ctl_text(cluster, "failed"), *again = ctl_text(cluster, "trouble");
	char text[2048];

	if ((ui->view != TOP_NODE && ui->view != TOP_PEERS) || (!*failed && !*again))
		return y;
	snprintf(text, sizeof(text), "%s%s",
		 *failed ? "The gate does not run: "
			 : "Does not work for now, and is tried again: ",
		 *failed ? failed : again);
	return layout_note(text, y, grid);
}

/* ---- rows ---- */

/* The cursor goes with its row; without it, it stays where it was. */
static void layout_place(struct top_ui *ui, const struct top_row *const *order, size_t n,
			 size_t room)
{
	size_t *cursor = &ui->cursor[ui->view], *top = &ui->top[ui->view];

	for (size_t i = 0; i < n; i++)
		if (order[i]->key == ui->key[ui->view]) {
			*cursor = i;
			break;
		}
	*cursor = BASE_MIN(*cursor, n - 1);
	ui->key[ui->view] = order[*cursor]->key;
	*top = BASE_MIN(*top, *cursor);
	if (*cursor - *top >= room)
		*top = *cursor - room + 1;
	if (*top + room > n)
		*top = n - BASE_MIN(n, room);
}

static void layout_rows(struct top_ui *ui, const struct top_model *model, unsigned y,
			struct top_grid *grid)
{
	static const char *const nothing[TOP_VIEWS] = {
	    [TOP_JOBS] = "no job is here",
	    [TOP_RANKS] = "no job is here",
	    [TOP_STREAMS] = "no stream is here",
	    [TOP_PEERS] = "no other node is known (access-cluster(7))",
	};
	unsigned end = grid->height - 1, room = end > y + 1 ? end - y - 1 : 1;
	size_t n;
	_cleanup_free_ const struct top_row **order = top_order(ui, model, &n);

	top_layout_header(ui, y, grid);
	ui->page_rows = room;
	if (n == 0) {
		top_grid_say(grid, 2, y + 1, TOP_DIM, "%s",
			     model->rows[ui->view].n > 0
				 ? "none of the rows is asked for (Esc: all)"
			     : nothing[ui->view] ? nothing[ui->view]
						 : "nothing to see");
		return;
	}
	layout_place(ui, order, n, room);
	for (size_t i = 0; i < room && ui->top[ui->view] + i < n; i++)
		top_layout_row(ui, order[ui->top[ui->view] + i], y + 1 + (unsigned)i,
			       ui->top[ui->view] + i == ui->cursor[ui->view], grid);
}

static void layout_menu(struct top_ui *ui, unsigned y, struct top_grid *grid)
{
	unsigned first = top_views[ui->view].first, n = top_columns_of(ui->view);
	unsigned room = grid->height > y + 2 ? grid->height - y - 2 : 1;
	size_t top = ui->choice >= room ? ui->choice - room + 1 : 0;

	ui->page_rows = room;
	top_grid_style(grid, 0, y, grid->width, TOP_HEADER);
	top_grid_put(grid, 0, y, grid->width, TOP_HEADER, "Sort by");
	for (size_t i = top; i < n && i < top + room; i++) {
		unsigned line = y + 1 + (unsigned)(i - top);

		top_grid_put(grid, 1, line, 10, TOP_BOLD, top_columns[first + i].header);
		top_grid_say(grid, 12, line, TOP_PLAIN, "%s", top_columns[first + i].help);
		if (i == ui->choice)
			top_grid_style(grid, 0, line, grid->width, TOP_SELECTED);
	}
}

/* ---- the lines around them ---- */

static void layout_tabs(const struct top_ui *ui, unsigned y, struct top_grid *grid)
{
	int sort = ui->sort[ui->view];
	unsigned x = 0, used;
	char state[160] = "";

	if (grid->width < 60)
		x = top_grid_say(grid, 0, y, TOP_TITLE, "%s", top_views[ui->view].title);
	for (unsigned i = 0; i < TOP_VIEWS && grid->width >= 60; i++)
		x += 1 + top_grid_say(grid, x, y, i == ui->view ? TOP_TITLE : TOP_DIM, "%u%s",
				      i + 1, top_views[i].title);
	snprintf(state, sizeof(state), "%s%s%s%s%s%s%s", ui->is_paused ? " PAUSED" : "",
		 ui->user[0] ? " user:" : "", ui->user, ui->filter[0] ? " filter:" : "", ui->filter,
		 sort >= 0 ? (ui->reverse[ui->view] ? " upwards:" : " by:") : "",
		 sort >= 0 ? top_columns[sort].header : "");
	used = top_grid_width(grid, state);
	x = x + used < grid->width ? grid->width - used : x;
	top_grid_put(grid, x, y, used, TOP_PLAIN, state);
}

static void layout_keys(unsigned y, struct top_grid *grid)
{
	static const char *const pairs[][2] = {
	    {"F1", "Help"},   {"F3", "Search"}, {"F4", "Filter"}, {"F5", "Expand"},
	    {"F6", "SortBy"}, {"Tab", "View"},  {"F10", "Quit"},
	};
	unsigned x = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(pairs); i++) {
		x += top_grid_say(grid, x, y, TOP_KEY, "%s", pairs[i][0]);
		x += top_grid_say(grid, x, y, TOP_LABEL, "%s ", pairs[i][1]);
	}
	top_grid_style(grid, x, y, grid->width > x ? grid->width - x : 0, TOP_LABEL);
}

static void layout_prompt(const struct top_ui *ui, unsigned y, struct top_grid *grid)
{
	static const char *const words[] = {"", "Filter", "Search", "User"};

	top_grid_style(grid, 0, y, grid->width, TOP_LABEL);
	top_grid_say(grid, 0, y, TOP_LABEL, "%s: %s_   Enter: done  Esc: as before",
		     words[ui->prompt], ui->typed);
}

void top_layout(struct top_ui *ui, const struct top_model *model, const char *note,
		struct top_grid *grid)
{
	unsigned y;

	if (grid->height < 4 || grid->width < 10) {
		top_grid_put(grid, 0, 0, grid->width, TOP_BAD, "too small");
		return;
	}
	if (ui->page == TOP_PAGE_HELP) {
		top_help(ui, grid);
		return;
	}
	y = top_meters(ui, model, grid);
	layout_tabs(ui, y++, grid);
	if (note[0])
		layout_note(note, y + 1, grid);
	else if (ui->page == TOP_PAGE_SORT)
		layout_menu(ui, y, grid);
	else if (ui->page == TOP_PAGE_JOB)
		top_job(ui, model, y, grid);
	else
		layout_rows(ui, model, top_layout_trouble(ui, model, y, grid), grid);
	if (ui->prompt != TOP_PROMPT_NONE)
		layout_prompt(ui, grid->height - 1, grid);
	else
		layout_keys(grid->height - 1, grid);
}
