/* SPDX-License-Identifier: Apache-2.0 */

/* What accessd says is data, not text to trust: numbers come through defaults, texts through the table's escaping. */

#include "tools/ctl_value.h"

#include <pwd.h>
#include "tools/table.h"

unsigned long long ctl_u64(const struct json_in *object, const char *key)
{
	return json_in_u64(json_in_member(object, key), 0);
}

double ctl_real(const struct json_in *object, const char *key)
{
	return json_in_double(json_in_member(object, key), 0);
}

double ctl_known(const struct json_in *object, const char *key)
{
	return json_in_double(json_in_member(object, key), -1);
}

const char *ctl_text(const struct json_in *object, const char *key)
{
	return json_in_string(json_in_member(object, key), "");
}

const char *ctl_string(const struct json_in *object, const char *key)
{
	return json_in_string(json_in_member(object, key), "-");
}

bool ctl_is(const struct json_in *object, const char *key)
{
	const struct json_in *value = json_in_member(object, key);

	return json_in_bool(value, json_in_u64(value, 0) != 0);
}

/* ---- order ---- */

struct ctl_place {
	uint64_t by, then;
	size_t index;
};

static int ctl_compare(const void *one, const void *other)
{
	const struct ctl_place *a = one, *b = other;

	if (a->by != b->by)
		return a->by < b->by ? -1 : 1;
	if (a->then != b->then)
		return a->then < b->then ? -1 : 1;
	return a->index < b->index ? -1 : a->index > b->index;
}

const struct json_in **ctl_sorted(const struct json_in *array, const char *by, const char *then)
{
	size_t n = json_in_count(array);
	_cleanup_free_ struct ctl_place *place = calloc(n + 1, sizeof(*place));
	const struct json_in **ret = calloc(n + 1, sizeof(*ret));

	if (!place || !ret) {
		free(ret);
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		place[i] = (struct ctl_place){.by = ctl_u64(json_in_item(array, i), by),
					      .then = ctl_u64(json_in_item(array, i), then),
					      .index = i};
	qsort(place, n, sizeof(*place), ctl_compare);
	for (size_t i = 0; i < n; i++)
		ret[i] = json_in_item(array, place[i].index);
	return ret;
}

void ctl_draw_rows(const struct json_in *array, const struct ctl_rows *rows, FILE *out)
{
	_cleanup_free_ const struct json_in **sorted = ctl_sorted(array, rows->by, rows->then);
	struct table table;

	table_init(&table, rows->headers);
	for (size_t i = 0; sorted && i < json_in_count(array); i++) {
		rows->row(sorted[i], &table);
		table_end_row(&table);
	}
	table_print(&table, "", rows->none, out);
}

/* ---- cells ---- */

void ctl_cell_u64(struct table *table, const struct json_in *object, const char *key)
{
	if (json_in_member(object, key))
		table_cell(table, "%llu", ctl_u64(object, key));
	else
		table_cell(table, "-");
}

void ctl_cells_u64(struct table *table, const struct json_in *object, const char *keys)
{
	for (char key[32]; *keys; keys += strspn(keys, " ")) {
		const size_t length = strcspn(keys, " ");

		snprintf(key, sizeof(key), "%.*s", (int)length, keys);
		ctl_cell_u64(table, object, key);
		keys += length;
	}
}

void ctl_cell_bytes(struct table *table, uint64_t bytes)
{
	table_cell(table, "%s", BASE_BYTES(bytes));
}

void ctl_cell_share(struct table *table, double share)
{
	if (share < 0)
		table_cell(table, "-");
	else
		table_cell(table, "%.0f %%", 100 * share);
}

void ctl_cell_rate(struct table *table, const struct json_in *job)
{
	double rate = json_in_double(json_in_member(job, "rate"), -1);

	if (rate < 0)
		table_cell(table, "-");
	else
		table_cell(table, rate < 9.95 && rate > 0 ? "%.1f/s" : "%.0f/s", rate);
}

static bool ctl_is_begin(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

void ctl_cell_cut(struct table *table, const char *text, unsigned width, bool keep_end)
{
	unsigned all = table_width(text), keep = width > 3 ? width - 3 : 0;
	const char *at = text;

	if (all <= width) {
		table_cell(table, "%s", text);
		return;
	}
	for (unsigned skip = keep_end ? all - keep : keep; *at && (skip > 0 || !ctl_is_begin(*at));
	     at++)
		skip -= ctl_is_begin(*at) ? 1 : 0;
	if (keep_end)
		table_cell(table, "...%s", at);
	else
		table_cell(table, "%.*s...", (int)(at - text), text);
}

const char *ctl_user(uint64_t uid, char *ret, size_t size)
{
	const struct passwd *user = uid < UINT32_MAX ? getpwuid((uid_t)uid) : NULL;

	if (user && user->pw_name[0])
		snprintf(ret, size, "%s", user->pw_name);
	else
		snprintf(ret, size, "%llu", (unsigned long long)uid);
	return ret;
}

void ctl_cell_user(struct table *table, uint64_t uid)
{
	char name[64];

	ctl_cell_cut(table, ctl_user(uid, name, sizeof(name)), 12, false);
}

const char *ctl_named(const struct json_in *object)
{
	return json_in_string(json_in_member(object, "named"), "");
}

void ctl_cell_whose(struct table *table, const struct json_in *object)
{
	char text[64];

	snprintf(text, sizeof(text), "name:%.40s", ctl_named(object));
	if (*ctl_named(object))
		ctl_cell_cut(table, text, 20, false);
	else if (ctl_is(object, "public"))
		table_cell(table, "everybody");
	else
		ctl_cell_user(table, ctl_u64(object, "uid"));
}

const char *ctl_duration(double seconds, char *ret, size_t size)
{
	uint64_t s = seconds > 0 && seconds < 1e12 ? (uint64_t)seconds : 0;
	unsigned long long minutes = s / 60, hours = s / 3600, days = s / 86400;

	if (minutes < 2)
		snprintf(ret, size, "%llu s", (unsigned long long)s);
	else if (hours < 2)
		snprintf(ret, size, "%llu min", minutes);
	else if (days < 2)
		snprintf(ret, size, "%llu h %llu min", hours, minutes % 60);
	else
		snprintf(ret, size, "%llu d %llu h", days, hours % 24);
	return ret;
}
