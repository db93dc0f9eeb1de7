/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Specs as text.
 *
 * A spec is {"ops": [op, ...]} or the bare list; an op is {"op": NAME, PARAMETER: VALUE, ...}.
 * Everything is checked here that can be said of one op alone; every complaint names the op's
 * number (from 1), the op, the parameter and what to write instead. Nothing unknown is let through:
 * a misspelt parameter that silently took its default would train on other pictures than its user
 * thinks.
 *
 * The canonical text is what is hashed, sent and compared, so two texts that mean the same must
 * give the same bytes: numbers are printed in the fewest digits that read back as the same double
 * (integers without a point), with '.' whatever the locale; sizes that mean the same ([224] and 224
 * of a crop, [224, 224]) become one form. It is a spec itself: parsed again it gives the same
 * bytes.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/json.h"
#include "pipeline/spec.h"

struct spec_place {      /* what is being read, for messages */
	unsigned number; /* of the op, from 1 */
	enum op_id id;
	struct diag *diag;
};

static void spec_json_freep(struct json_in **json)
{
	json_in_free(*json);
}
#define _cleanup_json_ _cleanup_(spec_json_freep)

static int spec_bad_param(const struct spec_place *at, const struct op_param *param,
			  const char *what)
{
	diag_set(at->diag, "pipeline: op %u (%s): %s %s; give %s%s%s%s", at->number,
		 op_name(at->id), param->name, what, param->help,
		 param->fallback ? " (left out: " : "", param->fallback ? param->fallback : "",
		 param->fallback ? ")" : "");
	return PIPELINE_E_BAD;
}

/* ---- values ---- */

/* value or each member of it as numbers; the count, or 0 where something else stands there. */
static unsigned spec_numbers(const struct json_in *value, bool whole, double ret[OP_MAX_NUMBERS])
{
	bool list = json_in_kind_of(value) == JSON_IN_ARRAY;
	size_t n = list ? json_in_count(value) : 1;

	if (n > OP_MAX_NUMBERS)
		return 0;
	for (size_t i = 0; i < n; i++) {
		const struct json_in *item = list ? json_in_item(value, i) : value;
		enum json_in_kind kind = json_in_kind_of(item);

		if (kind != JSON_IN_INTEGER && (whole || kind != JSON_IN_REAL))
			return 0;
		ret[i] = json_in_double(item, 0);
	}
	return (unsigned)n;
}

static const char *spec_read_size(const struct json_in *value, bool side, struct op_value *ret)
{
	unsigned n = spec_numbers(value, true, ret->number);

	if (n < 1 || n > 2)
		return "is no size";
	for (unsigned i = 0; i < n; i++) {
		if (ret->number[i] < 1 || ret->number[i] > OP_MAX_SIDE)
			return "is not from 1 to 16384";
	}
	if (n == 1 && !side) {
		ret->number[1] = ret->number[0];
		n = 2;
	}
	ret->count = n;
	return NULL;
}

static const char *spec_read_range(const struct json_in *value, struct op_value *ret)
{
	if (json_in_kind_of(value) != JSON_IN_ARRAY || spec_numbers(value, false, ret->number) != 2)
		return "is no pair of numbers";
	if (!(ret->number[0] > 0) || !(ret->number[0] <= ret->number[1]))
		return "is no range above 0";
	if (ret->number[1] > 1e6 || ret->number[0] < 1e-6)
		return "is out of all proportion";
	ret->count = 2;
	return NULL;
}

static const char *spec_read_channels(const struct json_in *value, bool spread,
				      struct op_value *ret)
{
	if (json_in_kind_of(value) != JSON_IN_ARRAY || spec_numbers(value, false, ret->number) != 3)
		return "is no list of three numbers";
	for (unsigned i = 0; i < 3; i++) {
		if (!(fabs(ret->number[i]) <= 1e6))
			return "has a number beyond 1000000";
		if (spread && !(ret->number[i] >= 1e-6))
			return "has a number that is not above 0";
	}
	ret->count = 3;
	return NULL;
}

static const char *spec_read_word(const struct json_in *value, enum op_kind kind,
				  struct op_value *ret)
{
	const char *const *words = op_words(kind), *given = json_in_string(value, NULL);

	if (!given)
		return "is no string";
	for (unsigned i = 0; words[i]; i++) {
		if (strcmp(words[i], given) == 0) {
			ret->number[0] = i;
			ret->count = 1;
			return NULL;
		}
	}
	return "is none of its words";
}

/* What is wrong with value as a parameter of that kind, or NULL and *ret. */
static const char *spec_read(const struct json_in *value, enum op_kind kind, struct op_value *ret)
{
	switch (kind) {
	case OP_SIZE:
	case OP_SIDE:
		return spec_read_size(value, kind == OP_SIDE, ret);
	case OP_RANGE:
		return spec_read_range(value, ret);
	case OP_CHANNELS:
	case OP_SPREAD:
		return spec_read_channels(value, kind == OP_SPREAD, ret);
	case OP_CHANCE:
		if (json_in_kind_of(value) == JSON_IN_ARRAY ||
		    spec_numbers(value, false, ret->number) != 1)
			return "is no number";
		ret->count = 1;
		return ret->number[0] >= 0 && ret->number[0] <= 1 ? NULL : "is not from 0 to 1";
	default:
		return spec_read_word(value, kind, ret);
	}
}

/* ---- ops ---- */

static int spec_unknown_param(const struct spec_place *at, const char *key)
{
	const struct op_param *params;
	unsigned n = op_params(at->id, &params);
	char known[256] = "", quoted[64];
	size_t used = 0;

	for (unsigned i = 0; i < n && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 params[i].name);
	diag_set(at->diag, "pipeline: op %u (%s) has no parameter \"%s\"; it has %s", at->number,
		 op_name(at->id), base_quote(key, quoted, sizeof(quoted)), n ? known : "none");
	return PIPELINE_E_BAD;
}

static int spec_unknown_op(unsigned number, const char *name, struct diag *diag)
{
	char known[256] = "", quoted[64];
	size_t used = 0;

	for (unsigned i = 0; i < OP_COUNT && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 op_name(i));
	diag_set(diag, "pipeline: op %u: there is no op \"%s\"; there are %s", number,
		 base_quote(name, quoted, sizeof(quoted)), known);
	return PIPELINE_E_BAD;
}

static int spec_check_keys(const struct spec_place *at, const struct json_in *object)
{
	const struct op_param *params;
	unsigned n = op_params(at->id, &params);
	const char *key = NULL;

	while (json_in_next(object, &key)) {
		unsigned i = 0;

		while (i < n && strcmp(params[i].name, key) != 0)
			i++;
		if (i == n && strcmp(key, "op") != 0)
			return spec_unknown_param(at, key);
	}
	return 0;
}

static int spec_parse_param(const struct spec_place *at, const struct json_in *object,
			    const struct op_param *param, struct op_value *ret)
{
	const struct json_in *value = json_in_member(object, param->name);
	_cleanup_json_ struct json_in *fallback = NULL;
	const char *wrong;

	if (!value) {
		if (!param->fallback)
			return spec_bad_param(at, param, "is missing");
		if (json_in_parse(param->fallback, strlen(param->fallback), PIPELINE_MAX_TEXT,
				  &fallback, at->diag) != 0)
			return -ENOMEM;
		value = fallback;
	}
	wrong = spec_read(value, param->kind, ret);
	return wrong ? spec_bad_param(at, param, wrong) : 0;
}

static int spec_parse_op(unsigned number, const struct json_in *object, struct op *ret,
			 struct diag *diag)
{
	const char *name = json_in_string(json_in_member(object, "op"), NULL);
	struct spec_place at = {number, OP_COUNT, diag};
	const struct op_param *params;
	unsigned n;
	int r;

	if (!name) {
		diag_set(diag,
			 "pipeline: op %u is no object with a name; write it as {\"op\": "
			 "\"decode\"} with its parameters beside",
			 number);
		return PIPELINE_E_BAD;
	}
	at.id = op_find(name);
	if (at.id == OP_COUNT)
		return spec_unknown_op(number, name, diag);
	r = spec_check_keys(&at, object);
	ret->id = at.id;
	n = op_params(at.id, &params);
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = spec_parse_param(&at, object, &params[i], &ret->value[i]);
	return r;
}

/* ---- the whole text ---- */

static int spec_load(const char *text, size_t size, struct json_in **ret, struct diag *diag)
{
	struct diag why;
	int r = json_in_parse(text, size, PIPELINE_MAX_TEXT, ret, &why);

	if (r > 0) {
		diag_set(diag, "pipeline: the spec is no JSON: %s", why.text);
		return PIPELINE_E_BAD;
	}
	return r;
}

/* The list within the text: {"ops": [...]} and nothing beside it, or the list itself. */
static const struct json_in *spec_find_list(const struct json_in *json)
{
	if (json_in_kind_of(json) == JSON_IN_OBJECT && json_in_count(json) == 1)
		json = json_in_member(json, "ops");
	return json_in_kind_of(json) == JSON_IN_ARRAY ? json : NULL;
}

int spec_parse(const char *text, size_t size, struct op_list *ret, struct diag *diag)
{
	struct op_list ops = {0};
	_cleanup_json_ struct json_in *json = NULL;
	const struct json_in *list;
	int r = spec_load(text, size, &json, diag);

	if (r != 0)
		return r;
	list = spec_find_list(json);
	if (!list) {
		diag_set(diag, "pipeline: the spec is no list of ops; write {\"ops\": [{\"op\": "
			       "\"decode\"}, ...]}");
		return PIPELINE_E_BAD;
	}
	if (json_in_count(list) < 1 || json_in_count(list) > PIPELINE_MAX_OPS) {
		diag_set(diag, "pipeline: the spec has %zu ops; give 1 to %d", json_in_count(list),
			 PIPELINE_MAX_OPS);
		return PIPELINE_E_BAD;
	}
	ops.count = (unsigned)json_in_count(list);
	for (unsigned i = 0; i < ops.count; i++) {
		r = spec_parse_op(i + 1, json_in_item(list, i), &ops.op[i], diag);
		if (r != 0)
			return r;
	}
	*ret = ops;
	return 0;
}

/* ---- back to text ---- */

static void spec_put_number(FILE *out, double value)
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

static void spec_put_value(FILE *out, const struct op_value *value, enum op_kind kind)
{
	const char *const *words = op_words(kind);

	if (words) {
		fprintf(out, "\"%s\"", words[(unsigned)value->number[0]]);
		return;
	}
	if (value->count > 1)
		fputc('[', out);
	for (unsigned i = 0; i < value->count; i++) {
		if (i > 0)
			fputc(',', out);
		spec_put_number(out, value->number[i]);
	}
	if (value->count > 1)
		fputc(']', out);
}

/* The key that follows previous in the order of bytes, "op" among them; *ret_param NULL for
 * "op". */
static const char *spec_next_key(const struct op *op, const char *previous,
				 const struct op_param **ret_param)
{
	const struct op_param *params;
	unsigned n = op_params(op->id, &params);
	const char *best = strcmp("op", previous) > 0 ? "op" : NULL;

	*ret_param = NULL;
	for (unsigned i = 0; i < n; i++) {
		if (strcmp(params[i].name, previous) <= 0)
			continue;
		if (!best || strcmp(params[i].name, best) < 0) {
			best = params[i].name;
			*ret_param = &params[i];
		}
	}
	return best;
}

static void spec_put_op(FILE *out, const struct op *op)
{
	const struct op_param *param, *params;
	const char *key = "";

	op_params(op->id, &params);
	fputc('{', out);
	while ((key = spec_next_key(op, key, &param))) {
		fprintf(out, "\"%s\":", key);
		if (param)
			spec_put_value(out, &op->value[param - params], param->kind);
		else
			fprintf(out, "\"%s\"", op_name(op->id));
		if (spec_next_key(op, key, &param))
			fputc(',', out);
	}
	fputc('}', out);
}

char *spec_canonical(const struct op_list *ops)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("{\"ops\":[", out);
	for (unsigned i = 0; i < ops->count; i++) {
		if (i > 0)
			fputc(',', out);
		spec_put_op(out, &ops->op[i]);
	}
	fputs("]}", out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
