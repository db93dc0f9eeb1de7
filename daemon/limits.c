/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits: read at the start and every few seconds from then on, for they change while we run: who runs a node
 * writes into these files, and nothing tells us. A cgroup's limit may stand at any level above us, so every level
 * from our own up to the root is looked at, in both hierarchies; what is not there, or not ours to read, does not
 * limit. What is there and cannot be read just now is noted: a limit that seems to be gone for a moment would cost all caches.
 */
#include "daemon/limits.h"

#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#define CGROUP_ROOT "/sys/fs/cgroup"

bool limits_passes(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EINTR ||
	       error == EAGAIN;
}

static void note_error(int *error)
{
	if (limits_passes(errno))
		*error = errno;
}

/* A file's beginning: false if there is none. *error: it could not be read just now. */
static bool read_line(const char *path, char *ret, size_t size, int *error)
{
	FILE *file = fopen(path, "re");
	bool found = file && fgets(ret, (int)size, file);

	if (!file || ferror(file))
		note_error(error);
	if (file)
		fclose(file);
	return found;
}

/* First number of a file; false if there is none ("max", no file). */
static bool read_number(const char *path, int64_t *ret, int *error)
{
	char line[64];
	long long number;

	if (!read_line(path, line, sizeof(line), error) || sscanf(line, "%lld", &number) != 1)
		return false;
	*ret = number;
	return true;
}

/* Our path in a hierarchy: "memory" and "cpu" name v1 controllers, "" the v2 one. */
static bool cgroup_path(const char *controller, char *ret, size_t size, int *error)
{
	FILE *file = fopen("/proc/self/cgroup", "re");
	char line[4096];
	bool found = false;

	if (!file) {
		note_error(error);
		return false;
	}
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
	if (ferror(file))
		note_error(error);
	fclose(file);
	return found;
}

typedef void (*level_fn)(const char *folder, struct limits *limits);

/* Calls fn for our folder in a hierarchy and for each one above it. */
static void each_level(const char *mount, const char *controller, level_fn fn,
		       struct limits *limits)
{
	char path[4096], folder[4352];

	if (!cgroup_path(controller, path, sizeof(path), &limits->error))
		return;
	for (;;) {
		char *slash = strrchr(path, '/');

		snprintf(folder, sizeof(folder), "%s%s", mount, strcmp(path, "/") ? path : "");
		fn(folder, limits);
		if (!slash || !path[1])
			return;
		slash[slash == path ? 1 : 0] = '\0';
	}
}

/* A longer name is cut: it is for people. */
static void note_file(char ret[LIMITS_PATH], const char *path)
{
	snprintf(ret, LIMITS_PATH, "%.*s", LIMITS_PATH - 1, path);
}

static void least_of(const char *folder, const char *name, struct limits *limits)
{
	char path[4608];
	int64_t number;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (!read_number(path, &number, &limits->error) || number <= 0 ||
	    (uint64_t)number >= limits->memory || (uint64_t)number >= limits->ram)
		return;
	limits->memory = (uint64_t)number;
	note_file(limits->memory_file, path);
}

static void memory_v1(const char *folder, struct limits *limits)
{
	least_of(folder, "memory.limit_in_bytes", limits);
}

/* From memory.high on the kernel slows down who asks for more. */
static void memory_v2(const char *folder, struct limits *limits)
{
	least_of(folder, "memory.max", limits);
	least_of(folder, "memory.high", limits);
}

uint64_t limits_budget(const struct limits *limits, uint64_t configured, const char **ret_source)
{
	const bool is_limited = limits->memory < limits->ram;
	const uint64_t limit = is_limited ? limits->memory : limits->ram;
	const uint64_t most = limit - limit / 8;

	if (configured > most) {
		*ret_source = is_limited
				  ? "seven eighths of the cgroup's memory limit, less than `memory`"
				  : "seven eighths of RAM, less than `memory`";
		return most;
	}
	if (configured) {
		*ret_source = "parameter `memory`";
		return configured;
	}
	*ret_source = is_limited ? "half of the cgroup's memory limit" : "a quarter of RAM";
	return is_limited ? limits->memory / 2 : limits->ram / 4;
}

/* The sum of what the lines with these names say, in bytes. */
static uint64_t sum_of(const char *path, const char *const names[2])
{
	FILE *file = fopen(path, "re");
	char line[128], name[64], unit[4];
	unsigned long long number;
	uint64_t sum = 0;

	while (file && fgets(line, sizeof(line), file)) {
		int n = sscanf(line, "%63[^ :]%*[ :]%llu %3s", name, &number, unit);

		if (n >= 2 && (strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0))
			sum += n == 3 ? number << 10 : number;
	}
	if (file)
		fclose(file);
	return sum;
}

uint64_t limits_room(const struct limits *limits)
{
	static const char *const available[2] = {"MemAvailable", ""};
	static const char *const v1[2] = {"total_active_file", "total_inactive_file"};
	static const char *const v2[2] = {"active_file", "inactive_file"};
	const char *slash = strrchr(limits->memory_file, '/');
	char path[LIMITS_PATH + 32];
	uint64_t free_up;
	int64_t used;
	bool is_v1;
	int error;

	if (!slash)
		return sum_of("/proc/meminfo", available);
	is_v1 = strcmp(slash, "/memory.limit_in_bytes") == 0;
	snprintf(path, sizeof(path), "%.*s/memory.stat", (int)(slash - limits->memory_file),
		 limits->memory_file);
	free_up = limits->memory + sum_of(path, is_v1 ? v1 : v2);
	snprintf(path, sizeof(path), "%.*s/memory.%s", (int)(slash - limits->memory_file),
		 limits->memory_file, is_v1 ? "usage_in_bytes" : "current");
	if (!read_number(path, &used, &error) || used < 0 || (uint64_t)used > free_up)
		return 0;
	return BASE_MIN(free_up - (uint64_t)used, limits->memory);
}

static void lower_to_quota(double quota, double period, const char *path, struct limits *limits)
{
	if (!(quota > 0 && period > 0 && quota / period < limits->cpus))
		return;
	limits->cpus = BASE_MAX((unsigned)((quota + period - 1) / period), 1u);
	note_file(limits->cpus_file, path);
}

static void cpus_v1(const char *folder, struct limits *limits)
{
	char path[4608];
	int64_t quota, period;

	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
	if (!read_number(path, &quota, &limits->error))
		return;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
	if (!read_number(path, &period, &limits->error))
		return;
	snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
	lower_to_quota((double)quota, (double)period, path, limits);
}

static void cpus_v2(const char *folder, struct limits *limits)
{
	char path[4608], line[64];
	double quota, period;

	snprintf(path, sizeof(path), "%s/cpu.max", folder);
	if (read_line(path, line, sizeof(line), &limits->error) &&
	    sscanf(line, "%lf %lf", &quota, &period) == 2)
		lower_to_quota(quota, period, path, limits);
}

/* The kernel refuses a set that is smaller than its own. */
static unsigned cpus_of_mask(void)
{
	unsigned cpus = 1;

	for (int most = CPU_SETSIZE; most <= 1 << 20; most *= 2) {
		cpu_set_t *set = CPU_ALLOC((size_t)most);
		const size_t size = CPU_ALLOC_SIZE((size_t)most);
		const bool is_read = set && sched_getaffinity(0, size, set) == 0;

		if (is_read)
			cpus = BASE_MAX((unsigned)CPU_COUNT_S(size, set), 1u);
		CPU_FREE(set);
		if (is_read)
			break;
	}
	return cpus;
}

void limits_read(struct limits *ret)
{
	struct sysinfo info;

	sysinfo(&info);
	*ret = (struct limits){.ram = (uint64_t)info.totalram * info.mem_unit,
			       .memory = UINT64_MAX,
			       .mask = cpus_of_mask()};
	ret->cpus = ret->mask;
	each_level(CGROUP_ROOT, "", memory_v2, ret);
	each_level(CGROUP_ROOT "/memory", "memory", memory_v1, ret);
	each_level(CGROUP_ROOT, "", cpus_v2, ret);
	each_level(CGROUP_ROOT "/cpu", "cpu", cpus_v1, ret);
}

void limits_own_file(const char *name, char ret[LIMITS_PATH])
{
	char path[4096], file[4608];
	int error;

	ret[0] = '\0';
	if (!cgroup_path("", path, sizeof(path), &error))
		return;
	snprintf(file, sizeof(file), "%s%s/%s", CGROUP_ROOT, strcmp(path, "/") ? path : "", name);
	if (strlen(file) < LIMITS_PATH && access(file, F_OK) == 0)
		note_file(ret, file);
}

uint64_t limits_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return pid <= 0 || clock_getcpuclockid(pid, &clock) ? 0 : base_clock_ns(clock);
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
	return base_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
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
