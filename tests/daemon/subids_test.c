/* SPDX-License-Identifier: Apache-2.0 */

/* Subordinate uids: files good and bad, and whose a uid is at the ends of ranges. */

#include "daemon/tenant/subids.h"
#include "tests/suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int read_text(const char *text, struct subids *ret, struct diag *diag)
{
	char path[] = "/tmp/access-subids-XXXXXX";
	int fd = mkstemp(path), r;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	r = subids_read(path, ret, diag);
	unlink(path);
	return r;
}

static const struct {
	uid_t uid, owner;
} owners[] = {
    {0, 0},           {1000, 1000},    {99999, 99999},   {100000, 65201},
    {165535, 65201},  {165536, 65202}, {165537, 65202},  {165538, 165538},
    {299999, 299999}, {300000, 65201}, {300001, 300001}, {4294967293u, 4294967293u},
    {4294967294u, 0},
};

START_TEST(each_has_his_owner)
{
	struct subids subids = {.range = NULL};
	struct diag diag;

	for (size_t i = 0; i < BASE_ARRAY_LEN(owners); i++)
		ck_assert_uint_eq(subids_owner(&subids, owners[i].uid), owners[i].uid);
	ck_assert_int_eq(read_text("# ours\n\n65201:300000:1\n65202:165536:2\n"
				   "no such user:500000:10\n65201:100000:65536\n"
				   "root:4294967294:1",
				   &subids, &diag),
			 0);
	ck_assert_uint_eq(subids.n, 4);
	for (size_t i = 0; i < BASE_ARRAY_LEN(owners); i++)
		ck_assert_uint_eq(subids_owner(&subids, owners[i].uid), owners[i].owner);
	subids_fini(&subids);
	ck_assert_uint_eq(subids_owner(&subids, 100000), 100000);
}
END_TEST

static const struct {
	const char *text, *part;
} bad[] = {
    {"65201:0:10\n", ":1: write"},
    {"65201:100000:65536\n65201:1:0\n", ":2: write"},
    {"65201:100000\n", ":1: write"},
    {"65201\n", ":1: write"},
    {":100000:1\n", ":1: write"},
    {"65201:100000:1:1\n", ":1: write"},
    {"65201: 100000:1\n", ":1: write"},
    {"65201:100000:1 \n", ":1: write"},
    {"65201:-1:1\n", ":1: write"},
    {"65201:+1:1\n", ":1: write"},
    {"65201:0x10:1\n", ":1: write"},
    {"65201:4294967295:1\n", ":1: write"},
    {"65201:4294967294:2\n", ":1: write"},
    {"65201:1:4294967295\n", ":1: write"},
    {"65201:99999999999999999999999:1\n", ":1: write"},
    {"65201:100000:65536\n65202:165535:1\n", ":2: uid 165535 is in line 1, too"},
    {"65201:100000:1\n\n65202:100000:1\n", "uid 100000 is in line"},
};

START_TEST(what_is_not_clear_is_refused)
{
	struct subids subids = {.n = 77};
	struct diag diag = {""};

	ck_assert_int_eq(read_text(bad[_i].text, &subids, &diag), SUBIDS_E_BAD);
	ck_assert_msg(strstr(diag.text, bad[_i].part) != NULL, "%s", diag.text);
	ck_assert_uint_eq(subids.n, 77);
}
END_TEST

START_TEST(what_is_no_file)
{
	char line[2000] = "65201:100000:1";
	struct subids subids;
	struct diag diag;

	ck_assert_int_eq(subids_read("/nonexistent/subuid", &subids, &diag), -ENOENT);
	ck_assert_int_lt(subids_read("/", &subids, &diag), 0);
	memset(line + strlen(line), '0', sizeof(line) - strlen(line) - 1);
	ck_assert_int_eq(read_text(line, &subids, &diag), SUBIDS_E_BAD);
	ck_assert_ptr_nonnull(strstr(diag.text, ":1: write"));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, each_has_his_owner);
	tcase_add_loop_test(tcase, what_is_not_clear_is_refused, 0, BASE_ARRAY_LEN(bad));
	tcase_add_test(tcase, what_is_no_file);
}

int main(void)
{
	return suite_run("subids", add);
}
