/* SPDX-License-Identifier: Apache-2.0 */

/* The loop: order of timers, watches that end themselves and each other, signals. */

#include "daemon/loop.h"
#include "tests/suite.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct world {
	struct loop *loop;
	struct loop_watch *watch[8], *guard;
	int pipe[2];
	char order[64];
	unsigned calls;
};

static struct world world;

static void on_guard(void *arg)
{
	(void)arg;
	ck_abort_msg("the loop did not stop by itself");
}

static void setup(void)
{
	memset(&world, 0, sizeof(world));
	ck_assert_int_eq(loop_new(&world.loop), 0);
	ck_assert_int_eq(pipe(world.pipe), 0);
	ck_assert_int_eq(loop_timer_new(world.loop, on_guard, NULL, &world.guard), 0);
	loop_timer_set(world.guard, PATIENCE_NS);
}

static void teardown(void)
{
	for (size_t i = 0; i < BASE_ARRAY_LEN(world.watch); i++)
		loop_unwatch(&world.watch[i]);
	loop_unwatch(&world.guard);
	loop_free(world.loop);
	close(world.pipe[0]);
	close(world.pipe[1]);
}

static void note(const char *what)
{
	size_t used = strlen(world.order);

	snprintf(world.order + used, sizeof(world.order) - used, "%s", what);
}

static void on_timer(void *arg)
{
	note(arg);
	if (strcmp(arg, "z") == 0)
		loop_stop(world.loop);
}

static void make_timer(unsigned i, const char *name, uint64_t delay_ns)
{
	ck_assert_int_eq(loop_timer_new(world.loop, on_timer, (void *)name, &world.watch[i]), 0);
	ck_assert(!loop_timer_is_set(world.watch[i]));
	loop_timer_set(world.watch[i], delay_ns);
	ck_assert(loop_timer_is_set(world.watch[i]));
}

static void make_all_timers(void)
{
	make_timer(0, "z", 90000000);
	make_timer(1, "b", 30000000);
	make_timer(2, "a", 0);
	make_timer(3, "c", 60000000);
	make_timer(4, "x", 20000000);
	loop_timer_stop(world.watch[4]); /* never fires */
	ck_assert(!loop_timer_is_set(world.watch[4]));
	make_timer(5, "y", 1);
	loop_timer_set(world.watch[5], UINT64_C(3600000000000)); /* put off */
}

START_TEST(timers_fire_in_their_order)
{
	uint64_t begin_ns = base_now_ns();

	make_all_timers();
	while (base_now_ns() - begin_ns > 20000000) { /* that late, it is another order */
		for (size_t i = 0; i < BASE_ARRAY_LEN(world.watch); i++)
			loop_unwatch(&world.watch[i]);
		begin_ns = base_now_ns();
		make_all_timers();
	}
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_str_eq(world.order, "abcz");
	ck_assert(!loop_timer_is_set(world.watch[1])); /* once */
}
END_TEST

START_TEST(a_turn_calls_what_is_due_and_waits_for_nothing)
{
	make_timer(0, "later", UINT64_C(3600000000000));
	make_timer(1, "due", 0);
	while (!*world.order)
		ck_assert_int_eq(loop_turn(world.loop), 0);
	ck_assert_int_eq(loop_turn(world.loop), 0);
	ck_assert_str_eq(world.order, "due");
}
END_TEST

static void on_again(void *arg)
{
	(void)arg;
	if (++world.calls == 1000)
		loop_stop(world.loop);
	else
		loop_timer_set(world.watch[0], 0);
}

/* A timer that sets itself to "at the next turn" leaves others their turn. */
START_TEST(a_busy_timer_starves_nobody)
{
	ck_assert_int_eq(loop_timer_new(world.loop, on_again, NULL, &world.watch[0]), 0);
	loop_timer_set(world.watch[0], 0);
	make_timer(1, "b", 0);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.calls, 1000);
	ck_assert_str_eq(world.order, "b");
}
END_TEST

/* Ends itself and the other watch of the same descriptor, whichever comes first. */
static void on_last(void *arg)
{
	(void)arg;
	world.calls++;
	loop_unwatch(&world.watch[0]);
	loop_unwatch(&world.watch[1]);
	loop_unwatch(&world.watch[1]); /* NULL is fine */
	make_timer(2, "z", 20000000);
}

START_TEST(watches_end_themselves_and_others)
{
	ck_assert_int_eq(loop_watch_fd(world.loop, world.pipe[0], on_last, NULL, &world.watch[0]),
			 0);
	ck_assert_int_eq(loop_watch_fd(world.loop, world.pipe[0], on_last, NULL, &world.watch[1]),
			 0);
	ck_assert_int_eq(write(world.pipe[1], "x", 1), 1);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.calls, 1); /* the second one was active, too, and is gone */
	ck_assert_ptr_null(world.watch[0]);
	ck_assert_ptr_null(world.watch[1]);
}
END_TEST

static void on_self(void *arg)
{
	(void)arg;
	world.calls++;
	loop_unwatch(&world.watch[0]);
	loop_stop(world.loop);
}

START_TEST(a_timer_ends_itself)
{
	ck_assert_int_eq(loop_timer_new(world.loop, on_self, NULL, &world.watch[0]), 0);
	loop_timer_set(world.watch[0], 1);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.calls, 1);
}
END_TEST

static void on_bytes(void *arg)
{
	char byte;
	ssize_t n = read(world.pipe[0], &byte, 1);

	(void)arg;
	world.calls++;
	if (n == 0)
		loop_stop(world.loop); /* hang-up is readable, too */
}

START_TEST(readable_until_read_then_hung_up)
{
	ck_assert_int_eq(loop_watch_fd(world.loop, world.pipe[0], on_bytes, NULL, &world.watch[0]),
			 0);
	ck_assert_int_eq(write(world.pipe[1], "abc", 3), 3);
	close(world.pipe[1]);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.calls, 4);
	world.pipe[1] = dup(world.pipe[0]);
}
END_TEST

static void on_ring(void *arg)
{
	const uint64_t one = 1;
	uint64_t count;

	(void)arg;
	if (++world.calls == 3)
		loop_stop(world.loop);
	else /* somebody else takes it, and rings again */
		ck_assert(read(world.pipe[0], &count, sizeof(count)) == sizeof(count) &&
			  write(world.pipe[0], &one, sizeof(one)) == sizeof(one));
}

/* Each write() is heard once, though nobody reads, and somebody does. */
START_TEST(rings_are_heard_unread)
{
	const uint64_t one = 1;

	close(world.pipe[0]);
	world.pipe[0] = eventfd(0, EFD_CLOEXEC);
	ck_assert_int_eq(
	    loop_watch_rings(world.loop, world.pipe[0], on_ring, NULL, &world.watch[0]), 0);
	ck_assert_int_eq(write(world.pipe[0], &one, sizeof(one)), sizeof(one));
	ck_assert_int_eq(loop_run(world.loop), 0);
	make_timer(1, "z", 1);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.calls, 3);
	ck_assert_str_eq(world.order, "z");
}
END_TEST

static void on_raise(void *arg)
{
	(void)arg;
	raise(SIGUSR1);
}

START_TEST(signals_arrive)
{
	ck_assert_int_eq(loop_watch_signal(world.loop, SIGUSR1, on_self, NULL, &world.watch[0]), 0);
	ck_assert_int_eq(loop_timer_new(world.loop, on_raise, NULL, &world.watch[1]), 0);
	loop_timer_set(world.watch[1], 0);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_uint_eq(world.calls, 1);
}
END_TEST

/* ---- turns ---- */

static void burn(uint64_t cpu_ns)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((uint64_t)(now.tv_sec - begin.tv_sec) * 1000000000 + (uint64_t)now.tv_nsec <
	       (uint64_t)begin.tv_nsec + cpu_ns);
}

static void on_hog(void *arg)
{
	(void)arg;
	burn(20000000);
	if (++world.calls == 3)
		loop_stop(world.loop);
	else
		loop_timer_set(world.watch[0], 0);
}

static void on_named_hog(void *arg)
{
	(void)arg;
	burn(80000000);
	loop_is_about(world.loop, "message 6");
}

static void on_sleeper(void *arg)
{
	(void)arg;
	usleep(500000);
	loop_stop(world.loop);
}

/* Whoever holds the loop is found by name, and is told from who was only waited for. */
START_TEST(the_longest_turn_is_known)
{
	const struct loop_turns *turns = loop_turns(world.loop);

	ck_assert_int_eq(loop_timer_new(world.loop, on_hog, NULL, &world.watch[0]), 0);
	loop_timer_set(world.watch[0], 0);
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_str_eq(turns->cpu.what, "loop_test.c: on_hog");
	ck_assert_uint_ge(turns->cpu.ns, 20000000);
	ck_assert_uint_ge(turns->wall.ns, turns->cpu.ns);
	ck_assert_uint_eq(turns->n_long_cpu, 3);
	ck_assert_uint_eq(turns->n_long, 3);
	ck_assert_int_eq(loop_timer_new(world.loop, on_named_hog, NULL, &world.watch[1]), 0);
	loop_timer_set(world.watch[1], 0);
	ck_assert_int_eq(loop_timer_new(world.loop, on_sleeper, NULL, &world.watch[2]), 0);
	loop_timer_set(world.watch[2], 1000000); /* after it */
	ck_assert_int_eq(loop_run(world.loop), 0);
	ck_assert_str_eq(turns->cpu.what, "message 6");
	ck_assert_uint_ge(turns->cpu.ns, 80000000);
	ck_assert_uint_ge(turns->wall.ns, 500000000);
	ck_assert_uint_eq(turns->n_long_cpu, 4);
	ck_assert_uint_eq(turns->n_long, 5);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, timers_fire_in_their_order);
	tcase_add_test(tcase, a_turn_calls_what_is_due_and_waits_for_nothing);
	tcase_add_test(tcase, a_busy_timer_starves_nobody);
	tcase_add_test(tcase, watches_end_themselves_and_others);
	tcase_add_test(tcase, a_timer_ends_itself);
	tcase_add_test(tcase, readable_until_read_then_hung_up);
	tcase_add_test(tcase, rings_are_heard_unread);
	tcase_add_test(tcase, signals_arrive);
	tcase_add_test(tcase, the_longest_turn_is_known);
}

int main(void)
{
	return suite_run("loop", add);
}
