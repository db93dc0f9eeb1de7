/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: read once at the start. A cgroup's limit may stand at any level above us, so every level
 * from our own up to the root is looked at, in both hierarchies; what cannot be read does not
 * limit.
 */
#include "daemon/limits.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

/* First number of a file; false if there is none ("max", no file). */
static bool read_number(const char *path, int64_t *ret)
{
	FILE *file = fopen(path, "re");
	long long number;
	bool found;

	if (!file)
		return false;
	found = fscanf(file, "%lld", &number) == 1;
	fclose(file);
	if (found)
		*ret = number;
	return found;
}

/* Our path in a hierarchy: "memory" and "cpu" name v1 controllers, "" the v2 one. */
static bool cgroup_path(const char *controller, char *ret, size_t size)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4096];
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		char *names = strchr(line, ':');
		char *path = names ? strchr(names + 1, ':') : NULL;

		if (!path)
			continue;
		*path++ = '\0';
		path[strcspn(path, "\n")] = '\0';
		for (char *save, *name = strtok_r(names + 1, ",", &save); name && !found;
		     name = strtok_r(NULL, ",", &save))
			found = strcmp(name, controller) == 0;
		found = found || (!*controller && !names[1]);
		if (found)
			snprintf(ret, size, "%s", path);
	}
	fclose(file);
	return found;
}

typedef void (*level_fn)(const char *folder, void *arg);

/* Calls fn for our folder in a hierarchy and for each one above it. */
static void each_level(const char *mount, const char *controller, level_fn fn, void *arg)
{
	char path[4096], folder[4352];

	if (!cgroup_path(controller, path, sizeof(path)))
		return;
	for (;;) {
		char *slash = strrchr(path, '/');

		snprintf(folder, sizeof(folder), "%s%s", mount, strcmp(path, "/") ? path : "");
		fn(folder, arg);
		if (!slash || !path[1])
			return;
		slash[slash == path ? 1 : 0] = '\0';
	}
}

static void least_of(const char *folder, const char *name, uint64_t *least)
{
	char path[4608];
	int64_t number;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (read_number(path, &number) && number > 0 && (uint64_t)number < *least)
		*least = (uint64_t)number;
}

static void memory_v1(const char *folder, void *least)
{
	least_of(folder, "memory.limit_in_bytes", least);
}

static void memory_v2(const char *folder, void *least)
{
	least_of(folder, "memory.max", least);
}

uint64_t limits_memory(const char **ret_source)
{
	struct sysinfo info;
	uint64_t ram, limit = UINT64_MAX;

	sysinfo(&info);
	ram = (uint64_t)info.totalram * info.mem_unit;
	each_level(CGROUP_ROOT, "", memory_v2, &limit);
	each_level(CGROUP_ROOT "/memory", "memory", memory_v1, &limit);
	if (limit < ram) {
		*ret_source = "half of the cgroup's memory limit";
		return limit / 2;
	}
	*ret_source = "a quarter of RAM";
	return ram / 4;
}

static void lower_to_quota(double quota, double period, unsigned *cpus)
{
	if (quota > 0 && period > 0 && quota / period < *cpus)
		*cpus = BASE_MAX((unsigned)((quota + period - 1) / period), 1u);
}

static void cpus_v1(const char *folder, void *cpus)
{
	char path[4608];
	int64_t quota, period;

	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
	if (!read_number(path, &quota))
		return;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
	if (read_number(path, &period))
		lower_to_quota((double)quota, (double)period, cpus);
}

static void cpus_v2(const char *folder, void *cpus)
{
	char path[4608];
	double quota, period;
	FILE *file;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%lf %lf", &quota, &period) == 2)
		lower_to_quota(quota, period, cpus);
	fclose(file);
}

unsigned limits_cpus(void)
{
	cpu_set_t set;
	unsigned cpus = 1;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		cpus = BASE_MAX((unsigned)CPU_COUNT(&set), 1u);
	each_level(CGROUP_ROOT, "", cpus_v2, &cpus);
	each_level(CGROUP_ROOT "/cpu", "cpu", cpus_v1, &cpus);
	return cpus;
}

uint64_t limits_cpu_ns(pid_t pid)
{
	clockid_t clock;
	struct timespec time;

	if (pid <= 0 || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &time))
		return 0;
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* What follows its name. false: it is gone. */
static bool read_stat(pid_t pid, char *ret_state, long *ret_parent)
{
	char path[32], line[512] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(line, sizeof(line), file))
		line[0] = '\0';
	fclose(file);
	end = strrchr(line, ')'); /* of its name, which may hold anything */
	return end && sscanf(end + 1, " %c %ld", ret_state, ret_parent) == 2;
}

char limits_state(pid_t pid)
{
	char state;
	long parent;

	return read_stat(pid, &state, &parent) ? state : 0;
}

/* The kernel says 0 of one that was reaped while we looked, which has no number any more when we look again. */
pid_t limits_parent(pid_t pid)
{
	char state;
	long parent = 0;

	for (unsigned i = 0; i < 2 && parent == 0; i++)
		if (!read_stat(pid, &state, &parent))
			return -1;
	return (pid_t)parent;
}

uint64_t limits_own_cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

uint64_t limits_own_rss(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long long pages = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	fclose(file);
	return pages * base_page_size();
}

uint64_t limits_raise_files(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return 0;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	return limit.rlim_cur;
}
