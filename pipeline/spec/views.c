/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several pictures of one sample, each with ops and draws of its own: "view" in a list begins another picture,
 * from decode on, up to the next "view" or to what works on labels. One whose ops begin with decode, or what takes its
 * place, is of another file, or medium. Everything else (shapes, engines, draws) knows lists of one picture; here one list becomes
 * several.
 *
 * What is in the pool stays at its place, so that each list has the whole pool.
 */

#include "pipeline/spec/views.h"

#include "pipeline/ops/op_run.h"

const struct op_impl views_op = {.stage = OP_STAGE_DECODE};

static int views_bad(unsigned number, const char *what, struct diag *diag)
{
	return diag_fail(diag, PIPELINE_E_BAD, "pipeline: op %u (view): %s", number, what);
}

/* A view for each name. */
static int views_add(const struct op_list *ops, unsigned at, struct views *views, struct diag *diag)
{
	const struct op *op = &ops->op[at];
	const int32_t *item = op_items(ops, op, OP_VIEW_NAMES);
	const int32_t *end = item + op->value[OP_VIEW_NAMES].count;

	for (; item < end; item += 1 + *item) {
		struct views_one *one = &views->one[views->n];

		if (views->n == VIEWS_MOST)
			return views_bad(at + 1, "there are more than 15 beside the first picture",
					 diag);
		*one = (struct views_one){.first = at + 1};
		for (int32_t i = 0; i < *item; i++)
			one->name[i] = (char)item[1 + i];
		views->n++;
	}
	return 0;
}

static bool views_is_tail(const struct op *op)
{
	return op_impl(op->id)->stage >= OP_STAGE_FILTER;
}

int views_find(const struct op_list *ops, struct views *ret, struct diag *diag)
{
	unsigned open = 0; /* the first of the views that have not ended */
	int r = 0;

	memset(ret, 0, sizeof(*ret));
	for (unsigned i = 1; r == 0 && i < ops->count && !ret->tail; i++) {
		const bool is_view = ops->op[i].id == OP_VIEW;

		if (!is_view && !views_is_tail(&ops->op[i]))
			continue;
		for (; open < ret->n; open++)
			ret->one[open].end = i;
		if (!is_view) {
			ret->tail = i;
			break;
		}
		ret->begin = ret->begin ? ret->begin : i;
		r = views_add(ops, i, ret, diag);
	}
	ret->tail = ret->tail ? ret->tail : ops->count;
	for (; open < ret->n; open++)
		ret->one[open].end = ops->count;
	for (unsigned i = ret->tail; r == 0 && i < ops->count; i++)
		if (ops->op[i].id == OP_VIEW)
			r = views_bad(i + 1, "put it before the ops on labels", diag);
	return r;
}

/* n ops more of it from number `from` on. */
static void views_append(const struct op_list *ops, unsigned from, unsigned end,
			 struct op_list *ret)
{
	for (; from < end; from++) {
		struct op *op = &ret->op[ret->count++];

		*op = ops->op[from];
		op->gate = 0;
		op->is_otherwise = false;
	}
}

static void views_begin(const struct op_list *ops, struct op_list *ret)
{
	ret->count = 0;
	ret->pooled = ops->pooled;
	memcpy(ret->pool, ops->pool, sizeof(ret->pool));
}

void views_first(const struct op_list *ops, const struct views *views, struct op_list *ret)
{
	views_begin(ops, ret);
	views_append(ops, 0, views->begin, ret);
	views_append(ops, views->tail, ops->count, ret);
	op_set_gates(ret);
}

bool views_is_own(const struct op_list *ops, const struct views_one *one)
{
	return one->first < one->end && op_intake(ops->op[one->first].id);
}

void views_take(const struct op_list *ops, const struct views_one *one, struct op_list *ret)
{
	views_begin(ops, ret);
	if (!views_is_own(ops, one))
		views_append(ops, 0, 1, ret);
	views_append(ops, one->first, one->end, ret);
	op_set_gates(ret);
}
