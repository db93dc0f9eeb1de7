/* SPDX-License-Identifier: Apache-2.0 */

/* Children that reserve and gather for a stream, when it ends. */

#include "daemon/reserve.h"
#include "daemon/stream.h"
#include "tests/worker/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t start_idler(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	while (pid == 0)
		pause();
	return pid;
}

/* The loop must not stand still until they are gone: they are killed, and left to the loop. */
START_TEST(the_end_waits_for_no_child)
{
	struct stream stream = {.reserve = {.pid = start_idler(), .gatherer = start_idler()}};
	const pid_t pids[] = {stream.reserve.pid, stream.reserve.gatherer};

	reserve_cancel(&stream);
	ck_assert_int_eq(stream.reserve.pid, 0);
	ck_assert_int_eq(stream.reserve.gatherer, 0);
	for (unsigned i = 0; i < 2; i++) {
		int status;

		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert(WIFSIGNALED(status));
		ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	}
	reserve_cancel(&stream); /* twice is fine */
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, the_end_waits_for_no_child);
}

int main(void)
{
	return suite_run("reserve", add);
}
