/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why a job's samples are kept in the form they are, or not: the numbers that accessd decided by, and
 * the reason in words. All of it is in the status ("cache" of a stream); what the words of accessd
 * mean is sched/point.h. As everywhere, a key that is missing shows as "-", a word that is not
 * known stands for itself.
 */

#include "tools/ctl.h"
#include "tools/ctl_peer.h"

#include "tools/ctl_whatif.h"
#include "tools/table.h"
#include "tools/ctl_value.h"

struct explain {
	const struct json_in *cache, *points;
	const struct json_in *file, *chosen, *rival; /* of the points; NULL: there is none */
	FILE *out;
};

static const struct {
	const char *name, *words;
} explain_forms[] = {
    {"file", "the file itself"},
    {"indexed", "the file beside its crop index"},
    {"packed", "packed coefficients"},
    {"decoded", "the decoded picture"},
    {"augmented", "the augmented picture, made anew after as many epochs as may see it"},
};

static const char *explain_words(const char *name, char *ret, size_t size)
{
	long further;

	for (size_t i = 0; i < BASE_ARRAY_LEN(explain_forms); i++)
		if (strcmp(name, explain_forms[i].name) == 0)
			return explain_forms[i].words;
	further = strncmp(name, "decoded+", 8) == 0 ? strtol(name + 8, NULL, 10) : 0;
	if (further > 0)
		snprintf(ret, size, "the picture behind %ld more op%s", further,
			 further > 1 ? "s" : "");
	else
		snprintf(ret, size, "%s", BASE_QUOTED(name, 64));
	return ret;
}

/* ---- the numbers ---- */

static void explain_us(struct table *table, double us)
{
	if (us < 0)
		table_cell(table, "-");
	else if (us < 10000)
		table_cell(table, "%.0f us", us);
	else
		table_cell(table, "%.1f ms", us / 1000);
}

/* No sample takes no time: 0 is what is not known yet. */
static void explain_expected(struct table *table, double us)
{
	explain_us(table, us > 0 ? us : -1);
}

static void explain_name(const struct explain *all, const struct json_in *point,
			 struct table *table)
{
	table_cell(table, "%s%s", point == all->chosen ? "* " : "  ", ctl_string(point, "name"));
}

static void explain_cost(const struct explain *all, const struct json_in *point,
			 struct table *table)
{
	bool is_file = point == all->file;
	double bytes = ctl_known(point, "bytes");

	explain_name(all, point, table);
	table_cell(table, "%llu", ctl_u64(point, "samples"));
	explain_us(table, ctl_known(point, "work_us"));
	explain_us(table, ctl_known(point, "read_us"));
	explain_us(table, is_file ? -1 : ctl_known(point, "make_us"));
	explain_us(table, is_file ? -1 : ctl_known(point, "write_us"));
	table_cell(table, "%s", bytes < 0 ? "-" : BASE_BYTES((uint64_t)BASE_MIN(bytes, 1e18)));
	table_end_row(table);
}

static void explain_time(const struct explain *all, const struct json_in *point,
			 struct table *table)
{
	bool is_file = point == all->file;

	explain_name(all, point, table);
	ctl_cell_share(table, is_file ? -1 : ctl_known(point, "cached"));
	ctl_cell_share(table, is_file ? -1 : ctl_known(point, "fits"));
	explain_expected(table, ctl_known(point, "whole_us"));
	explain_expected(table, ctl_known(point, "serve_us"));
	explain_expected(table, ctl_known(point, "total_us"));
	table_end_row(table);
}

static void explain_print(const struct explain *all, const char *headers,
			  void (*row)(const struct explain *all, const struct json_in *point,
				      struct table *table))
{
	struct table table;

	table_init(&table, headers);
	JSON_IN_EACH(point, all->points)
		row(all, point, &table);
	table_print(&table, "  ", NULL, all->out);
}

/* ---- the reason ---- */

/* Of the time from files; negative: not known. */
static double explain_ratio(const struct explain *all, const struct json_in *point, const char *key)
{
	double file_us = ctl_known(all->file, "total_us"), us = ctl_known(point, key);

	return file_us > 0 && us >= 0 ? us / file_us : -1;
}

static void explain_share(const struct explain *all, const struct json_in *point, const char *key,
			  const char *otherwise)
{
	double ratio = explain_ratio(all, point, key);

	if (ratio < 0)
		fputs(otherwise, all->out);
	else
		fprintf(all->out, "%.2f of the time from files", ratio);
}

static void explain_best(const struct explain *all)
{
	fputs("It has the least expected time", all->out);
	if (all->chosen != all->file) {
		fputs(": ", all->out);
		explain_share(all, all->chosen, "total_us", "not known yet");
	}
	fputs(".\n", all->out);
}

static void explain_stays(const struct explain *all)
{
	fprintf(
	    all->out,
	    "It is kept already; %s does not save enough of its time: 3 %%, or a quarter before "
	    "256 samples came from it.\n",
	    ctl_string(all->rival, "name"));
}

static void explain_not_worth(const struct explain *all)
{
	fprintf(all->out, "Keeping %s, the quickest form, would take ",
		ctl_string(all->rival, "name"));
	explain_share(all, all->rival, "whole_us", "about as long as the files");
	fputs(" even if all of it were kept; 3 % must be saved.\n", all->out);
}

static void explain_no_room(const struct explain *all)
{
	fprintf(all->out, "Keeping %s would take ", ctl_string(all->rival, "name"));
	explain_share(all, all->rival, "whole_us", "less time");
	fprintf(all->out, " if all of it were kept, but only %.0f %% fit: ",
		100 * BASE_MAX(ctl_known(all->rival, "fits"), 0));
	explain_share(all, all->rival, "serve_us", "not enough");
	fputs(". A larger cache_size would help (accessd.conf(5)).\n", all->out);
}

static void explain_few_uses(const struct explain *all)
{
	double uses = ctl_known(all->cache, "uses"), most = ctl_known(all->cache, "reuse");
	bool is_augmented = strcmp(ctl_string(all->rival, "name"), "augmented") == 0;

	if (is_augmented && most > 0)
		uses = BASE_MIN(uses, most);
	fprintf(all->out, "Keeping %s would take ", ctl_string(all->rival, "name"));
	explain_share(all, all->rival, "serve_us", "less time");
	fputs(", but with its making ", all->out);
	explain_share(all, all->rival, "total_us", "more");
	if (uses >= 0)
		fprintf(all->out, " over the %.1f uses of each sample that are %s", uses,
			is_augmented ? "allowed (reuse)" : "expected");
	fputs(
	    ". A job that says for how many epochs it runs is believed; else as many are expected "
	    "as there were.\n",
	    all->out);
}

static void explain_unmeasured(const struct explain *all)
{
	fputs("Too little is measured yet to decide", all->out);
	fputs(all->chosen && all->chosen != all->file ? "; what is kept is used.\n" : ".\n",
	      all->out);
}

static const struct {
	const char *reason;
	void (*explain)(const struct explain *all);
} explain_reasons[] = {
    {"best", explain_best},           {"stays", explain_stays},
    {"not_worth", explain_not_worth}, {"no_room", explain_no_room},
    {"few_uses", explain_few_uses},   {"unmeasured", explain_unmeasured},
};

static void explain_reason(const struct explain *all)
{
	const char *reason = ctl_string(all->cache, "reason");

	if (ctl_is(all->cache, "forced")) {
		fputs("accessd was told to: cache_point (accessd.conf(5)).\n", all->out);
		return;
	}
	for (size_t i = 0; i < BASE_ARRAY_LEN(explain_reasons); i++)
		if (strcmp(reason, explain_reasons[i].reason) == 0) {
			explain_reasons[i].explain(all);
			return;
		}
	fprintf(all->out, "accessd's reason: %s\n", BASE_QUOTED(reason, 64));
}

/* ---- a job ---- */

static void explain_choice(const struct explain *all)
{
	const char *name = ctl_string(all->cache, "point");
	char words[80];

	if (!all->chosen || all->chosen == all->file) {
		fputs("Nothing is kept. ", all->out);
		return;
	}
	fprintf(all->out, "Kept is %s: %s. ", BASE_QUOTED(name, 64),
		explain_words(name, words, sizeof(words)));
}

static void explain_making(const struct explain *all)
{
	if (!all->chosen || all->chosen == all->file)
		return;
	if (ctl_is(all->cache, "makes"))
		fputs("What is not kept yet is made beside the outputs, as far as it fits.\n",
		      all->out);
	else
		fputs("No more of it is made; what is there is used.\n", all->out);
}

static void explain_hits(const struct explain *all)
{
	unsigned long long hits = ctl_u64(all->cache, "hits");
	uint64_t misses = ctl_u64(all->cache, "misses");
	unsigned long long wrong = ctl_u64(all->cache, "wrong");

	fprintf(all->out, "Of %llu samples that were looked for %llu came kept",
		(unsigned long long)(hits + misses), hits);
	if (hits + misses > 0)
		fprintf(all->out, " (%.1f %%, %s)", 100.0 * (double)hits / (double)(hits + misses),
			BASE_BYTES(ctl_u64(all->cache, "bytes")));
	if (wrong > 0)
		fprintf(all->out, "; %llu were of no use and made from files again", wrong);
	fputs(".\n", all->out);
}

static uint64_t explain_origin(const struct explain *all, const char *where, const char *member)
{
	const struct json_in *from = json_in_member(all->cache, "from");

	return ctl_u64(json_in_member(from, where), member);
}

/* An accessd of before says nothing of it. */
static void explain_origins(const struct explain *all)
{
	static const char *const where[] = {"memory", "store", "peers", "source"};
	static const char *const words[] = {"this node's memory", "its store", "other nodes",
					    "the source"};
	const char *before = "They came from ";

	for (size_t i = 0; i < BASE_ARRAY_LEN(where); i++) {
		const uint64_t samples = explain_origin(all, where[i], "samples");

		if (samples == 0)
			continue;
		fprintf(all->out, "%s%s: %llu (%s)", before, words[i], (unsigned long long)samples,
			BASE_BYTES(explain_origin(all, where[i], "bytes")));
		before = ", ";
	}
	if (*before == ',')
		fputs(".\n", all->out);
}

/* An accessd of before says nothing of it. */
static void explain_ahead(FILE *out, const struct json_in *peers)
{
	const char *words = ctl_peer_ahead(ctl_text(peers, "ahead"));

	if (words)
		fprintf(out,
			"While nothing is to be done for jobs %s; %llu such samples were "
			"made for other nodes.\n",
			words, ctl_u64(peers, "made_ahead"));
}

static void explain_peers(const struct explain *all)
{
	const struct json_in *peers = json_in_member(all->cache, "peers");
	const unsigned long long connected = ctl_u64(peers, "connected");
	const double make_us = ctl_known(peers, "make_us");
	const double fetch_us = ctl_known(peers, "fetch_us");
	const char *why_not = ctl_text(peers, "why_not");

	if (*why_not)
		fprintf(all->out, "Other nodes do not share it: %s.\n", BASE_QUOTED(why_not, 512));
	if (connected == 0)
		return;
	fprintf(all->out, "%llu other node%s asked for what is not here", connected,
		connected == 1 ? " is" : "s are");
	if (!(make_us >= 0))
		fputs("; what that takes is not measured yet.\n", all->out);
	else if (json_in_bool(json_in_member(peers, "worth"), true))
		fprintf(all->out, ": fetching takes %.0f us a sample, making it here %.0f us.\n",
			fetch_us, make_us);
	else
		fprintf(all->out,
			" now and then only: fetching takes %.0f us a sample, making it here %.0f "
			"us.\n",
			fetch_us, make_us);
	if (ctl_known(peers, "carry_us") >= 0)
		fprintf(all->out, "The carrier takes %.0f us of a processor for it, %s.\n",
			ctl_known(peers, "carry_us"),
			ctl_is(peers, "carry_measured") ? "as measured here"
							: "as is assumed until it is measured");
	explain_ahead(all->out, peers);
}

static void explain_place(const struct explain *all)
{
	const char *why = ctl_text(all->cache, "why");

	if (ctl_is(all->cache, "memory_only"))
		fprintf(all->out, "It is kept in memory only, and gone with accessd: %s\n",
			BASE_QUOTED(why, 512));
}

static void explain_cache(const struct json_in *cache, FILE *out)
{
	struct explain all = {
	    .cache = cache, .points = json_in_member(cache, "points"), .out = out};
	const char *why = ctl_text(cache, "why");

	if (!json_in_bool(json_in_member(cache, "on"), true)) {
		fprintf(out, "Nothing is kept: %s\n",
			why[0] ? BASE_QUOTED(why, 512) : "accessd does not say why");
		return;
	}
	all.file = json_in_with(all.points, "name", "file");
	all.chosen = json_in_with(all.points, "name", ctl_string(cache, "point"));
	all.rival = json_in_with(all.points, "name", ctl_string(cache, "rival"));
	explain_choice(&all);
	explain_reason(&all);
	explain_making(&all);
	explain_place(&all);
	fputs("What each form costs, means of a sample:\n", all.out);
	explain_print(&all, "<form|measured|work|read|to make|to write|size", explain_cost);
	fputs("The time expected between two samples, by which accessd decides:\n", all.out);
	explain_print(&all, "<form|kept|fits|if all is kept|as it fits|with making", explain_time);
	explain_hits(&all);
	explain_origins(&all);
	explain_peers(&all);
}

/* Where it held the stream back. */
static void explain_read_limit(const struct json_in *status, const struct json_in *job,
			       const struct json_in *stream, FILE *out)
{
	const struct json_in *tenants = json_in_member(status, "tenants");
	const uint64_t uid = json_in_u64(json_in_member(job, "uid"), UINT64_MAX);
	const unsigned long long held = ctl_u64(stream, "read_held");

	for (size_t i = 0; i < json_in_count(tenants) && held > 0; i++) {
		const struct json_in *tenant = json_in_item(tenants, i);
		const uint64_t most = ctl_u64(tenant, "read_bandwidth");

		if (!most || ctl_u64(tenant, "uid") != uid)
			continue;
		fprintf(out,
			"Reading is limited to %s a second by tenant.%llu.read_bandwidth of "
			"accessd, which has held this stream back %llu times: who runs accessd can "
			"raise it.\n",
			BASE_BYTES(most), (unsigned long long)uid, held);
		return;
	}
}

static void explain_job(const struct json_in *status, const struct json_in *job, FILE *out)
{
	unsigned long long id = ctl_u64(job, "stream");
	const struct json_in *stream = ctl_stream_of(status, job);
	const struct json_in *cache = json_in_member(stream, "cache");

	fprintf(out, "job %llu, %s, process %llu; stream %llu of %s\n", ctl_u64(job, "id"),
		BASE_QUOTED(ctl_string(job, "name"), 128), ctl_u64(job, "pid"), id,
		BASE_QUOTED(ctl_string(stream, "dataset"), 1024));
	explain_read_limit(status, job, stream, out);
	ctl_explain_waits(status, job, out);
	ctl_whatif_draw(status, job, out);
	if (cache)
		explain_cache(cache, out);
	else
		fputs("This accessd keeps nothing of samples.\n", out);
}

/* ---- whom it is asked of ---- */

/* By its number, its name, or the data set of its stream, which accessd names by its whole path. */
static bool explain_is_asked(const struct json_in *status, const struct json_in *job,
			     const char *who)
{
	const char *dataset = ctl_string(ctl_stream_of(status, job), "dataset");
	_cleanup_free_ char *path = NULL;

	if (ctl_is_job(job, who) || strcmp(dataset, who) == 0)
		return true;
	path = realpath(who, NULL);
	return path && strcmp(dataset, path) == 0;
}

int ctl_explain(const struct json_in *status, const char *who, FILE *out, struct diag *diag)
{
	const struct json_in *jobs = json_in_member(status, "jobs");
	unsigned found = 0;

	JSON_IN_EACH(job, jobs) {
		if (!explain_is_asked(status, job, who))
			continue;
		if (found++ > 0)
			fputc('\n', out);
		explain_job(status, job, out);
	}
	if (found > 0)
		return 0;
	return ctl_no_job(status, who, diag);
}

int ctl_explain_json(const struct json_in *status, const char *who, FILE *out, struct diag *diag)
{
	const struct json_in *jobs = json_in_member(status, "jobs");
	struct json_out json;
	unsigned found = 0;

	json_out_init(&json, false);
	json_out_array_begin(&json);
	JSON_IN_EACH(job, jobs) {
		if (!explain_is_asked(status, job, who))
			continue;
		found++;
		ctl_whatif_json(status, job, &json);
	}
	json_out_array_end(&json);
	if (found == 0) {
		json_out_fini(&json);
		return ctl_no_job(status, who, diag);
	}
	return json_out_write(&json, out) ? diag_fail(diag, CTL_E_NONE, "out of memory") : 0;
}
