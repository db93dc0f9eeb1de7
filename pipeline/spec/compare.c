/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two pipelines, compared by their canonical texts: parameters left out stand there with their
 * defaults, so what means the same is the same text, for ops of any kind, also those to come.
 *
 * A sample's outcome is one for all pipelines that share its decoding. So those that leave samples out
 * by themselves, or cannot do with some label, share with their like alone.
 */

#include "pipeline/spec/compare.h"

#include <stdio.h>

#include "base/json.h"
#include "pipeline/pipeline.h"

#define COMPARE_NAMES 3 /* of ops, written out */

struct compare { /* the ops of two pipelines */
	struct json_in *root[2];
	const struct json_in *ops[2];
};

static void compare_fini(struct compare *compare)
{
	json_in_free(compare->root[0]);
	json_in_free(compare->root[1]);
}

static bool compare_parse(const struct pipeline *pipeline, struct json_in **ret_root,
			  const struct json_in **ret_ops)
{
	const char *text = pipeline_canonical(pipeline);
	struct diag diag;

	if (json_in_parse(text, strlen(text), PIPELINE_MAX_TEXT, ret_root, &diag) != 0)
		return false;
	*ret_ops = json_in_member(*ret_root, "ops");
	return true;
}

/* false: out of memory. */
static bool compare_init(struct compare *compare, const struct pipeline *a,
			 const struct pipeline *b)
{
	*compare = (struct compare){.root = {NULL, NULL}};
	return compare_parse(a, &compare->root[0], &compare->ops[0]) &&
	       compare_parse(b, &compare->root[1], &compare->ops[1]);
}

static const char *compare_name(const struct json_in *op)
{
	return json_in_string(json_in_member(op, "op"), "");
}

/* ---- equality ---- */

static bool compare_same(const struct json_in *a, const struct json_in *b);

static bool compare_same_items(const struct json_in *a, const struct json_in *b)
{
	size_t n = json_in_count(a);

	for (size_t i = 0; i < n; i++)
		if (!compare_same(json_in_item(a, i), json_in_item(b, i)))
			return false;
	return n == json_in_count(b);
}

static bool compare_same_members(const struct json_in *a, const struct json_in *b)
{
	const struct json_in *value;
	const char *key = NULL;

	while ((value = json_in_next(a, &key)))
		if (!compare_same(value, json_in_member(b, key)))
			return false;
	return json_in_count(a) == json_in_count(b);
}

/* NULL, which is no value, is the same as null. Depth is bounded by the parser. */
static bool compare_same(const struct json_in *a, const struct json_in *b)
{
	if (json_in_kind_of(a) != json_in_kind_of(b))
		return false;
	switch (json_in_kind_of(a)) {
	case JSON_IN_NULL:
		return true;
	case JSON_IN_BOOL:
		return json_in_bool(a, false) == json_in_bool(b, false);
	case JSON_IN_INTEGER:
		return json_in_i64(a, 0) == json_in_i64(b, 0);
	case JSON_IN_REAL:
		return json_in_double(a, 0) == json_in_double(b, 0);
	case JSON_IN_STRING:
		return strcmp(json_in_string(a, ""), json_in_string(b, "")) == 0;
	case JSON_IN_ARRAY:
		return compare_same_items(a, b);
	case JSON_IN_OBJECT:
		return compare_same_members(a, b);
	}
	return false;
}

/* ---- meeting ---- */

bool compare_can_meet(const struct pipeline *a, const struct pipeline *b)
{
	_cleanup_(compare_fini) struct compare compare;
	const struct json_in *first;
	struct hash_id outcome[2];

	pipeline_hash_outcome(a, &outcome[0]);
	pipeline_hash_outcome(b, &outcome[1]);
	if (!compare_init(&compare, a, b))
		return false;
	if (!pipeline_views_are_alike(a, b))
		return strcmp(pipeline_canonical(a), pipeline_canonical(b)) == 0;
	first = json_in_item(compare.ops[0], 0);
	return (strcmp(compare_name(first), "decode") == 0 ||
		strcmp(compare_name(first), "audio") == 0 ||
		strcmp(compare_name(first), "bands") == 0 ||
		strcmp(compare_name(first), "video") == 0) &&
	       compare_same(first, json_in_item(compare.ops[1], 0)) &&
	       memcmp(&outcome[0], &outcome[1], sizeof(outcome[0])) == 0;
}

/* ---- words ---- */

/* Adds the parameters that differ: "scale and size differ". One may stand in one text alone, where
 * the other has its default. */
static void compare_params(const struct json_in *a, const struct json_in *b, FILE *out)
{
	const struct json_in *value;
	const char *key = NULL;
	unsigned n = 0;

	while ((value = json_in_next(a, &key))) {
		if (!compare_same(value, json_in_member(b, key)))
			fprintf(out, "%s%s", n++ ? " and " : "", key);
	}
	for (key = NULL; json_in_next(b, &key);) {
		if (!json_in_member(a, key))
			fprintf(out, "%s%s", n++ ? " and " : "", key);
	}
	fputs(n == 1 ? " differs" : " differ", out);
}

static void compare_write(const struct compare *compare, FILE *out)
{
	const struct json_in *a, *b;
	size_t i = 0;

	do {
		a = json_in_item(compare->ops[0], i);
		b = json_in_item(compare->ops[1], i++);
	} while (a && b && compare_same(a, b));
	if (!a && !b) {
		fputs("nothing differs", out);
	} else if (!a || !b) {
		fprintf(out, "%s only %s", compare_name(a ? a : b), a ? "here" : "there");
	} else if (strcmp(compare_name(a), compare_name(b)) != 0) {
		fprintf(out, "%s here, %s there", compare_name(a), compare_name(b));
	} else {
		fprintf(out, "%s: ", compare_name(a));
		compare_params(a, b, out);
	}
}

const char *compare_words(const struct pipeline *here, const struct pipeline *there, char *ret,
			  size_t size)
{
	_cleanup_(compare_fini) struct compare compare;
	FILE *out;

	snprintf(ret, size, "it differs");
	if (!compare_init(&compare, here, there))
		return ret;
	out = fmemopen(ret, size, "w");
	if (!out)
		return ret;
	compare_write(&compare, out);
	fclose(out);
	ret[size - 1] = '\0';
	return ret;
}

const char *compare_shared(const struct pipeline *a, const struct pipeline *b, char *ret,
			   size_t size)
{
	_cleanup_(compare_fini) struct compare compare = {.root = {NULL, NULL}};
	const unsigned n = pipeline_shared(a, b);
	const char *name[COMPARE_NAMES] = {"", "", ""};

	snprintf(ret, size, "decode");
	if (!compare_init(&compare, a, b))
		return ret;
	if (n < 2) {
		snprintf(ret, size, "%s", compare_name(json_in_item(compare.ops[0], 0)));
		return ret;
	}
	for (unsigned i = 0; i < n && i < COMPARE_NAMES; i++)
		name[i] = compare_name(json_in_item(compare.ops[0], i));
	if (n > COMPARE_NAMES)
		snprintf(ret, size, "%s to %s (%u ops)", name[0],
			 compare_name(json_in_item(compare.ops[0], n - 1)), n);
	else
		snprintf(ret, size, "%s%s%s and %s", name[0], n > 2 ? ", " : "",
			 n > 2 ? name[1] : "", name[n - 1]);
	return ret;
}
