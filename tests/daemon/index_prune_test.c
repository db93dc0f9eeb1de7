/* SPDX-License-Identifier: Apache-2.0 */

/* Files of stored indexes: whose they are, which are deleted to make room for another, and what is never touched. */

#include "daemon/cache/index_prune.h"
#include "tests/storage/tree.h"
#include "tests/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static struct tree tree;

static void begin(void)
{
	tree_new(&tree);
}

static void end(void)
{
	tree_remove(&tree);
}

/* An index of the domain of that key, used then; its name is good until the eighth next call. */
static const char *put(const char *key, unsigned number, size_t bytes, int64_t used_s)
{
	static char names[8][INDEX_PRUNE_NAME_MAX];
	static unsigned next;
	const struct hash_id id = {.bytes = {(uint8_t)number, 0xab}};
	char *name = names[next++ % 8];

	index_prune_name(key, &id, name);
	tree_file(&tree, name, bytes);
	tree_mtime(&tree, name, used_s, 5);
	return name;
}

static bool is_there(const char *name)
{
	struct stat status;

	return fstatat(tree.fd, name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static int use(const char *name)
{
	int fd = openat(tree.fd, name, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert(index_prune_hold(fd));
	return fd;
}

static int make_room(const char *key, uint64_t size, uint64_t most, uint64_t bytes)
{
	const struct index_prune_rule rule = {.size = size, .most = most};

	return index_prune(tree.path, key, &rule, bytes);
}

START_TEST(what_fits_stays)
{
	const char *one = put("user:7:7", 1, 100, 1), *two = put("public", 2, 100, 2);
	const char *three = put("", 3, 100, 3);

	ck_assert_int_eq(make_room("user:7:7", 400, 200, 100), 0);
	ck_assert(is_there(one) && is_there(two) && is_there(three));
}
END_TEST

START_TEST(who_makes_many_loses_his_own)
{
	const char *berts[] = {put("user:7:7", 1, 100, 30), put("user:7:7", 2, 100, 10),
			       put("user:7:8", 3, 100, 20)}; /* newgrp makes no other user */
	const char *annas = put("user:77:7", 4, 100, 1), *own = put("", 5, 100, 2);

	ck_assert_int_eq(make_room("user:7:7", 10000, 250, 100), 0);
	ck_assert(is_there(berts[0]) && !is_there(berts[1]) && !is_there(berts[2]));
	ck_assert(is_there(annas) && is_there(own));
	ck_assert_int_eq(make_room("user:7:9", 10000, 150, 100), 0);
	ck_assert(!is_there(berts[0]) && is_there(annas) && is_there(own));
}
END_TEST

START_TEST(those_unused_longest_go_first)
{
	const char *own = put("", 1, 100, 20), *annas = put("user:1:1", 2, 100, 10);
	const char *gone = put("user:9:9", 3, 100, 15), *berts = put("user:7:7", 4, 100, 30);

	ck_assert_int_eq(make_room("user:7:7", 300, 300, 100), 0);
	ck_assert(!is_there(annas) && !is_there(gone) && is_there(own) && is_there(berts));
}
END_TEST

START_TEST(what_is_in_use_stays_and_counts)
{
	const char *one = put("user:7:7", 1, 100, 1), *two = put("user:7:7", 2, 100, 2);
	const int fd = use(one);

	ck_assert_int_eq(make_room("user:7:7", 1000, 250, 150), 0);
	ck_assert(is_there(one) && !is_there(two));
	ck_assert_int_eq(make_room("user:7:7", 1000, 250, 151), -ENOSPC);
	ck_assert_int_eq(make_room("user:1:1", 250, 250, 151), -ENOSPC);
	ck_assert(is_there(one));
	close(fd);
	ck_assert_int_eq(make_room("user:7:7", 1000, 250, 151), 0);
	ck_assert(!is_there(one));
}
END_TEST

/* One that is being written, and one that was set aside while it is in use: both of that user. */
START_TEST(temporary_files_count_while_they_are_locked)
{
	char writes[INDEX_PRUNE_NAME_MAX], old[INDEX_PRUNE_NAME_MAX];
	int write_fd, old_fd;

	index_prune_temporary("user:7:7", 1, false, writes);
	index_prune_temporary("user:7:7", 2, true, old);
	tree_file(&tree, writes, 100);
	tree_file(&tree, old, 100);
	write_fd = openat(tree.fd, writes, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(flock(write_fd, LOCK_EX | LOCK_NB), 0);
	old_fd = use(old);
	ck_assert_int_eq(make_room("user:7:7", 1000, 250, 60), -ENOSPC);
	ck_assert_int_eq(make_room("user:1:1", 250, 250, 60), -ENOSPC);
	ck_assert(is_there(writes) && is_there(old));
	close(old_fd);
	ck_assert_int_eq(make_room("user:7:7", 1000, 250, 60), 0);
	ck_assert(is_there(writes) && !is_there(old));
	close(write_fd);
	ck_assert_int_eq(make_room("", 1000, 250, 0),
			 0); /* no room is needed: they go all the same */
	ck_assert(!is_there(writes));
}
END_TEST

START_TEST(what_is_too_large_costs_nobody_anything)
{
	const char *one = put("user:7:7", 1, 100, 1);

	ck_assert_int_eq(make_room("user:7:7", 1000, 250, 251), -ENOSPC);
	ck_assert_int_eq(make_room("user:7:7", 0, 0, 1), -ENOSPC);
	ck_assert(is_there(one));
}
END_TEST

START_TEST(what_is_not_ours_stays)
{
	const char *link =
	    "user:7:7-aa00000000000000000000000000000000000000000000000000000000000000";

	tree_file(&tree, "notes", 1000);
	tree_file(&tree, "user:7:7-short", 1000);
	tree_folder(&tree, "tmp-folder");
	tree_link(&tree, "notes", link);
	ck_assert_int_eq(make_room("user:7:7", 100, 100, 100), 0);
	ck_assert(is_there("notes") && is_there("user:7:7-short") && is_there("tmp-folder") &&
		  is_there(link));
	ck_assert_int_lt(index_prune("/nowhere", "", &(struct index_prune_rule){100, 100}, 1), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, what_fits_stays);
	tcase_add_test(tcase, who_makes_many_loses_his_own);
	tcase_add_test(tcase, those_unused_longest_go_first);
	tcase_add_test(tcase, what_is_in_use_stays_and_counts);
	tcase_add_test(tcase, temporary_files_count_while_they_are_locked);
	tcase_add_test(tcase, what_is_too_large_costs_nobody_anything);
	tcase_add_test(tcase, what_is_not_ours_stays);
}

int main(void)
{
	return suite_run("index_prune", add);
}
