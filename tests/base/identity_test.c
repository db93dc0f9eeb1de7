/* SPDX-License-Identifier: Apache-2.0 */

/* Identities: their texts for everybody; becoming one, which needs root, in children. */

#include "base/identity.h"

#include <check.h>
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOMEBODY 65123 /* in no user database */

START_TEST(texts)
{
	static const struct identity cases[] = {
	    {0, 0, false}, {1000, 100, true}, {4294967294U, 4294967294U, true}};
	char text[IDENTITY_TEXT_MAX];

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		struct identity again = {7, 7, false};

		identity_format(&cases[i], text);
		ck_assert_int_eq(identity_parse(text, &again), 0);
		ck_assert_uint_eq(again.uid, cases[i].uid);
		ck_assert_uint_eq(again.gid, cases[i].gid);
		ck_assert_int_eq(again.has_groups, cases[i].has_groups);
	}
}
END_TEST

START_TEST(nonsense_is_refused)
{
	static const char *const cases[] = {
	    "",          "1",           "1:",           ":1",           "1:2:",
	    "1:2:group", "1:2:groups,", "-1:2",         "1:-2",         "a:b",
	    " 1:2",      "1 :2",        "4294967295:1", "1:4294967295", "1:99999999999999999999"};
	struct identity kept = {7, 8, true};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++)
		ck_assert_msg(identity_parse(cases[i], &kept) == -EINVAL, "\"%s\"", cases[i]);
	ck_assert_uint_eq(kept.uid, 7);
	ck_assert_uint_eq(kept.gid, 8);
}
END_TEST

START_TEST(users)
{
	struct identity user = {7, 7, true};

	ck_assert_int_eq(identity_of_user("root", &user), 0);
	ck_assert_uint_eq(user.uid, 0);
	ck_assert(!user.has_groups);
	ck_assert_int_eq(identity_of_user("65123", &user), 0);
	ck_assert_uint_eq(user.uid, SOMEBODY);
	ck_assert_uint_eq(user.gid, SOMEBODY);
	ck_assert_int_lt(identity_of_user("no such user", &user), 0);
	ck_assert_int_lt(identity_of_user("65123x", &user), 0);
}
END_TEST

/* Runs fn in a child: its exit status. */
static int in_child(int (*fn)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(fn());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int become_somebody(void)
{
	const struct identity somebody = {SOMEBODY, SOMEBODY + 1, true};
	gid_t groups[] = {0, 1, 2};

	if (setgroups(3, groups) < 0 || identity_become(&somebody))
		return 1;
	if (getuid() != SOMEBODY || getegid() != SOMEBODY + 1 || getgroups(0, NULL) != 0)
		return 2;
	if (setuid(0) == 0 || seteuid(0) == 0 || setgid(0) == 0 || setgroups(1, groups) == 0)
		return 3;
	if (identity_can_switch() || prctl(PR_GET_DUMPABLE) != 0 ||
	    prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 4;
	return 0;
}

/* As accessd does it: first its own user with three capabilities, then a tenant. */
static int become_in_two_steps(void)
{
	const struct identity own = {SOMEBODY, SOMEBODY, false};
	const struct identity tenant = {SOMEBODY + 1, SOMEBODY + 1, true};

	if (identity_keep_switching(&own) || getuid() != SOMEBODY || !identity_can_switch())
		return 1;
	if (chown("/", SOMEBODY, SOMEBODY) == 0)
		return 2; /* no other capability was kept */
	if (identity_become(&tenant) || getuid() != SOMEBODY + 1)
		return 3;
	return setuid(SOMEBODY) == 0 || setuid(0) == 0 || identity_can_switch() ? 4 : 0;
}

static int dropping_is_for_good(void)
{
	const struct identity own = {SOMEBODY, SOMEBODY, false};

	if (identity_keep_switching(&own) || identity_drop_switching() || identity_can_switch())
		return 1;
	return setuid(SOMEBODY + 1) == 0 ? 2 : 0;
}

/* Root that becomes root has root's files and none of its powers. */
static int root_without_powers(void)
{
	const struct identity root = {0, 0, true};

	if (identity_become(&root) || getuid() != 0)
		return 1;
	return setuid(SOMEBODY) == 0 || chown("/", SOMEBODY, SOMEBODY) == 0 ? 2 : 0;
}

static int not_without_capabilities(void)
{
	const struct identity own = {SOMEBODY, SOMEBODY, false}, other = {SOMEBODY + 1, 1, false};

	if (identity_become(&own))
		return 1;
	return identity_become(&other) ? 0 : 2;
}

START_TEST(becoming)
{
	ck_assert_int_eq(in_child(become_somebody), 0);
	ck_assert_int_eq(in_child(become_in_two_steps), 0);
	ck_assert_int_eq(in_child(dropping_is_for_good), 0);
	ck_assert_int_eq(in_child(root_without_powers), 0);
	ck_assert_int_eq(in_child(not_without_capabilities), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("identity");
	TCase *tcase = tcase_create("identity");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, texts);
	tcase_add_test(tcase, nonsense_is_refused);
	tcase_add_test(tcase, users);
	if (identity_can_switch())
		tcase_add_test(tcase, becoming);
	else
		printf("not tested, becoming: needs SETUID, SETGID and KILL\n");
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
