/* SPDX-License-Identifier: Apache-2.0 */

/* Hearing children: one that talks without end takes its turn and its share, and no more; who talks nonsense
 * is ended. */

#include "daemon/proc/hearing.h"
#include "tests/suite.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GOOD = 1, LAST, BAD };

static struct world {
	struct loop *loop;
	struct loop_watch *other, *guard;
	struct hearing hearing;
	struct child child;
	int theirs, pipe[2];
	unsigned heard, heard_before_other;
	uint64_t spin_ns;
} world;

static void on_guard(void *arg)
{
	(void)arg;
	ck_abort_msg("the loop did not stop by itself");
}

static bool on_message(void *arg, struct wire_in *in)
{
	uint64_t begin_ns = base_now_ns();

	(void)arg;
	world.heard++;
	while (base_now_ns() - begin_ns < world.spin_ns)
		continue;
	if (in->type == LAST)
		loop_stop(world.loop);
	return in->type != BAD;
}

static void on_other(void *arg)
{
	(void)arg;
	world.heard_before_other = world.heard;
	loop_unwatch(&world.other);
}

static void setup(void)
{
	int pair[2];

	world = (struct world){.theirs = -1};
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	ck_assert_int_eq(pipe(world.pipe), 0);
	ck_assert_int_eq(loop_new(&world.loop), 0);
	ck_assert_int_eq(loop_timer_new(world.loop, on_guard, NULL, &world.guard), 0);
	loop_timer_set(world.guard, PATIENCE_NS);
	world.child.sock = pair[0];
	world.theirs = pair[1];
	world.child.pid = fork();
	if (world.child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close_range(0, ~0U, 0);
		for (;;)
			pause();
	}
	ck_assert_int_eq(
	    hearing_begin(&world.hearing, world.loop, &world.child, on_message, &world), 0);
}

static void teardown(void)
{
	hearing_end(&world.hearing);
	loop_unwatch(&world.other);
	loop_unwatch(&world.guard);
	loop_free(world.loop);
	child_end(&world.child);
	base_close(&world.theirs);
	close(world.pipe[0]);
	close(world.pipe[1]);
}

static void say(uint16_t type, unsigned times)
{
	struct wire_out out;

	wire_out_init(&out, type);
	for (unsigned i = 0; i < times; i++)
		ck_assert_int_eq(wire_send(world.theirs, &out, MSG_DONTWAIT), 0);
	wire_out_fini(&out);
}

START_TEST(others_have_their_turn)
{
	setup();
	say(GOOD, 32);
	say(LAST, 1);
	ck_assert_int_eq(loop_watch_fd(world.loop, world.pipe[0], on_other, NULL, &world.other), 0);
	ck_assert_int_eq(write(world.pipe[1], "x", 1), 1);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.heard, 33);
	ck_assert_uint_le(world.heard_before_other, 1);
	teardown();
}
END_TEST

/* Each message takes a whole share, so there is a rest after each. */
START_TEST(nobody_is_heard_all_the_time)
{
	uint64_t begin_ns = base_now_ns();

	setup();
	world.spin_ns = 12000000;
	say(GOOD, 5);
	say(LAST, 1);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.heard, 6);
	ck_assert_uint_ge(base_now_ns() - begin_ns, UINT64_C(5) * 50000000);
	teardown();
}
END_TEST

static void must_be_killed(unsigned heard)
{
	int status;

	ck_assert_int_eq(waitpid(world.child.pid, &status, 0), world.child.pid);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	world.child.pid = 0;
	ck_assert_uint_eq(world.heard, heard);
}

static void on_over(void *arg)
{
	(void)arg;
	loop_stop(world.loop);
}

/* Runs until the child is given up. */
static void run_out(void)
{
	struct loop_watch *over;

	ck_assert_int_eq(loop_timer_new(world.loop, on_over, NULL, &over), 0);
	while (world.hearing.watch) {
		loop_timer_set(over, 0);
		ck_assert_int_eq(loop_run(world.loop), 0);
	}
	loop_unwatch(&over);
}

START_TEST(nonsense_ends_it)
{
	setup();
	say(GOOD, 2);
	say(BAD, 1);
	say(GOOD, 2);
	run_out();
	must_be_killed(3);
	teardown();
}
END_TEST

START_TEST(what_is_no_message_ends_it)
{
	setup();
	ck_assert_int_eq(send(world.theirs, "no message", 10, 0), 10);
	run_out();
	must_be_killed(0);
	teardown();
}
END_TEST

START_TEST(hanging_up_ends_it)
{
	setup();
	say(GOOD, 1);
	base_close(&world.theirs);
	run_out();
	must_be_killed(1);
	teardown();
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, others_have_their_turn);
	tcase_add_test(tcase, nobody_is_heard_all_the_time);
	tcase_add_test(tcase, nonsense_ends_it);
	tcase_add_test(tcase, what_is_no_message_ends_it);
	tcase_add_test(tcase, hanging_up_ends_it);
}

int main(void)
{
	return suite_run("hearing", add);
}
