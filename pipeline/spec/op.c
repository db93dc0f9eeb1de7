/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of ops and parameters, made from op_tbl.h. Parameters of all ops stand in one array in
 * the order of the table, so that those of one op are neighbours; the constants of op.h that say
 * where come from the same table.
 */

#include "pipeline/spec/op.h"

/* Words, in the order of the enum that the kernels use. */
static const char *const op_filter_words[] = {"nearest", "box",     "bilinear", "hamming",
					      "bicubic", "lanczos", NULL};
static const char *const op_policy_words[] = {"imagenet", "cifar10", "svhn", NULL};
static const char *const op_warp_words[] = {"nearest", "bilinear", "bicubic", NULL};
static const char *const op_plain_warp_words[] = {"nearest", "bilinear", NULL};
static const char *const op_fit_words[] = {"exact", "cover", "contain", NULL};
static const char *const op_half_words[] = {"even", "down", NULL};
static const char *const op_timm_words[] = {"nearest", "bilinear", "bicubic", "random", NULL};
static const char *const op_pad_words[] = {"constant", "edge", "reflect", "symmetric", NULL};
static const char *const op_erase_words[] = {"random", NULL};
static const char *const op_hole_words[] = {"random", "random_uniform", NULL};
static const char *const op_dtype_words[] = {"u8", "f16", "f32", "bf16", NULL};
static const char *const op_source_words[] = {"file", "record", "random_record", NULL};
static const char *const op_medium_words[] = {"sound", "video", NULL};
static const char *const op_crop_words[] = {"random", "center", "begin", NULL};
static const char *const op_norm_words[] = {"slaney", NULL};
static const char *const op_scale_words[] = {"htk", "slaney", NULL};
static const char *const op_log_words[] = {"ln", "log10", "db", "whisper", NULL};
static const char *const op_stype_words[] = {"power", "magnitude", NULL};
static const char *const op_ortho_words[] = {"ortho", NULL};
static const char *const op_gain_words[] = {"amplitude", "power", "db", NULL};
static const char *const op_fade_words[] = {"linear",       "exponential", "logarithmic",
					    "quarter_sine", "half_sine",   NULL};
static const char *const op_clip_words[] = {"random", "center", "begin", "spread", NULL};
static const char *const op_pick_words[] = {"random", "even", "first", NULL};
static const char *const op_padding_words[] = {"repeat", "zero", "ragged", NULL};
static const char *const op_axis_words[] = {"x", "y", "z", "any", NULL};
static const char *const op_flip_words[] = {"x", "y", "z", NULL};
static const char *const op_middle_words[] = {"mean", "box", NULL};
static const char *const op_unit_words[] = {"sphere", "cube", NULL};
static const char *const op_order_words[] = {"HWC", "CHW", NULL};

static const struct {
	const char *name;
	unsigned first; /* of its parameters */
} op_table[OP_COUNT] = {
#define OP(ident, name, impl, help) [OP_##ident] = {name, OP_AT_##ident},
#define PARAM(op, ident, name, type, fallback, help)
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM
};

static const struct op_param op_param_table[] = {
#define OP(ident, name, impl, help)
#define PARAM(op, ident, name, type, fallback, help) {OP_##op, name, {type}, fallback, help},
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM
};

const char *op_name(enum op_id id)
{
	return op_table[id].name;
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
	unsigned end = id + 1 < OP_COUNT ? op_table[id + 1].first : OP_PARAMS;

	*ret = op_table[id].first < end ? &op_param_table[op_table[id].first] : NULL;
	return end - op_table[id].first;
}

/* The parameters that all of these ops have, and of the others NONE where it has none. */
#define OP_NONE_SOURCE OP_INTAKE_NONE
#define OP_NONE_COLORS OP_INTAKE_NONE
#define OP_NONE_FLIP_INDICES OP_INTAKE_NONE
#define OP_INTAKE(ident, with_source, with_colors)                       \
	[OP_##ident] = {OP_##with_source##_SOURCE, OP_##ident##_FIELDS,  \
			OP_##ident##_KINDS,        OP_##ident##_NAMES,   \
			OP_##ident##_MEMBERS,      OP_##ident##_COLUMNS, \
			OP_##with_colors##_COLORS, OP_##with_colors##_FLIP_INDICES}

const struct op_intake *op_intake(enum op_id id)
{
	static const struct op_intake intake[OP_COUNT] = {
	    OP_INTAKE(DECODE, DECODE, DECODE),   OP_INTAKE(BANDS, BANDS, BANDS),
	    OP_INTAKE(VIDEO, VIDEO, NONE),       OP_INTAKE(VOLUME, VOLUME, NONE),
	    OP_INTAKE(AUDIO, AUDIO, NONE),       OP_INTAKE(CLOUD, CLOUD, NONE),
	    OP_INTAKE(DURATION, DURATION, NONE), OP_INTAKE(RECORD, NONE, NONE),
	};

	return intake[id].kinds ? &intake[id] : NULL; /* which is no op's first parameter */
}

/* Groups lie within groups (shape.c sees to that): the inner one, which comes later, decides. */
void op_set_gates(struct op_list *ops)
{
	for (unsigned i = 0; i < ops->count; i++) {
		const struct op *op = &ops->op[i];
		unsigned first, all;

		if (op->id != OP_RANDOM_APPLY)
			continue;
		first = (unsigned)op_number(op, OP_RANDOM_APPLY_OPS, 0);
		all = first + (unsigned)op_number(op, OP_RANDOM_APPLY_OTHERWISE, 0);
		for (unsigned k = 0; k < all && i + 1 + k < ops->count; k++) {
			ops->op[i + 1 + k].gate = i;
			ops->op[i + 1 + k].is_otherwise = k >= first;
		}
	}
}

/* Both are values of the same parameter. */
static bool op_same_value(const struct op_type *type, const struct op_list *a,
			  const struct op_value *x, const struct op_list *b,
			  const struct op_value *y)
{
	const bool pooled = op_is_pooled(type, x);

	if (x->count != y->count)
		return false;
	if (pooled && x->count > 0)
		return memcmp(a->pool + (size_t)x->number[0], b->pool + (size_t)y->number[0],
			      x->count * sizeof(a->pool[0])) == 0;
	for (unsigned i = 0; i < x->count && !pooled; i++)
		if (x->number[i] != y->number[i])
			return false;
	return true;
}

unsigned op_alike(const struct op_list *a, const struct op_list *b, unsigned most)
{
	for (unsigned i = 0; i < most; i++) {
		const struct op *x = &a->op[i], *y = &b->op[i];
		const struct op_param *param;
		unsigned n = op_params(x->id, &param);

		if (x->id != y->id)
			return i;
		for (unsigned p = 0; p < n; p++)
			if (!op_same_value(&param[p].type, a, &x->value[p], b, &y->value[p]))
				return i;
	}
	return most;
}

double op_channel(const struct op_list *ops, const struct op *op, unsigned param, unsigned channel)
{
	const struct op_value *value = &op->value[param];
	float number;

	if (value->count == 1)
		return value->number[0];
	if (value->count == 3)
		return value->number[channel];
	memcpy(&number, &ops->pool[(size_t)value->number[0] + channel], sizeof(number));
	return number;
}

enum pipeline_dtype op_dtype(const struct op *op)
{
	static const enum pipeline_dtype dtypes[] = {PIPELINE_U8, PIPELINE_F16, PIPELINE_F32,
						     PIPELINE_BF16}; /* as op_dtype_words */

	return dtypes[(unsigned)op_number(op, OP_CAST_DTYPE, 0)];
}
