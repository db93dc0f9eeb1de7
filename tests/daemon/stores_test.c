/* SPDX-License-Identifier: Apache-2.0 */

/* Shares of the disk: never more than there is, never less than what is sure. Stores of users who are gone:
 * which are deleted, and what is never touched. */

#include "daemon/cache/stores.h"
#include "daemon/cache/prune.h"
#include "tests/storage/tree.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

/* ---- shares ---- */

static const struct share_case {
	uint64_t size, most;
	unsigned users, n; /* n others have given */
	uint64_t given, sure, share;
} share_cases[] = {
    /* our own user has all of it */
    {1000, 1000, 1, 0, 0, 250, 1000},
    {1000, 1000, 1, 0, 400, 250, 600},
    /* three have a quarter, the last one is for all others */
    {1200, 300, 3, 0, 0, 100, 300},
    {1200, 300, 3, 1, 300, 100, 300},
    {1200, 300, 3, 2, 600, 100, 300},
    {3300, 825, 33, 0, 0, 25, 825},
    {3300, 825, 33, 2, 1650, 25, 825},
    {3300, 825, 33, 3, 2475, 25, 100},
    {3300, 825, 33, 4, 2575, 25, 25},
    {3300, 825, 33, 32, 3275, 25, 25},
    /* what one may have at most is less than what would be sure */
    {1000, 10, 4, 0, 0, 10, 10},
    /* equal shares */
    {1000, 250, 4, 3, 750, 62, 250},
    /* nothing is left, as the parameters were others before */
    {1000, 250, 4, 4, 1000, 62, 0},
    {1000, 250, 4, 4, 5000, 62, 0},
    {0, 0, 4, 0, 0, 0, 0},
};

/* Who has some with another group. */
static const struct share_case his_cases[] = {
    /* most of his share is there, then it is spent, then he has what is left of what is sure */
    {1200, 300, 3, 0, 200, 100, 100},
    {1200, 300, 3, 1, 600, 100, 0},
    {3300, 825, 33, 3, 2575, 25, 0},
    {3300, 825, 33, 31, 3260, 25, 15},
};

START_TEST(groups_of_a_user_have_one_share)
{
	static const uint64_t his[] = {200, 300, 100, 10};
	const struct share_case *c = &his_cases[_i];
	const struct stores_rule rule = {
	    .size = c->size, .most = c->most, .users = c->users, .his = his[_i]};

	ck_assert_uint_eq(stores_share(&rule, c->given, c->n), c->share);
}
END_TEST

START_TEST(shares)
{
	const struct share_case *c = &share_cases[_i];
	const struct stores_rule rule = {.size = c->size, .most = c->most, .users = c->users};

	ck_assert_uint_eq(stores_sure(&rule), c->sure);
	ck_assert_uint_eq(stores_share(&rule, c->given, c->n), c->share);
}
END_TEST

/* Whoever comes and goes, in any order. */
START_TEST(nobody_gets_less_than_is_sure)
{
	struct stores_rule rule = {.users = 9};
	uint64_t draws = 12345;

	for (unsigned turn = 0; turn < 20000; turn++) {
		static uint64_t has[9];
		uint64_t given = 0;
		unsigned n = 0, who;

		if (turn % 500 == 0) { /* other parameters, all are gone */
			memset(has, 0, sizeof(has));
			rule.size = 1000 + turn * UINT64_C(1048573);
			rule.most = rule.size / (1 + turn / 500 % 12);
		}
		draws = draws * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		who = (unsigned)(draws >> 33) % 9;
		for (unsigned i = 0; i < 9; i++) {
			given += has[i];
			n += has[i] > 0;
		}
		ck_assert_uint_le(given, rule.size);
		if (has[who]) {
			has[who] = 0;
			continue;
		}
		has[who] = stores_share(&rule, given, n);
		ck_assert_uint_ge(has[who], stores_sure(&rule));
		ck_assert_uint_le(has[who], rule.most);
	}
}
END_TEST

/* ---- stores that rest ---- */

static struct tree tree;

static void begin(void)
{
	tree_new(&tree);
}

static void end(void)
{
	tree_remove(&tree);
}

static void put(const char *path, size_t bytes)
{
	int fd;

	tree_file(&tree, path, bytes);
	fd = openat(tree.fd, path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fsync(fd), 0); /* a file system may take no block before */
	close(fd);
}

/* A store of that domain, used then. */
static void put_store(const char *key, size_t bytes, int64_t used_s)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/store/cache.mdb", key);
	put(path, bytes);
	snprintf(path, sizeof(path), "%s/store/cache.mdb-lock", key);
	put(path, 8192);
	tree_mtime(&tree, key, used_s, 5);
}

static bool is_there(const char *path)
{
	struct stat status;

	return fstatat(tree.fd, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool is_served(void *arg, const char *key)
{
	return arg && strcmp(arg, key) == 0;
}

static struct prune_report prune(uint64_t most, const char *served)
{
	struct prune_report report;

	ck_assert_int_eq(
	    prune_stores(tree.path, most, is_served, (void *)(uintptr_t)served, &report), 0);
	return report;
}

/* Four, of which the second and third were used longest ago. */
static void put_four(void)
{
	put_store("user:1:1", MIB, 2000);
	put_store("user:2:2", MIB, 1000);
	put_store("public", MIB, 1500);
	put_store("user:4294967295:7", MIB, 3000);
}

START_TEST(what_fits_stays)
{
	struct prune_report report;

	put_four();
	report = prune(UINT64_MAX, NULL);
	ck_assert_uint_eq(report.stores + report.bytes, 0);
	ck_assert_uint_ge(report.resting, 4 * MIB);
	ck_assert_uint_eq(prune(report.resting, NULL).stores, 0);
	ck_assert(is_there("user:2:2/store/cache.mdb"));
}
END_TEST

START_TEST(those_unused_longest_go_first)
{
	uint64_t all;
	struct prune_report report;

	put_four();
	all = prune(UINT64_MAX, NULL).resting;
	report = prune(all - 1, NULL);
	ck_assert_uint_eq(report.stores, 1);
	ck_assert_uint_ge(report.bytes, MIB);
	ck_assert_uint_eq(report.resting + report.bytes, all);
	ck_assert(!is_there("user:2:2") && is_there("public"));
	report = prune(3 * MIB, NULL);
	ck_assert_uint_eq(report.stores, 1);
	ck_assert(!is_there("public") && is_there("user:1:1/store/cache.mdb"));
	ck_assert_uint_eq(prune(0, NULL).resting, 0);
	ck_assert(!is_there("user:1:1") && !is_there("user:4294967295:7"));
}
END_TEST

START_TEST(one_that_is_served_is_not_looked_at)
{
	struct prune_report report;

	put_four();
	report = prune(0, "user:2:2");
	ck_assert_uint_eq(report.stores, 3);
	ck_assert_uint_eq(report.resting, 0);
	ck_assert(is_there("user:2:2/store/cache.mdb") &&
		  is_there("user:2:2/store/cache.mdb-lock"));
}
END_TEST

/* By another accessd, or a reader that has not ended yet. */
START_TEST(one_that_is_open_stays)
{
	struct prune_report report;
	int fd;

	put_four();
	fd = openat(tree.fd, "user:2:2/store", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(flock(fd, LOCK_EX | LOCK_NB), 0);
	report = prune(0, NULL);
	ck_assert_uint_eq(report.stores, 3);
	ck_assert_uint_ge(report.resting, MIB);
	ck_assert(is_there("user:2:2/store/cache.mdb"));
	close(fd);
	ck_assert_uint_eq(prune(0, NULL).stores, 1);
}
END_TEST

START_TEST(what_is_not_ours_stays)
{
	static const char *const others[] = {
	    "user:1:1x/store/cache.mdb", "user:01:1/store/cache.mdb", "user:-1:1/store/cache.mdb",
	    "user:1/store/cache.mdb",    "lost+found/cache.mdb",      "cache.mdb",
	    "user:1:1/cache.mdb",        "user:1:1/store/cache.mdb2", "user:1:1/store/mine"};
	struct prune_report report;

	put_store("user:1:1", MIB, 1000);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(others); i++)
		put(others[i], 65536);
	report = prune(0, NULL);
	ck_assert_uint_eq(report.stores, 1);
	ck_assert_uint_eq(report.resting, 0);
	ck_assert(!is_there("user:1:1/store/cache.mdb"));
	for (unsigned i = 0; i < BASE_ARRAY_LEN(others); i++)
		ck_assert_msg(is_there(others[i]), "%s", others[i]);
}
END_TEST

/* A user's reader may have made what it liked in its folder, and somebody else a link beside it. */
START_TEST(links_and_folders_are_not_followed)
{
	put("precious/store/cache.mdb", MIB);
	tree_link(&tree, "precious", "user:8:8");
	tree_folder(&tree, "user:9:9");
	tree_link(&tree, "../precious/store", "user:9:9/store");
	put_store("user:1:1", MIB, 1000);
	tree_link(&tree, "../../precious/store/cache.mdb", "user:1:1/store/cache.mdb-damaged");
	put("user:2:2/store/cache.mdb/deep", MIB);
	ck_assert_uint_eq(prune(0, NULL).resting, 0);
	ck_assert(!is_there("user:1:1/store/cache.mdb"));
	ck_assert(is_there("precious/store/cache.mdb") && is_there("user:8:8") &&
		  is_there("user:9:9/store") && is_there("user:2:2/store/cache.mdb/deep"));
	ck_assert(is_there("user:1:1/store/cache.mdb-damaged"));
}
END_TEST

/* Only root can make it so. */
START_TEST(anothers_folder_stays)
{
	struct prune_report report;

	put_store("user:1:1", MIB, 1000);
	if (fchownat(tree.fd, "user:1:1", 65201, 65201, 0) < 0)
		return;
	report = prune(0, NULL);
	ck_assert_uint_eq(report.stores + report.resting, 0);
	ck_assert(is_there("user:1:1/store/cache.mdb"));
}
END_TEST

START_TEST(without_a_folder_it_says_so)
{
	struct prune_report report;
	char path[sizeof(tree.path) + 16];

	snprintf(path, sizeof(path), "%s/nowhere", tree.path);
	ck_assert_int_lt(prune_stores(path, 0, is_served, NULL, &report), 0);
	put("file", 10);
	snprintf(path, sizeof(path), "%s/file", tree.path);
	ck_assert_int_lt(prune_stores(path, 0, is_served, NULL, &report), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_loop_test(tcase, shares, 0, BASE_ARRAY_LEN(share_cases));
	tcase_add_loop_test(tcase, groups_of_a_user_have_one_share, 0, BASE_ARRAY_LEN(his_cases));
	tcase_add_test(tcase, nobody_gets_less_than_is_sure);
	tcase_add_test(tcase, what_fits_stays);
	tcase_add_test(tcase, those_unused_longest_go_first);
	tcase_add_test(tcase, one_that_is_served_is_not_looked_at);
	tcase_add_test(tcase, one_that_is_open_stays);
	tcase_add_test(tcase, what_is_not_ours_stays);
	tcase_add_test(tcase, links_and_folders_are_not_followed);
	tcase_add_test(tcase, anothers_folder_stays);
	tcase_add_test(tcase, without_a_folder_it_says_so);
}

int main(void)
{
	return suite_run("stores", add);
}
