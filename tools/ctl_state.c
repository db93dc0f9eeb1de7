/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The state of the node in a sentence, and who waits for what: what is asked first by somebody whose job is slow. Lines
 * have 80 columns, as long as numbers are no larger than they usually are.
 */

#include "tools/ctl.h"

#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"
#include "tools/option.h"
#include "tools/table.h"

#define CTL_LINE 80

/* ---- the sentence ---- */

struct ctl_sum { /* of the jobs */
	size_t jobs, opening, stopped;
	double rate;
	/* The first stopped one, and the one that waits most */
	const struct json_in *stuck, *waiter;
	struct ctl_waits waits; /* of the waiter */
};

static struct ctl_sum ctl_sum_of(const struct json_in *status)
{
	const struct json_in *jobs = json_in_member(status, "jobs");
	_cleanup_free_ const struct json_in **sorted = ctl_sorted(jobs, "id", "pid");
	struct ctl_sum sum = {.jobs = json_in_count(jobs),
			      .opening = json_in_count(json_in_member(status, "opening"))};

	for (size_t i = 0; sorted && i < sum.jobs; i++) {
		struct ctl_waits waits;

		ctl_waits_of(sorted[i], &waits);
		sum.rate += BASE_MAX(ctl_real(sorted[i], "rate"), 0);
		if (waits.pace == CTL_PACE_STOPPED && sum.stopped++ == 0)
			sum.stuck = sorted[i];
		if (waits.pace != CTL_PACE_WAITS || (sum.waiter && waits.share <= sum.waits.share))
			continue;
		sum.waiter = sorted[i];
		sum.waits = waits;
	}
	return sum;
}

static void ctl_say_waits(const struct ctl_sum *sum, FILE *out)
{
	char name[128];
	const struct ctl_waits *waits = &sum->waits;

	if (!sum->waiter) {
		if (sum->stopped == 0)
			fprintf(out,
				sum->jobs == 1 ? "; it does not wait" : "; none of them waits");
		return;
	}
	base_quote(ctl_string(sum->waiter, "name"), name, sizeof(name));
	fprintf(out, "; %s waits%s", name, sum->jobs > 1 ? " most" : "");
	if (waits->share >= CTL_WAITS_LEAST)
		fprintf(out, ", %.0f %% of the last %.0f s", 100 * waits->share, waits->window_s);
	if (waits->word)
		fprintf(out, ", for %s", waits->word->word);
}

static void ctl_say_stopped(const struct ctl_sum *sum, FILE *out)
{
	if (sum->stopped == 0)
		return;
	fprintf(out, "; %s takes nothing, for %.0f s",
		BASE_QUOTED(ctl_string(sum->stuck, "name"), 128),
		ctl_real(sum->stuck, "idle_seconds"));
	if (sum->stopped > 1)
		fprintf(out, ", and %zu more", sum->stopped - 1);
}

static void ctl_say(const struct json_in *status, const struct ctl_sum *sum, FILE *out)
{
	const char *closed = ctl_text(json_in_member(status, "parameters"), "closed");
	char up[48], user[64];

	fprintf(out, "accessd %s, pid %llu, ", BASE_QUOTED(ctl_string(status, "version"), 64),
		ctl_u64(status, "pid"));
	if (json_in_member(status, "serves_all") && json_in_member(status, "uid") &&
	    !ctl_is(status, "serves_all"))
		fprintf(out, "private to %s, ",
			BASE_QUOTED(ctl_user(ctl_u64(status, "uid"), user, sizeof(user)), 128));
	fprintf(out, "up %s: ", ctl_duration(ctl_real(status, "uptime_s"), up, sizeof(up)));
	if (ctl_is(status, "draining"))
		fputs("it is ending, jobs go on with the next one; ", out);
	if (*closed)
		fprintf(out, "no new jobs are served (%s); ", BASE_QUOTED(closed, 400));
	if (sum->jobs > 0) {
		fprintf(out, "%zu job%s %s %.0f samples/s%s", sum->jobs, sum->jobs > 1 ? "s" : "",
			sum->jobs > 1 ? "get" : "gets", sum->rate, sum->jobs > 1 ? " in all" : "");
		ctl_say_waits(sum, out);
		ctl_say_stopped(sum, out);
	} else if (sum->opening == 0) {
		fputs("no job is here", out);
	}
	if (sum->opening > 0)
		fprintf(out, "%s%zu%s job%s waiting to begin", sum->jobs > 0 ? "; " : "",
			sum->opening, sum->jobs > 0 ? " more" : "",
			sum->opening > 1 ? "s are" : " is");
	fputc('.', out);
}

void ctl_draw_state(const struct json_in *status, FILE *out)
{
	const struct ctl_sum sum = ctl_sum_of(status);
	_cleanup_free_ char *text = NULL;
	size_t size = 0;
	FILE *memory = open_memstream(&text, &size);

	if (!memory)
		return;
	ctl_say(status, &sum, memory);
	if (fclose(memory) == 0)
		option_wrap(out, 0, CTL_LINE, "%s", text);
}

/* ---- a line for each job ---- */

static void ctl_job_row(const struct json_in *status, const struct json_in *job, bool has_user,
			struct table *table)
{
	struct ctl_waits waits;
	char text[300];

	ctl_waits_of(job, &waits);
	ctl_cell_u64(table, job, "id");
	ctl_cell_cut(table, ctl_string(job, "name"), has_user ? 16 : 20, false);
	if (has_user)
		ctl_cell_user(table, ctl_u64(job, "uid"));
	ctl_cell_rate(table, job);
	ctl_cell_share(table, waits.share);
	ctl_waits_text(status, job, &waits, text, sizeof(text));
	ctl_cell_cut(table, text, has_user ? 24 : 38, false);
	table_end_row(table);
}

/* Jobs that have not begun yet have no number. */
static void ctl_opening_row(const struct json_in *one, bool has_user, struct table *table)
{
	const char *stage = ctl_string(one, "stage");
	const struct ctl_word *word = ctl_word_of(stage);

	table_cell(table, "-");
	ctl_cell_cut(table, ctl_string(one, "name"), has_user ? 16 : 20, false);
	if (has_user)
		ctl_cell_user(table, ctl_u64(one, "uid"));
	table_cell(table, "-");
	table_cell(table, "-");
	if (json_in_member(one, "samples"))
		table_cell(table, "%s: %llu samples so far", word ? word->word : stage,
			   ctl_u64(one, "samples"));
	else
		table_cell(table, "%s", word ? word->word : stage);
	table_end_row(table);
}

static void ctl_job_table(const struct json_in *status, FILE *out)
{
	const struct json_in *jobs = json_in_member(status, "jobs"),
			     *opening = json_in_member(status, "opening");
	_cleanup_free_ const struct json_in **sorted = ctl_sorted(jobs, "id", "pid");
	_cleanup_free_ const struct json_in **later = ctl_sorted(opening, "pid", "uid");
	bool has_user = ctl_is(status, "serves_all");
	struct table table;

	table_init(&table, has_user ? "job|<name|<user|rate|waits|<waits for"
				    : "job|<name|rate|waits|<waits for");
	for (size_t i = 0; sorted && i < json_in_count(jobs); i++)
		ctl_job_row(status, sorted[i], has_user, &table);
	for (size_t i = 0; later && i < json_in_count(opening); i++)
		ctl_opening_row(later[i], has_user, &table);
	table_print(&table, "", "no jobs\n", out);
}

/* What helps against what jobs wait for, each word once, in the order of --help. */
static void ctl_draw_helps(const struct json_in *status, FILE *out)
{
	static const char *const stages[] = {
#define WAIT(stage, word, means, helps) stage,
#include "tools/ctl_waits_tbl.h"
#undef WAIT
	};
	const struct json_in *jobs = json_in_member(status, "jobs");

	for (size_t k = 0; k < BASE_ARRAY_LEN(stages); k++) {
		const struct ctl_word *word = ctl_word_of(stages[k]);
		const char *helps = NULL;

		JSON_IN_EACH(job, jobs) {
			struct ctl_waits waits;

			ctl_waits_of(job, &waits);
			if (waits.pace == CTL_PACE_WAITS && waits.word == word &&
			    helps != word->helps)
				helps = ctl_waits_helps(status, job, word);
		}
		if (!helps)
			continue;
		fprintf(out, "%s", word->word);
		fprintf(out, "%*s", (int)BASE_MAX(11 - (int)strlen(word->word), 1), "");
		option_wrap(out, 11, CTL_LINE - 11, "%s", helps);
	}
}

void ctl_draw_waits(const struct json_in *status, FILE *out)
{
	ctl_job_table(status, out);
	ctl_draw_helps(status, out);
}

/* ---- how far the jobs are ---- */

static void ctl_place_row(const struct json_in *job, struct table *table)
{
	unsigned long long epochs = ctl_u64(job, "epochs");

	ctl_cells_u64(table, job, "id pid stream batch");
	if (epochs > 0 && json_in_member(job, "epoch"))
		table_cell(table, "%llu/%llu", ctl_u64(job, "epoch"), epochs);
	else
		ctl_cell_u64(table, job, "epoch");
	ctl_cells_u64(table, job, "population delivered pins untaken");
	table_cell(table, "%.0f s", ctl_real(job, "wait_seconds"));
}

void ctl_draw_jobs(const struct json_in *status, FILE *out)
{
	static const struct ctl_rows rows = {
	    .by = "id",
	    .then = "pid",
	    .headers = "job|pid|stream|batch|epoch|of|samples|holds|ahead|waited",
	    .none = "",
	    .row = ctl_place_row,
	};
	const struct json_in *jobs = json_in_member(status, "jobs");

	ctl_draw_waits(status, out);
	if (json_in_count(jobs) == 0)
		return;
	fputc('\n', out);
	ctl_draw_rows(jobs, &rows, out);
}

/* ---- of explain ---- */

void ctl_explain_waits(const struct json_in *status, const struct json_in *job, FILE *out)
{
	struct ctl_waits waits;
	char shares[200], text[300], quoted[400];

	ctl_waits_of(job, &waits);
	ctl_waits_shares(job, shares, sizeof(shares));
	ctl_waits_text(status, job, &waits, text, sizeof(text));
	base_quote(text, quoted, sizeof(quoted));
	if (waits.pace == CTL_PACE_STOPPED)
		fprintf(out,
			"It takes nothing of what is ready for it, for %.0f s: is it stopped?\n",
			ctl_real(job, "idle_seconds"));
	else if (waits.share < 0)
		fprintf(out, "How long it waits is not known; now it waits for %s.\n", quoted);
	else if (waits.pace == CTL_PACE_WAITS)
		fprintf(out, "It waits %.0f %% of its time (%s; the last %.0f s).\n",
			100 * waits.share, shares[0] ? shares : quoted, waits.window_s);
	else
		fprintf(out,
			"It waits %.0f %% of its time (the last %.0f s): its own steps are its "
			"pace.\n",
			100 * waits.share, waits.window_s);
	ctl_waits_late(job, text, sizeof(text));
	if (text[0])
		fprintf(out, "What lies behind is there: now it waits for %s.\n", text);
	if (waits.pace == CTL_PACE_WAITS && waits.word)
		option_wrap(out, 0, CTL_LINE, "What helps against %s: %s.", waits.word->word,
			    ctl_waits_helps(status, job, waits.word));
}
