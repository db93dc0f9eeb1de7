/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A family for each line of the table, a series for each object of its group. What an accessd of another version does not
 * say is left out. A series is there as long as its object: jobs that ended vanish.
 *
 * Labels hold what users wrote (names of jobs, paths), so they are cut and escaped; no user can make more series than he
 * may have jobs and streams, and METRIC_MOST is the end in any case.
 */
#include "exporter/metric.h"

#include <ctype.h>
#include <inttypes.h>

#define PREFIX "oneaccess_"

struct group {
	const char *path, *labels;
};
enum group_number {
#define GROUP(number, path, labels) GROUP_##number,
#define METRIC(of, name, kind, unit, path, over, help)
#include "exporter/metric_tbl.h"
#undef GROUP
#undef METRIC
	GROUPS
};
static const struct group groups[] = {
#define GROUP(number, path, labels) [GROUP_##number] = {path, labels},
#define METRIC(of, name, kind, unit, path, over, help)
#include "exporter/metric_tbl.h"
#undef GROUP
#undef METRIC
};

enum kind { COUNTER, GAUGE, INFO };
static const char *const kinds[] = {"counter", "gauge", "info"};

static const struct metric {
	enum group_number of;
	const char *name;
	enum kind kind;
	const char *unit, *path, *over, *help;
} metrics[] = {
#define GROUP(number, path, labels)
#define METRIC(of, name, kind, unit, path, over, help) \
	{GROUP_##of, name, kind, unit, path, over, help},
#include "exporter/metric_tbl.h"
#undef GROUP
#undef METRIC
};

const char *metric_content_type(enum metric_format format)
{
	return format == METRIC_OPEN ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
				     : "text/plain; version=0.0.4; charset=utf-8";
}

enum metric_format metric_format_of(const char *accept)
{
	const char *open = accept ? strstr(accept, "application/openmetrics-text") : NULL;

	return open ? METRIC_OPEN : METRIC_PLAIN;
}

/* What stands behind a name of the table where it is a sample's. */
static const char *end_of(enum kind kind)
{
	return kind == COUNTER ? "_total" : kind == INFO ? "_info" : "";
}

/* ---- values ---- */

const struct json_in *metric_find(const struct json_in *object, const char *path)
{
	char name[64];

	for (const char *at = path; object && *at;) {
		size_t length = strcspn(at, ".=");

		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		object = json_in_member(object, name);
		at += length;
		if (*at != '.')
			break;
		at++;
	}
	return object;
}

static bool number_of(const struct json_in *value, double *ret)
{
	switch (json_in_kind_of(value)) {
	case JSON_IN_BOOL:
		*ret = json_in_bool(value, false);
		return true;
	case JSON_IN_INTEGER:
	case JSON_IN_REAL:
		*ret = json_in_double(value, 0);
		return true;
	default:
		return false;
	}
}

/* false: it has none at present. */
static bool value_of(const struct metric *metric, const struct json_in *object, double *ret)
{
	const char *word = strchr(metric->path, '=');
	const struct json_in *value = metric_find(object, metric->path);
	double over = 1;

	*ret = 1;
	if (word) {
		*ret = strcmp(json_in_string(value, ""), word + 1) == 0;
		return value != NULL;
	}
	if (*metric->path && !number_of(value, ret))
		return false;
	if (isdigit((unsigned char)metric->over[0]))
		over = strtod(metric->over, NULL);
	else if (*metric->over && !number_of(metric_find(object, metric->over), &over))
		return false;
	if (over == 0)
		return false;
	*ret /= over;
	return true;
}

static void put_number(double value, FILE *out)
{
	if (value < 1e15 && value > -1e15 && value == (double)(int64_t)value)
		fprintf(out, "%" PRId64 "\n", (int64_t)value);
	else
		fprintf(out, "%.15g\n", value);
}

/* ---- labels ---- */

static void put_escaped(const char *text, FILE *out)
{
	for (size_t length = 0; *text;) {
		size_t unit = base_utf8((const unsigned char *)text);

		unit = unit ? unit : 1;
		length += unit;
		if (length > METRIC_LABEL_MOST) {
			fputs("...", out);
			return;
		}
		if (*text == '\n')
			fputs("\\n", out);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fwrite(text, 1, unit, out);
		text += unit;
	}
}

static void put_label_value(const struct json_in *value, FILE *out)
{
	double number;

	if (json_in_kind_of(value) == JSON_IN_STRING)
		put_escaped(json_in_string(value, ""), out);
	else if (json_in_kind_of(value) == JSON_IN_BOOL)
		fputs(json_in_bool(value, false) ? "true" : "false", out);
	else if (number_of(value, &number))
		fprintf(out, "%" PRId64, json_in_i64(value, 0));
}

static void put_labels(const char *labels, const struct json_in *object, FILE *out)
{
	if (!*labels)
		return;
	for (char before = '{'; *labels; before = ',') {
		const size_t name = strcspn(labels, "="), whole = strcspn(labels, " ");
		char path[64];

		snprintf(path, sizeof(path), "%.*s", (int)(whole - name - 1), labels + name + 1);
		fprintf(out, "%c%.*s=\"", before, (int)name, labels);
		put_label_value(metric_find(object, path), out);
		fputc('"', out);
		labels += whole;
		labels += *labels == ' ';
	}
	fputc('}', out);
}

/* ---- the page ---- */

static void put_head(const char *name, enum kind kind, const char *unit, const char *help,
		     enum metric_format format, FILE *out)
{
	const bool is_open = format == METRIC_OPEN;
	const char *end = is_open ? "" : end_of(kind);

	fprintf(out, "# HELP " PREFIX "%s%s ", name, end);
	put_escaped(help, out);
	fprintf(out, "\n# TYPE " PREFIX "%s%s %s\n", name, end,
		!is_open && kind == INFO ? "gauge" : kinds[kind]);
	if (is_open && *unit)
		fprintf(out, "# UNIT " PREFIX "%s %s\n", name, unit);
}

static void put_series(const struct metric *metric, const struct json_in *object, FILE *out)
{
	double value;

	if (!value_of(metric, object, &value))
		return;
	fprintf(out, PREFIX "%s%s", metric->name, end_of(metric->kind));
	put_labels(groups[metric->of].labels, object, out);
	fputc(' ', out);
	put_number(value, out);
}

/* Objects that had no place. */
static size_t put_family(const struct metric *metric, const struct json_in *status,
			 enum metric_format format, FILE *out)
{
	const struct group *group = &groups[metric->of];
	const struct json_in *array = metric_find(status, group->path);
	const size_t n = json_in_count(array);

	put_head(metric->name, metric->kind, metric->unit, metric->help, format, out);
	if (!*group->path) {
		put_series(metric, status, out);
		return 0;
	}
	for (size_t i = 0; i < BASE_MIN(n, (size_t)METRIC_MOST); i++)
		put_series(metric, json_in_item(array, i), out);
	return n - BASE_MIN(n, (size_t)METRIC_MOST);
}

static void put_own(const char *name, const char *help, double value, enum metric_format format,
		    FILE *out)
{
	put_head(name, GAUGE, "", help, format, out);
	fprintf(out, PREFIX "%s ", name);
	put_number(value, out);
}

void metric_page(const struct json_in *status, enum metric_format format, FILE *out)
{
	size_t left_out = 0;

	put_own("up", "1: accessd answers", status != NULL, format, out);
	for (size_t i = 0; status && i < BASE_ARRAY_LEN(metrics); i++)
		left_out += put_family(&metrics[i], status, format, out);
	put_own("exporter_left_out", "objects that have no series, as they are too many",
		(double)left_out, format, out);
	if (format == METRIC_OPEN)
		fputs("# EOF\n", out);
}

void metric_list(FILE *out)
{
	fputs(PREFIX "up\tgauge\t\t\t1: accessd answers\n", out);
	for (size_t i = 0; i < BASE_ARRAY_LEN(metrics); i++) {
		const struct metric *metric = &metrics[i];
		const char *labels = groups[metric->of].labels;

		fprintf(out, PREFIX "%s%s\t%s\t%s\t", metric->name, end_of(metric->kind),
			kinds[metric->kind], metric->unit);
		for (const char *at = labels; *at; at += *at == ' ') {
			fprintf(out, "%s%.*s", at == labels ? "" : " ", (int)strcspn(at, "="), at);
			at += strcspn(at, " ");
		}
		fprintf(out, "\t%s\n", metric->help);
	}
	fputs(PREFIX "exporter_left_out\tgauge\t\t\tobjects that have no series, as they are too "
		     "many\n",
	      out);
}
