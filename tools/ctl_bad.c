/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which files of a data set are damaged, as far as a job that has it open has found out. The job is looked up in
 * the status, and the list asked for on a connection of its own, a page after the other: accessd has it by
 * streams, so of several jobs of one stream, as ranks are, it is asked once.
 */

#include "tools/ctl_bad.h"

#include "shmring/proto.h"
#include "tools/ctl_ask.h"
#include "tools/table.h"
#include "tools/ctl_value.h"

#define BAD_MAX_STREAMS 64

/* ---- of the status ---- */

unsigned ctl_bad_find(const struct json_in *status, const char *who, struct ctl_bad *ret,
		      unsigned most)
{
	const struct json_in *jobs = json_in_member(status, "jobs");
	unsigned n = 0;

	for (size_t i = 0; i < json_in_count(jobs) && n < most; i++) {
		const struct json_in *job = json_in_item(jobs, i);
		const struct json_in *stream = ctl_stream_of(status, job);
		unsigned known = 0;

		if (!stream || !ctl_is_job(job, who))
			continue;
		while (known < n && ret[known].stream != stream)
			known++;
		if (known == n)
			ret[n++] = (struct ctl_bad){.job = job, .stream = stream};
	}
	return n;
}

/* ---- the conversation ---- */

static int bad_page(const struct wire_in *in, uint64_t n, uint64_t *from, uint64_t *ret_total,
		    struct ctl_bad *bad)
{
	uint64_t done, total, count = bad->list.count;
	const void *bytes;
	size_t size;

	if (wire_get_bytes(in, PROTO_KEY_ENTRIES, &bytes, &size) ||
	    wire_get_u64(in, PROTO_KEY_DONE, &done) || wire_get_u64(in, PROTO_KEY_TOTAL, &total) ||
	    done > total || total > n || (done <= *from && done < total) ||
	    bad_list_add(&bad->list, bytes, size, n) || bad->list.count - count != done - *from)
		return 1;
	wire_get_u64(in, PROTO_KEY_LOST, &bad->lost);
	*from = done;
	*ret_total = total;
	return 0;
}

/* 0; else 1 with diag. */
static int bad_fetch(struct ctl_ask *ask, struct ctl_bad *bad, struct diag *diag)
{
	uint64_t from = 0, total = 0;

	do {
		struct wire_in in;
		int r;

		if (ctl_ask(ask, PROTO_BAD_SAMPLES, &in, diag, PROTO_BAD,
			    WIRE_U64(PROTO_KEY_JOB_ID, ctl_u64(bad->job, "id")),
			    WIRE_U64(PROTO_KEY_FROM, from)))
			return 1;
		r = bad_page(&in, ctl_u64(bad->stream, "samples"), &from, &total, bad);
		wire_in_fini(&in);
		if (r)
			return diag_fail(diag, 1, "accessd's list of bad samples makes no sense");
	} while (from < total);
	bad_list_sort(&bad->list);
	return 0;
}

/* ---- for people and programs ---- */

void ctl_bad_draw(const struct ctl_bad *bad, FILE *out)
{
	struct bad_page_entry entry;
	struct table table;

	fprintf(out, "job %llu, %s; stream %llu of %s: %llu bad of %llu samples\n",
		ctl_u64(bad->job, "id"), BASE_QUOTED(ctl_string(bad->job, "name"), 128),
		ctl_u64(bad->job, "stream"), BASE_QUOTED(ctl_string(bad->stream, "dataset"), 1024),
		(unsigned long long)bad->list.count, ctl_u64(bad->stream, "samples"));
	table_init(&table, "sample|<file|<stage|<error");
	for (uint64_t i = 0; i < bad->list.count; i++) {
		bad_list_get(&bad->list, i, &entry);
		table_cell(&table, "%llu", (unsigned long long)entry.id);
		table_cell(&table, "%s", entry.name);
		table_cell(&table, "%s", entry.stage);
		table_cell(&table, "%s", entry.why);
		table_end_row(&table);
	}
	table_print(&table, "  ", "", out);
	if (bad->lost > 0)
		fprintf(out,
			"%llu more were met that accessd had no memory to keep: raise memory "
			"(accessd.conf(5)), or ask the job itself\n",
			(unsigned long long)bad->lost);
}

static void bad_put(struct json_out *out, const struct ctl_bad *bad)
{
	json_out_object_begin(out);
	json_out_member_u64(out, "job", ctl_u64(bad->job, "id"));
	json_out_member_string(out, "name", ctl_string(bad->job, "name"));
	json_out_member_u64(out, "stream", ctl_u64(bad->job, "stream"));
	json_out_member_string(out, "dataset", ctl_string(bad->stream, "dataset"));
	json_out_member_u64(out, "samples", ctl_u64(bad->stream, "samples"));
	json_out_member_u64(out, "lost", bad->lost);
	json_out_member_array(out, "bad_samples");
	for (uint64_t i = 0; i < bad->list.count; i++) {
		struct bad_page_entry entry;

		bad_list_get(&bad->list, i, &entry);
		json_out_object_begin(out);
		JSON_OUT_MEMBERS(out, &entry, id, name, stage);
		json_out_member_string(out, "error", entry.why);
		json_out_object_end(out);
	}
	json_out_array_end(out);
	json_out_object_end(out);
}

int ctl_bad_print(const struct ctl_bad *bad, unsigned n, FILE *out)
{
	struct json_out json;

	json_out_init(&json, true);
	json_out_array_begin(&json);
	for (unsigned i = 0; i < n; i++)
		bad_put(&json, &bad[i]);
	json_out_array_end(&json);
	return json_out_write(&json, out);
}

/* ---- all of it ---- */

static int bad_list_all(const char *socket, uint64_t until_ns, struct ctl_bad *bad, unsigned n,
			struct diag *diag)
{
	struct ctl_ask ask = {.sock = -1};
	int r = ctl_ask_begin(&ask, socket, until_ns, diag);

	for (unsigned i = 0; i < n && !r; i++)
		r = bad_fetch(&ask, &bad[i], diag);
	base_close(&ask.sock);
	return r;
}

static int bad_show(const struct ctl_bad *bad, unsigned n, bool json, struct diag *diag)
{
	int r = json ? ctl_bad_print(bad, n, stdout) : 0;

	for (unsigned i = 0; i < n && !json; i++) {
		if (i > 0)
			putchar('\n');
		ctl_bad_draw(&bad[i], stdout);
	}
	if (!r && fflush(stdout) == 0)
		return 0;
	return diag_fail(diag, 1, "standard output: %s", strerror(r ? -r : errno));
}

int ctl_bad_run(const char *socket, uint64_t until_ns, const char *who, bool json,
		struct diag *diag)
{
	struct ctl_bad bad[BAD_MAX_STREAMS];
	_cleanup_free_ char *text = NULL;
	_cleanup_json_ struct json_in *status = NULL;
	unsigned n;
	int r;

	if (ctl_status(socket, until_ns, &text, diag) ||
	    json_in_parse(text, strlen(text), CTL_ASK_MOST, &status, diag))
		return 1;
	n = ctl_bad_find(status, who, bad, BASE_ARRAY_LEN(bad));
	r = n > 0 ? bad_list_all(socket, until_ns, bad, n, diag) : ctl_no_job(status, who, diag);
	r = r ? r : bad_show(bad, n, json, diag);
	for (unsigned i = 0; i < n; i++)
		bad_list_fini(&bad[i].list);
	return r;
}
