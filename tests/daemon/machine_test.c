/* SPDX-License-Identifier: Apache-2.0 */

/* Who is told what when limits and pressure change; and what the kernel's text about pressure may be. */

#include "daemon/machine/machine.h"
#include "base/json.h"
#include "tests/daemon/pretend.h"
#include "tests/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)
#define GROUP PRETEND_ROOT "/a"

struct follower {
	unsigned workers, n_workers; /* told last, how often */
	uint64_t budget;
	const char *source;
	unsigned n_budget, n_caches, n_idle;
};

static void set_workers(void *arg, unsigned workers)
{
	struct follower *follower = arg;

	follower->workers = workers;
	follower->n_workers++;
}

static void set_memory(void *arg, uint64_t budget, const char *source)
{
	struct follower *follower = arg;

	follower->budget = budget;
	follower->source = source;
	follower->n_budget++;
}

static uint64_t give_back(void *arg, bool caches, bool idle)
{
	struct follower *follower = arg;

	follower->n_caches += caches;
	follower->n_idle += idle;
	return 1;
}

static const struct machine_calls calls = {set_workers, set_memory, give_back};
static bool follows_pressure = true;

static void press(const char *some, const char *full)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "some avg10=%s avg60=0.00 avg300=0.00 total=0\n"
		 "full avg10=%s avg60=0.00 avg300=0.00 total=0\n",
		 some, full);
	pretend_file(GROUP "/memory.pressure", text);
}

static struct loop *begin(struct machine *machine, struct follower *follower, uint64_t workers,
			  uint64_t memory)
{
	const struct machine_wants wants = {
	    .workers = workers, .memory = memory, .pressure = follows_pressure};
	struct loop *loop;

	*follower = (struct follower){.workers = 0};
	ck_assert_int_eq(loop_new(&loop), 0);
	ck_assert_int_eq(machine_begin(machine, loop, &wants, &calls, follower), 0);
	ck_assert_uint_eq(follower->n_workers, 1);
	ck_assert_uint_eq(follower->n_budget, 1);
	return loop;
}

static void end(struct machine *machine, struct loop *loop)
{
	machine_end(machine);
	loop_free(loop);
}

START_TEST(limits_are_followed)
{
	struct follower follower;
	struct machine machine;
	struct loop *loop;
	unsigned all;
	uint64_t budget;

	if (!pretend_groups("0::/a\n"))
		return;
	loop = begin(&machine, &follower, 0, 0);
	all = follower.workers;
	budget = follower.budget;
	machine_look(&machine);
	ck_assert_uint_eq(follower.n_workers, 1); /* nothing changed: nobody is told */
	ck_assert_uint_eq(follower.n_budget, 1);
	pretend_file(GROUP "/cpu.max", "100 100000\n");
	pretend_file(GROUP "/memory.max", "67108864\n");
	machine_look(&machine);
	ck_assert_uint_eq(follower.workers, 1);
	ck_assert_uint_eq(follower.budget, 32 * MIB);
	ck_assert_str_eq(follower.source, "half of the cgroup's memory limit");
	pretend_file(GROUP "/cpu.max", "max 100000\n");
	pretend_file(GROUP "/memory.max", "max\n");
	machine_look(&machine);
	ck_assert_uint_eq(follower.workers, all);
	ck_assert_uint_eq(follower.budget, budget);
	ck_assert_uint_eq(machine.workers_changed, all > 1 ? 2 : 0);
	ck_assert_uint_eq(machine.budget_changed, 2);
	end(&machine, loop);
}
END_TEST

/* What is configured stays, but a budget above the cgroup's limit would end in the OOM killer. */
START_TEST(what_is_configured_stays)
{
	struct follower follower;
	struct machine machine;
	struct loop *loop;

	if (!pretend_groups("0::/a\n"))
		return;
	loop = begin(&machine, &follower, 3, 48 * MIB);
	pretend_file(GROUP "/cpu.max", "100000 100000\n");
	pretend_file(GROUP "/memory.max", "67108864\n");
	machine_look(&machine);
	ck_assert_uint_eq(follower.n_workers, 1);
	ck_assert_uint_eq(follower.workers, 3);
	ck_assert_uint_eq(machine.workers_most, 3);
	ck_assert_uint_eq(follower.budget, 48 * MIB);
	pretend_file(GROUP "/memory.max", "33554432\n");
	machine_look(&machine);
	ck_assert_uint_eq(follower.budget, 28 * MIB);
	end(&machine, loop);
}
END_TEST

START_TEST(pressure_is_acted_upon)
{
	struct follower follower;
	struct machine machine;
	struct loop *loop;

	if (!pretend_groups("0::/a\n"))
		return;
	press("0.00", "0.00");
	loop = begin(&machine, &follower, 0, 0);
	ck_assert_str_eq(machine.psi.file, GROUP "/memory.pressure");
	ck_assert_int_lt(machine.psi.poll_fd,
			 0); /* no file of the kernel's: it is not written to */
	machine_look(&machine);
	ck_assert_uint_eq(follower.n_caches, 0);
	ck_assert(machine_has_room_ahead(&machine));
	ck_assert_uint_eq(machine_share(&machine, 80), 80);
	press("20.00", "1.00");
	machine_look(&machine);
	ck_assert_uint_eq(follower.n_caches, 1);
	ck_assert_uint_eq(follower.n_idle, 0);
	ck_assert(machine_has_room_ahead(&machine));
	ck_assert_uint_eq(machine_share(&machine, 80), 0);
	press("30.00", "10.00");
	machine_look(&machine);
	ck_assert_uint_eq(follower.n_caches, 1);
	ck_assert_uint_eq(follower.n_idle, 1);
	ck_assert(!machine_has_room_ahead(&machine));
	ck_assert_uint_eq(machine.pressures, 1);
	end(&machine, loop);
}
END_TEST

START_TEST(pressure_may_be_nobodys_business)
{
	struct follower follower;
	struct machine machine;
	struct loop *loop;

	if (!pretend_groups("0::/a\n"))
		return;
	press("90.00", "90.00");
	follows_pressure = false;
	loop = begin(&machine, &follower, 0, 0);
	machine_look(&machine);
	ck_assert_uint_eq(follower.n_caches + follower.n_idle, 0);
	ck_assert(machine_has_room_ahead(&machine));
	ck_assert_uint_eq(machine_share(&machine, 80), 80);
	ck_assert_str_eq(machine.psi.file, "");
	end(&machine, loop);
}
END_TEST

START_TEST(it_is_described)
{
	struct follower follower;
	struct machine machine;
	struct loop *loop;
	struct json_out out;
	char *text;

	if (!pretend_groups("0::/a\n"))
		return;
	press("12.50", "0.00");
	pretend_file(GROUP "/memory.max", "67108864\n");
	loop = begin(&machine, &follower, 0, 0);
	machine_look(&machine);
	json_out_init(&out, false);
	json_out_object_begin(&out);
	machine_describe(&machine, &out);
	json_out_object_end(&out);
	ck_assert_int_eq(json_out_take(&out, &text, NULL), 0);
	ck_assert_ptr_nonnull(strstr(text, "\"memory_from\":\"" GROUP "/memory.max\""));
	ck_assert_ptr_nonnull(strstr(text, "\"memory_limit\":67108864"));
	ck_assert_ptr_nonnull(strstr(text, "\"level\":\"caches\",\"some\":12.5"));
	free(text);
	end(&machine, loop);
}
END_TEST

static const struct {
	const char *text;
	double some, full; /* some < 0: it is none */
} texts[] = {
    {"some avg10=1.23 avg60=0.00 avg300=0.00 total=5\nfull avg10=0.45 avg60=0.00", 1.23, 0.45},
    {"some avg10=100.00 avg60=1\n", 100, 0},
    {"some avg10=1.00 avg60=1\nfull avg10=x", -1, 0},
    {"some avg10=1.00 avg60=1\nfull avg10=101", -1, 0},
    {"some avg10=-1.00", -1, 0},
    {"some avg10=nan", -1, 0},
    {"full avg10=1.00", -1, 0},
    {"some", -1, 0},
    {"", -1, 0},
};

START_TEST(the_kernels_text_is_read)
{
	double some = -7, full = -7;
	const bool is_good = texts[_i].some >= 0;

	ck_assert_int_eq(psi_parse(texts[_i].text, &some, &full), is_good);
	ck_assert_double_eq(some, is_good ? texts[_i].some : -7);
	ck_assert_double_eq(full, is_good ? texts[_i].full : -7);
}
END_TEST

/* As the kernel says it when cgroup.pressure is switched off, or the cgroup is gone. */
START_TEST(the_last_call_is_known)
{
	struct psi psi = {.fd = -1, .poll_fd = epoll_create1(EPOLL_CLOEXEC)};
	struct epoll_event event = {.events = EPOLLPRI};
	int ends[2];

	ck_assert_int_eq(pipe(ends), 0);
	psi.fd = ends[1];
	ck_assert_int_eq(epoll_ctl(psi.poll_fd, EPOLL_CTL_ADD, psi.fd, &event), 0);
	ck_assert(psi_take(&psi));
	close(ends[0]);
	ck_assert(!psi_take(&psi));
	psi_close(&psi);
	ck_assert_int_eq(psi.poll_fd, -1);
}
END_TEST

START_TEST(without_a_file_there_is_no_pressure)
{
	struct psi psi;

	if (!pretend_groups("0::/a\n"))
		return;
	press("20.00", "1.00");
	psi_open(&psi);
	ck_assert_double_eq(psi.some, 20);
	ck_assert_int_eq(unlink(GROUP "/memory.pressure"), 0);
	psi_read(&psi);
	ck_assert_double_eq(psi.some, 0);
	ck_assert_double_eq(psi.full, 0);
	psi_close(&psi);
}
END_TEST

/* What is there and cannot be read for want of a descriptor holds as before: nothing is given back for it. */
START_TEST(what_cannot_be_read_just_now_holds)
{
	struct follower follower;
	struct machine machine;
	struct rlimit limit, none;
	struct loop *loop;

	if (!pretend_groups("0::/a\n"))
		return;
	press("5.00", "0.00");
	pretend_file(GROUP "/cpu.max", "100 100000\n");
	pretend_file(GROUP "/memory.max", "67108864\n");
	loop = begin(&machine, &follower, 0, 0);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	machine_look(&machine);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_uint_eq(follower.n_workers, 1);
	ck_assert_uint_eq(follower.n_budget, 1);
	ck_assert_str_eq(machine.limits.memory_file, GROUP "/memory.max");
	ck_assert_double_eq(machine.psi.some, 5);
	pretend_file(GROUP "/memory.max", "33554432\n"); /* they are followed again */
	machine_look(&machine);
	ck_assert_uint_eq(follower.budget, 16 * MIB);
	end(&machine, loop);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, limits_are_followed);
	tcase_add_test(tcase, what_is_configured_stays);
	tcase_add_test(tcase, pressure_is_acted_upon);
	tcase_add_test(tcase, pressure_may_be_nobodys_business);
	tcase_add_test(tcase, it_is_described);
	tcase_add_test(tcase, the_last_call_is_known);
	tcase_add_test(tcase, without_a_file_there_is_no_pressure);
	tcase_add_test(tcase, what_cannot_be_read_just_now_holds);
	tcase_add_loop_test(tcase, the_kernels_text_is_read, 0, BASE_ARRAY_LEN(texts));
}

int main(void)
{
	return suite_run("machine", add);
}
