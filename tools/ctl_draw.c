/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The status as tables. What accessd says is data, not text to trust: numbers come through
 * defaults, strings through the table's escaping, and a key that is missing (an older or newer
 * accessd) shows as "-" or 0 rather than ending the program.
 */

#include "tools/ctl.h"

#include <stdlib.h>
#include <string.h>
#include "tools/table.h"

#define CTL_MAX_PIPELINE 65536

static const struct {
	const char *stage, *words;
} ctl_stages[] = {
    {"none", "-"},
    {"scan", "the listing of the dataset"},
    {"read", "storage"},
    {"decode", "the workers: decoding"},
    {"slot", "a free slot"},
    {"workers", "a worker: none is alive"},
    {"schedule", "the next chunk to be composed"},
    {"drain", "accessd to be restarted"},
};

static uint64_t ctl_u64(const struct json_in *object, const char *key)
{
	return json_in_u64(json_in_member(object, key), 0);
}

static double ctl_real(const struct json_in *object, const char *key)
{
	return json_in_double(json_in_member(object, key), 0);
}

static const char *ctl_string(const struct json_in *object, const char *key)
{
	return json_in_string(json_in_member(object, key), "-");
}

static bool ctl_is(const struct json_in *object, const char *key)
{
	const struct json_in *value = json_in_member(object, key);

	return json_in_bool(value, json_in_u64(value, 0) != 0);
}

/* The stage in words; a word that is not known stands for itself. */
static const char *ctl_stage(const struct json_in *object, const char *key)
{
	const char *stage = ctl_string(object, key);

	for (size_t i = 0; i < BASE_ARRAY_LEN(ctl_stages); i++)
		if (strcmp(stage, ctl_stages[i].stage) == 0)
			return ctl_stages[i].words;
	return stage;
}

/* A job's own stream, or one that says so in a number instead of a text. */
static bool ctl_same_stream(const struct json_in *one, const struct json_in *other)
{
	const struct json_in *a = json_in_member(one, "stream"),
			     *b = json_in_member(other, "stream");

	if (json_in_kind_of(a) == JSON_IN_STRING)
		return strcmp(json_in_string(a, ""), json_in_string(b, "-")) == 0;
	return json_in_u64(a, 0) == json_in_u64(b, 1);
}

/* Names the other jobs that hold slots of the stream of job. */
static void ctl_holders(const struct json_in *jobs, const struct json_in *job, char *ret,
			size_t size)
{
	size_t used = 0;

	ret[0] = '\0';
	for (size_t i = 0; i < json_in_count(jobs) && used < size; i++) {
		const struct json_in *other = json_in_item(jobs, i);

		if (other == job || ctl_u64(other, "pins") == 0 || !ctl_same_stream(other, job))
			continue;
		used += (size_t)snprintf(ret + used, size - used, "%s%s",
					 used > 0 ? ", " : " (held by ", ctl_string(other, "name"));
	}
	if (used > 0 && used + 1 < size)
		strcpy(ret + used, ")");
}

static void ctl_waits(const struct json_in *jobs, const struct json_in *job, struct table *table)
{
	char holders[256] = "";
	bool waits = ctl_is(job, "waiting");

	/* It leaves untaken what is ready for it, for longer than a job that trains does. */
	if (json_in_member(job, "lives") && !ctl_is(job, "lives")) {
		table_cell(table, "stopped? no progress for %.0f s", ctl_real(job, "idle_seconds"));
		return;
	}
	if (strcmp(ctl_string(job, "stage"), "slot") == 0)
		ctl_holders(jobs, job, holders, sizeof(holders));
	if (waits)
		table_cell(table, "%s%s", ctl_stage(job, "stage"), holders);
	else
		table_cell(table, ctl_u64(job, "pins") > 0 ? "trains" : "-");
}

void ctl_draw_jobs(const struct json_in *status, FILE *out)
{
	const struct json_in *jobs = json_in_member(status, "jobs");
	struct table table;

	table_init(&table,
		   "job|<name|pid|uid|<stream|batch|epoch|of|samples|rate|waited|pins|ahead|lives|"
		   "<waits for");
	for (size_t i = 0; i < json_in_count(jobs); i++) {
		const struct json_in *job = json_in_item(jobs, i);
		uint64_t epochs = ctl_u64(job, "epochs");

		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "id"));
		table_cell(&table, "%s", ctl_string(job, "name"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "pid"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "uid"));
		if (json_in_kind_of(json_in_member(job, "stream")) == JSON_IN_STRING)
			table_cell(&table, "%.8s", ctl_string(job, "stream"));
		else
			table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "stream"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "batch"));
		if (epochs > 0)
			table_cell(&table, "%llu/%llu", (unsigned long long)ctl_u64(job, "epoch"),
				   (unsigned long long)epochs);
		else
			table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "epoch"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "population"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "delivered"));
		table_cell(&table, "%.0f/s", ctl_real(job, "rate"));
		table_cell(&table, "%.1f s", ctl_real(job, "wait_seconds"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "pins"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(job, "untaken"));
		table_cell(&table, "%s", ctl_is(job, "lives") ? "yes" : "no");
		ctl_waits(jobs, job, &table);
		table_end_row(&table);
	}
	if (table_rows(&table) == 0)
		fputs("no jobs\n", out);
	else
		table_print(&table, "", out);
	table_fini(&table);
}

/* The names of a pipeline's ops; the text itself when it is not JSON. */
static void ctl_pipeline(const char *text, char *ret, size_t size)
{
	struct json_in *pipeline = NULL;
	const struct json_in *ops = NULL;
	size_t used = 0;

	snprintf(ret, size, "%s", text);
	if (json_in_parse(text, strlen(text), CTL_MAX_PIPELINE, &pipeline, NULL))
		return;
	ops = json_in_member(pipeline, "ops");
	for (size_t i = 0; i < json_in_count(ops) && used < size; i++)
		used += (size_t)snprintf(ret + used, size - used, "%s%s", i > 0 ? " " : "",
					 ctl_string(json_in_item(ops, i), "op"));
	json_in_free(pipeline);
}

static void ctl_stream_row(const struct json_in *stream, struct table *table)
{
	char bytes[32], pipeline[64];

	ctl_pipeline(ctl_string(stream, "pipeline"), pipeline, sizeof(pipeline));
	if (json_in_kind_of(json_in_member(stream, "id")) == JSON_IN_STRING)
		table_cell(table, "%.8s", ctl_string(stream, "id"));
	else
		table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "id"));
	table_cell(table, "%s", ctl_string(stream, "dataset"));
	table_cell(table, "%s", pipeline);
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "samples"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "jobs"));
	table_cell(table, "%llu/%llu", (unsigned long long)ctl_u64(stream, "slots"),
		   (unsigned long long)ctl_u64(stream, "slots_max"));
	table_cell(table, "%s",
		   base_format_bytes(ctl_u64(stream, "slot_bytes"), bytes, sizeof(bytes)));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "chunk"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "resident"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "pinned"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "producing"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "productions"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "reference"));
	table_cell(table, "%s", ctl_stage(stream, "waiting_on"));
	table_end_row(table);
}

static void ctl_variant_row(const struct json_in *stream, const struct json_in *variant,
			    struct table *table)
{
	const char *shares = ctl_string(variant, "shares");
	const char *differs = ctl_string(variant, "differs");
	char bytes[32], pipeline[64];

	ctl_pipeline(ctl_string(variant, "pipeline"), pipeline, sizeof(pipeline));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(stream, "id"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(variant, "number"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(variant, "jobs"));
	table_cell(table, "%s",
		   base_format_bytes(ctl_u64(variant, "slot_bytes"), bytes, sizeof(bytes)));
	table_cell(table, "%s",
		   base_format_bytes(ctl_u64(variant, "memory"), bytes, sizeof(bytes)));
	table_cell(table, "%s", pipeline);
	table_cell(table, "%s", shares[0] ? shares : "-");
	table_cell(table, "%s", differs[0] ? differs : "-");
	table_end_row(table);
}

/* Of streams that have several pipelines, which share reading, decoding and what ops come first. */
static void ctl_draw_variants(const struct json_in *streams, FILE *out)
{
	struct table table;

	table_init(&table, "stream|variant|jobs|slot|memory|<pipeline|<shares with the first|"
			   "<differs from it in");
	for (size_t i = 0; i < json_in_count(streams); i++) {
		const struct json_in *stream = json_in_item(streams, i);
		const struct json_in *variants = json_in_member(stream, "variants");
		size_t n = json_in_count(variants);

		for (size_t k = 0; k < n && n > 1; k++)
			ctl_variant_row(stream, json_in_item(variants, k), &table);
	}
	if (table_rows(&table) > 0) {
		fputs("\nstreams that decode once for several pipelines\n", out);
		table_print(&table, "", out);
	}
	table_fini(&table);
}

void ctl_draw_streams(const struct json_in *status, FILE *out)
{
	const struct json_in *streams = json_in_member(status, "streams");
	struct table table;

	table_init(
	    &table,
	    "<stream|<dataset|<pipeline|samples|jobs|slots|slot|chunk|resident|pinned|producing|"
	    "produced|reference|<waits for");
	for (size_t i = 0; i < json_in_count(streams); i++)
		ctl_stream_row(json_in_item(streams, i), &table);
	if (table_rows(&table) == 0)
		fputs("no streams\n", out);
	else
		table_print(&table, "", out);
	table_fini(&table);
	ctl_draw_variants(streams, out);
}

void ctl_draw_workers(const struct json_in *status, FILE *out)
{
	const struct json_in *workers = json_in_member(status, "workers");
	struct table table;

	table_init(&table, "worker|pid|<state|stream|done|busy");
	for (size_t i = 0; i < json_in_count(workers); i++) {
		const struct json_in *worker = json_in_item(workers, i);
		bool busy = ctl_is(worker, "busy");

		table_cell(&table, "%llu", (unsigned long long)ctl_u64(worker, "index"));
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(worker, "pid"));
		table_cell(&table, "%s", busy ? "decodes" : "idle");
		if (busy)
			table_cell(&table, "%llu", (unsigned long long)ctl_u64(worker, "stream"));
		else
			table_cell(&table, "-");
		table_cell(&table, "%llu", (unsigned long long)ctl_u64(worker, "done"));
		table_cell(&table, "%.2f s", ctl_real(worker, "busy_seconds"));
		table_end_row(&table);
	}
	if (table_rows(&table) == 0)
		fputs("no workers\n", out);
	else
		table_print(&table, "", out);
	table_fini(&table);
}

static void ctl_tenant_row(const struct json_in *tenant, struct table *table)
{
	char memory[32], most[32];
	bool is_public = ctl_is(tenant, "public");

	table_cell(table, is_public ? "everybody" : "%llu",
		   (unsigned long long)ctl_u64(tenant, "uid"));
	if (is_public) {
		for (unsigned i = 0; i < 4; i++)
			table_cell(table, "-");
	} else {
		table_cell(table, "%llu", (unsigned long long)ctl_u64(tenant, "jobs"));
		table_cell(table, "%llu", (unsigned long long)ctl_u64(tenant, "clients"));
		table_cell(table, "%llu of %llu", (unsigned long long)ctl_u64(tenant, "streams"),
			   (unsigned long long)ctl_u64(tenant, "streams_most"));
		base_format_bytes(ctl_u64(tenant, "memory"), memory, sizeof(memory));
		base_format_bytes(ctl_u64(tenant, "memory_most"), most, sizeof(most));
		table_cell(table, "%s of %s", memory, most);
	}
	table_cell(table, "%.1f s", ctl_real(tenant, "worker_cpu_seconds"));
	table_cell(table, "%.1f s", ctl_real(tenant, "reader_cpu_seconds"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(tenant, "reader_pid"));
	table_cell(table, "%llu", (unsigned long long)ctl_u64(tenant, "parent_pid"));
	table_end_row(table);
}

void ctl_draw_tenants(const struct json_in *status, FILE *out)
{
	const struct json_in *tenants = json_in_member(status, "tenants");
	struct table table;

	if (json_in_count(tenants) == 0)
		return;
	table_init(&table, "<user|jobs|clients|streams|memory|workers|readers|reader|parent");
	for (size_t i = 0; i < json_in_count(tenants); i++)
		ctl_tenant_row(json_in_item(tenants, i), &table);
	table_print(&table, "", out);
	table_fini(&table);
}

static void ctl_draw_cpu(const struct json_in *node, FILE *out)
{
	const struct json_in *loop = json_in_member(node, "loop");
	char used[32], budget[32], rss[32];

	fprintf(out, "memory   %s of %s in use, resident size %s\n",
		base_format_bytes(ctl_u64(node, "memory_used"), used, sizeof(used)),
		base_format_bytes(ctl_u64(node, "memory_budget"), budget, sizeof(budget)),
		base_format_bytes(ctl_u64(node, "rss_bytes"), rss, sizeof(rss)));
	fprintf(out,
		"CPU      workers %.1f s, readers %.1f s, event loop %.1f s, its longest turn %.1f "
		"ms\n",
		ctl_real(node, "worker_cpu_seconds"), ctl_real(node, "reader_cpu_seconds"),
		ctl_real(node, "loop_cpu_seconds"),
		(double)ctl_u64(loop, "longest_turn_cpu_us") / 1e3);
	fprintf(out,
		"workers  %llu of %llu alive; replaced: %llu workers, %llu parents, %llu readers\n",
		(unsigned long long)ctl_u64(node, "workers_alive"),
		(unsigned long long)ctl_u64(node, "workers"),
		(unsigned long long)ctl_u64(node, "worker_restarts"),
		(unsigned long long)ctl_u64(node, "parent_restarts"),
		(unsigned long long)ctl_u64(node, "reader_restarts"));
}

void ctl_draw_node(const struct json_in *status, FILE *out)
{
	const struct json_in *node = json_in_member(status, "node");
	uint64_t decoded = ctl_u64(node, "samples_preprocessed"),
		 reference = ctl_u64(node, "reference");
	char bytes[32], version[64], why[300];

	fprintf(out, "accessd  %s, pid %llu, up %.0f s\n",
		base_quote(ctl_string(status, "version"), version, sizeof(version)),
		(unsigned long long)ctl_u64(status, "pid"), ctl_real(status, "uptime_s"));
	fprintf(out, "work     %llu files read (%s), %llu pictures decoded in %llu chunks",
		(unsigned long long)ctl_u64(node, "samples_read"),
		base_format_bytes(ctl_u64(node, "bytes_read"), bytes, sizeof(bytes)),
		(unsigned long long)decoded, (unsigned long long)ctl_u64(node, "chunks"));
	if (reference > 0)
		fprintf(out, ", redundancy %.3f", (double)decoded / (double)reference);
	fputc('\n', out);
	ctl_draw_cpu(node, out);
	fprintf(out, "trouble  %llu bad samples, %llu waits on a job that does not live\n",
		(unsigned long long)ctl_u64(node, "bad_samples"),
		(unsigned long long)ctl_u64(node, "waits_on_dead"));
	if (*ctl_string(status, "share_public_why"))
		fprintf(out, "sharing  off for what everybody may read: %s\n",
			base_quote(ctl_string(status, "share_public_why"), why, sizeof(why)));
}
