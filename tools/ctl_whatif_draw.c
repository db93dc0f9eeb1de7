/* SPDX-License-Identifier: Apache-2.0 */

/* What limits and what would help, for people and as JSON. */

#include "tools/ctl_whatif.h"

#include <math.h>
#include <stdio.h>

#include "tools/ctl.h"
#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"
#include "tools/table.h"

static const struct {
	const char *limit, *words;
} whatif_limits[] = {
    {"read", "reading, from storage or from what is kept"},
    {"decode", "decoding, the workers' CPU time"},
    {"slots", "slots, the memory of finished samples, which jobs hold"},
    {"cache", "the cache: what would be quicker does not fit into cache_size"},
    {"job", "the job itself: its own steps, or its GPU, are its pace"},
    {"listing", "the list of the dataset's files, which is being made"},
    {"accessd", "accessd itself: it starts, or ends, or lacks processor time"},
    {"unknown", "not known yet: too little is measured"},
};

static const struct {
	const char *key, *words;
} whatif_parts_drawn[WHATIF_PARTS] = {
    [WHATIF_READ] = {"read", "read"},
    [WHATIF_DECODE] = {"decode", "decode"},
    [WHATIF_SLOTS] = {"slots", "slots"},
    [WHATIF_JOB] = {"job", "the job itself"},
};

static void whatif_cell_rate(struct table *table, double rate)
{
	if (isfinite(rate))
		table_cell(table, "%.0f", rate);
	else
		table_cell(table, "-");
}

static void whatif_draw_rows(const struct ctl_whatif *all, FILE *out)
{
	struct table table;

	table_init(&table, "<change|samples/s|gain|<how");
	for (unsigned i = 0; i < all->n; i++) {
		table_cell(&table, "%s", all->row[i].change);
		whatif_cell_rate(&table, all->row[i].rate);
		table_cell(&table, "%+.0f %%", 100 * all->row[i].gain + 0.0);
		table_cell(&table, "%s", all->row[i].how);
		table_end_row(&table);
	}
	table_print(&table, "  ", NULL, out);
}

void ctl_whatif_draw(const struct json_in *status, const struct json_in *job, FILE *out)
{
	struct ctl_whatif all;
	struct table table;

	ctl_whatif_of(status, job, &all);
	for (size_t i = 0; i < BASE_ARRAY_LEN(whatif_limits); i++)
		if (strcmp(whatif_limits[i].limit, all.limit) == 0)
			fprintf(out, "Limit: %s.\n", whatif_limits[i].words);
	if (!all.is_known)
		return;
	fprintf(
	    out,
	    "It gets %.0f samples a second. How busy each part is, and the most it could give:\n",
	    all.in.rate);
	table_init(&table, "<part|busy|waited for|samples/s at most");
	for (unsigned part = 0; part < WHATIF_PARTS; part++) {
		table_cell(&table, "%s%s", all.at.limit == part ? "* " : "  ",
			   whatif_parts_drawn[part].words);
		ctl_cell_share(&table, part == WHATIF_SLOTS ? -1 : all.at.used[part]);
		ctl_cell_share(&table, part == WHATIF_JOB ? -1 : all.in.waits[part]);
		whatif_cell_rate(&table, all.at.most[part]);
		table_end_row(&table);
	}
	table_print(&table, "  ", NULL, out);
	if (all.in.granted < WHATIF_GRANTED)
		fprintf(out,
			"Workers wait for a processor for %.0f %% of their time: other programs "
			"want them.\n",
			100 * (1 - all.in.granted));
	fputs("What one change would bring, by what was measured:\n", out);
	whatif_draw_rows(&all, out);
}

/* ---- JSON ---- */

void ctl_whatif_json(const struct json_in *status, const struct json_in *job, struct json_out *out)
{
	struct ctl_whatif all;

	ctl_whatif_of(status, job, &all);
	json_out_object_begin(out);
	json_out_member_u64(out, "job", ctl_u64(job, "id"));
	json_out_member_string(out, "name", ctl_string(job, "name"));
	json_out_member_u64(out, "stream", ctl_u64(job, "stream"));
	json_out_member_string(out, "dataset", ctl_string(ctl_stream_of(status, job), "dataset"));
	json_out_member_string(out, "limit", all.limit);
	JSON_OUT_MEMBERS(out, &all.in, rate, made, granted);
	json_out_member_object(out, "parts");
	for (unsigned part = 0; part < WHATIF_PARTS; part++) {
		json_out_member_object(out, whatif_parts_drawn[part].key);
		json_out_member_double(out, "most", all.at.most[part]);
		json_out_member_double(
		    out, "busy",
		    part == WHATIF_SLOTS || all.at.used[part] < 0 ? NAN : all.at.used[part]);
		json_out_member_double(out, "waited",
				       part == WHATIF_JOB ? NAN : all.in.waits[part]);
		json_out_object_end(out);
	}
	json_out_object_end(out);
	json_out_member_array(out, "what_if");
	for (unsigned i = 0; i < all.n; i++) {
		json_out_object_begin(out);
		json_out_member_string(out, "change", all.row[i].key);
		json_out_member_string(out, "form", all.row[i].form);
		json_out_member_u64(out, "bytes", (uint64_t)all.row[i].bytes);
		json_out_member_bool(out, "fits", all.row[i].fits);
		json_out_member_string(out, "words", all.row[i].change);
		JSON_OUT_MEMBERS(out, &all.row[i], how, rate, gain);
		json_out_object_end(out);
	}
	json_out_array_end(out);
	json_out_object_end(out);
}
