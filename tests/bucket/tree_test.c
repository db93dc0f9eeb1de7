/* SPDX-License-Identifier: Apache-2.0 */

/* Placeholders: what is made, what stays untouched, what goes; and names that lead elsewhere. */

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bucket/tree.h"
#include "tests/suite.h"

#define TIME (INT64_C(1700000000) * 1000000000 + 123456789)

static char folder[64];
static int folder_fd;
static struct tree *tree;
static struct diag diag;

static void setup(void)
{
	strcpy(folder, "tree_test.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	folder_fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_eq(tree_open(folder_fd, &tree, &diag), 0);
}

static int remove_one(const char *path, const struct stat *stat, int flag, struct FTW *ftw)
{
	(void)stat;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static void teardown(void)
{
	tree_close(tree);
	close(folder_fd);
	nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static int put(const char *name, uint64_t size)
{
	return tree_put(tree, name, size, TIME, &diag);
}

/* One listing of names, up to NULL; of so many bytes each. */
static void list(uint64_t size, const char *const *names)
{
	ck_assert_int_eq(tree_begin(tree), 0);
	for (; *names; names++)
		ck_assert_int_eq(put(*names, size), 0);
	ck_assert_int_eq(tree_end(tree, &diag), 0);
}
#define LIST(size, ...) list(size, (const char *const[]){__VA_ARGS__, NULL})

static bool has(const char *name, struct stat *ret)
{
	char path[2048];

	snprintf(path, sizeof(path), "data/%s", name);
	return fstatat(folder_fd, path, ret, AT_SYMLINK_NOFOLLOW) == 0;
}

static void check(const char *name, uint64_t size)
{
	struct stat stat;

	ck_assert_msg(has(name, &stat), "%s", name);
	ck_assert(S_ISREG(stat.st_mode));
	ck_assert_uint_eq(stat.st_mode & 07777, 0400);
	ck_assert_uint_eq((uint64_t)stat.st_size, size);
	ck_assert_uint_eq(stat.st_blocks, 0);
	ck_assert_int_eq(stat.st_mtim.tv_sec, TIME / 1000000000);
	ck_assert_int_eq(stat.st_mtim.tv_nsec, TIME % 1000000000);
}

static void check_none(const char *name)
{
	struct stat stat;

	ck_assert_msg(!has(name, &stat), "%s", name);
}

START_TEST(test_made)
{
	LIST(UINT64_C(1) << 40, "a", "b/c", "b/d/e", "f");
	check("a", UINT64_C(1) << 40);
	check("b/c", UINT64_C(1) << 40);
	check("b/d/e", UINT64_C(1) << 40);
	ck_assert_uint_eq(tree_counts(tree)->objects, 4);
	ck_assert_uint_eq(tree_counts(tree)->bytes, UINT64_C(4) << 40);
	ck_assert_uint_eq(tree_counts(tree)->made, 4);
}
END_TEST

/* Neither the files nor, where nothing came or went, the folders. */
START_TEST(test_untouched)
{
	struct stat file, one, root, now;

	LIST(5, "a", "b/c", "b/d", "e/f");
	ck_assert(has("b/c", &file) && has("b", &one) && has("", &root));
	usleep(20000);
	LIST(5, "a", "b/c", "b/d", "e/g");
	ck_assert_uint_eq(tree_counts(tree)->made, 1);
	ck_assert_uint_eq(tree_counts(tree)->removed, 1);
	ck_assert(has("b/c", &now));
	ck_assert_uint_eq(now.st_ino, file.st_ino);
	ck_assert(has("b", &now));
	ck_assert_int_eq(base_compare_times(&now.st_mtim, &one.st_mtim), 0);
	ck_assert(has("", &now));
	ck_assert_int_eq(base_compare_times(&now.st_mtim, &root.st_mtim), 0);
}
END_TEST

/* Who has one open sees what it was. */
START_TEST(test_replaced)
{
	struct stat stat, now;
	int fd;

	LIST(5, "a");
	ck_assert(has("a", &stat));
	fd = openat(folder_fd, "data/a", O_PATH | O_CLOEXEC);
	LIST(6, "a");
	check("a", 6);
	ck_assert_int_eq(fstat(fd, &now), 0);
	ck_assert_uint_eq(now.st_ino, stat.st_ino);
	ck_assert_int_eq(now.st_size, 5);
	close(fd);
}
END_TEST

START_TEST(test_removed)
{
	LIST(5, "a", "b/c/d", "b/e", "f/g");
	LIST(5, "b/e");
	check("b/e", 5);
	check_none("a");
	check_none("b/c");
	check_none("f");
	ck_assert_uint_eq(tree_counts(tree)->removed, 3);
	LIST(5, "b"); /* what was a folder */
	check("b", 5);
	LIST(5, "b/e/f"); /* and again */
	check("b/e/f", 5);
}
END_TEST

START_TEST(test_hostile)
{
	char longest[300], deep[1100];

	memset(longest, 'x', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 2 ? '/' : 'x';
	deep[sizeof(deep) - 1] = '\0';
	LIST(5, "good", "", ".", "..", "../x", "a/../../x", "/etc/x", "a//b", "a/", longest, deep);
	ck_assert_uint_eq(tree_counts(tree)->objects, 1);
	ck_assert_uint_eq(tree_counts(tree)->skipped, 10);
	ck_assert_ptr_nonnull(tree_counts(tree)->why);
	check("good", 5);
	ck_assert_int_ne(faccessat(folder_fd, "x", F_OK, 0), 0);
	/* The deepest that may be. */
	deep[1023] = '\0';
	LIST(5, deep);
	ck_assert_uint_eq(tree_counts(tree)->objects, 1);
	check(deep, 5);
	LIST(5, "good");
	check_none("x");
	/* Sizes and times that no file can have. */
	ck_assert_int_eq(tree_begin(tree), 0);
	ck_assert_int_eq(put("huge", UINT64_MAX), 0);
	ck_assert_int_eq(tree_put(tree, "early", 1, -1, &diag), 0);
	ck_assert_uint_eq(tree_counts(tree)->skipped, 2);
}
END_TEST

/* Links that somebody laid there lead nowhere. */
START_TEST(test_links)
{
	struct stat stat;

	ck_assert_int_eq(mkdirat(folder_fd, "elsewhere", 0700), 0);
	ck_assert_int_eq(symlinkat("../elsewhere", folder_fd, "data/a"), 0);
	ck_assert_int_eq(symlinkat("../elsewhere/c", folder_fd, "data/b"), 0);
	LIST(5, "a/x", "b");
	check("a/x", 5);
	check("b", 5);
	ck_assert_int_ne(fstatat(folder_fd, "elsewhere/x", &stat, 0), 0);
	ck_assert_int_ne(fstatat(folder_fd, "elsewhere/c", &stat, 0), 0);
	ck_assert_int_eq(fstatat(folder_fd, "elsewhere", &stat, 0), 0);
}
END_TEST

/* An object whose name with "/" others begin with, in both orders. */
START_TEST(test_both)
{
	ck_assert_int_eq(tree_begin(tree), 0);
	ck_assert_int_eq(put("a", 1), 0);
	ck_assert_int_eq(put("a/b", 1), -EEXIST);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"a\""));
	ck_assert_int_eq(tree_begin(tree), 0);
	ck_assert_int_eq(put("c/d/e", 1), 0);
	ck_assert_int_eq(put("c/d", 1), -EEXIST);
	ck_assert_ptr_nonnull(strstr(diag.text, "\"c/d\""));
}
END_TEST

/* One without bytes stands for the folder, in both orders; what was below it and is no more goes. */
START_TEST(test_markers)
{
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(tree_begin(tree), 0);
		ck_assert_int_eq(put("a", 0), 0);
		ck_assert_int_eq(put("a-b", 1), 0);
		ck_assert_int_eq(put(i ? "a/new" : "a/old", 1), 0);
		ck_assert_int_eq(put("a/x/y", 2), 0);
		ck_assert_int_eq(put("a/x", 0), 0);
		ck_assert_int_eq(put("c", 0), 0); /* is one, by itself */
		ck_assert_int_eq(tree_end(tree, &diag), 0);
		check(i ? "a/new" : "a/old", 1);
		check_none(i ? "a/old" : "a/new");
		check("a/x/y", 2);
		check("a-b", 1);
		check("c", 0);
		ck_assert_uint_eq(tree_counts(tree)->objects, 4);
	}
}
END_TEST

/* As an access-bucket finds it that was started later; and one whose listing was broken off. */
START_TEST(test_later)
{
	LIST(5, "a", "b/c");
	tree_close(tree);
	ck_assert_int_eq(tree_open(folder_fd, &tree, &diag), 0);
	ck_assert_int_eq(tree_begin(tree), 0);
	ck_assert_int_eq(put("d", 5), 0);
	ck_assert_int_eq(tree_begin(tree), 0);
	check("a", 5);
	LIST(5, "a", "b/c");
	ck_assert_uint_eq(tree_counts(tree)->made, 0);
	check_none("d");
}
END_TEST

/* More than fit into the first table of sums. */
START_TEST(test_many)
{
	char name[32];

	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(tree_begin(tree), 0);
		for (unsigned k = 0; k < 5000; k++) {
			snprintf(name, sizeof(name), "%u/%u", k % 7, k);
			ck_assert_int_eq(put(name, k), 0);
		}
		ck_assert_int_eq(tree_end(tree, &diag), 0);
		ck_assert_uint_eq(tree_counts(tree)->made, i ? 0 : 5000);
		ck_assert_uint_eq(tree_counts(tree)->removed, 0);
	}
}
END_TEST

static void add(TCase *all)
{
	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, test_made);
	tcase_add_test(all, test_untouched);
	tcase_add_test(all, test_replaced);
	tcase_add_test(all, test_removed);
	tcase_add_test(all, test_hostile);
	tcase_add_test(all, test_links);
	tcase_add_test(all, test_both);
	tcase_add_test(all, test_markers);
	tcase_add_test(all, test_later);
	tcase_add_test(all, test_many);
}

int main(void)
{
	return suite_run("tree", add);
}
