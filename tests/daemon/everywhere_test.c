/* SPDX-License-Identifier: Apache-2.0 */

/* Which lists of folders are taken, and what lies below one. */

#include "daemon/cluster/everywhere.h"
#include "tests/suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct {
	const char *folders;
	const char *refused; /* which of them; NULL: it is taken */
} lists[] = {
    {"", NULL},
    {"/data", NULL},
    {"/data:/mnt/shared", NULL},
    {"/data/:/mnt/shared//", NULL},
    {"/data/..x/.y/z..", NULL},
    {"data", "data"},
    {"/data:shared", "shared"},
    {"/", "/"},
    {"//", "/"},
    {":", ""},
    {"/data:", ""},
    {":/data", ""},
    {"/data//set", "/data//set"},
    {"/data/../etc", "/data/../etc"},
    {"/data/..", "/data/.."},
    {"/./data", "/./data"},
    {"/data:/mnt/.", "/mnt/."},
};

START_TEST(folders_are_whole_paths)
{
	struct diag diag = {""};
	char expected[64];

	ck_assert_int_eq(everywhere_check(lists[_i].folders, &diag),
			 lists[_i].refused ? -EINVAL : 0);
	if (!lists[_i].refused)
		return;
	snprintf(expected, sizeof(expected), "cluster_paths: \"%s\" is no folder",
		 lists[_i].refused);
	ck_assert_msg(strstr(diag.text, expected), "%s: %s", lists[_i].folders, diag.text);
}
END_TEST

static const struct {
	const char *folders, *way;
	bool has;
} ways[] = {
    {"", "/data/set", false},
    {"/data", "/data", true},
    {"/data", "/data/set", true},
    {"/data/", "/data/set", true},
    {"/data", "/database", false},
    {"/data", "/mnt/data", false},
    {"/data/set", "/data", false},
    {"/data:/mnt/shared", "/mnt/shared/set", true},
    {"/data:/mnt/shared", "/mnt", false},
    {"/data", "(unreachable)/data", false},
    {"/data", "", false},
};

START_TEST(below_is_below)
{
	ck_assert_int_eq(everywhere_has(ways[_i].folders, ways[_i].way), ways[_i].has);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, folders_are_whole_paths, 0, BASE_ARRAY_LEN(lists));
	tcase_add_loop_test(tcase, below_is_below, 0, BASE_ARRAY_LEN(ways));
}

int main(void)
{
	return suite_run("everywhere", add);
}
