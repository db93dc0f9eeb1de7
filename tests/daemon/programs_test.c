/* SPDX-License-Identifier: Apache-2.0 */

/* Programs with jobs: what one accessd writes the next one knows, until their jobs are back and end, or they are no more. */

#include "daemon/tenant/programs.h"
#include "tests/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALIVE getpid()

static char folder[] = "/tmp/access-programs-XXXXXX", path[64];
static struct programs programs;

static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/programs", folder);
	programs_load(&programs, folder);
}

static void restart(void)
{
	programs_fini(&programs);
	programs_load(&programs, folder);
}

static void end(void)
{
	programs_fini(&programs);
	unlink(path);
	ck_assert_int_eq(rmdir(folder), 0); /* nothing else is left there */
}

START_TEST(jobs_of_a_program_are_counted)
{
	begin();
	programs_begin(&programs, 7, ALIVE, false);
	programs_begin(&programs, 7, ALIVE, false);
	programs_begin(&programs, 7, 0, false); /* of whom nobody knows the pid */
	ck_assert(programs_have(&programs, 7, ALIVE));
	ck_assert(!programs_have(&programs, 8, ALIVE) && !programs_have(&programs, 7, 0));
	programs_end(&programs, 7, ALIVE);
	programs_end(&programs, 7, 0);
	ck_assert(programs_have(&programs, 7, ALIVE) && access(path, F_OK) == 0);
	programs_end(&programs, 7, ALIVE);
	ck_assert(!programs_have(&programs, 7, ALIVE) && access(path, F_OK) < 0);
	end();
}
END_TEST

START_TEST(those_of_the_one_before_are_awaited)
{
	begin();
	programs_begin(&programs, 7, ALIVE, false);
	restart();
	for (int i = 0; i < 2; i++) { /* what it opens besides is not what it comes back with */
		programs_begin(&programs, 7, ALIVE, false);
		programs_end(&programs, 7, ALIVE);
		ck_assert(programs_have(&programs, 7, ALIVE));
	}
	restart();
	programs_begin(&programs, 7, ALIVE, true);
	programs_end(&programs, 7, ALIVE);
	ck_assert(!programs_have(&programs, 7, ALIVE));
	restart();
	ck_assert(!programs_have(&programs, 7, ALIVE));
	end();
}
END_TEST

START_TEST(who_is_no_more_is_dropped)
{
	const pid_t dead = fork();

	if (dead == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(dead, NULL, 0), dead);
	begin();
	programs_begin(&programs, 7, dead, false);
	restart();
	ck_assert(programs_have(&programs, 7, dead));
	programs_begin(&programs, 8, ALIVE, false);
	ck_assert(!programs_have(&programs, 7, dead) && programs_have(&programs, 8, ALIVE));
	end();
}
END_TEST

START_TEST(nonsense_is_passed_over)
{
	static const char *const texts[] = {"", "x", "7", "7 -1\n", "7 0\n", "7 7 7\n8 8\n"};

	begin();
	for (size_t i = 0; i < BASE_ARRAY_LEN(texts); i++) {
		FILE *file = fopen(path, "we");

		ck_assert_ptr_nonnull(file);
		fputs(texts[i], file);
		fclose(file);
		restart();
		ck_assert(!programs_have(&programs, 8, 8) && !programs_have(&programs, 7, 0));
	}
	end();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, jobs_of_a_program_are_counted);
	tcase_add_test(tcase, those_of_the_one_before_are_awaited);
	tcase_add_test(tcase, who_is_no_more_is_dropped);
	tcase_add_test(tcase, nonsense_is_passed_over);
}

int main(void)
{
	return suite_run("programs", add);
}
