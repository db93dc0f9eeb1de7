/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How memory comes to a porter. This program is the porter, too: accessd starts itself as one, and here that is us.
 */

#include "daemon/net/porter.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/loop.h"
#include "daemon/proc/child.h"
#include "daemon/proc/reaper.h"
#include "tests/suite.h"

#define LARGE (4 << 20)

enum { GOT_SOCKET, GOT_OTHER, GOT_NOTHING }; /* exit status of the porter */

static struct reaper reaper; /* zeroed: who ends is left as a zombie */
static struct porters porters;

static void begin(void)
{
	porters = (struct porters){.reaper = &reaper, .program = "/proc/self/exe"};
	ck_assert_int_eq(loop_new(&porters.loop), 0);
}

static void end(void)
{
	porter_fini(&porters);
	loop_free(porters.loop);
}

/* Takes one order, and says by its end what came with it. */
static int be_porter(void)
{
	char note[256], space[CMSG_SPACE(sizeof(int))];
	struct iovec part = {.iov_base = note, .iov_len = sizeof(note)};
	struct msghdr order = {.msg_iov = &part,
			       .msg_iovlen = 1,
			       .msg_control = space,
			       .msg_controllen = sizeof(space)};
	const struct cmsghdr *item;
	struct stat st;
	int fd;

	if (recvmsg(CHILD_SOCK, &order, 0) <= 0 || !(item = CMSG_FIRSTHDR(&order)))
		return GOT_NOTHING;
	memcpy(&fd, CMSG_DATA(item), sizeof(fd));
	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? GOT_SOCKET : GOT_OTHER;
}

static int memory_of(off_t bytes)
{
	int fd = base_memfd("porter-test", 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fallocate(fd, 0, 0, bytes), 0);
	return fd;
}

/* In a queue, so that whoever is quicker, the porter is the last who has it. */
START_TEST(large_memory_comes_in_a_queue)
{
	int fd = memory_of(LARGE), old = fd, status;

	porter_close(&porters, PORTER_OWN, &fd);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_lt(fcntl(old, F_GET_SEALS), 0);
	ck_assert_int_gt(waitpid(-1, &status, 0), 0);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), GOT_SOCKET);
	ck_assert_uint_eq(porter_closes(&porters, PORTER_OWN), 1);
}
END_TEST

/* A program that is no porter is never started as one. */
START_TEST(who_has_no_porter_closes_himself)
{
	int fd = memory_of(LARGE);

	porters.program = NULL;
	porter_close(&porters, PORTER_OWN, &fd);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_lt(waitpid(-1, NULL, WNOHANG), 0);
}
END_TEST

START_TEST(small_memory_needs_no_porter)
{
	int fd = memory_of(4096);

	porter_close(&porters, PORTER_OWN, &fd);
	ck_assert_int_eq(fd, -1);
	ck_assert_int_lt(waitpid(-1, NULL, WNOHANG), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, begin, end);
	tcase_add_test(tcase, large_memory_comes_in_a_queue);
	tcase_add_test(tcase, who_has_no_porter_closes_himself);
	tcase_add_test(tcase, small_memory_needs_no_porter);
}

int main(int argc, char **argv)
{
	if (argc > 0 && strcmp(argv[0], PORTER_NAME) == 0)
		return be_porter();
	return suite_run("porter", add);
}
