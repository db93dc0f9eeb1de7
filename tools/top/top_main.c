/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-top: statuses come in (top_feed.c), become a model (top_model.c), a grid (top_layout.c) and a screen
 * (top_screen.c); with -b or --json they are printed.
 *
 * Exit status: 0, 1: no accessd, or no terminal, 2: wrong command line. On a terminal it waits for an accessd.
 */

#include <locale.h>
#include <strings.h>

#include "tools/option.h"
#include "tools/top/top_feed.h"
#include "tools/top/top_screen.h"
#include "tools/top/top_view.h"

#define TOP_BATCH_WIDTH 160

struct top_config {
	bool batch, json, help, version;
	uint64_t iterations; /* 0: without end */
	double delay_s;
	const char *socket, *user, *sort, *filter;
	unsigned view;
};

static const struct option top_options[] = {
#define OPTION(letter, name, kind, member, least, most, choices, arg, help) \
	{name, kind, offsetof(struct top_config, member), least, most, choices, arg, help, letter},
#include "tools/top/top_options_tbl.h"
#undef OPTION
};

struct top {
	struct top_config config;
	struct top_feed feed;
	struct top_model model;
	struct top_ui ui;
};

static int top_fail(const char *text, int status)
{
	fprintf(stderr, "access-top: %s\n", text);
	return status;
}

static void top_pause(double seconds)
{
	struct timespec pause = {(time_t)seconds,
				 (long)((seconds - (double)(time_t)seconds) * 1e9)};

	while (nanosleep(&pause, &pause) && errno == EINTR)
		;
}

/* The next status into the model, which keeps the last one where there is none newer. 0, TOP_FEED_E_NONE, -ENOMEM. */
static int top_next(struct top *top)
{
	struct json_in *status = NULL;
	int r = top_feed_next(&top->feed, &status);

	if (r == TOP_FEED_E_OLD)
		return 0;
	return r ? r : top_model_take(&top->model, status);
}

/* ---- -b and --json ---- */

static unsigned top_batch_width(void)
{
	const char *columns = getenv("COLUMNS");
	uint64_t width;

	if (columns && base_parse_number(&columns, 10000, &width) && width >= 20)
		return (unsigned)width;
	return TOP_BATCH_WIDTH;
}

static int top_print(struct top *top)
{
	struct top_grid grid;
	size_t n;
	_cleanup_free_ const struct top_row **order = top_order(&top->ui, &top->model, &n);
	_cleanup_free_ char *text = NULL;
	unsigned y;

	if (!order ||
	    top_grid_init(&grid, top_batch_width(), (unsigned)n + 160, top_screen_is_utf8()))
		return -ENOMEM;
	y = top_meters(&top->ui, &top->model, &grid);
	y = top_layout_trouble(&top->ui, &top->model, y, &grid);
	top_layout_header(&top->ui, y++, &grid);
	for (size_t i = 0; i < n; i++)
		top_layout_row(&top->ui, order[i], y++, false, &grid);
	grid.height = y;
	text = top_grid_text(&grid);
	top_grid_fini(&grid);
	if (!text)
		return -ENOMEM;
	printf("%s\n", text);
	return 0;
}

/* Rates need two statuses: the first that is printed is the second. */
static int top_batch(struct top *top)
{
	int r = top_next(top);

	if (r == 0 && top->config.delay_s < 1)
		top_pause(1);
	for (uint64_t i = 0; r == 0 && (!top->config.iterations || i < top->config.iterations);
	     i++) {
		if (i > 0 || top->config.delay_s >= 1)
			top_pause(top->config.delay_s);
		r = top_next(top);
		if (r == 0 && top->config.json)
			top_json(&top->model, stdout);
		else if (r == 0)
			r = top_print(top);
		if (r == 0 && fflush(stdout))
			return errno == EPIPE ? 0 : top_fail(strerror(errno), 1);
	}
	if (r == 0)
		return 0;
	return top_fail(r < 0 ? strerror(-r) : top->feed.diag.text, 1);
}

/* ---- the terminal ---- */

static int top_draw(struct top *top, const char *note)
{
	struct top_grid grid;
	unsigned width, height;

	top_screen_size(&width, &height);
	if (top_grid_init(&grid, width, height, top_screen_is_utf8()))
		return -ENOMEM;
	top_layout(&top->ui, &top->model, note, &grid);
	top_screen_show(&grid);
	top_grid_fini(&grid);
	return 0;
}

/* Keys until the next status is due. */
static int top_keys_until(struct top *top, uint64_t due_ns, const char *note)
{
	int r = 0;

	while (r == 0 && !top->ui.wants_quit) {
		uint64_t now_ns = base_now_ns();
		int key;

		if (now_ns >= due_ns)
			break;
		key = top_screen_key((int)((due_ns - now_ns) / 1000000) + 1);
		if (key)
			top_ui_key(&top->ui, &top->model, key);
		r = top_draw(top, note);
	}
	return r;
}

static int top_interact(struct top *top)
{
	uint64_t period_ns = (uint64_t)(top->config.delay_s * 1e9), shown = 0;
	char note[sizeof(top->feed.diag.text) + 64] = "";
	struct diag diag;
	int r = 0;

	if (top_screen_open(&diag))
		return top_fail(diag.text, 1);
	while (r >= 0 && !top->ui.wants_quit) {
		uint64_t due_ns = base_now_ns() + period_ns;

		if (!top->ui.is_paused) {
			r = top_next(top);
			note[0] = '\0';
			if (r == TOP_FEED_E_NONE)
				snprintf(note, sizeof(note), "%s. Waiting for it.",
					 top->feed.diag.text);
			else if (top->config.iterations && ++shown > top->config.iterations)
				break;
		}
		if (r >= 0)
			r = top_draw(top, note);
		if (r >= 0)
			r = top_keys_until(top, due_ns, note);
	}
	top_screen_close();
	return r < 0 ? top_fail(strerror(-r), 1) : 0;
}

/* ---- the command line ---- */

/* Of --sort: a word of --json, or a header. */
static bool top_sort_by(struct top_ui *ui, const char *word)
{
	unsigned first = top_views[ui->view].first;

	for (unsigned i = first; i < first + top_columns_of(ui->view); i++)
		if (strcmp(top_columns[i].word, word) == 0 ||
		    strcasecmp(top_columns[i].header, word) == 0) {
			ui->sort[ui->view] = (int)i;
			return true;
		}
	return false;
}

static int top_configure(struct top *top, int argc, char **argv, struct diag *diag)
{
	_cleanup_free_ char **rest = calloc((size_t)argc + 1, sizeof(*rest));
	struct top_config *config = &top->config;
	unsigned n_rest = 0;

	diag_set(diag, "out of memory");
	if (!rest || option_parse(top_options, BASE_ARRAY_LEN(top_options), argc, argv, config,
				  rest, &n_rest, diag))
		return 2;
	top->ui.view = config->view;
	if (config->user)
		snprintf(top->ui.user, sizeof(top->ui.user), "%s", config->user);
	if (config->filter)
		snprintf(top->ui.filter, sizeof(top->ui.filter), "%s", config->filter);
	if (config->delay_s == 0)
		config->delay_s = 1;
	if (n_rest > 0)
		diag_set(diag, "\"%s\" is no option; --help lists them", rest[0]);
	else if (config->sort && !top_sort_by(&top->ui, config->sort))
		diag_set(diag, "--sort %s: the view %s has no such column; --help lists them",
			 config->sort, top_views[config->view].word);
	else
		return 0;
	return 2;
}

int main(int argc, char **argv)
{
	struct top top = {.config = {.batch = false}};
	struct diag diag;
	int status;

	setlocale(LC_ALL, "");
	setlocale(LC_NUMERIC, "C");
	top_ui_init(&top.ui);
	top_model_init(&top.model);
	if (top_configure(&top, argc, argv, &diag))
		return top_fail(diag.text, 2);
	if (top.config.help) {
		puts("Usage: access-top [OPTION]...\n"
		     "Shows what the accessd of this user does for whom, and where jobs' time "
		     "goes.\n\n"
		     "Options:");
		option_print(top_options, BASE_ARRAY_LEN(top_options), stdout);
		puts("\nKeys:");
		top_help_keys(stdout);
		putchar('\n');
		top_help_columns(stdout);
		return 0;
	}
	if (top.config.version) {
		printf("access-top %s\n", PACKAGE_VERSION);
		return 0;
	}
	top_feed_init(&top.feed, top.config.socket, top.config.delay_s);
	status = top.config.batch || top.config.json ? top_batch(&top) : top_interact(&top);
	top_feed_fini(&top.feed);
	top_model_fini(&top.model);
	return status;
}
