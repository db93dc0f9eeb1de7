/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A JSON text under construction: a stream into memory and a small stack that knows whether the next
 * value needs a comma, a key, a new line. The first error sticks and makes every later call a
 * no-op, so that callers write a whole report and look once, at json_out_take().
 *
 * Strings may hold any byte: names of jobs and files come from other people. What is not UTF-8
 * becomes U+FFFD, control characters (C1, too, which terminals obey) become \uXXXX.
 */

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>

void json_out_init(struct json_out *out, bool indent)
{
	*out = (struct json_out){.indent = indent};
}

void json_out_fini(struct json_out *out)
{
	if (out->stream)
		fclose(out->stream);
	free(out->text);
	json_out_init(out, out->indent);
}

static void json_out_fail(struct json_out *out, int error)
{
	if (out->error == 0)
		out->error = error;
}

static void json_out_print(struct json_out *out, const char *fmt, ...) BASE_PRINTF(2, 3);
static void json_out_print(struct json_out *out, const char *fmt, ...)
{
	va_list args;

	if (out->error)
		return;
	if (!out->stream)
		out->stream = open_memstream(&out->text, &out->size);
	va_start(args, fmt);
	if (!out->stream || vfprintf(out->stream, fmt, args) < 0)
		json_out_fail(out, -ENOMEM);
	va_end(args);
}

static void json_out_newline(struct json_out *out)
{
	if (out->indent)
		json_out_print(out, "\n%*s", 2 * (int)out->depth, "");
}

/* What stands between the value before and an item (or key) of the level we are in. */
static void json_out_separate(struct json_out *out)
{
	const bool has_items = out->level[out->depth].has_items;

	out->level[out->depth].has_items = true;
	if (out->depth == 0) {
		if (has_items)
			json_out_fail(out, -EINVAL);
		return;
	}
	if (has_items)
		json_out_print(out, ",");
	json_out_newline(out);
}

static void json_out_before_value(struct json_out *out)
{
	const bool in_object = out->level[out->depth].is_object;

	if (in_object != out->has_key)
		json_out_fail(out, -EINVAL);
	if (!in_object)
		json_out_separate(out);
	out->has_key = false;
}

static void json_out_begin(struct json_out *out, bool is_object)
{
	json_out_before_value(out);
	if (out->depth == JSON_OUT_DEPTH)
		json_out_fail(out, -EINVAL);
	if (out->error)
		return;
	json_out_print(out, is_object ? "{" : "[");
	out->depth++;
	out->level[out->depth].is_object = is_object;
	out->level[out->depth].has_items = false;
}

static void json_out_end(struct json_out *out, bool is_object)
{
	if (out->depth == 0 || out->level[out->depth].is_object != is_object || out->has_key)
		json_out_fail(out, -EINVAL);
	if (out->error)
		return;
	out->depth--;
	if (out->level[out->depth + 1].has_items)
		json_out_newline(out);
	json_out_print(out, is_object ? "}" : "]");
}

void json_out_object_begin(struct json_out *out)
{
	json_out_begin(out, true);
}

void json_out_object_end(struct json_out *out)
{
	json_out_end(out, true);
}

void json_out_array_begin(struct json_out *out)
{
	json_out_begin(out, false);
}

void json_out_array_end(struct json_out *out)
{
	json_out_end(out, false);
}

static void json_out_quoted(struct json_out *out, const char *value)
{
	const unsigned char *p = (const unsigned char *)value;

	json_out_print(out, "\"");
	while (*p && out->error == 0) {
		size_t length = *p < 0x80 ? 1 : base_utf8(p);

		if (*p == 0xc2 && (p[1] & 0xe0) == 0x80) { /* C1 */
			json_out_print(out, "\\u%04x", p[1]);
			length = 2;
		} else if (length == 0) {
			json_out_print(out, "\\ufffd");
			length = 1;
		} else if (*p < 0x20 || *p == 0x7f || *p == '"' || *p == '\\') {
			json_out_print(out, "\\u%04x", *p);
		} else if (fwrite(p, 1, length, out->stream) != length) {
			json_out_fail(out, -ENOMEM);
		}
		p += length;
	}
	json_out_print(out, "\"");
}

void json_out_key(struct json_out *out, const char *key)
{
	if (!out->level[out->depth].is_object || out->has_key)
		json_out_fail(out, -EINVAL);
	if (out->error)
		return;
	json_out_separate(out);
	json_out_quoted(out, key);
	json_out_print(out, out->indent ? ": " : ":");
	out->has_key = true;
}

static void json_out_word(struct json_out *out, const char *word)
{
	json_out_before_value(out);
	json_out_print(out, "%s", word);
}

void json_out_u64(struct json_out *out, uint64_t value)
{
	json_out_i64(out, (int64_t)BASE_MIN(value, (uint64_t)INT64_MAX));
}

void json_out_i64(struct json_out *out, int64_t value)
{
	json_out_before_value(out);
	json_out_print(out, "%" PRId64, value);
}

void json_out_double(struct json_out *out, double value)
{
	char text[40], *comma;

	if (!isfinite(value)) {
		json_out_null(out);
		return;
	}
	snprintf(text, sizeof(text), "%.9g", value);
	comma = strchr(text, ','); /* the program's locale may write it so */
	if (comma)
		*comma = '.';
	json_out_word(out, text);
}

static void json_out_bool(struct json_out *out, bool value)
{
	json_out_word(out, value ? "true" : "false");
}

void json_out_null(struct json_out *out)
{
	json_out_word(out, "null");
}

void json_out_string(struct json_out *out, const char *value)
{
	if (!value) {
		json_out_null(out);
		return;
	}
	json_out_before_value(out);
	json_out_quoted(out, value);
}

void json_out_member_u64(struct json_out *out, const char *key, uint64_t value)
{
	json_out_key(out, key);
	json_out_u64(out, value);
}

void json_out_member_double(struct json_out *out, const char *key, double value)
{
	json_out_key(out, key);
	json_out_double(out, value);
}

void json_out_member_bool(struct json_out *out, const char *key, bool value)
{
	json_out_key(out, key);
	json_out_bool(out, value);
}

void json_out_member_string(struct json_out *out, const char *key, const char *value)
{
	json_out_key(out, key);
	json_out_string(out, value);
}

void json_out_member_object(struct json_out *out, const char *key)
{
	json_out_key(out, key);
	json_out_object_begin(out);
}

void json_out_member_array(struct json_out *out, const char *key)
{
	json_out_key(out, key);
	json_out_array_begin(out);
}

int json_out_take(struct json_out *out, char **ret_text, size_t *ret_size)
{
	int error = out->error;

	if (error == 0 && (out->depth > 0 || !out->stream))
		error = -EINVAL;
	if (error == 0 && fclose(base_take_ptr(out->stream)) == EOF)
		error = -ENOMEM;
	if (error == 0) {
		if (ret_size)
			*ret_size = out->size;
		*ret_text = base_take_ptr(out->text);
	}
	json_out_fini(out);
	return error;
}

int json_out_write(struct json_out *out, FILE *file)
{
	_cleanup_free_ char *text = NULL;
	const int error = json_out_take(out, &text, NULL);

	if (error == 0)
		fprintf(file, "%s\n", text);
	return error;
}
