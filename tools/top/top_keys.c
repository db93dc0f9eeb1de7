/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What keys do, to a struct top_ui alone. The cursor stays on its row, by the row's key, whatever the order becomes; if
 * the row is gone it stays where it was on the screen (top_layout.c).
 */

#include "tools/top/top_view.h"

enum key_action {
#define KEY(key, another, third, action, names, help) KEY_##action,
#include "tools/top/top_keys_tbl.h"
};

void top_ui_init(struct top_ui *ui)
{
	*ui = (struct top_ui){.page_rows = 1};
	for (unsigned i = 0; i < TOP_VIEWS; i++)
		ui->sort[i] = top_views[i].sort;
}

/* ---- the cursor ---- */

static void keys_to(struct top_ui *ui, const struct top_model *model, size_t row)
{
	size_t n;
	_cleanup_free_ const struct top_row **order = top_order(ui, model, &n);

	if (n == 0)
		return;
	ui->cursor[ui->view] = BASE_MIN(row, n - 1);
	ui->key[ui->view] = order[ui->cursor[ui->view]]->key;
}

static void keys_by(struct top_ui *ui, const struct top_model *model, size_t rows, bool down)
{
	size_t *at = ui->page == TOP_PAGE_SORT ? &ui->choice : &ui->cursor[ui->view];
	size_t to = down ? *at + rows : *at - BASE_MIN(rows, *at);

	if (ui->page == TOP_PAGE_SORT)
		*at = BASE_MIN(to, top_columns_of(ui->view) - 1);
	else if (ui->page == TOP_PAGE_ROWS)
		keys_to(ui, model, to);
}

/* ---- pages and views ---- */

static void keys_view(struct top_ui *ui, unsigned view)
{
	ui->view = view % TOP_VIEWS;
	ui->page = TOP_PAGE_ROWS;
}

/* The job of the row: of a rank its own. */
static uint64_t keys_job_of(const struct top_model *model, const struct top_row *row)
{
	const struct top_rows *jobs = &model->rows[TOP_JOBS];
	const char *name =
	    top_value(row, row->view == TOP_JOBS ? TOP_JOBS_NAME : TOP_RANKS_NAME)->text;

	if (top_find(model, TOP_JOBS, row->key))
		return row->key;
	for (size_t i = 0; i < jobs->n; i++) {
		const char *other = top_value(&jobs->row[i], TOP_JOBS_NAME)->text;

		if (name && other && strcmp(name, other) == 0)
			return jobs->row[i].key;
	}
	return row->key;
}

static void keys_expand(struct top_ui *ui, const struct top_model *model)
{
	const struct top_row *row = top_find(model, ui->view, ui->key[ui->view]);

	if (ui->page == TOP_PAGE_SORT) {
		unsigned column = top_views[ui->view].first + (unsigned)ui->choice;

		ui->sort[ui->view] =
		    top_columns[column].kind == TOP_SPARK ? top_views[ui->view].main : (int)column;
		ui->reverse[ui->view] = false;
		ui->page = TOP_PAGE_ROWS;
	} else if (ui->page == TOP_PAGE_JOB) {
		ui->page = TOP_PAGE_ROWS;
	} else if (row && (ui->view == TOP_JOBS || ui->view == TOP_RANKS)) {
		ui->job = keys_job_of(model, row);
		ui->page = TOP_PAGE_JOB;
	}
}

/* ---- sorting ---- */

/* The view's column of that word, if it has one; a second time: the other way round. */
static void keys_by_word(struct top_ui *ui, const char *word)
{
	unsigned first = top_views[ui->view].first;

	for (unsigned i = first; i < first + top_columns_of(ui->view); i++) {
		if (strcmp(top_columns[i].word, word) != 0)
			continue;
		ui->reverse[ui->view] = ui->sort[ui->view] == (int)i && !ui->reverse[ui->view];
		ui->sort[ui->view] = (int)i;
	}
}

/* ---- prompts ---- */

static void keys_prompt(struct top_ui *ui, enum top_prompt prompt, const char *before)
{
	ui->page = TOP_PAGE_ROWS;
	ui->prompt = prompt;
	snprintf(ui->before, sizeof(ui->before), "%s", before);
	snprintf(ui->typed, sizeof(ui->typed), "%s", before);
}

/* The next row that has the text, from the cursor's on, or from the one behind it. */
static void keys_find(struct top_ui *ui, const struct top_model *model, bool behind)
{
	size_t n;
	_cleanup_free_ const struct top_row **order = top_order(ui, model, &n);

	for (size_t i = 0; i < n && ui->typed[0]; i++) {
		size_t at = (ui->cursor[ui->view] + behind + i) % n;

		if (top_matches(order[at], ui->typed)) {
			keys_to(ui, model, at);
			return;
		}
	}
}

/* What is typed counts at once. */
static void keys_apply(struct top_ui *ui, const struct top_model *model, const char *text)
{
	if (ui->prompt == TOP_PROMPT_FILTER)
		snprintf(ui->filter, sizeof(ui->filter), "%s", text);
	else if (ui->prompt == TOP_PROMPT_USER)
		snprintf(ui->user, sizeof(ui->user), "%.31s", text);
	else
		keys_find(ui, model, false);
}

static void keys_typed(struct top_ui *ui, const struct top_model *model, int key)
{
	size_t length = strlen(ui->typed);

	if (key == TOP_KEY_ESCAPE) {
		keys_apply(ui, model, ui->before);
		ui->prompt = TOP_PROMPT_NONE;
		return;
	}
	if (key == TOP_KEY_ENTER) {
		ui->prompt = TOP_PROMPT_NONE;
		return;
	}
	if (ui->prompt == TOP_PROMPT_SEARCH && (key == TOP_KEY_F1 + 2 || key == TOP_KEY_DOWN)) {
		keys_find(ui, model, true);
		return;
	}
	if (key == TOP_KEY_BACKSPACE && length > 0)
		ui->typed[length - 1] = '\0';
	else if (key >= ' ' && key < 0x7f && length + 1 < sizeof(ui->typed))
		snprintf(ui->typed + length, sizeof(ui->typed) - length, "%c", key);
	keys_apply(ui, model, ui->typed);
}

/* ---- the table ---- */

static const struct {
	int key[3];
	enum key_action action;
	const char *names, *help;
} keys[] = {
#define KEY(key, another, third, action, names, help) \
	{{key, another, third}, KEY_##action, names, help},
#include "tools/top/top_keys_tbl.h"
};

void top_help_keys(FILE *out)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(keys); i++)
		if (keys[i].names)
			fprintf(out, "  %-15s %s\n", keys[i].names, keys[i].help);
}

static void keys_act(struct top_ui *ui, const struct top_model *model, enum key_action action)
{
	const enum top_page page = ui->page;
	const int sort = ui->sort[ui->view];

	switch (action) {
	case KEY_up:
	case KEY_down:
		keys_by(ui, model, 1, action == KEY_down);
		return;
	case KEY_page_up:
	case KEY_page_down:
		keys_by(ui, model, ui->page_rows, action == KEY_page_down);
		return;
	case KEY_first:
	case KEY_last:
		keys_by(ui, model, SIZE_MAX / 2, action == KEY_last);
		return;
	case KEY_next_view:
		keys_view(ui, ui->view + 1u);
		return;
	case KEY_last_view:
		keys_view(ui, ui->view + TOP_VIEWS - 1u);
		return;
	case KEY_help:
		ui->page = TOP_PAGE_HELP;
		ui->scroll = 0;
		return;
	case KEY_quit:
		ui->wants_quit |= page == TOP_PAGE_ROWS;
		ui->page = TOP_PAGE_ROWS;
		return;
	case KEY_back:
		if (page == TOP_PAGE_ROWS)
			ui->filter[0] = ui->user[0] = '\0';
		ui->page = TOP_PAGE_ROWS;
		return;
	case KEY_pause:
		ui->is_paused = !ui->is_paused;
		return;
	case KEY_expand:
		keys_expand(ui, model);
		return;
	case KEY_sort:
		ui->page = TOP_PAGE_SORT;
		ui->choice = sort >= 0 ? (unsigned)sort - top_views[ui->view].first : 0;
		return;
	case KEY_invert:
		ui->reverse[ui->view] = !ui->reverse[ui->view];
		return;
	case KEY_by_rate:
		keys_by_word(ui, "rate");
		return;
	case KEY_by_wait:
		keys_by_word(ui, "wait");
		return;
	case KEY_by_saved:
		keys_by_word(ui, "saved");
		return;
	case KEY_filter:
		keys_prompt(ui, TOP_PROMPT_FILTER, ui->filter);
		return;
	case KEY_search:
		keys_prompt(ui, TOP_PROMPT_SEARCH, "");
		return;
	case KEY_user:
		keys_prompt(ui, TOP_PROMPT_USER, ui->user);
		return;
	}
}

/* Any key leaves the help, but for those that move in it. */
static void keys_in_help(struct top_ui *ui, int key)
{
	switch (key) {
	case TOP_KEY_DOWN:
	case 'j':
		ui->scroll++;
		break;
	case TOP_KEY_UP:
	case 'k':
		ui->scroll -= ui->scroll > 0;
		break;
	case TOP_KEY_PAGE_DOWN:
	case ' ':
		ui->scroll += ui->page_rows;
		break;
	case TOP_KEY_PAGE_UP:
		ui->scroll -= BASE_MIN(ui->scroll, ui->page_rows);
		break;
	default:
		ui->page = TOP_PAGE_ROWS;
	}
}

void top_ui_key(struct top_ui *ui, const struct top_model *model, int key)
{
	if (key == '\r')
		key = TOP_KEY_ENTER;
	if (ui->prompt != TOP_PROMPT_NONE) {
		keys_typed(ui, model, key);
		return;
	}
	if (ui->page == TOP_PAGE_HELP) {
		keys_in_help(ui, key);
		return;
	}
	if (key >= '1' && key < '1' + TOP_VIEWS)
		keys_view(ui, (unsigned)(key - '1'));
	for (size_t i = 0; i < BASE_ARRAY_LEN(keys); i++)
		for (size_t k = 0; k < BASE_ARRAY_LEN(keys[i].key); k++)
			if (keys[i].key[k] && keys[i].key[k] == key)
				keys_act(ui, model, keys[i].action);
}
