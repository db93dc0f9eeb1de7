/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits, read from control groups that the test makes up (pretend.h).
 */

#include "daemon/limits.h"
#include "tests/daemon/pretend.h"
#include "tests/suite.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

struct file {
	const char *path, *text;
};

static const struct {
	const char *groups;
	struct file file[5];
	uint64_t limit;   /* 0: none */
	unsigned cpus;    /* 0: not cut */
	const char *from; /* the file that does */
} table[] = {
    {"0::/\n", {{NULL, NULL}}, 0, 0, NULL},
    {"0::/a/b\n",
     {{PRETEND_ROOT "/a/b/memory.max", "67108864\n"}},
     64 * MIB,
     0,
     PRETEND_ROOT "/a/b/memory.max"},
    {"0::/a/b\n",
     {{PRETEND_ROOT "/a/b/memory.max", "max\n"}, {PRETEND_ROOT "/a/memory.max", "67108864\n"}},
     64 * MIB,
     0,
     PRETEND_ROOT "/a/memory.max"},
    {"0::/a\n",
     {{PRETEND_ROOT "/a/memory.max", "max\n"}, {PRETEND_ROOT "/a/memory.high", "67108864\n"}},
     64 * MIB,
     0,
     PRETEND_ROOT "/a/memory.high"},
    {"0::/a\n",
     {{PRETEND_ROOT "/a/memory.max", "67108864\n"}, {PRETEND_ROOT "/a/memory.high", "max\n"}},
     64 * MIB,
     0,
     PRETEND_ROOT "/a/memory.max"},
    {"0::/a/b\n",
     {{PRETEND_ROOT "/a/b/memory.max", "134217728\n"},
      {PRETEND_ROOT "/a/memory.max", "67108864\n"},
      {PRETEND_ROOT "/memory.max", "268435456\n"}},
     64 * MIB,
     0,
     PRETEND_ROOT "/a/memory.max"},
    {"0::/a\n",
     {{PRETEND_ROOT "/memory.max", "67108864\n"}},
     64 * MIB,
     0,
     PRETEND_ROOT "/memory.max"},                                           /* of the root itself */
    {"0::/a\n", {{PRETEND_ROOT "/b/memory.max", "1048576\n"}}, 0, 0, NULL}, /* a neighbour's */
    {"0::/a\n",
     {{PRETEND_ROOT "/a/memory.max", "9223372036854771712\n"}},
     0,
     0,
     NULL}, /* more than RAM */
    {"0::/a\n", {{PRETEND_ROOT "/a/memory.max", "nonsense\n"}}, 0, 0, NULL},
    {"0::/a\n", {{PRETEND_ROOT "/a/memory.max", "-1\n"}}, 0, 0, NULL},
    {"0::/a\n", {{PRETEND_ROOT "/a/cpu.max", "max 100000\n"}}, 0, 0, NULL},
    {"0::/a\n", {{PRETEND_ROOT "/a/cpu.max", "50000 100000\n"}}, 0, 1, PRETEND_ROOT "/a/cpu.max"},
    {"0::/a\n",
     {{PRETEND_ROOT "/a/cpu.max", "100001 100000\n"}},
     0,
     2,
     PRETEND_ROOT "/a/cpu.max"}, /* rounded up */
    {"0::/a/b\n",
     {{PRETEND_ROOT "/a/cpu.max", "100000 100000\n"}, {PRETEND_ROOT "/a/b/cpu.max", "max 100000"}},
     0,
     1,
     PRETEND_ROOT "/a/cpu.max"},
    {"9:memory:/job\n1:name=systemd:/x\n",
     {{PRETEND_ROOT "/memory/job/memory.limit_in_bytes", "67108864\n"},
      {PRETEND_ROOT "/memory/memory.limit_in_bytes", "9223372036854771712\n"}},
     64 * MIB,
     0,
     PRETEND_ROOT "/memory/job/memory.limit_in_bytes"},
    {"4:cpu,cpuacct:/job\n",
     {{PRETEND_ROOT "/cpu/job/cpu.cfs_quota_us", "100000\n"},
      {PRETEND_ROOT "/cpu/job/cpu.cfs_period_us", "100000\n"}},
     0,
     1,
     PRETEND_ROOT "/cpu/job/cpu.cfs_quota_us"},
    {"4:cpuacct,cpu:/job\n",
     {{PRETEND_ROOT "/cpu/job/cpu.cfs_quota_us", "-1\n"},
      {PRETEND_ROOT "/cpu/job/cpu.cfs_period_us", "100000\n"},
      {PRETEND_ROOT "/cpu/cpu.cfs_quota_us", "50000\n"},
      {PRETEND_ROOT "/cpu/cpu.cfs_period_us", "100000\n"}},
     0,
     1,
     PRETEND_ROOT "/cpu/cpu.cfs_quota_us"},
    {"4:cpu:/job\n",
     {{PRETEND_ROOT "/cpu/job/cpu.cfs_quota_us", "50000\n"},
      {PRETEND_ROOT "/cpu/job/cpu.cfs_period_us", "0\n"}}, /* divides nothing */
     0,
     0,
     NULL},
    {"garbage\n:\n::\n0:/a\n", {{PRETEND_ROOT "/a/memory.max", "1\n"}}, 0, 0, NULL},
    {"", {{NULL, NULL}}, 0, 0, NULL},
};

static unsigned cpus_of_mask(void)
{
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	return (unsigned)CPU_COUNT(&set);
}

START_TEST(groups_limit)
{
	struct sysinfo info;
	const char *source;
	uint64_t ram, memory;
	struct limits limits;
	unsigned mask = cpus_of_mask();

	if (!pretend_groups(table[_i].groups))
		return;
	for (size_t i = 0; i < 5 && table[_i].file[i].path; i++)
		pretend_file(table[_i].file[i].path, table[_i].file[i].text);
	ck_assert_int_eq(sysinfo(&info), 0);
	ram = (uint64_t)info.totalram * info.mem_unit;
	limits_read(&limits);
	memory = limits_budget(&limits, 0, &source);
	ck_assert_uint_eq(limits.ram, ram);
	ck_assert_uint_eq(limits.memory, table[_i].limit ? table[_i].limit : UINT64_MAX);
	ck_assert_str_eq(limits.memory_file, table[_i].limit ? table[_i].from : "");
	if (mask > table[_i].cpus)
		ck_assert_str_eq(limits.cpus_file, table[_i].cpus ? table[_i].from : "");
	if (table[_i].limit) {
		ck_assert_uint_eq(memory, table[_i].limit / 2);
		ck_assert_str_eq(source, "half of the cgroup's memory limit");
	} else {
		ck_assert_uint_eq(memory, ram / 4);
		ck_assert_str_eq(source, "a quarter of RAM");
	}
	ck_assert_uint_eq(limits.mask, mask);
	ck_assert_uint_eq(limits.cpus, table[_i].cpus ? BASE_MIN(table[_i].cpus, mask) : mask);
}
END_TEST

START_TEST(the_mask_limits)
{
	struct limits limits;
	cpu_set_t set;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0, seen = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && seen++)
			CPU_CLR(cpu, &set);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(set), &set), 0);
	limits_read(&limits);
	ck_assert_uint_eq(limits.mask, 1);
	ck_assert_uint_eq(limits.cpus, 1);
}
END_TEST

START_TEST(what_is_configured_has_a_bound)
{
	struct limits limits = {.ram = 1024 * MIB, .memory = UINT64_MAX};
	const char *source;

	ck_assert_uint_eq(limits_budget(&limits, 0, &source), 256 * MIB);
	ck_assert_uint_eq(limits_budget(&limits, 896 * MIB, &source), 896 * MIB);
	ck_assert_str_eq(source, "parameter `memory`");
	ck_assert_uint_eq(limits_budget(&limits, UINT64_C(64) << 40, &source), 896 * MIB);
	ck_assert_str_eq(source, "seven eighths of RAM, less than `memory`");
	limits.memory = 64 * MIB;
	ck_assert_uint_eq(limits_budget(&limits, 0, &source), 32 * MIB);
	ck_assert_uint_eq(limits_budget(&limits, 56 * MIB, &source), 56 * MIB);
	ck_assert_str_eq(source, "parameter `memory`");
	ck_assert_uint_eq(limits_budget(&limits, 56 * MIB + 1, &source), 56 * MIB);
	ck_assert_ptr_nonnull(strstr(source, "cgroup"));
}
END_TEST

/* What was read is of that moment alone. */
START_TEST(limits_change)
{
	struct limits limits;
	char file[LIMITS_PATH];

	if (!pretend_groups("0::/a\n"))
		return;
	limits_read(&limits);
	ck_assert_uint_eq(limits.memory, UINT64_MAX);
	pretend_file(PRETEND_ROOT "/a/memory.max", "67108864\n");
	pretend_file(PRETEND_ROOT "/a/cpu.max", "50000 100000\n");
	limits_read(&limits);
	ck_assert_uint_eq(limits.memory, 64 * MIB);
	ck_assert_uint_eq(limits.cpus, 1);
	pretend_file(PRETEND_ROOT "/a/memory.max", "max\n");
	pretend_file(PRETEND_ROOT "/a/cpu.max", "max 100000\n");
	limits_read(&limits);
	ck_assert_uint_eq(limits.memory, UINT64_MAX);
	ck_assert_uint_eq(limits.cpus, limits.mask);
	limits_own_file("memory.max", file);
	ck_assert_str_eq(file, PRETEND_ROOT "/a/memory.max");
	limits_own_file("memory.pressure", file);
	ck_assert_str_eq(file, "");
}
END_TEST

START_TEST(room_is_what_is_not_used)
{
	struct limits limits;

	limits_read(&limits);
	if (limits.memory == UINT64_MAX) {
		ck_assert_uint_gt(limits_room(&limits), 0);
		ck_assert_uint_le(limits_room(&limits), limits.ram);
	}
	if (!pretend_groups("0::/a/b\n3:memory:/m\n"))
		return;
	pretend_file(PRETEND_ROOT "/a/memory.max", "67108864\n");
	limits_read(&limits);
	ck_assert_uint_eq(limits_room(&limits), 0); /* nothing says what is used */
	pretend_file(PRETEND_ROOT "/a/memory.current", "66060288\n");
	ck_assert_uint_eq(limits_room(&limits), MIB);
	pretend_file(
	    PRETEND_ROOT "/a/memory.stat",
	    "anon 5\nfile 30000000\nshmem 9\ninactive_file 1048576\nactive_file 2097152\n");
	ck_assert_uint_eq(limits_room(&limits), 4 * MIB);
	pretend_file(PRETEND_ROOT "/a/memory.current", "167108864\n");
	ck_assert_uint_eq(limits_room(&limits), 0); /* the limit was lowered */
	pretend_file(PRETEND_ROOT "/a/memory.current", "0\n");
	ck_assert_uint_eq(limits_room(&limits), 64 * MIB);
	pretend_file(PRETEND_ROOT "/memory/m/memory.limit_in_bytes", "33554432\n");
	pretend_file(PRETEND_ROOT "/memory/m/memory.usage_in_bytes", "33554432\n");
	pretend_file(PRETEND_ROOT "/memory/m/memory.stat",
		     "inactive_file 7\ntotal_inactive_file 1048576\ntotal_active_file 0\n");
	limits_read(&limits);
	ck_assert_uint_eq(limits_room(&limits), MIB);
}
END_TEST

START_TEST(processes_are_measured)
{
	uint64_t before = limits_own_cpu_ns(), rss = limits_own_rss();
	volatile uint64_t sum = 0;
	void *memory;
	pid_t pid;

	for (uint64_t i = 0; i < 50000000; i++)
		sum = sum + i;
	ck_assert_uint_gt(limits_own_cpu_ns(), before + 1000000);
	ck_assert_uint_ge(limits_cpu_ns(getpid()), limits_own_cpu_ns() / 2);
	memory = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_uint_gt(limits_own_rss(), rss + 32 * MIB);
	munmap(memory, 64 * MIB);
	pid = fork();
	if (pid == 0)
		_exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_uint_eq(limits_cpu_ns(pid), 0); /* gone */
	ck_assert_uint_eq(limits_cpu_ns(0), 0);
	ck_assert_uint_eq(limits_cpu_ns(-5), 0);
}
END_TEST

/* Of one that is being reaped the kernel says that its parent is 0. */
START_TEST(a_parent_is_right_or_unknown)
{
	_Atomic pid_t *newest =
	    mmap(NULL, sizeof(*newest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t mother;
	int status;

	ck_assert_ptr_ne((void *)newest, MAP_FAILED);
	mother = fork();
	for (unsigned i = 0; mother == 0 && i < 1000; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		*newest = pid;
		if (waitpid(pid, NULL, 0) != pid)
			_exit(1);
	}
	if (mother == 0)
		_exit(0);
	while (waitpid(mother, &status, WNOHANG) == 0) {
		pid_t pid = *newest, parent = pid ? limits_parent(pid) : -1;

		ck_assert_msg(parent == mother || parent == -1, "%ld", (long)parent);
	}
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(limits_parent(1), 0); /* of init it is the truth */
	munmap((void *)newest, sizeof(*newest));
}
END_TEST

START_TEST(descriptors_are_raised)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = BASE_MIN((rlim_t)64, limit.rlim_max);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_uint_eq(limits_raise_files(), limit.rlim_max);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_uint_eq(limit.rlim_cur, limit.rlim_max);
}
END_TEST

static void add(TCase *tcase)
{
	tcase_add_loop_test(tcase, groups_limit, 0, BASE_ARRAY_LEN(table));
	tcase_add_test(tcase, the_mask_limits);
	tcase_add_test(tcase, what_is_configured_has_a_bound);
	tcase_add_test(tcase, limits_change);
	tcase_add_test(tcase, room_is_what_is_not_used);
	tcase_add_test(tcase, processes_are_measured);
	tcase_add_test(tcase, a_parent_is_right_or_unknown);
	tcase_add_test(tcase, descriptors_are_raised);
}

int main(void)
{
	return suite_run("limits", add);
}
