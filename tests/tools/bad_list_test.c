/* SPDX-License-Identifier: Apache-2.0 */

/* access-ctl bad: which jobs are meant, and lists as text and as JSON, of files with names that would hurt. */

#include <stdlib.h>
#include <string.h>

#include "tools/ctl_bad.h"
#include "tests/suite.h"

#define STATUS                                                                                \
	"{\"jobs\":[{\"id\":1,\"name\":\"train\",\"stream\":7},{\"id\":2,\"name\":\"train\"," \
	"\"stream\":8},"                                                                      \
	"{\"id\":3,\"name\":\"train\",\"stream\":7},{\"id\":4,\"name\":\"1\",\"stream\":9},"  \
	"{\"id\":5,\"name\":\"lost\",\"stream\":66}],"                                        \
	"\"streams\":[{\"id\":7,\"dataset\":\"/data/\\u001b[1m\",\"samples\":100},"           \
	"{\"id\":8,\"dataset\":\"/d\",\"samples\":10},{\"id\":9}]}"

static struct json_in *status;

static void setup(void)
{
	struct diag diag;

	ck_assert_int_eq(json_in_parse(STATUS, strlen(STATUS), 65536, &status, &diag), 0);
}

static void teardown(void)
{
	json_in_free(status);
}

static const struct {
	const char *who;
	unsigned n;
	uint64_t job[3];
} finds[] = {
    {"train", 2, {1, 2}}, {"3", 1, {3}},    {"1", 2, {1, 4}}, /* a number and a name */
    {"lost", 0, {0}},     {"none", 0, {0}},
};

START_TEST(jobs_of_that_name)
{
	struct ctl_bad bad[8];
	unsigned n = ctl_bad_find(status, finds[_i].who, bad, BASE_ARRAY_LEN(bad));

	ck_assert_uint_eq(n, finds[_i].n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(json_in_u64(json_in_member(bad[i].job, "id"), 0),
				  finds[_i].job[i]);
	ck_assert_uint_eq(ctl_bad_find(status, "train", bad, 1), 1);
}
END_TEST

static void fill(struct ctl_bad *bad)
{
	static struct bad_page page;

	page.used = 0;
	ck_assert_uint_eq(ctl_bad_find(status, "3", bad, 1), 1);
	bad_page_put(&page, &(struct bad_page_entry){41, "b/\x1b[2J\n\xff.jpg", "read", "gone"});
	bad_page_put(&page, &(struct bad_page_entry){5, "a/\"x\".jpg", "decode", "no picture"});
	ck_assert_int_eq(bad_list_add(&bad->list, page.bytes, page.used, 100), 0);
	bad_list_sort(&bad->list);
	bad->lost = 3;
}

START_TEST(text)
{
	static const char *const parts[] = {
	    "job 3, train; stream 7 of /data/\\x1b[1m: 2 bad of 100 samples\n",
	    "\n       5  a/\\x22x\\x22.jpg",
	    "decode  no picture\n      41  b/\\x1b[2J\\x0a\\xff.jpg", "\n3 more were met"};
	struct ctl_bad bad;
	char *out = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&out, &size);

	fill(&bad);
	ctl_bad_draw(&bad, file);
	fclose(file);
	for (size_t i = 0; i < BASE_ARRAY_LEN(parts); i++)
		ck_assert_msg(strstr(out, parts[i]), "\"%s\" is not in:\n%s", parts[i], out);
	free(out);
	bad_list_fini(&bad.list);
}
END_TEST

START_TEST(json)
{
	struct json_in *all = NULL;
	const struct json_in *samples;
	struct ctl_bad bad;
	struct diag diag;
	char *out = NULL;
	size_t size = 0;
	FILE *file = open_memstream(&out, &size);

	fill(&bad);
	ck_assert_int_eq(ctl_bad_print(&bad, 1, file), 0);
	fclose(file);
	ck_assert_int_eq(json_in_parse(out, size, 65536, &all, &diag), 0);
	ck_assert_uint_eq(json_in_count(all), 1);
	samples = json_in_member(json_in_item(all, 0), "bad_samples");
	ck_assert_uint_eq(json_in_count(samples), 2);
	ck_assert_uint_eq(json_in_u64(json_in_member(json_in_item(samples, 0), "id"), 0), 5);
	ck_assert_str_eq(json_in_string(json_in_member(json_in_item(samples, 0), "name"), ""),
			 "a/\"x\".jpg");
	ck_assert_str_eq(json_in_string(json_in_member(json_in_item(samples, 1), "error"), ""),
			 "gone");
	ck_assert_uint_eq(json_in_u64(json_in_member(json_in_item(all, 0), "lost"), 0), 3);
	json_in_free(all);
	free(out);
	bad_list_fini(&bad.list);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, jobs_of_that_name, 0, BASE_ARRAY_LEN(finds));
	tcase_add_test(tcase, text);
	tcase_add_test(tcase, json);
}

int main(void)
{
	return suite_run("bad_list", add);
}
