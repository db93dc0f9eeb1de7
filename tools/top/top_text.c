/* SPDX-License-Identifier: Apache-2.0 */

/* Values as text: as short as the column wants it, and whole for --json. */

#include "tools/top/top_view.h"

#include "tools/ctl_value.h"

bool top_is_left(enum top_kind kind)
{
	return kind == TOP_TEXT || kind == TOP_TAIL || kind == TOP_USER || kind == TOP_SPARK;
}

/* "1234567", or "1.2M" where that is too long. */
static void text_number(double number, unsigned width, double step, const char *units, char *ret,
			size_t size)
{
	unsigned unit = 0;

	if ((unsigned)snprintf(ret, size, "%.0f", number) <= width && step < 1001)
		return;
	while (number >= step && units[unit + 1]) {
		number /= step;
		unit++;
	}
	snprintf(ret, size, number < 9.95 && unit > 0 ? "%.1f%c" : "%.0f%c", number, units[unit]);
	if (unit == 0)
		ret[strlen(ret) - 1] = '\0';
}

static void text_seconds(double s, char *ret, size_t size)
{
	if (s < 10)
		snprintf(ret, size, "%.1fs", s);
	else if (s < 120)
		snprintf(ret, size, "%.0fs", s);
	else if (s < 7200)
		snprintf(ret, size, "%.0fm", s / 60);
	else
		snprintf(ret, size, "%.0fh", BASE_MIN(s / 3600, 99999.0));
}

static void text_of_number(const struct top_value *value, unsigned width, char *ret, size_t size)
{
	double number = value->number;

	switch (value->kind) {
	case TOP_SHARE:
	case TOP_LOAD:
		snprintf(ret, size, "%.0f", 100 * number);
		break;
	case TOP_BYTES:
	case TOP_BYTES_S:
		text_number(number, width, 1024, "BKMGTPE", ret, size);
		break;
	case TOP_SECONDS:
		text_seconds(number, ret, size);
		break;
	case TOP_RATE:
	case TOP_PER_S:
	case TOP_REAL:
		if (number > 0 && number < 9.95)
			snprintf(ret, size, "%.1f", number);
		else
			text_number(number, width, 1000, " kMGTPE", ret, size);
		break;
	default:
		text_number(number, width, 1000, " kMGTPE", ret, size);
	}
}

char *top_text(const struct top_value *value, unsigned width, char *ret, size_t size)
{
	if (value->text)
		snprintf(ret, size, "%s", value->text);
	else if (value->kind == TOP_TEXT || value->kind == TOP_TAIL || isnan(value->number))
		snprintf(ret, size, "-");
	else if (value->kind == TOP_USER)
		ctl_user((uint64_t)value->number, ret, size);
	else
		text_of_number(value, width, ret, size);
	return ret;
}

/* ---- --json ---- */

static void json_value(struct json_out *out, const char *word, const struct top_value *value)
{
	json_out_key(out, word);
	switch (value->kind) {
	case TOP_TEXT:
	case TOP_TAIL:
		json_out_string(out, value->text);
		break;
	case TOP_COUNT:
	case TOP_BYTES:
	case TOP_USER:
		if (value->number >= 0)
			json_out_u64(out, (uint64_t)value->number);
		else
			json_out_null(out);
		break;
	default:
		json_out_double(out, value->number);
	}
}

static void json_row(struct json_out *out, const struct top_row *row)
{
	json_out_object_begin(out);
	for (unsigned i = 0; i < top_columns_of(row->view); i++) {
		const struct top_column_info *column = &top_columns[top_views[row->view].first + i];

		if (column->kind != TOP_SPARK)
			json_value(out, column->word, &row->value[i]);
	}
	json_out_object_end(out);
}

static void json_node(struct json_out *out, const struct top_model *model)
{
	json_out_object_begin(out);
	for (unsigned i = 0; i < model->rows[TOP_NODE].n; i++)
		json_value(out, top_nodes[i].word,
			   top_value(&model->rows[TOP_NODE].row[i], TOP_NODE_VALUE));
	json_out_object_end(out);
}

void top_json(const struct top_model *model, FILE *file)
{
	struct json_out out;

	json_out_init(&out, false);
	json_out_object_begin(&out);
	json_out_member_u64(&out, "pid", model->pid);
	json_out_member_double(&out, "uptime_s", model->at_s);
	for (unsigned view = 0; view < TOP_VIEWS; view++) {
		json_out_key(&out, top_views[view].word);
		if (view == TOP_NODE) {
			json_node(&out, model);
			continue;
		}
		json_out_array_begin(&out);
		for (size_t i = 0; i < model->rows[view].n; i++)
			json_row(&out, &model->rows[view].row[i]);
		json_out_array_end(&out);
	}
	json_out_object_end(&out);
	json_out_write(&out, file);
}
