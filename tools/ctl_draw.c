/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The status as tables of at most 80 columns: the node, its streams, workers and users. Jobs are ctl_state.c. A key that is
 * missing (an older or newer accessd) shows as "-" or 0 rather than ending the program.
 */

#include "tools/ctl.h"

#include "tools/ctl_value.h"
#include "tools/ctl_waits.h"
#include "tools/option.h"
#include "tools/table.h"

#define CTL_MAX_PIPELINE 65536

/* The names of a pipeline's ops; the text itself when it is not JSON. */
static void ctl_pipeline(const char *text, char *ret, size_t size)
{
	_cleanup_json_ struct json_in *pipeline = NULL;
	const struct json_in *ops = NULL;
	size_t used = 0;

	snprintf(ret, size, "%s", text);
	if (json_in_parse(text, strlen(text), CTL_MAX_PIPELINE, &pipeline, NULL))
		return;
	ops = json_in_member(pipeline, "ops");
	for (size_t i = 0; i < json_in_count(ops) && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", i > 0 ? " " : "",
					 ctl_string(json_in_item(ops, i), "op"));
}

/* ---- streams ---- */

static const char *ctl_word(const struct json_in *object, const char *key)
{
	const char *stage = ctl_string(object, key);
	const struct ctl_word *word = ctl_word_of(stage);

	return word ? word->word : strcmp(stage, "none") == 0 ? "-" : stage;
}

/* What is kept of its samples, so that work is not done again. */
static const char *ctl_kept(const struct json_in *stream)
{
	const struct json_in *cache = json_in_member(stream, "cache");
	const char *point = ctl_string(cache, "point");

	if (!cache || !json_in_bool(json_in_member(cache, "on"), true) ||
	    strcmp(point, "file") == 0 || strcmp(point, "none") == 0)
		return "-";
	return point;
}

static void ctl_stream_row(const struct json_in *stream, struct table *table)
{
	ctl_cells_u64(table, stream, "id jobs samples");
	table_cell(table, "%llu/%llu", ctl_u64(stream, "slots"), ctl_u64(stream, "slots_max"));
	ctl_cell_u64(table, stream, "pinned");
	ctl_cell_bytes(table, ctl_u64(stream, "memory"));
	table_cell(table, "%s", ctl_kept(stream));
	ctl_cell_cut(table, ctl_string(stream, "dataset"), 22, true);
}

void ctl_draw_stream_list(const struct json_in *status, FILE *out)
{
	static const struct ctl_rows rows = {
	    .by = "id",
	    .then = "samples",
	    .headers = "stream|jobs|samples|slots|held|memory|<kept|<dataset",
	    .none = "no streams\n",
	    .row = ctl_stream_row,
	};

	ctl_draw_rows(json_in_member(status, "streams"), &rows, out);
}

static void ctl_work_row(const struct json_in *stream, struct table *table)
{
	ctl_cells_u64(table, stream, "id chunk");
	ctl_cell_bytes(table, ctl_u64(stream, "slot_bytes"));
	ctl_cells_u64(table, stream, "resident producing productions reference bad_samples");
	table_cell(table, "%s", ctl_word(stream, "waiting_on"));
}

/* Of a stream that has several pipelines, which share reading, decoding and what ops come first. */
static void ctl_draw_variant(const struct json_in *variant, FILE *out)
{
	const char *shares = ctl_string(variant, "shares"),
		   *differs = ctl_string(variant, "differs");
	char pipeline[200];

	ctl_pipeline(ctl_string(variant, "pipeline"), pipeline, sizeof(pipeline));
	fputs("  ", out);
	option_wrap(out, 4, 76, "variant %llu: jobs %llu, memory %s; %s%s%s%s%s",
		    ctl_u64(variant, "number"), ctl_u64(variant, "jobs"),
		    BASE_BYTES(ctl_u64(variant, "memory")), BASE_QUOTED(pipeline, 256),
		    shares[0] ? "; shares with the first: " : "", BASE_QUOTED(shares, 256),
		    differs[0] ? "; differs from it in: " : "", BASE_QUOTED(differs, 256));
}

static void ctl_draw_pipelines(const struct json_in *stream, FILE *out)
{
	const struct json_in *variants = json_in_member(stream, "variants");
	char pipeline[200];

	ctl_pipeline(ctl_string(stream, "pipeline"), pipeline, sizeof(pipeline));
	option_wrap(out, 2, 78, "stream %llu: %s; %s", ctl_u64(stream, "id"),
		    BASE_QUOTED(ctl_string(stream, "dataset"), 600),
		    json_in_count(variants) > 1 ? "decodes once for several pipelines"
						: BASE_QUOTED(pipeline, 600));
	for (size_t k = 0; json_in_count(variants) > 1 && k < json_in_count(variants); k++)
		ctl_draw_variant(json_in_item(variants, k), out);
}

void ctl_draw_streams(const struct json_in *status, FILE *out)
{
	static const struct ctl_rows rows = {
	    .by = "id",
	    .then = "samples",
	    .headers = "stream|chunk|slot|filled|filling|decoded|needed|bad|<waits for",
	    .none = "",
	    .row = ctl_work_row,
	};
	const struct json_in *streams = json_in_member(status, "streams");
	_cleanup_free_ const struct json_in **sorted = ctl_sorted(streams, "id", "samples");
	size_t n = json_in_count(streams);

	ctl_draw_stream_list(status, out);
	if (n == 0 || !sorted)
		return;
	fputc('\n', out);
	ctl_draw_rows(streams, &rows, out);
	fputc('\n', out);
	for (size_t i = 0; i < n; i++)
		ctl_draw_pipelines(sorted[i], out);
}

/* ---- workers ---- */

static void ctl_worker_row(const struct json_in *worker, struct table *table)
{
	const bool busy = ctl_is(worker, "busy");

	ctl_cells_u64(table, worker, "index pid");
	ctl_cell_whose(table, worker);
	table_cell(table, "%s", busy ? "decodes" : "idle");
	if (busy && ctl_u64(worker, "stream") > 0)
		ctl_cell_u64(table, worker, "stream");
	else
		table_cell(table, "-");
	ctl_cell_u64(table, worker, "done");
	table_cell(table, "%.2f s", ctl_real(worker, "busy_seconds"));
}

void ctl_draw_workers(const struct json_in *status, FILE *out)
{
	static const struct ctl_rows rows = {
	    .by = "uid",
	    .then = "index",
	    .headers = "worker|pid|<user|<state|stream|done|busy",
	    .none = "no workers\n",
	    .row = ctl_worker_row,
	};

	ctl_draw_rows(json_in_member(status, "workers"), &rows, out);
}

/* ---- users ---- */

static void ctl_tenant_row(const struct json_in *tenant, struct table *table)
{
	ctl_cell_whose(table, tenant);
	if (ctl_is(tenant, "public") || *ctl_named(tenant)) {
		for (unsigned i = 0; i < 4; i++)
			table_cell(table, "-");
	} else {
		ctl_cells_u64(table, tenant, "jobs clients");
		table_cell(table, "%llu of %llu", ctl_u64(tenant, "streams"),
			   ctl_u64(tenant, "streams_most"));
		table_cell(table, "%s of %s", BASE_BYTES(ctl_u64(tenant, "memory")),
			   BASE_BYTES(ctl_u64(tenant, "memory_most")));
	}
	ctl_cell_u64(table, tenant, "workers_alive");
	table_cell(table, "%.1f s",
		   ctl_real(tenant, "worker_cpu_seconds") + ctl_real(tenant, "reader_cpu_seconds"));
	table_end_row(table);
}

/* The one user of an accessd that serves nobody else: all of the node is his. */
static void ctl_only_row(const struct json_in *status, struct table *table)
{
	const struct json_in *node = json_in_member(status, "node");

	if (json_in_member(status, "uid"))
		ctl_cell_user(table, ctl_u64(status, "uid"));
	else
		table_cell(table, "-");
	table_cell(table, "%zu", json_in_count(json_in_member(status, "jobs")));
	ctl_cell_u64(table, node, "clients");
	table_cell(table, "%zu", json_in_count(json_in_member(status, "streams")));
	table_cell(table, "%s of %s", BASE_BYTES(ctl_u64(node, "memory_used")),
		   BASE_BYTES(ctl_u64(node, "memory_budget")));
	ctl_cell_u64(table, node, "workers_alive");
	table_cell(table, "%.1f s",
		   ctl_real(node, "worker_cpu_seconds") + ctl_real(node, "reader_cpu_seconds"));
	table_end_row(table);
}

/* What a user's jobs had, and were spared; of an accessd that keeps accounts. */
static void ctl_account_row(const struct json_in *tenant, struct table *table)
{
	if (ctl_is(tenant, "public") || !json_in_member(tenant, "share"))
		return;
	ctl_cell_user(table, ctl_u64(tenant, "uid"));
	ctl_cell_u64(table, tenant, "share");
	table_cell(table, "%.1f s", ctl_real(tenant, "cpu_seconds_used"));
	table_cell(table, "%.1f s", ctl_real(tenant, "cpu_seconds_saved"));
	table_cell(table, "%s", BASE_BYTES(ctl_u64(tenant, "bytes_used")));
	table_cell(table, "%s", BASE_BYTES(ctl_u64(tenant, "bytes_saved")));
	table_end_row(table);
}

static void ctl_draw_accounts(const struct json_in *const *tenants, size_t n, FILE *out)
{
	struct table table;

	table_init(&table, "<user|share|CPU used|CPU saved|read|reading saved");
	for (size_t i = 0; i < n; i++)
		ctl_account_row(tenants[i], &table);
	if (table_rows(&table) > 0)
		fputc('\n', out);
	table_print(&table, "", "", out);
}

void ctl_draw_tenants(const struct json_in *status, FILE *out)
{
	const struct json_in *tenants = json_in_member(status, "tenants");
	_cleanup_free_ const struct json_in **sorted = ctl_sorted(tenants, "public", "uid");
	bool serves_all = ctl_is(status, "serves_all");
	struct table table;

	if (serves_all && json_in_count(tenants) == 0) {
		fputs(ctl_is(status, "sees_all")
			  ? "nobody is served now\n"
			  : "you are not served now: no job of yours is here\n",
		      out);
		return;
	}
	if (!serves_all)
		fputs("This accessd serves one user alone, who may have all of it.\n", out);
	table_init(&table, "<user|jobs|clients|streams|memory|workers|CPU");
	if (!serves_all)
		ctl_only_row(status, &table);
	for (size_t i = 0; serves_all && sorted && i < json_in_count(tenants); i++)
		ctl_tenant_row(sorted[i], &table);
	table_print(&table, "", NULL, out);
	if (serves_all && sorted)
		ctl_draw_accounts(sorted, json_in_count(tenants), out);
}

/* ---- the node ---- */

#define ctl_line(out, name, ...) (fprintf(out, "%-9s", name), option_wrap(out, 9, 71, __VA_ARGS__))

static void ctl_draw_work(const struct json_in *node, FILE *out)
{
	const unsigned long long decoded = ctl_u64(node, "samples_preprocessed"),
				 needed = ctl_u64(node, "reference");

	ctl_line(out, "work", "%llu files read (%s), %llu pictures decoded",
		 ctl_u64(node, "samples_read"), BASE_BYTES(ctl_u64(node, "bytes_read")), decoded);
	if (needed > 0)
		ctl_line(out, "",
			 "redundancy %.3f: %llu decoded, where the fastest job of each stream "
			 "alone needs %llu",
			 (double)decoded / (double)needed, decoded, needed);
}

static void ctl_draw_use(const struct json_in *node, size_t jobs, FILE *out)
{
	const struct json_in *loop = json_in_member(node, "loop");
	const char *source = ctl_text(node, "memory_source");

	ctl_line(out, "memory", "%s of %s%s%s%s in use; accessd itself has %s",
		 BASE_BYTES(ctl_u64(node, "memory_used")),
		 BASE_BYTES(ctl_u64(node, "memory_budget")), source[0] ? " (" : "",
		 BASE_QUOTED(source, 120), source[0] ? ")" : "",
		 BASE_BYTES(ctl_u64(node, "rss_bytes")));
	ctl_line(
	    out, "CPU", "workers %.1f s, readers %.1f s, event loop %.1f s (longest turn %.1f ms)",
	    ctl_real(node, "worker_cpu_seconds"), ctl_real(node, "reader_cpu_seconds"),
	    ctl_real(node, "loop_cpu_seconds"), (double)ctl_u64(loop, "longest_turn_cpu_us") / 1e3);
	ctl_line(out, "workers", "%llu of %llu alive%s", ctl_u64(node, "workers_alive"),
		 ctl_u64(node, "workers"),
		 ctl_u64(node, "workers_alive") == 0 && jobs == 0 ? "; they start with a job" : "");
}

/* What limits accessd, and from where; nothing where nothing does. */
static void ctl_draw_limits(const struct json_in *machine, FILE *out)
{
	const char *cpus = ctl_text(machine, "cpus_from");
	const char *memory = ctl_text(machine, "memory_from");

	if (cpus[0])
		ctl_line(out, "limits", "%llu of %llu CPUs, by %s", ctl_u64(machine, "cpus"),
			 ctl_u64(machine, "cpus_mask"), BASE_QUOTED(cpus, 150));
	if (memory[0])
		ctl_line(out, cpus[0] ? "" : "limits", "%s of memory, by %s",
			 BASE_BYTES(ctl_u64(machine, "memory_limit")), BASE_QUOTED(memory, 150));
}

/* While memory is short, and until all of it is taken again. */
static void ctl_draw_pressure(const struct json_in *pressure, FILE *out)
{
	const char *level = json_in_string(json_in_member(pressure, "level"), "none");

	if (strcmp(level, "none") == 0)
		return;
	ctl_line(out, "pressure",
		 "memory is short on this node: somebody waited for it in %.0f %% of the last ten "
		 "seconds; caches in memory have %llu eighths of their share%s",
		 ctl_real(pressure, "some"), ctl_u64(pressure, "cache_eighths"),
		 strcmp(level, "slots") == 0 ? ", and nothing is reserved ahead of need" : "");
}

static void ctl_draw_trouble(const struct json_in *node, FILE *out)
{
	static const struct {
		const char *key, *one, *several;
	} troubles[] = {
	    {"bad_samples", "bad sample (access-ctl bad JOB lists them)",
	     "bad samples (access-ctl bad JOB lists them)"},
	    {"waits_on_dead", "wait for a job that had stopped", "waits for jobs that had stopped"},
	    {"worker_restarts", "worker replaced", "workers replaced"},
	    {"parent_restarts", "parent of workers replaced", "parents of workers replaced"},
	    {"reader_restarts", "reader replaced", "readers replaced"},
	    {"refused", "job refused", "jobs refused"},
	    {"nonsense", "word of a job that made no sense", "words of jobs that made no sense"},
	};
	char text[600] = "";
	size_t used = 0;

	for (size_t i = 0; i < BASE_ARRAY_LEN(troubles); i++) {
		unsigned long long n = ctl_u64(node, troubles[i].key);

		if (n > 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%llu %s",
						 used > 0 ? ", " : "", n,
						 n == 1 ? troubles[i].one : troubles[i].several);
	}
	ctl_line(out, "trouble", "%s", used > 0 ? text : "none");
}

void ctl_draw_node(const struct json_in *status, FILE *out)
{
	const struct json_in *node = json_in_member(status, "node");

	ctl_draw_work(node, out);
	ctl_draw_use(node, json_in_count(json_in_member(status, "jobs")), out);
	ctl_draw_limits(json_in_member(node, "machine"), out);
	ctl_draw_pressure(json_in_member(json_in_member(node, "machine"), "pressure"), out);
	ctl_draw_trouble(node, out);
	if (ctl_text(status, "share_public_why")[0])
		ctl_line(out, "sharing", "off for what everybody may read: %s",
			 BASE_QUOTED(ctl_string(status, "share_public_why"), 300));
}
