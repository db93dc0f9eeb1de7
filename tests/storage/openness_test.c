/* SPDX-License-Identifier: Apache-2.0 */

/* What is open to everybody: modes, lists, ways, file systems. Links and whole trees:
 * tests/scenarios/tenants_test.c. */

#include "storage/openness.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static char root[128];
static int root_fd = -1;

static void setup(void)
{
	const char *parent = getenv("TMPDIR");
	int fd;

	snprintf(root, sizeof(root), "%.96s/openness-XXXXXX", parent ? parent : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(chmod(root, 0755), 0);
	root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(root_fd, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_ge(fd, 0);
	close(fd);
}

static void teardown(void)
{
	fchmod(root_fd, 0700);
	unlinkat(root_fd, "file", 0);
	base_close(&root_fd);
	rmdir(root);
}

static bool folder_is_open(int fd)
{
	struct stat st;

	ck_assert_int_eq(fstat(fd, &st), 0);
	return openness_of_folder(fd, &st);
}

static bool file_is_open(void)
{
	struct stat st;

	ck_assert_int_eq(fstatat(root_fd, "file", &st, AT_SYMLINK_NOFOLLOW), 0);
	return openness_of_file(root_fd, "file", &st);
}

/* The scratch folder may lie on a file system that is never open; then nothing of it is. */
static bool is_plain(void)
{
	fchmod(root_fd, 0755);
	return folder_is_open(root_fd);
}

START_TEST(modes_of_folders)
{
	static const struct {
		mode_t mode;
		bool is_open;
	} cases[] = {{0755, true},  {0555, true},  {01777, true}, {0711, false}, {0750, false},
		     {0705, false}, {0754, false}, {0055, false}, {0700, false}, {0744, false}};
	bool plain = is_plain();

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		ck_assert_int_eq(fchmod(root_fd, cases[i].mode), 0);
		ck_assert_msg(folder_is_open(root_fd) == (plain && cases[i].is_open), "%04o",
			      (unsigned)cases[i].mode);
	}
}
END_TEST

START_TEST(modes_of_files)
{
	static const struct {
		mode_t mode;
		bool is_open;
	} cases[] = {{0644, true},  {0444, true},  {0777, true},
		     {0640, false}, {0604, false}, {0044, false}};

	for (size_t i = 0; i < BASE_ARRAY_LEN(cases); i++) {
		ck_assert_int_eq(fchmodat(root_fd, "file", cases[i].mode, 0), 0);
		ck_assert_msg(file_is_open() == cases[i].is_open, "%04o", (unsigned)cases[i].mode);
	}
}
END_TEST

/* user::rw- user:65111:--- group::r-- mask::r-- other::r-- : others and group see no change in the mode. */
static const unsigned char one_user_shut_out[] = {
    2,  0, 0, 0,                          /* version */
    1,  0, 6, 0, 0xff, 0xff, 0xff, 0xff,  /* owner */
    2,  0, 0, 0, 0x57, 0xfe, 0,    0,     /* user 65111: nothing */
    4,  0, 4, 0, 0xff, 0xff, 0xff, 0xff,  /* group */
    16, 0, 4, 0, 0xff, 0xff, 0xff, 0xff,  /* mask */
    32, 0, 4, 0, 0xff, 0xff, 0xff, 0xff}; /* others */

START_TEST(a_list_shuts_out)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/file", root);
	ck_assert(file_is_open());
	if (setxattr(path, "system.posix_acl_access", one_user_shut_out, sizeof(one_user_shut_out),
		     0) < 0) {
		ck_assert_int_eq(errno, EOPNOTSUPP);
		puts("skipped: no lists on this file system");
		return;
	}
	ck_assert(!file_is_open());
	ck_assert_int_eq(removexattr(path, "system.posix_acl_access"), 0);
	ck_assert(file_is_open());
}
END_TEST

START_TEST(the_way_counts)
{
	char path[192];
	int fd;

	snprintf(path, sizeof(path), "%s/in", root);
	ck_assert_int_eq(mkdir(path, 0755), 0);
	ck_assert_int_eq(chmod(path, 0755), 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(openness_of_way(fd), openness_of_way(root_fd));
	ck_assert_int_eq(chmod(root, 0711), 0);
	ck_assert(!openness_of_way(fd));
	ck_assert_int_eq(chmod(root, 0755), 0);
	ck_assert_int_eq(rmdir(path), 0);
	ck_assert(!openness_of_way(fd)); /* it has no way any more */
	close(fd);
}
END_TEST

/* Of a converted data set, the file is the end of it. */
START_TEST(the_way_to_a_file_counts)
{
	const int fd = openat(root_fd, "file", O_RDWR | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(openness_of_way(fd), openness_of_way(root_fd));
	ck_assert_int_eq(fchmod(fd, 0640), 0);
	ck_assert(!openness_of_way(fd));
	ck_assert_int_eq(fchmod(fd, 0644), 0);
	ck_assert_int_eq(chmod(root, 0711), 0);
	ck_assert(!openness_of_way(fd));
	ck_assert_int_eq(chmod(root, 0755), 0);
	ck_assert_int_eq(ftruncate(fd, 1 << 30), 0); /* of which nothing is there */
	ck_assert(!openness_of_way(fd));
	close(fd);
}
END_TEST

START_TEST(files_of_the_kernel_are_never_open)
{
	int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert(!folder_is_open(fd));
	close(fd);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, modes_of_folders);
	tcase_add_test(tcase, modes_of_files);
	tcase_add_test(tcase, a_list_shuts_out);
	tcase_add_test(tcase, the_way_counts);
	tcase_add_test(tcase, the_way_to_a_file_counts);
	tcase_add_test(tcase, files_of_the_kernel_are_never_open);
}

int main(void)
{
	return suite_run("openness", add);
}
