/* SPDX-License-Identifier: Apache-2.0 */

/* access-ctl's questions: one limit of time for all of them, which an accessd that says how far it is puts off. */

#include <check.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "shmring/proto.h"
#include "tests/patience.h"
#include "tests/suite.h"
#include "tools/ctl_ask.h"

/* An accessd in another process, which answers each question after so many messages of PROGRESS, a while each, until it is hung up on. */
static int serve(unsigned progress)
{
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	if (fork() != 0) {
		close(fds[1]);
		return fds[0];
	}
	close(fds[0]);
	for (struct wire_in in; wire_in_init(&in), wire_recv(fds[1], &in, 0) == 0;) {
		wire_in_fini(&in);
		for (unsigned i = 0; i < progress; i++) {
			poll(NULL, 0, 10);
			wire_tell(fds[1], PROTO_PROGRESS, WIRE_U64(PROTO_KEY_DONE, i));
		}
		poll(NULL, 0, 10);
		wire_tell(fds[1], PROTO_CACHED, WIRE_U64(PROTO_KEY_CODE, 0));
	}
	_exit(0);
}

static int ask_once(struct ctl_ask *ask, struct diag *diag)
{
	struct wire_in in;
	int r = ctl_ask(ask, PROTO_CACHED, &in, diag, PROTO_CACHE, WIRE_NOTHING);

	if (!r)
		wire_in_fini(&in);
	return r;
}

START_TEST(answers_without_end_come_to_an_end)
{
	struct ctl_ask ask = {.sock = serve(0), .until_ns = base_now_ns() + 500000000};
	struct diag diag;

	while (!ask_once(&ask, &diag))
		continue;
	ck_assert_str_eq(diag.text, "accessd has not answered in time");
	close(ask.sock);
}
END_TEST

START_TEST(progress_puts_the_end_off)
{
	const uint64_t until_ns = base_now_ns() + UINT64_C(3600000000000);
	struct ctl_ask ask = {
	    .sock = serve(5), .until_ns = until_ns, .patience_ns = UINT64_C(7200000000000)};
	struct diag diag;

	ck_assert_int_eq(ask_once(&ask, &diag), 0);
	ck_assert_uint_gt(ask.until_ns, until_ns);
	close(ask.sock);
}
END_TEST

/* Also where it went before it read the question. */
START_TEST(who_hangs_up_has_said_why)
{
	struct ctl_ask ask = {.until_ns = base_now_ns() + PATIENCE_NS};
	struct diag diag;
	int fds[2];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	ask.sock = fds[0];
	if (_i)
		ck_assert_int_eq(wire_tell(fds[0], PROTO_CACHE, WIRE_NOTHING), 0);
	ck_assert_int_eq(
	    wire_tell(fds[1], PROTO_REFUSED, WIRE_STRING(PROTO_KEY_TEXT, "there are too many")), 0);
	close(fds[1]);
	ck_assert_int_eq(ask_once(&ask, &diag), 1);
	ck_assert_str_eq(diag.text, "there are too many");
	close(ask.sock);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, answers_without_end_come_to_an_end);
	tcase_add_test(tcase, progress_puts_the_end_off);
	tcase_add_loop_test(tcase, who_hangs_up_has_said_why, 0, 2);
}

int main(void)
{
	return suite_run("ask", add);
}
