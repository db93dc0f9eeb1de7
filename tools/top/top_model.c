/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A row lives as long as one status: its texts are that status' own. What must outlive it, counters to compare with and
 * the past, is a list beside the rows, found by view and key; who is in no status any more is forgotten. An accessd
 * that was started anew counts from 0 and gives numbers anew, so all of it is forgotten then.
 */

#include "tools/top/top_model.h"

#include "tools/ctl_value.h"

enum { TOP_NODE_NONE = -1 }; /* a view whose rows stay as they come */

const struct top_column_info top_columns[TOP_COLUMNS] = {
#define COLUMN(view, column, word, header, width, from, kind, key, help) \
	{TOP_##view, word, header, width, from, TOP_##kind, key, help},
#include "tools/top/top_tbl.h"
};
const struct top_view_info top_views[TOP_VIEWS] = {
#define VIEW(view, word, title, main, sort, help) \
	{word, title, help, TOP_##view##_FIRST, TOP_##view##_##main, TOP_##view##_##sort},
#include "tools/top/top_tbl.h"
};
const struct top_node_info top_nodes[TOP_NODES] = {
#define NODE(row, word, kind, key, help) {word, TOP_##kind, key, help},
#include "tools/top/top_tbl.h"
};
const char *const top_part_words[TOP_PARTS] = {
#define WAIT(stage, word, means, helps) word,
#include "tools/ctl_waits_tbl.h"
#undef WAIT
    "itself", "stopped"};

unsigned top_columns_of(enum top_view view)
{
	unsigned end = view + 1 < TOP_VIEWS ? top_views[view + 1].first : TOP_COLUMNS;

	return end - top_views[view].first;
}

struct top_value *top_at(struct top_row *row, unsigned column)
{
	return &row->value[column - top_views[row->view].first];
}

const struct top_value *top_value(const struct top_row *row, unsigned column)
{
	return &row->value[column - top_views[row->view].first];
}

const struct top_row *top_find(const struct top_model *model, enum top_view view, uint64_t key)
{
	for (size_t i = 0; i < model->rows[view].n; i++)
		if (model->rows[view].row[i].key == key)
			return &model->rows[view].row[i];
	return NULL;
}

double top_node_value(const struct top_model *model, enum top_node node)
{
	if (node >= model->rows[TOP_NODE].n)
		return NAN;
	return top_value(&model->rows[TOP_NODE].row[node], TOP_NODE_VALUE)->number;
}

/* ---- the past ---- */

static void forget(struct top_model *model, bool all)
{
	struct top_past **at = &model->pasts;

	while (*at) {
		struct top_past *past = *at;

		if (!all && past->is_seen) {
			at = &past->next;
			continue;
		}
		*at = past->next;
		free(past->part);
		free(past);
	}
}

static struct top_past *past_new(enum top_view view, uint64_t key)
{
	struct top_past *past = calloc(1, sizeof(*past));

	if (!past)
		return NULL;
	past->view = view;
	past->key = key;
	for (unsigned i = 0; i < TOP_SUMS; i++)
		past->sum[i] = past->rate[i] = NAN;
	if (view != TOP_JOBS && view != TOP_RANKS)
		return past;
	past->part = calloc(TOP_PAST, sizeof(*past->part));
	if (past->part)
		return past;
	free(past);
	return NULL;
}

static struct top_past *past_of(struct top_model *model, enum top_view view, uint64_t key)
{
	struct top_past *past = model->pasts;

	while (past && (past->view != view || past->key != key))
		past = past->next;
	if (!past) {
		past = past_new(view, key);
		if (!past)
			return NULL;
		past->next = model->pasts;
		model->pasts = past;
	}
	past->is_seen = true;
	return past;
}

double top_past_rate(const struct top_model *model, struct top_past *past, unsigned sum,
		     double value)
{
	if (!model->is_step)
		return past->rate[sum];
	past->rate[sum] = NAN;
	if (model->dt_s > 0 && value >= past->sum[sum])
		past->rate[sum] = (value - past->sum[sum]) / model->dt_s;
	past->sum[sum] = value;
	return past->rate[sum];
}

void top_past_push(const struct top_model *model, struct top_past *past, double main, double other)
{
	if (!model->is_step)
		return;
	past->main[past->steps % TOP_PAST] = (float)main;
	past->other[past->steps % TOP_PAST] = (float)other;
	past->steps++;
}

static bool past_has(const struct top_past *past, uint64_t steps_ago)
{
	return steps_ago < past->steps && steps_ago < TOP_PAST;
}

double top_past_main(const struct top_past *past, uint64_t steps_ago)
{
	if (!past_has(past, steps_ago))
		return NAN;
	return (double)past->main[(past->steps - 1 - steps_ago) % TOP_PAST];
}

double top_past_part(const struct top_past *past, uint64_t steps_ago, enum top_part part)
{
	if (!past->part || !past_has(past, steps_ago))
		return NAN;
	return (double)past->part[(past->steps - 1 - steps_ago) % TOP_PAST][part];
}

void top_past_sums(const struct top_past *past, unsigned steps, double *ret_main, double *ret_other)
{
	*ret_main = *ret_other = 0;
	for (unsigned i = 0; i < steps && past_has(past, i); i++) {
		size_t at = (past->steps - 1 - i) % TOP_PAST;

		if (isnan(past->main[at]) || isnan(past->other[at]))
			continue;
		*ret_main += (double)past->main[at];
		*ret_other += (double)past->other[at];
	}
}

/* ---- rows ---- */

static const struct json_in *top_member(const struct json_in *object, const char *path)
{
	const char *dot = strchr(path, '.');
	char head[32];

	if (!dot)
		return json_in_member(object, path);
	snprintf(head, sizeof(head), "%.*s", (int)(dot - path), path);
	return top_member(json_in_member(object, head), dot + 1);
}

void top_read(const struct top_model *model, struct top_past *past, unsigned sum,
	      const struct json_in *object, const char *key, struct top_value *ret)
{
	const struct json_in *member = top_member(object, key);

	switch (ret->kind) {
	case TOP_TEXT:
	case TOP_TAIL:
		ret->text = json_in_string(member, NULL);
		break;
	case TOP_PER_S:
	case TOP_BYTES_S:
	case TOP_LOAD:
		ret->number = top_past_rate(model, past, sum, json_in_double(member, NAN));
		break;
	default:
		ret->number = json_in_double(member, NAN);
	}
}

struct top_row *top_add(struct top_model *model, enum top_view view, uint64_t key,
			const struct json_in *object)
{
	struct top_rows *rows = &model->rows[view];
	unsigned first = top_views[view].first;
	struct top_row *row;

	if (!base_grow(&rows->row, &rows->room, rows->n + 1, sizeof(*row)))
		return NULL;
	row = &rows->row[rows->n];
	*row = (struct top_row){.view = view, .key = key, .object = object};
	row->past = past_of(model, view, key);
	if (!row->past)
		return NULL;
	rows->n++;
	for (unsigned i = 0; i < top_columns_of(view); i++) {
		row->value[i] =
		    (struct top_value){.number = NAN, .kind = top_columns[first + i].kind};
		if (top_columns[first + i].key)
			top_read(model, row->past, i, object, top_columns[first + i].key,
				 &row->value[i]);
	}
	return row;
}

/* ---- all of it ---- */

static void empty(struct top_model *model)
{
	json_in_free(model->status);
	model->status = NULL;
	for (unsigned i = 0; i < TOP_VIEWS; i++) {
		free(model->rows[i].row);
		model->rows[i] = (struct top_rows){.row = NULL};
	}
}

void top_model_init(struct top_model *model)
{
	*model = (struct top_model){.status = NULL};
}

void top_model_fini(struct top_model *model)
{
	empty(model);
	forget(model, true);
}

int top_model_take(struct top_model *model, struct json_in *status)
{
	double at_s = ctl_real(status, "uptime_s");
	uint64_t pid = ctl_u64(status, "pid");
	int r;

	empty(model);
	if (pid != model->pid || at_s < model->at_s) {
		forget(model, true);
		model->steps = 0;
	}
	model->pid = pid;
	model->at_s = at_s;
	model->status = status;
	model->is_step = model->steps == 0 || at_s - model->step_s >= TOP_STEP_S;
	if (model->is_step) {
		model->dt_s = model->steps ? at_s - model->step_s : 0;
		model->step_s = at_s;
		model->steps++;
	}
	for (struct top_past *past = model->pasts; past; past = past->next)
		past->is_seen = false;
	r = top_derive(model);
	if (r)
		empty(model);
	forget(model, r != 0);
	return r;
}
