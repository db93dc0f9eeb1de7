/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of ops and parameters, made from op_tbl.h. Parameters of all ops stand in one array in
 * the order of the table, so that those of one op are neighbours; their numbers within the op are
 * the constants of op.h, which test_spec holds against the names here.
 */

#include <string.h>
#include "pipeline/op.h"

static const struct {
	const char *name, *help;
} op_table[OP_COUNT] = {
#define OP(ident, name, help) [OP_##ident] = {name, help},
#define PARAM(op, ident, name, kind, fallback, help)
#include "pipeline/op_tbl.h"
#undef OP
#undef PARAM
};

static const struct op_param op_param_table[] = {
#define OP(ident, name, help)
#define PARAM(op, ident, name, kind, fallback, help) {OP_##op, name, kind, fallback, help},
#include "pipeline/op_tbl.h"
#undef OP
#undef PARAM
};

static const char *const op_filter_words[] = {"nearest", "box",     "bilinear", "hamming",
					      "bicubic", "lanczos", NULL};
static const char *const op_dtype_words[] = {"u8", "f16", "f32", "bf16", NULL};
static const char *const op_order_words[] = {"HWC", "CHW", NULL};

const char *op_name(enum op_id id)
{
	return op_table[id].name;
}

const char *op_help(enum op_id id)
{
	return op_table[id].help;
}

enum op_id op_find(const char *name)
{
	enum op_id id = 0;

	while (id < OP_COUNT && strcmp(op_table[id].name, name) != 0)
		id++;
	return id;
}

unsigned op_params(enum op_id id, const struct op_param **ret)
{
	unsigned first = 0, n = 0;

	while (first < BASE_ARRAY_LEN(op_param_table) && op_param_table[first].op != id)
		first++;
	while (first + n < BASE_ARRAY_LEN(op_param_table) && op_param_table[first + n].op == id)
		n++;
	*ret = n > 0 ? &op_param_table[first] : NULL;
	return n;
}

const char *const *op_words(enum op_kind kind)
{
	switch (kind) {
	case OP_FILTER:
		return op_filter_words;
	case OP_DTYPE:
		return op_dtype_words;
	case OP_ORDER:
		return op_order_words;
	default:
		return NULL;
	}
}

enum pipeline_dtype op_dtype(const struct op *op)
{
	static const enum pipeline_dtype dtypes[] = {PIPELINE_U8, PIPELINE_F16, PIPELINE_F32,
						     PIPELINE_BF16}; /* as op_dtype_words */

	return dtypes[(unsigned)op_number(op, OP_CAST_DTYPE, 0)];
}

bool op_is_random(const struct op *op)
{
	double p;

	if (op->id == OP_RANDOM_RESIZED_CROP)
		return true;
	if (op->id != OP_HFLIP)
		return false;
	p = op_number(op, OP_HFLIP_P, 0);
	return p > 0 && p < 1;
}
