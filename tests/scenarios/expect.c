/* SPDX-License-Identifier: Apache-2.0 */

/*
 * expect FILE PATH [OP VALUE [PATH OP VALUE]...]: looks into a JSON file, for scenarios in shell.
 *
 * A path is members and array indices with dots between them; * stands for every item. With PATH
 * alone its values are printed, a line each. With triples it is silent and succeeds when every
 * value at every path stands in the relation (== != < <= > >=) to VALUE, a number or a text; no
 * value at a path is a failure, too.
 */

#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct question {
	const char *path, *op, *value; /* op NULL: print */
	unsigned found, wrong;
};

static const char *expect_text(const struct json_in *value, char ret[64])
{
	switch (json_in_kind_of(value)) {
	case JSON_IN_STRING:
		return json_in_string(value, "");
	case JSON_IN_BOOL:
		return json_in_bool(value, false) ? "true" : "false";
	case JSON_IN_INTEGER:
		snprintf(ret, 64, "%" PRId64, json_in_i64(value, 0));
		return ret;
	case JSON_IN_REAL:
		snprintf(ret, 64, "%.9g", json_in_double(value, 0));
		return ret;
	case JSON_IN_NULL:
		return "null";
	default:
		snprintf(ret, 64, "%zu", json_in_count(value)); /* an array's length */
		return ret;
	}
}

static bool expect_relation(const char *text, const char *op, const char *value)
{
	char *end = NULL, *end_value = NULL;
	double a = strtod(text, &end), b = strtod(value, &end_value);
	bool numbers = end != text && !*end && end_value != value && !*end_value;
	double order = numbers ? a - b : strcmp(text, value);

	if (strcmp(op, "==") == 0)
		return order == 0;
	if (strcmp(op, "!=") == 0)
		return order != 0;
	if (!numbers)
		return false;
	if (strcmp(op, "<") == 0)
		return order < 0;
	if (strcmp(op, "<=") == 0)
		return order <= 0;
	if (strcmp(op, ">") == 0)
		return order > 0;
	return strcmp(op, ">=") == 0 && order >= 0;
}

/* A count is a whole number, not below 0. */
static bool expect_kind(const struct json_in *value, const char *kind)
{
	static const char *const kinds[] = {
	    [JSON_IN_NULL] = "null",     [JSON_IN_BOOL] = "bool",     [JSON_IN_INTEGER] = "number",
	    [JSON_IN_REAL] = "number",   [JSON_IN_STRING] = "string", [JSON_IN_ARRAY] = "array",
	    [JSON_IN_OBJECT] = "object",
	};
	enum json_in_kind is = json_in_kind_of(value);

	if (strcmp(kind, "count") == 0)
		return is == JSON_IN_INTEGER && json_in_i64(value, -1) >= 0;
	return is < BASE_ARRAY_LEN(kinds) && kinds[is] && strcmp(kinds[is], kind) == 0;
}

static void expect_value(const struct json_in *value, struct question *question)
{
	char room[64];
	const char *text = expect_text(value, room);

	question->found++;
	if (!question->op) {
		puts(text);
	} else if (strcmp(question->op, "is") == 0
		       ? !expect_kind(value, question->value)
		       : !expect_relation(text, question->op, question->value)) {
		fprintf(stderr, "expect: %s is %s, not %s %s\n", question->path, text, question->op,
			question->value);
		question->wrong++;
	}
}

static void expect_walk(const struct json_in *value, const char *path, struct question *question)
{
	size_t length = strcspn(path, ".");
	const char *rest = path + length + (path[length] ? 1 : 0);
	char part[64];

	if (!value)
		return;
	if (!*path) {
		expect_value(value, question);
		return;
	}
	snprintf(part, sizeof(part), "%.*s", (int)length, path);
	if (strcmp(part, "*") == 0)
		for (size_t i = 0; i < json_in_count(value); i++)
			expect_walk(json_in_item(value, i), rest, question);
	else if (json_in_kind_of(value) == JSON_IN_ARRAY)
		expect_walk(json_in_item(value, strtoul(part, NULL, 10)), rest, question);
	else
		expect_walk(json_in_member(value, part), rest, question);
}

static char *expect_read(const char *path, size_t *ret_size)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "r");
	char *text = malloc(1 << 24);

	if (!file || !text) {
		perror(path);
		exit(2);
	}
	*ret_size = fread(text, 1, 1 << 24, file);
	return text;
}

int main(int argc, char **argv)
{
	struct json_in *root = NULL;
	struct diag diag = {.text = ""};
	unsigned failed = 0;
	size_t size;
	char *text;

	if (argc < 3 || (argc > 3 && (argc - 2) % 3 != 0)) {
		fputs("usage: expect FILE PATH [OP VALUE [PATH OP VALUE]...]\n", stderr);
		return 2;
	}
	text = expect_read(argv[1], &size);
	if (json_in_parse(text, size, 1 << 24, &root, &diag)) {
		fprintf(stderr, "expect: %s: %s\n", argv[1], diag.text);
		return 1;
	}
	for (int i = 2; i < argc; i += 3) {
		struct question question = {.path = argv[i]};

		if (argc > 3) {
			question.op = argv[i + 1];
			question.value = argv[i + 2];
		}
		expect_walk(root, question.path, &question);
		if (question.found == 0)
			fprintf(stderr, "expect: %s: nothing is there\n", question.path);
		failed += question.found == 0 || question.wrong > 0;
	}
	json_in_free(root);
	free(text);
	return failed == 0 ? 0 : 1;
}
