/* SPDX-License-Identifier: Apache-2.0 */

/* Descriptors whose close() takes for ever, sent to accessd in every way: it answers others as before, and has
 * as many descriptors as before. */

#include "tests/daemon/raw.h"
#include "tests/scenarios/foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- saying ---- */

/* A message of the type that is as it should be, but for these. */
static void say_with(int sock, uint16_t type, int fd, unsigned n_fds)
{
	struct wire_out out;

	wire_out_init(&out, type);
	wire_put_u64(&out, PROTO_KEY_MAJOR, PROTO_MAJOR);
	foreign_send(sock, out.data, out.size, fd, n_fds);
	wire_out_fini(&out);
}

/* Somebody else comes, and is answered. */
static void expect_answer(void)
{
	struct wire_in in;
	int sock = raw_greeted(&in);

	wire_in_fini(&in);
	raw_say(sock, PROTO_STATUS);
	ck_assert_int_eq(raw_hear(sock, PROTO_STATUS_REPLY, &in), 0);
	wire_in_fini(&in);
	close(sock);
}

/* A job, with all that accessd and its processes send each other. */
static void good_job(void)
{
	struct raw_open open = {
	    .dataset = rig_path("data"), .pipeline = "imagenet-eval-u8", .batch = 8};
	struct wire_in opened;
	int sock = raw_open(&open, &opened);

	wire_in_fini(&opened);
	close(sock);
	ck_assert(rig_wait_status("streams", 0, 0));
}

static unsigned fds_before;

static void setup(void)
{
	rig_pictures("data", 16, 1, 32);
	rig_start("workers=1", "linger_s=0", "chunk=8", NULL);
	good_job();
	fds_before = rig_settled_fds(0);
}

static void teardown(void)
{
	good_job();
	ck_assert_uint_le(rig_settled_fds(fds_before), fds_before);
	rig_end();
}

/* ---- sockets that linger ---- */

struct trap {
	int listener, sock, peer;
};

/* What was sent through it is never read, and who closes it last waits for that. */
static void trap_set(struct trap *trap)
{
	const struct linger linger = {1, 100000};
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(address);
	static char bytes[65536];

	trap->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(trap->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	ck_assert_int_eq(listen(trap->listener, 1), 0);
	ck_assert_int_eq(getsockname(trap->listener, (struct sockaddr *)&address, &size), 0);
	trap->sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(trap->sock, (struct sockaddr *)&address, sizeof(address)), 0);
	trap->peer = accept4(trap->listener, NULL, NULL, SOCK_CLOEXEC);
	ck_assert_int_ge(trap->peer, 0);
	ck_assert_int_eq(setsockopt(trap->sock, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	while (send(trap->sock, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		continue;
}

/* Nobody waits for it any more. */
static void trap_end(struct trap *trap)
{
	close(trap->peer);
	close(trap->listener);
}

/* Says it while accessd stands still, so that the last copy of the socket is not ours. */
static void spring(struct trap *trap, int sock, const void *before, uint16_t type, unsigned n_fds)
{
	ck_assert_int_eq(kill(rig_host.pid, SIGSTOP), 0);
	if (before)
		ck_assert_int_eq(send(sock, before, strlen(before), 0), (ssize_t)strlen(before));
	say_with(sock, type, trap->sock, n_fds);
	close(trap->sock);
	close(sock);
	ck_assert_int_eq(kill(rig_host.pid, SIGCONT), 0);
}

static void greet_and_spring(const char *before, uint16_t type, unsigned n_fds)
{
	struct trap trap;
	struct wire_in in;
	int sock = raw_greeted(&in);

	wire_in_fini(&in);
	trap_set(&trap);
	spring(&trap, sock, before, type, n_fds);
	for (unsigned i = 0; i < 10; i++)
		expect_answer();
	trap_end(&trap);
}

START_TEST(uninvited)
{
	setup();
	greet_and_spring(NULL, PROTO_STATUS, 1);
	greet_and_spring(NULL, PROTO_STATUS, FOREIGN_MOST);
	teardown();
}
END_TEST

START_TEST(as_what_may_come)
{
	setup();
	greet_and_spring(NULL, PROTO_OPEN, 1);
	greet_and_spring(NULL, PROTO_OPEN, 2);
	teardown();
}
END_TEST

/* The nonsense before it ends the connection, and nobody reads the rest. */
START_TEST(left_in_the_queue)
{
	setup();
	greet_and_spring("nonsense", PROTO_STATUS, 1);
	greet_and_spring("nonsense", PROTO_STATUS, FOREIGN_MOST);
	teardown();
}
END_TEST

/* Datagrams without a byte look like the end of a queue. */
START_TEST(behind_nothing)
{
	struct trap trap;
	int sock;

	setup();
	sock = raw_dial();
	trap_set(&trap);
	ck_assert_int_eq(kill(rig_host.pid, SIGSTOP), 0);
	ck_assert_int_eq(send(sock, "nonsense", 8, 0), 8);
	ck_assert_int_eq(send(sock, "", 0, 0), 0);
	foreign_send(sock, "", 0, trap.sock, 1);
	close(trap.sock);
	close(sock);
	ck_assert_int_eq(kill(rig_host.pid, SIGCONT), 0);
	for (unsigned i = 0; i < 10; i++)
		expect_answer();
	trap_end(&trap);
	teardown();
}
END_TEST

/* Many of them, by many connections: they cost their user connections, and accessd nothing. */
START_TEST(again_and_again)
{
	struct trap trap[40];

	setup();
	for (unsigned i = 0; i < BASE_ARRAY_LEN(trap); i++) {
		trap_set(&trap[i]);
		spring(&trap[i], raw_dial(), i % 2 ? "nonsense" : NULL, PROTO_HELLO, 1 + i);
		expect_answer();
	}
	ck_assert_uint_le(rig_settled_fds(fds_before + 3), fds_before + 3);
	for (unsigned i = 0; i < BASE_ARRAY_LEN(trap); i++)
		trap_end(&trap[i]);
	teardown();
}
END_TEST

/* ---- a file system that does not answer ---- */

static void reap(pid_t pid)
{
	ck_assert_int_eq(kill(pid, SIGKILL), 0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

/* Sends the file, and lives on: its own end would wait for the file, too. */
static pid_t sender_start(const char *path, const char *before, uint16_t type, unsigned n_fds)
{
	int sent[2], sock, fd;
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe2(sent, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		sock = raw_dial();
		kill(rig_host.pid, SIGSTOP);
		ck_assert_int_eq(raw_say_hello(sock, "raw"), 0);
		if (before)
			send(sock, before, strlen(before), 0);
		say_with(sock, type, fd, n_fds);
		kill(rig_host.pid, SIGCONT);
		close(sock);
		if (fd < 0 || write(sent[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(sent[1]);
	ck_assert_int_eq(read(sent[0], &byte, 1), 1);
	close(sent[0]);
	return pid;
}

/* Nor does accessd's death take long: its successor serves at once. */
START_TEST(a_file_that_cannot_be_closed)
{
	const char *folder = rig_path("slow"), *file = rig_path("slow/file");
	pid_t server = foreign_files_start(folder), sender[4];

	if (server < 0)
		return;
	setup();
	sender[0] = sender_start(file, NULL, PROTO_STATUS, 1);
	sender[1] = sender_start(file, NULL, PROTO_OPEN, 1);
	sender[2] = sender_start(file, NULL, PROTO_OPEN, FOREIGN_MOST);
	sender[3] = sender_start(file, "nonsense", PROTO_STATUS, FOREIGN_MOST);
	for (unsigned i = 0; i < 10; i++)
		expect_answer();
	rig_restart("workers=1", "linger_s=0", "chunk=8", NULL);
	expect_answer();
	good_job();
	reap(server); /* which ends it for all who wait */
	for (unsigned i = 0; i < BASE_ARRAY_LEN(sender); i++)
		reap(sender[i]);
	teardown();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, uninvited);
	tcase_add_test(tcase, as_what_may_come);
	tcase_add_test(tcase, left_in_the_queue);
	tcase_add_test(tcase, behind_nothing);
	tcase_add_test(tcase, again_and_again);
	tcase_add_test(tcase, a_file_that_cannot_be_closed);
}

int main(void)
{
	return rig_main("foreign", add);
}
