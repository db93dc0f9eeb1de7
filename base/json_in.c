/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Parsed JSON, a thin skin over jansson, which no other file includes. A struct json_in is one of
 * its values under another name: nothing is copied, and getters that answer "not there" with a
 * caller's default keep the users free of checks.
 *
 * The text is hostile. Its length is bounded by the caller, and its depth is counted here before
 * the parser, which recurses, sees it: the parser's own limit of 2,048 is for other programs.
 */

#include "base/json.h"

#include <jansson.h>

static const json_t *json_in_of(const struct json_in *value)
{
	return (const json_t *)(const void *)value;
}

static const struct json_in *json_in_from(const json_t *value)
{
	return (const struct json_in *)(const void *)value;
}

/* The deepest nesting of brackets outside strings. What is no JSON at all may count wrongly. */
static size_t json_in_depth(const char *text, size_t size)
{
	size_t depth = 0, deepest = 0;
	bool in_string = false;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
		} else if (c == '"') {
			in_string = true;
		} else if (c == '{' || c == '[') {
			depth++;
			deepest = BASE_MAX(deepest, depth);
		} else if ((c == '}' || c == ']') && depth > 0) {
			depth--;
		}
	}
	return deepest;
}

void json_in_prepare(void)
{
	json_object_seed(0); /* of its tables, from /dev/urandom */
}

int json_in_parse(const char *text, size_t size, size_t limit, struct json_in **ret,
		  struct diag *diag)
{
	json_error_t error;
	json_t *root;

	if (size > limit)
		return diag_fail(diag, JSON_E_BAD, "the JSON text has %zu bytes, more than %zu",
				 size, limit);
	if (json_in_depth(text, size) > JSON_IN_DEPTH)
		return diag_fail(diag, JSON_E_BAD, "the JSON text is nested deeper than %d",
				 JSON_IN_DEPTH);
	root = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (!root && json_error_code(&error) == json_error_out_of_memory)
		return -ENOMEM;
	if (!root)
		return diag_fail(diag, JSON_E_BAD, "line %d, column %d of the JSON text: %s",
				 error.line, error.column, error.text);
	*ret = (struct json_in *)(void *)root;
	return 0;
}

void json_in_free(struct json_in *root)
{
	json_decref((json_t *)(void *)root);
}

void json_in_freep(struct json_in **root)
{
	json_in_free(*root);
}

enum json_in_kind json_in_kind_of(const struct json_in *value)
{
	if (!value)
		return JSON_IN_NULL;
	switch (json_typeof(json_in_of(value))) {
	case JSON_OBJECT:
		return JSON_IN_OBJECT;
	case JSON_ARRAY:
		return JSON_IN_ARRAY;
	case JSON_STRING:
		return JSON_IN_STRING;
	case JSON_INTEGER:
		return JSON_IN_INTEGER;
	case JSON_REAL:
		return JSON_IN_REAL;
	case JSON_TRUE:
	case JSON_FALSE:
		return JSON_IN_BOOL;
	default:
		return JSON_IN_NULL;
	}
}

size_t json_in_count(const struct json_in *value)
{
	const json_t *json = json_in_of(value);

	return json_is_array(json) ? json_array_size(json) : json_object_size(json);
}

const struct json_in *json_in_item(const struct json_in *array, size_t index)
{
	return json_in_from(json_array_get(json_in_of(array), index));
}

const struct json_in *json_in_member(const struct json_in *object, const char *key)
{
	return json_in_from(json_object_get(json_in_of(object), key));
}

const struct json_in *json_in_with(const struct json_in *array, const char *key, const char *text)
{
	JSON_IN_EACH(item, array)
		if (strcmp(json_in_string(json_in_member(item, key), ""), text) == 0)
			return item;
	return NULL;
}

const struct json_in *json_in_numbered(const struct json_in *array, const char *key,
				       uint64_t number)
{
	JSON_IN_EACH(item, array)
		if (json_in_u64(json_in_member(item, key), ~number) == number)
			return item;
	return NULL;
}

const struct json_in *json_in_next(const struct json_in *object, const char **key)
{
	/* jansson's iterators ask for a value that may be changed; nothing here changes it */
	json_t *json = (json_t *)(void *)(uintptr_t)object;
	void *iterator;

	if (!json_is_object(json))
		return NULL;
	if (*key)
		iterator = json_object_iter_next(json, json_object_iter_at(json, *key));
	else
		iterator = json_object_iter(json);
	if (!iterator)
		return NULL;
	*key = json_object_iter_key(iterator);
	return json_in_from(json_object_iter_value(iterator));
}

int64_t json_in_i64(const struct json_in *value, int64_t otherwise)
{
	if (json_in_kind_of(value) != JSON_IN_INTEGER)
		return otherwise;
	return json_integer_value(json_in_of(value));
}

uint64_t json_in_u64(const struct json_in *value, uint64_t otherwise)
{
	int64_t signed_value = json_in_i64(value, -1);

	return signed_value < 0 ? otherwise : (uint64_t)signed_value;
}

double json_in_double(const struct json_in *value, double otherwise)
{
	enum json_in_kind kind = json_in_kind_of(value);

	if (kind != JSON_IN_INTEGER && kind != JSON_IN_REAL)
		return otherwise;
	return json_number_value(json_in_of(value));
}

bool json_in_bool(const struct json_in *value, bool otherwise)
{
	if (json_in_kind_of(value) != JSON_IN_BOOL)
		return otherwise;
	return json_is_true(json_in_of(value));
}

const char *json_in_string(const struct json_in *value, const char *otherwise)
{
	const char *text = json_string_value(json_in_of(value));

	return text ? text : otherwise;
}
