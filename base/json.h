/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/*
 * JSON out (a builder, needs nothing) and JSON in (a tree of values, limited in size and depth,
 * parsed by the foreign library behind base/json_in.c). Numbers are whole up to 2^63 - 1 on the way
 * in. Writing is in libbase, reading in base/libjson.la: libaccess reads no JSON and must not bring
 * a parser into other people's programs.
 */

#include <stdio.h>
#include "base/base.h"

/* ---- json_out.c: a text under construction ---- */
#define JSON_OUT_DEPTH 16 /* arrays and objects inside each other */

struct json_out {
	FILE *stream; /* to text; NULL until something was written */
	char *text;
	size_t size;
	int error; /* 0, -ENOMEM, -EINVAL (a value without a key, an end too many, ...); sticks */
	unsigned depth;
	bool indent; /* one member a line, for people */
	bool has_key;
	struct {
		bool is_object, has_items;
	} level[JSON_OUT_DEPTH + 1]; /* the first: outside of all */
};
void json_out_init(struct json_out *out, bool indent);
void json_out_fini(struct json_out *out);
void json_out_object_begin(struct json_out *out);
void json_out_object_end(struct json_out *out);
void json_out_array_begin(struct json_out *out);
void json_out_array_end(struct json_out *out);
void json_out_key(struct json_out *out, const char *key); /* before each value inside an object */
/* Numbers that others said may be any, and readers of JSON refuse what no int64_t holds: INT64_MAX then. */
void json_out_u64(struct json_out *out, uint64_t value);
void json_out_i64(struct json_out *out, int64_t value);
void json_out_double(struct json_out *out, double value); /* null when it is not finite */
void json_out_null(struct json_out *out);
/* Any bytes up to the NUL: what is no UTF-8 becomes U+FFFD, controls \uXXXX. NULL: null. */
void json_out_string(struct json_out *out, const char *value);
/* key and value in one call. */
void json_out_member_u64(struct json_out *out, const char *key, uint64_t value);
void json_out_member_double(struct json_out *out, const char *key, double value);
void json_out_member_bool(struct json_out *out, const char *key, bool value);
void json_out_member_string(struct json_out *out, const char *key, const char *value);
/* The same by the value's type: u64 unless it is a bool, a double or a text. */
/* clang-format off */
#define json_out_member(out, key, value) \
	_Generic((value), bool: json_out_member_bool, double: json_out_member_double, \
		 char *: json_out_member_string, const char *: json_out_member_string, \
		 default: json_out_member_u64)(out, key, value)
/* clang-format on */
/* Members of a struct, at most 27, each with its name as the key: JSON_OUT_MEMBERS(out, point, x, y). Others read
 * these keys, so a member that is written so keeps its name. (Each JSON_OUT_EXPAND lets JSON_OUT_NEXT, which may not
 * contain itself, go on for one more member.) */
#define JSON_OUT_MEMBERS(out, of, ...) JSON_OUT_EXPAND(JSON_OUT_NEXT(out, of, __VA_ARGS__))
#define JSON_OUT_NEXT(out, of, member, ...)         \
	json_out_member(out, #member, (of)->member) \
	    __VA_OPT__(, JSON_OUT_AGAIN JSON_OUT_NONE(out, of, __VA_ARGS__))
#define JSON_OUT_AGAIN() JSON_OUT_NEXT
#define JSON_OUT_NONE ()
#define JSON_OUT_EXPAND(...) JSON_OUT_EXPAND_9(JSON_OUT_EXPAND_9(JSON_OUT_EXPAND_9(__VA_ARGS__)))
#define JSON_OUT_EXPAND_9(...) JSON_OUT_EXPAND_3(JSON_OUT_EXPAND_3(JSON_OUT_EXPAND_3(__VA_ARGS__)))
#define JSON_OUT_EXPAND_3(...) JSON_OUT_EXPAND_1(JSON_OUT_EXPAND_1(JSON_OUT_EXPAND_1(__VA_ARGS__)))
#define JSON_OUT_EXPAND_1(...) __VA_ARGS__
/* Begin one, to be ended as others. */
void json_out_member_object(struct json_out *out, const char *key);
void json_out_member_array(struct json_out *out, const char *key);
/* Ends the text: 0 and *ret_text (caller frees) with *ret_size bytes without the NUL (may be NULL),
 * or the error that stuck; -EINVAL also while something is open. out can be used again after it. */
int json_out_take(struct json_out *out, char **ret_text, size_t *ret_size);
/* The same to a file, with a new line. */
int json_out_write(struct json_out *out, FILE *file);

/* ---- json_in.c: a parsed text ---- */
#define JSON_IN_DEPTH 32

enum { JSON_E_BAD = 1 };
enum json_in_kind {
	JSON_IN_NULL,
	JSON_IN_BOOL,
	JSON_IN_INTEGER,
	JSON_IN_REAL,
	JSON_IN_STRING,
	JSON_IN_ARRAY,
	JSON_IN_OBJECT,
};

/* Before a sandbox is entered in which texts are parsed: what the first parsing would ask of the system. */
void json_in_prepare(void);
struct json_in; /* a value; all values of a tree are borrowed from its root */
/* Hostile text of size bytes. JSON_E_BAD when it is not one JSON value, is deeper than
 * JSON_IN_DEPTH, repeats a key, or is longer than limit; diag says where. -ENOMEM. */
int json_in_parse(const char *text, size_t size, size_t limit, struct json_in **ret,
		  struct diag *diag);
void json_in_free(struct json_in *root); /* NULL is fine */
void json_in_freep(struct json_in **root);
#define _cleanup_json_ _cleanup_(json_in_freep)
/* Every function below takes NULL for "not there", as its own result, so that calls nest. */
enum json_in_kind json_in_kind_of(const struct json_in *value); /* NULL: JSON_IN_NULL */
size_t json_in_count(const struct json_in *value); /* items of an array or object, else 0 */
const struct json_in *json_in_item(const struct json_in *array, size_t index);
const struct json_in *json_in_member(const struct json_in *object, const char *key);
/* Members in the order of the text: starts with *key NULL, ends with NULL. The key is borrowed. */
const struct json_in *json_in_next(const struct json_in *object, const char **key);
/* Goes through an array; `break` and `continue` are as in any loop. */
#define JSON_IN_EACH(item, array)                                             \
	for (size_t item##_at_ = 0, item##_goes_ = 1;                         \
	     item##_goes_ && item##_at_ < json_in_count(array); item##_at_++) \
		for (const struct json_in *item =                             \
			 (item##_goes_ = 0, json_in_item(array, item##_at_)); \
		     !item##_goes_; item##_goes_ = 1)
/* The first of the array's objects that has that text, or that number, there; NULL: none. */
const struct json_in *json_in_with(const struct json_in *array, const char *key, const char *text);
const struct json_in *json_in_numbered(const struct json_in *array, const char *key,
				       uint64_t number);
/* The value, or otherwise when it is missing or of another kind. */
uint64_t json_in_u64(const struct json_in *value, uint64_t otherwise); /* also when negative */
int64_t json_in_i64(const struct json_in *value, int64_t otherwise);
double json_in_double(const struct json_in *value, double otherwise); /* integers, too */
bool json_in_bool(const struct json_in *value, bool otherwise);
/* Borrowed, valid UTF-8 without NUL inside. */
const char *json_in_string(const struct json_in *value, const char *otherwise);
