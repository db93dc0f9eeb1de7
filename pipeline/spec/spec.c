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
 * of a crop, [224, 224]) become one form (spec_value.c). It is a spec itself: parsed again it gives
 * the same bytes. A parameter that came later than its op is not in it while it has its default.
 */

#include <stdio.h>
#include "base/json.h"
#include "pipeline/spec/spec.h"
#include "pipeline/spec/spec_value.h"

struct spec_place {      /* what is being read, for messages */
	unsigned number; /* of the op, from 1 */
	enum op_id id;
	struct diag *diag;
};

static int spec_bad_param(const struct spec_place *at, const struct op_param *param,
			  const char *what)
{
	return diag_fail(at->diag, PIPELINE_E_BAD, "pipeline: op %u (%s): %s %s; give %s%s%s%s",
			 at->number, op_name(at->id), param->name, what, param->help,
			 param->fallback ? " (left out: " : "",
			 param->fallback ? param->fallback : "", param->fallback ? ")" : "");
}

/* ---- ops ---- */

static int spec_unknown_param(const struct spec_place *at, const char *key)
{
	const struct op_param *params;
	unsigned n = op_params(at->id, &params);
	char known[256] = "";
	size_t used = 0;

	for (unsigned i = 0; i < n && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 params[i].name);
	return diag_fail(at->diag, PIPELINE_E_BAD,
			 "pipeline: op %u (%s) has no parameter \"%s\"; it has %s", at->number,
			 op_name(at->id), BASE_QUOTED(key, 64), n ? known : "none");
}

static int spec_unknown_op(unsigned number, const char *name, struct diag *diag)
{
	char known[768] = "";
	size_t used = 0;

	for (unsigned i = 0; i < OP_COUNT && used < sizeof(known); i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%s", i ? ", " : "",
					 op_name(i));
	return diag_fail(diag, PIPELINE_E_BAD,
			 "pipeline: op %u: there is no op \"%s\"; there are %s", number,
			 BASE_QUOTED(name, 64), known);
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

/* What stands for a parameter left out. 0 or -ENOMEM. */
static int spec_default(const struct op_param *param, struct op_list *ops, struct op_value *ret)
{
	_cleanup_json_ struct json_in *json = NULL;
	char why[SPEC_VALUE_WHY];
	struct diag diag;

	if (json_in_parse(param->fallback, strlen(param->fallback), PIPELINE_MAX_TEXT, &json,
			  &diag) != 0)
		return -ENOMEM;
	spec_value_read(json, &param->type, ops, ret, why);
	return 0;
}

/* Does the canonical text leave this value out? 0 or -ENOMEM. */
static int spec_is_hidden(const struct op_param *param, struct op_list *ops,
			  const struct op_value *value, bool *ret)
{
	struct op_value usual;
	unsigned pooled = ops->pooled;
	int r = spec_default(param, ops, &usual);

	if (r != 0)
		return r;
	ops->pooled = pooled;
	*ret = value->count == usual.count &&
	       memcmp(value->number, usual.number, sizeof(usual.number)) == 0;
	return 0;
}

static int spec_parse_param(const struct spec_place *at, const struct json_in *object,
			    const struct op_param *param, struct op_list *ops, struct op_value *ret)
{
	const struct json_in *value = json_in_member(object, param->name);
	char why[SPEC_VALUE_WHY];
	const char *wrong;
	int r = 0;

	if (!value && !param->fallback)
		return spec_bad_param(at, param, "is missing");
	if (!value) {
		r = spec_default(param, ops, ret);
	} else {
		wrong = spec_value_read(value, &param->type, ops, ret, why);
		if (wrong)
			return spec_bad_param(at, param, wrong);
	}
	return r;
}

static int spec_parse_op(unsigned number, const struct json_in *object, struct op_list *ops,
			 struct diag *diag)
{
	struct op *op = &ops->op[number - 1];
	const char *name = json_in_string(json_in_member(object, "op"), NULL);
	struct spec_place at = {number, OP_COUNT, diag};
	const struct op_param *params;
	unsigned n;
	int r;

	if (!name)
		return diag_fail(diag, PIPELINE_E_BAD,
				 "pipeline: op %u is no object with a name; write it as {\"op\": "
				 "\"decode\"} with its parameters beside",
				 number);
	at.id = op_find(name);
	if (at.id == OP_COUNT)
		return spec_unknown_op(number, name, diag);
	r = spec_check_keys(&at, object);
	op->id = at.id;
	n = op_params(at.id, &params);
	for (unsigned i = 0; r == 0 && i < n; i++) {
		bool hidden = false;

		r = spec_parse_param(&at, object, &params[i], ops, &op->value[i]);
		if (r == 0 && params[i].type.late)
			r = spec_is_hidden(&params[i], ops, &op->value[i], &hidden);
		op->hidden |= (unsigned)hidden << i;
	}
	return r;
}

/* ---- the whole text ---- */

static int spec_load(const char *text, size_t size, struct json_in **ret, struct diag *diag)
{
	struct diag why;
	int r = json_in_parse(text, size, PIPELINE_MAX_TEXT, ret, &why);

	if (r > 0)
		return diag_fail(diag, PIPELINE_E_BAD, "pipeline: the spec is no JSON: %s",
				 why.text);
	return r;
}

/* The list within the text: {"ops": [...]} and nothing beside it, or the list itself. */
static const struct json_in *spec_find_list(const struct json_in *json)
{
	if (json_in_kind_of(json) == JSON_IN_OBJECT && json_in_count(json) == 1)
		json = json_in_member(json, "ops");
	return json_in_kind_of(json) == JSON_IN_ARRAY ? json : NULL;
}

static int spec_parse_list(const struct json_in *list, struct op_list *ops, struct diag *diag)
{
	int r = 0;

	if (json_in_count(list) < 1 || json_in_count(list) > PIPELINE_MAX_OPS)
		return diag_fail(diag, PIPELINE_E_BAD,
				 "pipeline: the spec has %zu ops; give 1 to %d",
				 json_in_count(list), PIPELINE_MAX_OPS);
	ops->count = (unsigned)json_in_count(list);
	for (unsigned i = 0; r == 0 && i < ops->count; i++)
		r = spec_parse_op(i + 1, json_in_item(list, i), ops, diag);
	if (r == 0)
		op_set_gates(ops);
	return r;
}

int spec_parse(const char *text, size_t size, struct op_list *ret, struct diag *diag)
{
	_cleanup_json_ struct json_in *json = NULL;
	_cleanup_free_ struct op_list *ops = NULL;
	const struct json_in *list;
	int r = spec_load(text, size, &json, diag);

	if (r != 0)
		return r;
	list = spec_find_list(json);
	if (!list)
		return diag_fail(diag, PIPELINE_E_BAD,
				 "pipeline: the spec is no list of ops; write {\"ops\": [{\"op\": "
				 "\"decode\"}, ...]}");
	ops = calloc(1, sizeof(*ops));
	if (!ops)
		return -ENOMEM;
	r = spec_parse_list(list, ops, diag);
	if (r == 0)
		*ret = *ops;
	return r;
}

/* ---- back to text ---- */

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
		if ((op->hidden >> i & 1) || strcmp(params[i].name, previous) <= 0)
			continue;
		if (!best || strcmp(params[i].name, best) < 0) {
			best = params[i].name;
			*ret_param = &params[i];
		}
	}
	return best;
}

static void spec_put_op(FILE *out, const struct op_list *ops, const struct op *op)
{
	const struct op_param *param, *params;
	const char *key = "";

	op_params(op->id, &params);
	fputc('{', out);
	while ((key = spec_next_key(op, key, &param))) {
		fprintf(out, "\"%s\":", key);
		if (param)
			spec_value_put(out, ops, &op->value[param - params], &param->type);
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
		spec_put_op(out, ops, &ops->op[i]);
	}
	fputs("]}", out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}
