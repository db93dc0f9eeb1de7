/* SPDX-License-Identifier: Apache-2.0 */

/* The folder that shards are unpacked to goes, and nothing that has its name by then. */

#include "convert/convert.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/patience.h"

static char folder[] = "/tmp/access-unpack.XXXXXX";

static void make(const char *name)
{
	int fd;

	ck_assert_int_eq(mkdirat(AT_FDCWD, name, 0700), 0);
	ck_assert_int_eq(chdir(name), 0);
	fd = open("shard.tar", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	base_close(&fd);
	ck_assert_int_eq(chdir(".."), 0);
}

static struct convert_unpacked unpacked_of(const char *name)
{
	struct convert_unpacked ret = {.path = realpath(name, NULL)};
	struct stat st;

	ck_assert_ptr_nonnull(ret.path);
	ck_assert_int_eq(stat(name, &st), 0);
	ret.device = st.st_dev;
	ret.inode = st.st_ino;
	return ret;
}

START_TEST(it_goes)
{
	struct convert_unpacked unpacked;

	make("ours");
	unpacked = unpacked_of("ours");
	convert_unpack_remove(&unpacked);
	ck_assert_int_lt(access("ours", F_OK), 0);
	ck_assert_ptr_null(unpacked.path);
	convert_unpack_remove(&unpacked); /* there is none */
}
END_TEST

START_TEST(a_link_or_another_folder_in_its_place_stays)
{
	struct convert_unpacked unpacked;

	make("ours");
	make("another");
	unpacked = unpacked_of("ours");
	ck_assert_int_eq(rename("ours", "away"), 0);
	if (_i)
		ck_assert_int_eq(symlink(_i == 1 ? "another" : "away", "ours"), 0);
	else
		ck_assert_int_eq(rename("another", "ours"), 0);
	convert_unpack_remove(&unpacked);
	ck_assert_int_eq(access("ours/shard.tar", F_OK), 0);
	ck_assert_int_eq(access("away/shard.tar", F_OK), 0);
}
END_TEST

static void set_up(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_assert_int_eq(chdir(folder), 0);
}

static void tear_down(void)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

int main(void)
{
	Suite *suite = suite_create("unpack");
	TCase *tcase = tcase_create("unpack");
	SRunner *runner;
	int failed;

	tcase_set_timeout(tcase, PATIENCE_S);
	tcase_add_checked_fixture(tcase, set_up, tear_down);
	tcase_add_test(tcase, it_goes);
	tcase_add_loop_test(tcase, a_link_or_another_folder_in_its_place_stays, 0, 3);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
