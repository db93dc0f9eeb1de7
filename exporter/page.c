/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of the status, as access-ctl has them, in HTML. Every text of it is escaped: names of jobs and paths are what users
 * wrote. The page asks for itself anew after some seconds, by its own head.
 */

#include "exporter/metric.h"

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"refresh\" content=\"5\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<title>OneAccess</title>\n<style>\n"
    ":root{--ink:#1b2430;--soft:#5d6b7c;--line:#d9dfe6;--back:#fbfcfd;--bar:#2f6fb0;--bad:#b3261e}"
    "\n"
    "@media(prefers-color-scheme:dark){:root{--ink:#e4e9ef;--soft:#94a2b3;--line:#313b47;"
    "--back:#12171d;--bar:#6aa9e6;--bad:#ff8a80}}\n"
    "body{font:15px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--back);"
    "max-width:72rem;margin:2rem auto;padding:0 1rem}\n"
    "h1{font-size:1.3rem}h2{font-size:1rem;margin:1.8rem 0 .4rem}p,dt{color:var(--soft)}\n"
    "dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(10rem,1fr));gap:.8rem;margin:0}\n"
    "dd{margin:0;font-size:1.25rem;font-variant-numeric:tabular-nums}\n"
    "div{overflow-x:auto}table{border-collapse:collapse;width:100%}\n"
    "th,td{text-align:left;padding:.25rem .8rem .25rem 0;border-bottom:1px solid var(--line)}\n"
    "th{font-weight:500;color:var(--soft)}.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    "td{overflow-wrap:anywhere}.bad{color:var(--bad)}\n"
    "</style></head><body>\n<h1>OneAccess</h1>\n";

static void put_text(const char *text, FILE *out)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", out);
			break;
		case '<':
			fputs("&lt;", out);
			break;
		case '>':
			fputs("&gt;", out);
			break;
		case '"':
			fputs("&quot;", out);
			break;
		default:
			fputc(*text, out);
		}
	}
}

static double real(const struct json_in *object, const char *path)
{
	return json_in_double(metric_find(object, path), 0);
}

static const char *bytes(double value, char *ret, size_t size)
{
	return base_format_bytes(value > 0 && value < 1e18 ? (uint64_t)value : 0, ret, size);
}

#define put_fact(out, name, ...)                                                \
	(fprintf(out, "<div><dt>%s</dt><dd>", name), fprintf(out, __VA_ARGS__), \
	 fputs("</dd></div>\n", out))

static void put_facts(const struct json_in *status, FILE *out)
{
	const struct json_in *node = metric_find(status, "node");
	char used[32], budget[32];

	fputs("<dl>\n", out);
	put_fact(out, "jobs", "%zu", json_in_count(metric_find(status, "jobs")));
	put_fact(out, "samples delivered", "%.0f", real(node, "samples_delivered"));
	put_fact(out, "saved by sharing", "%.0f", real(node, "samples_saved"));
	put_fact(out, "CPU time saved", "%.1f h", real(node, "cpu_seconds_saved") / 3600);
	put_fact(out, "memory", "%s of %s", bytes(real(node, "memory_used"), used, sizeof(used)),
		 bytes(real(node, "memory_budget"), budget, sizeof(budget)));
	put_fact(out, "workers", "%.0f of %.0f", real(node, "workers_alive"),
		 real(node, "workers"));
	put_fact(out, "bad samples", "%.0f", real(node, "bad_samples"));
	fputs("</dl>\n", out);
}

/* ---- tables ---- */

enum cell { CELL_TEXT, CELL_NUMBER, CELL_BYTES };
struct column {
	const char *name, *path;
	enum cell cell;
};

static void put_cell(const struct column *column, const struct json_in *object, FILE *out)
{
	double value = real(object, column->path);
	char text[32];

	switch (column->cell) {
	case CELL_TEXT:
		fputs("<td>", out);
		put_text(json_in_string(metric_find(object, column->path), "-"), out);
		break;
	case CELL_NUMBER:
		fprintf(out, "<td class=\"n\">%.0f", value);
		break;
	case CELL_BYTES:
		fprintf(out, "<td class=\"n\">%s", bytes(value, text, sizeof(text)));
		break;
	}
	fputs("</td>", out);
}

static void put_table(const char *title, const struct json_in *array, const struct column *column,
		      unsigned n, FILE *out)
{
	const size_t items = BASE_MIN(json_in_count(array), (size_t)METRIC_MOST);

	if (!items)
		return;
	fprintf(out, "<h2>%s</h2>\n<div><table><tr>", title);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "<th%s>%s</th>", column[i].cell == CELL_TEXT ? "" : " class=\"n\"",
			column[i].name);
	fputs("</tr>\n", out);
	for (size_t row = 0; row < items; row++) {
		fputs("<tr>", out);
		for (unsigned i = 0; i < n; i++)
			put_cell(&column[i], json_in_item(array, row), out);
		fputs("</tr>\n", out);
	}
	fputs("</table></div>\n", out);
}

static const struct column jobs[] = {
    {"job", "id", CELL_NUMBER},
    {"name", "name", CELL_TEXT},
    {"user", "uid", CELL_NUMBER},
    {"stream", "stream", CELL_NUMBER},
    {"samples/s", "rate", CELL_NUMBER},
    {"epoch", "epoch", CELL_NUMBER},
    {"delivered", "delivered", CELL_NUMBER},
    {"now", "stage", CELL_TEXT},
    {"held", "pins", CELL_NUMBER},
};
static const struct column streams[] = {
    {"stream", "id", CELL_NUMBER},          {"dataset", "dataset", CELL_TEXT},
    {"jobs", "jobs", CELL_NUMBER},          {"samples", "samples", CELL_NUMBER},
    {"slots", "slots", CELL_NUMBER},        {"memory", "memory", CELL_BYTES},
    {"waits for", "waiting_on", CELL_TEXT}, {"kept as", "cache.point", CELL_TEXT},
    {"bad", "bad_samples", CELL_NUMBER},
};
static const struct column tenants[] = {
    {"user", "uid", CELL_NUMBER},
    {"jobs", "jobs", CELL_NUMBER},
    {"memory", "memory", CELL_BYTES},
    {"delivered", "samples_delivered", CELL_NUMBER},
    {"saved", "samples_saved", CELL_NUMBER},
    {"CPU s saved", "cpu_seconds_saved", CELL_NUMBER},
};
static const struct column caches[] = {
    {"user", "uid", CELL_NUMBER},
    {"kept", "mode", CELL_TEXT},
    {"used", "used", CELL_BYTES},
    {"may have", "limit", CELL_BYTES},
    {"in memory", "memory_used", CELL_BYTES},
    {"found", "hits", CELL_NUMBER},
};

void page_write(const struct json_in *status, const char *why, FILE *out)
{
	fputs(head, out);
	if (!status) {
		fputs("<p class=\"bad\">accessd does not answer: ", out);
		put_text(why, out);
		fputs("</p>\n", out);
	} else {
		put_facts(status, out);
		put_table("Jobs", metric_find(status, "jobs"), jobs, BASE_ARRAY_LEN(jobs), out);
		put_table("Streams", metric_find(status, "streams"), streams,
			  BASE_ARRAY_LEN(streams), out);
		put_table("Users", metric_find(status, "tenants"), tenants, BASE_ARRAY_LEN(tenants),
			  out);
		put_table("What is kept", metric_find(status, "caches"), caches,
			  BASE_ARRAY_LEN(caches), out);
	}
	fputs("<p><a href=\"/metrics\">metrics</a> for Prometheus, by "
	      "access-exporter " PACKAGE_VERSION "</p>\n</body></html>\n",
	      out);
}
