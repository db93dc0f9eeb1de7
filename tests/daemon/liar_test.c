/* SPDX-License-Identifier: Apache-2.0 */

/* An accessd whose reader or worker parent was captured (liar.c): who lies is ended and replaced, who floods
 * holds nobody up, and no number of theirs becomes another one on its way. */

#include "tests/daemon/raw.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_script(const char *program, const char *command)
{
	const char *path = rig_path("liars/%s", program);
	FILE *file = fopen(path, "w");

	ck_assert_ptr_nonnull(file);
	fprintf(file, "#!/bin/sh\nexec %s\n", command);
	fclose(file);
	ck_assert_int_eq(chmod(path, 0755), 0);
}

/* An accessd in which that program tells that lie. */
static void start_with(const char *program, const char *lie)
{
	static const char *const programs[] = {"access-reader", "access-worker"};
	const char *libexec = getenv("ACCESS_LIBEXEC"), *build = getenv("top_builddir");
	char real[PATH_MAX], command[2 * PATH_MAX];

	ck_assert_ptr_nonnull(libexec);
	ck_assert(mkdir(rig_path("liars"), 0755) == 0 || errno == EEXIST);
	for (size_t i = 0; i < BASE_ARRAY_LEN(programs); i++) {
		snprintf(command, sizeof(command), "%s/%s", libexec, programs[i]);
		ck_assert_ptr_nonnull(realpath(command, real));
		snprintf(command, sizeof(command), "'%s' \"$@\"", real);
		write_script(programs[i], command);
	}
	snprintf(command, sizeof(command), "'%s/tests/daemon/liar' %s", build ? build : ".", lie);
	write_script(program, command);
	setenv("ACCESS_LIBEXEC", rig_path("liars"), 1);
	rig_start("workers=1", NULL);
}

static const char *const parent_lies[] = {"zero",     "large",  "init",  "daemon", "twice", "place",
					  "stranger", "status", "queue", "type",   "short"};

START_TEST(a_parent_that_lies_is_ended)
{
	start_with("access-worker", parent_lies[_i]);
	ck_assert(rig_wait_status("node.parent_restarts", 1, INT_MAX));
	rig_end();
}
END_TEST

static const char *const reader_lies[] = {"reader-queue", "reader-type", "reader-kind",
					  "reader-gift"};

START_TEST(a_reader_that_lies_is_ended)
{
	start_with("access-reader", reader_lies[_i]);
	ck_assert(rig_wait_status("node.reader_restarts", 1, INT_MAX));
	rig_end();
}
END_TEST

START_TEST(who_says_what_is_true_stays)
{
	start_with("access-worker", "honest");
	ck_assert(rig_wait_status("workers.0.pid", 2, INT_MAX));
	ck_assert_double_eq(rig_status("node.parent_restarts"), 0);
	rig_end();
}
END_TEST

/* A worker cannot have used more time than there was. */
START_TEST(times_add_up)
{
	uint64_t begin_ns = base_now_ns();
	double used;

	start_with("access-worker", "old");
	ck_assert(rig_wait_status("workers.0.pid", 2, INT_MAX));
	used = rig_status("node.worker_cpu_seconds");
	ck_assert_double_ge(used, 0);
	ck_assert_double_le(used, (double)(base_now_ns() - begin_ns) / 1e9);
	rig_end();
}
END_TEST

START_TEST(a_flood_holds_nobody_up)
{
	start_with("access-reader", "flood");
	for (unsigned i = 0; i < 10; i++)
		ck_assert_double_ge(rig_status("node.clients"), 0);
	ck_assert_double_eq(rig_status("node.reader_restarts"), 0);
	rig_end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, a_parent_that_lies_is_ended, 0, BASE_ARRAY_LEN(parent_lies));
	tcase_add_loop_test(tcase, a_reader_that_lies_is_ended, 0, BASE_ARRAY_LEN(reader_lies));
	tcase_add_test(tcase, who_says_what_is_true_stays);
	tcase_add_test(tcase, times_add_up);
	tcase_add_test(tcase, a_flood_holds_nobody_up);
}

int main(void)
{
	return rig_main("liar", add);
}
