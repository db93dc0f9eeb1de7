/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One job alone: what it gets, what it waits for and what helps, whom it shares with, and its timeline: for each moment a
 * column, in which each part of its time has as much as its share. Parts have letters, so that it is read without colours.
 */

#include "tools/top/top_view.h"

#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"

#define JOB_SPAN 300 /* steps that a timeline should have */

/* From below. */
static const enum top_part job_order[TOP_PARTS] = {
    TOP_PART_ITSELF,   TOP_PART_DECODE, TOP_PART_READ,  TOP_PART_SLOT,    TOP_PART_WORKERS,
    TOP_PART_SCHEDULE, TOP_PART_SCAN,   TOP_PART_DRAIN, TOP_PART_STOPPED,
};

static char job_letter(enum top_part part)
{
	if (part == TOP_PART_ITSELF)
		return '#';
	return part == TOP_PART_DRAIN     ? 'R'
	       : part == TOP_PART_STOPPED ? 'x'
					  : top_part_words[part][0];
}

static enum top_style job_style(enum top_part part)
{
	return (enum top_style)(TOP_PART_STYLE + (unsigned)part);
}

/* ---- the timeline ---- */

/* The mean of the steps of a cell; cells are of the same steps from one screen to the next. */
static bool job_mean(const struct top_past *past, uint64_t cell, unsigned steps, double *ret)
{
	unsigned n = 0;

	memset(ret, 0, TOP_PARTS * sizeof(*ret));
	for (uint64_t step = cell * steps; step < (cell + 1) * steps && step < past->steps;
	     step++) {
		if (isnan(top_past_part(past, past->steps - 1 - step, TOP_PART_ITSELF)))
			continue;
		n++;
		for (unsigned part = 0; part < TOP_PARTS; part++)
			ret[part] += top_past_part(past, past->steps - 1 - step, part);
	}
	for (unsigned part = 0; part < TOP_PARTS; part++)
		ret[part] /= n;
	return n > 0;
}

static void job_bar(const double *share, unsigned x, unsigned y, unsigned height,
		    struct top_grid *grid)
{
	for (unsigned row = 0; row < height; row++) {
		double at = (row + 0.5) / height, sum = 0;

		for (unsigned i = 0; i < TOP_PARTS; i++) {
			char text[2] = {job_letter(job_order[i])};

			sum += share[job_order[i]];
			if (sum < at)
				continue;
			top_grid_put(grid, x, y + height - 1 - row, 1, job_style(job_order[i]),
				     text);
			break;
		}
	}
}

static void job_legend(const struct top_past *past, unsigned y, struct top_grid *grid)
{
	double share[TOP_PARTS];
	unsigned x = 0;

	for (unsigned i = 0; i < TOP_PARTS; i++) {
		double sum = 0, known = 0;

		for (unsigned step = 0; step < 60; step++) {
			double one = top_past_part(past, step, job_order[i]);

			sum += isnan(one) ? 0 : one;
			known += isnan(one) ? 0 : 1;
		}
		share[i] = known > 0 ? sum / known : 0;
	}
	for (unsigned i = 0; i < TOP_PARTS; i++) {
		if (share[i] < 0.005 && job_order[i] != TOP_PART_ITSELF)
			continue;
		x += top_grid_say(grid, x, y, job_style(job_order[i]), "%c",
				  job_letter(job_order[i]));
		x += top_grid_say(grid, x, y, TOP_PLAIN, " %s %.0f%%  ",
				  top_part_words[job_order[i]], 100 * share[i]);
	}
	top_grid_say(grid, x, y, TOP_DIM, "(of its last minute)");
}

static void job_timeline(const struct top_past *past, unsigned y, struct top_grid *grid)
{
	unsigned height = grid->height - 1 > y + 3 ? BASE_MIN(grid->height - 4 - y, 12u) : 0;
	unsigned width = grid->width > 7 ? grid->width - 7 : 0;
	unsigned steps = (JOB_SPAN + width - 1) / BASE_MAX(width, 1u);
	uint64_t newest = past->steps > 0 ? (past->steps - 1) / steps : 0;
	double share[TOP_PARTS];

	if (height < 2)
		return;
	top_grid_say(grid, 0, y, TOP_BOLD, "Where its time goes, in the last %.0f minutes",
		     width * steps / 60.0);
	top_grid_put(grid, 0, y + 1, 6, TOP_DIM, " 100%");
	top_grid_put(grid, 0, y + height, 6, TOP_DIM, "   0%");
	for (unsigned i = 0; i < width && i <= newest; i++)
		if (job_mean(past, newest - i, steps, share))
			job_bar(share, grid->width - 1 - i, y + 1, height, grid);
	job_legend(past, y + 1 + height, grid);
}

/* ---- words ---- */

/* Lines of words; returns how many, at most two. */
static unsigned job_say(struct top_grid *grid, unsigned y, const char *head, const char *text)
{
	unsigned width = grid->width > 9 ? grid->width - 9 : 1, x = 0, line = 0;

	top_grid_put(grid, 0, y, 8, TOP_BOLD, head);
	while (*text) {
		int length = (int)strcspn(text, " ");
		char word[200];

		snprintf(word, sizeof(word), "%.*s", length, text);
		if (x > 0 && x + 1 + top_grid_width(grid, word) > width) {
			if (++line == 2)
				return line;
			x = 0;
		}
		x += x > 0 ? 1 : 0;
		x += top_grid_put(grid, 9 + x, y + line, width - x, TOP_PLAIN, word);
		text += length + (text[length] == ' ');
	}
	return line + 1;
}

static char *job_cell(const struct top_row *row, unsigned column, char *ret, size_t size)
{
	return top_text(top_value(row, column), 9, ret, size);
}

static void job_waits(const struct top_row *row, char *ret, size_t size)
{
	struct ctl_waits waits;
	char shares[256], late[152];

	ctl_waits_of(row->object, &waits);
	ctl_waits_late(row->object, late, sizeof(late));
	ctl_waits_shares(row->object, shares, sizeof(shares));
	if (waits.pace == CTL_PACE_STOPPED)
		snprintf(ret, size, "takes nothing, for %.0f s: stopped, or in a long step",
			 ctl_real(row->object, "idle_seconds"));
	else if (late[0])
		snprintf(ret, size, "%s. Now for %s; what lies behind is there",
			 shares[0] ? shares : waits.stage, late);
	else if (waits.pace != CTL_PACE_WAITS)
		snprintf(ret, size, "hardly: its own steps, or its GPU, are its pace (%s)",
			 shares[0] ? shares : "0 %");
	else
		snprintf(ret, size, "%s. What helps: %s", shares[0] ? shares : waits.stage,
			 waits.word ? waits.word->helps : "-");
}

static void job_sharing(const struct top_row *row, char *ret, size_t size)
{
	char with[16], saved[16], rate[16];

	if (!(top_value(row, TOP_JOBS_WITH)->number > 0)) {
		snprintf(ret, size, "with nobody: no other job has its data set and pipeline now");
		return;
	}
	snprintf(ret, size, "with %s (%s); %s %% need not be made for it alone, %s samples/s",
		 job_cell(row, TOP_JOBS_WITH, with, sizeof(with)),
		 row->more[0] ? row->more : "of other users",
		 job_cell(row, TOP_JOBS_SAVED, saved, sizeof(saved)),
		 job_cell(row, TOP_JOBS_FREE, rate, sizeof(rate)));
}

static void job_figures(const struct top_row *row, char *ret, size_t size)
{
	char rate[16], ahead[16], holds[16], epoch[48], samples[16], ranks[16];

	snprintf(ret, size,
		 "%s samples/s; %s ahead; holds %s slots; epoch %s; %s samples; ranks: %s",
		 job_cell(row, TOP_JOBS_RATE, rate, sizeof(rate)),
		 job_cell(row, TOP_JOBS_AHEAD, ahead, sizeof(ahead)),
		 job_cell(row, TOP_JOBS_HOLDS, holds, sizeof(holds)),
		 job_cell(row, TOP_JOBS_EPOCH, epoch, sizeof(epoch)),
		 job_cell(row, TOP_JOBS_SAMPLES, samples, sizeof(samples)),
		 job_cell(row, TOP_JOBS_RANKS, ranks, sizeof(ranks)));
}

void top_job(const struct top_ui *ui, const struct top_model *model, unsigned y,
	     struct top_grid *grid)
{
	const struct top_row *row = top_find(model, TOP_JOBS, ui->job), *stream;
	char text[1024], user[64];

	if (!row) {
		top_grid_put(grid, 2, y + 1, grid->width, TOP_DIM, "the job has ended (Esc: back)");
		return;
	}
	stream = top_find(model, TOP_STREAMS, ctl_u64(row->object, "stream"));
	top_grid_style(grid, 0, y, grid->width, TOP_HEADER);
	top_grid_say(grid, 0, y++, TOP_HEADER, "Job %llu  %s  of %s, pid %llu",
		     (unsigned long long)row->key, ctl_string(row->object, "name"),
		     ctl_user(ctl_u64(row->object, "uid"), user, sizeof(user)),
		     (unsigned long long)ctl_u64(row->object, "pid"));
	if (stream)
		y += job_say(grid, y, "Data set", ctl_string(stream->object, "dataset"));
	job_figures(row, text, sizeof(text));
	y += job_say(grid, y, "Gets", text);
	job_waits(row, text, sizeof(text));
	y += job_say(grid, y, "Waits", text);
	job_sharing(row, text, sizeof(text));
	y += job_say(grid, y, "Shares", text);
	if (y + 1 < grid->height) {
		top_grid_put(grid, 0, y, 8, TOP_BOLD, "Rate");
		top_layout_spark(row->past, 9, y++, grid->width > 10 ? grid->width - 10 : 1,
				 TOP_BAR, grid);
	}
	job_timeline(row->past, y, grid);
}
