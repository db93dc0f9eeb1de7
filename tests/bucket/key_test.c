/* SPDX-License-Identifier: Apache-2.0 */

/* Which keys are a data set's and what they are called; URLs, options, tags. */

#include <stdio.h>

#include "bucket/key.h"
#include "bucket/provider.h"
#include "shmring/bucket.h"
#include "tests/suite.h"

static const struct provider_ops one = {.scheme = "one", .options = "region\0endpoint\0"};
const struct provider_ops *const bucket_providers[] = {&one};
const size_t bucket_n_providers = 1;

START_TEST(test_names)
{
	static const struct {
		const char *name;
		size_t bytes;
		bool is_good;
	} cases[] = {
	    {"a", 1, true},          {"a/b.jpg", 7, true}, {"...", 3, true},    {"a/.b", 4, true},
	    {"\xff\x01\n", 3, true}, {"", 0, false},       {".", 1, false},     {"..", 2, false},
	    {"a/..", 4, false},      {"../a", 4, false},   {"a/./b", 5, false}, {"/a", 2, false},
	    {"a/", 2, false},        {"a//b", 4, false},   {"/", 1, false},     {"a\0b", 3, false},
	};
	char name[BUCKET_MOST_NAME + 1];

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++)
		ck_assert_msg(!key_bad_name(cases[i].name, cases[i].bytes) == cases[i].is_good,
			      "%s", cases[i].name);
	memset(name, 'a', sizeof(name));
	ck_assert_ptr_null(key_bad_name(name, 255));
	ck_assert_ptr_nonnull(key_bad_name(name, 256));
	for (size_t i = 200; i < sizeof(name); i += 200)
		name[i] = '/';
	ck_assert_ptr_null(key_bad_name(name, BUCKET_MOST_NAME));
	ck_assert_ptr_nonnull(key_bad_name(name, BUCKET_MOST_NAME + 1));
}
END_TEST

START_TEST(test_scope)
{
	static const struct {
		const char *path, *prefix, *key, *name;
	} cases[] = {
	    {"", "", "a/b", "a/b"},
	    {"", "", "a/", NULL},
	    {"in/", "in/", "in/a/b", "a/b"},
	    {"in/", "in/", "in/", NULL},
	    {"in/", "in/", "inn/a", NULL},
	    {"in/a.tar", "in/a.tar", "in/a.tar", "a.tar"},
	    {"in/a.tar", "in/a.tar", "in/a.tar2", NULL},
	    {"a.tar", "a.tar", "a.tar", "a.tar"},
	    {"in/t-{000..123}.tar", "in/t-", "in/t-007.tar", "t-007.tar"},
	    {"in/t-{000..123}.tar", "in/t-", "in/t-007.json", NULL},
	    {"in/t-{000..123}.tar", "in/t-", "in/t-x/007.tar", NULL},
	    {"{a,b}-{0..9}.tar", "", "a-0.tar", "a-0.tar"},
	    {"t-{0..9}", "t-", "t-", "t-"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		struct key_scope scope;
		struct diag diag;
		const char *name;

		ck_assert_int_eq(key_scope_of(cases[i].path, &scope, &diag), 0);
		ck_assert_str_eq(scope.prefix, cases[i].prefix);
		name = key_name(&scope, cases[i].key);
		if (cases[i].name)
			ck_assert_str_eq(name, cases[i].name);
		else
			ck_assert_ptr_null(name);
		key_scope_fini(&scope);
	}
}
END_TEST

START_TEST(test_below)
{
	struct key_scope scope;
	struct diag diag;

	ck_assert_int_eq(key_scope_of("in/set", &scope, &diag), 0);
	ck_assert_int_eq(scope.kind, KEY_OBJECT);
	ck_assert_int_eq(key_scope_below(&scope), 0);
	ck_assert_str_eq(scope.prefix, "in/set/");
	ck_assert_str_eq(key_name(&scope, "in/set/a/b"), "a/b");
	ck_assert_ptr_null(key_name(&scope, "in/set"));
	ck_assert_ptr_null(key_name(&scope, "in/settle"));
	key_scope_fini(&scope);
}
END_TEST

START_TEST(test_beside)
{
	static const struct {
		const char *path, *key, *name;
	} cases[] = {
	    {"in/a.csv", "in/a.csv", "a.csv"}, {"in/a.csv", "in/b/c.jpg", "b/c.jpg"},
	    {"in/a.csv", "out/c.jpg", NULL},   {"a.JSONL", "b/c.jpg", "b/c.jpg"},
	    {"in/t.bin", "in/t.bin", "t.bin"}, {"in/t.bin", "in/t.idx", "t.idx"},
	    {"in/t.bin", "in/t2.idx", NULL},   {"in/t.bin", "in/t.x/a", NULL},
	    {"in/a.tar", "in/a.tar", "a.tar"}, {"in/a.tar", "in/a.idx", NULL},
	    {"in/.csv", "in/.csv", ".csv"},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		struct key_scope scope;
		struct diag diag;
		const char *name;

		ck_assert_int_eq(key_scope_of(cases[i].path, &scope, &diag), 0);
		key_scope_widen(&scope);
		name = key_name(&scope, cases[i].key);
		if (cases[i].name)
			ck_assert_str_eq(name, cases[i].name);
		else
			ck_assert_ptr_null(name);
		key_scope_fini(&scope);
	}
}
END_TEST

static int add(void *arg, const char *key)
{
	strcat(arg, key);
	strcat(arg, " ");
	return 0;
}

START_TEST(test_each)
{
	static const struct {
		const char *path, *keys;
		int r;
	} cases[] = {
	    {"in/a.tar", "in/a.tar ", 0},
	    {"in/t{08..11}", "in/t08 in/t09 in/t10 in/t11 ", 0},
	    {"t{8..11}", "t8 t9 t10 t11 ", 0},
	    {"in/{a,bc}{0..1}.x", "in/a0.x in/a1.x in/bc0.x in/bc1.x ", 0},
	    {"{,b}", " b ", 0},
	    {"t{3..3}", "t3 ", 0},
	    {"t{4..3}", "", -EINVAL},
	    {"t{x}", "", -EINVAL},
	    {"t{1..}", "", -EINVAL},
	    {"t{{1..2}}", "", -EINVAL},
	    {"t{1..2}}", "", -EINVAL},
	    {"t{0..99}", "", -E2BIG},
	};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		struct key_scope scope;
		struct diag diag;
		char keys[4096] = "";
		int r;

		ck_assert_int_eq(key_scope_of(cases[i].path, &scope, &diag), 0);
		r = key_each(&scope, 50, add, keys, &diag);
		ck_assert_msg(r == cases[i].r, "%s: %d", cases[i].path, r);
		if (!r)
			ck_assert_str_eq(keys, cases[i].keys);
		key_scope_fini(&scope);
	}
}
END_TEST

START_TEST(test_braces)
{
	static const char *const bad[] = {"a{0..1}/b", "a{0", "}a{", "{a/b}"};
	struct key_scope scope;
	struct diag diag;

	for (size_t i = 0; i < BASE_ARRAY_LEN(bad); i++)
		ck_assert_int_eq(key_scope_of(bad[i], &scope, &diag), -EINVAL);
}
END_TEST

START_TEST(test_url)
{
	static const struct {
		const char *text, *place, *path;
	} cases[] = {
	    {"one://bucket", "bucket", ""},
	    {"one://bucket/", "bucket", ""},
	    {"ONE://bucket/a/b c/", "bucket", "a/b c/"},
	    {"one://bucket//a", "bucket", "/a"},
	    {"one:///a", NULL, NULL},
	    {"two://a/b", NULL, NULL},
	    {"one:/a/b", NULL, NULL},
	    {"/one://a", NULL, NULL},
	    {"", NULL, NULL},
	};
	struct bucket_url url;
	struct diag diag;

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		const int r = bucket_url_parse(cases[i].text, &url, &diag);

		ck_assert_int_eq(r, cases[i].place ? 0 : -EINVAL);
		if (r)
			continue;
		ck_assert_ptr_eq(url.ops, &one);
		ck_assert_str_eq(url.text, cases[i].text);
		ck_assert_str_eq(url.place, cases[i].place);
		ck_assert_str_eq(url.path, cases[i].path);
		bucket_url_free(&url);
	}
}
END_TEST

START_TEST(test_options)
{
	static const struct bucket_option option[] = {{"region", "a"}, {"region", "b"}, {"no", ""}};
	struct bucket_options options = {option, 2};
	struct diag diag;

	ck_assert_int_eq(bucket_options_check(&options, &one, &diag), 0);
	ck_assert_str_eq(bucket_option(&options, "region"), "b");
	ck_assert_ptr_null(bucket_option(&options, "endpoint"));
	options.n = 3;
	ck_assert_int_eq(bucket_options_check(&options, &one, &diag), -EINVAL);
	ck_assert_ptr_nonnull(strstr(diag.text, "region, endpoint"));
}
END_TEST

/* Nodes agree on it: it never changes. */
START_TEST(test_tag)
{
	const int64_t tag = bucket_tag(1700000000, "\"abc\"");
	const struct provider_ops versions = {.tag = PROVIDER_TAG_VERSION};
	const struct provider_object object = {.etag = "1700000000000001", .last_modified = 7};
	const struct http_answer answer = {.version = "1700000000000001", .last_modified = 8};

	ck_assert_int_eq(tag / 1000000000, 1700000000);
	ck_assert_int_eq(tag, INT64_C(1700000000037089104));
	ck_assert_int_eq(bucket_tag(1700000000, "abc"), tag);
	ck_assert_int_eq(bucket_tag(1700000000, "W/\"abc\""), tag);
	ck_assert_int_ne(bucket_tag(1700000000, "abd"), tag);
	ck_assert_int_eq(bucket_tag(INT64_MIN, "abc"), tag % 1000000000);
	/* A version has no date; nodes must agree. */
	ck_assert_int_eq(bucket_tag_listed(&versions, &object), INT64_C(771506029492746987));
	ck_assert_int_eq(bucket_tag_headed(&versions, &answer), INT64_C(771506029492746987));
	ck_assert_int_ge(bucket_tag(INT64_MAX, "abc"), 0);
	ck_assert_int_ge(bucket_tag(-5, ""), 0);
}
END_TEST

static void add_tests(TCase *all)
{
	tcase_add_test(all, test_names);
	tcase_add_test(all, test_scope);
	tcase_add_test(all, test_below);
	tcase_add_test(all, test_beside);
	tcase_add_test(all, test_each);
	tcase_add_test(all, test_braces);
	tcase_add_test(all, test_url);
	tcase_add_test(all, test_options);
	tcase_add_test(all, test_tag);
}

int main(void)
{
	return suite_run("key", add_tests);
}
