/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * An op with its parameters as plain values, and what is known about ops in general. The values of
 * a parameter are numbers: sizes, ranges, channels as they are; words (filter, dtype, order) as the
 * number of the word in its list, which is also the number of the enum that the kernels use; true
 * as 1. What an op does is op_run.h's.
 */

#include "pipeline/types.h"

enum op_kind {                /* of a parameter: what is written, and what stands in op_value */
	       OP_KIND_SIZE,  /* n or [n] or [h, w]: always two numbers, h and w */
	       OP_KIND_SIDE,  /* n or [n]: one number, the shorter side; [h, w]: two */
	       OP_KIND_RANGE, /* [a, b], 0 < a <= b */
	       OP_KIND_CHANNELS, /* one finite number or three; 2 or 4 to 32, as float32: in the pool (op_channel) */
	       OP_KIND_SPREAD,   /* the same, above 0 */
	       OP_KIND_WORD,     /* one of words */
	       OP_KIND_BOOL,     /* true or false */
	       OP_KIND_INTEGER,  /* one whole number */
	       OP_KIND_NUMBER,   /* one number */
	       OP_KIND_PAIR,     /* [a, b], a <= b */
	       OP_KIND_TWO,      /* [a, b], in any order */
	       OP_KIND_AROUND_0, /* [a, b], a <= b; or x >= 0 for [-x, x] */
	       OP_KIND_AROUND_1, /* [a, b], a <= b; or x >= 0 for [1 - x, 1 + x], cut off below */
	       OP_KIND_SPAN,     /* [a, b], a <= b; or x for [x, x] */
	       OP_KIND_ODD,      /* n or [n] or [x, y], odd: always two, x and y */
	       OP_KIND_SIDES,    /* n or [n], [x, y], [left, top, right, bottom]: always four */
	       OP_KIND_SHEAR,    /* x >= 0 for [-x, x, 0, 0], [a, b] for [a, b, 0, 0]; or four */
	       OP_KIND_COLOR,    /* n or [n] or [r, g, b], whole: always three */
	       OP_KIND_VALUE,    /* n or [n] or [r, g, b]: three numbers; or a word: one number */
	       OP_KIND_WHOLES,   /* n or a list of up to 16 whole numbers */
	       OP_KIND_NUMBERS,  /* x or a list of up to 16 numbers */
	       OP_KIND_LIST,     /* whole numbers, any count: op_list.pool */
	       OP_KIND_LISTS,    /* lists of whole numbers: op_list.pool, each with its count before
	                          */
	       OP_KIND_NAMES,    /* names of fields, as lists of their characters */
	       OP_KIND_TEXTS,    /* the same of any ASCII but quotes and backslashes */
};

struct op_type {
	enum op_kind kind;
	double least, most;       /* of every number */
	const char *const *words; /* ended by NULL; their numbers are their places */
	bool or_null;             /* null may be written: no numbers */
	bool late; /* came later than its op: not in the canonical text where it has its default,
	               * so that the names of pipelines which never heard of it stay */
};

/* Types as op_tbl.h writes them. */
#define OP_TYPE_SIZE .kind = OP_KIND_SIZE, .least = 1, .most = OP_MAX_SIDE
#define OP_TYPE_SIDE .kind = OP_KIND_SIDE, .least = 1, .most = OP_MAX_SIDE
#define OP_TYPE_RANGE .kind = OP_KIND_RANGE, .least = 1e-6, .most = 1e6
#define OP_TYPE_CHANCE OP_TYPE_NUMBER(0, 1)
#define OP_TYPE_CHANNELS .kind = OP_KIND_CHANNELS, .least = -1e6, .most = 1e6
#define OP_TYPE_SPREAD .kind = OP_KIND_SPREAD, .least = 1e-6, .most = 1e6
#define OP_TYPE_WORD(list) .kind = OP_KIND_WORD, .words = (list)
#define OP_TYPE_FILTER OP_TYPE_WORD(op_filter_words)
#define OP_TYPE_DTYPE OP_TYPE_WORD(op_dtype_words)
#define OP_TYPE_ORDER OP_TYPE_WORD(op_order_words)
#define OP_TYPE_BOOL .kind = OP_KIND_BOOL
#define OP_TYPE_INTEGER(low, high) .kind = OP_KIND_INTEGER, .least = (low), .most = (high)
#define OP_TYPE_NUMBER(low, high) .kind = OP_KIND_NUMBER, .least = (low), .most = (high)
#define OP_TYPE_PAIR(low, high) .kind = OP_KIND_PAIR, .least = (low), .most = (high)
#define OP_TYPE_TWO(low, high) .kind = OP_KIND_TWO, .least = (low), .most = (high)
#define OP_TYPE_AROUND_0(high) .kind = OP_KIND_AROUND_0, .least = -(high), .most = (high)
#define OP_TYPE_AROUND_1(high) .kind = OP_KIND_AROUND_1, .least = 0, .most = (high)
#define OP_TYPE_SPAN(low, high) .kind = OP_KIND_SPAN, .least = (low), .most = (high)
#define OP_TYPE_ODD(high) .kind = OP_KIND_ODD, .least = 1, .most = (high)
#define OP_TYPE_SIDES(low, high) .kind = OP_KIND_SIDES, .least = (low), .most = (high)
#define OP_TYPE_SHEAR(high) .kind = OP_KIND_SHEAR, .least = -(high), .most = (high)
#define OP_TYPE_COLOR .kind = OP_KIND_COLOR, .least = 0, .most = 255
#define OP_TYPE_VALUE(list) .kind = OP_KIND_VALUE, .least = -1e6, .most = 1e6, .words = (list)
#define OP_TYPE_WHOLES(low, high) .kind = OP_KIND_WHOLES, .least = (low), .most = (high)
#define OP_TYPE_NUMBERS(low, high) .kind = OP_KIND_NUMBERS, .least = (low), .most = (high)
#define OP_TYPE_LIST(low, high) .kind = OP_KIND_LIST, .least = (low), .most = (high)
#define OP_TYPE_LISTS(low, high) .kind = OP_KIND_LISTS, .least = (low), .most = (high)
#define OP_TYPE_NAMES .kind = OP_KIND_NAMES
#define OP_TYPE_TEXTS .kind = OP_KIND_TEXTS
#define OP_OR_NULL(type) type, .or_null = true
#define OP_LATE(type) type, .late = true

enum op_source { OP_FILE = 0, OP_RECORDED = 1, OP_RECORDED_ANEW = 2 };
enum op_fit { OP_EXACT = 0, OP_COVER = 1, OP_CONTAIN = 2 };
enum op_half { OP_HALF_EVEN = 0, OP_HALF_DOWN = 1 };
enum op_order { OP_HWC = 0, OP_CHW = 1 };

enum op_id {
#define OP(ident, name, impl, help) OP_##ident,
#define PARAM(op, ident, name, type, fallback, help)
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM
	OP_COUNT
};

/* Where parameters stand in the table of all; those of an op follow each other. */
enum op_place {
#define OP(ident, name, impl, help) OP_AT_##ident, OP_BEFORE_##ident = OP_AT_##ident - 1,
#define PARAM(op, ident, name, type, fallback, help) OP_AT_##op##_##ident,
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM
	OP_PARAMS
};

/* Where a parameter's values stand in struct op: OP_RESIZE_SIZE is the number of the parameter
 * "size" within its op, and so on. */
enum op_param_number {
#define OP(ident, name, impl, help)
#define PARAM(op, ident, name, type, fallback, help) \
	OP_##op##_##ident = (int)OP_AT_##op##_##ident - (int)OP_AT_##op,
#include "pipeline/spec/op_tbl.h"
#undef OP
#undef PARAM
};

#define OP_MAX_PARAMS 14
#define OP_MAX_NUMBERS 16
#define OP_MAX_POOL (PIPELINE_MAX_TEXT / 2) /* a number of a list takes two bytes of text */
#define OP_MAX_SIDE 16384                   /* pixels, of a size in a spec */
#define OP_MAX_CLASSES 65536
#define OP_MAX_TEXT 63 /* of a text in a list */
#define OP_MAX_NAME 23 /* of a field; with ".length" it has place in a slot table */
/* Of any picture on the way; Pillow refuses above it, too */
#define OP_MAX_PIXELS UINT64_C(178956970)

struct op_value {
	unsigned count; /* numbers; of a list: in the pool. 0: null, or a list of nothing */
	double number[OP_MAX_NUMBERS]; /* a list: its first number's place in the pool */
};

struct op {
	enum op_id id;
	struct op_value value[OP_MAX_PARAMS];
	unsigned hidden; /* bit i: value[i] is late and its default: not in the canonical text */
	unsigned gate;   /* the random_apply that decides whether this op is done, its number in the
			  * list (from 0); 0: it always is */
	bool is_otherwise; /* it is done where that one's first ops are not */
};

struct op_list {
	unsigned count;
	struct op op[PIPELINE_MAX_OPS];
	unsigned pooled;
	int32_t pool[OP_MAX_POOL]; /* the numbers of all lists */
};

struct op_param {
	enum op_id op;
	const char *name;
	struct op_type type;
	const char *fallback; /* JSON, or NULL: must be given */
	const char *help;
};

/* What the first ops that take more than one file a sample in have in common: where their parameters are. */
struct op_intake {
	unsigned source, fields, kinds, names, members, columns, colors, flip_indices;
};
#define OP_INTAKE_NONE OP_MAX_PARAMS /* the op has no such parameter */

/* op.c */
const char *op_name(enum op_id id);
/* The op of that name; OP_COUNT where there is none. */
enum op_id op_find(const char *name);
/* The parameters of an op in the table's order; index in it = index in struct op.value. */
unsigned op_params(enum op_id id, const struct op_param **ret);
/* NULL: the op takes nothing in but a file. */
const struct op_intake *op_intake(enum op_id id);
/* Sets which random_apply decides on which op. */
void op_set_gates(struct op_list *ops);
/* Do the first ops of both mean the same, up to how many, at most `most`? */
unsigned op_alike(const struct op_list *a, const struct op_list *b, unsigned most);
/* Of a parameter of one number for all channels, or one for each: the channel's. */
double op_channel(const struct op_list *ops, const struct op *op, unsigned param, unsigned channel);
/* The type that a cast is to. */
enum pipeline_dtype op_dtype(const struct op *op);

/* Are its numbers in the pool? */
static inline bool op_is_pooled(const struct op_type *type, const struct op_value *value)
{
	if (type->kind == OP_KIND_CHANNELS || type->kind == OP_KIND_SPREAD)
		return value->count == 2 || value->count > 3;
	return type->kind == OP_KIND_LIST || type->kind == OP_KIND_LISTS ||
	       type->kind == OP_KIND_NAMES || type->kind == OP_KIND_TEXTS;
}

/* One number of a parameter. */
static inline double op_number(const struct op *op, unsigned param, unsigned index)
{
	return op->value[param].number[index];
}

/* Of a span: is there more than one number to draw? */
static inline bool op_is_span(const struct op *op, unsigned param)
{
	return op_number(op, param, 0) < op_number(op, param, 1);
}

/* Does an op change from sample to sample that is done with the probability in `p`, where what it does changes, or does not? */
static inline bool op_varies(const struct op *op, unsigned p, bool does)
{
	return op_number(op, p, 0) > 0 && (does || op_number(op, p, 0) < 1);
}

/* The colour that a parameter says; of null black. */
static inline void op_color(const struct op *op, unsigned param, uint8_t ret[3])
{
	for (unsigned c = 0; c < 3; c++)
		ret[c] = (uint8_t)op_number(op, param, c);
}

/* null was written (or nothing, where that is the default). */
static inline bool op_is_null(const struct op *op, unsigned param)
{
	return op->value[param].count == 0;
}

/* The numbers of a list, value[param].count of them. */
static inline const int32_t *op_items(const struct op_list *ops, const struct op *op,
				      unsigned param)
{
	return ops->pool + (size_t)op->value[param].number[0];
}
