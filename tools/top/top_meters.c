/* SPDX-License-Identifier: Apache-2.0 */

/* The lines above the rows: how busy the node is on the left, what jobs are given and what was saved on the right. */

#include "tools/top/top_view.h"

#include "tools/ctl_value.h"

static double meters_of(const struct top_model *model, enum top_node node)
{
	double value = top_node_value(model, node);

	return isnan(value) ? 0 : value;
}

/* "Workers [|||||      63%]" */
static void meters_bar(struct top_grid *grid, unsigned y, unsigned width, const char *name,
		       double part, const char *text)
{
	unsigned room = width - 10, used = (unsigned)strlen(text);
	unsigned full = (unsigned)(fmin(fmax(part, 0), 1) * room + 0.5);

	top_grid_put(grid, 0, y, 8, TOP_BOLD, name);
	top_grid_put(grid, 8, y, 1, TOP_BOLD, "[");
	for (unsigned i = 0; i < full; i++)
		top_grid_put(grid, 9 + i, y, 1, part > 0.9 ? TOP_BAD : TOP_GOOD, "|");
	if (used < room)
		top_grid_put(grid, 9 + room - used, y, used, TOP_DIM, text);
	top_grid_put(grid, 9 + room, y, 1, TOP_BOLD, "]");
}

static void meters_share(struct top_grid *grid, unsigned y, unsigned width, const char *name,
			 double busy, double of)
{
	char text[32];

	snprintf(text, sizeof(text), "%.0f%% of %.0f", 100 * busy, 100 * of);
	meters_bar(grid, y, width, name, of > 0 ? busy / of : 0, text);
}

static void meters_left(const struct top_model *model, unsigned y, unsigned lines, unsigned width,
			struct top_grid *grid)
{
	double used = meters_of(model, TOP_OF_MEMORY), budget = meters_of(model, TOP_OF_BUDGET);
	char text[64], a[32], b[32];
	struct top_value value = {.kind = TOP_BYTES};

	value.number = used;
	top_text(&value, 4, a, sizeof(a));
	value.number = budget;
	top_text(&value, 4, b, sizeof(b));
	snprintf(text, sizeof(text), "%s/%s", a, b);
	meters_share(grid, y, width, "Workers", meters_of(model, TOP_OF_WORKERS),
		     meters_of(model, TOP_OF_ALIVE));
	if (lines > 1)
		meters_bar(grid, y + 1, width, "Memory", budget > 0 ? used / budget : 0, text);
	if (lines > 2)
		meters_share(grid, y + 2, width, "Readers", meters_of(model, TOP_OF_READERS), 1);
	if (lines > 3)
		meters_share(grid, y + 3, width, "Loop", meters_of(model, TOP_OF_LOOP), 1);
}

static void meters_rate(const struct top_model *model, enum top_node node, const char *name,
			unsigned x, unsigned y, struct top_grid *grid)
{
	const struct top_rows *rows = &model->rows[TOP_NODE];
	char text[32];

	if (node >= rows->n)
		return;
	top_text(top_value(&rows->row[node], TOP_NODE_VALUE), 7, text, sizeof(text));
	top_grid_put(grid, x, y, 7, TOP_BOLD, name);
	top_grid_say(grid, x + 7, y, TOP_PLAIN, "%7s/s ", text);
	if (grid->width > x + 18)
		top_layout_spark(rows->row[node].past, x + 17, y,
				 BASE_MIN(grid->width - x - 17, 20u), TOP_BAR, grid);
}

static void meters_saved(const struct top_model *model, unsigned x, unsigned y,
			 struct top_grid *grid)
{
	double saved = top_node_value(model, TOP_OF_SAVED),
	       hits = top_node_value(model, TOP_OF_HIT);
	double spared = top_node_value(model, TOP_OF_SPARED);

	top_grid_put(grid, x, y, 7, TOP_BOLD, "Saved");
	if (isnan(saved))
		top_grid_put(grid, x + 7, y, 8, TOP_DIM, "      -");
	else
		x += top_grid_say(grid, x + 7, y, TOP_GOOD, "%6.0f%% by sharing", 100 * saved);
	if (!isnan(saved) && spared >= 0.05)
		top_grid_say(grid, x + 7, y, TOP_GOOD, ", %.1f CPUs", spared);
	x = grid->width / 2 + 1;
	top_grid_put(grid, x, y + 1, 7, TOP_BOLD, "Kept");
	if (isnan(hits))
		top_grid_put(grid, x + 7, y + 1, 8, TOP_DIM, "      -");
	else
		top_grid_say(grid, x + 7, y + 1, TOP_PLAIN, "%6.0f%% of what is looked for",
			     100 * hits);
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* ", 2 opening (1234567 samples)": jobs that have not begun, and what was found so far of the one that has most; or "". */
static const char *meters_opening(const struct json_in *status, char *ret, size_t size)
{
	const struct json_in *opening = json_in_member(status, "opening");
	unsigned long long most = 0;
	int n;

	ret[0] = '\0';
	JSON_IN_EACH(one, opening)
		most = BASE_MAX(most, ctl_u64(one, "samples"));
	if (json_in_count(opening) == 0)
		return ret;
	n = snprintf(ret, size, ", %zu opening", json_in_count(opening));
	if (most > 0)
		snprintf(ret + n, size - (size_t)n, " (%llu sample%s)", most, plural(most));
	return ret;
}

static void meters_title(const struct top_model *model, struct top_grid *grid)
{
	size_t jobs = model->rows[TOP_JOBS].n, streams = model->rows[TOP_STREAMS].n,
	       ranks = model->rows[TOP_RANKS].n;
	char up[48], opening[64], counts[160];
	unsigned x = top_grid_say(grid, 0, 0, TOP_TITLE, "access-top");

	if (!model->status)
		return;
	x += top_grid_say(grid, x, 0, TOP_PLAIN, "  accessd %s pid %llu up %s%s",
			  BASE_QUOTED(ctl_string(model->status, "version"), 32),
			  (unsigned long long)model->pid, ctl_duration(model->at_s, up, sizeof(up)),
			  ctl_is(model->status, "draining") ? ", ending" : "");
	snprintf(counts, sizeof(counts), "%zu job%s, %zu stream%s, %zu rank%s%s", jobs,
		 plural(jobs), streams, plural(streams), ranks, plural(ranks),
		 meters_opening(model->status, opening, sizeof(opening)));
	if (x + 2 + strlen(counts) <= grid->width)
		top_grid_put(grid, grid->width - (unsigned)strlen(counts), 0, grid->width,
			     TOP_PLAIN, counts);
}

unsigned top_meters(const struct top_ui *ui, const struct top_model *model, struct top_grid *grid)
{
	unsigned lines = grid->height >= 20   ? 4
			 : grid->height >= 14 ? 2
			 : grid->height >= 9  ? 1
					      : 0;
	unsigned width = grid->width >= 60 ? grid->width / 2 - 1 : grid->width;
	unsigned right = grid->width / 2 + 1;

	(void)ui;
	meters_title(model, grid);
	if (!model->status || width < 20)
		return 1;
	if (lines > 0)
		meters_left(model, 1, lines, width, grid);
	if (lines > 0 && grid->width >= 60)
		meters_rate(model, TOP_OF_RATE, "Given", right, 1, grid);
	if (lines > 1 && grid->width >= 60)
		meters_rate(model, TOP_OF_MADE, "Made", right, 2, grid);
	if (lines > 3 && grid->width >= 60)
		meters_saved(model, right, 3, grid);
	return 1 + lines;
}
