/* SPDX-License-Identifier: Apache-2.0 */

/*
 * access-ctl cache: the list as a table, and groups found by the beginning of their names, in lists as a
 * reader should write them and in others.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/url.h"
#include "tools/ctl_cache.h"
#include "tests/suite.h"

#define ID_A "00ffa1b2c3d4e5f60718293a4b5c6d7e8f000102030405060708090a0b0c0d0e"
#define ID_B "00ffa1b2c3d4e5f60718293a4b5c6d7e8f000102030405060708090a0b0c0d0f"
#define ID_C "9effa1b2c3d4e5f60718293a4b5c6d7e8f000102030405060708090a0b0c0d0e"
#define GROUP(id, note, more)                 \
	"{\"id\":\"" id "\",\"note\":\"" note \
	"\",\"samples\":200,\"values\":50,\"bytes\":2048" more "}"
#define LIST                                                                                                  \
	"{\"limit\":1048576,\"bytes_used\":4096,\"values\":51,\"damaged\":1,\"evicted\":2,"                   \
	"\"memory_values\":9,\"memory_used\":2097152,"                                                        \
	"\"groups\":[" GROUP(                                                                                 \
	    ID_A, "{\\\"dataset\\\":\\\"/data/\\\\u001b[1m\\\",\\\"form\\\":\\\"packed\\\"}",                 \
	    ",\"pinned\":true,\"used\":true") "," GROUP(ID_B, "no JSON",                                      \
							",\"superseded\":true") "," GROUP(ID_C,               \
											  "{}",               \
											  "") "," GROUP("9e", \
													"{}", \
													"") ",7,{}]}"

static struct json_in *parsed(const char *text)
{
	struct json_in *list = NULL;
	struct diag diag = {.text = ""};

	ck_assert_msg(json_in_parse(text, strlen(text), 65536, &list, &diag) == 0, "%s", diag.text);
	return list;
}

START_TEST(table)
{
	static const char *const parts[] = {
	    "4 KiB of 1 MiB, 51 values; damaged 1, pushed out 2; in memory 9 values, 2 MiB",
	    "00ffa1b2c3d4 ",
	    "packed",
	    "/data/\\x1b[1m",
	    "25.0 %",
	    "pinned, in use\n",
	    "superseded"};
	struct json_in *list = parsed(LIST);
	char *out = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&out, &size);

	ck_assert_ptr_nonnull(file);
	ctl_cache_draw(list, file);
	fclose(file);
	for (size_t i = 0; i < BASE_ARRAY_LEN(parts); i++)
		ck_assert_msg(strstr(out, parts[i]), "\"%s\" is not in:\n%s", parts[i], out);
	ck_assert_ptr_null(strchr(out, '\x1b'));
	free(out);
	json_in_free(list);
}
END_TEST

START_TEST(no_list)
{
	static const char *const texts[] = {"{}", "7", "{\"groups\":{}}", "{\"groups\":[[],null]}"};

	for (size_t i = 0; i < BASE_ARRAY_LEN(texts); i++) {
		struct json_in *list = parsed(texts[i]);
		FILE *file = fopen("/dev/null", "w");
		struct diag diag;
		uint8_t id[32];

		ck_assert_ptr_nonnull(file);
		ctl_cache_draw(list, file);
		fclose(file);
		ck_assert_int_eq(ctl_cache_find(list, "00ff", id, &diag), CTL_E_NONE);
		json_in_free(list);
	}
}
END_TEST

/* Which folder that is, is the URL's alone: where it lies, and what access-bucket was told, do not count. */
START_TEST(of_a_url)
{
	static const struct {
		const char *opened, *file, *forgotten;
		bool is_of;
	} cases[] = {
	    {"s3://b/train", "", "s3://b/train", true},
	    {"s3://b/train", "", "s3://b/train/", true},
	    {"s3://b/train/", "", "s3://b/train", true},
	    {"s3://b/train?region=x", "", "s3://b/train", true},
	    {"s3://b/train", "", "s3://b/train?region=x", true},
	    {"s3://b/x.tar", "/x.tar?label=none", "s3://b/x.tar", true},
	    {"https://h/x?sig=1", "/x", "https://h/x", true},
	    {"s3://b/train", "", "s3://b/trai", false},
	    {"s3://b/train", "", "gs://b/train", false},
	    {"s3://b/train", "", "/tmp", false},
	};
	char folder[URL_FOLDER_MAX], text[512];

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		struct json_in *group;
		struct url url;

		ck_assert_int_eq(url_parse(cases[i].opened, &url), 0);
		url_folder(&url, folder);
		url_fini(&url);
		snprintf(text, sizeof(text),
			 GROUP(ID_A, "{\\\"dataset\\\":\\\"/run/buckets/7/%s/data%s\\\"}", ""),
			 folder, cases[i].file);
		group = parsed(text);
		ck_assert_msg(ctl_cache_is_of(group, cases[i].forgotten) == cases[i].is_of, "%s %s",
			      cases[i].opened, cases[i].forgotten);
		json_in_free(group);
	}
}
END_TEST

START_TEST(of_a_data_set)
{
	struct json_in *group =
	    parsed(GROUP(ID_A, "{\\\"dataset\\\":\\\"/data/a?label=1\\\"}", ""));
	struct json_in *other = parsed(GROUP(ID_A, "no JSON", ""));

	ck_assert(ctl_cache_is_of(group, "/data/a"));
	ck_assert(ctl_cache_is_of(group, "/data/a?label=1"));
	ck_assert(!ctl_cache_is_of(group, "/data/"));
	ck_assert(!ctl_cache_is_of(group, "/data/a?label"));
	ck_assert(!ctl_cache_is_of(group, "/data/ab"));
	ck_assert(!ctl_cache_is_of(other, "/data/a"));
	ck_assert(!ctl_cache_is_of(other, "-"));
	ck_assert(!ctl_cache_is_of(other, ""));
	json_in_free(group);
	json_in_free(other);
	group = parsed(GROUP(ID_A, "{}", ""));
	ck_assert(!ctl_cache_is_of(group, "-"));
	ck_assert(!ctl_cache_is_of(group, ""));
	json_in_free(group);
}
END_TEST

/* A text with the folder in the place of %s. */
static void filled(const char *text, const char *folder, char *ret, size_t size)
{
	if (strncmp(text, "%s", 2) == 0)
		snprintf(ret, size, "%s%s", folder, text + 2);
	else
		snprintf(ret, size, "%s", text);
}

/* Does a group whose maker said this path count as one of the data set? */
static bool is_of(const char *path, const char *dataset)
{
	char text[1024];
	struct json_in *group;
	bool fits;

	snprintf(text, sizeof(text), GROUP(ID_A, "{\\\"dataset\\\":\\\"%s\\\"}", ""), path);
	group = parsed(text);
	fits = ctl_cache_is_of(group, dataset);
	json_in_free(group);
	return fits;
}

/* A data set has many paths, and a job says any of them. %s is the folder with data, and link that leads to it. */
static const struct {
	const char *path, *dataset;
	bool fits;
} paths[] = {
    {"%s/data", "%s/data/", true},
    {"%s/data/", "%s/data", true},
    {"%s/data/?label=1", "%s/data", true},
    {"%s/data", "data", true},
    {"%s/link", "%s/data", true},
    {"%s/link/?label=1", "data/", true},
    {"%s/data", "link", true},
    {"%s/data/../link", "link", true},
    {"%s/data/../data", "%s/data", true},
    {"%s/gone/", "gone", true}, /* the folder itself may be away */
    {"%s/gone?label=1", "%s/gone//", true},
    {"%s/data", "%s", false},
    {"%s/data", "", false},
    {"%s?label=1", "", false},
    {"%s/gone", "data", false},
    {"%s/gone", "away", false},
    {"data", "data", true}, /* as it was said */
    {"data", "%s/data", false},
};

START_TEST(other_paths)
{
	char made[] = "/tmp/cache_list_XXXXXX", folder[128], path[256], dataset[256];

	ck_assert_ptr_nonnull(mkdtemp(made));
	ck_assert_int_eq(chdir(made), 0);
	ck_assert_ptr_nonnull(getcwd(folder, sizeof(folder)));
	ck_assert_int_eq(mkdir("data", 0700), 0);
	ck_assert_int_eq(symlink("data", "link"), 0);
	for (size_t i = 0; i < BASE_ARRAY_LEN(paths); i++) {
		filled(paths[i].path, folder, path, sizeof(path));
		filled(paths[i].dataset, folder, dataset, sizeof(dataset));
		ck_assert_msg(is_of(path, dataset) == paths[i].fits, "%s of %s", path, dataset);
	}
	ck_assert_int_eq(unlink("link"), 0);
	ck_assert_int_eq(rmdir("data"), 0);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

static const struct {
	const char *prefix, *says; /* NULL: found */
	uint8_t first, last;
} finds[] = {
    {ID_A, NULL, 0, 0x0e},
    {ID_B, NULL, 0, 0x0f},
    {"9eff", NULL, 0x9e, 0x0e},
    {"00ffa1b2", "several groups", 0, 0},
    {"9ef", "there is no group 9ef among 6", 0, 0},
    {"", "there is no group", 0, 0},
    {"9EFF", "there is no group", 0, 0},
    {"\x1b[1m", "there is no group \\x1b", 0, 0},
};

START_TEST(find)
{
	struct json_in *list = parsed(LIST);
	struct diag diag = {.text = ""};
	uint8_t id[32];
	int r = ctl_cache_find(list, finds[_i].prefix, id, &diag);

	ck_assert_int_eq(r, finds[_i].says ? CTL_E_NONE : 0);
	if (finds[_i].says) {
		ck_assert_msg(strstr(diag.text, finds[_i].says), "%s", diag.text);
	} else {
		ck_assert_uint_eq(id[0], finds[_i].first);
		ck_assert_uint_eq(id[31], finds[_i].last);
	}
	json_in_free(list);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, of_a_data_set);
	tcase_add_test(tcase, of_a_url);
	tcase_add_test(tcase, other_paths);
	tcase_add_test(tcase, table);
	tcase_add_test(tcase, no_list);
	tcase_add_loop_test(tcase, find, 0, BASE_ARRAY_LEN(finds));
}

int main(void)
{
	return suite_run("cache_list", add);
}
