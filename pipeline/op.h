/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_OP_H
#define PIPELINE_OP_H

/*
 * An op with its parameters as plain values, and what is known about ops in general. The values of
 * a parameter are numbers: sizes, ranges, channels as they are; words (filter, dtype, order) as the
 * number of the word in its list, which is also the number of the enum that the kernels use.
 */

#include "base/base.h"
#include "pipeline/pipeline.h"

enum op_id {
#define OP(ident, name, help) OP_##ident,
#define PARAM(op, ident, name, kind, fallback, help)
#include "pipeline/op_tbl.h"
#undef OP
#undef PARAM
	OP_COUNT
};

enum op_kind {              /* of a parameter */
	       OP_SIZE,     /* n or [n] or [h, w]: always two numbers, h and w */
	       OP_SIDE,     /* n or [n]: one number, the shorter side; [h, w]: two */
	       OP_RANGE,    /* [a, b], 0 < a <= b */
	       OP_CHANCE,   /* 0 .. 1 */
	       OP_CHANNELS, /* three finite numbers */
	       OP_SPREAD,   /* three finite numbers above 0 */
	       OP_FILTER,   /* words: enum resize_filter */
	       OP_DTYPE,    /* words: op_dtype() says which */
	       OP_ORDER,    /* words: enum op_order */
};

enum op_order { OP_HWC = 0, OP_CHW = 1 };

/* Where a parameter's values stand in struct op: the number of the parameter within its op. */
enum {
	OP_RANDOM_RESIZED_CROP_SIZE = 0,
	OP_RANDOM_RESIZED_CROP_SCALE = 1,
	OP_RANDOM_RESIZED_CROP_RATIO = 2,
	OP_RANDOM_RESIZED_CROP_INTERPOLATION = 3,
	OP_RESIZE_SIZE = 0,
	OP_RESIZE_INTERPOLATION = 1,
	OP_CENTER_CROP_SIZE = 0,
	OP_HFLIP_P = 0,
	OP_NORMALIZE_MEAN = 0,
	OP_NORMALIZE_STD = 1,
	OP_CAST_DTYPE = 0,
	OP_LAYOUT_ORDER = 0,
};

#define OP_MAX_PARAMS 4
#define OP_MAX_NUMBERS 3
#define OP_MAX_SIDE 16384 /* pixels, of a size in a spec */
#define OP_MAX_PIXELS \
	UINT64_C(178956970) /* of any picture on the way; Pillow refuses above it, too */

struct op_value {
	unsigned count; /* 0: not given */
	double number[OP_MAX_NUMBERS];
};

struct op {
	enum op_id id;
	struct op_value value[OP_MAX_PARAMS];
};

struct op_list {
	unsigned count;
	struct op op[PIPELINE_MAX_OPS];
};

struct op_param {
	enum op_id op;
	const char *name;
	enum op_kind kind;
	const char *fallback; /* JSON, or NULL: must be given */
	const char *help;
};

/* op.c */
const char *op_name(enum op_id id);
const char *op_help(enum op_id id);
/* The op of that name; OP_COUNT where there is none. */
enum op_id op_find(const char *name);
/* The parameters of an op in the table's order; index in it = index in struct op.value. */
unsigned op_params(enum op_id id, const struct op_param **ret);
/* The words of a kind that has words, ended by NULL; NULL for kinds of numbers. */
const char *const *op_words(enum op_kind kind);
/* Does the op change from lap to lap with these values? */
bool op_is_random(const struct op *op);
/* The type that a cast is to. */
enum pipeline_dtype op_dtype(const struct op *op);
/* One number of a parameter. */
static inline double op_number(const struct op *op, unsigned param, unsigned index)
{
	return op->value[param].number[index];
}

#endif
