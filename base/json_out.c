/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A JSON text under construction: one growing buffer and a small stack that knows whether the next
 * value needs a comma, a key, a new line. The first error sticks and makes every later call a
 * no-op, so that callers write a whole report and look once, at json_out_take().
 *
 * Strings may hold any byte: names of jobs and files come from other people. What is not UTF-8
 * becomes U+FFFD, control characters (C1, too, which terminals obey) become \uXXXX.
 */

#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void json_out_init(struct json_out *out, bool indent)
{
	*out = (struct json_out){.indent = indent};
}

void json_out_fini(struct json_out *out)
{
	free(out->text);
	json_out_init(out, out->indent);
}

static void json_out_fail(struct json_out *out, int error)
{
	if (out->error == 0)
		out->error = error;
}

static void json_out_put(struct json_out *out, const char *text, size_t size)
{
	if (out->error)
		return;
	if (out->capacity - out->size <= size) { /* one byte stays for the NUL */
		size_t capacity = BASE_MAX(out->capacity * 2, out->size + size + 256);
		char *grown = realloc(out->text, capacity);

		if (!grown) {
			json_out_fail(out, -ENOMEM);
			return;
		}
		out->text = grown;
		out->capacity = capacity;
	}
	memcpy(out->text + out->size, text, size);
	out->size += size;
	out->text[out->size] = '\0';
}

static void json_out_puts(struct json_out *out, const char *text)
{
	json_out_put(out, text, strlen(text));
}

static void json_out_newline(struct json_out *out)
{
	if (!out->indent)
		return;
	json_out_puts(out, "\n");
	for (unsigned i = 0; i < out->depth; i++)
		json_out_puts(out, "  ");
}

/* What stands between the value before and an item (or key) of the level we are in. */
static void json_out_separate(struct json_out *out)
{
	if (out->depth == 0) {
		if (out->size > 0)
			json_out_fail(out, -EINVAL);
		return;
	}
	if (out->level[out->depth - 1].has_items)
		json_out_puts(out, ",");
	out->level[out->depth - 1].has_items = true;
	json_out_newline(out);
}

static void json_out_before_value(struct json_out *out)
{
	bool in_object = out->depth > 0 && out->level[out->depth - 1].is_object;

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
	json_out_puts(out, is_object ? "{" : "[");
	out->level[out->depth].is_object = is_object;
	out->level[out->depth].has_items = false;
	out->depth++;
}

static void json_out_end(struct json_out *out, bool is_object)
{
	bool had_items;

	if (out->depth == 0 || out->level[out->depth - 1].is_object != is_object || out->has_key)
		json_out_fail(out, -EINVAL);
	if (out->error)
		return;
	out->depth--;
	had_items = out->level[out->depth].has_items;
	if (had_items)
		json_out_newline(out);
	json_out_puts(out, is_object ? "}" : "]");
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

/* Length of the UTF-8 character at text that may stand in the output as it is, 0 if there is
 * none. */
static size_t json_out_utf8(const unsigned char *text)
{
	static const struct {
		unsigned char least, most; /* of the first byte */
		uint32_t first, last;      /* of the character */
	} form[] = {
	    {0xc2, 0xdf, 0x80, 0x7ff},
	    {0xe0, 0xef, 0x800, 0xffff},
	    {0xf0, 0xf4, 0x10000, 0x10ffff},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(form); i++) {
		uint32_t c = text[0] & (0x1fu >> i);

		if (text[0] < form[i].least || text[0] > form[i].most)
			continue;
		for (size_t k = 1; k < i + 2; k++) {
			if ((text[k] & 0xc0) != 0x80) /* also the terminating NUL */
				return 0;
			c = c << 6 | (text[k] & 0x3f);
		}
		if (c < form[i].first || c > form[i].last || (c >= 0xd800 && c <= 0xdfff))
			return 0;
		return i + 2;
	}
	return 0;
}

static void json_out_escape(struct json_out *out, unsigned c)
{
	char escape[8];

	snprintf(escape, sizeof(escape), "\\u%04x", c & 0xffff);
	json_out_puts(out, escape);
}

static void json_out_quoted(struct json_out *out, const char *value)
{
	const unsigned char *p = (const unsigned char *)value;

	json_out_puts(out, "\"");
	while (*p && out->error == 0) {
		size_t length = *p < 0x80 ? 1 : json_out_utf8(p);

		if (length == 0)
			json_out_escape(out, 0xfffd);
		else if (*p < 0x20 || *p == 0x7f || *p == '"' || *p == '\\')
			json_out_escape(out, *p);
		else if (*p == 0xc2 && p[1] < 0xa0)
			json_out_escape(out, p[1]);
		else
			json_out_put(out, (const char *)p, length);
		p += BASE_MAX(length, (size_t)1);
	}
	json_out_puts(out, "\"");
}

void json_out_key(struct json_out *out, const char *key)
{
	if (out->depth == 0 || !out->level[out->depth - 1].is_object || out->has_key)
		json_out_fail(out, -EINVAL);
	if (out->error)
		return;
	json_out_separate(out);
	json_out_quoted(out, key);
	json_out_puts(out, out->indent ? ": " : ":");
	out->has_key = true;
}

static void json_out_word(struct json_out *out, const char *word)
{
	json_out_before_value(out);
	json_out_puts(out, word);
}

void json_out_u64(struct json_out *out, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	json_out_word(out, text);
}

void json_out_i64(struct json_out *out, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	json_out_word(out, text);
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

void json_out_bool(struct json_out *out, bool value)
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

int json_out_take(struct json_out *out, char **ret_text, size_t *ret_size)
{
	int error = out->error;

	if (error == 0 && (out->depth > 0 || out->size == 0))
		error = -EINVAL;
	if (error == 0) {
		if (ret_size)
			*ret_size = out->size;
		*ret_text = base_take_ptr(out->text);
	}
	json_out_fini(out);
	return error;
}
