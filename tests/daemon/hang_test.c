/* SPDX-License-Identifier: Apache-2.0 */

/* Who hangs, by the figures of looks that the test makes up. */

#include "daemon/limits.h"
#include "daemon/proc/hang.h"
#include "pipeline/spec/op.h"
#include "tests/suite.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define TICK_NS (250 * MS)
#define LIMIT_NS (1000 * MS)
#define BEGIN_NS (5000 * MS)

static const struct hang_work decoding = {.has_task = true, .queue = 1, .task = 7, .instance = 3};
static const struct hang_work idle = {0}, wanted = {.is_wanted = true};

static const struct {
	const char *what;
	const struct hang_work *work;
	uint64_t elapsed_ms, cpu_at_once_ms,
	    cpu_permille; /* CPU time: at its first tick, and after */
	bool no_cpu_clock;
	char state;
	enum hang_verdict verdict;
} cases[] = {
    {"lacks CPU", &decoding, 1900, 1, 20, false, 'R', HANG_NO},
    {"lacks CPU for long", &decoding, 40000, 1, 20, false, 'R', HANG_NO},
    {"gets none at all", &decoding, 40000, 0, 0, false, 'R', HANG_NO},
    {"lacks CPU, clock hidden", &decoding, 40000, 0, 0, true, 'R', HANG_NO},
    {"swaps", &decoding, 40000, 1, 5, false, 'D', HANG_NO},
    {"is young", &decoding, 750, 0, 1000, false, 'R', HANG_NO},
    {"loops", &decoding, 1500, 0, 1000, false, 'R', HANG_LOOPS},
    {"loops, with half a CPU", &decoding, 1750, 0, 500, false, 'R', HANG_NO},
    {"has looped with half a CPU", &decoding, 2500, 0, 500, false, 'R', HANG_LOOPS},
    {"loops, state hidden", &decoding, 1500, 0, 1000, false, 0, HANG_LOOPS},
    {"sleeps for a moment", &decoding, 9500, 1, 0, false, 'S', HANG_NO},
    {"sleeps", &decoding, 10000, 1, 0, false, 'S', HANG_BLOCKED},
    {"sleeps, and wakes a little", &decoding, 10000, 1, 5, false, 'S', HANG_BLOCKED},
    {"is blocked by a disk", &decoding, 11000, 1, 0, false, 'D', HANG_BLOCKED},
    {"sleeps, state hidden", &decoding, 11000, 1, 0, false, 0, HANG_BLOCKED},
    {"lacks CPU, state hidden", &decoding, 11000, 1, 20, false, 0, HANG_NO},
    {"all is hidden", &decoding, 9500, 0, 0, true, 0, HANG_NO},
    {"all is hidden, for long", &decoding, 10000, 0, 0, true, 0, HANG_BLOCKED},
    {"is stopped", &decoding, 1000, 0, 0, false, 'T', HANG_STOPPED},
    {"was just stopped", &decoding, 750, 0, 0, false, 'T', HANG_NO},
    {"is stopped, nothing to do", &idle, 90000, 0, 0, false, 'T', HANG_NO},
    {"is stopped, and wanted", &wanted, 1000, 0, 0, false, 'T', HANG_STOPPED},
    {"is wanted, and wakes", &wanted, 90000, 0, 0, false, 'S', HANG_NO},
};

START_TEST(who_hangs)
{
	struct hang hang = {.since_ns = 0};
	uint64_t now_ns = BEGIN_NS, cpu_ns = cases[_i].no_cpu_clock ? 0 : 300 * MS;
	uint64_t end_ns = BEGIN_NS + cases[_i].elapsed_ms * MS;

	hang_note(&hang, cases[_i].work, now_ns, cpu_ns);
	cpu_ns += cases[_i].cpu_at_once_ms * MS;
	while (now_ns < end_ns) {
		now_ns += TICK_NS;
		cpu_ns += TICK_NS / 1000 * cases[_i].cpu_permille;
		hang_note(&hang, cases[_i].work, now_ns, cpu_ns);
		if (now_ns < end_ns && !cases[_i].verdict)
			ck_assert_msg(hang_judge(&hang, now_ns, LIMIT_NS, cases[_i].state) ==
					  HANG_NO,
				      "%s: judged too early", cases[_i].what);
	}
	ck_assert_msg(hang_judge(&hang, now_ns, LIMIT_NS, cases[_i].state) == cases[_i].verdict,
		      "%s: judged %d", cases[_i].what,
		      hang_judge(&hang, now_ns, LIMIT_NS, cases[_i].state));
}
END_TEST

/* What was begun anew is measured anew: another sample, a substitute, another use of the row. */
START_TEST(each_sample_has_its_own_time)
{
	struct hang_work next[] = {decoding, decoding, decoding, decoding, decoding, idle};

	next[0].task++;
	next[1].row++;
	next[2].instance++;
	next[3].attempt++;
	next[4].queue++;
	for (unsigned i = 0; i < BASE_ARRAY_LEN(next); i++) {
		struct hang hang = {.since_ns = 0};

		hang_note(&hang, &decoding, BEGIN_NS, MS);
		hang_note(&hang, &decoding, BEGIN_NS + 900 * MS, 900 * MS);
		hang_note(&hang, &next[i], BEGIN_NS + 1000 * MS, 1000 * MS);
		hang_note(&hang, &next[i], BEGIN_NS + 1900 * MS, 1900 * MS);
		ck_assert(!hang_is_late(&hang, BEGIN_NS + 1900 * MS, LIMIT_NS));
		ck_assert_int_eq(hang_judge(&hang, BEGIN_NS + 1900 * MS, LIMIT_NS, 'T'), HANG_NO);
	}
}
END_TEST

/* By the picture's own size; what a worker says of it ends at the largest that is decoded. */
START_TEST(size_is_allowed_for)
{
	ck_assert_uint_eq(hang_allowance_ns(0, 0), 0);
	ck_assert_uint_ge(hang_allowance_ns(UINT64_C(12000) * 9000, 0), 20000 * MS);
	ck_assert_uint_ge(hang_allowance_ns(0, 100000000), 5000 * MS);
	ck_assert_uint_le(hang_allowance_ns(64 * 64, 4000), MS * 2);
	ck_assert_uint_eq(hang_allowance_ns(UINT64_MAX, 0), hang_allowance_ns(OP_MAX_PIXELS, 0));
	ck_assert_uint_le(hang_allowance_ns(UINT64_MAX, 0), 60000 * MS);
	ck_assert_uint_eq(hang_allowance_ns(0, UINT64_MAX), hang_allowance_ns(0, UINT32_MAX));
}
END_TEST

START_TEST(a_pause_is_forgiven)
{
	struct hang hang = {.since_ns = 0};
	uint64_t now_ns = BEGIN_NS;

	hang_note(&hang, &decoding, now_ns, MS);
	now_ns += 60000 * MS;
	hang_note(&hang, &decoding, now_ns, MS);
	hang_forgive(&hang, now_ns);
	ck_assert_int_eq(hang_judge(&hang, now_ns, LIMIT_NS, 'T'), HANG_NO);
	now_ns += LIMIT_NS;
	hang_note(&hang, &decoding, now_ns, MS);
	ck_assert_int_eq(hang_judge(&hang, now_ns, LIMIT_NS, 'S'), HANG_NO);
	ck_assert_int_eq(hang_judge(&hang, now_ns, LIMIT_NS, 'T'), HANG_STOPPED);
}
END_TEST

/* What the kernel says of a child that sleeps, that is stopped, and that is gone. */
START_TEST(what_it_used_is_known_when_it_is_dead)
{
	struct hang hang = {.since_ns = 0};

	ck_assert_uint_eq(hang_used_ns(&hang, 20 * MS, LIMIT_NS), 20 * MS); /* never looked at */
	ck_assert_uint_eq(hang_used_ns(&hang, 0, LIMIT_NS), LIMIT_NS);      /* nor measured */
	hang_note(&hang, &decoding, BEGIN_NS, 300 * MS);
	hang_note(&hang, &decoding, BEGIN_NS + TICK_NS, 500 * MS);
	ck_assert_uint_eq(hang_used_ns(&hang, 550 * MS, LIMIT_NS), 250 * MS);
	ck_assert_uint_eq(hang_used_ns(&hang, 0, LIMIT_NS), 200 * MS); /* its parent lies */
}
END_TEST

START_TEST(states_of_processes)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		for (;;)
			pause();
	for (unsigned i = 0; i < PATIENCE_MS && limits_state(pid) != 'S'; i++)
		usleep(1000);
	ck_assert_int_eq(limits_state(pid), 'S');
	ck_assert_uint_gt(limits_cpu_ns(pid), 0);
	kill(pid, SIGSTOP);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert_int_eq(limits_state(pid), 'T');
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(limits_state(pid), 0);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, who_hangs, 0, BASE_ARRAY_LEN(cases));
	tcase_add_test(tcase, each_sample_has_its_own_time);
	tcase_add_test(tcase, a_pause_is_forgiven);
	tcase_add_test(tcase, size_is_allowed_for);
	tcase_add_test(tcase, what_it_used_is_known_when_it_is_dead);
	tcase_add_test(tcase, states_of_processes);
}

int main(void)
{
	return suite_run("hang", add);
}
