/* SPDX-License-Identifier: Apache-2.0 */

/* Children that reserve and gather for a variant, when it ends. */

#include "daemon/proc/reserve.h"
#include "daemon/tenant/domain.h"
#include "daemon/node.h"
#include "daemon/serve/pump.h"
#include "daemon/serve/stream.h"
#include "daemon/serve/streams.h"
#include "daemon/serve/variant.h"
#include "shmring/region.h"
#include "tests/suite.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned forks, forks_that_fail;
static uint64_t passed_ns; /* beside the clock's */

pid_t __real_fork(void);
pid_t __wrap_fork(void);
uint64_t __real_base_now_ns(void);
uint64_t __wrap_base_now_ns(void);

pid_t __wrap_fork(void)
{
	if (++forks > forks_that_fail)
		return __real_fork();
	errno = EAGAIN;
	return -1;
}

uint64_t __wrap_base_now_ns(void)
{
	return __real_base_now_ns() + passed_ns;
}

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
	static struct node node;
	struct domain domain = {.node = &node};
	static struct stream stream;
	struct reserve_done done;
	struct variant variant = {.stream = &stream,
				  .slots_fd = base_memfd("slots", 4096),
				  .reserve = {.pid = start_idler(), .gatherer = start_idler()}};
	const pid_t pids[] = {variant.reserve.pid, variant.reserve.gatherer};

	stream.node = &node;
	stream.domain = &domain;
	reserve_cancel(&variant);
	close(variant.slots_fd);
	ck_assert_int_eq(variant.reserve.pid, 0);
	ck_assert_int_eq(variant.reserve.gatherer, 0);
	for (unsigned i = 0; i < 2; i++) {
		int status;

		/* The slots are kept so long. */
		ck_assert_int_ge(fcntl(LIST_FIRST(&node.leaving)->slots_fd, F_GETFD), 0);
		ck_assert_int_eq(waitpid(pids[i], &status, 0), pids[i]);
		ck_assert(reserve_ended(&node, pids[i], status, &done));
		ck_assert(WIFSIGNALED(status));
		ck_assert_int_eq(WTERMSIG(status), SIGKILL);
	}
	ck_assert(LIST_EMPTY(&node.leaving));
	ck_assert(!reserve_ended(&node, pids[0], 0, &done));
	reserve_cancel(&variant); /* twice is fine */
	reserve_fini(&node);
}
END_TEST

static void refuse_pidfds(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_open, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = BASE_ARRAY_LEN(code), .filter = code};

	ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
	ck_assert_int_eq(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
	ck_assert_int_eq(syscall(SYS_pidfd_open, getpid(), 0), -1);
}

/* accessd's own end does: who is the last to hold that memory frees it. Also where a sandbox refuses pidfds. */
START_TEST(the_very_end_waits_for_all)
{
	static struct node node;
	static struct stream stream;
	struct variant variant = {.stream = &stream,
				  .slots_fd = base_memfd("slots", 4096),
				  .reserve = {.pid = start_idler(), .gatherer = start_idler()}};
	const pid_t pids[] = {variant.reserve.pid, variant.reserve.gatherer};

	if (_i)
		refuse_pidfds();
	stream.node = &node;
	reserve_cancel(&variant);
	close(variant.slots_fd);
	reserve_fini(&node);
	ck_assert(LIST_EMPTY(&node.leaving));
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(waitpid(pids[i], NULL, WNOHANG), -1);
		ck_assert_int_eq(errno, ECHILD);
	}
}
END_TEST

/* What the kernel says of slots that no job needs is no answer to the next job. */
START_TEST(a_growth_that_is_refused_refuses_no_job)
{
	static const struct {
		bool is_growth, full;
	} cases[] = {{true, false}, {false, true}};
	static struct node node;
	static struct domain domain;
	static struct stream stream;
	struct variant variant = {
	    .stream = &stream,
	    .payer = &domain,
	    .state = VARIANT_RUNS,
	    .reserve = {.pid = 1, .to = 4, .is_growth = cases[_i].is_growth},
	};

	node.param.huge_pages = HUGE_PAGES_REQUIRE;
	domain.node = stream.node = &node;
	stream.domain = &domain;
	stream.state = STREAM_FAILED;
	stream.variant[0] = &variant;
	LIST_INSERT_HEAD(&node.domains, &domain, link);
	LIST_INSERT_HEAD(&domain.streams, &stream, link);
	ck_assert(stream_child_ended(&node, 1, 0x80 << 8)); /* it got none, and none is huge */
	ck_assert(variant.full == cases[_i].full);
	ck_assert(variant.reserve.is_refused == cases[_i].full);
	ck_assert(stream.cannot_grow == cases[_i].is_growth);
	ck_assert(!variant.reserve.is_growth);
}
END_TEST

/* What is in huge pages from the start needs no child that puts it there, and what jobs that come together had
 * reserved in small ones needs one. */
START_TEST(what_is_small_is_gathered_once)
{
	static const struct {
		int status;
		bool is_gathered;
	} cases[] = {{4, false}, {0x80 | 4, true}};
	static struct node node;
	static struct domain domain;
	static struct stream stream;
	struct variant variant = {.stream = &stream, .payer = &domain, .state = VARIANT_RUNS};
	int status;

	variant.table.geometry.max_slots = 8;
	variant.table.geometry.slot_stride = 4096;
	variant.slots_fd = base_memfd("slots", 8 * 4096);
	domain.node = stream.node = &node;
	stream.domain = &domain;
	stream.state = STREAM_FAILED;
	stream.variant[0] = &variant;
	LIST_INSERT_HEAD(&node.domains, &domain, link);
	LIST_INSERT_HEAD(&domain.streams, &stream, link);
	for (uint32_t slots = 0; slots < 8; slots += 4) {
		variant.reserve.pid = 1;
		variant.reserve.from = slots;
		variant.reserve.to = slots + 4;
		ck_assert(stream_child_ended(&node, 1, cases[_i].status << 8));
		ck_assert_int_eq(variant.reserve.gatherer, 0);
	}
	reserve_gather(&variant);
	ck_assert_uint_eq(variant.reserve.gathered, 8);
	ck_assert((variant.reserve.gatherer > 0) == cases[_i].is_gathered);
	if (variant.reserve.gatherer) {
		ck_assert_int_eq(waitpid(variant.reserve.gatherer, &status, 0),
				 variant.reserve.gatherer);
		ck_assert(stream_child_ended(&node, variant.reserve.gatherer, status));
	}
	reserve_gather(&variant);
	ck_assert_int_eq(variant.reserve.gatherer, 0);
	close(variant.slots_fd);
}
END_TEST

/* Each tick of the node has what is small gathered; where nobody can be forked for that, less and less often. */
START_TEST(a_tick_gathers_what_is_small)
{
	const unsigned ticks = 4 * 300;
	static struct node node;
	static struct stream stream;
	struct variant variant = {
	    .stream = &stream, .state = VARIANT_RUNS, .reserve = {.reserved = 4}};

	variant.table.geometry.max_slots = 4;
	variant.table.geometry.slot_stride = 4096;
	variant.slots_fd = base_memfd("slots", 4 * 4096);
	stream.node = &node;
	stream.state = STREAM_FAILED;
	stream.variant[0] = &variant;
	forks = 0; /* so far they were Check's */
	forks_that_fail = _i ? UINT_MAX : 0;
	for (unsigned i = 0; i < ticks; i++, passed_ns += 250000000)
		pump_tick(&stream);
	if (_i) {
		ck_assert_uint_ge(forks, 8); /* after 1, 3, 7, 15, 31, 63, 123, ... seconds */
		ck_assert_uint_le(forks, 12);
		ck_assert_int_eq(variant.reserve.gatherer, 0);
		ck_assert_uint_eq(variant.reserve.gathered, 0);
		forks_that_fail = 0;
		passed_ns += UINT64_C(60000000000);
		pump_tick(&stream);
	} else {
		ck_assert_uint_eq(forks, 1);
	}
	ck_assert_int_gt(variant.reserve.gatherer, 0);
	ck_assert_uint_eq(variant.reserve.gathered, 4);
	ck_assert_int_eq(waitpid(variant.reserve.gatherer, NULL, 0), variant.reserve.gatherer);
	close(variant.slots_fd);
}
END_TEST

/* What came in small pages while others were gathered is not in huge ones when those are. */
START_TEST(all_is_huge_when_the_last_is_gathered)
{
	static struct node node;
	static struct domain domain;
	static struct stream stream;
	struct variant variant = {.stream = &stream,
				  .reserve = {.gatherer = 1, .gathered = 4, .reserved = 4}};
	struct reserve_done done;

	variant.table.geometry.slot_stride = REGION_HUGE;
	stream.node = &node;
	stream.variant[0] = &variant;
	LIST_INSERT_HEAD(&node.domains, &domain, link);
	LIST_INSERT_HEAD(&domain.streams, &stream, link);
	variant.reserve.is_mixed = true;
	variant.reserve.reserved = 8;
	ck_assert(reserve_ended(&node, 1, 0, &done));
	ck_assert(!reserve_is_huge(&variant));
	variant.reserve.gatherer = 1;
	variant.reserve.gathered = 8;
	ck_assert(reserve_ended(&node, 1, 0, &done));
	ck_assert(reserve_is_huge(&variant));
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_test(tcase, all_is_huge_when_the_last_is_gathered);
	tcase_add_loop_test(tcase, a_tick_gathers_what_is_small, 0, 2);
	tcase_add_loop_test(tcase, what_is_small_is_gathered_once, 0, 2);
	tcase_add_loop_test(tcase, a_growth_that_is_refused_refuses_no_job, 0, 2);
	tcase_add_test(tcase, the_end_waits_for_no_child);
	tcase_add_loop_test(tcase, the_very_end_waits_for_all, 0, 2);
}

int main(void)
{
	return suite_run("reserve", add);
}
