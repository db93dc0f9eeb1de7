/* SPDX-License-Identifier: Apache-2.0 */

/* What is written comes back as it was, whatever the bytes; what is no JSON is refused with a
 * place. */

#include "base/json.h"
#include "tests/suite.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *in, *out;
} strings[] = {
    {"plain", "\"plain\""},
    {"", "\"\""},
    {"a\"b\\c", "\"a\\u0022b\\u005cc\""},
    {"line\nend\x1b[0m\x7f", "\"line\\u000aend\\u001b[0m\\u007f\""},
    {"gr\xc3\xbc\xc3\x9f", "\"gr\xc3\xbc\xc3\x9f\""},
    {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
    {"\xff\xfe", "\"\\ufffd\\ufffd\""},
    {"cut \xe2\x82", "\"cut \\ufffd\\ufffd\""},
    {"long form \xc0\xaf", "\"long form \\ufffd\\ufffd\""},
    {"half \xed\xa0\x80", "\"half \\ufffd\\ufffd\\ufffd\""},
    {"past \xf4\x90\x80\x80", "\"past \\ufffd\\ufffd\\ufffd\\ufffd\""},
    {"c1 \xc2\x9b", "\"c1 \\u009b\""},
    {NULL, "null"},
};

START_TEST(string_is_escaped)
{
	struct json_out out;
	struct json_in *in = NULL;
	char *text = NULL;
	size_t size = 0;

	json_out_init(&out, false);
	json_out_string(&out, strings[_i].in);
	ck_assert_int_eq(json_out_take(&out, &text, &size), 0);
	ck_assert_str_eq(text, strings[_i].out);
	ck_assert_uint_eq(size, strlen(text));
	ck_assert_int_eq(json_in_parse(text, size, 4096, &in, NULL), 0);
	json_in_free(in);
	free(text);
}
END_TEST

static void write_report(struct json_out *out)
{
	json_out_object_begin(out);
	json_out_member_string(out, "name", "x");
	json_out_member_u64(out, "big", INT64_MAX);
	json_out_member_u64(out, "bigger", UINT64_MAX); /* what no reader takes */
	json_out_member_double(out, "half", 0.5);
	json_out_member_double(out, "nan", NAN);
	json_out_member_bool(out, "yes", true);
	json_out_key(out, "list");
	json_out_array_begin(out);
	json_out_i64(out, -3);
	json_out_object_begin(out);
	json_out_object_end(out);
	json_out_array_end(out);
	json_out_object_end(out);
}

START_TEST(report_comes_back)
{
	struct json_out out;
	struct json_in *in = NULL;
	struct diag diag;
	char *text = NULL;
	size_t size = 0;

	json_out_init(&out, _i == 1);
	write_report(&out);
	ck_assert_int_eq(json_out_take(&out, &text, &size), 0);
	ck_assert_int_eq(json_in_parse(text, size, 4096, &in, &diag), 0);
	ck_assert_str_eq(json_in_string(json_in_member(in, "name"), "?"), "x");
	ck_assert_uint_eq(json_in_u64(json_in_member(in, "big"), 0), INT64_MAX);
	ck_assert_uint_eq(json_in_u64(json_in_member(in, "bigger"), 0), INT64_MAX);
	ck_assert_double_eq(json_in_double(json_in_member(in, "half"), 0), 0.5);
	ck_assert_int_eq(json_in_kind_of(json_in_member(in, "nan")), JSON_IN_NULL);
	ck_assert(json_in_bool(json_in_member(in, "yes"), false));
	ck_assert_uint_eq(json_in_count(json_in_member(in, "list")), 2);
	ck_assert_int_eq(json_in_i64(json_in_item(json_in_member(in, "list"), 0), 0), -3);
	ck_assert_uint_eq(json_in_u64(json_in_item(json_in_member(in, "list"), 0), 7), 7);
	ck_assert_str_eq(json_in_string(json_in_member(in, "none"), "otherwise"), "otherwise");
	ck_assert_ptr_null(json_in_item(json_in_member(in, "none"), 0));
	json_in_free(in);
	free(text);
}
END_TEST

START_TEST(members_come_in_order)
{
	static const char text[] = "{\"z\": 1, \"a\": 2, \"m\": 3}";
	static const char *const keys[] = {"z", "a", "m"};
	const struct json_in *value;
	const char *key = NULL;
	struct json_in *in = NULL;
	uint64_t n = 0;

	ck_assert_int_eq(json_in_parse(text, strlen(text), 4096, &in, NULL), 0);
	while ((value = json_in_next(in, &key))) {
		ck_assert_str_eq(key, keys[n++]);
		ck_assert_uint_eq(json_in_u64(value, 0), n);
	}
	ck_assert_uint_eq(n, 3);
	json_in_free(in);
}
END_TEST

static const struct {
	const char *text, *says;
} refused[] = {
    {"", "line 1"},
    {"{", "line 1"},
    {"{\"a\": 1, \"a\": 2}", "duplicate"},
    {"[1, 2] 3", "line 1"},
    {"\"\xff\"", "0xff"},
    {"{\"a\": 99999999999999999999}", "big"},
    {"\"nul \\u0000 inside\"", "\\u0000"},
    {"[\n\n oops]", "line 3"},
};

START_TEST(bad_text_is_refused)
{
	struct json_in *in = NULL;
	struct diag diag = {.text = ""};

	ck_assert_int_eq(
	    json_in_parse(refused[_i].text, strlen(refused[_i].text), 4096, &in, &diag),
	    JSON_E_BAD);
	ck_assert_msg(strstr(diag.text, refused[_i].says), "\"%s\" lacks \"%s\"", diag.text,
		      refused[_i].says);
	ck_assert_ptr_null(in);
}
END_TEST

START_TEST(limits_hold)
{
	struct json_in *in = NULL;
	static const char quoted[] = "\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\"";
	char deep[2 * JSON_IN_DEPTH + 2];

	for (int extra = 0; extra <= 1; extra++) {
		size_t depth = JSON_IN_DEPTH + (size_t)extra;

		memset(deep, '[', depth);
		memset(deep + depth, ']', depth);
		ck_assert_int_eq(json_in_parse(deep, 2 * depth, 4096, &in, NULL),
				 extra ? JSON_E_BAD : 0);
		json_in_free(in);
		in = NULL;
	}
	ck_assert_int_eq(json_in_parse("[\"[[[[\"]", 9 - 1, 4, &in, NULL), JSON_E_BAD);
	/* brackets in strings are no depth */
	ck_assert_int_eq(json_in_parse(quoted, strlen(quoted), 4096, &in, NULL), 0);
	json_in_free(in);
}
END_TEST

static void misuse_value_without_key(struct json_out *out)
{
	json_out_object_begin(out);
	json_out_u64(out, 1);
	json_out_object_end(out);
}
static void misuse_two_values(struct json_out *out)
{
	json_out_u64(out, 1);
	json_out_u64(out, 2);
}
static void misuse_wrong_end(struct json_out *out)
{
	json_out_object_begin(out);
	json_out_array_end(out);
}
static void misuse_open(struct json_out *out)
{
	json_out_array_begin(out);
}
static void misuse_key_without_value(struct json_out *out)
{
	json_out_object_begin(out);
	json_out_key(out, "a");
	json_out_object_end(out);
}
static void misuse_depth(struct json_out *out)
{
	for (int i = 0; i <= JSON_OUT_DEPTH; i++)
		json_out_array_begin(out);
	for (int i = 0; i <= JSON_OUT_DEPTH; i++)
		json_out_array_end(out);
}
static void misuse_nothing(struct json_out *out)
{
	(void)out;
}
static void (*const misuses[])(struct json_out *) = {
    misuse_value_without_key, misuse_two_values, misuse_wrong_end, misuse_open,
    misuse_key_without_value, misuse_depth,      misuse_nothing,
};

START_TEST(misuse_is_an_error)
{
	struct json_out out;
	char *text = NULL;

	json_out_init(&out, false);
	misuses[_i](&out);
	ck_assert_int_eq(json_out_take(&out, &text, NULL), -EINVAL);
	ck_assert_ptr_null(text);
	json_out_fini(&out);
}
END_TEST

START_TEST(items_are_gone_through_and_found)
{
	static const char text[] = "[{\"a\":\"x\",\"n\":1},{\"a\":\"y\"},{\"a\":\"y\",\"n\":3}]";
	struct json_in *in = NULL;
	unsigned all = 0, some = 0;

	ck_assert_int_eq(json_in_parse(text, strlen(text), 4096, &in, NULL), 0);
	JSON_IN_EACH(item, in) {
		all++;
		if (json_in_u64(json_in_member(item, "n"), 0) != 1)
			continue;
		some++;
	}
	ck_assert_uint_eq(all, 3);
	ck_assert_uint_eq(some, 1);
	all = 0;
	JSON_IN_EACH(item, in) {
		all += item != NULL;
		if (all == 2)
			break;
	}
	ck_assert_uint_eq(all, 2);
	JSON_IN_EACH(item, json_in_member(in, "none"))
		ck_abort_msg("%p is there", (const void *)item);
	ck_assert_ptr_eq(json_in_with(in, "a", "y"), json_in_item(in, 1));
	ck_assert_ptr_null(json_in_with(in, "a", "z"));
	ck_assert_ptr_eq(json_in_numbered(in, "n", 3), json_in_item(in, 2));
	ck_assert_ptr_null(json_in_numbered(in, "n", UINT64_MAX));
	json_in_free(in);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, string_is_escaped, 0, BASE_ARRAY_LEN(strings));
	tcase_add_loop_test(tcase, report_comes_back, 0, 2);
	tcase_add_test(tcase, members_come_in_order);
	tcase_add_loop_test(tcase, bad_text_is_refused, 0, BASE_ARRAY_LEN(refused));
	tcase_add_test(tcase, limits_hold);
	tcase_add_test(tcase, items_are_gone_through_and_found);
	tcase_add_loop_test(tcase, misuse_is_an_error, 0, BASE_ARRAY_LEN(misuses));
}

int main(void)
{
	return suite_run("json", add);
}
