/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of parameters.
 *
 * torchvision lets most of its parameters be written in several ways: one number for a pair, a pair
 * for four. Each way is read here into one form, which is also the only one that is written, so that
 * texts which mean the same have the same canonical text. Which ways a kind has stands in a table;
 * what the numbers of a short way make of the rest is the kind's `complete`. Bounds are looked at
 * when the form is complete, except where a number alone has a meaning of its own.
 *
 * Lists of any length stand in the spec's pool. It cannot overflow: a number takes two bytes of a
 * text that has at most PIPELINE_MAX_TEXT, and the count in front of a list takes the place of its
 * brackets.
 */

#include <math.h>
#include "pipeline/spec/spec_value.h"

/* ---- short ways to write it ---- */

static const char *spec_value_twice(struct op_value *value)
{
	if (value->count == 1)
		value->number[1] = value->number[0];
	value->count = 2;
	return NULL;
}

static const char *spec_value_thrice(struct op_value *value)
{
	if (value->count == 1)
		value->number[1] = value->number[2] = value->number[0];
	value->count = 3;
	return NULL;
}

static const char *spec_value_rising(struct op_value *value)
{
	return value->number[0] <= value->number[1] ? NULL : "begins with the larger number";
}

static const char *spec_value_range(struct op_value *value)
{
	if (!(value->number[0] > 0) || !(value->number[0] <= value->number[1]))
		return "is no range above 0";
	return NULL;
}

static const char *spec_value_span(struct op_value *value)
{
	spec_value_twice(value);
	return spec_value_rising(value);
}

static const char *spec_value_around_0(struct op_value *value)
{
	if (value->count == 1) {
		if (!(value->number[0] >= 0))
			return "is a number below 0";
		value->number[1] = value->number[0];
		value->number[0] = 0 - value->number[0];
	}
	value->count = 2;
	return spec_value_rising(value);
}

static const char *spec_value_around_1(struct op_value *value)
{
	if (value->count == 1) {
		if (!(value->number[0] >= 0))
			return "is a number below 0";
		value->number[1] = 1 + value->number[0];
		value->number[0] = fmax(0, 1 - value->number[0]);
	}
	value->count = 2;
	return spec_value_rising(value);
}

static const char *spec_value_odd(struct op_value *value)
{
	spec_value_twice(value);
	for (unsigned i = 0; i < 2; i++) {
		if (fmod(value->number[i], 2) == 0)
			return "is not odd";
	}
	return NULL;
}

static const char *spec_value_sides(struct op_value *value)
{
	if (value->count < 4) {
		spec_value_twice(value);
		value->number[2] = value->number[0];
		value->number[3] = value->number[1];
	}
	value->count = 4;
	return NULL;
}

static const char *spec_value_shear(struct op_value *value)
{
	const char *wrong;

	if (value->count == 4)
		return value->number[2] <= value->number[3]
			   ? spec_value_rising(value)
			   : "has a larger number before a smaller one";
	wrong = spec_value_around_0(value);
	value->number[2] = value->number[3] = 0;
	value->count = 4;
	return wrong;
}

/* ---- what may stand there ---- */

struct spec_value_form {
	unsigned counts; /* bit n: a list of n numbers */
	bool alone;      /* or a number without brackets */
	bool whole;
	const char *wrong;   /* if it is something else */
	const char *outside; /* if a number is out of bounds; NULL: the bounds are told */
	const char *(*complete)(struct op_value *value); /* what is wrong with them, or NULL */
};

#define COUNT(n) (1u << (n))
#define COUNT_ANY (COUNT(OP_MAX_NUMBERS + 1) - COUNT(1))
static const struct spec_value_form spec_value_forms[] = {
    [OP_KIND_SIZE] = {COUNT(1) | COUNT(2), true, true, "is no size", NULL, spec_value_twice},
    [OP_KIND_SIDE] = {COUNT(1) | COUNT(2), true, true, "is no size", NULL, NULL},
    [OP_KIND_RANGE] = {COUNT(2), false, false, "is no pair of numbers", "is out of all proportion",
		       spec_value_range},
    [OP_KIND_CHANNELS] = {COUNT(1) | COUNT(3), true, false,
			  "is neither one number nor one for each channel",
			  "has a number beyond 1000000", NULL},
    [OP_KIND_SPREAD] = {COUNT(1) | COUNT(3), true, false,
			"is neither one number nor one for each channel",
			"has a number that is not above 0 (or beyond 1000000)", NULL},
    [OP_KIND_INTEGER] = {0, true, true, "is no whole number", NULL, NULL},
    [OP_KIND_NUMBER] = {0, true, false, "is no number", NULL, NULL},
    [OP_KIND_PAIR] = {COUNT(2), false, false, "is no pair of numbers", NULL, spec_value_rising},
    [OP_KIND_TWO] = {COUNT(2), false, false, "is no pair of numbers", NULL, NULL},
    [OP_KIND_AROUND_0] = {COUNT(2), true, false, "is neither a number nor a pair", NULL,
			  spec_value_around_0},
    [OP_KIND_AROUND_1] = {COUNT(2), true, false, "is neither a number nor a pair", NULL,
			  spec_value_around_1},
    [OP_KIND_SPAN] = {COUNT(2), true, false, "is neither a number nor a pair", NULL,
		      spec_value_span},
    [OP_KIND_ODD] = {COUNT(1) | COUNT(2), true, true, "is no size", NULL, spec_value_odd},
    [OP_KIND_SIDES] = {COUNT(1) | COUNT(2) | COUNT(4), true, true,
		       "is neither one, two nor four whole numbers", NULL, spec_value_sides},
    [OP_KIND_SHEAR] = {COUNT(2) | COUNT(4), true, false, "is neither one, two nor four numbers",
		       NULL, spec_value_shear},
    [OP_KIND_COLOR] = {COUNT(1) | COUNT(3), true, true, "is neither one nor three whole numbers",
		       NULL, spec_value_thrice},
    [OP_KIND_WHOLES] = {COUNT_ANY, true, true, "is neither a whole number nor a list of up to 16",
			NULL, NULL},
    [OP_KIND_NUMBERS] = {COUNT_ANY, true, false, "is neither a number nor a list of up to 16", NULL,
			 NULL},
    [OP_KIND_VALUE] = {COUNT(1) | COUNT(3), true, false, "is neither one nor three numbers", NULL,
		       spec_value_thrice},
};

/* value, or each member of it, as numbers of the form. */
static bool spec_value_numbers(const struct json_in *value, const struct spec_value_form *form,
			       struct op_value *ret)
{
	bool list = json_in_kind_of(value) == JSON_IN_ARRAY;
	size_t n = list ? json_in_count(value) : 1;

	if (list ? n > OP_MAX_NUMBERS || !(form->counts & COUNT(n)) : !form->alone)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct json_in *item = list ? json_in_item(value, i) : value;
		enum json_in_kind kind = json_in_kind_of(item);

		if (kind != JSON_IN_INTEGER && (form->whole || kind != JSON_IN_REAL))
			return false;
		ret->number[i] = json_in_double(item, 0) + 0.0; /* never -0 */
	}
	ret->count = (unsigned)n;
	return true;
}

static const char *spec_value_bounds(const struct op_value *value, const struct op_type *type,
				     const char *outside, char why[SPEC_VALUE_WHY])
{
	for (unsigned i = 0; i < value->count; i++) {
		if (value->number[i] >= type->least && value->number[i] <= type->most)
			continue;
		if (outside)
			return outside;
		snprintf(why, SPEC_VALUE_WHY, "is not from %.10g to %.10g", type->least,
			 type->most);
		return why;
	}
	return NULL;
}

static const char *spec_value_read_numbers(const struct json_in *value, const struct op_type *type,
					   struct op_value *ret, char why[SPEC_VALUE_WHY])
{
	const struct spec_value_form *form = &spec_value_forms[type->kind];
	const char *wrong = NULL;

	if (!spec_value_numbers(value, form, ret))
		return form->wrong;
	if (form->complete)
		wrong = form->complete(ret);
	return wrong ? wrong : spec_value_bounds(ret, type, form->outside, why);
}

/* ---- words and lists ---- */

static const char *spec_value_read_word(const struct json_in *value, const struct op_type *type,
					struct op_value *ret)
{
	const char *given = json_in_string(value, NULL);

	if (!given)
		return "is no string";
	for (unsigned i = 0; type->words[i]; i++) {
		if (strcmp(type->words[i], given) == 0) {
			ret->number[0] = i;
			ret->count = 1;
			return NULL;
		}
	}
	return "is none of its words";
}

static const char *spec_value_read_list(const struct json_in *value, const struct op_type *type,
					struct op_list *ops, char why[SPEC_VALUE_WHY])
{
	struct op_value item = {1, {0}};
	const char *wrong;

	if (json_in_kind_of(value) != JSON_IN_ARRAY)
		return "is no list of whole numbers";
	for (size_t i = 0; i < json_in_count(value); i++) {
		if (json_in_kind_of(json_in_item(value, i)) != JSON_IN_INTEGER)
			return "is no list of whole numbers";
		item.number[0] = json_in_double(json_in_item(value, i), 0);
		wrong = spec_value_bounds(&item, type, NULL, why);
		if (wrong)
			return wrong;
		if (ops->pooled == OP_MAX_POOL)
			return "is too long";
		ops->pool[ops->pooled++] = (int32_t)item.number[0];
	}
	return NULL;
}

static const char *spec_value_read_lists(const struct json_in *value, const struct op_type *type,
					 struct op_list *ops, char why[SPEC_VALUE_WHY])
{
	const char *wrong = NULL;

	if (json_in_kind_of(value) != JSON_IN_ARRAY)
		return "is no list of lists of whole numbers";
	for (size_t i = 0; !wrong && i < json_in_count(value); i++) {
		unsigned at = ops->pooled;

		if (at == OP_MAX_POOL)
			return "is too long";
		ops->pooled++;
		wrong = spec_value_read_list(json_in_item(value, i), type, ops, why);
		ops->pool[at] = (int32_t)(ops->pooled - at - 1);
	}
	return wrong;
}

/* One that people can write in any language of theirs, and no other character of a text. */
static bool spec_value_is_name(const char *name, size_t size)
{
	if (size < 1 || size > OP_MAX_NAME || (*name >= '0' && *name <= '9'))
		return false;
	for (size_t i = 0; i < size; i++) {
		const char c = name[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_')
			return false;
	}
	return true;
}

static bool spec_value_is_text(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return false;
	return size >= 1 && size <= OP_MAX_TEXT;
}

static const char *spec_value_read_names(const struct json_in *value, const struct op_type *type,
					 struct op_list *ops)
{
	if (json_in_kind_of(value) != JSON_IN_ARRAY)
		return "is no list of texts";
	for (size_t i = 0; i < json_in_count(value); i++) {
		const char *name = json_in_string(json_in_item(value, i), "");
		const size_t size = strlen(name);

		if (type->kind == OP_KIND_TEXTS && !spec_value_is_text(name, size))
			return "has what is no text of 1 to 63 ASCII characters without quotes "
			       "and backslashes";
		if (type->kind == OP_KIND_NAMES && !spec_value_is_name(name, size))
			return "has what is no name: one has 1 to 23 letters, digits and _, a "
			       "digit not first";
		if (OP_MAX_POOL - ops->pooled < size + 1)
			return "is too long";
		ops->pool[ops->pooled++] = (int32_t)size;
		for (size_t k = 0; k < size; k++)
			ops->pool[ops->pooled++] = name[k];
	}
	return NULL;
}

static const char *spec_value_read_pooled(const struct json_in *value, const struct op_type *type,
					  struct op_list *ops, struct op_value *ret,
					  char why[SPEC_VALUE_WHY])
{
	const char *wrong;

	ret->number[0] = ops->pooled;
	if (type->kind == OP_KIND_LIST)
		wrong = spec_value_read_list(value, type, ops, why);
	else if (type->kind == OP_KIND_NAMES || type->kind == OP_KIND_TEXTS)
		wrong = spec_value_read_names(value, type, ops);
	else
		wrong = spec_value_read_lists(value, type, ops, why);
	ret->count = ops->pooled - (unsigned)ret->number[0];
	if (!wrong && ret->count == 0)
		wrong = "is an empty list";
	return wrong;
}

/* A number for each channel of pictures that are no RGB, as the float32 that they are used as. */
static const char *spec_value_read_channels(const struct json_in *value, const struct op_type *type,
					    struct op_list *ops, struct op_value *ret,
					    char why[SPEC_VALUE_WHY])
{
	const size_t n = json_in_count(value);
	struct op_value item = {1, {0}};
	const char *wrong;

	if (n > 32 || OP_MAX_POOL - ops->pooled < n)
		return "is too long";
	ret->number[0] = ops->pooled;
	for (size_t i = 0; i < n; i++) {
		const struct json_in *number = json_in_item(value, i);
		float rounded;

		if (json_in_kind_of(number) != JSON_IN_INTEGER &&
		    json_in_kind_of(number) != JSON_IN_REAL)
			return "is no list of numbers";
		item.number[0] = json_in_double(number, 0);
		wrong = spec_value_bounds(&item, type, spec_value_forms[type->kind].outside, why);
		if (wrong)
			return wrong;
		rounded = (float)item.number[0] + 0.0f; /* never -0 */
		memcpy(&ops->pool[ops->pooled++], &rounded, sizeof(rounded));
	}
	ret->count = (unsigned)n;
	return NULL;
}

const char *spec_value_read(const struct json_in *value, const struct op_type *type,
			    struct op_list *ops, struct op_value *ret, char why[SPEC_VALUE_WHY])
{
	enum json_in_kind kind = json_in_kind_of(value);

	*ret = (struct op_value){0};
	if (type->or_null && kind == JSON_IN_NULL)
		return NULL;
	switch (type->kind) {
	case OP_KIND_WORD:
		return spec_value_read_word(value, type, ret);
	case OP_KIND_BOOL:
		ret->count = 1;
		ret->number[0] = json_in_bool(value, false);
		return kind == JSON_IN_BOOL ? NULL : "is neither true nor false";
	case OP_KIND_LIST:
	case OP_KIND_LISTS:
	case OP_KIND_NAMES:
	case OP_KIND_TEXTS:
		return spec_value_read_pooled(value, type, ops, ret, why);
	case OP_KIND_CHANNELS:
	case OP_KIND_SPREAD:
		if (kind == JSON_IN_ARRAY &&
		    (json_in_count(value) == 2 || json_in_count(value) > 3))
			return spec_value_read_channels(value, type, ops, ret, why);
		return spec_value_read_numbers(value, type, ret, why);
	case OP_KIND_VALUE:
		if (kind == JSON_IN_STRING)
			return spec_value_read_word(value, type, ret);
		return spec_value_read_numbers(value, type, ret, why);
	default:
		return spec_value_read_numbers(value, type, ret, why);
	}
}

/* ---- back to text ---- */

static void spec_value_put_number(FILE *out, double value)
{
	char text[40];

	if (value == 0)
		value = 0; /* no minus before nothing */
	if (fabs(value) < 1e15 && value == floor(value)) {
		fprintf(out, "%.0f", value);
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	for (char *p = text; *p; p++)
		fputc(strchr("0123456789+-e", *p) ? *p : '.', out);
}

/* In the fewest digits that read back as the same float32. */
static void spec_value_put_float(FILE *out, float value)
{
	char text[40];

	for (int digits = 1; digits <= 9; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, (double)value);
		if ((float)strtod(text, NULL) == value)
			break;
	}
	spec_value_put_number(out, strtod(text, NULL));
}

static void spec_value_put_items(FILE *out, const int32_t *items, unsigned n)
{
	fputc('[', out);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "%s%d", i ? "," : "", items[i]);
	fputc(']', out);
}

static void spec_value_put_lists(FILE *out, const int32_t *items, unsigned n)
{
	fputc('[', out);
	for (unsigned i = 0; i < n; i += 1 + (unsigned)items[i]) {
		if (i > 0)
			fputc(',', out);
		spec_value_put_items(out, items + i + 1, (unsigned)items[i]);
	}
	fputc(']', out);
}

static void spec_value_put_names(FILE *out, const int32_t *items, unsigned n)
{
	fputc('[', out);
	for (unsigned i = 0; i < n; i += 1 + (unsigned)items[i]) {
		fputs(i ? ",\"" : "\"", out);
		for (int32_t k = 1; k <= items[i]; k++)
			fputc(items[i + (unsigned)k], out);
		fputc('"', out);
	}
	fputc(']', out);
}

static void spec_value_put_floats(FILE *out, const int32_t *items, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		float number;

		memcpy(&number, &items[i], sizeof(number));
		fputc(i ? ',' : '[', out);
		spec_value_put_float(out, number);
	}
	fputc(']', out);
}

static void spec_value_put_numbers(FILE *out, const struct op_value *value)
{
	if (value->count > 1)
		fputc('[', out);
	for (unsigned i = 0; i < value->count; i++) {
		if (i > 0)
			fputc(',', out);
		spec_value_put_number(out, value->number[i]);
	}
	if (value->count > 1)
		fputc(']', out);
}

void spec_value_put(FILE *out, const struct op_list *ops, const struct op_value *value,
		    const struct op_type *type)
{
	const int32_t *items = op_is_pooled(type, value) && value->count > 0
				   ? ops->pool + (size_t)value->number[0]
				   : NULL;

	if (value->count == 0)
		fputs("null", out);
	else if (type->kind == OP_KIND_WORD || (type->kind == OP_KIND_VALUE && value->count == 1))
		fprintf(out, "\"%s\"", type->words[(unsigned)value->number[0]]);
	else if (type->kind == OP_KIND_BOOL)
		fputs(value->number[0] != 0 ? "true" : "false", out);
	else if (type->kind == OP_KIND_LIST)
		spec_value_put_items(out, items, value->count);
	else if (type->kind == OP_KIND_NAMES || type->kind == OP_KIND_TEXTS)
		spec_value_put_names(out, items, value->count);
	else if (type->kind == OP_KIND_LISTS)
		spec_value_put_lists(out, items, value->count);
	else if (items)
		spec_value_put_floats(out, items, value->count);
	else
		spec_value_put_numbers(out, value);
}
