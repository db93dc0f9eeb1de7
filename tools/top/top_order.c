/* SPDX-License-Identifier: Apache-2.0 */

/* Which rows, in which order: numbers from the largest on, texts from A on, what is not known last. */

#include "tools/top/top_view.h"

#include "tools/ctl_value.h"

bool top_matches(const struct top_row *row, const char *text)
{
	char cell[256];

	for (unsigned i = 0; i < top_columns_of(row->view); i++)
		if (row->value[i].kind != TOP_SPARK &&
		    strcasestr(top_text(&row->value[i], 20, cell, sizeof(cell)), text))
			return true;
	return false;
}

static bool order_is_user(const struct json_in *object, const char *user)
{
	uint64_t uid = ctl_u64(object, "uid");
	char name[64], number[24];

	snprintf(number, sizeof(number), "%llu", (unsigned long long)uid);
	return strcmp(ctl_user(uid, name, sizeof(name)), user) == 0 || strcmp(number, user) == 0;
}

/* Is it the user's? A stream is that of each of its jobs. */
static bool order_is_of(const struct top_model *model, const struct top_row *row, const char *user)
{
	const struct top_rows *ranks = &model->rows[TOP_RANKS];

	if (row->view == TOP_NODE)
		return true;
	if (row->view != TOP_STREAMS)
		return order_is_user(row->object, user);
	for (size_t i = 0; i < ranks->n; i++)
		if (ctl_u64(ranks->row[i].object, "stream") == row->key &&
		    order_is_user(ranks->row[i].object, user))
			return true;
	return false;
}

struct order_by {
	unsigned column;
	bool reverse;
};

static int order_compare(const void *one, const void *other, void *arg)
{
	const struct order_by *by = arg;
	const struct top_row *a = *(const struct top_row *const *)one;
	const struct top_row *b = *(const struct top_row *const *)other;
	const struct top_value *x = top_value(a, by->column), *y = top_value(b, by->column);
	int r = 0;

	if (x->kind == TOP_TEXT || x->kind == TOP_TAIL)
		r = strcmp(x->text ? x->text : "\x7f", y->text ? y->text : "\x7f");
	else if (isnan(x->number) != isnan(y->number))
		return isnan(x->number) ? 1 : -1;
	else if (x->number != y->number)
		r = x->number > y->number ? -1 : 1;
	if (r)
		return by->reverse ? -r : r;
	return a->key < b->key ? -1 : a->key > b->key;
}

const struct top_row **top_order(const struct top_ui *ui, const struct top_model *model,
				 size_t *ret_n)
{
	const struct top_rows *rows = &model->rows[ui->view];
	const struct top_row **ret = calloc(rows->n + 1, sizeof(*ret));
	int sort = ui->sort[ui->view];
	struct order_by by = {.column = (unsigned)sort, .reverse = ui->reverse[ui->view]};
	size_t n = 0;

	*ret_n = 0;
	if (!ret)
		return NULL;
	for (size_t i = 0; i < rows->n; i++)
		if ((!ui->user[0] || order_is_of(model, &rows->row[i], ui->user)) &&
		    (!ui->filter[0] || top_matches(&rows->row[i], ui->filter)))
			ret[n++] = &rows->row[i];
	if (sort >= 0)
		qsort_r(ret, n, sizeof(*ret), order_compare, &by);
	*ret_n = n;
	return ret;
}
